"""Weights of torchvision, timm and transformers into our names, and ours into torchvision's.

A state dict goes in and one comes out, with the same tensors under other names (queries, keys and values
joined where the other library keeps them apart). A name that nobody knows stays as it is, so that
:func:`load_weights` can name it. Two functions fit weights to another model: :func:`conv_from_linear` makes a strided
convolution of a patch embedding, :func:`resize_positions` fits positions to images of another size.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_course.vit import VisionTransformer

State = Mapping[str, Tensor]
Names = tuple[tuple[str, str], ...]

# Beginnings of names, ours on the right; {n} stands for the number of a block. The first that fits is used.
_TORCHVISION: Names = (
    ("conv_proj", "patch_embedding.projection"),
    ("encoder.pos_embedding", "positions"),
    ("encoder.layers.encoder_layer_{n}.ln_1", "blocks.{n}.norm1"),
    ("encoder.layers.encoder_layer_{n}.self_attention.in_proj_weight", "blocks.{n}.attention.qkv.weight"),
    ("encoder.layers.encoder_layer_{n}.self_attention.in_proj_bias", "blocks.{n}.attention.qkv.bias"),
    ("encoder.layers.encoder_layer_{n}.self_attention.out_proj", "blocks.{n}.attention.projection"),
    ("encoder.layers.encoder_layer_{n}.ln_2", "blocks.{n}.norm2"),
    ("encoder.layers.encoder_layer_{n}.mlp.0", "blocks.{n}.mlp.fc1"),
    ("encoder.layers.encoder_layer_{n}.mlp.3", "blocks.{n}.mlp.fc2"),
    ("encoder.layers.encoder_layer_{n}.mlp.linear_1", "blocks.{n}.mlp.fc1"),  # in older files
    ("encoder.layers.encoder_layer_{n}.mlp.linear_2", "blocks.{n}.mlp.fc2"),
    ("encoder.ln", "norm"),
)
_TORCHVISION_HEAD: Names = (("heads.head", "head"),)
_TORCHVISION_TWO_LINEARS: Names = (("heads.pre_logits", "head.0"), ("heads.head", "head.2"))
_TIMM: Names = (
    ("cls_token", "class_token"),
    ("pos_embed", "positions"),
    ("patch_embed.proj", "patch_embedding.projection"),
    ("blocks.{n}.attn.qkv", "blocks.{n}.attention.qkv"),
    ("blocks.{n}.attn.proj", "blocks.{n}.attention.projection"),
)
_TRANSFORMERS: Names = (
    ("vit.embeddings.cls_token", "class_token"),
    ("vit.embeddings.position_embeddings", "positions"),
    ("vit.embeddings.patch_embeddings.projection", "patch_embedding.projection"),
    ("vit.layers.{n}.layernorm_before", "blocks.{n}.norm1"),
    ("vit.layers.{n}.attention.q_proj", "blocks.{n}.attention.query"),
    ("vit.layers.{n}.attention.k_proj", "blocks.{n}.attention.key"),
    ("vit.layers.{n}.attention.v_proj", "blocks.{n}.attention.value"),
    ("vit.layers.{n}.attention.o_proj", "blocks.{n}.attention.projection"),
    ("vit.layers.{n}.layernorm_after", "blocks.{n}.norm2"),
    ("vit.layers.{n}.mlp", "blocks.{n}.mlp"),
    ("vit.layernorm", "norm"),
    ("classifier", "head"),
    # before transformers 5, and in the files of weights that are published
    ("vit.encoder.layer.{n}.layernorm_before", "blocks.{n}.norm1"),
    ("vit.encoder.layer.{n}.attention.attention", "blocks.{n}.attention"),
    ("vit.encoder.layer.{n}.attention.output.dense", "blocks.{n}.attention.projection"),
    ("vit.encoder.layer.{n}.layernorm_after", "blocks.{n}.norm2"),
    ("vit.encoder.layer.{n}.intermediate.dense", "blocks.{n}.mlp.fc1"),
    ("vit.encoder.layer.{n}.output.dense", "blocks.{n}.mlp.fc2"),
)


def to_torchvision(model: VisionTransformer) -> dict[str, Tensor]:
    """The weights of ``model`` under the names of ``torchvision.models.VisionTransformer``.

    A Linear patch embedding is given as the convolution that torchvision has.

    Raises:
        ValueError: the model lacks what torchvision's always has: a class token, positions, a bias in
            queries, keys and values, the exact GELU, and a tanh where the head has two Linears.
    """
    config = model.config
    if config.pooling != "class_token" or config.positions == "none":
        raise ValueError(
            "torchvision's VisionTransformer has a class token and positions; this model has "
            f"pooling={config.pooling!r} and positions={config.positions!r}"
        )
    if not config.qkv_bias or config.gelu != "exact":
        raise ValueError(
            "torchvision's VisionTransformer has qkv_bias=True and gelu='exact'; this model has "
            f"qkv_bias={config.qkv_bias} and gelu={config.gelu!r}"
        )
    two_linears = config.representation_size is not None
    if two_linears and config.head_activation != "tanh":
        raise ValueError(f"torchvision's head has a tanh, this model's a {config.head_activation}")
    state: dict[str, Tensor] = dict(model.state_dict())
    projection = model.patch_embedding.projection
    if isinstance(projection, nn.Linear):
        convolution = conv_from_linear(projection, config.in_channels, config.patch_size)
        state["patch_embedding.projection.weight"] = convolution.weight.detach()
    return _rename_tensors(state, tuple((ours, theirs) for theirs, ours in _list_torchvision_names(two_linears)))


def from_torchvision(state: State) -> dict[str, Tensor]:
    """A torchvision state dict under our names; the head becomes ``head``, or ``head.0`` and ``head.2``."""
    return _rename_tensors(state, _list_torchvision_names(two_linears="heads.pre_logits.weight" in state))


def from_timm(state: State) -> dict[str, Tensor]:
    """The state dict of a plain timm ViT (class token or mean pooling) under our names.

    Raises:
        ValueError: the model normalizes after the mean (``fc_norm``); ours does so before it.
    """
    if "fc_norm.weight" in state:
        raise ValueError("this timm model normalizes after pooling; build it with fc_norm=False to fit ours")
    return _rename_tensors(state, _TIMM)


def from_transformers(state: State) -> dict[str, Tensor]:
    """The state dict of transformers' ``ViTForImageClassification`` under our names."""
    renamed = _rename_tensors(state, _TRANSFORMERS)
    for name in [name for name in renamed if ".attention.query." in name]:
        parts = [name.replace("query", part) for part in ("query", "key", "value")]
        if renamed.keys() >= set(parts):
            renamed[name.replace("query", "qkv")] = torch.cat([renamed.pop(part) for part in parts])
    return renamed


