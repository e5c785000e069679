"""Whether an answer is the reference, copied: the same syntax tree, whatever its names and its layout.

A flag for a person, no verdict: short answers, and those whose every line a lesson asks for, look alike in honest
work, so they are never compared.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib.resources import files
from itertools import chain, islice
from pathlib import Path

from exercise_kit.engine.course import course, package
from exercise_kit.submission.slice import parse

# three or four plain lines have fewer nodes; students who have never met write those alike
LEAST_NODES = 75
# several times as many as the longest function of the reference has
MOST_NODES = 3000


def is_copied(exercise: str, objects: Iterable[str], answer: str, model_answer: str | None) -> bool:
    """Whether each longer function of an answer is one of the model solution's or of the package's reference.

    Args:
        exercise: its name.
        objects: what a student defines in it.
        answer: the source of the student's cell.
        model_answer: the source of the model solution's cell, if it is there.
    """
    if exercise in course().prescribed:
        return False
    models = {fingerprint for name in objects for fingerprint in _package_fingerprints(name)}
    models |= set(_fingerprints(parse(model_answer or "")))
    written = set(_fingerprints(parse(answer)))
    return bool(written) and written <= models


def _fingerprints(tree: ast.AST | None) -> Iterator[str]:
    """One for each function and method of some length: its tree in writing, without what a copyist changes."""
    for node in _functions(tree):
        # what is nested too deep to be written down, or has an endless number in it, is nobody's reference
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            bare = _Stripped().visit(ast.parse(ast.unparse(node)))
            if sum(1 for _ in ast.walk(bare)) >= LEAST_NODES:
                yield ast.dump(bare)


def _functions(tree: ast.AST | None) -> Iterator[ast.AST]:
    """The functions at the top level and the methods of its classes, but none so long that no reference is."""
    body = [tree] if isinstance(tree, ast.ClassDef | ast.FunctionDef) else getattr(tree, "body", [])
    for node in chain.from_iterable(each.body if isinstance(each, ast.ClassDef) else [each] for each in body):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if is_function and sum(1 for _ in islice(ast.walk(node), MOST_NODES)) < MOST_NODES:
            yield node


@cache
def _package_fingerprints(name: str) -> frozenset[str]:
    """Those of the package's own definition of a name."""
    folder = Path(str(files(package())))
    found: set[str] = set()
    for home in course().copied_from:
        for node in ast.parse((folder / f"{home}.py").read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
                found |= set(_fingerprints(node))
    return frozenset(found)


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
        return ast.arg(arg=self._named(node.arg))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(id=self._named(node.id), ctx=ast.Load())

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        of_self = isinstance(node.value, ast.Name) and self.names.get(node.value.id) == "name0"
        name = self._named(f".{node.attr}") if of_self else node.attr
        return ast.Attribute(value=self.visit(node.value), attr=name, ctx=ast.Load())

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.Constant(value="")

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant(value="") if isinstance(node.value, str) else node

    def _named(self, name: str) -> str:
        return self.names.setdefault(name, f"name{len(self.names)}")
