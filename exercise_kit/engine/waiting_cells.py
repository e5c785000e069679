"""Cells of a notebook that wait for an exercise: they say so in a line, and "Run All" goes on to what can run.

A cell waits where it calls an exercise that is not written yet, or uses a name that a waiting cell would have made.
Such a name is taken away, so that no later cell goes on with an old value of it. The exception is taken back once the
cell has ended, since Jupyter runs no cell after one that fails. A cell that checks something is never excused: nbgrader
scores it by whether it failed.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

from exercise_kit.engine.course import course
from exercise_kit.engine.exercise import Exercise

CELL = ("<module>", "<cell line")  # what IPython 9 and 7 call the code of a cell
# of this kernel: names that waiting cells would have made → the exercise; and the exceptions to be taken back
_missing: dict[str, str] = {}
_excused: list[BaseException] = []


def waiting_line(error: BaseException, trace: TracebackType | None) -> str:
    """The line of a cell that waits, where this exception means that; else ""."""
    frames = _frames(trace)
    cell = next((each for each in frames if each.f_code.co_name.startswith(CELL)), None)
    name = _waits_for(error, frames[-1]) if cell else None
    tree = _tree(cell) if cell and name else None
    if cell is None or name is None or tree is None or _checks(tree):
        return ""
    for each in _made_by(tree, cell.f_lineno):
        _missing[each] = name
        cell.f_globals.pop(each, None)
    _excused.append(error)
    return f"○ This cell waits for `{name}`. Write it, run its cell and its check, then run this cell again."


def take_back(result: Any) -> None:
    """IPython's hook after a cell: one that waits has not failed."""
    if any(result.error_in_exec is each for each in _excused):
        result.error_in_exec = None
    _excused.clear()


def _frames(trace: TracebackType | None) -> list[FrameType]:
    frames = []
    while trace:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    return frames


def _waits_for(error: BaseException, last: FrameType) -> str | None:
    """The exercise that is not written, by name."""
    if last.f_globals.get("__name__") != "__main__":
        return None
    if isinstance(error, NameError):
        return _missing.get(error.name or "")
    known = _exercise_of(last.f_code.co_qualname.partition(".")[0])
    return known.name if known else None


def _exercise_of(name: str) -> Exercise | None:
    return next((each for each in course().exercises.values() if name in each.objects), None)


def _tree(cell: FrameType) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(cell.f_code.co_filename)))
    except (SyntaxError, ValueError):
        return None


def _checks(tree: ast.Module) -> bool:
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(isinstance(each, ast.Name) and each.id == "check" for each in calls)


def _made_by(tree: ast.Module, line: int) -> set[str]:
    """The names to which a cell gives something from a line on, and those made before that it was about to fill."""
    before = [each for each in tree.body if (each.end_lineno or 0) < line]
    after = [each for each in tree.body if each not in before]
    filled = {each.value.id for each in _nodes(after) if isinstance(each, ast.Attribute | ast.Subscript)
              and isinstance(each.value, ast.Name)}  # fmt: skip
    return _bound(after) | (_bound(before) & filled)


def _bound(statements: list[ast.stmt]) -> set[str]:
    nodes = list(_nodes(statements))
    stored = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return stored | {each.name for each in nodes if isinstance(each, ast.FunctionDef | ast.ClassDef)}


def _nodes(statements: list[ast.stmt]) -> Iterator[ast.AST]:
    """Everything in statements but the bodies of functions and classes."""
    waiting: list[ast.AST] = [*statements]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
