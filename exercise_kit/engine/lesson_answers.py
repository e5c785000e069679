"""The right answers of a lesson, from its source: only the statements that define them run, and what those need."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from exercise_kit.submission.slice import find_used_globals


def load_right_objects(lesson: Path, names: Collection[str], package: str) -> tuple[Callable[..., Any], ...]:
    """Return what a lesson's own source gives for names.

    Args:
        lesson: in percent format, with its answers.
        names: of the objects.
        package: the course's; ``own(...)`` of it gives its own parts here, whatever somebody has kept.

    Raises:
        NameError: the lesson does not define one of them.
        Exception: whatever a line of the lesson raises.
    """
    module = ModuleType(f"{package}.class_answers_{lesson.stem}")
    sys.modules[module.__name__] = module  # where a dataclass looks its module up
    namespace = vars(module)
    for statement in select_needed_statements(ast.parse(lesson.read_text("utf-8"), str(lesson)), names):
        exec(compile(ast.Module([statement], []), str(lesson), "exec"), namespace)  # the teacher's own file
        if isinstance(statement, ast.ImportFrom) and statement.module == package and "own" in namespace:
            namespace["own"] = _make_own_function(package)
    if missing := [name for name in names if name not in namespace]:
        raise NameError(f"lessons/{lesson.name} defines no {missing[0]}, which is the answer to an exercise")
    return tuple(namespace[name] for name in names)


def _make_own_function(package: str) -> Callable[..., object]:
    def own(*names: str) -> object:
        found = tuple(getattr(importlib.import_module(package), name) for name in names)
        return found[0] if len(found) == 1 else found

    return own


def select_needed_statements(tree: ast.Module, names: Collection[str]) -> list[ast.stmt]:
    """The statements at the top of a module that define names, and what these use, in the module's order.

    Of a name that is defined as a function or class, what it is assigned elsewhere is left out.
    """
    statements: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in _iterate_names_bound_by(statement):
            statements.setdefault(name, []).append(statement)
    waiting, seen, chosen = list(names), set[str](), set[int]()
    while waiting:
        name = waiting.pop()
        places = statements.get(name, []) if name not in seen else []
        seen.add(name)
        written = [each for each in places if isinstance(each, ast.FunctionDef | ast.ClassDef)]
        for statement in written or places:
            chosen.add(id(statement))
            waiting += find_used_globals(ast.Module([statement], [])) or ()
    return [each for each in tree.body if id(each) in chosen]


def _iterate_names_bound_by(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from ((alias.asname or alias.name).partition(".")[0] for alias in statement.names)
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        nodes = ast.walk(statement)
        yield from (each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))


def find_exercise_cell(source: str, exercise: str) -> str | None:
    """The text of an exercise's cell in a lesson; None where it has none."""
    head = rf"""^# ?%% exercise=["']{re.escape(exercise)}["'][^\n]*\n"""
    found = re.search(rf"{head}(.*?)(?=^# ?%%|\Z)", source, re.MULTILINE | re.DOTALL)
    return found[1] if found else None


def list_lesson_dependencies(source: str, objects: Collection[str], package: str, file: str = "<lesson>") -> list[str]:
    """List what the definitions of objects use of their lesson: its imports, parts that it takes over, other answers.

    What the package has, too, is imported from there.

    Raises:
        SyntaxError: with ``file`` and line, where the lesson is no Python.
    """
    public = getattr(importlib.import_module(package), "__all__", ())
    lines: list[str] = []
    for statement in select_needed_statements(ast.parse(source, file), objects):
        names = [*_iterate_names_bound_by(statement)]
        if set(names).isdisjoint(objects):
            given = [name for name in names if name in public]
            lines += [f"from {package} import {name}" for name in given] or [ast.unparse(statement)]
    return list(dict.fromkeys(lines))
