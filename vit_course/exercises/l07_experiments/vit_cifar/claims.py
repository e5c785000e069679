"""`vit_cifar`: a result that is handed in as a file, the weights of a model that learned CIFAR-10.

This module checks what can be seen in the file; how good the model is, the judge measures on images of its own. The
points are those of the hidden check: they are earned when the whole file can be measured, and no part of them earlier.
The known mistakes are files that hold no weights, that are damaged, or whose model was never trained.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from exercise_kit.conventions import MOST_BYTES, MOST_BYTES_BESIDE
from exercise_kit.engine.course import FileBytes
from exercise_kit.engine.exercise import CheckFunction, Exercise, FileAnswer
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure, Waiting
from vit_course.config import ViTConfig
from vit_course.exercises.l07_experiments import LESSON
from vit_course.exercises.l07_experiments.weights_file import (
    CHANNELS,
    CLASSES,
    VERSION,
    Refused,
    WeightsFile,
    check_and_make_model,
    expect_affordable_model,
    expect_finite_numbers,
    expect_tensors_fit_config,
    list_state_shapes,
    make_weights_file,
    read_config,
    read_weights,
)

FILE = "vit_cifar.safetensors"
# percent of held-out images, and the points of the hidden check
THRESHOLDS = {40: 1.0, 50: 1.5, 60: 1.5, 65: 1.5, 70: 1.5}
Value = TypeVar("Value")
# what is noted of a model that knows nothing
BY_CHANCE = "as by chance"


def make_reader_of_path(given: object) -> object:
    """Return what the file holds that a path leads to, to be asked for when it is checked; anything else as it is."""
    if not isinstance(given, str | Path):
        return given

    def vit_cifar() -> FileBytes:
        weights = Path(given)
        content, beside = _read_bytes(weights, MOST_BYTES), _read_bytes(weights.with_suffix(".json"), MOST_BYTES_BESIDE)
        return content, beside if isinstance(beside, bytes) and len(beside) <= MOST_BYTES_BESIDE else None

    return vit_cifar


def _read_bytes(path: Path, most: int) -> bytes | str:
    """A file's bytes, of one that is too large one more than ``most``; or why there are none."""
    try:
        if not path.is_file():
            return f"there is no file {path.name} in this folder"
        with path.open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        return f"{path.name} cannot be read: {error.strerror or error}"


vit_cifar = Exercise("vit_cifar", LESSON, file=FileAnswer(FILE, make_reader_of_path), in_training=InTraining.UNSEEN)


def call_and_read_file(student: Student) -> FileBytes:
    """Return what a student handed in, which may be anything."""
    answer = student.call(student.name)
    content, beside = answer if isinstance(answer, tuple) and len(answer) == 2 else (None, None)
    if not isinstance(content, bytes | str):
        content = "nothing was handed in"
    return content, beside if isinstance(beside, bytes) else None


def read_weights_of(student: Student) -> WeightsFile:
    """Read the file that a student handed in.

    Raises:
        Refused: there is none, or it cannot be used.
    """
    file = call_and_read_file(student)
    return call_and_note_refusal(student, lambda: read_weights(*file))


def call_and_note_refusal(student: Student, look: Callable[[], Value]) -> Value:
    """Return what ``look`` finds; where it refuses the file, the reason is written into the student's record."""
    try:
        return look()
    except Refused as reason:
        student.note(("refused", reason.kind))
        raise


@vit_cifar.check(worth=0)
def it_is_a_weights_file(student: Student, probe: Probe) -> None:
    """The file exists, is complete, and is a safetensors file, which runs no code when it is read."""
    read_weights_of(student)


@vit_cifar.check(needs=it_is_a_weights_file, worth=0)
def its_config_is_there(student: Student, probe: Probe) -> None:
    """It holds the config of its model, for 3 x 32 x 32 images and 10 classes, with at most 10 million parameters."""
    file = read_weights_of(student)
    call_and_note_refusal(student, lambda: expect_affordable_model(read_config(file)))


@vit_cifar.check(needs=its_config_is_there, worth=0)
def its_weights_fit_its_config(student: Student, probe: Probe) -> None:
    """It holds every tensor that a VisionTransformer of that config has, in its shape, and no other."""
    file = read_weights_of(student)
    call_and_note_refusal(student, lambda: expect_tensors_fit_config(file.tensors, read_config(file)))


