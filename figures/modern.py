"""Figures of lesson 10: a pair of numbers turned by its place, and what each change is worth to a small model."""

from __future__ import annotations

import json
import math
from pathlib import Path

from canvas import Canvas
from style import BLUE, GREEN, HAIR, INK, QUIET, VERMILION, save_all

from vit_course.metrics import paired_interval

LOG = Path(__file__).parents[1] / "benchmarks" / "results" / "modern.json"
PLACES = 5
SPEEDS = {"fast pair, 1 radian a place": 1.0, "slow pair, 1/10 of it": 0.1}
LABELS = {"rotary positions": "rotary, not learned"}
GROUPS = {
    "in the plain setting": {
        LABELS.get(name, name): ("plain", name)
        for name in ("registers", "LayerScale", "DropPath", "QK-norm", "rotary positions", "RMSNorm", "all of them")
    },
    "on the problem that it was made for": {
        "high rate, QK-norm": ("high rate", "high rate, QK-norm"),
        "16 blocks, LayerScale": ("sixteen blocks", "sixteen blocks, LayerScale"),
        "few images, DropPath": ("few images", "few images, DropPath"),
    },
}
LEFT, RIGHT, LOW, HIGH = 230, 560, -10, 20


def rotary() -> Canvas:
    """One query in two pairs, at five places in a row."""
    subtitle = "The same two pairs of numbers (orange at place 0), at places 0 to 4 of a row. Only angles change."
    canvas = Canvas(360, "Positions as rotations", subtitle)
    for line, (name, speed) in enumerate(SPEEDS.items()):
        y = 150 + 130 * line
        canvas.text(24, y - 52, name, 12.5, weight="bold")
        for place in range(PLACES):
            x = 90 + 125 * place
            ring = [
                (x + 42 * math.cos(step * math.pi / 30), y + 8 + 42 * math.sin(step * math.pi / 30))
                for step in range(61)
            ]
            canvas.line(ring, HAIR, 1)
            angle = place * speed
            tip = (x + 40 * math.cos(angle), y + 8 - 40 * math.sin(angle))
            canvas.arrow((x, y + 8), tip, BLUE if place else VERMILION, 2.4)
    for place in range(PLACES):
        canvas.text(90 + 125 * place, 338, f"place {place}", 12.5, QUIET, align="center")
    return canvas.describe(
        "A pair of numbers as an arrow at five places: each place turns it further, and a slow pair turns less.",
        """Two rows of five circles with an arrow in each. In the upper row the arrow points to the right at place 0 and
        is turned by 1 radian, 57 degrees, at each further place; in the lower row by a tenth of that. Between two
        arrows of one row the angle follows from how many places they are apart.""",
    )


def accuracies(arm: str) -> list[float]:
    """Per cent of the validation images right at the end, for each seed."""
    runs = json.loads(LOG.read_text())["results"][arm]
    return [100 * run["validation_accuracy"][-1] for run in runs.values()]


def modern_changes() -> Canvas:
    """Difference and interval of each change."""
    rows = sum(map(len, GROUPS.values())) + len(GROUPS)
    height = 100 + 30 * rows + 70
    subtitle = "Points of accuracy gained on 5,000 validation images: mean of three seeds, and its 95 % interval."
    canvas = Canvas(height, "What a change is worth to a small ViT", subtitle)
    bottom = height - 58
    for tick in range(LOW, HIGH + 1, 10):
        x = LEFT + (RIGHT - LEFT) * (tick - LOW) / (HIGH - LOW)
        canvas.line([(x, 84), (x, bottom)], QUIET if tick == 0 else HAIR, 1)
        canvas.text(x, bottom + 14, f"{tick:+d}".replace("-", "−") if tick else "0", 12, QUIET, align="center")
    y, notes = 100.0, []
    for group, arms in GROUPS.items():
        canvas.text(24, y + 6, group, 13, weight="bold")
        y += 30
        for name, (baseline, arm) in arms.items():
            gap, half = paired_interval(accuracies(arm), accuracies(baseline))
            ends = [LEFT + (RIGHT - LEFT) * (each - LOW) / (HIGH - LOW) for each in (gap - half, gap + half)]
            color = INK if abs(gap) <= half else GREEN if gap > 0 else VERMILION
            canvas.text(36, y + 6, name, 12.5)
            canvas.line([(max(LEFT, ends[0]), y + 6), (min(RIGHT, ends[1]), y + 6)], color, 2)
            canvas.disc(sum(ends) / 2, y + 6, 4.5, "", color)
            told = f"{gap:+.1f} ± {half:.1f}".replace("-", "−")
            canvas.text(676, y + 6, told, 12.5, align="right", weight="bold")
            notes.append(f"{name} {told}")
            y += 30
    note = "points gained (black: the interval contains 0; 16 blocks: best of the rates tried)"
    canvas.text(350, bottom + 36, note, 12.5, align="center")
    return canvas.describe(
        "Ten changes to a small ViT, each with the points of accuracy that it gains and a 95 % interval.",
        f"""Two groups of lines around a zero: a disc for the mean difference, a line for its interval; green where all
        of it is above 0, orange below, black where it contains 0; sixteen blocks are at the best of the rates that were
        tried. {"; ".join(notes)}.""",
    )


FIGURES = {"rotary": rotary, "modern_changes": modern_changes}

if __name__ == "__main__":
    save_all(FIGURES)
