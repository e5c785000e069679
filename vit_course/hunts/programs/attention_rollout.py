"""Rollout as the repositories that explain ViTs write it, with the identity added in each layer."""

import torch


def suspect_rollout(weights):
    """Attention rollout (Abnar and Zuidema, 2020)."""
    if len(weights) == 0:
        # bug "no layer left to python":
        raise ValueError("rollout of no layers")
        # bug "no layer left to python":
    identity = torch.eye(weights[0].size(-1)).to(weights[0])
    result = None
    for attention in weights:
        # bug "earlier layers on the left": for attention in reversed(weights):
        attention_fused = attention.mean(dim=1)
        # bug "strongest head only": attention_fused = attention.max(dim=1).values
        # bug "heads summed": attention_fused = attention.sum(dim=1)
        # bug "averaged over the images": attention_fused = attention.mean(dim=0)
        a = attention_fused + identity
        # bug "identity forgotten": a = attention_fused
        a = a / a.sum(dim=-1, keepdim=True)
        # bug "rows not shared out again":
        # bug "columns sum to one": a = a / a.sum(dim=-2, keepdim=True)
        result = a if result is None else torch.matmul(a, result)
        # bug "multiplied place by place": result = a if result is None else a * result
        # bug "last layer only": result = a
    return result
