"""Right answers in other styles: what no check may refuse."""

import torch
from torch import nn

from vit_course.modern import LayerScale


class LayerScaleByOnes(nn.Module):
    def __init__(self, embed_dim, initial=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(initial * torch.ones(embed_dim))

    def forward(self, x):
        return x.mul(self.gamma)


class LayerScaleByFilling(nn.Module):
    def __init__(self, embed_dim, initial):
        super().__init__()
        self.gamma = nn.Parameter(torch.empty(embed_dim))
        nn.init.constant_(self.gamma, initial)

    def forward(self, branch):
        return torch.einsum("...d,d->...d", branch, self.gamma)


RIGHT = {"LayerScale": [LayerScale, LayerScaleByOnes, LayerScaleByFilling]}
