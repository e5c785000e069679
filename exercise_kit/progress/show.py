"""A student's progress as text for a terminal, as HTML without style sheet or script for a notebook, and as a card.

The card, at the end of a course, is a picture with the student's real numbers.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from exercise_kit.engine.course import course
from exercise_kit.engine.rendering import render_html_section, render_inline_markup, render_paragraph
from exercise_kit.engine.verdict import Verdict
from exercise_kit.palette import BACKGROUND, BLUE, EMPTY, GRAY, INK, ORANGE
from exercise_kit.points import format_points
from exercise_kit.progress.summary import LessonProgress, Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

_COLUMNS = ("lesson", "done", "points", "minutes", "predictions right", "mistakes repaired")
_WIDTH = 88
_CELL = "padding:0.15em 1.1em 0.15em 0"
_NOTE = (
    "Points are the checks' estimate, without written answers. Minutes: your time (without breaks over 10 minutes) / "
    "our estimate."
)


def format_duration(seconds: float) -> str:
    """As "4 min" or "2 h 5 min"."""
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def make_progress_rows(progress: Progress) -> list[tuple[str, ...]]:
    """The table's rows, in the order of the columns; what is not there yet is a dash."""
    return [_make_row(each) for each in progress.lessons]


def _make_row(lesson: LessonProgress) -> tuple[str, ...]:
    count = len(lesson.done) + len(lesson.to_do)
    done = f"{len(lesson.done)} of {count}" if count else "–"
    if count and not lesson.to_do:
        done = f"{done} ✓"
    return (
        f"{lesson.name} · core" if lesson.core else lesson.name,
        done,
        f"{format_points(lesson.earned)} of {format_points(lesson.worth)}",
        f"{round(lesson.seconds / 60)} / {lesson.minutes}" if lesson.begun else f"– / {lesson.minutes}",
        f"{lesson.right} of {lesson.guesses}" if lesson.guesses else "–",
        f"{lesson.mended} of {lesson.met}" if lesson.met else "–",
    )


def write_headline(progress: Progress) -> str:
    """One sentence on the whole course."""
    done = sum(len(each.done) for each in progress.lessons)
    count = done + sum(len(each.to_do) for each in progress.lessons)
    core = _describe_core(progress)
    points = f"{format_points(progress.total('earned'))} of {format_points(progress.total('worth'))} points"
    return f"{done} of {count} exercises done{core}, {points}, {format_duration(progress.total('seconds'))}."


def _describe_core(progress: Progress) -> str:
    """As ", 12 of 24 of the core"; "" where the course has none."""
    done = sum(len(each.list_core_exercises(each.done)) for each in progress.lessons)
    count = done + sum(len(each.list_core_exercises(each.to_do)) for each in progress.lessons)
    return f" ({done} of {count} of the core)" if count else ""


def write_progress_remarks(progress: Progress) -> list[str]:
    """Return what comes next, what stands out, and what could not be read."""
    guesses, right = int(progress.total("guesses")), int(progress.total("right"))
    met, mended = int(progress.total("met")), int(progress.total("mended"))
    here = next((each for each in progress.lessons if each.name == progress.here and each.guesses), None)
    lesson = f", {here.right} of {here.guesses} in this lesson" if here else ""
    repaired = "all repaired" if mended == met else f"{mended} repaired"
    facts = (
        f"Predictions: {right} of {guesses} right{lesson}." if guesses else "",
        f"Mistakes the checks named: {met}, {repaired}." if met else "",
    )
    return [
        *filter(None, (progress.next, *facts, *describe_assembled_parts(progress))),
        *_list_closing_sentences(progress),
    ]


def describe_assembled_parts(progress: Progress) -> Iterator[str]:
    """A sentence for each thing that students put together: how many of its parts are theirs."""
    for name, parts in course().assembled.items():
        yield f"{name}: {len(progress.parts.intersection(parts))} of {len(parts)} parts are yours."


def _list_closing_sentences(progress: Progress) -> list[str]:
    return [*(f"{each}." for each in progress.highlights), *progress.remarks]


def make_progress_table(progress: Progress) -> Table:
    """The lessons for a terminal."""
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for number, name in enumerate(_COLUMNS):
        drawn.add_column(name, justify="left" if number == 0 else "right", no_wrap=number == 0)
    for cells, lesson in zip(make_progress_rows(progress), progress.lessons, strict=True):
        drawn.add_row(*cells, style=None if lesson.begun else "dim")
    return drawn


def render_as_text(progress: Progress) -> str:
    """The progress in columns, as plain text."""
    stream = io.StringIO()
    console = Console(file=stream, width=_WIDTH, highlight=False, color_system=None, force_jupyter=False)
    show(progress, console)
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip().split("\n"))


def show(progress: Progress, console: Console) -> None:
    """Print it."""
    console.print(write_headline(progress), markup=False)
    for sentence in write_progress_remarks(progress):
        console.print(sentence.replace("`", ""), markup=False)
    console.print()
    console.print(make_progress_table(progress))
    console.print()
    console.print(_NOTE, markup=False, style="dim")


