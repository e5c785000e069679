"""Figure of docs/many_machines.md: what grading a class costs as it grows, in minutes and in memory."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from canvas import Canvas
from style import BLUE, GREEN, QUIET, save_all_figures

LOG = Path(__file__).parents[1] / "benchmarks" / "results" / "scale.json"
TOP, HEIGHT, WIDTH = 98, 226, 262


def class_size() -> Canvas:
    """Minutes, and gigabytes at most, from the first submission to the last."""
    log = json.loads(LOG.read_text(encoding="utf-8"))["grading"]
    count = np.array([each["submissions"] for each in log["course"]])
    minutes = np.array([each["seconds"] / 60 for each in log["course"]])
    gigabytes = np.array([each["peak_megabytes"] / 1024 for each in log["course"]])
    slope, start = np.polyfit(count, minutes, 1)
    off = np.abs(minutes - start - slope * count).max()

    subtitle = f"Eleven lessons mixed, one submission each, {log['jobs']} jobs on {log['jobs']} cores."
    canvas = Canvas(390, f"{count[0]} to {count[-1]:,} submissions: a straight line", subtitle, width=700)
    for left, title, values, color in ((62, "minutes", minutes, BLUE), (410, "GB in use, at most", gigabytes, GREEN)):
        canvas.text(left, TOP - 16, title, 12.5, color, weight="bold")
        axes = canvas.plot_area(left, TOP, WIDTH, HEIGHT)
        axes.set(xlim=(0, 1.04 * count[-1]), ylim=(0, 1.25 * values.max()), xticks=np.linspace(0, count[-1], 5))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.plot(count, values, "o", color=color, markersize=4.5, clip_on=False)
        if values is minutes:
            axes.plot([0, count[-1]], [start, start + slope * count[-1]], color=color, linewidth=1)
        canvas.text(left + WIDTH / 2, TOP + HEIGHT + 38, "submissions graded", 12, QUIET, align="center")
    pairs = zip(count, minutes, gigabytes, strict=True)
    points = "; ".join(f"{n:,}: {took:.1f} minutes, {held:.1f} GB" for n, took, held in pairs)
    return canvas.describe(
        "Minutes and memory against the number of submissions graded: minutes lie on a line, memory hardly grows.",
        f"""Left, minutes since the start when so many submissions were graded, with the straight line that fits
        them best ({60 * slope:.2f} s a submission; no point is further from it than {off:.1f} minutes). Right, the most
        memory until then. {points}.""",
    )


FIGURES = {"class_size": class_size}

if __name__ == "__main__":
    save_all_figures(FIGURES)
