"""An exam for the hidden checks themselves, where no data set is needed: images that a made-up model has labelled.

That model, which is the reference of the exercise, is right on all of them, and nobody else is.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from exercise_kit.engine.course import HandedIn
from exercise_kit.engine.probes import Probe
from vit_course.config import ViTConfig
from vit_course.data.image_dataset import ImageDataset
from vit_course.exercises.judging.exam import Exam
from vit_course.exercises.misconceptions.results import described
from vit_course.exercises.weights_file import written
from vit_course.exercises.weights_model import CLASSES, shapes_of
from vit_course.interpret import record
from vit_course.vit import VisionTransformer

CONFIG = ViTConfig(patch_size=16, embed_dim=16, depth=1, num_heads=2)
_IMAGES = 300


def vit_cifar() -> HandedIn:
    """A weights file whose model labels the images of :func:`exam_of`."""
    return written(_model().state_dict(), described(CONFIG)), None


def exam_of(probe: Probe) -> Exam:
    """Images drawn from ``probe``, all of which the reference is right on."""
    images = coloured_squares(probe, _IMAGES)
    return Exam(lambda: labelled(images))


@torch.no_grad()
def labelled(images: Tensor) -> ImageDataset:
    """Images (num_images, 3, 32, 32) uint8 with the labels that the reference gives them."""
    labels: Tensor = _model()(_normalised(images)).argmax(dim=1)
    return ImageDataset(images, labels, tuple(f"class {number}" for number in range(CLASSES)), "made up")


def coloured_squares(probe: Probe, count: int) -> Tensor:
    """Images (count, 3, 32, 32) uint8 of four squares, each of one colour."""
    colours = probe.integers(count, 3, 2, 2, high=256).to(torch.uint8)
    return colours.repeat_interleave(16, dim=2).repeat_interleave(16, dim=3)


def _normalised(images: Tensor) -> Tensor:
    return (images / 255 - 0.5) / 0.25


@cache
@torch.no_grad()
def _model() -> VisionTransformer:
    """A model to which ten images that differ much are the classes, and all others belong to the nearest of them."""
    probe = Probe("a made-up model of ten classes")
    weights = probe.weights(shapes_of(CONFIG))
    weights["class_token"] *= 0.1
    weights["positions"][:, :1] *= 0.1
    weights["patch_embedding.projection.weight"] *= 3
    model = VisionTransformer(CONFIG).eval()
    model.load_state_dict(weights)
    features = record(model, _normalised(coloured_squares(probe, 200)))["pooled"]
    chosen = [0]
    while len(chosen) < CLASSES:
        chosen.append(int(torch.cdist(features, features[chosen]).amin(dim=1).argmax()))
    weights["head.weight"] = features[chosen]
    weights["head.bias"] = -features[chosen].square().sum(dim=1) / 2
    model.load_state_dict(weights)
    return model
