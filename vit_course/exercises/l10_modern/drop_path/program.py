"""Stochastic depth, an image at a time."""

import torch
from torch import nn


class DropPath(nn.Module):
    """Drops the branch of some images while training."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        # bug "drawn once": super().__init__()
        # bug "drawn once": self.coins = torch.rand(10_000)
        if not 0 <= probability < 1:
            # bug "probability not tested": if probability != probability:
            raise ValueError(f"{probability} is not in [0, 1)")
        self.keep = 1 - probability
        # bug "kept with the probability": self.keep = probability

    def forward(self, branch: torch.Tensor) -> torch.Tensor:
        if not self.training:
            # bug "dropped in evaluation too": if self.keep == 1:
            # bug "only in evaluation": if self.training:
            return branch
            # bug "rescaled in evaluation": return branch * self.keep
        sizes = [len(branch)] + [1] * (branch.ndim - 1)
        # bug "one coin for the batch": sizes = [1] * branch.ndim
        # bug "coin for each token": sizes = [*branch.shape[:2]] + [1] * (branch.ndim - 2)
        # bug "coin for each number": sizes = [*branch.shape]
        # bug "three axes only": batch, tokens, _ = branch.shape
        # bug "three axes only": sizes = [batch, 1, 1]
        mask = torch.bernoulli(torch.full(sizes, self.keep, device=branch.device))
        # bug "drawn on the cpu": mask = torch.bernoulli(torch.full(sizes, self.keep))
        # bug "drawn once": mask = (self.coins[: len(branch)] < self.keep).float().to(branch.device).reshape(sizes)
        # bug "as many in every batch": ranks = torch.rand(len(branch), device=branch.device).argsort().argsort()
        # bug "as many in every batch": mask = (ranks < round(self.keep * len(branch))).float().reshape(sizes)
        mask = mask.to(branch.dtype)
        # bug "always float32": branch = branch.float()
        # bug "mask in float32":
        return branch * mask / self.keep
        # bug "never rescaled": return branch * mask
        # bug "rescaled in evaluation": return branch * mask
        # bug "scaled down": return branch * mask * self.keep
        # bug "divided by the wrong probability": return branch * mask / (1 - self.keep)
        # bug "never dropped": return branch
        # bug "dropped in place": branch.data.mul_(mask / self.keep)
        # bug "dropped in place": return branch
        # bug "cut from the gradient": return branch.detach() * mask / self.keep
        # bug "gradient for what is dropped": return branch + (branch * mask / self.keep - branch).detach()
