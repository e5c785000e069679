"""Notes what runs while a student's function is called: torch's operators, and the library functions that it enters.

It only notes names; the judge decides about them. Three observers see three levels: a mode of torch's dispatcher sees
the operators below autograd; a mode of ``__torch_function__`` sees the functions in C++ that other operators are made
of; a profile function sees every Python function of a library, and C++ functions in other threads. What runs inside an
operator, an import or the course's own package is not noted.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from types import BuiltinFunctionType, CodeType, FrameType, MethodDescriptorType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.overrides import _pop_mode as _pop_function_mode
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils._python_dispatch import _pop_mode as _pop_dispatch_mode

REMOVED = "the watch was removed"
OWN = "own "
"""How the name begins of a function that a student wrote, as they call it in their module."""
MOST_NAMES = 4000
_LONGEST_NAME = 120
_STUDENTS, _SKIPPED, _NOTED, _OPAQUE = "a student's", "neither", "noted", "noted, and nothing in it is"
_HERE = os.path.abspath(__file__)
_WORKER = os.path.dirname(_HERE) + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep
_PACKAGES = ("site-packages", "dist-packages")
# whoever imports a module calls these, as setuptools' _distutils_hack
_FINDERS = frozenset(getattr(each, "__module__", "") for each in sys.meta_path)
_OPTIMIZED = 1  # of co_flags: a function's body, not a module's or a class's
_CELLS = ("<cell ", "<ipython-input")
_GRAPH_MODULE = "<eval_with_key>"  # the file name of code that torch.fx writes
OPERATORS = {name.removeprefix("aten::").partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}
_NAMESPACES = {name.partition("::")[0] for name in torch._C._dispatch_get_all_op_names()}
_OWNERS = [
    getattr(each, "__self__", None) for each in (torch.mean, torch.special.expit, torch.linalg.norm, torch.fft.fft)
]
_OWNERS += [torch._C._nn]
_get_profile, _set_profile = sys.getprofile, sys.setprofile  # those that were there before any cell ran


class _Place(threading.local):
    """Where a thread is: the frames at which noting stopped or began again, and whether the thread is noted now."""

    def __init__(self) -> None:
        self.turns: list[tuple[FrameType | None, bool]] = []

    @property
    def noting(self) -> bool:
        return not self.turns or self.turns[-1][1]


class Watch:
    """Notes the names of what runs in the calls of the functions that :meth:`around` gives.

    A student's code can also run behind such a call, when somebody looks at what it returned: in a property, in a
    method of a metaclass, in a hook of a gradient. What it calls there is noted until the end of the :meth:`session`.

    Args:
        course: the folder that holds the course's package and the kit's as the student sees them; None where there is
            none.
        packages: the names of the two.
    """

    def __init__(self, course: str | None, packages: Iterable[str]) -> None:
        folders = [os.path.join(os.path.abspath(course), name, "") for name in packages] if course else []
        self._folders = tuple(folders)
        self._names: dict[str, None] = {}
        # a library's function may run in the middle of an answer, whenever garbage is collected; those that cells add
        # are noted like any other
        called_back = [code for each in gc.callbacks if (code := getattr(each, "__code__", None))]
        self._kinds: dict[int, tuple[CodeType, str, str]] = {id(code): (code, _OPAQUE, "") for code in called_back}
        self._place, self._is_open, self._is_removed = _Place(), False, False
        self._functions, self._operators = _Functions(self), _Operators(self)

    @contextlib.contextmanager
    def session(self) -> Iterator[None]:
        """Inside, what functions of a student's call is noted whoever runs them, and nothing else is."""
        before, in_threads = _get_profile(), threading.getprofile()
        self._place.turns = [(None, False)]
        threading.setprofile(self._profile)
        self._functions.__enter__()
        self._operators.__enter__()
        self._is_open, self._is_removed = True, False
        _set_profile(self._profile)
        try:
            yield
        finally:
            self._look_for_removal()
            _set_profile(before)
            threading.setprofile(in_threads)
            self._is_open = False
            self._leave()

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function``, watched while it runs, in a session of its own where none is open."""

        def watched(*inputs: Any, **options: Any) -> Any:
            with contextlib.nullcontext() if self._is_open else self.session():
                turns = self._place.turns
                depth = len(turns)
                turns.append((None, True))
                try:
                    return function(*inputs, **options)
                finally:
                    del turns[depth:]

        return watched

    def _look_for_removal(self) -> None:
        """Note, once a session, that one of the three observers is gone."""
        modes = (*_get_current_dispatch_mode_stack(), *_get_current_function_mode_stack())
        are_there = self._operators in modes and self._functions in modes
        if not self._is_removed and not (are_there and _get_profile() == self._profile):
            self._is_removed = True
            self.note(REMOVED)

    def _leave(self) -> None:
        """Take both modes away, with what was entered above them for good."""
        if self._operators in _get_current_dispatch_mode_stack():
            while _pop_dispatch_mode() is not self._operators:
                pass
        if self._functions in _get_current_function_mode_stack():
            while _pop_function_mode() is not self._functions:
                pass

    def names(self) -> list[str]:
        """The names that were noted since the last call, in their order."""
        if self._is_open:
            self._look_for_removal()
        noted = list(self._names)
        self._names.clear()
        return noted

    def note(self, name: str) -> None:
        """Take a name down; once there are too many, one of them says so."""
        if len(self._names) < MOST_NAMES:
            self._names[name[:_LONGEST_NAME]] = None

    def _profile(self, frame: FrameType, event: str, arg: Any) -> None:
        turns = self._place.turns
        if event == "call":
            kind, name = self._known(frame.f_code)
            if kind is _SKIPPED:
                return
            noting = not turns or turns[-1][1]
            if kind is _STUDENTS:
                self.note(name)
                if not noting:
                    turns.append((frame, True))
            elif noting:
                if name not in self._names and name:
                    self.note(name)
                if kind is _OPAQUE:
                    turns.append((frame, False))
        elif event == "return":
            if turns and turns[-1][0] is frame:
                turns.pop()
        elif event == "c_call" and (not turns or turns[-1][1]):
            self._called(arg, frame)

    def _called(self, function: Any, frame: FrameType) -> None:
        """Note a function in C++ by the name of its operator, and whoever takes the profile function away."""
        if function is _set_profile:
            if frame.f_code.co_filename != _HERE:
                self.note(REMOVED)
        elif (name := getattr(function, "__name__", "")) in OPERATORS and _is_torchs(function):
            self.note(f"torch.ops.aten.{name}")

    def _known(self, code: CodeType) -> tuple[str, str]:
        known = self._kinds.get(id(code))
        if known is None:
            self._kinds[id(code)] = known = (code, *_kind(code, self._folders))
        return known[1], known[2]


class _Functions(TorchFunctionMode):
    """Sees the functions of torch in C++ by their names, also those that are made of several operators."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if isinstance(func, BuiltinFunctionType | MethodDescriptorType) and self._watch._place.noting:
            name = func.__name__
            if name in OPERATORS:
                self._watch.note(f"torch.ops.aten.{name}")
        return func(*args, **(kwargs or {}))


