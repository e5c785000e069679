"""A student of this process who draws random numbers as one in the judge's worker does: from a stream of their own.

What a check draws in between (the weights of a reference, say) moves a student's numbers in this process, and does not
in a worker. Where an answer draws by itself, its records follow from that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.calls import Answer, Module, ObjectsHere
from exercise_kit.engine.student import Student


def student_apart(objects: Mapping[str, Any]) -> Student:
    """A student with these objects, whose random numbers nobody else moves."""
    return Student(objects, ObjectsApart(objects))


class _Chance:
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


class ObjectsApart(ObjectsHere):
    """Objects of this process by name; see :class:`~exercise_kit.engine.calls.Objects`."""

    def __init__(self, objects: Mapping[str, Any]) -> None:
        super().__init__(objects)
        self._chance = _Chance()

    def call(self, name: str, inputs: tuple[Any, ...], gradients: bool = False) -> Answer:
        """Call a function."""
        with self._chance.drawn():
            return super().call(name, inputs, gradients)

    def build(self, name: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Answer:
        """Make a module, which draws from the same stream."""
        with self._chance.drawn():
            answer = super().build(name, arguments, options)
        return answer if answer.module is None else replace(answer, module=_ModuleApart(answer.module, self._chance))

    def practise(self, name: str, practice: str, fields: Mapping[str, Any]) -> Answer:
        """Run a practice."""
        with self._chance.drawn():
            return super().practise(name, practice, fields)


class _ModuleApart:
    """A module of this process; see :class:`~exercise_kit.engine.calls.Module`."""

    def __init__(self, module: Module, chance: _Chance) -> None:
        self._module, self._chance = module, chance

    def _asked(self, what: Callable[..., Answer], *given: Any) -> Answer:
        with self._chance.drawn():
            return what(*given)

    def forward(self, inputs: tuple[Any, ...], options: Mapping[str, Any], gradients: bool = False) -> Answer:
        """Run it."""
        return self._asked(self._module.forward, inputs, options, gradients)

    def parts(self, names: Sequence[str], inputs: tuple[Any, ...], options: Mapping[str, Any]) -> Answer:
        """Nothing: of a known mistake that is tried out only the answers matter, and each forward costs time."""
        return Answer({})

    def backward(self, output: Tensor, cotangent: Tensor) -> Answer:
        """Differentiate its last output."""
        return self._asked(self._module.backward, output, cotangent)

    def held(self) -> Answer:
        """What it holds."""
        return self._asked(self._module.held)

    def tensors(self) -> Answer:
        """Copies of that."""
        return self._asked(self._module.tensors)

    def load(self, weights: Mapping[str, Tensor]) -> Answer:
        """Give it values."""
        return self._asked(self._module.load, weights)

    def set(self, state: torch.dtype | torch.device | bool) -> Answer:
        """Give it another dtype, device or mode."""
        return self._asked(self._module.set, state)
