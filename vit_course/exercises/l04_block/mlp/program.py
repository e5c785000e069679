"""Two Linears with a gate between them."""

import torch
import torch.nn.functional as F
from torch import nn


class Mlp(nn.Module):
    """(..., D) -> (..., D), by way of hidden_dim."""

    def __init__(self, embed_dim: int, hidden_dim: int) -> None:
        super().__init__()
        # bug "hidden dim fixed at four": super().__init__()
        # bug "hidden dim fixed at four": hidden_dim = 4 * embed_dim
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        # bug "linears without bias": self.fc1 = nn.Linear(embed_dim, hidden_dim, bias=False)
        self.fc2 = nn.Linear(hidden_dim, embed_dim)
        # bug "linears without bias": self.fc2 = nn.Linear(hidden_dim, embed_dim, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.fc1(x)
        # bug "activation before the first layer": hidden = self.fc1(F.gelu(x))
        # bug "first layer detached": hidden = self.fc1(x).detach()
        # bug "tokens out of the graph": hidden = self.fc1(x.detach())
        hidden = F.gelu(hidden)
        # bug "no activation":
        # bug "activation before the first layer":
        # bug "activation after both layers":
        # bug "relu for gelu": hidden = F.relu(hidden)
        # bug "the tanh form": hidden = F.gelu(hidden, approximate="tanh")
        # bug "sigmoid for the gate": hidden = hidden * torch.sigmoid(1.702 * hidden)
        # bug "silu for gelu": hidden = F.silu(hidden)
        out = self.fc2(hidden)
        # bug "activation after the last layer": out = F.gelu(self.fc2(hidden))
        # bug "activation after both layers": out = F.gelu(self.fc2(hidden))
        # bug "residual inside the mlp": out = x + self.fc2(hidden)
        # bug "dropout not asked for": out = F.dropout(self.fc2(hidden), 0.1)
        return out
        # bug "batch of one squeezed away": return out.squeeze(0)
        # bug "tokens left in one long row": return out.reshape(-1, x.shape[-1])
