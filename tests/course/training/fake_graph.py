"""A CUDA graph that is not there: every operation of torch is noted as it runs, and a replay runs them again.

As a real one, it repeats operations on the same memory, with the numbers that Python gave them then; Python itself is
not run again, generators draw on, and reading a number while it records is an error. Unlike a real one it runs while
it records, so everything is put back after.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map


class Noting(TorchDispatchMode):
    """Notes what runs, with its arguments and its results."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any], list[Any]]] = []
        self.before: dict[int, tuple[Tensor, Tensor]] = {}
        self.made: dict[int, Any] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.ops.aten._local_scalar_dense.default:
            raise RuntimeError("operation not permitted when stream is capturing")
        for each in find_changed_tensors(func, args, kwargs):
            if id(each) not in self.before and id(each) not in self.made:
                self.before[id(each)] = (each, each.detach().clone())
        noted = detach_tensors((args, kwargs))
        result = func(*args, **kwargs)
        changed = {id(each) for each in find_changed_tensors(func, args, kwargs)}
        self.made |= {id(each): each for each in tree_flatten(result)[0] if id(each) not in changed}
        if func.namespace != "profiler" and torch.Tag.inplace_view not in func.tags:
            given = {find_memory_address(each) for each in tree_flatten((args, kwargs))[0] if isinstance(each, Tensor)}
            results = [
                None if find_memory_address(each) in given else each for each in tree_flatten(result)[0]
            ]  # but for views
            self.calls.append((func, *noted, detach_tensors(results)))
        return result


def find_memory_address(tensor: Any) -> object:
    """Return what tells memory apart; None for what is no tensor."""
    return tensor.untyped_storage().data_ptr() if isinstance(tensor, Tensor) else None


def detach_tensors(values: Any) -> Any:
    """The same with tensors that keep their shape when those in it are given another one in place."""
    return tree_map(lambda each: each.detach() if isinstance(each, Tensor) else each, values)


def find_changed_tensors(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors that an operation changes in place."""
    names = [each.name for each in func._schema.arguments]
    given = dict(zip(names, args, strict=False)) | kwargs
    changed = [each.name for each in func._schema.arguments if each.alias_info is not None and each.alias_info.is_write]
    return [each for each in tree_flatten([given.get(name) for name in changed])[0] if isinstance(each, Tensor)]


class FakeGraph:
    """A recorder for a CPU, see `vit_course.training.graph.Recorder`.

    Attributes:
        recorded, replayed: how often.
    """

    def __init__(self) -> None:
        self.draws = torch.Generator()
        self.recorded = self.replayed = 0

    def run(self, work: Callable[[], Tensor]) -> Tensor:
        return work()

    def record(self, work: Callable[[], Tensor]) -> tuple[Tensor, Callable[[], object]]:
        states = torch.get_rng_state(), self.draws.get_state()
        noting = Noting()
        try:
            with noting:
                result = work()
        finally:
            with torch.no_grad():
                for tensor, before in noting.before.values():
                    tensor.copy_(before)
            torch.set_rng_state(states[0])
            self.draws.set_state(states[1])
        self.recorded += 1

        def replay() -> None:
            self.replayed += 1
            with torch.no_grad():
                for func, args, kwargs, results in noting.calls:
                    again = tree_flatten(func(*args, **kwargs))[0]
                    for place, each in zip(results, again, strict=True):
                        if isinstance(place, Tensor):
                            place.copy_(each)

        return result, replay
