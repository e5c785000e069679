"""Right answers in other styles: what no check may refuse."""

import torch
from torch import nn


def layer_norm_in_the_lesson(x, weight, bias, eps):
    mean = x.mean(dim=-1, keepdim=True)
    variance = (x - mean).square().mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps) * weight + bias


def layer_norm_by_var_mean(x, weight, bias, eps):
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return torch.addcmul(bias, (x - mean) * torch.rsqrt(variance + eps), weight)


def layer_norm_by_var(x, weight, bias, eps):
    variance = x.var(-1, unbiased=False, keepdim=True)
    return weight * (x - x.mean(-1, keepdim=True)) * (variance + eps) ** -0.5 + bias


def layer_norm_by_loops(x, weight, bias, eps):
    rows = []
    for token in x.reshape(-1, x.shape[-1]):
        mean = token.sum() / len(token)
        variance = ((token - mean) ** 2).sum() / len(token)
        rows.append((token - mean) / torch.sqrt(variance + eps) * weight + bias)
    return torch.stack(rows).reshape(x.shape)


class _Norm(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        centered = x - x.mean(-1, keepdim=True)
        return centered / (centered.pow(2).mean(-1, keepdim=True) + self.eps).sqrt()


def layer_norm_as_a_module(x, weight, bias, eps):
    return _Norm(eps)(x) * weight + bias


def layer_norm_in_float32_and_back(x, weight, bias, eps):
    wide = x.double()
    return layer_norm_by_var_mean(wide, weight.double(), bias.double(), eps).to(x.dtype)


RIGHT = {
    "layer_norm": [
        layer_norm_in_the_lesson,
        layer_norm_by_var_mean,
        layer_norm_by_var,
        layer_norm_by_loops,
        layer_norm_as_a_module,
        layer_norm_in_float32_and_back,
    ]
}
