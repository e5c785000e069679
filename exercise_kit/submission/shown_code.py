"""Whether the code that answered is the code that the page shows.

A cell can hand an answer's name to other code where nobody who reads the answer sees it: by ``__code__``, by a call
that runs once the cells are over, by a decorator that gives something else. A worker tells whose code has answered
(:meth:`exercise_kit.worker.cells.Cells.find_code_objects`); here that is compared with the cells' last definition
of the name.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from exercise_kit.quoting import quote_first_line
from exercise_kit.submission.slice import parse
from exercise_kit.submission.static_rules import (
    DEFINED,
    find_called_name,
    read_constant_text,
    resolve_dotted_name,
    resolve_imported_names,
)
from exercise_kit.submission.submission import CellSource

_LONGEST_NAME = 30  # as the worker shortens them
# by which a call of a model comes to code
_CALLED = ("forward", "__call__", "__init__", "__new__", "__getattr__", "__setattr__", "__getattribute__")
_BUILT_IN = frozenset({"staticmethod", "classmethod", "property"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class OtherCode:
    """Code answered that the page does not show as the answer.

    Attributes:
        words: a clause that says so.
        is_certain: whether nothing that the cells show could account for it.
    """

    words: str
    is_certain: bool


@dataclass(frozen=True)
class _Notebook:
    cells: Sequence[CellSource]
    broken: Collection[int]

    @cached_property
    def trees(self) -> list[tuple[int, ast.Module]]:
        return [(each.index, tree) for each in self.cells if (tree := parse(each.source))]

    @cached_property
    def imports(self) -> Mapping[str, str]:
        own = {node.name for _, tree in self.trees for node in ast.walk(tree) if isinstance(node, DEFINED)}
        return {name: way for name, way in resolve_imported_names(t for _, t in self.trees).items() if name not in own}

    def find_definitions(self, name: str) -> list[tuple[int, ast.stmt]] | None:
        """Find what may have defined a name last, each with its cell; None: something else than a definition may have.

        What stands in a condition, or in a cell that broke off, may have run or not.
        """
        found: list[tuple[int, ast.stmt] | None] = []
        for index, tree in self.trees:
            for statement in tree.body:
                bound = [each for each in _walk_scope(statement) if name in _list_bound_names(each)]
                if bound and statement in bound and index not in self.broken:
                    found = []
                found += [(index, each) if isinstance(each, DEFINED) else None for each in bound]
        known = [each for each in found if each is not None]
        return known if len(known) == len(found) else None

    def are_library_decorators(self, decorators: Sequence[ast.expr]) -> bool:
        """Say whether none of the decorators is the student's own."""
        return all(
            find_called_name(each) in _BUILT_IN
            or resolve_dotted_name(each.func if isinstance(each, ast.Call) else each, self.imports)
            for each in decorators
        )

    def is_attribute_set(self, member: str) -> bool:
        """Say whether an attribute of this name, or of a computed one, is set on anything but an object's own self."""
        for node in chain.from_iterable(ast.walk(tree) for _, tree in self.trees):
            if isinstance(node, ast.Attribute) and node.attr == member and not isinstance(node.ctx, ast.Load):
                if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
                    return True
            elif (
                isinstance(node, ast.Call)
                and find_called_name(node.func) in ("setattr", "delattr")
                and len(node.args) > 1
            ):
                text = read_constant_text(node.args[1])
                if text is None or text == member:
                    return True
        return False

    def may_change_class(self, name: str) -> bool:
        """Say whether an attribute of a class is set, or the class is given to a function of the student's that may."""
        own = {node.name for _, tree in self.trees for node in ast.walk(tree) if isinstance(node, DEFINED)} | {
            "setattr"
        }
        for node in chain.from_iterable(ast.walk(tree) for _, tree in self.trees):
            is_set = isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
            is_own_call = isinstance(node, ast.Call) and find_called_name(node.func) in own
            given = [node.value] if is_set else node.args if is_own_call else []  # type: ignore[attr-defined]
            if any(isinstance(each, ast.Name) and each.id == name for each in given):
                return True
        return False


def find_code_that_answered_instead(
    name: str, cells: Sequence[CellSource], broken: Collection[int], answered: Sequence[str]
) -> OtherCode | None:
    """Return what answered in place of the definition that the page shows; None where it was that, or nobody can tell.

    Args:
        name: that a student defines.
        cells: that ran.
        broken: the indexes of those that ended in an error.
        answered: whose code has answered, as the worker tells it.
    """
    notebook = _Notebook(cells, broken)
    lines = [line.split(" ") for line in answered if line.split(" ")[0].partition(".")[0] == name]
    definitions = notebook.find_definitions(name) if lines else None
    if not definitions:
        return None
    found = [_compare_definition(notebook, cell, node, lines) for cell, node in definitions]
    return None if None in found else found[-1]


