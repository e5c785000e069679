"""What a model computes in one forward pass: torch's operations in order, each with what it was made from.

No boundary of a module, no signature and no name of the model's is needed: torch hands every function that it runs to
the watcher. The operations form a graph, in which later questions walk back.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

# what only moves numbers about
_MOVES = """
view reshape transpose permute unsqueeze squeeze flatten ravel expand chunk split unbind __getitem__
contiguous clone swapaxes movedim moveaxis narrow select t unflatten to float type_as detach dropout identity
__get__ broadcast_to unsafe_chunk unsafe_split view_as expand_as alias rearrange tensor_split double type
adjoint mT requires_grad_
"""
MOVES = frozenset(_MOVES.split())
ADDS = frozenset(["add", "__add__", "__radd__", "add_", "__iadd__"])
PRODUCTS = frozenset(["matmul", "__matmul__", "bmm", "einsum", "__rmatmul__", "mm", "baddbmm"])
LINEARS = PRODUCTS | frozenset(["linear", "addmm", "conv1d", "conv2d", "conv3d", "tensordot", "bilinear"])
NORMS = frozenset({"layer_norm", "batch_norm", "group_norm", "rms_norm", "instance_norm"})
# what norms are made of, where they are written by hand
STATISTICS = NORMS | {"rsqrt", "sqrt", "std", "var", "var_mean", "norm", "normalize", "linalg_vector_norm"}
BENDS = frozenset(
    {"gelu", "relu", "relu_", "silu", "leaky_relu", "elu", "selu", "tanh", "sigmoid", "mish", "hardswish"}
)
_STDLIB = sysconfig.get_path("stdlib")
FUSED = "scaled_dot_product_attention"
TIMES = frozenset(["mul", "__mul__", "__rmul__", "multiply", "mul_", "__imul__"])
_OVER = frozenset(["div", "__truediv__", "true_divide", "div_", "__itruediv__", "divide"])


@dataclass(eq=False)
class Op:
    """One operation: its number, its name in torch, the tensors that it reads with what made them, its result.

    Attributes: ``past`` holds a bit for every operation that the result depends on, itself included; ``module`` is the
    innermost module that ran, by its path; ``where`` the line of the model's own source; ``data`` whether the images
    have a part in it, else it is the model's own: a weight, a table.
    """

    number: int
    name: str
    reads: list[tuple[Tensor, Op | None]]
    out: Tensor
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    module: str
    where: tuple[str, int] | None
    data: bool
    past: int = 0

    def __post_init__(self) -> None:
        self.past = 1 << self.number
        for _, maker in self.reads:
            self.past |= maker.past if maker else 0

    def needs(self, other: Op) -> bool:
        """Say whether the result depends on another operation."""
        return bool(self.past >> other.number & 1)


Edit = Callable[[Tensor], Tensor]


class Watch(TorchFunctionMode):
    """Records operations while it is entered; ``edits`` replaces results, by the operations' numbers."""

    def __init__(self, images: Tensor, edits: dict[int, Edit] | None = None, modules: list[str] | None = None) -> None:
        super().__init__()
        self.images = images
        self.edits = edits or {}
        self.ops: list[Op] = []
        self.modules = modules if modules is not None else []
        self._last: dict[int, Op] = {}
        self._count = 0

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", str(func))
        if func is F.multi_head_attention_forward:  # opened up, so that its parts are seen
            with patch.object(F, "has_torch_function", lambda _: False), self:
                return func(*args, **kwargs)
        reads = [(each, self._last.get(id(each))) for each in _iterate_tensors((*args, *kwargs.values()))]
        result = func(*args, **kwargs)
        outs = [each for each in (result if isinstance(result, tuple | list) else [result]) if isinstance(each, Tensor)]
        if name == "__setitem__":
            outs = [args[0]]
        if not outs or (name in MOVES and any(outs[0] is each for each, _ in reads)):
            return result
        edit = self.edits.get(self._count)
        if edit and isinstance(result, Tensor):
            result = edit(result)
            outs = [result]
        where = _find_calling_model_line()
        data = any(each is self.images or (maker is not None and maker.data) for each, maker in reads)
        for out in outs:
            op = Op(self._count, name, reads, out, args, kwargs, self._current_module, where, data)
            self.ops.append(op)
            self._count += 1
            self._last[id(out)] = op
            if out._base is not None and (name == "__setitem__" or (name[-1] == "_" and name[-2:] != "__")):
                self._last[id(out._base)] = op
        return result

    @property
    def _current_module(self) -> str:
        return self.modules[-1] if self.modules else ""


