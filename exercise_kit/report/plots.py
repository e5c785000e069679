"""The report's pictures, as SVG that belongs to the page: colors follow the theme, text is text.

Each is described in words and in a table beside it, and reads in gray.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from itertools import accumulate
from statistics import median
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from exercise_kit.palette import BACKGROUND, BLUE, GRAY, GREEN, HAIR, INK, ORANGE, PALE, SKY, VERMILION
from exercise_kit.report.answers import BINS, ExerciseTally, Lost
from exercise_kit.report.tally import Mistake

_VARIABLES = {
    **{BLUE: "blue", ORANGE: "orange", GREEN: "green", VERMILION: "vermilion", SKY: "sky", PALE: "pale"},
    **{INK: "ink", GRAY: "gray", HAIR: "hair", BACKGROUND: "card"},
}
WIDTH, NARROW = 10.0, 5.4  # inches, of 72 units each; a phone shows the narrow ones whole
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": GRAY,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "hatch.linewidth": 1.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_ID = re.compile(r'(\bid="|href="#|url\(#)([^")]+)')


def make_empty_figure(height: float, legend_height: float = 0.0, width: float = WIDTH) -> Figure:
    """An empty figure, ``height`` inches high; the upper ``legend_height`` of them are left free for legends."""
    layout = ConstrainedLayoutEngine(rect=(0, 0, 1, 1 - legend_height / height))
    made = Figure(figsize=(width, height), layout=layout)
    FigureCanvasSVG(made)
    return made


@contextmanager
def use_figure_settings(name: str) -> Iterator[None]:
    """matplotlib's settings while a figure of that name is drawn; the same name gives the same bytes."""
    with mpl.rc_context({**_SETTINGS, "svg.hashsalt": name}):
        yield


def render_svg(figure: Figure, name: str, alt_text: str) -> str:
    """An ``<svg>`` element.

    Args:
        figure: what to draw, with all that is on it.
        name: of letters; it keeps this figure's ids apart from the others' of a page.
        alt_text: what those hear who do not see it.
    """
    written = io.StringIO()
    with use_figure_settings(name):
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = written.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = _ID.sub(rf"\1{name}-\2", text)
    for color, variable in _VARIABLES.items():
        text = text.replace(color.lower(), f"var(--{variable})")
    text = re.sub(r"'DejaVu Sans'(?:, [^;\"]*?sans-serif)?", "var(--sans)", text)
    box = re.search(r'viewBox="[^"]+"', text)
    assert box is not None, "matplotlib writes one"
    head = f'<svg {box[0]} role="img" aria-label="{escape(alt_text, quote=True)}" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return re.sub(r"<svg[^>]*", head, text, count=1)


Course = Sequence[tuple[str, float, tuple[float, float, float] | None]]


def draw_term_chart(lessons: Course) -> str:
    """The term: above the middle half of the notebooks and their median, below how many students handed in.

    Args:
        lessons: of each its name, the share of the students who handed in, and the quartiles of the points' shares.
    """
    with use_figure_settings("course"):
        made = make_empty_figure(3.4, width=NARROW)
        above, below = made.subplots(2, 1, sharex=True, height_ratios=(3, 1.2))
        graded = [(place, each[2]) for place, each in enumerate(lessons) if each[2]]
        places = [place for place, _ in graded]
        for edge, look in ((0, ":"), (2, ":"), (1, "-")):
            above.plot(places, [quartiles[edge] for _, quartiles in graded], look, color=BLUE, linewidth=1.2)
        above.fill_between(places, [each[0] for _, each in graded], [each[2] for _, each in graded], color=PALE)
        for place, (_, middle, _) in graded:
            above.plot([place], [middle], "o", color=BLUE, markersize=5)
            above.annotate(
                f"{middle:.0%}", (place, middle), (0, 6), textcoords="offset points", ha="center", fontsize=8
            )
        above.set(ylim=(0, 1.12), ylabel="points")
        below.bar(range(len(lessons)), [share for _, share, _ in lessons], width=0.6, color=SKY)
        below.set(ylim=(0, 1.05), ylabel="handed in")
        below.set_xticks(range(len(lessons)), [name for name, _, _ in lessons], rotation=35, ha="right")
        for axes in (above, below):
            axes.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
            axes.grid(axis="y", color=HAIR, linewidth=0.6)
            axes.set_axisbelow(True)
        summary = "; ".join(f"{name}: {each[1]:.0%}" for name, _, each in lessons if each)
        return render_svg(
            made, "course", f"The median share of the points, lesson by lesson. {summary}. The table follows."
        )


