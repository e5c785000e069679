"""Read what was handed in against the lesson that was released."""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from exercise_kit.quoting import quote_first_line
from exercise_kit.reasons import FlagNote
from exercise_kit.submission.answer_cells import find_answer_parts, find_answers
from exercise_kit.submission.copied_reference import describe_copy
from exercise_kit.submission.find import FoundFile
from exercise_kit.submission.flags import COPIED, POSSIBLE_BYPASS, find_changed_check_cells
from exercise_kit.submission.notebook_file import (
    SubmittedCell,
    SubmittedFile,
    Unreachable,
    Unreadable,
    parse_notebook_cells,
    parse_script_cells,
    read_bytes,
)
from exercise_kit.submission.released import Lessons, ReleasedError, ReleasedLesson
from exercise_kit.submission.released_cells import restore_released_types, update_to_released_versions
from exercise_kit.submission.result_file import ResultFile, find_result
from exercise_kit.submission.slice import (
    Runnable,
    find_begun_definitions,
    is_empty,
    list_definitions,
    parse,
    select_required_cells,
)
from exercise_kit.submission.submission import CellSource, ExerciseAnswer, NoSubmission, Submission

_LESSON = re.compile(r"[0-9]{2}_[a-z]+")  # of another lesson, in a folder that holds all of one student's
NO_METADATA = "it has no nbgrader metadata; its answers were found by their names"


@dataclass(frozen=True)
class _Found:
    lesson: ReleasedLesson
    reasons: tuple[str, ...]


def read(handed_in: FoundFile, lessons: Lessons, exercise: str | None = None) -> Submission:
    """Read one file; whatever it holds, a submission comes of it, if need be a rejected one.

    Args:
        handed_in: the file, as :func:`exercise_kit.submission.find.find` gives it.
        lessons: the lessons that students got.
        exercise: the only exercise to grade; None: all of the lesson.

    Raises:
        NoSubmission: nobody named the file, and it is none.
        ReleasedError: a released lesson cannot be read.
        Unreachable: the file or its folder cannot be reached, or not any more.
    """
    base = Submission(str(handed_in.path), handed_in.student, handed_in.assignment, None, "", flags=handed_in.flags)
    if handed_in.unreachable:
        raise Unreachable(handed_in.problem)
    if handed_in.problem:
        return replace(base, reason=handed_in.problem, rejected=True)
    script = handed_in.path.suffix.lower() == ".py"
    try:
        content = read_bytes(handed_in.path)
        base = replace(base, digest=hashlib.sha256(content).hexdigest())
        file = parse_script_cells(content) if script else parse_notebook_cells(content)
        found = _find_lesson(handed_in, file, lessons, exercise, script)
        return _make_submission(base, file, found, handed_in, exercise, script)
    except (NoSubmission, ReleasedError, Unreachable):
        raise
    except Unreadable as error:
        return replace(base, reason=str(error), rejected=True)
    except Exception as error:  # code that no person writes; it costs nobody else anything
        return replace(base, reason=f"its code cannot be read ({type(error).__name__})", rejected=True)


@dataclass(frozen=True)
class OpenedSubmission:
    """A file's cells, the lesson that they belong to, and for each exercise the answer that was found among them."""

    file: SubmittedFile
    lesson: ReleasedLesson
    answers: tuple[ExerciseAnswer, ...]


def open_with_answers(handed_in: FoundFile, lessons: Lessons) -> OpenedSubmission:
    """The cells of a file and which of them answers what, without the rest of :func:`read`.

    Raises:
        Unreadable: it cannot be graded.
        NoSubmission, ReleasedError: as :func:`read` does.
    """
    if handed_in.problem:
        raise (Unreachable if handed_in.unreachable else Unreadable)(handed_in.problem)
    script = handed_in.path.suffix.lower() == ".py"
    content = read_bytes(handed_in.path)
    file = parse_script_cells(content) if script else parse_notebook_cells(content)
    lesson = _find_lesson(handed_in, file, lessons, None, script).lesson
    if not script:
        file, _ = restore_released_types(update_to_released_versions(file, lesson), lesson)
    answers, _ = find_answers(file.cells, lesson, None, not script, lambda name: ResultFile(name, ""))
    return OpenedSubmission(file, lesson, answers)


