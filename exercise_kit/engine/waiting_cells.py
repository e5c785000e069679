"""Cells of a notebook that wait for an exercise: they say so in a line, and "Run All" goes on to what can run.

A cell waits where it calls an exercise that is not written yet, where it fails and needs one whose check failed, or
where it uses a name that a waiting cell would have made. Such a name is taken away, so that no later cell goes on with
an old value of it. The exception is taken back once the cell has ended, since Jupyter runs no cell after one that
fails. A cell that checks something is never excused: nbgrader scores it by whether it failed.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Callable, Iterator, Mapping
from types import FrameType, TracebackType
from typing import Any, ParamSpec

from exercise_kit.engine.course import course
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.lent import is_lent_part
from exercise_kit.engine.verdict import Report
from exercise_kit.quoting import quote_first_line

CELL = ("<module>", "<cell line")  # what IPython 9 and 7 call the code of a cell
# of this kernel: names that waiting cells would have made → the exercise; the exceptions to be taken back;
# and exercise → the objects of which its check said last that they are not right
_missing: dict[str, str] = {}
_excused: list[BaseException] = []
_failed: dict[str, tuple[object, ...]] = {}
_Arguments = ParamSpec("_Arguments")


def remember_failed_checks(check: Callable[_Arguments, Report]) -> Callable[_Arguments, Report]:
    """Decorate a check that returns a report: cells that need what failed wait for it."""

    @functools.wraps(check)
    def check_and_note(*arguments: _Arguments.args, **options: _Arguments.kwargs) -> Report:
        report = check(*arguments, **options)
        _failed.pop(report.exercise, None)
        if not (report.passed or any(map(is_lent_part, arguments[1:]))):
            _failed[report.exercise] = arguments[1:]
        return report

    return check_and_note


def write_waiting_line(error: BaseException, trace: TracebackType | None) -> str:
    """The line of a cell that waits, where this exception means that; else ""."""
    frames = _list_frames(trace)
    cell = next((each for each in frames if each.f_code.co_name.startswith(CELL)), None)
    tree = _parse_or_none(_read_cell_source(cell)) if cell else None
    if cell is None or tree is None or _calls_check(tree):
        return ""
    unwritten = _find_unwritten_exercise(error, frames[-1])
    name = unwritten or _find_failed_exercise(error, tree, frames, cell.f_globals)
    if name is None:
        return ""
    for each in _collect_names_assigned_from_line(tree, cell.f_lineno):
        _missing[each] = name
        cell.f_globals.pop(each, None)
    _excused.append(error)
    why, to_do = (".", "Write") if unwritten and name not in _failed else (_describe_failure(error, frames), "Repair")
    return f"○ This cell waits for `{name}`{why} {to_do} it, run its cell and its check, then run this cell again."


def _describe_failure(error: BaseException, frames: list[FrameType]) -> str:
    """Describe what a student needs of the traceback: the exception, and the last line of theirs."""
    if isinstance(error, NameError | NotImplementedError):
        return "."
    theirs = next(each for each in reversed(frames) if each.f_globals.get("__name__") == "__main__")
    line = linecache.getline(theirs.f_code.co_filename, theirs.f_lineno).strip()
    raised = quote_first_line(f"{type(error).__name__}: {error}")
    return f", whose check fails. It stops at {quote_first_line(line)}: {raised}."


def clear_error_of_waiting_cell(result: Any) -> None:
    """IPython's hook after a cell: one that waits has not failed."""
    if any(result.error_in_exec is each for each in _excused):
        result.error_in_exec = None
    _excused.clear()


def _list_frames(trace: TracebackType | None) -> list[FrameType]:
    frames = []
    while trace:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    return frames


def _find_unwritten_exercise(error: BaseException, last: FrameType) -> str | None:
    """The exercise that is not written, by name."""
    if last.f_globals.get("__name__") != "__main__":
        return None
    if isinstance(error, NameError):
        return _missing.get(error.name or "")
    known = (
        course().find_exercise_of(last.f_code.co_qualname.partition(".")[0])
        if isinstance(error, NotImplementedError)
        else None
    )
    return known.name if known else None


def _find_failed_exercise(
    error: BaseException, tree: ast.Module, frames: list[FrameType], namespace: Mapping[str, Any]
) -> str | None:
    """The exercise that failed and that a cell needs: one in which it stopped, or the first in the course's order."""
    found = [each for each in course().exercises.values() if _has_failed(each, namespace)]
    if isinstance(error, NameError) or not found:
        return None
    inside = {each.f_code.co_qualname.partition(".")[0] for each in frames}
    near = next((each for each in found if inside.intersection(each.objects)), None)
    needed = set() if near else _collect_needed_names(tree, namespace)
    near = near or next((each for each in found if needed.intersection(each.objects)), None)
    return near.name if near else None


def _has_failed(exercise: Exercise, namespace: Mapping[str, Any]) -> bool:
    """Say whether what a notebook holds now is what its check was about: it may have been written anew since."""
    checked = _failed.get(exercise.name, ())
    here = [namespace.get(name) for name in exercise.objects]
    return len(checked) == len(here) and all(one is other for one, other in zip(here, checked, strict=True))


def _collect_needed_names(tree: ast.Module, namespace: Mapping[str, Any]) -> set[str]:
    """The names that a cell uses, those that the cells that made these used, and so on."""
    cells = filter(None, map(_parse_or_none, namespace.get("In", ())))
    made_in = {name: each for each in cells for name in _collect_bound_names(each.body)}
    found: set[str] = set()
    waiting = [tree]
    while waiting:
        used = {each.id for each in ast.walk(waiting.pop()) if isinstance(each, ast.Name)} - found
        found |= used
        waiting += [made_in[name] for name in used if name in made_in]
    return found


def _read_cell_source(cell: FrameType) -> str:
    return "".join(linecache.getlines(cell.f_code.co_filename))


def _parse_or_none(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return None


def _calls_check(tree: ast.Module) -> bool:
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(isinstance(each, ast.Name) and each.id == "check" for each in calls)


def _collect_names_assigned_from_line(tree: ast.Module, line: int) -> set[str]:
    """The names to which a cell gives something from a line on, and those made before that it was about to fill."""
    before = [each for each in tree.body if (each.end_lineno or 0) < line]
    after = [each for each in tree.body if each not in before]
    filled = {each.value.id for each in _iterate_nodes(after) if isinstance(each, ast.Attribute | ast.Subscript)
              and isinstance(each.value, ast.Name)}  # fmt: skip
    return _collect_bound_names(after) | (_collect_bound_names(before) & filled)


def _collect_bound_names(statements: list[ast.stmt]) -> set[str]:
    nodes = list(_iterate_nodes(statements))
    stored = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return stored | {each.name for each in nodes if isinstance(each, ast.FunctionDef | ast.ClassDef)}


def _iterate_nodes(statements: list[ast.stmt]) -> Iterator[ast.AST]:
    """Everything in statements but the bodies of functions and classes."""
    waiting: list[ast.AST] = [*statements]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
