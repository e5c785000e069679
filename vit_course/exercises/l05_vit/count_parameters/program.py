"""The size of a ViT, layer by layer."""

from vit_course.config import ViTConfig


def linear(n_in: int, n_out: int, bias: bool = True) -> int:
    """Parameters of a linear layer."""
    return n_in * n_out + (n_out if bias else 0)
    # bug "biases forgotten": return n_in * n_out


def layer_norm(dim: int) -> int:
    """Scale and shift."""
    return 2 * dim
    # bug "norms forgotten": return 0
    # bug "norms without shift": return dim


def count_parameters(config: ViTConfig) -> int:
    """How many parameters a Vision Transformer has."""
    dim, num_patches = config.embed_dim, config.num_patches
    # bug "square image counted": dim, num_patches = config.embed_dim, (config.height // config.patch_size) ** 2
    hidden = config.hidden_dim
    # bug "four times whatever the ratio": hidden = 4 * dim
    pixels = config.in_channels * config.patch_size**2
    # bug "patch size not squared": pixels = config.in_channels * config.patch_size
    # bug "channels forgotten": pixels = config.patch_size**2
    total = linear(pixels, dim)
    total += dim
    # bug "one vector forgotten":
    total += (num_patches + 1) * dim
    # bug "positions forgotten":
    qkv = linear(dim, 3 * dim, config.qkv_bias)
    # bug "qkv counted as one map": qkv = linear(dim, dim, config.qkv_bias)
    # bug "qkv counted for every head": qkv = config.num_heads * linear(dim, 3 * dim, config.qkv_bias)
    # bug "qkv bias always counted": qkv = linear(dim, 3 * dim)
    attention = qkv + linear(dim, dim)
    # bug "attention projection forgotten": attention = qkv
    mlp = linear(dim, hidden) + linear(hidden, dim)
    total += config.depth * (layer_norm(dim) + attention + layer_norm(dim) + mlp)
    total += layer_norm(dim)
    # bug "final norm forgotten":
    total += linear(dim, config.num_classes)
    # bug "head forgotten":
    return total
    # bug "a float came out": return float(total)
