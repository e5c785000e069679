"""A right answer in other words, and one that needs nobody else's."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from exercise_kit.simulate.scopes import renamed

_RESULTS = ("result", "answer", "outcome", "given_back")


def restyled(source: str) -> str:
    """The same code, laid out as Python writes it, with a name for all that a function returns."""
    tree = ast.parse(source)
    taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    name = next(each for each in _RESULTS if each not in taken)
    return ast.unparse(ast.fix_missing_locations(_NamesResults(name).visit(tree)))


def with_own(source: str, needed: Sequence[str], names: Mapping[str, str]) -> str:
    """A cell that brings along what it needs, under names of its own.

    Args:
        source: of the cell.
        needed: sources of what it calls, what is needed first standing first.
        names: what those define → what it is called here.
    """
    statements = (statement for part in (*needed, source) for statement in ast.parse(part).body)
    return "\n\n".join(ast.unparse(renamed(each, lambda name: names.get(name, name))) for each in statements)


class _NamesResults(ast.NodeTransformer):
    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Return(self, node: ast.Return) -> ast.AST | list[ast.stmt]:
        if node.value is None or isinstance(node.value, ast.Name | ast.Constant):
            return node
        kept: ast.stmt = ast.Assign([ast.Name(self._name, ast.Store())], node.value, lineno=node.lineno)
        return [kept, ast.Return(ast.Name(self._name, ast.Load()))]