def render_as_html(progress: Progress) -> str:
    """The progress for a notebook; at the end of the course with its card."""
    head = "".join(
        f'<th scope="col" style="{_write_cell_style(number)}">{name}</th>' for number, name in enumerate(_COLUMNS)
    )
    body = "".join(
        _render_row(cells, lesson, lesson.name == progress.here)
        for cells, lesson in zip(make_progress_rows(progress), progress.lessons, strict=True)
    )
    label = write_headline(progress)
    drawn = f'<table style="border-collapse:collapse;margin:0.6em 0"><thead><tr>{head}</tr></thead>{body}</table>'
    drawn = f'<div style="overflow-x:auto">{drawn}</div>'  # on a phone it scrolls
    words = "".join(render_paragraph(render_inline_markup(each)) for each in write_progress_remarks(progress))
    note = f'<p style="margin:0;opacity:0.75"><small>{_NOTE}</small></p>'
    card = _render_card_picture(progress) if progress.complete else ""
    text = render_paragraph(f"<strong>{escape(label)}</strong>") + words
    verdict = Verdict.PASS if progress.complete else Verdict.UNDECIDED
    return render_html_section("Your progress", text + drawn + note + card, verdict)


def _render_row(cells: tuple[str, ...], lesson: LessonProgress, is_here: bool) -> str:
    weight = "font-weight:bold;" if is_here else "" if lesson.begun else "opacity:0.6;"
    here = ' aria-current="true"' if is_here else ""
    name, *others = map(escape, cells)
    title = f' title="{escape(lesson.title, quote=True)}"' if lesson.title else ""
    first = f'<th scope="row"{title} style="{_write_cell_style(0)};font-weight:inherit">{name}</th>'
    rest = "".join(f'<td style="{_write_cell_style(1)}">{each}</td>' for each in others)
    return f'<tr{here} style="{weight}background:none">{first}{rest}</tr>'


def _write_cell_style(column: int) -> str:
    return f"{_CELL};text-align:{'right' if column else 'left'}"


def _render_card_picture(progress: Progress) -> str:
    buffer = io.BytesIO()
    progress.card().savefig(buffer, format="png", dpi=120)
    data = base64.b64encode(buffer.getvalue()).decode()
    alt = escape(f"A card: {write_headline(progress)} {' '.join(write_progress_remarks(progress)[1:])}", quote=True)
    return f'<img alt="{alt}" src="data:image/png;base64,{data}" style="max-width:100%;margin-top:0.8em">'


_CARD_WIDTH, _CARD_HEIGHT = 8.0, 4.5  # inches


def draw_progress_card(progress: Progress) -> Figure:
    """The card; before the end it says what is done so far."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_CARD_WIDTH, _CARD_HEIGHT), facecolor=BACKGROUND)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, _CARD_WIDTH), ylim=(0, _CARD_HEIGHT))
    axes.axis("off")
    axes.add_patch(_draw_card_frame())
    done = sum(len(each.done) for each in progress.lessons)
    count = done + sum(len(each.to_do) for each in progress.lessons)
    axes.text(0.5, 3.82, course().title or "The course", size=20, weight="bold", color=INK)
    words = f"all {count} exercises done" if progress.complete else f"so far: {done} of {count} exercises done"
    axes.text(0.5, 3.46, words, size=12, color=GRAY)
    for number, (figures, name) in enumerate(_list_card_numbers(progress)):
        left = 0.5 + number * 1.79
        axes.text(left, 2.78, figures, size=17, weight="bold", color=BLUE)
        axes.text(left, 2.5, name, size=9.5, color=GRAY)
    for number, sentence in enumerate(_list_card_sentences(progress)):
        axes.text(0.5, 1.92 - 0.29 * number, sentence, size=11, color=INK)
    _draw_card_bars(axes, progress.lessons)
    return figure


def _draw_card_frame() -> Patch:
    from matplotlib.patches import FancyBboxPatch

    rounded = "round,pad=0,rounding_size=0.12"
    size = _CARD_WIDTH - 0.3, _CARD_HEIGHT - 0.3
    return FancyBboxPatch((0.15, 0.15), *size, boxstyle=rounded, facecolor="none", edgecolor=ORANGE, linewidth=2)


def _list_card_numbers(progress: Progress) -> list[tuple[str, str]]:
    guesses, right = int(progress.total("guesses")), int(progress.total("right"))
    met, mended = int(progress.total("met")), int(progress.total("mended"))
    earned, worth = format_points(round(progress.total("earned"))), format_points(progress.total("worth"))
    return [
        (f"{earned} / {worth}", "points, by the checks"),
        (format_duration(progress.total("seconds")), "at work"),
        (f"{right} / {guesses}", "predictions right"),
        (f"{mended} / {met}", "named mistakes repaired"),
    ]


def _list_card_sentences(progress: Progress) -> list[str]:
    parts = f"{len(progress.parts)} parts of my own kept in {course().own_parts}" if progress.parts else ""
    return [each for each in (*progress.highlights, parts) if each][:3]


def _draw_card_bars(axes: Axes, lessons: tuple[LessonProgress, ...]) -> None:
    """For each lesson a bar of its exercises' points: filled as far as they were earned."""
    from matplotlib.patches import Rectangle

    step = (_CARD_WIDTH - 1.0) / max(len(lessons), 1)
    for number, lesson in enumerate(lessons):
        left, width = 0.5 + number * step, step * 0.78
        share = lesson.earned / lesson.worth if lesson.worth else 0.0
        axes.add_patch(Rectangle((left, 0.72), width, 0.22, facecolor=EMPTY))
        axes.add_patch(Rectangle((left, 0.72), width * share, 0.22, facecolor=BLUE))
        axes.text(left, 0.5, lesson.name[:2], size=9, color=GRAY, va="center")