def explain_rejection(handed_in: FoundFile, lessons: Lessons) -> str | None:
    """Why a file cannot be graded, as far as a glance at its cells tells; None: nothing speaks against it.

    Raises:
        NoSubmission, ReleasedError, Unreachable: as :func:`read` does.
    """
    try:
        open_with_answers(handed_in, lessons)
    except Unreachable:
        raise
    except Unreadable as error:
        return str(error)
    return None


def _find_lesson(
    handed_in: FoundFile, file: SubmittedFile, lessons: Lessons, exercise: str | None, script: bool
) -> _Found:
    """The lesson that a file belongs to: by nbgrader's marks, else by the names that its cells define."""
    by_mark, by_name = Counter[str](), Counter[str]()
    marks = {cell.grade_id for cell in file.cells}
    defined = frozenset().union(*(_find_definitions(cell, script) for cell in file.cells if cell.code))
    for lesson in lessons:
        by_mark[lesson.name] = sum(cell.name in marks for cell in lesson.cells if cell.role in ("exercise", "check"))
        by_name[lesson.name] = sum(not defined.isdisjoint(each.objects) for each in lesson.exercises)
    if script and not any(by_name.values()) and (problem := _describe_syntax_error(file)):
        raise Unreadable(problem)
    wanted = next((name for name in lessons.names if name in (handed_in.assignment or handed_in.path.stem)), None)
    counts = by_mark if any(by_mark.values()) else by_name
    best = max(counts.values(), default=0)
    holds = [name for name in lessons.names if best and counts[name] == best]
    if exercise and (owner := lessons.find_by_exercise(exercise)) and (counts[owner.name] or handed_in.named):
        return _Found(owner, ())
    if not holds:
        if script and not handed_in.named and handed_in.assignment is None:
            raise NoSubmission
        raise Unreadable(f"it holds no exercise of {wanted}" if wanted else "it holds none of the course's exercises")
    if wanted in holds or (script and wanted and counts[wanted]):
        return _Found(lessons.get(wanted), ())
    if wanted and handed_in.assignment:
        raise Unreadable(f"it is for another lesson: it holds exercises of {holds[0]}, not of {wanted}")
    odd = f"its name says {wanted}, but it holds exercises of {holds[0]}, and was graded as such"
    return _Found(lessons.get(holds[0]), (odd,) if wanted else ())


def _find_definitions(cell: SubmittedCell, script: bool) -> frozenset[str]:
    """Return what a cell defines; one of a notebook with an error in its syntax, what it begins to define."""
    return list_definitions(parse(cell.source)) | (frozenset() if script else find_begun_definitions(cell.source))


def _describe_syntax_error(file: SubmittedFile) -> str | None:
    for cell in file.cells:
        if parse(cell.source) is None:
            try:
                ast.parse(cell.source)
            except SyntaxError as error:
                return f"it is no Python ({error.msg})"
            except (ValueError, RecursionError, MemoryError):
                return "it is no Python"
    return None


def _make_submission(
    base: Submission,
    file: SubmittedFile,
    found_lesson: _Found,
    handed_in: FoundFile,
    exercise: str | None,
    script: bool,
) -> Submission:
    lesson = found_lesson.lesson
    retyped: tuple[FlagNote, ...] = ()
    if not script:
        file, retyped = restore_released_types(update_to_released_versions(file, lesson), lesson)
    only = (exercise,) if exercise else None
    files = partial(_find_result_file, handed_in, lesson.name)
    answers, stubs = find_answers(file.cells, lesson, only, not script or bool(exercise), files)
    answered = {each.cell for each in answers}
    skipped = stubs.union(cell.index for cell in file.cells if cell.experiment and cell.index not in answered)
    cells = select_required_cells(tuple(_choose_runnable_cells(file.cells, lesson, skipped)))
    objects = {each.name: each.objects for each in lesson.exercises}
    answers = tuple(replace(each, parts=find_answer_parts(each, lesson)) for each in answers)
    reasons = [*([handed_in.note] if handed_in.note else []), *file.oddities, *found_lesson.reasons]
    notes = [*retyped]
    if not script:
        reasons += _explain_version_differences(file.cells, lesson)
        notes += sorted(find_changed_check_cells(file.cells, lesson), key=lambda note: note.flag)
    notes += _flag_copied_answers(answers, objects, lesson)  # no reason: it asks for no word to the student
    suspects = list(_flag_possible_bypasses(answers, objects, cells))
    reasons += [f"{each.words}: a person should look at it" for each in suspects]
    reasons += [each.problem for each in answers if each.problem]
    notes += suspects
    return replace(
        base,
        assignment=base.assignment or lesson.name,
        lesson=lesson.name,
        cells=cells,
        exercises=answers,
        reason="; ".join(reasons) or None,
        flags=tuple(dict.fromkeys((*base.flags, *(each.flag for each in notes)))),
        notes=tuple(notes),
    )


