"""In which precision a device trains fastest without losing anything that matters."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
from torch import nn

from vit_course.training.settings import Precision

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
# From here on bfloat16 is worth it on a core that has it. Measured on two machines of two cores, a step in float32 over
# one in bfloat16: width 96: 0.87 and 0.66, width 128: 1.2 and 0.9, width 192: 1.8 and 1.5. Narrow products are too
# short to pay for the conversions.
WIDE_ENOUGH = 128


def choose_precision(asked: Precision, device: torch.device, model: nn.Module) -> Precision:
    """Resolve "auto": bf16 where the device computes in it, on CUDA otherwise fp16, on a CPU otherwise fp32.

    Raises:
        ValueError: for fp16 on a CPU, whose small gradients would vanish and which is slower there anyway.
    """
    if asked == "fp16" and device.type == "cpu":
        raise ValueError('precision "fp16" is for GPUs; on a CPU use "auto", "bf16" or "fp32"')
    if asked != "auto":
        return asked
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
    return "bf16" if has_bf16_core() and width(model) >= WIDE_ENOUGH else "fp32"


def has_bf16_core() -> bool:
    """Whether this CPU multiplies bfloat16 by itself, by AVX-512 BF16 or AMX; emulated, it is slower than float32.

    An older torch cannot tell, and float32 is never wrong.
    """
    ask = getattr(torch.cpu, "get_capabilities", None)
    abilities = {} if ask is None else ask()
    return bool(abilities.get("avx512_bf16") or abilities.get("amx_bf16"))


def width(model: nn.Module) -> int:
    """The model's largest Linear layer, by its smaller side: embed_dim in a ViT; 0 without any."""
    sides = [min(layer.in_features, layer.out_features) for layer in model.modules() if isinstance(layer, nn.Linear)]
    return max(sides, default=0)


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """The context of a forward pass in this precision."""
    dtype = DTYPES.get(precision, torch.bfloat16)
    return torch.autocast(device.type, dtype, enabled=precision in DTYPES)
