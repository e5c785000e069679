"""Muon, with all matrices of one shape orthogonalized as one batch.

torch.optim.Muon takes one matrix after another: for a small ViT on a GPU that is a thousand launches a step, which take
longer than the products themselves. Nor can it leave out a step inside a CUDA graph, or compute in float16 on a T4,
which emulates bfloat16. The numbers are torch's, but for rounding: after eight steps 24 matrices lie 0.1 % apart.

Source: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the quintic, tuned by Jordan et al. to lift small singular values fast
STEPS = 5
SMALLEST_NORM = 1e-7


class Muon(Optimizer):
    """Momentum, then the nearest matrix whose singular values are about 1.

    Args:
        params: matrices (rows, columns), on one device.
        lr: learning rate; a matrix with more rows than columns gets sqrt(rows / columns) times as much.
        weight_decay: decoupled, as in AdamW.
        momentum: of the moving average of gradients, applied as Nesterov does.

    Attributes:
        products: type of the numbers that are multiplied; None for `choose_product_dtype`.
        found_inf: () float32 on the device, 1 for a step that is to change nothing; set by whoever scales gradients.

    Raises:
        ValueError: when a parameter is no matrix.
    """

    def __init__(
        self, params: Iterable[Tensor], lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95
    ) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})
        self.products: torch.dtype | None = None
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.ndim != 2:
                    raise ValueError(f"Muon updates matrices, not a parameter of shape {tuple(parameter.shape)}")

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameters in _group_by_shape(group["params"]):
                self._update_same_shape(parameters, group)
        return loss

    def _update_same_shape(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Update matrices that have one shape, up to transposition."""
        parameters = sorted(parameters, key=_is_tall, reverse=True)  # those of one shape side by side
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        averages = [self._get_momentum_average(parameter) for parameter in parameters]
        rate, found_inf = group["lr"], getattr(self, "found_inf", None)
        if found_inf is not None:  # then nothing moves: an average that is pulled towards itself, a rate of 0
            pairs = zip(averages, gradients, strict=True)
            gradients = [torch.where(found_inf > 0, average, gradient) for average, gradient in pairs]
            rate = rate * (1 - found_inf)
        torch._foreach_lerp_(averages, gradients, 1 - group["momentum"])
        ahead = torch._foreach_lerp(gradients, averages, group["momentum"])
        wide = torch.stack([each.mT if _is_tall(each) else each for each in ahead])  # (matrices, rows, columns)
        directions = orthogonalize(wide, self.products or choose_product_dtype(wide.device))
        torch._foreach_mul_(parameters, 1 - rate * group["weight_decay"])
        tall = sum(map(_is_tall, parameters))
        for alike, ways in ((parameters[:tall], directions[:tall].mT), (parameters[tall:], directions[tall:])):
            if alike:
                rows, columns = alike[0].shape
                moves = ways.to(alike[0].dtype, memory_format=torch.contiguous_format)
                torch._foreach_add_(alike, list(moves.mul_(-rate * math.sqrt(max(1.0, rows / columns)))))

    def _get_momentum_average(self, parameter: Tensor) -> Tensor:
        state = self.state[parameter]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        return state["momentum_buffer"]


def choose_product_dtype(device: torch.device) -> torch.dtype:
    """bfloat16 on a GPU, or float16 on one that only emulates bfloat16, as a T4 does; float32 on a CPU.

    Most CPUs emulate bfloat16, too. With AVX2 alone a step of `cpu-coffee`, 64 images, took 445 ms of one core so, and
    takes 251 (benchmarks/results/cpu_step_avx2_before.json, cpu_step_avx2.json).
    """
    if device.type == "cpu":
        return torch.float32
    emulated = device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.float16 if emulated else torch.bfloat16


def orthogonalize(matrices: Tensor, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """Bring all singular values near 1, into about 0.7 to 1.2, by five Newton-Schulz steps.

    Args:
        matrices: (matrices, rows, columns), not taller than wide.
        dtype: of the products. No number in them is large, and float16 holds the small ones once the norm is 1.

    Returns:
        (matrices, rows, columns) of that dtype.
    """
    a, b, c = COEFFICIENTS
    x = (matrices / matrices.norm(dim=(1, 2), keepdim=True).clamp(min=SMALLEST_NORM)).to(dtype)
    for _ in range(STEPS):
        gram = x @ x.mT  # (matrices, rows, rows)
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


def _is_tall(matrix: Tensor) -> bool:
    return matrix.shape[0] > matrix.shape[1]


def _group_by_shape(parameters: list[Tensor]) -> Iterable[list[Tensor]]:
    """Parameters with a gradient, those together that have one shape when laid down wide."""
    alike: dict[tuple[int, ...], list[Tensor]] = {}
    for parameter in parameters:
        if parameter.grad is not None:
            alike.setdefault(tuple(sorted(parameter.shape)), []).append(parameter)
    return alike.values()
