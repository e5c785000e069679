"""Right answers in other styles: what no check may refuse."""

import json

from vit_course.exercises.l07_experiments.model_accuracy import CONFIG, vit_cifar
from vit_course.exercises.l07_experiments.vit_cifar.claims import described
from vit_course.exercises.l07_experiments.weights_file import read_weights, written


def described_in_a_file_beside_it():
    content, _ = vit_cifar()
    return written(read_weights(content).tensors, None), json.dumps(described(CONFIG)).encode()


RIGHT = {"vit_cifar": [vit_cifar, described_in_a_file_beside_it]}
