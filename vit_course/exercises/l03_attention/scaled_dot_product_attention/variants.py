"""Right answers in other styles: what no check may refuse."""

import math

import torch
import torch.nn.functional as F

from vit_course import attention as reference


def attention_by_einsum(query, key, value):
    scores = torch.einsum("...qd,...kd->...qk", query, key) / math.sqrt(query.shape[-1])
    weights = F.softmax(scores, dim=-1)
    return torch.einsum("...qk,...kv->...qv", weights, value), weights


def attention_by_bmm(query, key, value):
    leading = query.shape[:-2]
    flat = [each.reshape(-1, *each.shape[-2:]) for each in (query, key, value)]
    weights = torch.softmax(torch.bmm(flat[0] / flat[0].shape[-1] ** 0.5, flat[1].mT), dim=2)
    output = torch.bmm(weights, flat[2])
    return output.reshape(*leading, *output.shape[1:]), weights.reshape(*leading, *weights.shape[1:])


def attention_scaled_beforehand(query, key, value):
    weights = ((query * query.size(-1) ** -0.5) @ key.transpose(-1, -2)).softmax(-1)
    return weights @ value, weights


def attention_with_an_empty_mask(query, key, value):
    scores = query @ key.mT * query.shape[-1] ** -0.5
    scores = scores.masked_fill(torch.zeros_like(scores, dtype=torch.bool), float("-inf"))
    weights = torch.softmax(scores, -1)
    return torch.matmul(weights, value), weights


def attention_written_out(query, key, value):
    scores = torch.matmul(query, key.transpose(-2, -1)) / query.shape[-1] ** 0.5
    shares = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    weights = shares / shares.sum(dim=-1, keepdim=True)
    return torch.matmul(weights, value), weights


def attention_by_loops(query, key, value):
    weights = torch.stack(
        [((query[..., [i], :] * key).sum(-1) / query.shape[-1] ** 0.5).softmax(-1) for i in range(query.shape[-2])], -2
    )
    output = torch.stack([(weights[..., i, :, None] * value).sum(-2) for i in range(query.shape[-2])], -2)
    return output, weights


def attention_by_logsumexp(query, key, value):
    scores = torch.matmul(query, key.mT).mul(query.shape[-1] ** -0.5)
    weights = torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))
    return torch.matmul(weights, value), weights


def attention_with_a_root_of_torch(query, key, value):
    """The root is a tensor of float32 without axes, whatever the dtype of the inputs."""
    weights = (query @ key.mT / torch.sqrt(torch.tensor(query.shape[-1]))).softmax(-1)
    return weights @ value, weights


def attention_as_a_list(query, key, value):
    return list(reference.scaled_dot_product_attention(query, key, value))


RIGHT = {
    "scaled_dot_product_attention": [
        reference.scaled_dot_product_attention,
        attention_by_einsum,
        attention_by_bmm,
        attention_scaled_beforehand,
        attention_with_an_empty_mask,
        attention_written_out,
        attention_by_loops,
        attention_by_logsumexp,
        attention_with_a_root_of_torch,
        attention_as_a_list,
    ]
}
