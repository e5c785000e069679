"""Functions that an exercise asks its students to write themselves: they raise while that exercise is asked for.

Stand-ins replace them before any cell runs, so that ``from torch.nn.functional import ...`` gets the stand-in too;
outside the exercise they do what they always do.
"""

from __future__ import annotations

import functools
import importlib.machinery
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

_IN_A_CLASS = ("__init__", "forward")


class ForbiddenFunction(RuntimeError):
    """A student's code called what its exercise forbids."""


class _State:
    def __init__(self) -> None:
        self.exercise: str | None = None
        self.by_exercise: Mapping[str, frozenset[str]] = {}
        self.used: dict[str, None] = {}
        self.waiting: set[str] = set()


_STATE = _State()


def guard(forbidden: Mapping[str, Sequence[str]]) -> None:
    """Put stand-ins in the place of every dotted name; of a package not imported yet, as soon as it is."""
    _STATE.by_exercise = {exercise: frozenset(names) for exercise, names in forbidden.items()}
    _STATE.waiting = {name for names in forbidden.values() for name in names}
    _replace_what_is_there()
    if _STATE.waiting:
        sys.meta_path.insert(0, _Watcher())


def begin(exercise: str | None) -> None:
    """From here on ``exercise`` is asked for; None for none."""
    _STATE.exercise = exercise
    _STATE.used.clear()


def used() -> list[str]:
    """The forbidden functions that were called since :func:`begin`, whether their exception was caught or not."""
    return list(_STATE.used)


def _replace_what_is_there() -> None:
    for name in sorted(_STATE.waiting):
        home, last = _home_of(name)
        if home is None or not hasattr(home, last):
            continue
        thing = getattr(home, last)
        if isinstance(thing, type):
            for method in _IN_A_CLASS:
                if method in vars(thing):
                    setattr(thing, method, _stand_in(name, vars(thing)[method]))
        else:
            setattr(home, last, _stand_in(name, thing))
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


def _stand_in(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def stand_in(*inputs: Any, **options: Any) -> Any:
        if name in _STATE.by_exercise.get(_STATE.exercise or "", ()):
            _STATE.used[name] = None
            raise ForbiddenFunction(f"{name} is not allowed here: write it yourself")
        return function(*inputs, **options)

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
