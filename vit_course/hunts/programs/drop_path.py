"""Stochastic depth, an image at a time."""

import torch
from torch import nn


class SuspectDropPath(nn.Module):
    """Drops the branch of some images while training."""

    def __init__(self, probability):
        super().__init__()
        if not 0 <= probability < 1:
            # bug "probability not tested": if probability != probability:
            raise ValueError(f"{probability} is not in [0, 1)")
        self.keep = 1 - probability
        # bug "kept with the probability": self.keep = probability

    def forward(self, branch):
        if not self.training:
            # bug "dropped in evaluation too": if self.keep == 1:
            # bug "only in evaluation": if self.training:
            return branch
            # bug "rescaled in evaluation": return branch * self.keep
        sizes = [len(branch)] + [1] * (branch.ndim - 1)
        # bug "one coin for the batch": sizes = [1] * branch.ndim
        # bug "coin for each token": sizes = [*branch.shape[:2]] + [1] * (branch.ndim - 2)
        # bug "coin for each number": sizes = branch.shape
        mask = torch.bernoulli(torch.full(sizes, self.keep, device=branch.device))
        return branch * mask.to(branch.dtype) / self.keep
        # bug "always float32": return (branch * mask / self.keep).float()
        # bug "never rescaled": return branch * mask.to(branch.dtype)
        # bug "rescaled in evaluation": return branch * mask.to(branch.dtype)
        # bug "scaled down": return branch * mask.to(branch.dtype) * self.keep
        # bug "divided by the wrong probability": return branch * mask.to(branch.dtype) / (1 - self.keep)
        # bug "never dropped": return branch
