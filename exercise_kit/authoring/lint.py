"""What a lesson's source must obey, solution regions among it; each broken rule is a problem with its file and line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from exercise_kit.authoring.lesson import NAMED_ROLES, Cell, Lesson, Problem, Role
from exercise_kit.authoring.notebook import FigureError, LineError, find_figures, refuse_unreachable_links
from exercise_kit.authoring.predictions import find_prediction_problems
from exercise_kit.conventions import BEGIN_SOLUTION, END_SOLUTION, EXPERIMENT_TAG, RUBRIC, SETUP_GRADE_ID
from exercise_kit.submission.released import parse_exercise_and_file_name


class RegionError(LineError):
    """The markers of a cell do not pair up."""


@dataclass(frozen=True)
class Split:
    """The lines of a cell that are part of an answer, and the others; the markers are in neither."""

    inside: tuple[str, ...]
    outside: tuple[str, ...]
    regions: int


def split_solution_regions(source: str) -> Split:
    """Take a cell's source apart.

    Raises:
        RegionError: a marker without its partner, a nested region, an empty one, or a marker amid other text.
    """
    inside: list[str] = []
    outside: list[str] = []
    begun_at: int | None = None
    regions = 0
    for number, line in enumerate(source.split("\n"), 1):
        marker = _read_marker(line, number)
        if marker == BEGIN_SOLUTION:
            if begun_at is not None:
                raise RegionError("BEGIN SOLUTION inside a region that has not ended", number)
            begun_at, filled = number, len(inside)
        elif marker == END_SOLUTION:
            if begun_at is None:
                raise RegionError("END SOLUTION without a BEGIN SOLUTION above it", number)
            if not _has_nonblank_line(inside[filled:]):
                raise RegionError("an empty solution region; write the answer between the markers", number)
            begun_at, regions = None, regions + 1
        else:
            (outside if begun_at is None else inside).append(line)
    if begun_at is not None:
        raise RegionError("BEGIN SOLUTION without an END SOLUTION below it", begun_at)
    return Split(tuple(inside), tuple(outside), regions)


def _read_marker(line: str, number: int) -> str | None:
    for marker in (BEGIN_SOLUTION, END_SOLUTION):
        words = marker.lstrip("# ")  # all that nbgrader looks for
        if words in line:
            if line.strip() != marker:
                raise RegionError(f"{words} amid other text; write {marker} on a line of its own", number)
            return marker
    return None


def _has_nonblank_line(lines: Sequence[str]) -> bool:
    return any(line.strip() for line in lines)


FILE_NAME = re.compile(r"\d\d_[a-z][a-z0-9_]*")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
KNOWN_KEYS = {role.value for role in NAMED_ROLES} | {"points", "tags"}
KNOWN_TAGS = {EXPERIMENT_TAG, "raises-exception"}
COMMENTED_MAGIC = re.compile(r"^\s*(# ?)?(%%?[a-z]|!)")


def find_problems(lesson: Lesson, root: Path) -> list[Problem]:
    """Everything that is wrong with a lesson, in the order of its lines."""
    found = list(_find_file_problems(lesson))
    for cell in lesson.cells:
        found += _find_header_problems(lesson, cell)
        found += _find_text_problems(lesson, cell, root) if cell.is_markdown else _find_code_problems(lesson, cell)
        found += _find_region_problems(lesson, cell)
    found += _find_pairing_problems(lesson)
    found += find_prediction_problems(lesson)
    return sorted(found, key=lambda problem: problem.line or 0)


def _find_file_problems(lesson: Lesson) -> Iterator[Problem]:
    if not FILE_NAME.fullmatch(lesson.name):
        yield Problem(lesson.path, "a lesson's file is named NN_topic.py, two digits and lower case")
    first = lesson.cells[0]
    if first.role is not Role.TEXT or not first.source.startswith("# "):
        yield lesson.problem("the first cell is prose and starts with the title, '# Title'", first)


def _find_header_problems(lesson: Lesson, cell: Cell) -> Iterator[Problem]:
    roles = [role.value for role in NAMED_ROLES if role.value in cell.header]
    for key, value in cell.header.items():
        if key == "incorrectly_encoded_metadata":
            yield lesson.problem(f'cannot read {value!r} in the header; write key="text" or key=number', cell)
        elif key not in KNOWN_KEYS:
            known = ", ".join(sorted(KNOWN_KEYS))
            yield lesson.problem(f"unknown {key!r} in the header; known are {known}", cell)
    if len(roles) > 1:
        yield lesson.problem(f"a cell has one role, this one has {' and '.join(roles)}; split it", cell)
    if roles and not NAME.fullmatch(cell.name):
        yield lesson.problem(f"{roles[0]}={cell.name!r} is no name; use letters, digits, - and _", cell)
    if unknown := set(cell.tags) - KNOWN_TAGS:
        known = ", ".join(sorted(KNOWN_TAGS))
        yield lesson.problem(f"unknown tag {', '.join(sorted(unknown))}; known are {known}", cell)
    if cell.tags and (roles or cell.is_markdown):
        message = "only a plain code cell can have tags: a skipped check would earn full points"
        yield lesson.problem(message, cell)
    yield from _find_points_problems(lesson, cell)


def _find_points_problems(lesson: Lesson, cell: Cell) -> Iterator[Problem]:
    if cell.role not in (Role.CHECK, Role.QUESTION):
        if cell.points is not None:
            yield lesson.problem("points stand on a check or a question, on no other cell", cell)
    elif cell.points is None:
        message = f"{cell.role.value} {cell.name!r} has no points; add points=3, say, to its header"
        yield lesson.problem(message, cell)
    elif isinstance(cell.points, bool) or not isinstance(cell.points, int | float) or not cell.points > 0:
        yield lesson.problem(f"points={cell.points!r} is not a positive number", cell)


def _find_text_problems(lesson: Lesson, cell: Cell, root: Path) -> Iterator[Problem]:
    if not cell.source.strip():
        yield lesson.problem("an empty cell; remove it", cell)
    try:
        list(find_figures(cell.source, root / lesson.path.parent))
        refuse_unreachable_links(cell.source)
    except FigureError as error:
        yield lesson.problem(str(error), cell, error.line)


def _find_code_problems(lesson: Lesson, cell: Cell) -> Iterator[Problem]:
    if not cell.source.strip():
        yield lesson.problem("an empty cell; remove it", cell)
        return
    for offset, line in enumerate(cell.source.split("\n"), 1):
        if COMMENTED_MAGIC.match(line):
            message = f"{line.strip()!r}: a lesson's code uses no magics, commented out or not"
            yield lesson.problem(message, cell, offset)
            return
    try:
        tree = ast.parse(cell.source)
    except SyntaxError as error:
        yield lesson.problem(f"not valid Python: {error.msg}", cell, error.lineno or 0)
        return
    if cell.role is Role.CHECK and not _is_check_call(tree, cell):
        message = f'a check cell is one line, check("{cell.name}", ...), without points: its header has them'
        yield lesson.problem(message, cell)


def _is_check_call(tree: ast.Module, cell: Cell) -> bool:
    match tree.body:
        case [ast.Expr(ast.Call(ast.Name("check"), [ast.Constant(name), _, *_], []))]:
            return name == cell.name and "\n" not in cell.source and cell.source.endswith(")")
    return False


def _find_region_problems(lesson: Lesson, cell: Cell) -> Iterator[Problem]:
    try:
        split = split_solution_regions(cell.source)
    except RegionError as error:
        yield lesson.problem(str(error), cell, error.line)
        return
    has_answer = cell.role in (Role.EXERCISE, Role.QUESTION)
    if split.regions and not has_answer:
        message = "a solution region outside an exercise or question: students would be shown it"
        yield lesson.problem(message, cell)
    if has_answer and not split.regions:
        message = f"{cell.role.value} {cell.name!r} has no solution region; put ### BEGIN SOLUTION"
        yield lesson.problem(message + " and ### END SOLUTION around its answer", cell)
    elif cell.role is Role.QUESTION and not any(RUBRIC in line for line in split.inside):
        yield lesson.problem(f"question {cell.name!r} has no {RUBRIC!r} inside its solution region", cell)


def _find_pairing_problems(lesson: Lesson) -> Iterator[Problem]:
    exercises: dict[str, Cell] = {}
    checks: dict[str, Cell] = {}
    ids = {SETUP_GRADE_ID: None}
    for cell in lesson.cells:
        if cell.role is Role.CHECK:
            if cell.name not in exercises and not parse_exercise_and_file_name(cell.source):
                yield lesson.problem(f"check {cell.name!r} has no exercise of that name above it", cell)
            if cell.name in checks:
                message = f"a second check of {cell.name!r}; the first is cell {checks[cell.name].number}"
                yield lesson.problem(message, cell)
            checks[cell.name] = cell
        elif cell.role in (Role.EXERCISE, Role.QUESTION):
            if cell.name in ids:
                yield lesson.problem(f"the name {cell.name!r} is taken in this lesson; choose another", cell)
            ids[cell.name] = None
            if cell.role is Role.EXERCISE:
                exercises[cell.name] = cell
    for name, cell in exercises.items():
        if name not in checks:
            message = f"exercise {name!r} has no check; add '# %% check=\"{name}\" points=3' below it"
            yield lesson.problem(message, cell)
