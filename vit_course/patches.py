"""Images into patches, patches into images, patches into tokens."""

from __future__ import annotations

from torch import Tensor, nn

from vit_course.config import PatchEmbeddingKind, grid_of


def patchify(images: Tensor, patch_size: int) -> Tensor:
    """Cut images into square patches, ``patch_size`` pixels a side, and lay each one out as a vector.

    Tokens follow the image row by row; inside a token the order is channel, pixel row, pixel column.

    Shapes: (batch, channels, height, width) → (batch, tokens, channels * patch_size**2), of any dtype.

    Raises:
        ValueError: ``images`` has not four axes, or a side is not divisible by ``patch_size``.

    Source: Dosovitskiy et al. 2020, section 3.1, x_p in equation 1.

    >>> import torch
    >>> patchify(torch.arange(16).reshape(1, 1, 4, 4), patch_size=2)[0].tolist()
    [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
    """
    if images.ndim != 4:
        raise ValueError(f"images must be (batch, channels, height, width), not {tuple(images.shape)}")
    batch, channels, height, width = images.shape
    rows, columns = grid_of(height, width, patch_size)
    # (batch, channels, rows, patch_size, columns, patch_size)
    cut = images.reshape(batch, channels, rows, patch_size, columns, patch_size)
    patches = cut.permute(0, 2, 4, 1, 3, 5)  # (batch, rows, columns, channels, patch_size, patch_size)
    return patches.reshape(batch, rows * columns, channels * patch_size**2)  # (batch, tokens, patch_dim)


def unpatchify(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """Put the patches of :func:`patchify` back together, to images of ``image_size``, (height, width) in pixels.

    Shapes: (batch, tokens, channels * patch_size**2) → (batch, channels, height, width).

    Raises:
        ValueError: ``patches`` has not three axes, not one token for each patch of the grid, or not a whole
            number of channels; or a side is not divisible by ``patch_size``.
    """
    if patches.ndim != 3:
        raise ValueError(f"patches must be (batch, tokens, patch_dim), not {tuple(patches.shape)}")
    batch, tokens, patch_dim = patches.shape
    height, width = image_size
    rows, columns = grid_of(height, width, patch_size)
    if tokens != rows * columns:
        raise ValueError(f"{tokens} tokens cannot fill a grid of {rows} x {columns} patches")
    if patch_dim % patch_size**2:
        raise ValueError(f"patch_dim {patch_dim} is not divisible by patch_size**2 = {patch_size**2}")
    channels = patch_dim // patch_size**2
    # (batch, rows, columns, channels, patch_size, patch_size)
    cut = patches.reshape(batch, rows, columns, channels, patch_size, patch_size)
    images = cut.permute(0, 3, 1, 4, 2, 5)  # (batch, channels, rows, patch_size, columns, patch_size)
    return images.reshape(batch, channels, height, width)  # (batch, channels, height, width)


class PatchEmbedding(nn.Module):
    """Images to tokens: one linear map of every patch.

    ``projection`` is a Linear after :func:`patchify`, or, with ``kind="convolution"``, a convolution whose
    stride is its kernel size. Both compute the same numbers, see :func:`vit_course.pretrained.conv_from_linear`.

    Shapes: (batch, in_channels, height, width) → (batch, tokens, embed_dim).

    Raises:
        ValueError: in ``forward``, where images have not ``in_channels`` channels or a side is not divisible
            by ``patch_size``.

    Source: Dosovitskiy et al. 2020, section 3.1, E in equation 1.
    """

    def __init__(self, in_channels: int, patch_size: int, embed_dim: int, kind: PatchEmbeddingKind = "linear") -> None:
        super().__init__()
        self.in_channels = in_channels
        self.patch_size = patch_size
        self.projection: nn.Linear | nn.Conv2d
        if kind == "linear":
            self.projection = nn.Linear(in_channels * patch_size**2, embed_dim)
        else:
            self.projection = nn.Conv2d(in_channels, embed_dim, patch_size, stride=patch_size)

    def forward(self, images: Tensor) -> Tensor:
        """Embed images (batch, in_channels, height, width) as tokens (batch, tokens, embed_dim)."""
        if images.ndim != 4 or images.shape[1] != self.in_channels:
            raise ValueError(f"images must be (batch, {self.in_channels}, height, width), not {tuple(images.shape)}")
        if isinstance(self.projection, nn.Linear):
            return self.projection(patchify(images, self.patch_size))
        grid_of(images.shape[2], images.shape[3], self.patch_size)
        grid = self.projection(images)  # (batch, embed_dim, rows, columns)
        return grid.flatten(2).transpose(1, 2)  # (batch, tokens, embed_dim)