def load_torchvision(model: nn.Module, state_dict: State) -> nn.Module:
    """Load a torchvision state dict into ``model``, ours or a student's of the same names; return ``model``.

    Raises:
        ValueError: names or shapes do not fit; the first few are listed.
    """
    return load_weights(model, from_torchvision(state_dict))


def load_weights(model: nn.Module, state: State) -> nn.Module:
    """Load ``state``, under our names, into ``model``; return ``model``, unchanged when anything is amiss.

    A patch embedding kept as a convolution fits a Linear and the other way round.

    Raises:
        ValueError: names or shapes do not fit; the first few are listed.
    """
    wanted = model.state_dict()
    fitted = {name: _fit_patch_embedding(name, tensor, wanted) for name, tensor in state.items()}
    problems = [f"missing {name}" for name in wanted if name not in fitted]
    problems += [f"unexpected {name}" for name in fitted if name not in wanted]
    problems += [
        f"{name} is {tuple(fitted[name].shape)}, the model has {tuple(wanted[name].shape)}"
        for name in wanted
        if name in fitted and fitted[name].shape != wanted[name].shape
    ]
    if problems:
        more = f" and {len(problems) - 4} more" if len(problems) > 4 else ""
        raise ValueError(f"these weights do not fit the model: {'; '.join(problems[:4])}{more}")
    model.load_state_dict(fitted)
    return model


