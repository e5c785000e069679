"""Figure of lesson 09: accuracy of three ways against the number of images per class."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean

from canvas import Canvas
from style import BLUE, GREEN, HAIR, QUIET, VERMILION, save_all_figures

LOG = Path(__file__).parents[1] / "benchmarks" / "results" / "fine_tuning.json"
WAYS = {"fine-tuning": BLUE, "probe": GREEN, "from scratch": VERMILION}
IN_THE_LOG = {"from scratch": "from nothing"}
COUNTS = (10, 100, 1000)
LEFT, RIGHT, TOP, BOTTOM, LOW, HIGH = 56, 388, 106, 400, 10, 80


def read_accuracies(way: str, per_class: int) -> list[float]:
    """Percent of the test images right, for each seed."""
    runs = json.loads(LOG.read_text())["runs"].values()
    wanted = ("test", IN_THE_LOG.get(way, way), per_class)
    return [100 * run["accuracy"] for run in runs if (run["task"], run["way"], run["per_class"]) == wanted]


def find_point_of_accuracy(column: int, accuracy: float) -> tuple[float, float]:
    """Where an accuracy is drawn."""
    x = LEFT + 40 + (RIGHT - LEFT - 80) * column / (len(COUNTS) - 1)
    return x, BOTTOM - (BOTTOM - TOP) * (accuracy - LOW) / (HIGH - LOW)


def fine_tuning() -> Canvas:
    """Three ways to learn ten superclasses of CIFAR-100."""
    subtitle = "Test images right, %;\nten superclasses of CIFAR-100, a disc for each seed (one at 1,000)."
    canvas = Canvas(470, "Probe, fine-tuning, or from scratch", subtitle)
    for tick in range(LOW, HIGH + 1, 10):
        _, y = find_point_of_accuracy(0, tick)
        canvas.line([(LEFT, y), (RIGHT, y)], HAIR, 1)
        canvas.text(LEFT - 10, y, f"{tick}", 12, QUIET, align="right")
    for column, count in enumerate(COUNTS):
        canvas.text(find_point_of_accuracy(column, 0)[0], BOTTOM + 18, f"{count:,}", 12.5, align="center")
    canvas.text((LEFT + RIGHT) / 2, BOTTOM + 42, "images of each class to learn from", 12.5, align="center")
    notes = []
    for way, color in WAYS.items():
        means = [mean(read_accuracies(way, count)) for count in COUNTS]
        canvas.line([find_point_of_accuracy(column, each) for column, each in enumerate(means)], color, 2)
        for column, count in enumerate(COUNTS):
            for accuracy in read_accuracies(way, count):
                canvas.disc(*find_point_of_accuracy(column, accuracy), 4.5, "", color)
        canvas.text(RIGHT - 24, find_point_of_accuracy(2, means[-1])[1], way, 12.5, color, weight="bold")
        notes.append(
            f"{way} " + ", ".join(f"{each:.1f} at {count:,}" for each, count in zip(means, COUNTS, strict=True))
        )
    return canvas.describe(
        "Accuracy on test images against the number of images per class, 10, 100 and 1,000, for the linear probe, "
        "fine-tuning and training from scratch.",
        f"""Three lines over three places, 10, 100 and 1,000 images per class, with a disc for each seed. Mean percent
        of the test images right: {"; ".join(notes)}.""",
    )


FIGURES = {"fine_tuning": fine_tuning}

if __name__ == "__main__":
    save_all_figures(FIGURES)
