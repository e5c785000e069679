"""Right answers in other styles: what no check may refuse."""

import json

from vit_course.exercises.l07_experiments.model_accuracy import CONFIG, vit_cifar
from vit_course.exercises.l07_experiments.vit_cifar.claims import describe_model
from vit_course.exercises.l07_experiments.weights_file import make_weights_file, read_weights


def described_in_a_file_beside_it():
    content, _ = vit_cifar()
    return make_weights_file(read_weights(content).tensors, None), json.dumps(describe_model(CONFIG)).encode()


RIGHT = {"vit_cifar": [vit_cifar, described_in_a_file_beside_it]}
