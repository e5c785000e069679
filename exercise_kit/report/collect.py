"""A class's work, gathered from its folder, from kept results and from nbgrader's gradebook; nothing is graded.

To read a notebook as the grader does takes long. So only its bytes are read: they lead to the kept result, and the
first half of each key says whether the grader would give the same result today. The gradebook is read without nbgrader.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from exercise_kit.batch.locations import Place, PlaceError, find_place
from exercise_kit.batch.result_cache import Store, TamperedResult, list_key_prefixes
from exercise_kit.engine.class_exercises import set_class_in_use
from exercise_kit.judge.result import VERSION, Result, add_wait_causes_to_reason
from exercise_kit.report.manual_grading import ManualGrading, read_gradebook
from exercise_kit.submission.find import FoundFile, find
from exercise_kit.submission.flags import SAME_FILE, flag_same_file
from exercise_kit.submission.notebook_file import Unreachable, Unreadable, read_bytes
from exercise_kit.submission.released import (
    CONFIG,
    SUBMITTED,
    Lessons,
    ReleasedError,
    ReleasedLesson,
    find_current_class,
    is_class,
)
from exercise_kit.submission.result_file import find_result
from exercise_kit.submission.slice import parse
from exercise_kit.submission.submission import NoSubmission


class ReportError(Exception):
    """There is nothing to report on; the message says why, and what to do."""


class State(StrEnum):
    """What became of a file that was handed in."""

    GRADED = "graded"
    OLDER = "graded with older checks"
    PARTLY = "graded in part"
    UNDECIDED = "waits for a check to be mended"
    WAITING = "not graded yet"
    REJECTED = "rejected"
    ERROR = "the grader failed"


@dataclass(frozen=True)
class SubmittedWork:
    """A file that was handed in.

    Attributes:
        path: of the file.
        student, lesson: where they are known.
        state: of its grading.
        result: that is kept of it (None: there is none).
        reason: of a rejection.
        files: the digests of the files beside a notebook that count.
    """

    path: Path
    student: str | None
    lesson: str | None
    state: State
    result: Result | None = None
    reason: str | None = None
    files: tuple[str, ...] = ()

    @property
    def who(self) -> str:
        """The student; a file of nobody counts as a student of its own."""
        return self.student or str(self.path)

    def earns_full_points(self, exercise: str) -> bool:
        """Say whether its answer to an exercise has all of its points."""
        results = self.result.exercises if self.result else ()
        return any(each.name == exercise and 0 < each.max_score <= each.score for each in results)


@dataclass(frozen=True)
class LessonPlan:
    """A lesson: its name, its exercises' points by name, in order, and how it was ``released``, where that is known."""

    name: str
    points: Mapping[str, float] = field(default_factory=dict)
    released: ReleasedLesson | None = None

    def builds_on(self) -> dict[str, frozenset[str]]:
        """For each exercise, the others of the lesson whose objects its model answer uses."""
        if self.released is None:
            return {}
        exercises = self.released.exercises
        return {
            exercise.name: frozenset(
                other.name
                for other in exercises
                if other.name != exercise.name
                and not _find_names_in_model_answer(self.released, exercise.name).isdisjoint(other.objects)
            )
            for exercise in exercises
        }


def _find_names_in_model_answer(lesson: ReleasedLesson, exercise: str) -> frozenset[str]:
    """The names that a model answer reads."""
    tree = parse(lesson.model_answers.get(exercise, ""))
    nodes = ast.walk(tree) if tree else ()
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))


@dataclass(frozen=True)
class ClassWork:
    """Everything that a report is made of.

    Attributes:
        name: of the class, which is its folder's.
        handed_in: the files.
        lessons: with work in them.
        manual_grading: from nbgrader's gradebook; None: there is none.
        folder: None: the results came in a JSON file.
    """

    name: str
    handed_in: tuple[SubmittedWork, ...]
    lessons: tuple[LessonPlan, ...]
    manual_grading: ManualGrading | None = None
    folder: Path | None = None

    def find_in_state(self, *states: State) -> list[SubmittedWork]:
        """The files of these states."""
        return [each for each in self.handed_in if each.state in states]


