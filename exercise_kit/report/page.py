"""The report as one HTML page, and the private page of names: sentences and templates, filled with what was counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from exercise_kit.engine.compare import join_names
from exercise_kit.engine.in_training import read_training_setup
from exercise_kit.engine.rendering import render_inline_markup
from exercise_kit.files import write
from exercise_kit.quoting import make_legible
from exercise_kit.report.answers import BINS, CheckTally, ExerciseTally, Lost
from exercise_kit.report.collect import ClassWork, ReportError, State, collect_class_work
from exercise_kit.report.examples import Anonymizer, Example, Examples
from exercise_kit.report.manual_grading import ManualGrading
from exercise_kit.report.people import DROP, EARLIER, MISSING, SAME, find_students_of_concern
from exercise_kit.report.plots import (
    draw_costliest_mistakes,
    draw_exercise_scores,
    draw_grading_seconds,
    draw_score_histograms,
    draw_term_chart,
)
from exercise_kit.report.tally import (
    LEAST_STUDENTS,
    Mistake,
    Tally,
    UnexplainedGroup,
    rank_discriminations,
    tally_class,
)
from exercise_kit.report.term import LessonRow, count_students, make_lesson_rows
from exercise_kit.submission import flags


def format_percent(share: float) -> str:
    """0.714 → "71 %", with a space that does not break; what is not all or nothing is not rounded to it."""
    rounded = round(100 * share)
    if share < 1:
        rounded = min(rounded, 99)
    if share > 0:
        rounded = max(rounded, 1)
    return f"{rounded}\u00a0%"


def format_points(value: float) -> str:
    """12.04 → "12", 0.25 → "0.2": as many digits as a lecture needs."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0")


def format_with_minus(value: float) -> str:
    """0.423 → "0.42", with the sign that is a minus and no hyphen."""
    return f"{value:.2f}".replace("-", "\u2212")