def conv_from_linear(projection: nn.Linear, in_channels: int, patch_size: int) -> nn.Conv2d:
    """The strided convolution that equals ``projection`` after :func:`patchify`.

    Args:
        projection: Linear from in_channels * patch_size**2 to embed_dim.
        in_channels: channels of the image.
        patch_size: side of a patch in pixels.

    Returns:
        A convolution with kernel and stride ``patch_size`` and a copy of the weights.

    Raises:
        ValueError: ``projection`` does not take in_channels * patch_size**2 features.
    """
    patch_dim = in_channels * patch_size**2
    if projection.in_features != patch_dim:
        raise ValueError(
            f"projection takes {projection.in_features} features, not in_channels * patch_size**2 = {patch_dim}"
        )
    convolution = nn.Conv2d(
        in_channels,
        projection.out_features,
        patch_size,
        stride=patch_size,
        bias=projection.bias is not None,
        dtype=projection.weight.dtype,
        device=projection.weight.device,
    )
    with torch.no_grad():
        convolution.weight.copy_(projection.weight.reshape(convolution.weight.shape))
        if convolution.bias is not None:
            convolution.bias.copy_(projection.bias)
    return convolution


def resize_positions(positions: Tensor, old_grid: tuple[int, int], new_grid: tuple[int, int]) -> Tensor:
    """Fit learned positions to another grid of patches by bicubic interpolation.

    Args:
        positions: (1, 1 + rows * columns, embed_dim), the class token's row first; it is left alone.
        old_grid: (rows, columns) that ``positions`` was learned for.
        new_grid: (rows, columns) wanted.

    Returns:
        (1, 1 + new rows * new columns, embed_dim).

    Raises:
        ValueError: ``positions`` has not 1 + rows * columns rows.

    Source: Dosovitskiy et al. 2020, section 3.2.
    """
    *leading, num_positions, embed_dim = positions.shape
    rows, columns = old_grid
    if num_positions != 1 + rows * columns:
        raise ValueError(f"positions has {num_positions} rows, not 1 + {rows} * {columns}")
    class_row, grid_rows = positions[..., :1, :], positions[..., 1:, :]
    grid = grid_rows.reshape(-1, rows, columns, embed_dim)  # (1, rows, columns, embed_dim)
    picture = grid.permute(0, 3, 1, 2)  # (1, embed_dim, rows, columns)
    picture = F.interpolate(picture, size=new_grid, mode="bicubic", align_corners=False)
    resized = picture.flatten(2).transpose(1, 2)  # (1, new rows * new columns, embed_dim)
    return torch.cat([class_row, resized.reshape(*leading, -1, embed_dim)], dim=-2)


def _fit_patch_embedding(name: str, tensor: Tensor, wanted: State) -> Tensor:
    if name != "patch_embedding.projection.weight" or name not in wanted:
        return tensor
    shape = wanted[name].shape
    same_rows = {tensor.ndim, len(shape)} == {2, 4} and tensor.flatten(1).shape == wanted[name].flatten(1).shape
    return tensor.reshape(shape) if same_rows else tensor


def _list_torchvision_names(two_linears: bool) -> Names:
    return _TORCHVISION + (_TORCHVISION_TWO_LINEARS if two_linears else _TORCHVISION_HEAD)


def _rename_tensors(state: State, names: Names) -> dict[str, Tensor]:
    rules = [
        (re.compile(re.escape(old).replace(r"\{n\}", r"(\d+)") + r"(?=\.|$)"), new.replace("{n}", r"\1"))
        for old, new in names
    ]
    return {_rename_tensor(name, rules): tensor for name, tensor in state.items()}


def _rename_tensor(name: str, rules: list[tuple[re.Pattern[str], str]]) -> str:
    for beginning, replacement in rules:
        if match := beginning.match(name):
            return match.expand(replacement) + name[match.end() :]
    return name