def collect_class_work(path: Path, lesson: str | None = None) -> ClassWork:
    """The work of a class.

    Args:
        path: a class folder, or the JSON file that ``vit-course grade --json`` wrote.
        lesson: the only one; None: all.

    Raises:
        ReportError: there is no such folder or file, it is none of a class, or it has no such lesson.
    """
    if not path.exists():
        raise ReportError(f"there is no {path}; name a folder made by 'vit-course new-class'")
    if path.is_file():
        return _read_results_json(path, lesson)
    folder = path.resolve()
    if not is_class(folder):
        raise ReportError(f"{path} is no class folder: it has no {CONFIG}; name one made by 'vit-course new-class'")
    set_class_in_use(folder)
    lessons = Lessons(folder)
    if lesson is not None and lesson not in lessons.names:
        raise ReportError(f"there is no lesson {lesson!r}; there are: {', '.join(lessons.names)}")
    try:
        finder = _Finder(lessons, find_place(folder))
    except PlaceError as error:
        raise ReportError(str(error)) from None
    handed_in = find([folder], lessons.names, folder) if (folder / SUBMITTED).is_dir() else []
    kept = [each for each in map(finder.find_work, handed_in) if each and lesson in (None, each.lesson)]
    names = [name for name in lessons.names if any(each.lesson == name for each in kept)]
    plans = tuple(_make_lesson_plan(lessons.get(name)) for name in names)
    return ClassWork(folder.name, _flag_same_files(kept), plans, read_gradebook(folder, lesson), folder)


def _flag_same_files(works: Sequence[SubmittedWork]) -> tuple[SubmittedWork, ...]:
    """The same, with the flag that depends on others: each result is kept for its own submission alone."""
    shared = flag_same_file([(each.who, each.files) for each in works])
    return tuple(
        replace(each, result=replace(each.result, flags=(*each.result.flags, SAME_FILE)))
        if same and each.result
        else each
        for each, same in zip(works, shared, strict=True)
    )


def _make_lesson_plan(lesson: ReleasedLesson) -> LessonPlan:
    return LessonPlan(lesson.name, {each.name: each.points for each in lesson.exercises}, lesson)


