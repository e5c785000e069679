"""A definition without what a student would not write: our decorators, docstrings, annotations."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable

_HAS_FIELDS = frozenset({"dataclass", "NamedTuple"})


def bare(statement: ast.stmt, is_ours: Callable[[str], bool]) -> ast.stmt:
    """A copy of a definition, without docstrings, annotations, and those decorators whose first name ``is_ours``."""
    stripped: ast.stmt = _Bare(is_ours).visit(copy.deepcopy(statement))
    return stripped


class _Bare(ast.NodeTransformer):
    def __init__(self, is_ours: Callable[[str], bool]) -> None:
        self._is_ours = is_ours
        self._fields = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._undress(node)
        node.returns = None
        fields, self._fields = self._fields, False
        self.generic_visit(node)
        self._fields = fields
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        marks = {_root(each) for each in (*node.decorator_list, *node.bases)}
        self._undress(node)
        fields, self._fields = self._fields, not marks.isdisjoint(_HAS_FIELDS)
        self.generic_visit(node)
        self._fields = fields
        node.body = node.body or [ast.Pass()]
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if self._fields:
            node.annotation = ast.Name("object", ast.Load())
            return node
        return ast.Assign([node.target], node.value, lineno=node.lineno) if node.value is not None else None

    def _undress(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        node.decorator_list = [each for each in node.decorator_list if not self._is_ours(_root(each))]
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            node.body = node.body[1:] or [ast.Pass()]


def _root(node: ast.expr) -> str:
    """The first name of a decorator, or of a base: ``patchify`` of ``@patchify.misconception(...)``."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
