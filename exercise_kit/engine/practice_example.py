"""The worked example of an exercise's docstring, run with a student's own function in the place of the name.

This runs beside a student's code, imports nothing else of the answers, holds none, and judges nothing.
"""

from __future__ import annotations

import ast
import linecache
import math
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

_FILE = "<the example>"


def example(
    function: Callable[..., Any], name: str, source: str, homes: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run the statements of an example, in which ``function`` goes by ``name``.

    Args:
        source: the example's lines, without their prompts and without what they should give; they may use ``torch``,
            ``nn``, ``F``, ``math``.
        homes: by the other names that they use the modules that hold them; "" for a module of that name.

    Returns:
        "values", of every statement that is an expression, in order.
    """
    linecache.cache[_FILE] = (len(source), None, source.splitlines(keepends=True), _FILE)
    names: dict[str, Any] = {"torch": torch, "nn": nn, "F": F, "math": math}
    for each, home in (homes or {}).items():
        names[each] = getattr(import_module(home), each) if home else import_module(each)
    names[name] = _alone(function)
    values = []
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Expr):
            values.append(eval(compile(ast.Expression(statement.value), _FILE, "eval"), names))
        else:
            exec(compile(ast.Module([statement], []), _FILE, "exec"), names)
    return {"values": values}


def _alone(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function; a default dtype or device that a call of it sets is not the example's."""

    def called(*inputs: Any, **options: Any) -> Any:
        dtype, device = torch.get_default_dtype(), torch.get_default_device()
        try:
            result = function(*inputs, **options)
            with torch._C.DisableTorchFunctionSubclass():  # a subclass of Tensor has methods of its own
                return result.as_subclass(torch.Tensor) if isinstance(result, torch.Tensor) else result
        finally:
            torch.set_default_dtype(dtype)
            if torch.get_default_device() != device:
                torch.set_default_device(device)

    return called


PRACTICES: dict[str, Callable[..., dict[str, Any]]] = {"example": example}
