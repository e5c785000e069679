"""Right answers in other styles: what no check may refuse."""

import torch
from torch import nn

from vit_course.modern import DropPath


class DropPathByBernoulli(nn.Module):
    def __init__(self, probability=0.0):
        super().__init__()
        if probability < 0.0 or probability >= 1.0:
            raise ValueError(f"a probability of {probability} cannot be")
        self.keep = 1.0 - probability

    def forward(self, x):
        if self.keep == 1.0 or not self.training:
            return x
        shape = (x.shape[0],) + (1,) * (x.ndim - 1)
        return x * x.new_empty(shape).bernoulli_(self.keep).div_(self.keep)


class DropPathByWhere(nn.Module):
    def __init__(self, probability):
        super().__init__()
        if not 0.0 <= probability < 1.0:
            raise ValueError(f"probability: {probability}")
        self.probability = probability

    def forward(self, branch):
        if self.training and self.probability > 0:
            gone = torch.rand(branch.size(0), device=branch.device).lt(self.probability)
            gone = gone.reshape([-1] + [1] * (branch.ndim - 1))
            return torch.where(gone, torch.zeros_like(branch), branch / (1 - self.probability))
        return branch


class DropPathByDropout(nn.Module):
    """A dropout of ones, a number for each image."""

    def __init__(self, probability):
        super().__init__()
        if probability < 0 or probability > 1 or probability == 1:
            raise ValueError("not in [0, 1): " + str(probability))
        self.dropout = nn.Dropout(probability)

    def forward(self, branch):
        ones = torch.ones(len(branch), *[1] * (branch.ndim - 1), dtype=branch.dtype, device=branch.device)
        return branch * self.dropout(ones)


RIGHT = {"DropPath": [DropPath, DropPathByBernoulli, DropPathByWhere, DropPathByDropout]}