def _iterate_tensors(values: Any) -> Iterator[Tensor]:
    for each in values:
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, tuple | list):
            yield from _iterate_tensors(each)


def is_model_source_file(file: str) -> bool:
    """Say whether a source file is neither torch's nor Python's own."""
    of_python = file.startswith(_STDLIB) and "site-packages" not in file
    return not (of_python or "/torch/" in file or "/einops/" in file or file.startswith("<frozen"))


def _find_calling_model_line() -> tuple[str, int] | None:
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if is_model_source_file(file) and file != __file__:
            return (file, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return None


@dataclass(frozen=True)
class Source:
    """Where numbers come from, back through moves and constant factors.

    Attributes: ``op`` that computed them, None for an input or a parameter; ``tensor``, its result; ``factor``, by
    which they were multiplied since, None where it is no constant.
    """

    op: Op | None
    tensor: Tensor
    factor: float | None


def trace_source(tensor: Tensor, op: Op | None, scales: bool = True) -> Source:
    """The source of a tensor that ``op`` made; a constant factor is walked through with ``scales`` only."""
    factor: float | None = 1.0
    while op is not None and op.reads:
        if op.name in MOVES:
            tensor, op = op.reads[0]
            continue
        step = find_constant_factor(op) if scales else None
        if step is None:
            break
        (tensor, op), times = step
        factor = None if factor is None or times is None else factor * times
    return Source(op, tensor, factor)


def find_constant_factor(op: Op) -> tuple[tuple[Tensor, Op | None], float | None] | None:
    """Find what an operation multiplies and by how much (None: by something learned); None if it does not multiply."""
    if op.name not in TIMES | _OVER or len(op.args) != 2:
        return None
    for big, small in ((0, 1), (1, 0)):
        factor = op.args[small]
        if isinstance(op.args[big], Tensor) and (not isinstance(factor, Tensor) or factor.numel() == 1):
            if op.name in _OVER and big == 1:
                return None
            read = next(pair for pair in op.reads if pair[0] is op.args[big])
            if isinstance(factor, Tensor) and factor.requires_grad:
                return read, None
            number = float(factor)
            return read, number if op.name in TIMES else 1 / number if number else None
    return None


def is_independent_of_images(tensor: Tensor, op: Op | None) -> bool:
    """Say whether the numbers are the model's own (a weight, a table) and not made from the images."""
    return not op.data if op else True


def list_ops_between(late: Op | None, early: Op | None, ops: list[Op]) -> list[Op]:
    """Operations on the ways from ``early`` to ``late``: those after the first, up to the second."""
    if late is None or early is None:
        return []
    return [op for op in ops[early.number + 1 : late.number + 1] if late.needs(op) and op.needs(early)]


def compute_gradient(of: Tensor, to: Tensor) -> Tensor:
    """The gradient of a random sum of ``of``, which is the same for the same shape; zeros where none comes back."""
    weights = torch.randn(of.shape, generator=torch.Generator().manual_seed(2)).to(of)
    if not of.requires_grad:
        return torch.zeros_like(to)
    (found,) = torch.autograd.grad((of * weights).sum(), to, retain_graph=True, allow_unused=True)
    return torch.zeros_like(to) if found is None else found


def measure_homogeneity_degree(of: Tensor, to: Tensor) -> float:
    """By Euler's theorem, how a result grows with what it is made from: 1 for a linear map, 0 behind a norm."""
    weights = torch.randn(of.shape, generator=torch.Generator().manual_seed(2)).to(of)
    grown = float((compute_gradient(of, to) * to).detach().sum())
    return grown / (float((of * weights).detach().sum()) or 1e-12)
