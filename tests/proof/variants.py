"""Mutants of the right variants: answers as students write them, with one slip, to which no check was tuned."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from exercise_kit.simulate.modules import is_variant
from tests.course.test_checks import right_variants_of
from tests.proof.mutations import iterate_mutations


@dataclass(frozen=True)
class VariantMutant:
    """A right variant with one slip: see :class:`tests.proof.mutants.Mutant`."""

    name: str
    variant: tuple[Callable[..., Any], ...] = field(repr=False)
    place: int
    definition: ast.stmt = field(repr=False)

    def objects(self, _: str) -> tuple[Callable[..., Any], ...]:
        """The variant's objects, one of them made anew where its module stands."""
        changed = self.variant[self.place]
        namespace = dict(vars(inspect.getmodule(changed)))
        tree = ast.fix_missing_locations(ast.Module([self.definition], []))
        exec(compile(tree, "<a right variant>", "exec"), namespace)
        made = list(self.variant)
        made[self.place] = namespace[changed.__name__]
        return tuple(made)


def variant_mutants(exercise: str) -> Iterator[VariantMutant]:
    """Every mutant of an exercise's right variants, in the order of the source; the reference's own are elsewhere."""
    for variant in right_variants_of(exercise):
        for place, each in enumerate(variant):
            if is_variant(each):
                (definition,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
                for name, changed in iterate_mutations(definition):
                    yield VariantMutant(name, variant, place, changed)


def some(exercise: str, count: int) -> list[VariantMutant]:
    """So many of them, the same each time, in the order of the source."""
    every = list(variant_mutants(exercise))
    return [every[number] for number in sorted(Random(exercise).sample(range(len(every)), min(count, len(every))))]
