"""The card at the end of a course: a picture with the student's real numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exercise_kit.engine.course import course
from exercise_kit.progress.show import amount, duration
from exercise_kit.progress.summary import LessonProgress, Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

_INK, _GREY, _BLUE, _ORANGE, _PAPER, _EMPTY = "#1b2733", "#5a6572", "#0072B2", "#E69F00", "#fbfaf7", "#dfe3e6"
_WIDTH, _HEIGHT = 8.0, 4.5  # inches


def draw(progress: Progress) -> Figure:
    """The card; before the end it says what is done so far."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, _HEIGHT), facecolor=_PAPER)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, _WIDTH), ylim=(0, _HEIGHT))
    axes.axis("off")
    axes.add_patch(_frame())
    done = sum(len(each.done) for each in progress.lessons)
    count = done + sum(len(each.to_do) for each in progress.lessons)
    axes.text(0.5, 3.82, course().title or "The course", size=20, weight="bold", color=_INK)
    words = f"all {count} exercises done" if progress.complete else f"so far: {done} of {count} exercises done"
    axes.text(0.5, 3.46, words, size=12, color=_GREY)
    for number, (figures, name) in enumerate(_numbers(progress)):
        left = 0.5 + number * 1.79
        axes.text(left, 2.78, figures, size=17, weight="bold", color=_BLUE)
        axes.text(left, 2.5, name, size=9.5, color=_GREY)
    for number, sentence in enumerate(_sentences(progress)):
        axes.text(0.5, 1.92 - 0.29 * number, sentence, size=11, color=_INK)
    _bars(axes, progress.lessons)
    return figure


def _frame() -> Patch:
    from matplotlib.patches import FancyBboxPatch

    rounded = "round,pad=0,rounding_size=0.12"
    size = _WIDTH - 0.3, _HEIGHT - 0.3
    return FancyBboxPatch((0.15, 0.15), *size, boxstyle=rounded, facecolor="none", edgecolor=_ORANGE, linewidth=2)


def _numbers(progress: Progress) -> list[tuple[str, str]]:
    guesses, right = int(progress.total("guesses")), int(progress.total("right"))
    met, mended = int(progress.total("met")), int(progress.total("mended"))
    earned, worth = amount(round(progress.total("earned"))), amount(progress.total("worth"))
    return [
        (f"{earned} / {worth}", "points, by the checks"),
        (duration(progress.total("seconds")), "at work"),
        (f"{right} / {guesses}", "predictions right"),
        (f"{mended} / {met}", "named mistakes mended"),
    ]


def _sentences(progress: Progress) -> list[str]:
    parts = f"{progress.parts} parts of my own kept in {course().own_parts}" if progress.parts else ""
    return [each for each in (*progress.highlights, parts) if each][:3]


def _bars(axes: Axes, lessons: tuple[LessonProgress, ...]) -> None:
    """For each lesson a bar of its exercises' points: filled as far as they were earned."""
    from matplotlib.patches import Rectangle

    step = (_WIDTH - 1.0) / max(len(lessons), 1)
    for number, lesson in enumerate(lessons):
        left, width = 0.5 + number * step, step * 0.78
        share = lesson.earned / lesson.worth if lesson.worth else 0.0
        axes.add_patch(Rectangle((left, 0.72), width, 0.22, facecolor=_EMPTY))
        axes.add_patch(Rectangle((left, 0.72), width * share, 0.22, facecolor=_BLUE))
        axes.text(left, 0.5, lesson.name[:2], size=9, color=_GREY, va="center")
