"""The report as one HTML page, and the private page of names: templates filled with what was counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.resources import files
from statistics import mean, median, quantiles
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from exercise_kit.engine.show import rich
from exercise_kit.report import pictures
from exercise_kit.report.anonymous import Anonymiser
from exercise_kit.report.answers import BINS, CheckTally, ExerciseTally
from exercise_kit.report.examples import Example, Examples
from exercise_kit.report.shares import Lost, reason_for_all
from exercise_kit.report.tally import Mistake, Tally, Unnamed
from exercise_kit.report.words import FLAGS, clean, percent, plural, points, sentences
from exercise_kit.report.work import ClassWork, State

TEMPLATES = files("exercise_kit") / "templates"
NEXT, EXAMPLES, PICTURED, GROUPS, CHECKS, CHECKS_EACH = 5, 10, 12, 8, 12, 2  # how many of a kind a page shows
ALONE = 3  # and how many of groups of one


@dataclass(frozen=True)
class MistakeCard:
    """A misconception with its example."""

    mistake: Mistake
    example: Example


@dataclass(frozen=True)
class GroupCard:
    """Wrong answers alike without a name, with an example."""

    group: Unnamed
    example: Example


@dataclass(frozen=True)
class LessonRow:
    """A lesson in numbers; the quartiles and the mean are None where nothing is graded."""

    name: str
    handed_in: int
    graded: int
    quartiles: tuple[float, float, float] | None
    mean: float | None
    tenths: list[int]


def lecture_page(found: Tally, title: str, today: date) -> str:
    """The page for the lecture; it tells nothing of who a student is."""
    anonymiser = Anonymiser(_names(found.work), _given(found.work))
    examples = Examples(found.work, anonymiser)
    shares = {row.name: found.shares(row.name) for row in _lessons(found) if row.graded}
    timed = any(each.seconds for each in found.exercises)
    return _environment().get_template("report.html.jinja").render(
        title=title,
        today=today,
        found=found,
        work=found.work,
        State=State,
        Lost=Lost,
        BINS=BINS,
        FLAGS=FLAGS,
        sentences=sentences(found),
        total_lost=sum(found.lost.values()),
        lessons=_lessons(found),
        next=found.mistakes[:NEXT],
        cards=[_card(each, examples) for each in found.mistakes[:EXAMPLES]],
        groups=[GroupCard(each, examples.of(each.answers)) for each in _worth_a_look(found.unnamed)],
        unasked=_unasked(found.unasked, anonymiser),
        worst=_worst_checks(found.exercises),
        rejected=_reasons(found.work, anonymiser),
        score_picture=Markup(pictures.scores(shares)) if shares else "",
        exercise_picture=Markup(pictures.exercises(_answered(found))) if shares else "",
        mistake_picture=Markup(pictures.mistakes(found.mistakes[:PICTURED])) if found.mistakes else "",
        time_picture=Markup(pictures.seconds(found.exercises)) if timed else "",
    )  # fmt: skip


def private_page(found: Tally, title: str, today: date) -> str:
    """The page for the instructor's eyes: who has which score, flags and misconceptions."""
    rows = sorted(found.work.handed_in, key=lambda each: (each.who.casefold(), each.lesson or ""))
    template = _environment().get_template("report_names.html.jinja")
    return template.render(title=title, today=today, rows=rows, State=State)


def _environment() -> Environment:
    made = Environment(
        loader=FunctionLoader(lambda name: (TEMPLATES / name).read_text("utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finished,
    )
    made.filters |= {
        "percent": percent,
        "points": points,
        "plural": plural,
        "rich": lambda text: Markup(rich(clean(text))),
        "median": median,
        "indent": lambda line: len(line) - len(line.lstrip()),
    }
    return made


def _finished(value: Any) -> Any:
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _names(work: ClassWork) -> set[str]:
    """All that is known of who the students are."""
    names = {each.student for each in work.handed_in if each.student}
    return names | set(work.by_hand.names if work.by_hand else ())


def _given(work: ClassWork) -> Iterable[str]:
    for lesson in work.lessons:
        yield from (cell.source for cell in lesson.released.cells) if lesson.released else ()
        yield from lesson.released.model_answers.values() if lesson.released else ()


def _card(mistake: Mistake, examples: Examples) -> MistakeCard:
    name = mistake.told.name
    fits = examples.of(mistake.answers.values(), lambda each: bool(each.check and each.check.misconception == name))
    return MistakeCard(mistake, fits)


def _answered(found: Tally) -> list[ExerciseTally]:
    return [each for each in found.exercises if each.answers]


def _lessons(found: Tally) -> list[LessonRow]:
    rows = []
    for lesson in found.work.lessons:
        here = [each for each in found.work.handed_in if each.lesson == lesson.name]
        shares = found.shares(lesson.name)
        graded = sum(each.state in (State.GRADED, State.OLDER, State.PARTLY) for each in here)
        first, middle, last = quantiles(shares, n=4, method="inclusive") if len(shares) > 1 else (shares * 3 or [0] * 3)
        quartiles = (first, middle, last) if shares else None
        average = mean(shares) if shares else None
        rows.append(LessonRow(lesson.name, len(here), graded, quartiles, average, pictures.tenths(shares)))
    return rows


def _worth_a_look(groups: Sequence[Unnamed]) -> list[Unnamed]:
    """The largest groups; of answers that are like no other only a few."""
    return [each for place, each in enumerate(groups[:GROUPS]) if place < ALONE or len(each.answers) > 1]


def _worst_checks(exercises: Iterable[ExerciseTally]) -> list[tuple[ExerciseTally, CheckTally]]:
    """The checks that fail most often, of the answers that could be asked; of an exercise only a few."""
    worst = []
    for exercise in exercises:
        failing = sorted((check for check in exercise.checks.values() if check.failed), key=lambda each: -each.failed)
        worst += [(exercise, check) for check in failing[:CHECKS_EACH]]
    return sorted(worst, key=lambda each: (-each[1].failed, -each[1].failing))[:CHECKS]


def _unasked(groups: Iterable[Unnamed], anonymiser: Anonymiser) -> dict[str, Counter[str]]:
    """Why answers could not be checked, without what a student wrote: how many to which exercise; commonest first."""
    found: dict[str, Counter[str]] = {}
    for each in groups:
        reason = anonymiser.text(reason_for_all(each.exercise, each.shape))
        found.setdefault(reason, Counter())[each.exercise] += len(each.answers)
    return dict(sorted(found.items(), key=lambda item: -item[1].total()))


def _reasons(work: ClassWork, anonymiser: Anonymiser) -> list[tuple[str, int]]:
    """Why files were rejected, or lost, without names and paths."""
    texts = [each.reason or "" for each in work.in_state(State.REJECTED, State.ERROR)]
    counts = Counter(_without_paths(anonymiser.text(text)) for text in texts)
    return counts.most_common()


def _without_paths(text: str) -> str:
    return " ".join("…" if "/" in word or "\\" in word else word for word in text.split())
