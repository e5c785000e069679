"""Figure of lesson 10's side note on the race on a CPU: accuracy over the seconds of one core."""

from __future__ import annotations

import json
from itertools import accumulate
from pathlib import Path

from canvas import Canvas
from matplotlib.axes import Axes
from style import BLUE, GRAY, GREEN, POINTS_PER_PIXEL, QUIET, VERMILION, save_all_figures, shade

RUNS = Path(__file__).parents[1] / "benchmarks" / "results" / "cpu_race"
NAMED = {
    "whitened": ("cpu-coffee, 8 epochs", BLUE, (212, 77.5)),
    "equal": ("random start", GREEN, (556, 79.4)),
    "before": ("as it was before", VERMILION, (540, 62.5)),
    "timm": ("timm, AdamW", shade(GRAY), (540, 54.5)),
}


def read_accuracy_curve(path: Path) -> tuple[list[float], list[float]]:
    """Seconds so far, as many as on the first machine, and per cent right, after each epoch."""
    run = json.loads(path.read_text(encoding="utf-8"))
    first, *later = run["cpu_seconds"]
    seconds = (run.get("cpu_seconds_of_making", 0) + first, *later)
    right = [100 * each for each in run["validation_accuracy"]]
    return [each / run.get("slower", 1) for each in accumulate(seconds)], right


def draw_runs(axes: Axes) -> None:
    """All runs as thin lines, the named ones over them."""
    for path in sorted(RUNS.glob("*.json")):
        name = path.stem.rpartition("-")[0]
        color = NAMED[name][1] if name in NAMED else GRAY
        axes.plot(
            *read_accuracy_curve(path), color=color, linewidth=1.6 if name in NAMED else 0.5, zorder=2 + (name in NAMED)
        )
    for words, color, place in NAMED.values():
        axes.text(*place, words, color=shade(color), fontsize=12.5 * POINTS_PER_PIXEL, weight="bold", ha="right")


def cpu_race() -> Canvas:
    """Accuracy over the seconds of one core."""
    subtitle = (
        "CIFAR-10, one core: images right of the 5,000 held back.\nEach thin line is one run with one choice changed."
    )
    canvas = Canvas(400, "What a CPU's seconds buy", subtitle)
    axes = canvas.plot_area(52, 104, 404, 236)
    draw_runs(axes)
    axes.set(xlim=(0, 560), ylim=(30, 82), xticks=range(0, 561, 100), yticks=range(30, 81, 10))
    canvas.text(456, 380, "seconds of one core", 12, QUIET, align="right")
    canvas.text(24, 94, "%", 12, QUIET)
    ends = {name: [read_accuracy_curve(path) for path in sorted(RUNS.glob(f"{name}-*.json"))] for name in NAMED}
    told = "; ".join(
        f"{NAMED[name][0]}: {sum(right[-1] for _, right in runs) / len(runs):.1f} per cent after "
        f"{sum(seconds[-1] for seconds, _ in runs) / len(runs):.0f} seconds"
        for name, runs in ends.items()
        if runs
    )
    return canvas.describe(
        "Curves of accuracy over seconds: cpu-coffee rises faster than the recipe before it, and both above AdamW's.",
        f"""Thin gray curves of many runs with one choice changed, and four kinds of bold ones. At their ends:
        {told}.""",
    )


FIGURES = {"cpu_race": cpu_race}

if __name__ == "__main__":
    save_all_figures(FIGURES)
