"""The sizes and choices that define one Vision Transformer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args, get_origin, get_type_hints

PatchEmbeddingKind = Literal["linear", "convolution"]
PositionKind = Literal["none", "sinusoidal", "sinusoidal_2d", "learned", "learned_from_sinusoidal"]
Pooling = Literal["class_token", "mean"]
HeadActivation = Literal["tanh", "relu"]
Gelu = Literal["exact", "tanh"]
Initialisation = Literal["paper", "torchvision", "truncated_normal"]


def grid_of(height: int, width: int, patch_size: int) -> tuple[int, int]:
    """(rows, columns) of the patches of an image of ``height`` by ``width`` pixels.

    Raises:
        ValueError: ``patch_size`` is not positive, or a side is not positive or not divisible by it.
    """
    if patch_size < 1:
        raise ValueError(f"patch_size must be at least 1, not {patch_size}")
    for name, side in (("height", height), ("width", width)):
        if side < 1:
            raise ValueError(f"{name} must be at least 1, not {side}")
        if side % patch_size:
            raise ValueError(f"{name} {side} is not divisible by patch_size {patch_size}")
    return height // patch_size, width // patch_size


def _read_height_and_width(image_size: int | tuple[int, int]) -> tuple[int, int]:
    if isinstance(image_size, int):
        return image_size, image_size
    if not isinstance(image_size, tuple | list) or len(image_size) != 2:
        raise ValueError(f"image_size must be one side or (height, width), not {image_size!r}")
    height, width = image_size
    return height, width


@dataclass(frozen=True)
class ViTConfig:
    """All that a :class:`~vit_course.vit.VisionTransformer` needs to be built.

    The defaults are a small ViT for 32x32 color images. ``dataclasses.replace(config, depth=12)``
    makes a variant; ``vit_course.PRESETS`` holds the papers' sizes and those of published notebooks.

    Sizes: ``image_size`` is one side or (height, width) in pixels, kept as (height, width);
    ``patch_size`` one side in pixels, ``embed_dim`` the length of a token, ``depth`` the number of encoder
    blocks, ``mlp_ratio`` the MLP's hidden width divided by ``embed_dim``. With ``representation_size`` the
    head is Linear, activation, Linear in place of one Linear. The four dropout rates are probabilities:
    after the positions, on the attention weights, after the attention's projection, and after each Linear
    of the MLP.

    Raises:
        ValueError: a size that is not positive or does not divide, a rate outside [0, 1), a word that is
            not among the choices.

    Source: Dosovitskiy et al. 2020, "An Image is Worth 16x16 Words", section 3.1 and table 1.
    """

    image_size: int | tuple[int, int] = 32
    patch_size: int = 4
    in_channels: int = 3
    num_classes: int = 10
    embed_dim: int = 192
    depth: int = 6
    num_heads: int = 3
    mlp_ratio: float = 4.0
    patch_embedding: PatchEmbeddingKind = "linear"
    positions: PositionKind = "learned"
    pooling: Pooling = "class_token"
    representation_size: int | None = None
    head_activation: HeadActivation = "tanh"
    embedding_dropout: float = 0.0
    attention_dropout: float = 0.0
    projection_dropout: float = 0.0
    mlp_dropout: float = 0.0
    qkv_bias: bool = True
    gelu: Gelu = "exact"
    layer_norm_eps: float = 1e-6
    initialisation: Initialisation = "paper"
    position_std: float = 0.02

    def __post_init__(self) -> None:
        object.__setattr__(self, "image_size", _read_height_and_width(self.image_size))
        self._check_choices()
        self._check_sizes()
        self._check_rates()

    def _check_choices(self) -> None:
        for name, kind in get_type_hints(ViTConfig).items():
            if get_origin(kind) is Literal and getattr(self, name) not in get_args(kind):
                allowed = ", ".join(map(repr, get_args(kind)))
                raise ValueError(f"{name} must be one of {allowed}, not {getattr(self, name)!r}")

    def _check_sizes(self) -> None:
        least = {"in_channels": 1, "num_classes": 1, "embed_dim": 1, "depth": 0, "num_heads": 1}
        if self.representation_size is not None:
            least["representation_size"] = 1
        for name, minimum in least.items():
            if getattr(self, name) < minimum:
                raise ValueError(f"{name} must be at least {minimum}, not {getattr(self, name)}")
        grid_of(self.height, self.width, self.patch_size)
        if self.embed_dim % self.num_heads:
            raise ValueError(f"embed_dim {self.embed_dim} is not divisible by num_heads {self.num_heads}")
        waves = {"sinusoidal": 2, "learned_from_sinusoidal": 2, "sinusoidal_2d": 4}.get(self.positions, 1)
        if self.embed_dim % waves:
            raise ValueError(
                f"embed_dim {self.embed_dim} is not divisible by {waves}, as {self.positions} positions need"
            )
        if self.hidden_dim < 1:
            raise ValueError(f"mlp_ratio {self.mlp_ratio} of embed_dim {self.embed_dim} leaves no hidden unit")

    def _check_rates(self) -> None:
        for name in ("embedding_dropout", "attention_dropout", "projection_dropout", "mlp_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ValueError(f"{name} must be in [0, 1), not {getattr(self, name)}")

    @property
    def height(self) -> int:
        """Height of an image in pixels."""
        return _read_height_and_width(self.image_size)[0]

    @property
    def width(self) -> int:
        """Width of an image in pixels."""
        return _read_height_and_width(self.image_size)[1]

    @property
    def grid_size(self) -> tuple[int, int]:
        """(rows, columns) of patches."""
        return grid_of(self.height, self.width, self.patch_size)

    @property
    def num_patches(self) -> int:
        """Patches an image is cut into."""
        return math.prod(self.grid_size)

    @property
    def num_tokens(self) -> int:
        """Tokens in the encoder: the patches, and the class token where there is one."""
        return self.num_patches + (self.pooling == "class_token")

    @property
    def head_dim(self) -> int:
        """Length of one head's query, key and value."""
        return self.embed_dim // self.num_heads

    @property
    def hidden_dim(self) -> int:
        """Hidden width of the MLP."""
        return round(self.embed_dim * self.mlp_ratio)
