"""What a module leaves to chance: a dropout, a branch that is skipped now and then, a layer made anew in forward."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.compare import are_close, expect_tensor
from exercise_kit.engine.student import Student, StudentModule
from exercise_kit.engine.verdict import Failure

# a branch that is skipped in one run of ten is seen with a probability of 1 - 0.9 ** 30 = 0.96
RUNS = 30
ONE, SOME, ALWAYS_ANOTHER = "one and the same", "some that come again", "another in every run"


def expect_same_in_every_run(student: Student, module: StudentModule, weights: Mapping[str, Tensor], x: Tensor) -> None:
    """Fail when runs of a module on the same tokens differ, whatever the numbers are.

    On record goes how they differ: a dropout gives another result in every run, and of zeros it makes zeros; a layer
    made anew in forward draws its bias.

    Args:
        student: whose module it is.
        module: as it was built, so in training mode.
        weights: that it holds.
        x: tokens that keep their shape.
    """
    student.note_only()
    kinds = run_and_classify_results(student, lambda: module(x), x.shape)
    if kinds != ONE:
        drawn = _has_random_biases(student, module, weights, x)
        student.note_only(("results", kinds, "biases drawn in forward" if drawn else ""))
        expect_same_results(kinds)


def run_and_classify_results(student: Student, run: Callable[[], Any], shape: Sequence[int]) -> str:
    """Return how many results ``RUNS`` runs have; it goes on record in place of the numbers, which chance has made."""
    recorded = len(student.record)
    kinds: list[Tensor] = []
    for _ in range(RUNS):
        result = expect_tensor(run(), tuple(shape), f"the result of {student.name}")
        if not any(are_close(result, each) for each in kinds):
            kinds.append(result)
    found = ONE if len(kinds) == 1 else ALWAYS_ANOTHER if len(kinds) == RUNS else SOME
    student.forget(len(student.record) - recorded)
    student.note(("results", found))
    return found


def expect_same_results(kinds: str) -> None:
    """Fail unless all runs have given the same."""
    if kinds != ONE:
        seen = "different results" if kinds == ALWAYS_ANOTHER else "now and then a different result"
        look = "Which line of yours draws random numbers, and who asked for it?"
        raise Failure(f"in {RUNS} runs the same input gives {seen}", "one and the same", look)


def _has_random_biases(student: Student, module: StudentModule, weights: Mapping[str, Tensor], x: Tensor) -> bool:
    """Say whether results still differ where all tokens and biases are zero, so that a dropout has nothing to drop."""
    try:
        module.load({n: torch.zeros_like(w) if n.endswith("bias") else w for n, w in weights.items()})
        zeros, name = torch.zeros_like(x), f"the result of {student.name}"
        first, second = (expect_tensor(module(zeros), tuple(x.shape), name) for _ in range(2))
    except Failure:  # forward has made parameters
        return True
    return not are_close(first, second)
