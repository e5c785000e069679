"""Functions in Python that refuse while one answer is evaluated: a student's own, and what libraries make of operators.

They come back with the next answer, which may need them, so the cells need not run again.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

from .withheld import replace_with_refusal, unwrap_functions

_OWN = "own "  # how the name of a student's own function begins
_INSTALLED = frozenset({"site-packages", "dist-packages"})
# what torch is made of, this package, and whoever imports a module, as setuptools' _distutils_hack
_NEEDED = {"torch", "torchgen", "functorch", "triton", __name__.partition(".")[0]}
_NEEDED |= {getattr(each, "__module__", "").partition(".")[0] for each in sys.meta_path}


@dataclass(frozen=True)
class Withheld:
    """What is to refuse.

    Attributes:
        own: a student's functions, and methods or classes of theirs.
        denied: modules of the course, as dotted names that end in a dot.
        allowed: functions of libraries that do not refuse; of a name that ends in a dot all that is in it; None: no
            library refuses.
    """

    own: Sequence[str] = ()
    denied: Sequence[str] = ()
    allowed: Sequence[str] | None = None


class WithheldFunctions:
    """What refuses at present.

    Args:
        codes: gives the code of the functions that cells define under these names.
    """

    def __init__(self, codes: Callable[[Sequence[str]], list[CodeType]]) -> None:
        self._codes = codes
        self._withheld = Withheld()
        self._seen: set[str] = set()
        self._before: list[tuple[FunctionType, CodeType]] = []

    def withhold(self, withheld: Mapping[str, Any] | None) -> None:
        """Make these refuse from here on, and no others.

        Args:
            withheld: the fields of :class:`Withheld`; None: those that refuse already, in modules imported since, too.
        """
        if withheld is not None and (now := Withheld(**withheld)) != self._withheld:
            self._withheld = now
            self._restore_functions()
            self._refuse_student_functions(now.own)
        denied, allowed = self._withheld.denied, self._withheld.allowed
        for name in list(sys.modules.keys() - self._seen) if denied or allowed is not None else ():
            self._seen.add(name)
            module = sys.modules.get(name)
            if isinstance(module, ModuleType) and _may_refuse(module, denied, allowed):
                self._refuse_module_functions(module, denied, allowed or ())

    def _restore_functions(self) -> None:
        self._seen.clear()
        for function, code in self._before:
            function.__code__ = code
        self._before.clear()

    def _refuse_student_functions(self, names: Sequence[str]) -> None:
        codes = self._codes(names) if names else []
        for function in gc.get_referrers(*codes) if codes else ():
            if type(function) is FunctionType and any(function.__code__ is each for each in codes):
                self._refuse_function(function, f"{_OWN}{function.__code__.co_qualname}")

    def _refuse_module_functions(self, module: ModuleType, denied: Sequence[str], allowed: Sequence[str]) -> None:
        beginnings = tuple(each for each in allowed if each[-1] == ".")
        for function in _list_functions(module):
            name = f"{module.__name__}.{function.__qualname__.partition('.')[0]}"
            if name.startswith(tuple(denied)) or not (name in allowed or name.startswith(beginnings)):
                self._refuse_function(function, name)

    def _refuse_function(self, function: FunctionType, name: str) -> None:
        self._before.append((function, function.__code__))
        replace_with_refusal(function, name)


def _may_refuse(module: ModuleType, denied: Sequence[str], allowed: Sequence[str] | None) -> bool:
    name = module.__name__
    if f"{name}.".startswith(tuple(denied)):
        return True
    if allowed is None or name.partition(".")[0] in _NEEDED or f"{name.partition('.')[0]}." in allowed:
        return False
    file = vars(module).get("__file__")
    return isinstance(file, str) and not _INSTALLED.isdisjoint(file.split(os.sep))


def _list_functions(module: ModuleType) -> Iterator[FunctionType]:
    """The functions that a module defines, and the methods of its classes, with those that they wrap."""
    for held in list(vars(module).values()):  # other objects may have a __getattr__ of their own
        if isinstance(held, FunctionType | type) and held.__module__ == module.__name__:
            inside = list(vars(held).values()) if isinstance(held, type) else [held]
            found = (each for some in inside for each in unwrap_functions(some))
            yield from (each for each in found if each.__module__ == module.__name__)  # an Enum has others', too