def _find_result_file(handed_in: FoundFile, lesson: str, name: str) -> ResultFile:
    """The file of that name beside the notebook, unless it could as well be another student's."""
    folder = handed_in.path.parent
    found = find_result(folder, name)
    if handed_in.student is None and not found.problem:
        others = [path for path in folder.glob("*.ipynb") if path.name != handed_in.path.name]
        if any(lesson in path.stem or not _LESSON.match(path.stem) for path in others):
            problem = (
                f"{name} lies beside several notebooks, so nobody can tell whose it is; give each a folder of its own"
            )
            return replace(found, digest="", problem=problem)
    return found


def _flag_copied_answers(
    answers: Iterable[ExerciseAnswer], objects: Mapping[str, Sequence[str]], lesson: ReleasedLesson
) -> Iterator[FlagNote]:
    for each in answers:
        if each.source and (words := describe_copy(each.name, objects[each.name], each.source, lesson)):
            yield FlagNote(COPIED, each.name, words)


def _flag_possible_bypasses(
    answers: Iterable[ExerciseAnswer], objects: Mapping[str, Sequence[str]], cells: tuple[CellSource, ...]
) -> Iterator[FlagNote]:
    # imports torch, which nbgrader's process does not need
    from exercise_kit.submission.possible_bypass import find_possible_bypass

    suspects = [(each, find_possible_bypass(each.name, objects[each.name], cells)) for each in answers if each.source]
    told = {found for _, found in suspects if found and found.by_answer}
    for each, found in suspects:
        if found:
            # one cell is around all answers, and one answer's is around the others
            if not found.by_answer and {found, replace(found, by_answer=True)} & told:
                continue
            told.add(found)
            where = f", in the line {quote_first_line(found.line, 80)}" if found.line else ""
            who = each.name if found.by_answer else "a cell"
            yield FlagNote(POSSIBLE_BYPASS, each.name, f"{who} uses {quote_first_line(found.used)}{where}")


def _choose_runnable_cells(
    cells: Sequence[SubmittedCell], lesson: ReleasedLesson, skipped: frozenset[int]
) -> Iterator[Runnable]:
    """The code cells that may run: no checks, no experiments, no stub beside its answer."""
    checks = lesson.find_cells_by_role("check")
    locked = lesson.find_cells_by_role("locked")
    never = {cell.source.strip() for cell in lesson.cells if cell.role == "check" or cell.experiment}
    experiments = {cell.id for cell in lesson.cells if cell.experiment}
    given = {cell.source.strip() for cell in lesson.cells if cell.role in ("plain", "locked")}
    for cell in cells:
        if not cell.code or cell.index in skipped or cell.grade_id in checks or cell.source.strip() in never:
            continue
        if cell.id is not None and cell.id in experiments:
            continue
        if cell.grade_id in locked:
            yield Runnable(cell.index, locked[cell.grade_id].source, students=False)
        elif not is_empty(cell.source):
            yield Runnable(cell.index, cell.source, students=cell.source.strip() not in given)


def _explain_version_differences(cells: Sequence[SubmittedCell], lesson: ReleasedLesson) -> Iterator[str]:
    marks = {cell.name: cell for cell in lesson.cells if cell.name and cell.role != "locked"}
    marked = [cell for cell in cells if cell.grade_id in marks]
    if not marked:
        yield NO_METADATA
    other = {
        cell.grade_id
        for cell in marked
        if cell.grade_id and cell.checksum and marks[cell.grade_id].checksum not in (None, cell.checksum)
    }
    if other:
        yield f"it is another version of the lesson than the released one (other cells: {', '.join(sorted(other))})"