def _compare_definition(
    notebook: _Notebook, cell: int, node: ast.stmt, lines: Sequence[Sequence[str]]
) -> OtherCode | None:
    if isinstance(node, ast.ClassDef):
        return _compare_class(notebook, cell, node, lines)
    assert isinstance(node, _Function), "a definition is one of the two"
    return next(
        filter(None, (_compare_function(notebook, cell, node, places, node.name) for _, *places in lines)), None
    )


def _compare_class(
    notebook: _Notebook, cell: int, node: ast.ClassDef, lines: Sequence[Sequence[str]]
) -> OtherCode | None:
    if not notebook.are_library_decorators(node.decorator_list):
        return None
    methods = _find_methods(node)
    # a metaclass, a base class or a function that is given the class may have changed it for all to see
    is_open = bool(node.keywords) or notebook.may_change_class(node.name)
    is_open = is_open or not _inherits_from_library(notebook, node)
    for member, unlike in _find_differing_members(notebook, cell, node, methods, lines):
        in_sight = is_open or notebook.is_attribute_set(member)
        if in_sight and member not in (*methods, *_CALLED):
            continue  # the page shows that it was added, and no call of a model comes by it
        return OtherCode(unlike.words, unlike.is_certain and not in_sight)
    return None


def _find_differing_members(
    notebook: _Notebook,
    cell: int,
    node: ast.ClassDef,
    methods: Mapping[str, _Function | None],
    lines: Sequence[Sequence[str]],
) -> Iterator[tuple[str, OtherCode]]:
    """The members of a class that are not as its cell shows them."""
    for subject, *places in lines:
        member = subject.partition(".")[2]
        if method := methods.get(member):
            unlike = _compare_function(
                notebook, cell, method, places, f"{node.name}.{member}", bool(node.decorator_list)
            )
            if unlike:
                yield member, unlike
        # a dataclass writes its own `__init__`, which holds what its fields' defaults are made by
        elif member not in methods and places and not (node.decorator_list and member.startswith("__")):
            yield (
                member,
                OtherCode(f"{quote_first_line(f'{node.name}.{member}')} ran, which the class does not show", True),
            )
    members = {subject.partition(".")[2] for subject, *_ in lines}
    for name, method in methods.items():
        if method and name not in members and not method.decorator_list:
            yield (
                name,
                OtherCode(f"{quote_first_line(f'{node.name}.{name}')} is not there when the class answers", True),
            )


def _compare_function(
    notebook: _Notebook,
    cell: int,
    node: _Function,
    places: Sequence[str],
    called_as: str,
    in_decorated: bool = False,
) -> OtherCode | None:
    shown = f"{cell}:{min(node.lineno, *(each.lineno for each in node.decorator_list), node.lineno)}"
    shown = f"{shown}:{node.name[:_LONGEST_NAME]}"
    by_library = notebook.are_library_decorators(node.decorator_list)
    if places[:1] == [shown] or (shown in places and not by_library):
        return None
    words = f"the code of {quote_first_line(called_as)} that ran is not the code that its cell shows"
    return OtherCode(words, bool(places) or not (node.decorator_list or in_decorated))


def _inherits_from_library(notebook: _Notebook, node: ast.ClassDef) -> bool:
    return all(
        resolve_dotted_name(base, notebook.imports) or getattr(base, "id", "") == "object" for base in node.bases
    )


def _find_methods(node: ast.ClassDef) -> dict[str, _Function | None]:
    """The names that a class's body binds, as it holds them; with the method where it does so once, by a definition."""
    found: dict[str, _Function | None] = {}
    for each in chain.from_iterable(map(_walk_scope, node.body)):
        for name in _list_bound_names(each):
            private = name.startswith("__") and not name.endswith("__")
            held = f"_{node.name.lstrip('_')}{name}"[:_LONGEST_NAME] if private else name[:_LONGEST_NAME]
            once = held not in found and each in node.body
            found[held] = each if once and isinstance(each, _Function) else None
    return found


def _walk_scope(statement: ast.AST) -> Iterator[ast.AST]:
    """A statement and what is in it, without what stands in functions and classes that it defines."""
    yield statement
    for child in ast.iter_child_nodes(statement):
        if not isinstance(statement, (*DEFINED, ast.Lambda)):
            yield from _walk_scope(child)


def _list_bound_names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, (*DEFINED, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name
    elif isinstance(node, ast.alias):
        yield node.asname or node.name.partition(".")[0]
