"""Which misconception is behind a failed hidden check: each known one is evaluated alike, and records are compared.

Their random numbers come, as in the judge's worker, from a stream of their own. What a check draws in between (the
weights of a reference, say) would move them in this process, and does not in a worker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.course import course
from exercise_kit.engine.diagnosis import Record
from exercise_kit.engine.evaluate_check import Outcome
from exercise_kit.engine.exercise import Misconception
from exercise_kit.engine.local_backend import CallResult, LocalBackend, ModuleBackend
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Verdict
from exercise_kit.judge.hidden import HiddenChecks


def isolated_student(objects: Mapping[str, Any]) -> Student:
    """A student with these objects and an isolated stream of random numbers."""
    return Student(objects, IsolatedBackend(objects))


class _RandomStream:
    """A stream of random numbers: it begins where a check has set the seed, and goes on where it was otherwise."""

    def __init__(self) -> None:
        self._state: Tensor | None = None

    @contextmanager
    def drawn(self) -> Iterator[None]:
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


class IsolatedBackend(LocalBackend):
    """Objects of this process by name; see :class:`~exercise_kit.engine.local_backend.Backend`."""

    def __init__(self, objects: Mapping[str, Any]) -> None:
        super().__init__(objects)
        self._stream = _RandomStream()

    def call(self, name: str, inputs: tuple[Any, ...], gradients: bool = False) -> CallResult:
        """Call a function."""
        with self._stream.drawn():
            return super().call(name, inputs, gradients)

    def build(self, name: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> CallResult:
        """Make a module, which draws from the same stream."""
        with self._stream.drawn():
            answer = super().build(name, arguments, options)
        return answer if answer.module is None else replace(answer, module=_IsolatedModule(answer.module, self._stream))

    def run_fixture(self, name: str, fixture: str, fields: Mapping[str, Any]) -> CallResult:
        """Run a training fixture."""
        with self._stream.drawn():
            return super().run_fixture(name, fixture, fields)


class _IsolatedModule:
    """A module of this process; see :class:`~exercise_kit.engine.local_backend.ModuleBackend`."""

    def __init__(self, module: ModuleBackend, stream: _RandomStream) -> None:
        self._module, self._stream = module, stream

    def _call(self, what: Callable[..., CallResult], *given: Any) -> CallResult:
        with self._stream.drawn():
            return what(*given)

    def forward(self, inputs: tuple[Any, ...], options: Mapping[str, Any], gradients: bool = False) -> CallResult:
        """Run it."""
        return self._call(self._module.forward, inputs, options, gradients)

    def parts(self, names: Sequence[str], inputs: tuple[Any, ...], options: Mapping[str, Any]) -> CallResult:
        """Nothing: of a known mistake that is tried out only the answers matter, and each forward costs time."""
        return CallResult({})

    def backward(self, output: Tensor, cotangent: Tensor) -> CallResult:
        """Differentiate its last output."""
        return self._call(self._module.backward, output, cotangent)

    def parameter_info(self) -> CallResult:
        """What it holds."""
        return self._call(self._module.parameter_info)

    def tensors(self) -> CallResult:
        """Copies of that."""
        return self._call(self._module.tensors)

    def load(self, weights: Mapping[str, Tensor]) -> CallResult:
        """Give it values."""
        return self._call(self._module.load, weights)

    def set(self, state: torch.dtype | torch.device | bool) -> CallResult:
        """Give it another dtype, device or mode."""
        return self._call(self._module.set, state)


class Replays:
    """What an exercise's misconceptions give where a student was evaluated; each is evaluated once.

    Args:
        checks: the hidden checks.
        exercise: the exercise that was evaluated.
        key: from which the checks drew then, so that misconceptions are evaluated on the very same draws.

    Attributes: ``key``.
    """

    def __init__(self, checks: HiddenChecks, exercise: str, key: bytes) -> None:
        self._exercise = course().exercises[exercise]
        self._checks, self.key = checks, key
        self._by_name = {each.name: each for each in checks.exercises()[exercise]}
        self._seen: dict[tuple[Misconception, str], Outcome] = {}

    def __call__(self, wrong: Misconception, name: str) -> tuple[bool, Record]:
        """Whether a misconception fails the check of this name, and what it gives there."""
        outcome = self.outcome(wrong, name)
        return outcome.result.verdict == Verdict.FAIL, outcome.record

    def outcome(self, wrong: Misconception, name: str) -> Outcome:
        """What the check of this name finds about a misconception."""
        place = wrong, name  # not its name: two orders of one pair share that
        if place not in self._seen:
            student = isolated_student(dict(zip(self._exercise.objects, wrong.objects, strict=True)))
            self._seen[place] = self._checks.evaluate(self._exercise.name, self._by_name[name], student, self.key)
        return self._seen[place]


def commonest(outcomes: Sequence[Outcome]) -> str | None:
    """The misconception that explains the most failures alone, the first of several; None when nothing fits."""
    alone = Counter(each.result.misconception for each in outcomes if each.result.misconception)
    return alone.most_common(1)[0][0] if alone else None
