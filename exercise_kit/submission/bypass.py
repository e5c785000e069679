"""Answers that a person should look at: their code names what the exercise does not allow, or can hide what it calls.

A second opinion, read off the code. What an answer called while it ran decides (:mod:`exercise_kit.engine.rules`); in a
student's own process no watch is final, so what could get round it is said here, and takes no point.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType
from typing import Any

from exercise_kit.engine.course import course
from exercise_kit.engine.rules import Rule
from exercise_kit.submission.reach import (
    DEFINED,
    called,
    defined_after_import,
    dotted_name,
    globals_of,
    import_names,
    outermost_names,
    reached,
    statements_of,
    text_of,
    used_imports,
)
from exercise_kit.submission.submission import CellSource
from exercise_kit.worker.watch import OPERATORS

_PACKAGES = ("torch", "torchvision", "timm", "transformers")
# what reaches code and variables that no name in the answer shows
_MODULES = frozenset(
    {"gc", "ctypes", "importlib", "builtins", "pickle", "marshal", "runpy", "imp", "code", "codeop", "pkgutil", "dis"}
    | {"dill", "cloudpickle", "cffi", "_ctypes", "_thread", "_testcapi", "multiprocessing", "subprocess", "__main__"}
    | {"threading", "concurrent", "asyncio", "worker"}
)
_PARTS = {
    "sys": frozenset({"modules", "_getframe", "setprofile", "getprofile", "settrace", "monitoring", "meta_path"}),
    "inspect": frozenset({"getsource", "getsourcelines", "currentframe", "getclosurevars", "getmembers"}),
    "torch": frozenset({"library", "package", "hub", "fx", "export", "overrides", "cpp_extension", "CompilationUnit"}),
    "types": frozenset({"FunctionType", "CodeType"}),
    "operator": frozenset({"attrgetter", "methodcaller"}),
    "numpy": frozenset({"ctypeslib"}),
}
_OF_TORCH = frozenset({"_assert", "_check"})
_ATTRIBUTES = frozenset(
    {"__code__", "__globals__", "__closure__", "cell_contents", "f_back", "f_globals", "f_locals", "f_builtins"}
    | {"tb_frame", "gi_frame", "__builtins__", "__subclasses__", "user_ns", "_getframe", "get_referrers", "setprofile"}
    | {"co_filename"}
)
# run by whoever looks at a result, after the call
_LATE = frozenset({"__class__", "__torch_dispatch__", "__torch_function__"})
_BUILTINS = frozenset({"eval", "exec", "compile", "__import__", "globals", "vars", "__builtins__", "__loader__"})
_OF_THE_NOTEBOOK = frozenset({"exec", "eval", "__builtins__"})
_VARIABLES = ("globals(", "locals(", "vars(", "builtins", "sys.modules", "__builtins__")
_CHANGES = frozenset({"update", "setdefault", "__setitem__"})


def possible_bypass(exercise: str, objects: Iterable[str], cells: Sequence[CellSource]) -> str | None:
    """What an answer, or code that it reaches, uses and a person should look at; None where there is nothing.

    Args:
        exercise: its name; one without a rule has nothing to get round.
        objects: the names that a student defines in it.
        cells: the cells that run.
    """
    rule = course().rules.get(exercise)
    if rule is None:
        return None
    try:
        return _found(rule, frozenset(objects), statements_of(cells))
    except RecursionError:
        return "code nested too deeply to be read"


def _found(rule: Rule, objects: frozenset[str], statements: Sequence[ast.stmt]) -> str | None:
    names = import_names(statements)
    found, wanted = reached(statements, objects, names)
    own = {name: place for name, place in defined_after_import(statements).items() if name in names}
    for place, statement in found:
        if isinstance(statement, DEFINED) and getattr(statement, "name", None) in rule.others:
            return str(getattr(statement, "name", ""))
        hidden = {name for name, at in own.items() if at <= place or isinstance(statement, DEFINED)}
        seen = {name: dotted for name, dotted in names.items() if name not in hidden} if hidden else names
        dotted = [dotted_name(node, seen) for node in outermost_names(statement) if not _is_stored(node)]
        for used in (*filter(None, dotted), *used_imports(statement, wanted - own.keys())):
            if _hides(used) or not _is_allowed(used, rule):
                return used
        if tool := next(_tools(statement, seen), None):
            return tool
    return next(filter(None, map(_unseen_binding, statements)), None)


def _is_stored(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _hides(dotted: str) -> bool:
    """Whether a part of a dotted name leads to what nobody can read off the code."""
    root, *parts = dotted.split(".")
    if root in _MODULES or not _PARTS.get(root, frozenset()).isdisjoint(parts):
        return True
    private = (part for part in parts if part.startswith("_") and not part.startswith("__") and part not in _OF_TORCH)
    return root == "torch" and any(private)


def _is_allowed(dotted: str, rule: Rule) -> bool:
    """Whether a library's function or class may be called, as far as this process has imported the library."""
    root, *parts = dotted.split(".")
    if root not in _PACKAGES:
        return True
    thing: Any = sys.modules.get(root)
    for place, part in enumerate(parts):
        below = sys.modules.get(".".join((root, *parts[: place + 1])))
        thing = below if below is not None else getattr(thing, part, None)
    if isinstance(thing, BuiltinFunctionType | MethodDescriptorType):
        name = thing.__name__
        return rule.allows(f"torch.ops.aten.{name}") if name in OPERATORS else rule.tensors
    if isinstance(thing, FunctionType | type):
        return rule.allows(f"{thing.__module__}.{thing.__qualname__}") or thing.__module__ in ("torch", "builtins")
    return root == "torch" or not parts or rule.allows(dotted)


def _tools(statement: ast.stmt, names: Mapping[str, str]) -> Iterator[str]:
    yield from sorted(globals_of(statement) & _BUILTINS)
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg in _ATTRIBUTES:
            yield node.arg
        elif isinstance(node, ast.FunctionDef) and node.name in _LATE:
            yield node.name
        elif isinstance(node, ast.Call) and called(node.func) in ("getattr", "setattr") and len(node.args) > 1:
            name = text_of(node.args[1])
            if name in _ATTRIBUTES or (name is None and dotted_name(node.args[0], names)):
                yield f"{called(node.func)}(…, {name or '…'})"


def _unseen_binding(statement: ast.stmt) -> str | None:
    """A way by which a statement that the answer does not reach could bind its names; None: there is none."""
    if isinstance(statement, (*DEFINED, ast.Import, ast.ImportFrom)):
        return None
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _OF_THE_NOTEBOOK:
            if not node.args or text_of(node.args[0]) is None:
                return node.func.id
        elif isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES - {"__code__"}:
            return node.attr
        elif isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            if _is_of_the_notebook(node.value):
                return ast.unparse(node.value)
        elif isinstance(node, ast.Call) and called(node.func) in _CHANGES and _is_of_the_notebook(node.func):
            return ast.unparse(node.func)
    return None


def _is_of_the_notebook(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute) and node.attr in _CHANGES:
        node = node.value
    return ast.unparse(node).startswith(_VARIABLES)
