"""Figures of lessons 00 and 07: how well the right model and the wrong ones learn, read from the benchmarks' results.

Lesson 00 has the models that were each trained with the best of three learning rates, lesson 07 those that were all
trained with one rate, and with positions that hardly count.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean, stdev
from textwrap import fill
from typing import Any

from canvas import Canvas
from style import BACKGROUND, BLUE, HAIR, INK, QUIET, VERMILION, save_all_figures, tint

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
LEFT, RIGHT, TOP, ROW = 200, 340, 134, 38
MEAN, LOSS = RIGHT + 60, RIGHT + 116  # where the two columns of numbers end
CHANCE, HIGHEST = 0.1, 0.6
WORDS = {
    "right": "the right model",
    "PatchEmbedding: embedding in column order": "tokens column by column",
    "PatchEmbedding: reshaped where transposed": "patches reshaped, not transposed",
    "MultiHeadSelfAttention: heads not scaled": "no scaling",
    "MultiHeadSelfAttention: softmax down the queries": "softmax over queries",
    "MultiHeadSelfAttention: heads split by view": "heads split by view",
    "MultiHeadSelfAttention: projection not used": "no output projection",
    "MultiHeadSelfAttention: attention over the batch": "attention over the batch",
    "VisionTransformer: softmax in the head": "softmax before the loss",
}
STUDENT = 4.303  # the 97.5 % quantile of Student's t for the differences of three seeds
RISE = 9  # pixels between the dots of two seeds, so that they never hide each other


def find_x_of_accuracy(accuracy: float) -> float:
    """Where an accuracy in [0, HIGHEST] lies across the card, in pixels."""
    return LEFT + (RIGHT - LEFT) * accuracy / HIGHEST


def draw_accuracy_axis(canvas: Canvas, rows: int) -> None:
    """Grid lines every ten percent, their labels, and the word for chance."""
    bottom = TOP + rows * ROW
    for step in range(7):
        x = find_x_of_accuracy(step / 10)
        canvas.line([(x, TOP - 8), (x, bottom)], HAIR, 1, dashed=step == 1)
        canvas.text(x, bottom + 14, f"{10 * step}", 12, QUIET, align="center")
    canvas.text(find_x_of_accuracy(CHANCE), TOP - 20, "chance", 12, QUIET, align="center")
    for x, words in ((MEAN, ("mean", "accuracy")), (LOSS, ("training", "loss"))):
        for line, word in enumerate(words):
            canvas.text(x, TOP - 36 + 16 * line, word, 12, QUIET, align="right")
    canvas.text(24, bottom + 38, "test images right, %", 13)


def draw_row(canvas: Canvas, y: float, row: dict[str, Any]) -> None:
    """A name, one mark for each seed (the first on top), their mean, and the mean loss at the end of training."""
    is_right, seeds = row["name"] == "right", len(row["accuracies"])
    canvas.text(24, y, fill(WORDS[row["name"]], 24), 12.5, weight="bold" if is_right else "normal")
    for seed, accuracy in enumerate(row["accuracies"]):
        x, level = find_x_of_accuracy(accuracy), y + RISE * (seed - (seeds - 1) / 2)
        if is_right:
            canvas.box(x - 4.5, level - 4.5, 9, 9, BACKGROUND, BLUE, line=2, radius=0)
        else:
            canvas.disc(x, level, 4.5, "", VERMILION)
    canvas.text(MEAN, y, f"{mean(row['accuracies']):.1%}", 13, INK, align="right", weight="bold")
    canvas.text(LOSS, y, f"{compute_mean_last_loss(row):.2f}", 13, INK, align="right")


def compute_mean_last_loss(row: dict[str, Any]) -> float:
    """The mean over the seeds of the last epoch's loss; one log has every epoch's."""
    return mean(each[-1] if isinstance(each, list) else each for each in row["train_losses"])


def may_be_chance(accuracies: list[float], right: list[float]) -> bool:
    """Say whether the 95 % interval of the differences from the right model, seed by seed, contains 0."""
    differences = [one - other for one, other in zip(accuracies, right, strict=True)]
    return abs(mean(differences)) <= STUDENT * stdev(differences) / len(differences) ** 0.5


def broken_vit() -> Canvas:
    """Each model with the best of three learning rates."""
    return _draw_all_variants("fair_bet.json", "each model with the best of three rates")


def broken_vit_untuned() -> Canvas:
    """All models with one learning rate."""
    return _draw_all_variants("broken_vit_classics.json", "one learning rate for all")


def _draw_all_variants(file: str, rates: str) -> Canvas:
    """Accuracies of all variants, the best on top, over the range of the right model's seeds, no wider."""
    result = json.loads((RESULTS / file).read_text())
    rows = sorted(result["rows"], key=lambda row: -mean(row["accuracies"]))
    right = next(row["accuracies"] for row in rows if row["name"] == "right")
    data, epochs = result["data"], result["settings"]["epochs"]
    subtitle = f"CIFAR-10: {data['train_images']:,} images, {epochs} epochs,\n{rates}; a mark for each seed."
    canvas = Canvas(TOP + len(rows) * ROW + 58, "A broken ViT still learns", subtitle)
    low, high = find_x_of_accuracy(min(right)), find_x_of_accuracy(max(right))
    canvas.box(low, TOP - 8, high - low, len(rows) * ROW + 8, tint(BLUE, 0.6), radius=0)
    draw_accuracy_axis(canvas, len(rows))
    for number, row in enumerate(rows):
        draw_row(canvas, TOP + (number + 0.5) * ROW - 4, row)
    canvas.text(LOSS, canvas.height - 20, "squares, narrow band: the right model", 12, QUIET, align="right")
    close = sum(may_be_chance(row["accuracies"], right) for row in rows if row["name"] != "right")
    means = ", ".join(
        f"{WORDS[row['name']]} {mean(row['accuracies']):.1%} ({compute_mean_last_loss(row):.2f})" for row in rows
    )
    return canvas.describe(
        f"Test accuracy of the right ViT and of {len(rows) - 1} broken ones: for {close} of these the interval of the "
        f"difference from the right one contains 0.",
        f"""One line for each model, the best on top, with a dot for each random seed (squares for the right
        model), one above the other; a narrow blue band marks the range of the right model's seeds, {min(right):.1%}
        to {max(right):.1%}. Mean accuracy on {data["test_images"]:,} test images, and in brackets the training
        loss of the last epoch: {means}. Chance is
        {CHANCE:.0%}. Trained on {data["train_images"]:,} CIFAR-10 images for {epochs} epochs, {rates}.""",
    )


FIGURES = {"broken_vit": broken_vit, "broken_vit_untuned": broken_vit_untuned}

if __name__ == "__main__":
    save_all_figures(FIGURES)
