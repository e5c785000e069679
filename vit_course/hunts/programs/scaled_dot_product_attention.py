"""Attention in the letters of the paper."""

import math

import torch


def suspect_attention(query, key, value):
    """softmax(Q K^T / sqrt(d_k)) V, and the attention weights."""
    d_k = query.size(-1)
    # bug "root of the number of keys": d_k = key.size(-2)
    scores = torch.matmul(query, key.transpose(-2, -1))
    # bug "key reshaped where transposed": scores = torch.matmul(query, key.reshape(*key.shape[:-2], d_k, -1))
    scores = scores / math.sqrt(d_k)
    # bug "scaling forgotten":
    # bug "divided by head dim without the root": scores = scores / d_k
    # bug "multiplied by the root": scores = scores * math.sqrt(d_k)
    # bug "scaled after the softmax":
    weights = torch.softmax(scores, dim=-1)
    # bug "softmax over the queries": weights = torch.softmax(scores, dim=-2)
    # bug "softmax that overflows": weights = scores.exp() / scores.exp().sum(dim=-1, keepdim=True)
    # bug "scaled after the softmax": weights = torch.softmax(scores, dim=-1) / math.sqrt(d_k)
    output = torch.matmul(weights, value)
    # bug "values never used": output = torch.matmul(weights, key)
    return output, weights
    # bug "scores returned as weights": return output, scores
