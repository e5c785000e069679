"""Figures of lesson 10: a pair of numbers turned by its place, the block of today, and what each change is worth."""

from __future__ import annotations

import json
import math
from pathlib import Path

from canvas import Canvas
from style import BACKGROUND, BLUE, GRAY, GREEN, HAIR, INK, QUIET, VERMILION, WHITE, save_all_figures

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
LEFT, RIGHT, LOW, HIGH = 196, 352, -10, 20
BRANCHES = (("norm1", "attention", "scale1", "drop_path"), ("norm2", "mlp", "scale2", "drop_path"))
SWITCHED = {"scale1", "scale2", "drop_path", "query_norm", "key_norm", "rotary_2d"}


def rotary() -> Canvas:
    """One query in two pairs, at five places in a row."""
    subtitle = "The same two pairs of numbers (orange at place 0),\nat places 0 to 4 of a row. Only angles change."
    canvas = Canvas(366, "Positions as rotations", subtitle)
    for line, (name, speed) in enumerate(SPEEDS.items()):
        y = 158 + 124 * line
        canvas.text(24, y - 52, name, 12.5, weight="bold")
        for place in range(PLACES):
            x = 64 + 88 * place
            ring = [
                (x + 36 * math.cos(step * math.pi / 30), y + 8 + 36 * math.sin(step * math.pi / 30))
                for step in range(61)
            ]
            canvas.line(ring, HAIR, 1)
            angle = place * speed
            tip = (x + 34 * math.cos(angle), y + 8 - 34 * math.sin(angle))
            canvas.arrow((x, y + 8), tip, BLUE if place else VERMILION, 2.4)
    for place in range(PLACES):
        canvas.text(64 + 88 * place, 344, f"place {place}", 12.5, QUIET, align="center")
    return canvas.describe(
        "A pair of numbers as an arrow at five places: each place turns it further, and a slow pair turns less.",
        """Two rows of five circles with an arrow in each. In the upper row the arrow points to the right at place 0 and
        is turned by 1 radian, 57 degrees, at each further place; in the lower row by a tenth of that. Between two
        arrows of one row the angle follows from how many places they are apart.""",
    )


def _draw_chain_of_boxes(canvas: Canvas, x: float, y: float, parts: tuple[str, ...], end: float) -> None:
    """Boxes on a line from x to end; the parts with a switch are blue."""
    canvas.line([(x, y), (end, y)], GRAY, 2)
    for number, name in enumerate(parts):
        left = x + 10 + 97 * number
        canvas.box(left, y - 17, 87, 34, WHITE, "none")
        canvas.label(
            left, y - 17, 87, 34, name, BLUE if name in SWITCHED else GRAY, strength=0.28, mono=True, size=12.5
        )


def modern_block() -> Canvas:
    """The two branches of a modern block, and its attention from inside."""
    subtitle = "Blue: the parts that can be switched off.\nThe thick line is the residual stream."
    canvas = Canvas(564, "The block of today", subtitle)
    for row, parts in enumerate(BRANCHES):
        branch, stream, end = 120 + 106 * row, 168 + 106 * row, 443
        canvas.arrow((24, stream), (464, stream), INK, 5)
        canvas.line([(43, stream), (43, branch)], GRAY, 2)
        _draw_chain_of_boxes(canvas, 43, branch, parts, end)
        canvas.arrow((end, branch), (end, stream - 13), GRAY, 2)
        canvas.disc(end, stream, 13, "", INK)
        canvas.disc(end, stream, 11, "+", WHITE, size=17)
    canvas.text(24, 330, "inside attention", 13, weight="bold")
    for row, parts in enumerate((("query_norm", "rotary_2d"), ("key_norm", "rotary_2d"), ())):
        _draw_chain_of_boxes(canvas, 126, 366 + 46 * row, parts, 325)
        canvas.arrow((325, 366 + 46 * row), (345, 366 + 46 * row), GRAY, 2)
    canvas.label(24, 349, 102, 126, "qkv,\nsplit_heads", GRAY, strength=0.28, mono=True)
    canvas.label(346, 349, 110, 126, "softmax\nof scores,\ntimes\nvalues", GRAY, strength=0.28)
    canvas.text(140, 445, "values", 12.5, QUIET)
    canvas.arrow((401, 476), (401, 504), GRAY, 2)
    canvas.label(346, 506, 110, 34, "projection", GRAY, strength=0.28, mono=True)
    return canvas.describe(
        "The two branches of a modern block with scale and drop_path at their ends, and attention with norms and a "
        "rotation of queries and keys.",
        """Two branches leave the residual stream and are added to it again: norm1, attention, scale1, drop_path, and
        then norm2, mlp, scale2, drop_path. Inside attention the output of qkv is split into heads; queries pass
        query_norm and rotary_2d, keys pass key_norm and rotary_2d, values pass neither; then come the softmax of the
        scores, times values, and the projection. Scales, drop_path, the two norms and the rotation can be switched
        off.""",
    )


