"""Slips of Python, named as such: a word that is missing or left over, which no check of numbers should be about.

They are read off the student's own lines, and reported only where a check has failed in the way that the slip makes it
fail, and no known mistake explains it; a slip that the lines alone prove comes before the name of a mistake. ``check``
finds the lines of the objects that it is given, grading has a cell's text; lines that cannot be found (of code that was
typed into ``exec``) tell nothing.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import linecache
import re
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

import torch
from torch import nn

from exercise_kit.engine.course import course
from exercise_kit.engine.errors import LIBRARIES, OURS
from exercise_kit.engine.slip_searches import ALIKE, CAUSES, CERTAIN, SEARCHES, UNTOUCHED, Definition, Slip
from exercise_kit.engine.verdict import BETWEEN, CheckResult, Verdict
from exercise_kit.reasons import Reason


def find_definitions(objects: Sequence[object]) -> list[Definition]:
    """The definitions of objects of this process, as far as their lines can be found."""
    found = []
    for each in objects:
        written = _find_written_functions(each)
        namespace = next((function.__globals__ for _, function in written.values()), {})
        nodes = {name: node for name, (node, _) in written.items()}
        found.append(Definition(nodes, inspect.isclass(each), namespace, dir(each)))
    return found


def parse_definitions(source: str, names: Sequence[str]) -> list[Definition]:
    """The definitions of these names in a student's text, of which nothing is run; none where it cannot be parsed."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return []
    known = {
        each: nn.Module for exercise in course().exercises.values() if exercise.is_class for each in exercise.objects
    }
    namespace = {**vars(nn), "nn": nn, "torch": torch, **known}
    nodes = {each.name: each for each in body if isinstance(each, ast.FunctionDef | ast.ClassDef)}
    return [_make_definition(nodes[name], namespace) for name in names if name in nodes]


def _make_definition(node: ast.FunctionDef | ast.ClassDef, namespace: Mapping[str, Any]) -> Definition:
    if isinstance(node, ast.FunctionDef):
        return Definition({node.name: node}, False, namespace)
    methods = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    assigned = {
        each.id
        for part in node.body
        for each in ast.walk(part)
        if isinstance(each, ast.Name) and part not in methods.values()
    }
    return Definition(methods, True, namespace, {*dir(nn.Module), *methods, *assigned})


def find_slip(definitions: Sequence[Definition], results: Sequence[CheckResult]) -> Slip | None:
    """The slip that makes checks fail, the first of several; None where there is none.

    Args:
        definitions: what the student wrote.
        results: of the checks, failures with the mistakes that explain them.
    """
    failed = [each for each in results if each.verdict == Verdict.FAIL and each.reason not in UNTOUCHED]
    unnamed = {each.reason for each in failed if not each.causes}
    guessed = any(each.misconception is None or BETWEEN in each.misconception for each in failed)
    searches = [
        *(CAUSES if any(each.reason != Reason.RAISED for each in failed) else ()),
        *(CERTAIN if guessed else ()),
    ]
    searches += [search for search, of in SEARCHES if not unnamed.isdisjoint(of)]
    return next((slip for search in searches for each in definitions if (slip := search(each))), None)


def describe_leftover_stub_line(definitions: Sequence[Definition]) -> str:
    """A sentence where ``raise NotImplementedError`` of the stub stands above an answer; "" elsewhere."""
    for each in definitions:
        for name, node in each.functions.items():
            if _is_stub(node) and len(_list_statements(node)) > 1:
                return (
                    f"`{name}` still begins with the stub's `raise NotImplementedError`, so no line below it runs. "
                    "Delete that line, run the cell, and check again."
                )
    return ""


def describe_unwritten_part(name: str, definitions: Sequence[Definition]) -> str:
    """A sentence where all of an answer is written, and something that it uses is not; "" elsewhere."""
    functions = [ast.unparse(node) for each in definitions for node in each.functions.values()]
    if not functions or any("NotImplementedError" in each for each in functions):
        return ""
    return f"{name} is written, but uses another exercise that is not written yet. Write that one first."


def describe_misnamed_answer(name: str, value: object) -> str:
    """A sentence where the stub called ``name`` stands beside an answer of nearly that name; "" elsewhere.

    The other one has the same parameters, and its name is that of no exercise.
    """
    function = next((each for _, each in _find_written_functions(value).values()), None)
    if function is None:
        return ""
    known = {each for exercise in course().exercises.values() for each in exercise.objects}
    values = (
        (key, each) for key, each in function.__globals__.items() if key not in known and type(each) is type(value)
    )
    others = [
        key
        for key, each in values
        if _list_parameter_names(each) == _list_parameter_names(value) and _is_written_answer(each)
    ]
    near = [each for each in others if re.search(rf"(^|_){name}(_|$)", each)]
    near += difflib.get_close_matches(name, others, 1, ALIKE)
    if not near:
        return ""
    return (
        f"The `{name}` that was checked is the empty one, and there is a `{near[0]}`. Is that yours? Call it `{name}`."
    )


def _list_parameter_names(value: Any) -> list[str] | None:
    """The names of the parameters; None of what does not tell, as an exception's class without a method of its own."""
    try:
        return list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return None


def _is_written_answer(value: object) -> bool:
    written = _find_written_functions(value)
    return bool(written) and not any(_is_stub(node) for node, _ in written.values())


def _find_written_functions(value: object) -> Mapping[str, tuple[ast.FunctionDef, FunctionType]]:
    """The functions that a student wrote, by name: a function itself, or the methods of a class; with their lines."""
    held = vars(value).values() if inspect.isclass(value) else (value,)
    found = {}
    for each in held:
        function = inspect.unwrap(each) if callable(each) else None
        if isinstance(function, FunctionType) and (node := _parse_function(function)):
            found[function.__name__] = node, function
    return found


def _parse_function(function: FunctionType) -> ast.FunctionDef | None:
    file, line = function.__code__.co_filename, function.__code__.co_firstlineno
    if file.startswith((*OURS, *LIBRARIES)):
        return None
    lines = ["\n" if each.lstrip()[:1] in "%!" else each for each in linecache.getlines(file)]
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None
    nodes = (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == function.__name__)
    return next((each for each in nodes if line in (each.lineno, *(one.lineno for one in each.decorator_list))), None)


def _list_statements(node: ast.FunctionDef) -> list[ast.stmt]:
    """Its statements without the docstring."""
    return [each for each in node.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]


def _is_stub(node: ast.FunctionDef) -> bool:
    first = next(iter(_list_statements(node)), None)
    return isinstance(first, ast.Raise) and "NotImplementedError" in ast.unparse(first)