def format_count(count: int, noun: str, plural: str = "") -> str:
    """1, "notebook" → "1 notebook"; 3 → "3 notebooks"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def summarize_class(tally: Tally) -> list[str]:
    """The class in three sentences; one where nothing is graded."""
    handed_in = _describe_handed_in(tally)
    return [handed_in, *([_describe_scores(tally), _describe_lost_points(tally)] if tally.shares() else ())]


def _describe_handed_in(tally: Tally) -> str:
    work = tally.work
    if not work.handed_in:
        return "Nobody has handed in anything yet."
    students = format_count(len({each.who for each in work.handed_in}), "student")
    sentence = f"{students} handed in {format_count(len(work.handed_in), 'notebook')}"
    sentence += f" for {format_count(len(work.lessons), 'lesson')}" if work.lessons else ""
    graded = len(work.find_in_state(State.GRADED, State.OLDER))
    rest = {
        "not graded yet": len(work.find_in_state(State.WAITING, State.PARTLY)),
        "waiting for a check to be mended": len(work.find_in_state(State.UNDECIDED)),
        "rejected": len(work.find_in_state(State.REJECTED)),
        "lost to a failure of the grader": len(work.find_in_state(State.ERROR)),
    }
    waits = " and ".join(_describe_manual_grading(work.manual_grading)) if work.manual_grading else ""
    if not any(rest.values()):
        return f"{sentence}; all code is graded, and {waits}." if waits else f"{sentence}; all are graded."
    listed = ", ".join(f"{count:,} {'is' if count == 1 else 'are'} {what}" for what, count in rest.items() if count)
    return f"{sentence}: {graded:,} {'is' if graded == 1 else 'are'} graded, {listed}{f'; {waits}' if waits else ''}."


def _describe_manual_grading(manual_grading: ManualGrading) -> Iterator[str]:
    if manual_grading.waiting:
        verb = "waits" if manual_grading.waiting == 1 else "wait"
        yield f"{format_count(manual_grading.waiting, 'written answer')} {verb} for a grade by hand"
    if manual_grading.again:
        verb = "is" if manual_grading.again == 1 else "are"
        yield f"{format_count(manual_grading.again, 'answer')} with points {verb} to be looked at"


def _describe_scores(tally: Tally) -> str:
    tried = [each for each in tally.exercises if each.answers and each.points]
    sentence = "Half of the graded notebooks or more earn nothing"
    if tally.median:
        sentence = f"Half of the graded notebooks earn {format_percent(tally.median)} of their points or more"
    if len(tried) < 2:
        return f"{sentence}."
    by_mean: dict[str, list[str]] = {}  # those whose means are shown alike
    for each in sorted(tried, key=lambda each: each.mean):
        by_mean.setdefault(format_percent(each.mean), []).append(each.name)
    if len(by_mean) == 1:
        return f"{sentence}."
    groups = list(by_mean.items())
    (least, hardest), (most, easiest) = groups[0], groups[-1]
    were = "was" if len(hardest) == 1 else "were"
    return (
        f"{sentence}; hardest {were} {join_names(hardest)}, with {least} in the mean, "
        f"and easiest {join_names(easiest)}, with {most}."
    )


def _describe_lost_points(tally: Tally) -> str:
    lost = tally.lost
    total = sum(lost.values())
    if not total:
        return "No points were lost."
    share = lost[Lost.UNWRITTEN] / total
    unwritten = (
        f"{format_percent(share)} of the lost points are answers that nobody wrote"
        if share
        else "all answers are written"
    )
    if not tally.mistakes:
        return f"No lost point goes to a mistake that has a name; {unwritten}."
    first = tally.mistakes[0]
    cost = f"{format_count(first.students, 'student')} and {format_count(round(first.lost), 'point')}"
    return f"Of the mistakes that have a name, “{first.misconception.name}” cost the class most: {cost}; {unwritten}."


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

    group: UnexplainedGroup
    example: Example


def render_lecture_page(tally: Tally, title: str, today: date) -> str:
    """The page for the lecture; it tells nothing of who a student is."""
    anonymizer = Anonymizer(_collect_student_names(tally.work), _list_released_sources(tally.work))
    examples = Examples(tally.work, anonymizer)
    rows, students = make_lesson_rows(tally), count_students(tally)
    shares = {row.name: tally.shares(row.name) for row in rows if row.graded}
    timed = any(each.seconds for each in tally.exercises)
    answered = [each for each in tally.exercises if each.answers]
    return load_templates().get_template("report.html.jinja").render(
        title=title,
        today=today,
        found=tally,
        work=tally.work,
        State=State,
        Lost=Lost,
        BINS=BINS,
        FLAGS=flags.MEANINGS,
        sentences=summarize_class(tally),
        total_lost=sum(tally.lost.values()),
        lessons=rows,
        students=students,
        questions=rank_discriminations(tally.exercises),
        LEAST_STUDENTS=LEAST_STUDENTS,
        trained=read_training_setup(),
        flagged=sum(bool(each.result and each.result.flags) for each in tally.work.handed_in),
        next=tally.mistakes[:NEXT],
        cards=[_make_mistake_card(each, examples) for each in tally.mistakes[:EXAMPLES]],
        groups=[GroupCard(each, examples.of(each.answers)) for each in _choose_notable_groups(tally.unexplained)],
        unevaluated=_count_reasons(tally.unevaluated, anonymizer),
        worst=_find_worst_checks(tally.exercises),
        rejected=_count_lost_reasons(tally.work, anonymizer),
        waits=_count_wait_causes(tally.work),
        course_picture=Markup(_render_term_chart(rows, students)) if len(shares) > 1 else "",
        score_picture=Markup(draw_score_histograms(shares)) if shares else "",
        exercise_picture=Markup(draw_exercise_scores(answered)) if shares else "",
        mistake_picture=Markup(draw_costliest_mistakes(tally.mistakes[:PICTURED])) if tally.mistakes else "",
        time_picture=Markup(draw_grading_seconds(tally.exercises)) if timed else "",
    )  # fmt: skip


def render_private_page(tally: Tally, title: str, today: date) -> str:
    """The page for the instructor's eyes: whom to talk to; and who has which score, flags and misconceptions."""
    rows = sorted(tally.work.handed_in, key=lambda each: (each.who.casefold(), each.lesson or ""))
    template = load_templates().get_template("report_names.html.jinja")
    rules = {"MISSING": MISSING, "SAME": SAME, "DROP": DROP, "EARLIER": EARLIER}
    hands = tally.work.manual_grading.by_hand if tally.work.manual_grading else {}
    people = find_students_of_concern(tally)
    return template.render(title=title, today=today, rows=rows, State=State, people=people, hands=hands, **rules)


