"""Rollout as the repositories that explain ViTs write it, with the identity added in each layer."""

from collections.abc import Sequence

import torch


def attention_rollout(weights: Sequence[torch.Tensor]) -> torch.Tensor:
    """Attention rollout (Abnar and Zuidema, 2020)."""
    if len(weights) == 0:
        # bug "no layer left to python":
        raise ValueError("rollout of no layers")
        # bug "no layer left to python":
    first = weights[0]
    identity = torch.eye(first.size(-1), dtype=first.dtype, device=first.device)
    # bug "identity of another dtype": identity = torch.eye(first.size(-1), device=first.device)
    # bug "identity on the cpu": identity = torch.eye(first.size(-1), dtype=first.dtype)
    result: torch.Tensor | None = None
    for attention in weights:
        # bug "earlier layers on the left": for attention in reversed(weights):
        attention_fused = attention.mean(dim=1)
        # bug "strongest head only": attention_fused = attention.max(dim=1).values
        # bug "heads summed": attention_fused = attention.sum(dim=1)
        # bug "averaged over the images": attention_fused = attention.mean(dim=0)
        a = attention_fused + identity
        # bug "identity forgotten": a = attention_fused
        # bug "identity once at the end": a = attention_fused
        # bug "first layer without itself": a = attention_fused if result is None else attention_fused + identity
        # bug "written into the weights": attention += identity
        # bug "written into the weights": a = attention.mean(dim=1)
        a = a / a.sum(dim=-1, keepdim=True)
        # bug "rows not shared out again":
        # bug "columns sum to one": a = a / a.sum(dim=-2, keepdim=True)
        result = a if result is None else torch.matmul(a, result)
        # bug "multiplied place by place": result = a if result is None else a * result
        # bug "layers averaged": result = a / len(weights) if result is None else result + a / len(weights)
        # bug "last layer only": result = a
    assert result is not None
    # bug "identity once at the end": result = (result + identity) / 2
    return result
    # bug "first image only": return result[0]
    # bug "batch of one squeezed": return result.squeeze(0)
