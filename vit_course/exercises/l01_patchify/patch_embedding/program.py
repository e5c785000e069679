"""A patch embedding in the old style: cut by reshape and permute, then one Linear."""

import torch
from torch import nn


class PatchEmbedding(nn.Module):
    """(B, C, H, W) -> (B, N, D)."""

    def __init__(self, in_channels: int, patch_size: int, embed_dim: int) -> None:
        super().__init__()
        self.patch_size = patch_size
        self.projection = nn.Linear(in_channels * patch_size**2, embed_dim)
        # bug "projection without bias": self.projection = nn.Linear(in_channels * patch_size**2, embed_dim, bias=False)
        # bug "patch size doubled": self.projection = nn.Linear(in_channels * patch_size * 2, embed_dim)
        # bug "channels not counted": self.projection = nn.Linear(patch_size**2, embed_dim)
        # bug "convolution for the linear": self.projection = nn.Conv2d(in_channels, embed_dim, patch_size, patch_size)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        B, C, H, W = images.shape
        P = self.patch_size
        x = images.reshape(B, C, H // P, P, W // P, P).permute(0, 2, 4, 1, 3, 5)
        # bug "embedding of strips": x = images
        # bug "embedding in column order": x = images.reshape(B, C, H // P, P, W // P, P).permute(0, 4, 2, 1, 3, 5)
        x = self.projection(x.reshape(B, -1, C * P * P))
        # bug "activation after the projection": x = torch.nn.functional.gelu(self.projection(x.reshape(B, -1, C * P * P)))
        # bug "convolution for the linear": x = self.projection(images).flatten(2).transpose(1, 2)
        return x
        # bug "dimensions before tokens": return x.transpose(1, 2)
        # bug "reshaped where transposed": return x.transpose(1, 2).reshape(x.shape)
        # bug "batch of one squeezed": return x.squeeze()
        # bug "tokens made on the cpu": tokens = torch.zeros(x.shape, dtype=x.dtype)
        # bug "tokens made on the cpu": tokens[:] = x
        # bug "tokens made on the cpu": return tokens
        # bug "size of the first images kept": self.num_patches = getattr(self, "num_patches", x.shape[1])
        # bug "size of the first images kept": return x.reshape(B, self.num_patches, -1)
