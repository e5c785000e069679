"""Which misconception is behind a failed hidden check: each known one is evaluated alike, and records are compared.

Their random numbers come, as in the judge's worker, from a stream of their own. What a check draws in between (the
weights of a reference, say) would move them in this process, and does not in a worker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.course import course
from exercise_kit.engine.diagnosis import Record
from exercise_kit.engine.evaluate_check import Outcome
from exercise_kit.engine.exercise import Check, Misconception
from exercise_kit.engine.local_backend import CallResult, LocalBackend, LocalModule
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Verdict
from exercise_kit.hidden_checks.checks import HiddenChecks


def make_isolated_student(objects: Mapping[str, Any]) -> Student:
    """A student with these objects and an isolated stream of random numbers."""
    return Student(objects, _Backend(objects, _RandomStream()))


class _RandomStream:
    """A stream of random numbers: it begins where a check has set the seed, and goes on where it was otherwise."""

    def __init__(self) -> None:
        self._state: Tensor | None = None

    @contextmanager
    def session(self) -> Iterator[None]:
        """Draw from the stream inside."""
        seed = torch.initial_seed()
        begins = torch.equal(torch.get_rng_state(), torch.Generator().manual_seed(seed).get_state())
        with torch.random.fork_rng(devices=[]):
            if begins or self._state is None:
                torch.default_generator.manual_seed(seed)
            else:
                torch.set_rng_state(self._state)
            yield
            self._state = torch.get_rng_state()
        torch.rand((), device="cpu")  # so that a seed counts once

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function``: what it calls is nobody's business."""
        return function


class _Backend(LocalBackend):
    """Of a known mistake that is tried out only the answers matter, and a forward for a module's parts costs time."""

    def build(self, name: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> CallResult:
        """Make a module that tells nothing of its parts."""
        answer = super().build(name, arguments, options)
        if isinstance(answer.module, LocalModule):
            return replace(answer, module=_WithoutParts(answer.module.module, self._watch))
        return answer


class _WithoutParts(LocalModule):
    def parts(self, names: Sequence[str], inputs: tuple[Any, ...], options: Mapping[str, Any]) -> CallResult:
        return CallResult({})


class Replays:
    """What an exercise's misconceptions give where a student was evaluated; each is evaluated once.

    Args:
        checks: the hidden checks.
        exercise: the exercise that was evaluated.
        key: from which the checks drew then, so that misconceptions are evaluated on the very same draws.
        asked: its checks, as the student was asked them; None: as they are written.

    Attributes: ``key``.
    """

    def __init__(self, checks: HiddenChecks, exercise: str, key: bytes, asked: Iterable[Check] | None = None) -> None:
        self._exercise = course().exercises[exercise]
        self._checks, self.key = checks, key
        self._by_name = {each.name: each for each in asked or checks.exercises()[exercise]}
        self._seen: dict[tuple[Misconception, str], Outcome] = {}

    def __call__(self, wrong: Misconception, name: str) -> tuple[bool, Record]:
        """Say whether a misconception fails the check of this name, and what it gives there."""
        outcome = self.outcome(wrong, name)
        return outcome.result.verdict == Verdict.FAIL, outcome.record

    def outcome(self, mistake: Misconception, name: str) -> Outcome:
        """Return what the check of this name finds about a misconception."""
        place = mistake, name  # not its name: two orders of one pair share that
        if place not in self._seen:
            student = make_isolated_student(dict(zip(self._exercise.objects, mistake.objects, strict=True)))
            self._seen[place] = self._checks.evaluate(self._exercise.name, self._by_name[name], student, self.key)
        return self._seen[place]


def find_commonest_misconception(outcomes: Sequence[Outcome]) -> str | None:
    """The misconception that explains the most failures alone, the first of several; None when nothing fits."""
    alone = Counter(each.result.misconception for each in outcomes if each.result.misconception)
    return alone.most_common(1)[0][0] if alone else None
