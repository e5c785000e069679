"""Whether an answer is a copy of the reference: the same syntax tree, whatever its names and its layout.

It is a flag for a person, not a verdict. Honest answers to a task of a few lines are alike: what a lesson's own cells
show (how a batch is taken apart, the five calls of a training step) says nothing about who wrote it. So a function
counts only if it has several statements that the lesson does not show, all of them as in the reference and in the same
order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain, islice
from pathlib import Path

from exercise_kit.engine.course import course
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.submission.released import ReleasedLesson
from exercise_kit.submission.slice import parse

# statements beyond those that the lesson shows; a reshape or a training step has four or five
LEAST_STATEMENTS = 7
# several times as many as the longest function of the reference has
MOST_NODES = 3000


@dataclass(frozen=True)
class Function:
    """A function as it is compared.

    Attributes: ``name``, ``tree`` (its syntax tree in writing, without what a copyist changes) and ``statements``
    (each in writing, on its own).
    """

    name: str
    tree: str
    statements: tuple[str, ...]


def describe_copy(exercise: str, objects: Iterable[str], answer: str, lesson: ReleasedLesson) -> str | None:
    """Return what is alike in an answer and the course's own code, as a clause; None: it is no copy.

    It is one when each longer function of it is one of the model solution's or of the package's reference.

    Args:
        exercise: its name.
        objects: what a student defines in it.
        answer: the source of the student's cell.
        lesson: as it was released, with its model solutions where they are there.
    """
    if exercise in course().prescribed:
        return None
    shown = _collect_shown_statements(tuple(cell.source for cell in lesson.cells if cell.code))
    written = [
        each
        for each in _iterate_long_functions(parse(answer))
        if len(_list_unshown_statements(each, shown)) >= LEAST_STATEMENTS
    ]
    if not written:
        return None
    models = {each.tree for name in objects for each in _list_package_functions(name)}
    models |= {each.tree for each in _list_model_functions(lesson.model_answers.get(exercise, ""))}
    if not {each.tree for each in written} <= models:
        return None
    return "; ".join(
        f"{each.name} has the {len(each.statements)} statements of the course's own code in their order, "
        f"{len(_list_unshown_statements(each, shown))} "
        f"of which the lesson does not show; names and layout were not compared"
        for each in written
    )


def _list_unshown_statements(function: Function, shown: frozenset[str]) -> list[str]:
    return [each for each in function.statements if each not in shown]


@cache
def _collect_shown_statements(sources: tuple[str, ...]) -> frozenset[str]:
    """The statements of a lesson's own cells, and an exception with a sentence, which docstrings ask for."""
    trees = filter(None, map(parse, (*sources, "raise ValueError('')")))
    return frozenset(each for tree in trees for each in _iterate_statements(tree))


def _iterate_long_functions(tree: ast.AST | None) -> Iterator[Function]:
    """The functions of a cell that have enough statements to be a copy; to write one down takes a while."""
    for node in _iterate_functions(tree):
        if (
            sum(isinstance(each, ast.stmt) and not _is_definition_or_constant(each) for each in ast.walk(node))
            >= LEAST_STATEMENTS
        ):
            yield from _normalize_function(node)


def _list_functions(tree: ast.AST | None) -> Iterator[Function]:
    """The functions and methods of a cell."""
    for node in _iterate_functions(tree):
        yield from _normalize_function(node)


def _normalize_function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Function]:
    # what is nested too deep to be written down, or has an endless number in it, is nobody's reference
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        yield Function(node.name, _dump_stripped(node), tuple(_iterate_statements(node)))


def _iterate_functions(tree: ast.AST | None) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the functions at the top level and the methods of its classes, but none so long that no reference is."""
    body = [tree] if isinstance(tree, ast.ClassDef | ast.FunctionDef) else getattr(tree, "body", [])
    for node in chain.from_iterable(each.body if isinstance(each, ast.ClassDef) else [each] for each in body):
        short = sum(1 for _ in islice(ast.walk(node), MOST_NODES)) < MOST_NODES
        if short and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _iterate_statements(tree: ast.AST) -> Iterator[str]:
    """Yield each statement in it, of a loop or a condition its head alone; docstrings and imports are none."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or _is_definition_or_constant(node):
            continue
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            yield _dump_stripped(_copy_without_body(node))


def _is_definition_or_constant(node: ast.stmt) -> bool:
    definitions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom
    return isinstance(node, definitions) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _copy_without_body(node: ast.stmt) -> ast.stmt:
    if not hasattr(node, "body"):
        return node
    inner = {"body": [ast.Pass()], "orelse": [], "finalbody": []}
    return type(node)(**{name: inner.get(name, value) for name, value in ast.iter_fields(node)})


def _dump_stripped(node: ast.stmt) -> str:
    return ast.dump(_Stripped().visit(ast.parse(ast.unparse(ast.fix_missing_locations(node)))))


@cache
def _list_model_functions(source: str) -> tuple[Function, ...]:
    """Those of a lesson's model answer."""
    return tuple(_list_functions(parse(source)))


@cache
def _list_package_functions(name: str) -> tuple[Function, ...]:
    """Those of the package's own definition of a name."""
    folder = Path(str(files(read_package_name())))
    found: list[Function] = []
    for module in course().copied_from:
        for node in ast.parse((folder / f"{module}.py").read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
                found += _list_functions(node)
    return tuple(found)


class _Stripped(ast.NodeTransformer):
    """Rename all variables by the order in which they appear, and drop docstrings, annotations, texts and imports."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if node.body and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant):
            del node.body[0]
        node.body = [line for line in node.body if not isinstance(line, ast.Import | ast.ImportFrom)] or [ast.Pass()]
        node.name, node.returns, node.decorator_list = "", None, []
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        return self.visit(ast.Assign(targets=[node.target], value=node.value))

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(arg=self._anonymize(node.arg))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(id=self._anonymize(node.id), ctx=ast.Load())

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        of_self = isinstance(node.value, ast.Name) and self.names.get(node.value.id) == "name0"
        name = self._anonymize(f".{node.attr}") if of_self else node.attr
        return ast.Attribute(value=self.visit(node.value), attr=name, ctx=ast.Load())

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.Constant(value="")

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant(value="") if isinstance(node.value, str) else node

    def _anonymize(self, name: str) -> str:
        return self.names.setdefault(name, f"name{len(self.names)}")
