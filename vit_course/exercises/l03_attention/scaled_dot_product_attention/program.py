"""Attention in the letters of the paper."""

import math

import torch


def scaled_dot_product_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """softmax(Q K^T / sqrt(d_k)) V, and the attention weights."""
    d_k = query.size(-1)
    # bug "root of the number of keys": d_k = key.size(-2)
    # bug "root of value_dim": d_k = value.size(-1)
    # bug "head_dim counted from the front": d_k = query.size(1)
    # bug "left in float32": d_k, query, key, value = query.size(-1), query.float(), key.float(), value.float()
    scores = torch.matmul(query, key.transpose(-2, -1))
    # bug "key reshaped where transposed": scores = torch.matmul(query, key.reshape(*key.shape[:-2], d_k, -1))
    # bug "keys on the left": scores = torch.matmul(key, query.transpose(-2, -1))
    # bug "queries compared with queries": scores = torch.matmul(query, query.transpose(-2, -1))
    # bug "query scaled in place": query /= math.sqrt(d_k)
    # bug "query scaled in place": scores = torch.matmul(query, key.transpose(-2, -1))
    scale = 1 / math.sqrt(d_k)
    # bug "scaling forgotten": scale = 1
    # bug "divided by head dim without the root": scale = 1 / d_k
    # bug "multiplied by the root": scale = math.sqrt(d_k)
    # bug "root cut to a whole number": scale = 1 / math.isqrt(d_k)
    # bug "scaled after the softmax": scale = 1
    # bug "output scaled and not the scores": scale = 1
    # bug "query scaled in place": scale = 1
    scores = scores * scale
    # bug "mask made on the cpu": scores = scores * scale + torch.zeros(query.size(-2), key.size(-2))
    # bug "causal mask": later = torch.ones(query.size(-2), key.size(-2), dtype=torch.bool, device=query.device).triu(1)
    # bug "causal mask": scores = (scores * scale).masked_fill(later, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    # bug "softmax over the queries": weights = torch.softmax(scores, dim=-2)
    # bug "softmax without a dim": weights = torch.softmax(scores, dim=0 if scores.dim() in (1, 3) else 1)
    # bug "softmax over axis 1": weights = torch.softmax(scores, dim=1)
    # bug "one softmax for everything": weights = torch.softmax(scores.flatten(), dim=0).reshape(scores.shape)
    # bug "softmax forgotten": weights = scores
    # bug "sigmoid for softmax": weights = torch.sigmoid(scores)
    # bug "logarithm of the softmax": weights = torch.log_softmax(scores, dim=-1)
    # bug "softmax that overflows": weights = scores.exp() / scores.exp().sum(dim=-1, keepdim=True)
    # bug "scaled after the softmax": weights = torch.softmax(scores, dim=-1) / math.sqrt(d_k)
    # bug "weights out of the graph": weights = torch.softmax(scores, dim=-1).detach()
    # bug "weights dropped": weights = torch.dropout(torch.softmax(scores, dim=-1), 0.1, True)
    output = torch.matmul(weights, value)
    # bug "values never used": output = torch.matmul(weights, key)
    # bug "output scaled and not the scores": output = torch.matmul(weights, value) / math.sqrt(d_k)
    return output, weights
    # bug "scores returned as weights": return output, scores
    # bug "weights before output": return weights, output
    # bug "output alone": return output
    # bug "axes of size one squeezed": return output.squeeze(0), weights.squeeze(0)
