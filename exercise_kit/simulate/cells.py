"""From an object of the library to the source of a cell, as a student would write it.

A misconception is a function or class in one module, and what it calls stands in others. A student's cell has all of
it in one place, without the words that give the mistake away: decorators, docstrings, annotations.
"""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

import torch

from exercise_kit.engine.two_mistakes import Layout
from exercise_kit.simulate.modules import (
    NoSource,
    is_course_module,
    is_empty_subclass,
    is_lambda,
    is_ours,
    is_top_level_definition,
    read_module,
)
from exercise_kit.simulate.scopes import rename_outer_names

_HAS_FIELDS = frozenset({"dataclass", "NamedTuple"})


def strip_definition(statement: ast.stmt, is_ours: Callable[[str], bool]) -> ast.stmt:
    """A copy of a definition, without docstrings, annotations, and those decorators whose first name ``is_ours``."""
    stripped: ast.stmt = _Stripped(is_ours).visit(copy.deepcopy(statement))
    return stripped


class _Stripped(ast.NodeTransformer):
    def __init__(self, is_ours: Callable[[str], bool]) -> None:
        self._is_ours = is_ours
        self._fields = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._strip_decorators_and_docstring(node)
        node.returns = None
        fields, self._fields = self._fields, False
        self.generic_visit(node)
        self._fields = fields
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        marks = {_find_root_name(each) for each in (*node.decorator_list, *node.bases)}
        self._strip_decorators_and_docstring(node)
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

    def _strip_decorators_and_docstring(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        node.decorator_list = [each for each in node.decorator_list if not self._is_ours(_find_root_name(each))]
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            node.body = node.body[1:] or [ast.Pass()]


def _find_root_name(node: ast.expr) -> str:
    """The first name of a decorator, or of a base: ``one_hot`` of ``@one_hot.misconception(...)``."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


@dataclass(frozen=True)
class _Place:
    """A name at the top of a module."""

    module: str
    name: str


class _Cell:
    """A cell in the making.

    Args:
        names: what the objects of which the cell is made are called in it.
        prefix: put before the names of all else that it defines.
        keeps: whether a module of ours can be imported by those who run the cell.
        instead: dotted names, as the library writes them → the source of a function to call in their place.
    """

    def __init__(
        self, names: Mapping[_Place, str], prefix: str, keeps: Callable[[str], bool], instead: Mapping[str, str]
    ) -> None:
        self._prefix, self._keeps, self._instead = prefix, keeps, instead
        self.named: dict[_Place, str] = dict(names)
        self.imports: dict[str, None] = {}
        self.parts: list[str] = []
        self._done: set[_Place] = set()
        self._bound: dict[str, str] = {}

    def write_definition(self, place: _Place) -> str:
        """Write the definition of ``place``, and before it all that it needs; gives its name in the cell."""
        name = self.named.setdefault(place, self._make_unused_name(place.name))
        if place in self._done:
            return name
        self._done.add(place)
        statement = read_module(place.module).statement(place.name)
        if statement is None:
            raise NoSource(f"{place.name} is no definition of {place.module}")
        statement = strip_definition(statement, lambda root: is_ours(place.module, root))
        self.parts.append(ast.unparse(self._rename_for_cell(place, statement)))
        return name

    def _resolve_name(self, owner: _Place, used: str) -> str:
        """The name in the cell of what ``used`` stands for in the module of ``owner``."""
        if used == owner.name:
            return self.named[owner]
        first, _, attribute = used.partition(".")
        module = read_module(owner.module)
        if used in self._instead:
            return self._define_stand_in(used)
        if attribute:
            return self._import_or_define(module.modules()[first], attribute)
        if module.statement(first) is not None:
            return self.write_definition(_Place(owner.module, first))
        if first in module.from_imports:
            origin, name = module.from_imports[first]
            if is_course_module(origin):
                return self._import_or_define(origin, name)
        if first in module.import_lines:
            self._add_import(first, module.import_lines[first])
        elif first not in vars(builtins):
            raise NoSource(f"nobody knows what {first} is in {owner.module}")
        return first

    def _import_or_define(self, origin: str, name: str) -> str:
        """The name in the cell of what one of our modules offers as ``name``."""
        value = getattr(import_module(origin), name)
        defines = inspect.isfunction(value) or inspect.isclass(value)
        owner = value.__module__ if defines else origin
        if isinstance(value, ModuleType) or not is_course_module(owner):
            raise NoSource(f"{origin}.{name} is imported in a way that no cell can follow")
        if self._keeps(owner):
            self._add_import(name, f"from {origin} import {name}")
            return name
        return self.write_definition(_Place(owner, value.__name__ if defines else name))

    def write_object(self, name: str, value: Any) -> None:
        """Write one of the objects of which the cell is made, which may have been put together of others."""
        if is_top_level_definition(value):
            self.write_definition(_locate_definition(value))
        elif isinstance(value, partial):
            called = self._write_expression(value.func)
            given = [*map(self._write_expression, value.args), "*inputs"]
            given += [f"{key}={self._write_expression(each)}" for key, each in value.keywords.items()]
            self.parts.append(f"def {name}(*inputs):\n    return {called}({', '.join(given)})")
        elif is_empty_subclass(value):
            self.parts.append(f"class {name}({', '.join(map(self._write_expression, value.__bases__))}):\n    pass")
        else:
            raise NoSource(f"nobody can write {value!r} down")

    def _write_expression(self, value: Any) -> str:
        """Return what gives ``value`` in the cell."""
        if is_top_level_definition(value):
            return self.write_definition(_locate_definition(value))
        if isinstance(value, Layout):
            self._add_import("SimpleNamespace", "from types import SimpleNamespace")
            return f"SimpleNamespace(right={self._write_expression(value.right)})"
        if isinstance(value, partial) or is_lambda(value) or is_empty_subclass(value):
            name = self._make_unused_name("part")
            self.named[_Place("", name)] = name
            if is_lambda(value):
                self.parts.append(f"{name} = {self._write_lambda(value)}")
            else:
                self.write_object(name, value)
            return name
        if isinstance(value, tuple):
            return f"({''.join(f'{self._write_expression(each)}, ' for each in value)})"
        if isinstance(value, int | float | str | None) or value in vars(builtins).values():
            return getattr(value, "__name__", repr(value))
        return self._import_from_library(value)

    def _import_from_library(self, value: Any) -> str:
        """Return what gives something of torch or of Python's own modules."""
        if isinstance(value, torch.dtype):
            self._add_import("torch", "import torch")
            return repr(value)
        name = getattr(value, "__name__", "")
        for owner in (torch, torch.Tensor):
            if name and getattr(owner, name, None) is value:
                self._add_import("torch", "import torch")
                return f"torch.{'Tensor.' if owner is torch.Tensor else ''}{name}"
        origin = getattr(value, "__module__", None)
        if name and origin in sys.stdlib_module_names and getattr(sys.modules[origin], name, None) is value:
            self._add_import(name, f"from {origin} import {name}")
            return str(name)
        raise NoSource(f"nobody can write {value!r} down")

    def _write_lambda(self, function: FunctionType) -> str:
        node = read_module(function.__module__).find_lambda(function)
        return ast.unparse(self._rename_for_cell(_Place(function.__module__, "<lambda>"), node))

    def _rename_for_cell(self, owner: _Place, node: ast.AST) -> ast.AST:
        """``node``, which stands in the module of ``owner``, with the names that it has in the cell."""
        modules = read_module(owner.module).modules()
        return rename_outer_names(
            node,
            lambda used: self._resolve_name(owner, used),
            lambda dotted: dotted in self._instead or dotted.partition(".")[0] in modules,
        )

    def _define_stand_in(self, used: str) -> str:
        """Define what is called in the place of ``used``; gives its name."""
        place = _Place("", used)
        if place not in self.named:
            function = ast.parse(self._instead[used]).body[0]
            assert isinstance(function, ast.FunctionDef), "a stand-in is a function"
            self.named[place] = function.name = self._make_unused_name(function.name)
            for name, line in (("torch", "import torch"), ("F", "import torch.nn.functional as F")):
                self._add_import(name, line)
            self.parts.append(ast.unparse(function))
        return self.named[place]

    def _add_import(self, name: str, line: str) -> None:
        if self._bound.setdefault(name, line) != line:
            raise NoSource(f"{name} is imported twice: {line}; {self._bound[name]}")
        self.imports[line] = None

    def _make_unused_name(self, name: str) -> str:
        wanted = f"{self._prefix}_{name.strip('_')}"
        taken, count = set(self.named.values()), 1
        while (free := wanted if count == 1 else f"{wanted}_{count}") in taken:
            count += 1
        return free


def write_cell(
    objects: Mapping[str, Any],
    prefix: str,
    is_kept: Callable[[str], bool] = lambda module: False,
    replacements: Mapping[str, str] | None = None,
) -> str:
    """The source of a cell that defines objects and needs nothing of ours but the modules that ``is_kept`` allows.

    Args:
        objects: the objects, which are functions or classes at the top of a module, by the names that the cell gives.
        prefix: put before the names of the helpers, so that cells of one notebook stay apart.
        is_kept: whether those who run the cell can import a module of ours.
        replacements: for a name by which the library calls something, the source to call in its place.

    Raises:
        NoSource: one of the objects was made in a way that leaves no source.
    """
    places = {name: _locate_definition(each) for name, each in objects.items() if is_top_level_definition(each)}
    if len(set(places.values())) < len(places):
        raise NoSource("one object has two names")
    cell = _Cell({place: name for name, place in places.items()}, prefix, is_kept, replacements or {})
    for name, value in objects.items():
        cell.write_object(name, value)
    imports = sorted(cell.imports, key=lambda line: (line.startswith("from"), line))
    return "\n\n".join(filter(None, ["\n".join(imports), *cell.parts]))


def _locate_definition(value: Any) -> _Place:
    return _Place(value.__module__, value.__name__)