class _Operators(TorchDispatchMode):
    """Sees every operator that runs, also those that others are made of."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # or torch imports its compiler, which takes a second

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        place = self._watch._place
        if place.noting and func.namespace in _NAMESPACES:
            self._watch.note(f"torch.ops.{func.namespace}.{func.overloadpacket.__name__}")
        depth = len(place.turns)
        place.turns.append((None, False))
        try:
            return func(*args, **(kwargs or {}))
        finally:
            del place.turns[depth:]


def _is_torchs(function: Any) -> bool:
    """Whether a function in C++ is torch's: a method of tensors, or of one of its modules."""
    owner = getattr(function, "__self__", None)
    return isinstance(owner, torch.Tensor) or any(owner is each for each in _OWNERS)


def _kind(code: CodeType, folders: tuple[str, ...]) -> tuple[str, str]:
    """Whose a function is, by the file that it was compiled from, and the name by which it is noted."""
    file = code.co_filename
    if file.startswith(_GRAPH_MODULE):
        return _NOTED, "torch.fx.GraphModule"
    if file == _HERE or (file.startswith("<") and not file.startswith(_CELLS)):
        return _SKIPPED, ""  # compiled from a text: it belongs to whoever called it
    if file.startswith(_WORKER):
        return _OPAQUE, ""
    folder = next((each for each in folders if file.startswith(each)), None)
    module = f"{folder.split(os.sep)[-2]}.{_dotted(file[len(folder) :])}" if folder else _installed(file)
    if module is None:
        return (_SKIPPED, "") if file.startswith(_STANDARD) else (_STUDENTS, f"{OWN}{code.co_qualname}")
    if module in _FINDERS:
        return _SKIPPED, ""
    if not code.co_flags & _OPTIMIZED:
        return (_OPAQUE, "") if code.co_name == "<module>" else (_SKIPPED, "")
    return _OPAQUE if folder else _NOTED, f"{module}.{code.co_qualname.partition('.')[0]}"


def _installed(file: str) -> str | None:
    """The dotted name of an installed module's file; None for any other file."""
    parts = file.split(os.sep)
    for folder in _PACKAGES:
        if folder in parts:
            return _dotted(os.sep.join(parts[len(parts) - parts[::-1].index(folder) :]))
    return None


def _dotted(file: str) -> str:
    return file.removesuffix(".py").removesuffix(f"{os.sep}__init__").replace(os.sep, ".")
