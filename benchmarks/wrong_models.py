"""Models with one mistake: every architecture misconception of the library, put into the right ViT.

A wrong part takes the place of the right one and starts from the right one's weights, wherever both have a
parameter of that name and shape. The library's stand-ins that hold wrong parameters and no forward of their own
are given the right forward, and the few that only pretend are written out in ``stand_ins.py``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from stand_ins import STAND_INS, HeadsOnSlices
from torch import Tensor, nn

from vit_course.attention import MultiHeadSelfAttention, merge_heads, split_heads
from vit_course.config import ViTConfig
from vit_course.exercises.catalog import EXERCISES
from vit_course.patches import PatchEmbedding
from vit_course.vit import VisionTransformer

Part = Callable[..., Any]


@dataclass(frozen=True)
class WrongModel:
    """A mistake, and how to make a model with it.

    Attributes: ``exercise`` that the mistake belongs to and its ``name`` there, which ``key`` joins; ``parts``,
    the wrong implementation of each of the exercise's objects.
    """

    exercise: str
    name: str
    parts: tuple[Part, ...]

    @property
    def key(self) -> str:
        """ "patchify: column order"."""
        return f"{self.exercise}: {self.name}"

    def build(self, right: VisionTransformer) -> nn.Module:
        """A model with this mistake that starts from the weights of ``right``, which stays as it is."""
        return PLACES[self.exercise](copy.deepcopy(right), *self.parts)


def iterate_wrong_models() -> Iterator[WrongModel]:
    """Every architecture misconception, exercise by exercise, and what a published notebook does wrong."""
    for exercise in PLACES:
        if exercise == PUBLISHED.exercise:
            yield PUBLISHED
            continue
        for wrong in EXERCISES[exercise].misconceptions:
            shell = (exercise, wrong.name)
            yield WrongModel(exercise, wrong.name, (STAND_INS[shell],) if shell in STAND_INS else wrong.objects)


def copy_parameters_from(wrong: nn.Module, right: nn.Module) -> nn.Module:
    """``wrong`` with the numbers of ``right`` in every parameter of the same name and as many numbers."""
    numbers = right.state_dict()
    with torch.no_grad():
        for name, parameter in wrong.named_parameters():
            if name in numbers and numbers[name].numel() == parameter.numel():
                parameter.copy_(numbers[name].reshape(parameter.shape))
    return wrong


class _Embedding(PatchEmbedding):
    """The right embedding of patches that a wrong function cuts."""

    def __init__(self, config: ViTConfig, cut: Part) -> None:
        super().__init__(config.in_channels, config.patch_size, config.embed_dim)
        self.cut = cut

    def forward(self, images: Tensor) -> Tensor:
        return self.projection(self.cut(images, self.patch_size))


class _AttentionOfWrongParts(MultiHeadSelfAttention):
    """The right attention around a wrong formula or wrong heads."""

    def __init__(self, config: ViTConfig, split: Part, attend: Part, merge: Part) -> None:
        super().__init__(config.embed_dim, config.num_heads, config.qkv_bias)
        self.split, self.attend, self.merge = split, attend, merge

    def forward(self, x: Tensor, return_weights: bool = False) -> Any:
        query, key, value = (self.split(part, self.num_heads) for part in self.qkv(x).chunk(3, dim=-1))
        attended = self.attend(query, key, value)
        return self.projection(self.merge(attended[0] if isinstance(attended, tuple) else attended))


class _Norm(nn.LayerNorm):
    """A LayerNorm whose arithmetic is a wrong function's."""

    arithmetic: Part

    def forward(self, input: Tensor) -> Tensor:
        return self.arithmetic(input, self.weight, self.bias, self.eps)


class _Model(VisionTransformer):
    """The right model, with a wrong way of adding class token and positions."""

    add: Part

    def _embed(self, patches: Tensor) -> Tensor:
        return self.add(patches, self.class_token, self.positions)


def _replace_patchify(model: VisionTransformer, cut: Part) -> nn.Module:
    model.patch_embedding = copy_parameters_from(_Embedding(model.config, cut), model.patch_embedding)
    return model


def _replace_patch_embedding(model: VisionTransformer, part: Part) -> nn.Module:
    config = model.config
    wrong = part(config.in_channels, config.patch_size, config.embed_dim)
    model.patch_embedding = copy_parameters_from(wrong, model.patch_embedding)
    return model


def _replace_class_token(model: VisionTransformer, add: Part) -> nn.Module:
    wrong = _Model(model.config)
    wrong.add = add
    return copy_parameters_from(wrong, model)


def _replace_attention_formula(model: VisionTransformer, attend: Part) -> nn.Module:
    return _replace_in_blocks(
        model, "attention", lambda: _AttentionOfWrongParts(model.config, split_heads, attend, merge_heads)
    )


def _replace_head_functions(model: VisionTransformer, split: Part, merge: Part) -> nn.Module:
    attend = F.scaled_dot_product_attention
    return _replace_in_blocks(model, "attention", lambda: _AttentionOfWrongParts(model.config, split, attend, merge))


def _replace_attention(model: VisionTransformer, part: Part) -> nn.Module:
    return _replace_in_blocks(model, "attention", lambda: part(model.config.embed_dim, model.config.num_heads))


def _replace_mlp(model: VisionTransformer, part: Part) -> nn.Module:
    return _replace_in_blocks(model, "mlp", lambda: part(model.config.embed_dim, model.config.hidden_dim))


def _replace_in_blocks(model: VisionTransformer, name: str, make: Callable[[], nn.Module]) -> nn.Module:
    """``model`` with a newly made wrong part under ``name`` in each of its blocks."""
    for block in model.blocks:
        setattr(block, name, copy_parameters_from(make(), block.get_submodule(name)))
    return model


def _replace_layer_norm(model: VisionTransformer, arithmetic: Part) -> nn.Module:
    for block in model.blocks:
        block.norm1, block.norm2 = (_make_wrong_norm(model, arithmetic, norm) for norm in (block.norm1, block.norm2))
    model.norm = _make_wrong_norm(model, arithmetic, model.norm)
    return model


def _make_wrong_norm(model: VisionTransformer, arithmetic: Part, right: nn.LayerNorm) -> _Norm:
    wrong = _Norm(model.config.embed_dim, eps=model.config.layer_norm_eps)
    wrong.arithmetic = staticmethod(arithmetic)
    return cast(_Norm, copy_parameters_from(wrong, right))


def _replace_block(model: VisionTransformer, part: Part) -> nn.Module:
    config = model.config
    for number, block in enumerate(model.blocks):
        wrong = part(config.embed_dim, config.num_heads, config.mlp_ratio)
        model.blocks[number] = copy_parameters_from(wrong, block)
    return model


def _build_whole_model(model: VisionTransformer, part: Part) -> nn.Module:
    return copy_parameters_from(part(model.config), model)


# whole parts first: a function's mistake that a part makes too is trained once, under the part's name
PLACES: dict[str, Callable[..., nn.Module]] = {
    "PatchEmbedding": _replace_patch_embedding,
    "MultiHeadSelfAttention": _replace_attention,
    "published": _replace_attention,
    "EncoderBlock": _replace_block,
    "VisionTransformer": _build_whole_model,
    "Mlp": _replace_mlp,
    "patchify": _replace_patchify,
    "scaled_dot_product_attention": _replace_attention_formula,
    "split_heads": _replace_head_functions,
    "add_class_token": _replace_class_token,
    "layer_norm": _replace_layer_norm,
}
PUBLISHED = WrongModel("published", "heads on slices of the token, no projection", (HeadsOnSlices,))