class _Finder:
    """Finds what is kept of a file.

    Args:
        lessons: as they were released.
        place: of the class.
    """

    def __init__(self, lessons: Lessons, place: Place) -> None:
        self._lessons, self._place = lessons, place
        self._store = Store(place.results, place.secret)
        self._prefixes: dict[str, dict[str, set[str]]] = {}

    def find_work(self, handed_in: FoundFile) -> SubmittedWork | None:
        """Return what is known of a file; None: it is no submission."""
        try:
            if handed_in.problem or handed_in.assignment not in self._lessons.names:
                return self._find_work_by_reading(handed_in)
            lesson = self._lessons.get(handed_in.assignment)
            found = self._load_kept_work(handed_in, lesson, _compute_content_digest(handed_in.path, lesson))
            return found or self._make_work_without_result(handed_in)
        except (ReleasedError, Unreachable) as error:
            return _make_ungraded_work(handed_in, State.ERROR, str(error))
        except Unreadable as error:
            return _make_ungraded_work(handed_in, State.REJECTED, str(error))
        except NoSubmission:
            return None

    def _find_work_by_reading(self, handed_in: FoundFile) -> SubmittedWork | None:
        from exercise_kit.submission.parse import read  # with torch, which no kept result needs

        submission = read(handed_in, self._lessons)
        if submission.rejected or submission.lesson is None:
            return _make_ungraded_work(handed_in, State.REJECTED, submission.reason)
        lesson = self._lessons.get(submission.lesson)
        found = self._load_kept_work(handed_in, lesson, submission.content)
        return found or SubmittedWork(handed_in.path, handed_in.student, lesson.name, State.WAITING)

    def _make_work_without_result(self, handed_in: FoundFile) -> SubmittedWork:
        from exercise_kit.submission.parse import explain_rejection

        problem = explain_rejection(handed_in, self._lessons)
        return _make_ungraded_work(handed_in, State.REJECTED if problem else State.WAITING, problem)

    def _load_kept_work(self, handed_in: FoundFile, lesson: ReleasedLesson, content: str) -> SubmittedWork | None:
        """A file with its result, as the grader reads it; None: nothing is kept of it that can be believed."""
        try:
            kept = self._store.read(content, lesson.name)
        except TamperedResult as changed:
            again = f"{changed}; grade it again"
            return SubmittedWork(handed_in.path, handed_in.student, lesson.name, State.WAITING, reason=again)
        if kept is None:
            return None
        found, keys = kept.result, kept.keys
        flags = dict.fromkeys((*handed_in.flags, *kept.flags, *found.flags))
        reason = "; ".join(filter(None, (kept.reason, found.reason))) or None
        result = add_wait_causes_to_reason(
            replace(found, runs=(), path=str(handed_in.path), flags=tuple(flags), reason=reason)
        )
        files = tuple(filter(None, content.split("/")[1:]))
        work = SubmittedWork(
            handed_in.path,
            handed_in.student,
            lesson.name,
            self._determine_state(found, keys, lesson),
            result,
            result.reason,
        )
        return replace(work, files=files)

    def _determine_state(self, result: Result, keys: Mapping[str, str], lesson: ReleasedLesson) -> State:
        worth = {each.name: round(each.points, 4) for each in lesson.exercises}
        prefixes = self._find_key_prefixes(lesson)
        current = [
            keys[each.name].partition("-")[0] in prefixes.get(each.name, ()) and worth.get(each.name) == each.max_score
            for each in result.exercises
        ]
        if any(each.name in worth for each in result.waiting):
            return State.UNDECIDED
        if not all(current):
            return State.OLDER
        return State.GRADED if len(current) == len(worth) else State.PARTLY

    def _find_key_prefixes(self, lesson: ReleasedLesson) -> dict[str, set[str]]:
        if lesson.name not in self._prefixes:
            self._prefixes[lesson.name] = list_key_prefixes(lesson.names, self._place)
        return self._prefixes[lesson.name]


def _compute_content_digest(path: Path, lesson: ReleasedLesson) -> str:
    """As ``Submission.content``."""
    digest = hashlib.sha256(read_bytes(path)).hexdigest()
    files = [find_result(path.parent, each.file).digest for each in lesson.exercises if each.file]
    return "/".join([digest, *files])


def _make_ungraded_work(handed_in: FoundFile, state: State, reason: str | None) -> SubmittedWork:
    return SubmittedWork(handed_in.path, handed_in.student, handed_in.assignment, state, reason=reason)


def _read_results_json(path: Path, lesson: str | None) -> ClassWork:
    """The work that a JSON file of ``vit-course grade`` tells of."""
    try:
        published = json.loads(path.read_bytes())
        if published["version"] != VERSION:
            raise ReportError(f"{path} is of version {published['version']!r}; this report reads version {VERSION}")
        results = [Result.from_dict(entry) for entry in published["submissions"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ReportError(f"{path} is no file that 'vit-course grade --json' wrote, and no class folder") from None
    states = {"graded": State.GRADED, "rejected": State.REJECTED, "error": State.ERROR}
    handed_in = tuple(
        SubmittedWork(
            Path(each.path),
            each.student,
            each.assignment,
            State.UNDECIDED if each.waiting else states[each.status],
            each,
            each.reason,
        )
        for each in results
        if lesson in (None, each.assignment)
    )
    plans: dict[str, dict[str, float]] = {}
    for each in results:
        points = {exercise.name: exercise.max_score for exercise in each.exercises}
        if points and each.assignment and lesson in (None, each.assignment):
            plans.setdefault(each.assignment, {}).update(points)
    set_class_in_use(find_current_class())
    released = Lessons(find_current_class())
    lessons = tuple(
        LessonPlan(name, points, released.get(name) if name in released.names else None)
        for name, points in sorted(plans.items())
    )
    return ClassWork(path.stem, handed_in, lessons)
