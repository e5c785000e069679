"""Known mistakes of lesson 06: a weights file that is none, that is damaged, or that nobody has trained."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.course import HandedIn
from exercise_kit.engine.probes import Probe
from vit_course.config import ViTConfig
from vit_course.exercises.checks.results import vit_cifar
from vit_course.exercises.weights_file import written
from vit_course.exercises.weights_model import CHANNELS, CLASSES, VERSION, shapes_of

SAVING = "06_cifar, Results that count"
SMALL = ViTConfig(patch_size=16, embed_dim=8, depth=1, num_heads=2)
_CLASSES = [f"class {number}" for number in range(CLASSES)]
_DATA = {"name": "cifar10", "classes": _CLASSES, "mean": [0.5] * CHANNELS, "std": [0.25] * CHANNELS}


def described(config: ViTConfig) -> dict[str, Any]:
    """What a weights file tells of a model of ``config`` for CIFAR-10."""
    return {"version": VERSION, "model": asdict(config), "data": dict(_DATA)}


@cache
def _weights() -> Mapping[str, Tensor]:
    return Probe("a model for CIFAR-10").weights(shapes_of(SMALL))


@vit_cifar.misconception("Was the kernel still writing when the file was copied, or did a download break off?", SAVING)
def cut_short() -> HandedIn:
    """The file ends before its numbers do."""
    return written(_weights(), described(SMALL))[:-1000], None


@vit_cifar.misconception("Which function of the course saves a model, and which one of torch did you call?", SAVING)
def a_pickle() -> HandedIn:
    """The weights were saved by torch.save, whose files run code when they are loaded."""
    buffer = io.BytesIO()
    torch.save(dict(_weights()), buffer)
    return buffer.getvalue(), None


@vit_cifar.misconception("What did the loss say before you saved, and which setting makes it explode?", SAVING)
def not_a_number() -> HandedIn:
    """Training diverged, and the weights that were saved are NaN."""
    weights = {name: torch.full_like(each, torch.nan) for name, each in _weights().items()}
    return written(weights, described(SMALL)), None


@vit_cifar.misconception("Which of the variables in your notebook is the model that you trained?", SAVING)
def untrained() -> HandedIn:
    """The model was saved as it was made: its head is zero, and every image is of the same class to it."""
    weights = dict(_weights())
    weights["head.weight"] = torch.zeros_like(weights["head.weight"])
    return written(weights, described(SMALL)), None


@vit_cifar.misconception("Of which run is the config, and of which one are the weights?", SAVING)
def the_config_of_another_model() -> HandedIn:
    """Weights and config come from two models, so the shapes do not fit."""
    return written(_weights(), described(replace(SMALL, embed_dim=12))), None


@vit_cifar.misconception("What does somebody need, beside the numbers, who wants to build your model?", SAVING)
def no_config() -> HandedIn:
    """The file holds the weights alone, and nobody can tell of which model."""
    return written(_weights(), None), None


@vit_cifar.misconception("Which size of a block enters its number of parameters twice?", SAVING)
def too_large() -> HandedIn:
    """The model has more parameters than are allowed."""
    return written(_weights(), described(replace(SMALL, embed_dim=768, depth=12))), None
