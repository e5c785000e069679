"""What was added to the Vision Transformer since 2020, each as a part that fits the plain one."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_course.attention import merge_heads, split_heads

ROTARY_BASE = 100.0  # of rotary positions on a small grid; texts use 10,000


class DropPath(nn.Module):
    """Leave a branch out for some images of the batch while training: stochastic depth.

    Each image's branch becomes zero with ``probability``, and is divided by ``1 - probability`` otherwise.

    Shapes: (batch, ...) → (batch, ...).

    Raises:
        ValueError: ``probability`` is not in [0, 1).

    Source: Huang et al. 2016, "Deep Networks with Stochastic Depth".
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        if not 0 <= probability < 1:
            raise ValueError(f"probability must be in [0, 1), not {probability}")
        self.probability = probability

    def forward(self, branch: Tensor) -> Tensor:
        """Drop the branch (batch, ...) of some images, in training mode."""
        if not self.training:
            return branch
        survival = 1 - self.probability
        sizes = (len(branch),) + (1,) * (branch.ndim - 1)  # one number for each image
        is_kept = torch.rand(sizes, device=branch.device) < survival
        return branch * is_kept / survival


class LayerScale(nn.Module):
    """Multiply each dimension of a branch by a number that is learned.

    Attributes: ``gamma`` (embed_dim,), the parameter; all its numbers start at ``initial``.

    Shapes: (..., embed_dim) → (..., embed_dim).

    Source: Touvron et al. 2021, "Going deeper with Image Transformers", section 2.
    """

    def __init__(self, embed_dim: int, initial: float) -> None:
        super().__init__()
        self.gamma = nn.Parameter(initial * torch.ones(embed_dim))

    def forward(self, branch: Tensor) -> Tensor:
        """Scale the branch (..., embed_dim)."""
        return branch * self.gamma


def add_registers(tokens: Tensor, registers: Tensor) -> Tensor:
    """Put registers between the class token and the patches.

    Args:
        tokens: (batch, 1 + num_patches, embed_dim), the class token first, positions added.
        registers: (1, num_registers, embed_dim), the same for every image.

    Returns:
        (batch, 1 + num_registers + num_patches, embed_dim).

    Source: Darcet et al. 2024, "Vision Transformers Need Registers".
    """
    return torch.cat([tokens[:, :1], registers.expand(len(tokens), -1, -1), tokens[:, 1:]], dim=1)


def rotary_2d(query: Tensor, key: Tensor, grid_size: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Turn queries and keys by the place of their patch, so that their dot products tell how far apart patches are.

    The first half of head_dim tells the row, the second half the column. In each half, numbers 2i and 2i + 1 are a
    point (a, b) of a plane, which is turned by the angle t = place / 100^(i / pairs), where pairs = head_dim / 4: it
    becomes (a cos t - b sin t, a sin t + b cos t). Tokens in front of the patches are not turned.

    Args:
        query: (..., tokens, head_dim), the patches last and row by row.
        key: of the same shape.
        grid_size: (rows, columns) of the patches.

    Returns:
        query and key, turned.

    Raises:
        ValueError: head_dim is not divisible by 4, or there are fewer tokens than patches.

    Source: Su et al. 2021, "RoFormer", section 3.2; for images Heo et al. 2024, "Rotary Position Embedding for Vision
    Transformer", section 3.1 (axial frequencies).
    """
    tokens, head_dim = query.shape[-2:]
    rows, columns = grid_size
    if head_dim % 4:
        raise ValueError(f"head_dim {head_dim} is not divisible by 4")
    if tokens < rows * columns:
        raise ValueError(f"{tokens} tokens are fewer than the {rows * columns} patches of the grid")
    pairs = head_dim // 4
    frequencies = ROTARY_BASE ** (-torch.arange(pairs, dtype=torch.float64, device=query.device) / pairs)
    row, column = (torch.arange(size, device=query.device) for size in (rows, columns))
    places = torch.cartesian_prod(row, column)  # (num_patches, 2)
    angles = (places[:, :, None] * frequencies).flatten(1)  # (num_patches, head_dim / 2)
    angles = F.pad(angles, (0, 0, tokens - rows * columns, 0))  # (tokens, head_dim / 2): those in front stay at 0
    return _rotate_pairs(query, angles), _rotate_pairs(key, angles)


def _rotate_pairs(x: Tensor, angles: Tensor) -> Tensor:
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


class QKNormAttention(nn.Module):
    """Multi-head self-attention with a LayerNorm on each head's queries, and another on its keys.

    Attributes: ``qkv`` and ``projection`` as in :class:`~vit_course.attention.MultiHeadSelfAttention`; ``query_norm``
    and ``key_norm``, over head_dim, which all heads share.

    Shapes: (batch, tokens, embed_dim) → (batch, tokens, embed_dim).

    Raises:
        ValueError: ``embed_dim`` is not divisible by ``num_heads``.

    Source: Dehghani et al. 2023, "Scaling Vision Transformers to 22 Billion Parameters", section 2.
    """

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim {embed_dim} is not divisible by num_heads {num_heads}")
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.query_norm = nn.LayerNorm(embed_dim // num_heads)
        self.key_norm = nn.LayerNorm(embed_dim // num_heads)
        self.projection = nn.Linear(embed_dim, embed_dim)

    def forward(self, x: Tensor) -> Tensor:
        """Mix tokens x (batch, tokens, embed_dim)."""
        query, key, value = (split_heads(part, self.num_heads) for part in self.qkv(x).chunk(3, dim=-1))
        heads = F.scaled_dot_product_attention(self.query_norm(query), self.key_norm(key), value)
        return self.projection(merge_heads(heads))


def random_masking(tokens: Tensor, mask_ratio: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Hide patches of each image, as a masked autoencoder does.

    Args:
        tokens: (batch, num_patches, embed_dim).
        mask_ratio: share of the patches that are hidden in each image, rounded to a whole number of them.
        generator: draws which, for every image anew; on the CPU.

    Returns:
        the patches that are left, in their order (batch, kept, embed_dim), and a mask (batch, num_patches) of bool,
        True where a patch is hidden.

    Raises:
        ValueError: no patch would be hidden, or none left.

    Source: He et al. 2022, "Masked Autoencoders Are Scalable Vision Learners", section 3.
    """
    batch, num_patches, embed_dim = tokens.shape
    num_hidden = round(mask_ratio * num_patches)
    if not 0 < num_hidden < num_patches:
        raise ValueError(f"mask_ratio {mask_ratio} hides {num_hidden} of {num_patches} patches")
    order = torch.rand(batch, num_patches, generator=generator).argsort(dim=1)  # of each image 0 to num_patches - 1
    mask = (order < num_hidden).to(tokens.device)
    return tokens[~mask].reshape(batch, num_patches - num_hidden, embed_dim), mask
