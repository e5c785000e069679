"""LayerScale of CaiT, as libraries write it."""

import torch
from torch import nn


class LayerScale(nn.Module):
    """A learned factor for each dimension of a branch."""

    def __init__(self, embed_dim: int, initial: float) -> None:
        super().__init__()
        width, value = embed_dim, initial
        # bug "one number for all dimensions": width, value = 1, initial
        # bug "starts at one": width, value = embed_dim, 1.0
        # bug "a start written down": width, value = embed_dim, 1e-5
        self.gamma = nn.Parameter(torch.full((width,), value))
        # bug "starts at random": self.gamma = nn.Parameter(torch.randn(width) * value)

    def forward(self, branch: torch.Tensor) -> torch.Tensor:
        factor = self.gamma
        # bug "gamma detached": factor = self.gamma.detach()
        # bug "scaled along the tokens": factor = self.gamma.mean()
        # bug "the size of gamma alone": factor = self.gamma.abs()
        # bug "three axes only": factor = self.gamma.reshape(1, 1, -1)
        incoming = branch
        # bug "branch out of the graph": incoming = branch.detach()
        # bug "scaled in place": incoming = branch.clone()
        # bug "scaled in place": branch.data.mul_(self.gamma.data)
        return incoming * factor
        # bug "residual inside": return incoming + incoming * factor
        # bug "added and not multiplied": return incoming + factor
        # bug "divided by gamma": return incoming / factor
