"""What an answer may call, in the exercises that ask their students to write something themselves.

Each such exercise has a :class:`Rule`, as its text says it. What an answer called is noted while it runs
(:mod:`exercise_kit.worker.watch`) and compared here, for ``check`` in the student's kernel and for the judge.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from exercise_kit.engine.tensor_operations import FUNCTIONS, MODULES, is_operation
from exercise_kit.engine.words import quoted
from exercise_kit.worker.watch import MOST_NAMES, REMOVED

_OPERATORS = "torch.ops.aten."
# the parts of torch that hold ready-made answers beside its operators, and what in them holds none
_ANSWERS_OF_TORCH = """
    nn ops _refs _decomp _prims _numpy _transformers _higher_order_ops.flex_attention ao quantization onnx
    export fx _inductor.fx_passes
"""
_HELPERS_OF_TORCH = """
    nn.functional._ nn._reduction. nn.grad. nn.init. nn.parameter. nn.utils. ops.prim. ops.prims. ops.profiler.
    ops.higher_order. onnx._ onnx.is_in_onnx_export export._ fx._ fx.experimental. fx.immutable_collections.
    fx.traceback. fx.node. fx.operator_schemas.
"""
_HOLDS_ANSWERS = tuple(f"torch.{part}." for part in _ANSWERS_OF_TORCH.split())
_HELPERS = (*MODULES, *(f"torch.{part}" for part in _HELPERS_OF_TORCH.split()))
_MULTIHEAD = "torch.nn.modules.activation.MultiheadAttention"
_TRACED = ("torch.fx._symbolic_trace.symbolic_trace", "torch.fx._symbolic_trace.Tracer")
# libraries that hold no answer: what they do to tensors are torch's operators, which are seen by themselves
_HARMLESS = """
    IPython PIL attr attrs beartype coverage debugpy decorator einops fastcore icecream ipykernel jaxtyping joblib
    matplotlib more_itertools mpmath networkx numexpr numpy opt_einsum packaging pandas pluggy psutil _pydevd_bundle
    pydantic pydevd _pytest pytest pytest_cov rich scipy six sympy tabulate toolz torchinfo torchtyping tqdm traitlets
    typeguard typing_extensions
"""
_LIBRARIES = tuple(f"{library}." for library in _HARMLESS.split())


@dataclass(frozen=True)
class Rule:
    """What one exercise allows.

    Attributes: ``why``, the sentence that a student reads after the name of what was called; ``tensors``, whether
    operations on tensors and the modules that hold them are allowed; ``names`` and ``operators``, what is allowed
    beside them: dotted names (one that ends in a dot: all that it holds), and how the operators' names begin;
    ``own``, the modules of the course's own answers, as dotted names that end in a dot, and ``parts``, whether it may
    build on those; and ``others``, students' own answers to other exercises that would answer this one too.
    """

    why: str
    tensors: bool = True
    parts: bool = True
    names: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    def allows(self, name: str) -> bool:
        """Whether an answer may call what :class:`exercise_kit.worker.watch.Watch` noted by this name."""
        if name.startswith(self.own):
            return self.parts
        if name in self.names or name.startswith((*_LIBRARIES, *(each for each in self.names if each[-1] == "."))):
            return True
        if not self.tensors:
            return False
        if name.startswith(_OPERATORS):
            operator = name.removeprefix(_OPERATORS)
            return is_operation(operator) or operator.startswith(self.operators)
        if name in FUNCTIONS or (name.startswith(_HELPERS) and name not in (_MULTIHEAD, *_TRACED)):
            return True
        return name.startswith("torch.") and not name.startswith(_HOLDS_ANSWERS)


def not_allowed(rule: Rule | None, names: Iterable[str]) -> str | None:
    """What a student reads about the first thing that an answer called and may not; None where there is none.

    Args:
        rule: of the exercise; without one everything is allowed.
        names: what was noted while the answer ran, in order.
    """
    noted = list(dict.fromkeys(names))
    if rule is None:
        return None
    if REMOVED in noted or len(noted) >= MOST_NAMES:
        return f"Something in it hides what it calls while it runs. No answer needs that. {rule.why}"
    called = [_public(name) for name in noted if not rule.allows(name)]
    told = next((name for name in called if "._" not in name), *called[:1]) if called else None
    return f"{quoted(told)} was called. {rule.why}" if told else None


def _public(name: str) -> str:
    """A dotted name as the documentation has it."""
    if name.startswith("torch.nn.modules."):
        return f"torch.nn.{name.rpartition('.')[2]}"
    if name.startswith(_OPERATORS):
        short = name.removeprefix(_OPERATORS)
        homes = {"torch": torch, "torch.nn.functional": torch.nn.functional}
        return next((f"{home}.{short}" for home, module in homes.items() if hasattr(module, short)), name)
    return name
