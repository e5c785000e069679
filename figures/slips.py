"""What the figures of broken ViTs share: the benchmark's rows, and the scale that accuracies are drawn on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from canvas import Canvas
from style import BLUE, GRAY, HAIR, QUIET, VERMILION, tint

from exercise_kit.engine.in_training import TIE

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results" / "broken_vit_all.json"
LESSONS = {
    "01 · patches": ("patchify", "PatchEmbedding"),
    "02 · class token, positions": ("add_class_token",),
    "03 · attention": ("scaled_dot_product_attention", "split_heads", "MultiHeadSelfAttention", "published"),
    "04 · the block": ("layer_norm", "Mlp", "EncoderBlock"),
    "05 · the whole model": ("VisionTransformer",),
}
LOW, HIGH = 0.05, 0.55
RADIUS = 3.2


@dataclass(frozen=True)
class WrongModel:
    """A wrong model: exercise, name, and mean accuracy over its seeds (chance where training broke off)."""

    exercise: str
    name: str
    accuracy: float
    broke_off: bool


@dataclass(frozen=True)
class Results:
    """The benchmark's result, as far as the figures need it; ``right`` holds an accuracy for each seed."""

    right: list[float]
    models: list[WrongModel]
    facts: dict[str, Any]

    @property
    def low(self) -> float:
        """Below this a model is clearly worse than the right one."""
        return mean(self.right) - TIE

    @property
    def high(self) -> float:
        return mean(self.right) + TIE

    def count_passing(self, models: list[WrongModel]) -> int:
        """Count how many of these come within the band or pass it."""
        return sum(model.accuracy > self.low for model in models)

    @property
    def conditions_in_words(self) -> str:
        data = self.facts["data"]
        return f"{data['train_images']:,} CIFAR-10 images, {self.facts['settings']['epochs']} epochs"

    @property
    def missing_runs_in_words(self) -> str:
        """In words how many slips nobody has trained yet; empty when all have been."""
        left = len(self.facts["not_run_yet"])
        return f"{left} more not run yet" if left else ""


def read_results() -> Results:
    """The rows of the benchmark, best first."""
    facts = json.loads(RESULTS.read_text())
    right, models = [], []
    for row in facts["rows"]:
        measured = [each for each in row["accuracies"] if each is not None]
        if row["name"] == "right":
            right = measured
        else:
            exercise, name = row["name"].split(": ")
            models.append(WrongModel(exercise, name, mean(measured) if measured else 0.1, not measured))
    return Results(right, sorted(models, key=lambda model: -model.accuracy), facts)


class Scale:
    """Accuracies from LOW to HIGH across a strip of the card."""

    def __init__(self, left: float, width: float) -> None:
        self.left, self.width = left, width

    def find_x(self, accuracy: float) -> float:
        return self.left + self.width * (min(max(accuracy, LOW), HIGH) - LOW) / (HIGH - LOW)

    def draw_grid(self, canvas: Canvas, top: float, bottom: float, results: Results) -> None:
        """The right model's band, a line every ten percent, numbers under it."""
        low, high = self.find_x(results.low), self.find_x(results.high)
        canvas.box(low, top, high - low, bottom - top, tint(BLUE, 0.18), radius=3)
        for step in range(1, 6):
            x = self.find_x(step / 10)
            canvas.line([(x, top), (x, bottom)], HAIR, 1, dashed=step == 1)
            canvas.text(x, bottom + 13, f"{10 * step}", 11.5, QUIET, align="center")


def choose_color(model: WrongModel, results: Results) -> str:
    """Vermilion for what accuracy does not give away, gray for what it does."""
    return VERMILION if model.accuracy > results.low else GRAY
