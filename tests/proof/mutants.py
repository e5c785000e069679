"""Mutants of the reference: right implementations with one slip, made in memory and never written to a file.

A mutant of an exercise changes one definition of the reference: one of the exercise's own objects, or a helper that
these use, in whichever module it stands. Another exercise's object is left to that exercise, a helper to the first one
that needs it; what a student is given (see ``GIVEN``, the kit, the public checks, the known mistakes) is no part of it.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from graphlib import TopologicalSorter
from types import ModuleType
from typing import Any

from tests.proof.mutations import iterate_mutations, list_names
from vit_course.staff.references import REFERENCE

# module and name
Place = tuple[str, str]

GIVEN: frozenset[Place] = frozenset({("vit_course.config", "ViTConfig")})
OURS = "vit_course."
# of the exercises' folder only what judges is part of the reference
EXERCISES = "vit_course.exercises."
JUDGING = (EXERCISES + "l07_experiments.model_accuracy",)


@dataclass(frozen=True)
class Mutant:
    """The reference with one slip.

    Attributes: ``place`` of the changed definition, ``name`` (the function, the statement as it was, what became of
    it: unique among the mutants of its module), ``definition`` as it is now.
    """

    place: Place
    name: str
    definition: ast.stmt = field(repr=False)

    def objects(self, exercise: str) -> tuple[Callable[..., Any], ...]:
        """The exercise's objects, made anew from the changed source.

        Raises:
            Exception: whatever a changed module may raise while it is imported.
        """
        return build_mutated_objects(self.place, self.definition, exercise)


def mutants_of(exercise: str) -> Iterator[Mutant]:
    """Every mutant that is asked at an exercise: of its objects, then of the helpers, in the order of the source."""
    for module, name in find_definitions(exercise):
        for description, definition in iterate_mutations(_find_definitions_in_module(module)[name]):
            yield Mutant((module, name), description, definition)


def find_definitions(exercise: str) -> tuple[Place, ...]:
    """Where an exercise's objects stand, and all that they use of the reference and no exercise before uses."""
    own = _list_objects(exercise)
    return tuple(
        each
        for each in _find_definitions_used(exercise)
        if each in own or find_exercises_that_need(each)[0] == exercise
    )


def find_exercises_that_need(place: Place) -> tuple[str, ...]:
    """The exercises whose objects need a definition, in the course's order."""
    return tuple(exercise for exercise in REFERENCE if place in _find_definitions_used(exercise))


def is_helper(place: Place) -> bool:
    """Say whether a definition is no exercise's own object."""
    return not any(place in _list_objects(exercise) for exercise in REFERENCE)


def build_mutated_objects(place: Place, definition: ast.stmt, exercise: str) -> tuple[Callable[..., Any], ...]:
    """An exercise's objects, with another definition in one place: its module and all on the way run anew."""
    uses = _find_modules(exercise)
    order = [name for name in TopologicalSorter(uses).static_order() if place[0] in _find_modules_used(name, uses)]
    fresh: dict[str, ModuleType] = {}
    with _restore_modules(order), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of `is` beside a number, and of a number that is called
        for name in order:
            tree = _parse_module(name)
            if name == place[0]:
                old = _find_definitions_in_module(name)[place[1]]
                tree = ast.Module([definition if each is old else each for each in tree.body], tree.type_ignores)
            fresh[name] = _run_module(name, tree)
    return tuple(getattr(fresh.get(module, sys.modules[module]), name) for module, name in _list_objects(exercise))


@contextlib.contextmanager
def _restore_modules(names: Sequence[str]) -> Iterator[None]:
    modules = {name: sys.modules[name] for name in names}
    try:
        yield
    finally:
        sys.modules.update(modules)


def _run_module(name: str, tree: ast.Module) -> ModuleType:
    """A module made of ``tree``, which stands in ``sys.modules`` from now on, so that others import from it."""
    module = ModuleType(name)
    module.__file__ = sys.modules[name].__file__
    sys.modules[name] = module
    exec(compile(ast.fix_missing_locations(tree), f"<mutant of {name}>", "exec"), vars(module))
    return module


def _list_objects(exercise: str) -> tuple[Place, ...]:
    return tuple((each.__module__, each.__qualname__) for each in REFERENCE[exercise])


@cache
def _find_definitions_used(exercise: str) -> dict[Place, set[Place]]:
    """All that an exercise's objects need, the objects first, and what each of these uses itself."""
    own = _list_objects(exercise)
    others = {place for each in REFERENCE for place in _list_objects(each)} - set(own)
    found: dict[Place, set[Place]] = {}
    waiting = list(own)
    while waiting:
        place = waiting.pop(0)
        if place not in found:
            uses = [each for each in _list_definitions_named(place) if each not in others]
            found[place] = set(uses)
            waiting += uses
    return found


def _list_definitions_named(place: Place) -> list[Place]:
    """The definitions of ours that a definition names, in its order."""
    module, name = place
    known = {each: (module, each) for each in _find_definitions_in_module(module)} | _find_imports(module)
    return [
        known[each] for each in list_names(_find_definitions_in_module(module)[name]) if each in known and each != name
    ]


def _find_modules(exercise: str) -> dict[str, set[str]]:
    """The modules in which an exercise's objects and their helpers stand, each with those that it uses."""
    uses: dict[str, set[str]] = {}
    for (module, _), used in _find_definitions_used(exercise).items():
        uses.setdefault(module, set()).update(other for other, _ in used if other != module)
    return uses


def _find_modules_used(name: str, uses: Mapping[str, set[str]]) -> set[str]:
    """A module and all that it uses, and these use."""
    return {name}.union(*(_find_modules_used(each, uses) for each in uses[name]))


@cache
def _parse_module(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(sys.modules[module]))


@cache
def _find_definitions_in_module(module: str) -> dict[str, ast.stmt]:
    """The functions and classes of a module, and its constants."""
    found: dict[str, ast.stmt] = {}
    for node in _parse_module(module).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            found[ast.unparse(target)] = node
    return found


@cache
def _find_imports(module: str) -> dict[str, Place]:
    """Return what a module imports of ours, by the names that it has there; nothing that a student is given."""
    return {
        each.asname or each.name: (node.module, each.name)
        for node in _parse_module(module).body
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(OURS)
        for each in node.names
        if not _is_given(node.module) and (node.module, each.name) not in GIVEN
    }


def _is_given(module: str) -> bool:
    return module.startswith(EXERCISES) and not module.startswith(JUDGING)
