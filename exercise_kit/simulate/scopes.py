"""Which names in a definition mean something outside of it, and a right answer under other names."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Node = TypeVar("_Node", bound=ast.AST)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def rename_outer_names(
    node: _Node, rename: Callable[[str], str], is_one_name: Callable[[str], bool] = lambda dotted: False
) -> _Node:
    """A definition with other names for what it looks up outside of itself; ``node`` is changed.

    Args:
        node: a statement or an expression at the top of a module.
        rename: is given a name, or ``name.attribute`` where ``is_one_name`` says so; gives the new name.
        is_one_name: whether a ``name.attribute`` is to be replaced as a whole.
    """
    changed: Any = _OuterNames(rename, is_one_name).visit(node)
    fixed: _Node = ast.fix_missing_locations(changed)
    return fixed


class _OuterNames(ast.NodeTransformer):
    def __init__(self, rename: Callable[[str], str], is_one_name: Callable[[str], bool]) -> None:
        self._rename = rename
        self._is_one_name = is_one_name
        self._scopes: list[tuple[frozenset[str], bool]] = []

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Name(self._rename_unless_bound(node.id), node.ctx), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and not self._is_bound_in_scope(node.value.id):
            dotted = f"{node.value.id}.{node.attr}"
            if self._is_one_name(dotted):
                return ast.copy_location(ast.Name(self._rename(dotted), node.ctx), node)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = node.name if self._scopes else self._rename(node.name)
        node.decorator_list = self._visit_each(node.decorator_list)
        return self._rename_in_function(node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return self._rename_in_function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = node.name if self._scopes else self._rename(node.name)
        node.decorator_list, node.bases = self._visit_each(node.decorator_list), self._visit_each(node.bases)
        node.keywords = self._visit_each(node.keywords)
        self._scopes.append((_find_bound_names(node.body), True))
        node.body = self._visit_each(node.body)
        self._scopes.pop()
        return node

    def visit_Global(self, node: ast.Global) -> ast.AST:
        return ast.copy_location(ast.Global([self._rename(name) for name in node.names]), node)

    def visit(self, node: ast.AST) -> ast.AST:
        """Visit a node; a comprehension is a scope of its own."""
        if not isinstance(node, _LOOPS):
            changed: ast.AST = super().visit(node)
            return changed
        targets = frozenset(
            each.id for loop in node.generators for each in ast.walk(loop.target) if isinstance(each, ast.Name)
        )
        self._scopes.append((targets, False))
        self.generic_visit(node)
        self._scopes.pop()
        return node

    def _rename_in_function(self, node: _Node) -> _Node:
        assert isinstance(node, _Function)
        arguments = node.args
        arguments.defaults, arguments.kw_defaults = (
            self._visit_each(arguments.defaults),
            self._visit_each(arguments.kw_defaults),
        )
        names = {each.arg for each in ast.walk(arguments) if isinstance(each, ast.arg)}
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        self._scopes.append((_find_bound_names(body) | names, False))
        visited = self._visit_each(body)
        node.body = visited[0] if isinstance(node, ast.Lambda) else visited
        self._scopes.pop()
        return node

    def _visit_each(self, nodes: Iterable[Any]) -> list[Any]:
        return [node and self.visit(node) for node in nodes]

    def _rename_unless_bound(self, name: str) -> str:
        return name if self._is_bound_in_scope(name) else self._rename(name)

    def _is_bound_in_scope(self, name: str) -> bool:
        """Say whether a name means something in a scope that is open; a class's own are not seen in its methods."""
        if self._scopes and name in self._scopes[-1][0]:
            return True
        return any(name in names for names, of_class in self._scopes if not of_class)


def _find_bound_names(body: Iterable[ast.AST]) -> frozenset[str]:
    """The names that the statements of a scope bind in it."""
    found, elsewhere = set[str](), set[str]()
    for node in _walk_scope(body):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {each.asname or each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.Global | ast.Nonlocal):
            elsewhere |= set(node.names)
        elif isinstance(node, ast.ExceptHandler | ast.FunctionDef | ast.ClassDef) and node.name:
            found.add(node.name)
    return frozenset(found - elsewhere)


def _walk_scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        yield node
        if not isinstance(node, (*_SCOPES, *_LOOPS)):
            yield from _walk_scope(ast.iter_child_nodes(node))


_RESULTS = ("result", "answer", "outcome", "given_back")


def rewrite_in_other_style(source: str) -> str:
    """The same code, laid out as Python writes it, with a name for all that a function returns."""
    tree = ast.parse(source)
    taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    name = next(each for each in _RESULTS if each not in taken)
    return ast.unparse(ast.fix_missing_locations(_NamesResults(name).visit(tree)))


def inline_required_cells(source: str, required_cells: Sequence[str], names: Mapping[str, str]) -> str:
    """A cell that brings along what it needs, under names of its own.

    Args:
        source: of the cell.
        required_cells: sources of what it calls, what is needed first standing first.
        names: what those define → what it is called here.
    """
    statements = (statement for part in (*required_cells, source) for statement in ast.parse(part).body)
    return "\n\n".join(ast.unparse(rename_outer_names(each, lambda name: names.get(name, name))) for each in statements)


class _NamesResults(ast.NodeTransformer):
    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Return(self, node: ast.Return) -> ast.AST | list[ast.stmt]:
        if node.value is None or isinstance(node.value, ast.Name | ast.Constant):
            return node
        kept: ast.stmt = ast.Assign([ast.Name(self._name, ast.Store())], node.value, lineno=node.lineno)
        return [kept, ast.Return(ast.Name(self._name, ast.Load()))]