@vit_cifar.check(needs=its_weights_fit_its_config)
def every_number_is_finite(student: Student, probe: Probe) -> None:
    """No number in it is NaN or infinite, and it holds the mean and deviation of each channel of the images."""
    file = read_weights_of(student)
    call_and_note_refusal(student, lambda: expect_finite_numbers(file.tensors))
    call_and_note_refusal(student, lambda: check_and_make_model(file))


def expect_trained_head(student: Student) -> None:
    """Fail where every class has the same weights in the head, so that all images look alike to it."""
    tensors = read_weights_of(student).tensors
    head = tensors["head.weight" if "head.weight" in tensors else "head.2.weight"]
    if torch.equal(head, head[:1].expand_as(head)):
        student.note(("measured", BY_CHANCE))
        look = "Was the model saved before it was trained, or another one than the one that you trained?"
        raise Failure("every class has the same weights in the head, as before the first step", "a trained model", look)


def _make_threshold_claim(percent: int) -> CheckFunction:
    def wait_for_measurement(student: Student, probe: Probe) -> None:
        expect_trained_head(student)
        raise Waiting("the judge measures it, on images that your model has not seen")

    wait_for_measurement.__name__ = f"at_least_{percent}_percent"
    wait_for_measurement.__doc__ = word_threshold_claim(percent)
    return wait_for_measurement


def word_threshold_claim(percent: int) -> str:
    """The sentence that a student reads of a threshold."""
    return f"It is right on at least {percent} % of held-out images of CIFAR-10."


for _percent, _points in THRESHOLDS.items():
    vit_cifar.check(needs=its_weights_fit_its_config, worth=_points)(_make_threshold_claim(_percent))


SAVING = "07_experiments, A model to hand in"
SMALL = ViTConfig(patch_size=16, embed_dim=8, depth=1, num_heads=2)
_CLASSES = [f"class {number}" for number in range(CLASSES)]
_DATA = {"name": "cifar10", "classes": _CLASSES, "mean": [0.5] * CHANNELS, "std": [0.25] * CHANNELS}


def describe_model(config: ViTConfig) -> dict[str, Any]:
    """Describe what a weights file tells of a model of ``config`` for CIFAR-10."""
    return {"version": VERSION, "model": asdict(config), "data": dict(_DATA)}


@cache
def _draw_weights() -> Mapping[str, Tensor]:
    return Probe("a model for CIFAR-10").weights(list_state_shapes(SMALL))


@vit_cifar.misconception("Was the file copied while it was still being written, or was a download interrupted?", SAVING)
def cut_short() -> FileBytes:
    """The file ends before its numbers do."""
    return make_weights_file(_draw_weights(), describe_model(SMALL))[:-1000], None


@vit_cifar.misconception("Which function of the course saves a model, and which one of torch did you call?", SAVING)
def a_pickle() -> FileBytes:
    """The weights were saved by torch.save, whose files run code when they are loaded."""
    buffer = io.BytesIO()
    torch.save(dict(_draw_weights()), buffer)
    return buffer.getvalue(), None


@vit_cifar.misconception("What did the loss say before you saved, and which setting makes it explode?", SAVING)
def not_a_number() -> FileBytes:
    """Training diverged, and the weights that were saved are NaN."""
    weights = {name: torch.full_like(each, torch.nan) for name, each in _draw_weights().items()}
    return make_weights_file(weights, describe_model(SMALL)), None


@vit_cifar.misconception("Which of the variables in your notebook is the model that you trained?", SAVING)
def untrained() -> FileBytes:
    """The model was saved before it was trained: its head is zero, so it gives every image the same class."""
    weights = dict(_draw_weights())
    weights["head.weight"] = torch.zeros_like(weights["head.weight"])
    return make_weights_file(weights, describe_model(SMALL)), None


@vit_cifar.misconception("Of which run is the config, and of which one are the weights?", SAVING)
def the_config_of_another_model() -> FileBytes:
    """Weights and config come from two models, so the shapes do not fit."""
    return make_weights_file(_draw_weights(), describe_model(replace(SMALL, embed_dim=12))), None


@vit_cifar.misconception("What is needed, beside the numbers, to build your model again?", SAVING)
def no_config() -> FileBytes:
    """The file holds the weights alone, and not the sizes of the model."""
    return make_weights_file(_draw_weights(), None), None


@vit_cifar.misconception("Which size of a block enters its number of parameters twice?", SAVING)
def too_large() -> FileBytes:
    """The model has more parameters than are allowed."""
    return make_weights_file(_draw_weights(), describe_model(replace(SMALL, embed_dim=768, depth=12))), None
