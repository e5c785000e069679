"""The source of an answer that a student wrote in a notebook, with everything that it needs in a file of its own."""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import symtable
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any

from exercise_kit.engine.compare import describe_kind

_MARKS = ("### BEGIN SOLUTION", "### END SOLUTION")


class CannotKeepError(Exception):
    """Some source cannot stand alone; the message is a sentence for the student."""


@dataclass
class PartSource:
    """A part's source.

    Attributes: ``imports``, the statements that it needs; ``definitions``, helpers first; ``calls``, the other parts
    that it calls, by name.
    """

    imports: list[str] = field(default_factory=list)
    definitions: list[str] = field(default_factory=list)
    calls: dict[str, object] = field(default_factory=dict)


def collect_source(objects: Mapping[str, object], parts: Collection[str], kept_in: str) -> PartSource:
    """Collect what a file needs to hold these objects.

    Args:
        objects: name → function or class of the student.
        parts: names that have a place of their own in the file, or come with the course.
        kept_in: name of the module of the file: what comes from there is in it already.

    Raises:
        CannotKeepError: the source cannot be found, or needs something that only the notebook has.
    """
    found, seen = PartSource(), set(objects)

    def add_definition(name: str, value: Any) -> None:
        text, namespace = _read_definition(name, value), _get_defining_namespace(value)
        for needed in _list_global_names(text):
            if needed in namespace and needed not in seen:
                seen.add(needed)
                add_needed_name(name, needed, namespace[needed])
            elif needed not in seen and not hasattr(builtins, needed):
                raise CannotKeepError(f"`{name}` uses `{needed}`, which is not defined.")
        found.definitions.append(text)

    def add_needed_name(name: str, needed: str, value: Any) -> None:
        if needed in parts:
            found.calls[needed] = value
        elif getattr(value, "__module__", None) == kept_in:
            return
        elif statement := _write_import(needed, value):
            found.imports.append(statement)
        elif inspect.isfunction(value) or inspect.isclass(value):
            add_definition(needed, value)
        elif _is_literal_value(value):
            found.definitions.append(f"{needed} = {value!r}")
        else:
            where = f"`{name}` uses `{needed}`, {describe_kind(value)} of this notebook"
            raise CannotKeepError(f"{where}: pass it as an argument, or make it inside `{name}`.")

    for name, value in objects.items():
        add_definition(name, value)
    return found


def _read_definition(name: str, value: Any) -> str:
    """The lines of a function or class, with its decorators and without the marks of a model solution."""
    lines = _read_source_lines(name, value)
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:  # a cell with a line of IPython's own, as %time or !ls
        tree = ast.parse("".join("\n" if line.lstrip()[:1] in "%!" else line for line in lines))
    kinds = (ast.FunctionDef, ast.ClassDef)
    nodes = [node for node in tree.body if isinstance(node, kinds) and node.name == value.__name__]
    if not nodes:
        raise CannotKeepError(f"The lines of `{name}` were not found: write it with def or class in a cell of its own.")
    first = min(each.lineno for each in (nodes[-1], *nodes[-1].decorator_list))
    text = [line for line in lines[first - 1 : nodes[-1].end_lineno] if line.strip() not in _MARKS]
    alias = [] if value.__name__ == name else [f"\n\n{name} = {value.__name__}\n"]
    return "".join([*text, *alias]).rstrip()


def _read_source_lines(name: str, value: Any) -> list[str]:
    code = next((each.__code__ for each in _iterate_own_functions(value)), None)
    lines = linecache.getlines(code.co_filename) if code else []
    if not lines:
        raise CannotKeepError(f"The lines of `{name}` were not found: run its cell again, and then the check.")
    return lines


def _iterate_own_functions(value: Any) -> Iterator[Any]:
    """A function itself, or the methods of a class that were written in it."""
    held = vars(value).values() if inspect.isclass(value) else (value,)
    for each in (getattr(one, "__func__", one) for one in held):  # a static method or a class method holds its own
        if callable(each) and inspect.isfunction(function := inspect.unwrap(each)):
            yield function


def _get_defining_namespace(value: Any) -> Mapping[str, Any]:
    function = next(_iterate_own_functions(value), None)
    return function.__globals__ if function else vars(sys.modules[value.__module__])


def _list_global_names(text: str) -> list[str]:
    """The names that source looks up outside of itself, in order."""
    table = symtable.symtable(text, "<part>", "exec")
    own = {each.get_name() for each in table.get_symbols() if each.is_assigned()}

    def iterate_outside_names(
        scope: symtable.SymbolTable, is_global: Callable[[symtable.Symbol], bool]
    ) -> Iterator[str]:
        yield from (each.get_name() for each in scope.get_symbols() if is_global(each))
        for child in scope.get_children():
            yield from iterate_outside_names(child, symtable.Symbol.is_global)

    return [
        name for name in dict.fromkeys(iterate_outside_names(table, symtable.Symbol.is_referenced)) if name not in own
    ]


def _write_import(name: str, value: Any) -> str | None:
    """The statement that gives ``value`` this name in another file; None where there is none."""
    if isinstance(value, ModuleType):
        return f"import {value.__name__}" if value.__name__ == name else _write_from_import(name, value.__name__)
    module = getattr(value, "__module__", None)
    original = getattr(value, "__name__", None)
    if not isinstance(module, str) or not isinstance(original, str) or module == "__main__":
        return None
    for place in dict.fromkeys((module.partition(".")[0], module)):
        try:
            if getattr(import_module(place), original, None) is value:
                return f"from {place} import {original}" + ("" if original == name else f" as {name}")
        except ImportError:
            continue
    return None


def _write_from_import(name: str, module: str) -> str:
    parent, _, last = module.rpartition(".")
    return f"from {parent} import {last}" if parent and last == name else f"import {module} as {name}"


def _is_literal_value(value: object) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError, RecursionError):
        return False