TENTHS = 10
_ROW = 0.32  # inches for an exercise
_SHORTEST = 0.045  # of the axis: a bar that can hold its number
# fill, hatch and lines: the hatch tells apart in gray what the color tells apart in color
Look = tuple[str, str, str]
_BIN_LOOKS: tuple[Look, ...] = (
    (BLUE, "", BACKGROUND),
    (SKY, "", BACKGROUND),
    (PALE, "", BACKGROUND),
    (ORANGE, "////", BACKGROUND),
    (BACKGROUND, "....", GRAY),
)
_LOST_LOOKS: dict[Lost, Look] = {
    Lost.NAMED: (BLUE, "", BACKGROUND),
    Lost.UNNAMED: (ORANGE, "////", BACKGROUND),
    Lost.FOLLOWS: (PALE, "\\\\\\\\", SKY),
    Lost.UNEVALUATED: (VERMILION, "xxx", BACKGROUND),
    Lost.UNWRITTEN: (BACKGROUND, "....", GRAY),
}


def draw_score_histograms(shares: Mapping[str, Sequence[float]]) -> str:
    """A row for each lesson: how many files earned which tenth of the points."""
    with use_figure_settings("scores"):
        made = make_empty_figure(0.75 + 0.85 * len(shares))
        rows = made.subplots(len(shares), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (lesson, values) in zip(rows, shares.items(), strict=True):
            _draw_score_histogram(axes, lesson, values)
        rows[-1].set_xlabel("share of the points, in tenths")
        summary = "; ".join(f"{lesson}: median {median(values):.0%}" for lesson, values in shares.items() if values)
        return render_svg(
            made, "scores", f"How many notebooks earned which tenth of the points. {summary}. The table follows."
        )


def count_tenths(values: Sequence[float]) -> list[int]:
    """Count how many values lie in which tenth; all points are in the last."""
    counts = [0] * TENTHS
    for value in values:
        counts[min(int(value * TENTHS + 1e-9), TENTHS - 1)] += 1
    return counts


def _draw_score_histogram(axes: Axes, lesson: str, values: Sequence[float]) -> None:
    counts = count_tenths(values)
    places = [10 * index + 5 for index in range(TENTHS)]
    axes.bar(places, counts, width=9.2, color=[BLUE if index == TENTHS - 1 else SKY for index in range(TENTHS)])
    top = max(counts) or 1
    for place, count in zip(places, counts, strict=True):
        if count:
            box = {"facecolor": BACKGROUND, "edgecolor": "none", "pad": 1.0}
            axes.text(place, count + 0.08 * top, str(count), ha="center", va="bottom", fontsize=8.5, bbox=box)
    if values:
        middle = 100 * median(values)
        axes.plot([middle, middle], [0, 1.4 * top], color=INK, linewidth=1.4, linestyle=(0, (4, 2)), zorder=1.5)
    axes.set(xlim=(0, 100), ylim=(0, 1.45 * top), yticks=[])
    axes.set_xticks(range(0, 101, 20), [f"{value} %" for value in range(0, 101, 20)])
    axes.spines["left"].set_visible(False)
    axes.set_ylabel(lesson, rotation=0, ha="right", va="center")


def draw_exercise_scores(tallies: Sequence[ExerciseTally]) -> str:
    """A row for each exercise: what its answers earned; and beside it the points that the class lost, and to what."""
    with use_figure_settings("exercises"):
        made = make_empty_figure(1.4 + _ROW * len(tallies), legend_height=0.65)
        left, right = made.subplots(1, 2, sharey=True, width_ratios=(5, 4))
        places = range(len(tallies))
        for index, (label, look) in enumerate(zip(BINS, _BIN_LOOKS, strict=True)):
            _draw_stacked_bars(left, [_divide_by_sum(each.bins) for each in tallies], index, label, look, "{:.0%}")
        for index, why in enumerate(Lost):
            lost = [[each.lost.get(reason, 0.0) for reason in Lost] for each in tallies]
            _draw_stacked_bars(right, lost, index, why, _LOST_LOOKS[why], "{:.0f}")
        left.set_yticks(places, [each.name for each in tallies])
        left.set(xlim=(0, 1), ylim=(len(tallies) - 0.4, -0.6), xlabel="share of the answers that earned …")
        left.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
        right.set(xlabel="points lost by the class to …")
        for axes in (left, right):
            axes.tick_params(left=False)
            axes.spines["left"].set_visible(False)
            legend = axes.legend(
                loc="lower left",
                bbox_to_anchor=(0, 1),
                ncols=3 if axes is left else 2,
                frameon=False,
                fontsize=8.5,
                handlelength=1.4,
                columnspacing=1.1,
            )
            legend.set_in_layout(False)
        summary = "; ".join(f"{each.name}: mean {each.mean:.0%}" for each in tallies)
        return render_svg(made, "exercises", f"Points earned and lost in each exercise. {summary}. The table follows.")


def _divide_by_sum(counts: Sequence[int]) -> list[float]:
    total = sum(counts)
    return [count / total if total else 0.0 for count in counts]


def _draw_stacked_bars(
    axes: Axes, rows: Sequence[Sequence[float]], index: int, label: str, style: Look, number_format: str
) -> None:
    color, hatch, lines = style
    starts = [([0.0, *accumulate(row)])[index] for row in rows]
    lengths = [row[index] for row in rows]
    bars = axes.barh(range(len(rows)), lengths, left=starts, height=0.74, label=label)
    for bar in bars:
        bar.set(facecolor=color, hatch=hatch, edgecolor=lines)
    longest = max((sum(row) for row in rows), default=1.0) or 1.0
    for row, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        if length > _SHORTEST * longest * (1.6 if number_format.endswith("%}") else 1):
            boxed = {"facecolor": BACKGROUND, "edgecolor": "none", "pad": 1.2} if hatch else None
            ink = BACKGROUND if color == BLUE else INK
            text = number_format.format(length)
            axes.text(start + length / 2, row, text, ha="center", va="center", fontsize=8, color=ink, bbox=boxed)


def draw_costliest_mistakes(mistakes: Sequence[Mistake]) -> str:
    """The costliest misconceptions: points lost, and how many students."""
    with use_figure_settings("mistakes"):
        made = make_empty_figure(0.7 + _ROW * len(mistakes))
        axes = made.subplots()
        lost = [each.lost for each in mistakes]
        axes.barh(range(len(mistakes)), lost, height=0.7, color=BLUE)
        for row, each in enumerate(mistakes):
            who = f"{each.students} student{'' if each.students == 1 else 's'}"
            axes.text(each.lost + 0.01 * max(lost), row, f"{who}, {each.lost:.0f} points", va="center", fontsize=9)
        axes.set_yticks(range(len(mistakes)), [each.misconception.name for each in mistakes])
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set(ylim=(len(mistakes) - 0.4, -0.6), xlim=(0, 1.24 * max(lost)), xlabel="points lost by the class")
        axes.tick_params(left=False)
        axes.spines["left"].set_visible(False)
        summary = "; ".join(
            f"{each.misconception.name}: {each.students} students, {each.lost:.0f} points" for each in mistakes
        )
        return render_svg(made, "mistakes", f"The misconceptions that cost the class most. {summary}.")


def draw_grading_seconds(tallies: Sequence[ExerciseTally]) -> str:
    """Draw how long grading an answer took: the middle 80 of 100 answers as a line, the median as a dot."""
    timed = [each for each in tallies if each.seconds]
    with use_figure_settings("seconds"):
        made = make_empty_figure(0.7 + _ROW * len(timed))
        axes = made.subplots()
        for row, each in enumerate(timed):
            values = [1000 * value for value in each.seconds]
            low, high = values[len(values) // 10], values[(9 * len(values)) // 10]
            axes.plot([low, high], [row, row], color=SKY, linewidth=5, solid_capstyle="butt")
            axes.plot([median(values)], [row], "o", color=BLUE, markersize=7)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
        axes.grid(axis="x", color=HAIR, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.set_yticks(range(len(timed)), [each.name for each in timed])
        axes.set(
            ylim=(len(timed) - 0.4, -0.6), xlabel="milliseconds for an answer (each mark is ten times the one before)"
        )
        axes.tick_params(left=False)
        axes.spines["left"].set_visible(False)
        summary = "; ".join(f"{each.name}: {1000 * median(each.seconds):.0f} ms" for each in timed)
        return render_svg(made, "seconds", f"Median time to grade an answer. {summary}.")
