"""What is seen of a known mistake when a model is trained with it.

A course may have trained its model with each mistake in turn; its package then holds the results in
``exercises/in_training.json``. For every other mistake somebody decided what is seen.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from exercise_kit.engine.course_named import read_package_name

TIE = 0.02  # twice the standard error of the difference between two models on 5,000 images
STANDSTILL = 0.1  # of the way that the right model's loss falls from guessing


class InTraining(StrEnum):
    """What the one who looks at the loss and the accuracy sees of a mistake."""

    UNSEEN = "no curve shows it: training never meets it, or goes exactly as it should"
    HIDDEN = "the loss falls as usual, and the accuracy is about the same"
    BETTER = "the loss falls, and the accuracy is even higher"
    WORSE = "the loss falls all the same, and the accuracy is lower"
    STUCK = "the loss hardly falls"
    STOPS = "training stops with an error"
    MISREAD = "training goes as it should, and the numbers that are shown of it are wrong"
    FLATTERED = "the numbers that are shown look better than the model is"
    UNMEASURED = "not measured yet"


@dataclass(frozen=True)
class Trained:
    """What a course has trained with each mistake, in words, as its in_training.json says under "trained".

    Attributes:
        model: as "a small model".
        data: the data set's name.
        test_data: the images that accuracies are counted on.
        bugs_in: what the mistakes are bugs in.
        guessing: the accuracy of guesses.
    """

    model: str
    data: str
    test_data: str
    bugs_in: str
    guessing: float


def read_training_setup() -> Trained | None:
    """Read what the course has trained; None where nobody has measured."""
    found = _read_training_measurements()
    return Trained(**found["trained"], guessing=1 / found["right"]["classes"]) if "right" in found else None


@dataclass(frozen=True)
class TrainingEffect:
    """What is seen in training of one mistake.

    Attributes:
        kind: of effect.
        accuracy: on test data, from 0 to 1, of a model trained with the mistake; None: nobody trained one.
        right: the accuracy of the right model, trained in the same way.
    """

    kind: InTraining
    accuracy: float | None = None
    right: float | None = None

    @property
    def sentence(self) -> str:
        """A sentence for the one who made the mistake; empty where training shows nothing, or nobody has measured."""
        trained = read_training_setup()
        if trained is None or self.accuracy is None or self.right is None or self.kind not in _SHOWN:
            return ""
        reached = f"{trained.model} reached {self.accuracy:.1%} on {trained.data}; without the bug, {self.right:.1%}"
        return f"With this bug, {reached} (one run each, ± {100 * TIE:g} points)."


# a single run that ends within chance of the right one, or above it, tells nobody that a bug is harmless
_SHOWN = (InTraining.WORSE, InTraining.STUCK)
NOT_MEASURED = TrainingEffect(InTraining.UNMEASURED)


def find_training_effect(key: str, measurements: dict[str, Any] | None = None) -> TrainingEffect:
    """Find what a training run with a mistake in it has shown.

    Args:
        key: the name of its exercise and its own, as "moving_average: summed up".
        measurements: what was found, by the course's package unless given.
    """
    measurements = _read_training_measurements() if measurements is None else measurements
    found = measurements["mistakes"].get(key, {})
    if "stops" in found:
        return TrainingEffect(InTraining.STOPS)
    if found.get("same_as") == "right":
        return TrainingEffect(InTraining.UNSEEN)
    if "same_as" in found:
        return find_training_effect(found["same_as"], measurements)
    if "accuracy" not in found:
        return NOT_MEASURED
    return TrainingEffect(
        _classify_effect(found, measurements["right"]), found["accuracy"], measurements["right"]["accuracy"]
    )


def _classify_effect(with_mistake: dict[str, float], without_mistake: dict[str, float]) -> InTraining:
    guessing = math.log(without_mistake["classes"])
    if guessing - with_mistake["loss"] < STANDSTILL * (guessing - without_mistake["loss"]):
        return InTraining.STUCK
    gain = with_mistake["accuracy"] - without_mistake["accuracy"]
    if abs(gain) <= TIE:
        return InTraining.HIDDEN
    return InTraining.BETTER if gain > 0 else InTraining.WORSE


@cache
def _read_training_measurements() -> dict[str, Any]:
    path = Path(str(files(read_package_name()))) / "exercises" / "in_training.json"
    findings: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {"mistakes": {}}
    return findings
