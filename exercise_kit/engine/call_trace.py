"""Notes the functions that a student's answer enters while ``check`` calls it, so that it can name a ready-made one.

It helps whoever calls one without a second thought, and stands against nobody who hides a call: in grading, what an
exercise forbids cannot be computed (:mod:`exercise_kit.worker.withheld`). What runs inside an import or the course's
own package is not noted.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

import torch

OWN = "own "
"""How the name begins of a function that a student wrote, as they call it in their module."""
_STUDENTS, _SKIPPED, _NOTED, _OPAQUE = "a student's", "neither", "noted", "noted, and nothing in it is"
_STANDARD = os.path.dirname(os.__file__) + os.sep
_PACKAGES = ("site-packages", "dist-packages")
# whoever imports a module calls these, as setuptools' _distutils_hack
_FINDERS = frozenset(getattr(each, "__module__", "") for each in sys.meta_path)
_OPTIMIZED = 1  # of co_flags: a function's body, not a module's or a class's
_CELLS = ("<cell ", "<ipython-input")
OPERATORS = {name.removeprefix("aten::").partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}
_OWNERS = [
    getattr(each, "__self__", None) for each in (torch.mean, torch.special.expit, torch.linalg.norm, torch.fft.fft)
]
_OWNERS += [torch._C._nn]


class Watch:
    """Notes the names of what is called in the functions that :meth:`wrap` gives, and in any that a student wrote.

    Args:
        course: the folder that holds the course's package and the kit's; None where there is none.
        packages: the names of the two.
    """

    def __init__(self, course: str | None, packages: Iterable[str]) -> None:
        folders = [os.path.join(os.path.abspath(course), name, "") for name in packages] if course else []
        self._folders = tuple(folders)
        self._names: dict[str, None] = {}
        # a library's function may run in the middle of an answer, whenever garbage is collected
        called_back = [code for each in gc.callbacks if (code := getattr(each, "__code__", None))]
        self._kinds: dict[int, tuple[CodeType, str, str]] = {id(code): (code, _OPAQUE, "") for code in called_back}
        self._turns: list[tuple[FrameType | None, bool]] = []  # the frames at which noting stopped or began again

    @contextlib.contextmanager
    def session(self) -> Iterator[None]:
        """Inside, what functions of a student's call is noted whoever runs them, and nothing else is."""
        before, outer = sys.getprofile(), self._turns
        self._turns = [(None, False)]
        sys.setprofile(self._record_profiler_event)
        try:
            yield
        finally:
            sys.setprofile(before)
            self._turns = outer

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function``, watched while it runs, in a session of its own where none is open."""

        def call_watched(*inputs: Any, **options: Any) -> Any:
            with contextlib.nullcontext() if self._turns else self.session():
                depth = len(self._turns)
                self._turns.append((None, True))
                try:
                    return function(*inputs, **options)
                finally:
                    del self._turns[depth:]

        return call_watched

    def names(self) -> list[str]:
        """The names that were noted since the last call, in their order."""
        noted = list(self._names)
        self._names.clear()
        return noted

    def _record_profiler_event(self, frame: FrameType, event: str, arg: Any) -> None:
        turns = self._turns
        noting = turns[-1][1] if turns else False
        if event == "call":
            kind, name = self._classify_code(frame.f_code)
            if kind is _STUDENTS:
                self._names[name] = None
                if not noting:
                    turns.append((frame, True))
            elif kind is not _SKIPPED and noting:
                if name:
                    self._names[name] = None
                if kind is _OPAQUE:
                    turns.append((frame, False))
        elif event == "return" and turns and turns[-1][0] is frame:
            turns.pop()
        elif (
            event == "c_call"
            and noting
            and (name := getattr(arg, "__name__", "")) in OPERATORS
            and _is_torch_function(arg)
        ):
            self._names[f"torch.ops.aten.{name}"] = None

    def _classify_code(self, code: CodeType) -> tuple[str, str]:
        known = self._kinds.get(id(code))
        if known is None:
            self._kinds[id(code)] = known = (code, *_find_owner_and_name(code, self._folders))
        return known[1], known[2]


def _is_torch_function(function: Any) -> bool:
    """Say whether a function in C++ is torch's: a method of tensors, or of one of its modules."""
    owner = getattr(function, "__self__", None)
    return isinstance(owner, torch.Tensor) or any(owner is each for each in _OWNERS)


def _find_owner_and_name(code: CodeType, folders: tuple[str, ...]) -> tuple[str, str]:
    """Whose a function is, by the file that it was compiled from, and the name by which it is noted."""
    file = code.co_filename
    if file == __file__ or (file.startswith("<") and not file.startswith(_CELLS)):
        return _SKIPPED, ""  # compiled from a text: it belongs to whoever called it
    folder = next((each for each in folders if file.startswith(each)), None)
    module = (
        f"{folder.split(os.sep)[-2]}.{_convert_path_to_dotted_name(file[len(folder) :])}"
        if folder
        else _find_installed_name(file)
    )
    if module is None:
        return (_SKIPPED, "") if file.startswith(_STANDARD) else (_STUDENTS, f"{OWN}{code.co_qualname}")
    if module in _FINDERS:
        return _SKIPPED, ""
    if not code.co_flags & _OPTIMIZED:
        return (_OPAQUE, "") if code.co_name == "<module>" else (_SKIPPED, "")
    return _OPAQUE if folder else _NOTED, f"{module}.{code.co_qualname.partition('.')[0]}"


def _find_installed_name(file: str) -> str | None:
    """The dotted name of an installed module's file; None for any other file."""
    parts = file.split(os.sep)
    for folder in _PACKAGES:
        if folder in parts:
            return _convert_path_to_dotted_name(os.sep.join(parts[len(parts) - parts[::-1].index(folder) :]))
    return None


def _convert_path_to_dotted_name(file: str) -> str:
    return file.removesuffix(".py").removesuffix(f"{os.sep}__init__").replace(os.sep, ".")
