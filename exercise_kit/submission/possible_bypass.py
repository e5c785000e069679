"""Code that a person should look at: it uses what no answer needs, or names what its exercise does not allow.

This is a second opinion, read from the code before it runs, and costs no points. What an answer called while it ran
decides (:mod:`exercise_kit.engine.call_rules`), but in a student's own process that can be got round.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType
from typing import Any

from exercise_kit.engine.call_rules import Rule
from exercise_kit.engine.call_trace import OPERATORS
from exercise_kit.engine.course import course
from exercise_kit.submission.static_rules import (
    DEFINED,
    find_last_own_definitions,
    find_reachable_statements,
    find_used_imports,
    list_statements,
    resolve_dotted_name,
    resolve_imported_names,
    walk_outermost_names,
)
from exercise_kit.submission.submission import CellSource
from exercise_kit.submission.usual_code import find_unusual_anywhere, find_unusual_in_answer

_PACKAGES = ("torch", "torchvision", "timm", "transformers")


@dataclass(frozen=True)
class Suspect:
    """What a person should look at.

    Attributes:
        used: the name or the like.
        line: the first line of the statement in which it is.
        by_answer: whether the answer uses it, or what it reaches; else a cell does.
    """

    used: str
    line: str
    by_answer: bool = True


def find_possible_bypass(exercise: str, objects: Iterable[str], cells: Sequence[CellSource]) -> Suspect | None:
    """Return what an answer, or the notebook around it, uses and no answer needs; None where there is nothing.

    Args:
        exercise: its name; where it has a rule, that is no second opinion on what is forbidden.
        objects: the names that a student defines in it.
        cells: the cells that run.
    """
    try:
        return next(_find_suspects(course().rules.get(exercise), frozenset(objects), list_statements(cells)), None)
    except RecursionError:
        return Suspect("code nested too deeply to be read", "")


def _find_suspects(rule: Rule | None, objects: frozenset[str], statements: Sequence[ast.stmt]) -> Iterator[Suspect]:
    names = resolve_imported_names(statements)
    found, wanted = find_reachable_statements(statements, objects, names)
    own = {name: place for name, place in find_last_own_definitions(statements).items() if name in names}
    for place, statement in found:
        if rule and isinstance(statement, DEFINED) and getattr(statement, "name", None) in rule.others:
            yield Suspect(str(getattr(statement, "name", "")), unparse_first_line(statement, statement))
        hidden = {name for name, at in own.items() if at <= place or isinstance(statement, DEFINED)}
        seen = {name: dotted for name, dotted in names.items() if name not in hidden} if hidden else names
        imported = frozenset(wanted - own.keys())
        dotted = [resolve_dotted_name(node, seen) for node in walk_outermost_names(statement) if not _is_stored(node)]
        for used in (*filter(None, dotted), *find_used_imports(statement, imported)) if rule else ():
            if rule and not _is_allowed(used, rule):
                yield Suspect(used, unparse_first_line(statement, statement))
        for each in find_unusual_in_answer(statement, seen, imported):
            yield Suspect(each.used, unparse_first_line(statement, each.node))
    reached = {place for place, _ in found}
    for place, statement in enumerate(statements):
        for each in find_unusual_anywhere(statement, names) if place not in reached else ():
            yield Suspect(each.used, unparse_first_line(statement, each.node), by_answer=False)


def unparse_first_line(statement: ast.stmt, node: ast.AST) -> str:
    """The first line of the innermost statement that holds a node, as Python writes it."""
    holds = [each for each in ast.walk(statement) if isinstance(each, ast.stmt) and node in ast.walk(each)]
    return ast.unparse(holds[-1] if holds else statement).partition("\n")[0]


def _is_stored(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _is_allowed(dotted: str, rule: Rule) -> bool:
    """Say whether a library's function or class may be called, as far as this process has imported the library."""
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