def load_templates() -> Environment:
    """The kit's templates, in which everything of a student's is escaped and made legible."""
    made = Environment(
        loader=FunctionLoader(lambda name: (TEMPLATES / name).read_text("utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_make_template_value_legible,
    )
    made.filters |= {
        "percent": format_percent,
        "points": format_points,
        "signed": format_with_minus,
        "plural": format_count,
        "rich": lambda text: Markup(render_inline_markup(make_legible(text))),
        "median": median,
        "indent": lambda line: len(line) - len(line.lstrip()),
    }
    return made


def _make_template_value_legible(value: Any) -> Any:
    return make_legible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _collect_student_names(work: ClassWork) -> set[str]:
    """All that is known of who the students are."""
    names = {each.student for each in work.handed_in if each.student}
    return names | set(work.manual_grading.names if work.manual_grading else ())


def _list_released_sources(work: ClassWork) -> Iterable[str]:
    for lesson in work.lessons:
        yield from (cell.source for cell in lesson.released.cells) if lesson.released else ()
        yield from lesson.released.model_answers.values() if lesson.released else ()


def _make_mistake_card(mistake: Mistake, examples: Examples) -> MistakeCard:
    name = mistake.misconception.name
    fits = examples.of(mistake.answers.values(), lambda each: bool(each.check and each.check.misconception == name))
    return MistakeCard(mistake, fits)


def _render_term_chart(rows: Sequence[LessonRow], students: int) -> str:
    return draw_term_chart([(row.name, row.students / students if students else 0.0, row.quartiles) for row in rows])


def _choose_notable_groups(groups: Sequence[UnexplainedGroup]) -> list[UnexplainedGroup]:
    """The largest groups; of answers that are like no other only a few."""
    return [each for place, each in enumerate(groups[:GROUPS]) if place < ALONE or len(each.answers) > 1]


def _find_worst_checks(exercises: Iterable[ExerciseTally]) -> list[tuple[ExerciseTally, CheckTally]]:
    """The checks that fail most often, of the answers that could be evaluated; of an exercise only a few."""
    worst = []
    for exercise in exercises:
        failing = sorted((check for check in exercise.checks.values() if check.failed), key=lambda each: -each.failed)
        worst += [(exercise, check) for check in failing[:CHECKS_EACH]]
    return sorted(worst, key=lambda each: (-each[1].failed, -each[1].failing))[:CHECKS]


def _count_reasons(groups: Iterable[UnexplainedGroup], anonymizer: Anonymizer) -> dict[str, Counter[str]]:
    """Why answers could not be checked, without what a student wrote: how many to which exercise; commonest first."""
    found: dict[str, Counter[str]] = {}
    for each in groups:
        found.setdefault(anonymizer.anonymize_text(each.kind), Counter())[each.exercise] += len(each.answers)
    return dict(sorted(found.items(), key=lambda item: -item[1].total()))


def _count_wait_causes(work: ClassWork) -> Counter[str]:
    """Return what the exercises that are not graded yet wait for: file, line and error, as far as they are known."""
    results = [each.result for each in work.handed_in if each.result]
    return Counter(cause or f"the checks of {name}" for each in results for name, cause in each.waits_for.items())


def _count_lost_reasons(work: ClassWork, anonymizer: Anonymizer) -> list[tuple[str, int]]:
    """Why files were rejected, or lost, without names and paths."""
    texts = [each.reason or "" for each in work.find_in_state(State.REJECTED, State.ERROR)]
    counts = Counter(_replace_paths(anonymizer.anonymize_text(text)) for text in texts)
    return counts.most_common()


def _replace_paths(text: str) -> str:
    return " ".join("…" if "/" in word or "\\" in word else word for word in text.split())


REPORT = "report.html"


@dataclass(frozen=True)
class Written:
    """A report that was written: where, the private page's place if there is one, and its first sentences."""

    page: Path
    names: Path | None
    sentences: tuple[str, ...]
    work: ClassWork


def write_report(
    path: Path, out: Path | None = None, lesson: str | None = None, names: Path | None = None, today: date | None = None
) -> Written:
    """Write the report on a class.

    Args:
        path: a class folder, or a JSON file of ``vit-course grade``.
        out: the page's file; else report.html in the class folder, or beside the JSON file.
        lesson: the only one; None: all.
        names: where a second page goes that tells who is who; None: nowhere.
        today: the date on the page.

    Raises:
        ReportError: there is nothing to report on, or a page would fall on what it must not.
        OSError: a page cannot be written; nothing half-written is left.
    """
    work = collect_class_work(path, lesson)
    out = out or ((path if work.folder else path.parent) / REPORT)
    for place in filter(None, (out, names)):
        if place.is_dir():
            raise ReportError(f"{place} is a folder; name a file")
    if names and names.absolute() == out.absolute():
        raise ReportError(f"the page of names would be the lecture's page, {out}; name another file")
    if path.is_file() and path.resolve() in {place.resolve() for place in (out, names) if place}:
        raise ReportError(f"the page would take the place of {path}; name another file")
    title, day, found = (
        work.name if lesson is None else f"{work.name}, {lesson}",
        today or date.today(),
        tally_class(work),
    )
    pages = {out: render_lecture_page(found, title, day)}
    if names:
        pages[names] = render_private_page(found, title, day)
    for place, text in pages.items():
        write(place, text.encode(), 0o600 if place == names else None)
    return Written(out, names, tuple(summarize_class(found)), work)
