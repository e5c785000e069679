"""Functions that an exercise asks its students to write themselves: they raise while that exercise is asked for.

Stand-ins replace them before any cell runs, so that ``from torch.nn.functional import ...`` gets the stand-in too;
outside the exercise they do what they always do. Behind them a mode of torch's dispatcher watches the operators
(``torch.ops.aten.*`` in the rules), however they are called.
"""

from __future__ import annotations

import functools
import importlib.machinery
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_IN_A_CLASS = ("__init__", "forward")
_OPERATORS = "torch.ops.aten."


class ForbiddenFunction(RuntimeError):
    """A student's code called what its exercise forbids."""


class _State:
    def __init__(self) -> None:
        self.exercise: str | None = None
        self.by_exercise: Mapping[str, frozenset[str]] = {}
        self.used: dict[str, None] = {}
        self.waiting: set[str] = set()
        self.watches: dict[str, _Watch] = {}
        self.watch: _Watch | None = None


class _Watch(TorchDispatchMode):
    """Sees every operator that runs, also those that other operators are made of."""

    def __init__(self, names: Mapping[Any, str]) -> None:
        super().__init__()
        self._names = names

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = self._names.get(func.overloadpacket)
        if name:
            _refuse(name)
        return func(*args, **(kwargs or {}))


_STATE = _State()
_ORIGINALS: dict[str, Callable[..., Any]] = {}  # in no closure, which would show them


def guard(forbidden: Mapping[str, Sequence[str]]) -> None:
    """Put stand-ins in the place of every dotted name; of a package not imported yet, as soon as it is."""
    _STATE.by_exercise = {exercise: frozenset(names) for exercise, names in forbidden.items()}
    operators = {exercise: _operators(names) for exercise, names in forbidden.items()}
    _STATE.watches = {exercise: _Watch(names) for exercise, names in operators.items() if names}
    _STATE.waiting = {name for names in forbidden.values() for name in names if not name.startswith(_OPERATORS)}
    _replace_what_is_there()
    if _STATE.waiting:
        sys.meta_path.insert(0, _Watcher())


def begin(exercise: str | None) -> None:
    """From here on ``exercise`` is asked for; None for none."""
    if _STATE.watch is not None:
        _STATE.watch.__exit__(None, None, None)
    _STATE.exercise = exercise
    _STATE.used.clear()
    _STATE.watch = _STATE.watches.get(exercise or "")
    if _STATE.watch is not None:
        _STATE.watch.__enter__()


def used() -> list[str]:
    """The forbidden functions that were called since :func:`begin`, whether their exception was caught or not."""
    return list(_STATE.used)


def _operators(names: Sequence[str]) -> dict[Any, str]:
    """Torch's operators among the names; those that this torch does not have are left out."""
    asked = [name for name in names if name.startswith(_OPERATORS)]
    found = {getattr(torch.ops.aten, name.removeprefix(_OPERATORS), None): name for name in asked}
    return {operator: name for operator, name in found.items() if operator is not None}


def _refuse(name: str) -> None:
    _STATE.used[name] = None
    raise ForbiddenFunction(f"{name} is not allowed here: write it yourself")


def _replace_what_is_there() -> None:
    for name in sorted(_STATE.waiting):
        home, last = _home_of(name)
        if home is None or not hasattr(home, last):
            continue
        thing = getattr(home, last)
        if isinstance(thing, type):
            for method in _IN_A_CLASS:
                if method in vars(thing):
                    setattr(thing, method, _stand_in(name, f"{name}.{method}", vars(thing)[method]))
        else:
            setattr(home, last, _stand_in(name, name, thing))
        _STATE.waiting.discard(name)


def _home_of(name: str) -> tuple[Any, str]:
    """The module or class that holds ``name``, None when it is not imported."""
    path = name.split(".")
    for length in range(len(path) - 1, 0, -1):
        home: Any = sys.modules.get(".".join(path[:length]))
        if home is not None:
            for part in path[length:-1]:
                home = getattr(home, part, None)
            return home, path[-1]
    return None, path[-1]


def _stand_in(name: str, key: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """What stands at ``name`` from now on; ``key`` is the original's among the originals."""
    _ORIGINALS[key] = function

    @functools.wraps(function)
    def stand_in(*inputs: Any, **options: Any) -> Any:
        if name in _STATE.by_exercise.get(_STATE.exercise or "", ()):
            _refuse(name)
        return _ORIGINALS[key](*inputs, **options)

    del stand_in.__wrapped__  # the original is not handed out
    return stand_in


class _Watcher:
    """Looks at every import, and puts the stand-ins in when a module that holds a forbidden name has been run."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if not any(name.startswith(f"{fullname}.") for name in _STATE.waiting):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            _replace_what_is_there()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
