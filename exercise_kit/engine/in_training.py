"""How a mistake looks in training: does the loss fall anyway?

Training here is that of lesson 06: square colour pictures, float32, the course's loop; for weights that are loaded it
is the fine-tuning that follows. What an architecture mistake does was measured by benchmarks/broken_vit.py, which
trains every one of them and writes exercises/in_training.json. All others were decided one by one.
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

from exercise_kit.engine.course import package

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
class Looks:
    """How one mistake looks in training.

    Attributes: ``kind``; where somebody trained a small ViT with it, the ``accuracy`` that it came to on CIFAR-10's
    test images (0 to 1), and that of the ``right`` model, trained alike.
    """

    kind: InTraining
    accuracy: float | None = None
    right: float | None = None

    @property
    def told(self) -> str:
        """A sentence for the one who made the mistake; empty where nobody has measured."""
        if self.accuracy is None or self.right is None:
            return ""
        return f"Trained with it, a small ViT reaches {self.accuracy:.1%} on CIFAR-10, and {self.right:.1%} without it."


NOT_MEASURED = Looks(InTraining.UNMEASURED)


def looks(key: str, known: dict[str, Any] | None = None) -> Looks:
    """How an architecture mistake looks, by its key ("Mlp: no activation"), as the benchmark found.

    Args:
        key: the name of its exercise and its own.
        known: the benchmark's findings, those of the package unless given.
    """
    known = _findings() if known is None else known
    found = known["mistakes"].get(key, {})
    if "stops" in found:
        return Looks(InTraining.STOPS)
    if found.get("same_as") == "right":
        return Looks(InTraining.UNSEEN)
    if "same_as" in found:
        return looks(found["same_as"], known)
    if "accuracy" not in found:
        return NOT_MEASURED
    return Looks(_kind(found, known["right"]), found["accuracy"], known["right"]["accuracy"])


def _kind(found: dict[str, float], right: dict[str, float]) -> InTraining:
    guessing = math.log(right["classes"])
    if guessing - found["loss"] < STANDSTILL * (guessing - right["loss"]):
        return InTraining.STUCK
    gain = found["accuracy"] - right["accuracy"]
    if abs(gain) <= TIE:
        return InTraining.HIDDEN
    return InTraining.BETTER if gain > 0 else InTraining.WORSE


@cache
def _findings() -> dict[str, Any]:
    path = Path(str(files(package()))) / "exercises" / "in_training.json"
    findings: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {"mistakes": {}}
    return findings