def read_accuracies(arm: str) -> list[float]:
    """Per cent of the validation images right at the end, for each seed."""
    runs = json.loads(LOG.read_text())["results"][arm]
    return [100 * run["validation_accuracy"][-1] for run in runs.values()]


def modern_changes() -> Canvas:
    """Difference and interval of each change."""
    rows = sum(map(len, GROUPS.values())) + len(GROUPS)
    height = 118 + 30 * rows + 88
    subtitle = "Points of accuracy gained on 5,000 validation images:\nmean of three seeds, and its 95 % interval."
    canvas = Canvas(height, "What a change is worth to a small ViT", subtitle)
    bottom = height - 76
    for tick in range(LOW, HIGH + 1, 10):
        x = LEFT + (RIGHT - LEFT) * (tick - LOW) / (HIGH - LOW)
        canvas.line([(x, 102), (x, bottom)], QUIET if tick == 0 else HAIR, 1)
        canvas.text(x, bottom + 14, f"{tick:+d}".replace("-", "−") if tick else "0", 12, QUIET, align="center")
    y, notes = 118.0, []
    for group, arms in GROUPS.items():
        canvas.box(24, y - 4, 280, 20, BACKGROUND, radius=0)
        canvas.text(24, y + 6, group, 13, weight="bold")
        y += 30
        for name, (baseline, arm) in arms.items():
            gap, half = paired_interval(read_accuracies(arm), read_accuracies(baseline))
            ends = [LEFT + (RIGHT - LEFT) * (each - LOW) / (HIGH - LOW) for each in (gap - half, gap + half)]
            color = INK if abs(gap) <= half else GREEN if gap > 0 else VERMILION
            canvas.text(36, y + 6, name, 12.5)
            canvas.line([(max(LEFT, ends[0]), y + 6), (min(RIGHT, ends[1]), y + 6)], color, 2)
            canvas.disc(sum(ends) / 2, y + 6, 4.5, "", color)
            told = f"{gap:+.1f} ± {half:.1f}".replace("-", "−")
            canvas.text(456, y + 6, told, 12.5, align="right", weight="bold")
            notes.append(f"{name} {told}")
            y += 30
    note = "points gained (black: the interval contains 0;\n16 blocks: best of the rates tried)"
    canvas.text(240, bottom + 46, note, 12.5, align="center")
    return canvas.describe(
        "Ten changes to a small ViT, each with the points of accuracy that it gains and a 95 % interval.",
        f"""Two groups of lines around a zero: a disc for the mean difference, a line for its interval; green where all
        of it is above 0, orange below, black where it contains 0; sixteen blocks are at the best of the rates that were
        tried. {"; ".join(notes)}.""",
    )


FIGURES = {"rotary": rotary, "modern_block": modern_block, "modern_changes": modern_changes}

if __name__ == "__main__":
    save_all_figures(FIGURES)
