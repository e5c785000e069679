"""Small mutations of a definition: each a copy of its syntax tree in which one node is another one.

Ours and not mutmut, cosmic-ray or mutatest: those write each mutant to disk and run the tests anew for it in a process
of its own, where the hidden checks, once open, judge an object in memory in some milliseconds.
"""

from __future__ import annotations

import ast
import pickle
from collections.abc import Iterator
from dataclasses import dataclass

from tests.proof.operators import is_message, iterate_changes, shorten_source


@dataclass(frozen=True)
class Site:
    """A node that could be changed, the statement that it stands in, and the function or class that holds that."""

    node: ast.AST
    statement: ast.stmt
    place: str


def iterate_mutations(definition: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
    """Every mutation of a definition: a name that is used only once, and the whole definition with it."""
    stored = pickle.dumps(definition)
    seen, names = {ast.dump(definition)}, set[str]()
    for number, site in enumerate(_list_sites(definition)):
        for which in range(len(list(iterate_changes(site.node)))):
            changed = pickle.loads(stored)
            description, apply = list(iterate_changes(list(_list_sites(changed))[number].node))[which]
            apply()
            tree = ast.dump(changed)
            if tree in seen:  # two ways to the same mutation
                continue
            seen.add(tree)
            name = _make_unique(f"{site.place}: {shorten_source(site.statement)}: {description}", names)
            names.add(name)
            yield name, changed


def list_names(definition: ast.stmt) -> list[str]:
    """The names that a definition uses when it runs, each once."""
    nodes = (site.node for site in _list_sites(definition))
    return list(dict.fromkeys(node.id for node in nodes if isinstance(node, ast.Name)))


def _make_unique(name: str, names: set[str]) -> str:
    number = 2
    unique = name
    while unique in names:
        unique = f"{name} ({number})"
        number += 1
    return unique


def _list_sites(definition: ast.stmt) -> list[Site]:
    """Every node that could be changed: no docstrings, annotations, or messages of errors."""
    return list(_iterate_sites(definition, definition, ""))


def _iterate_sites(node: ast.AST, statement: ast.stmt, place: str) -> Iterator[Site]:
    if isinstance(node, ast.stmt):
        statement = node
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        place = f"{place}.{node.name}" if place else node.name
    elif not place:
        place = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)  # type: ignore[attr-defined]
    yield Site(node, statement, place)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "ctx", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not is_message(child):
                yield from _iterate_sites(child, statement, place)
