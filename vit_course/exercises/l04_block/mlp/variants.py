"""Right answers in other styles: what no check may refuse."""

import math

import torch
from torch import nn

from vit_course import encoder as reference


class MlpWithModuleAndDropout(nn.Module):
    """GELU as a module, a dropout of zero, a helper."""

    def __init__(self, embed_dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        self.act = nn.GELU()
        self.drop = nn.Dropout(dropout)
        self.fc2 = nn.Linear(hidden_dim, embed_dim)

    def compute_hidden(self, x):
        return self.drop(self.act(self.fc1(x)))

    def forward(self, x):
        return self.drop(self.fc2(self.compute_hidden(x)))


class MlpWithErf(nn.Module):
    """GELU written out, torch's own constant."""

    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(embed_dim, hidden_dim), nn.Linear(hidden_dim, embed_dim)

    def forward(self, x):
        hidden = self.fc1(x)
        return self.fc2(0.5 * hidden * (1 + torch.erf(hidden / math.sqrt(2))))


class MlpWithTensorConstant(nn.Module):
    """A constant that is a tensor without axes, which takes no part in choosing the dtype."""

    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(embed_dim, hidden_dim), nn.Linear(hidden_dim, embed_dim)

    def forward(self, x):
        hidden = self.fc1(x)
        return self.fc2(hidden * (1 + torch.erf(hidden * torch.tensor(2.0).rsqrt())) / 2)


RIGHT = {"Mlp": [reference.Mlp, MlpWithModuleAndDropout, MlpWithErf, MlpWithTensorConstant]}
