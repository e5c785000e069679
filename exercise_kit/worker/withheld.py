"""What an exercise forbids, taken out of the worker that runs its answer, before any of a student's code runs there.

An operator refuses at torch's dispatcher, whoever calls it: a module, a thread, TorchScript, a call behind guards, a
reference that was kept. What registers that is an object to which no other of Python's leads, so that nothing of a
student's can take it back, and no name leads to the kernels below. A function that is Python alone gets other code,
wherever it is held; a library's text that is executed anew is a student's own code, and is left to whoever reads it.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import CodeType, FunctionType, ModuleType
from typing import Any, NoReturn

import torch

# what runs kernels without the dispatcher: TorchScript's static runtime, its tensor expressions, oneDNN's graphs
_RUN_BY_THEMSELVES = ("_jit_to_static_module", "_te", "_jit_set_llga_enabled")
# the modules of torch that compute in Python what other modules leave to one operator
_IN_PYTHON = """
    nn.functional nn.modules._functions nn.modules.activation nn.modules.transformer nn.attention.flex_attention _refs
    _refs.nn.functional _decomp.decompositions _decomp.decompositions_for_jvp _higher_order_ops.flex_attention
    nested._internal.sdpa onnx.ops onnx.ops._impl ao.nn.quantizable.modules.activation
    _inductor.fx_passes.fuse_attention
"""
_NAME = "(its name)"
_refused: dict[str, None] = {}
_ever: set[str] = set()


def withhold(words: str) -> None:
    """Make what computes an answer refuse, in this process and for good.

    Args:
        words: a pattern that occurs in the names of the operators, functions and classes that are withheld.
    """
    wanted = re.compile(words)
    for name in _RUN_BY_THEMSELVES:
        vars(torch._C).pop(name, None)
        sys.modules.pop(f"torch._C.{name}", None)
    operators = torch._C._dispatch_get_all_op_names()
    _refuse_operators(each for each in operators if wanted.search(each.partition("::")[2].partition(".")[0]))
    modules = {f"torch.{each}" for each in _IN_PYTHON.split()}
    for module in modules & sys.modules.keys():
        _refuse_functions(sys.modules[module], wanted)
    sys.meta_path.insert(0, _Finder(modules, wanted))


def _refuse_operators(operators: Iterable[str]) -> None:
    """Put a refusal in the place of every kernel that these operators have, by their names with overloads."""
    has_kernel, libraries = torch._C._dispatch_has_kernel_for_dispatch_key, dict[str, Any]()
    keys = [key for key in vars(torch._C.DispatchKey) if torch._C._parse_dispatch_key(key) is not None]
    for operator in operators:
        namespace, _, name = operator.partition("::")
        if namespace not in libraries:
            libraries[namespace] = library = torch._C._dispatch_library("IMPL", namespace, "", __file__, 0)
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))  # held by nobody, and never given back
        refusal = _make_refusal(namespace, name.partition(".")[0])
        for key in keys:
            if has_kernel(operator, key):
                libraries[namespace].impl(name, key, refusal)


def _write_operator_name(namespace: str, name: str) -> str:
    """An operator as the documentation has it."""
    if namespace == "aten":
        for prefix, module in (("torch", torch), ("torch.nn.functional", torch.nn.functional)):
            if hasattr(module, name):
                return f"{prefix}.{name}"
    return f"torch.ops.{namespace}.{name}"


def _make_refusal(namespace: str, name: str) -> Callable[..., NoReturn]:
    def refuse_call(*_: Any, **__: Any) -> NoReturn:
        refuse(f"torch.ops.{namespace}.{name}", _write_operator_name(namespace, name))

    return refuse_call


def refuse(name: str, public: str = "") -> NoReturn:
    """Note that something was called, and raise.

    Args:
        name: dotted, as the engine's ``Rule`` has it.
        public: as the documentation has it, where that is another.
    """
    _refused[name] = None
    _ever.add(name)
    raise RuntimeError(f"`{public or name}` was called, which this exercise asks you to do without")


def has_refused() -> bool:
    """Say whether anything was refused in this process."""
    return bool(_ever)


def pop_new_refusals() -> list[str]:
    """Return what was refused since the last call of this, whoever called it."""
    found = list(_refused)
    _refused.clear()
    return found


def _refuse_functions(module: ModuleType, name_pattern: re.Pattern[str]) -> None:
    """Give a module's functions of such names, and what makes and runs its classes' objects, code that refuses."""
    for name, held in list(vars(module).items()):
        if name_pattern.search(name) and getattr(held, "__module__", "") == module.__name__:
            for function in _list_functions(held):
                replace_with_refusal(function, f"{module.__name__}.{name}")


def _list_functions(value: Any) -> Iterator[FunctionType]:
    """A function with those that it wraps, or how a class makes its objects and computes."""
    for found in (vars(value).get(name) for name in ("__init__", "forward")) if isinstance(value, type) else (value,):
        yield from unwrap_functions(found)


def unwrap_functions(value: Any) -> Iterator[FunctionType]:
    """A function, or what a static or a class method holds, with those that it wraps; nothing of what is none."""
    found = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    while isinstance(found, FunctionType):
        yield found
        found = getattr(found, "__wrapped__", None)


def replace_with_refusal(function: FunctionType, name: str) -> None:
    """Exchange a function's code for one that refuses, with the old one's name and file, but no text of its own."""
    old = function.__code__
    code = _compile_refusal(old.co_freevars)
    function.__code__ = code.replace(
        co_consts=tuple(name if each == _NAME else each for each in code.co_consts),
        co_filename=old.co_filename,
        co_name=old.co_name,
        co_qualname=old.co_qualname,
        co_firstlineno=1,
    )


@cache
def _compile_refusal(variables: tuple[str, ...]) -> CodeType:
    """Code that refuses, of a function that keeps as many variables of the scope around it as it had."""
    names = ", ".join(variables)
    lines = (
        f"def around({names}):",
        " def refuse(*_, **__):",
        f"  if 0: {names or 0}",
        f"  __import__('sys').modules[{__name__!r}].refuse({_NAME!r})",
    )
    made: dict[str, Any] = {}
    exec("\n".join((*lines, " return refuse")), made)
    code: CodeType = made["around"](*variables).__code__
    return code


class _Finder(MetaPathFinder):
    """Finds these modules as they are found without it, and withholds what is in them once they have run."""

    def __init__(self, modules: set[str], wanted: re.Pattern[str]) -> None:
        self._modules, self._wanted = modules, wanted

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The module's own place, with another loader."""
        spec = PathFinder.find_spec(name, path, target) if name in self._modules else None
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._wanted)
        return spec


class _Loader(Loader):
    def __init__(self, loader: Any, wanted: re.Pattern[str]) -> None:
        self._loader, self._wanted = loader, wanted

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the module's own loader does."""
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Run it, then withhold."""
        self._loader.exec_module(module)
        _refuse_functions(module, self._wanted)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
