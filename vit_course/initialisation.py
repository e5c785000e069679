"""How the weights of a Vision Transformer start: the paper's way, torchvision's, and BERT's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from vit_course.attention import MultiHeadSelfAttention
    from vit_course.vit import VisionTransformer


@torch.no_grad()
def initialise(model: VisionTransformer) -> None:
    """Give every weight and bias its starting value, after ``model.config.initialisation``.

    - "paper": the authors' released code. Linears Xavier-uniform (queries, keys and values each on their
      own), MLP biases N(0, 1e-6), patch embedding and hidden Linear of the head by fan-in, last Linear zero.
    - "torchvision": the same, but queries, keys and values share one Xavier bound, and the attention's
      projection starts as torch starts every Linear.
    - "truncated_normal": every Linear and convolution N(0, 0.02), cut at two standard deviations, every
      bias zero, as in BERT; the class token too.

    Otherwise the class token starts at zero. Learned positions are N(0, position_std), cut in
    "truncated_normal"; tables of sines stay as they are.
    """
    config = model.config
    cut = config.initialisation == "truncated_normal"
    if model.positions is not None and config.positions == "learned":
        _fill_with_normal(model.positions, config.position_std, cut)
    if cut:
        _initialise_every_layer_alike(model)
        return
    _initialise_by_fan_in(model.patch_embedding.projection)
    for block in model.blocks:
        _initialise_attention(block.attention, after_paper=config.initialisation == "paper")
        for linear in (block.mlp.fc1, block.mlp.fc2):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.normal_(linear.bias, std=1e-6)
    *hidden, last = (module for module in model.head.modules() if isinstance(module, nn.Linear))
    for linear in hidden:
        _initialise_by_fan_in(linear)
    nn.init.zeros_(last.weight)
    _fill_with_zeros(last.bias)


def _initialise_every_layer_alike(model: VisionTransformer) -> None:
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            _fill_with_normal(module.weight, std=0.02, cut=True)
            _fill_with_zeros(module.bias)
    if model.class_token is not None:
        _fill_with_normal(model.class_token, std=0.02, cut=True)


def _initialise_attention(attention: MultiHeadSelfAttention, after_paper: bool) -> None:
    qkv, projection = attention.qkv, attention.projection
    for part in qkv.weight.chunk(3) if after_paper else (qkv.weight,):
        nn.init.xavier_uniform_(part)
    _fill_with_zeros(qkv.bias)
    if after_paper:
        nn.init.xavier_uniform_(projection.weight)
    else:
        projection.reset_parameters()
    _fill_with_zeros(projection.bias)


def _initialise_by_fan_in(layer: nn.Linear | nn.Conv2d) -> None:
    fan_in = layer.weight[0].numel()
    nn.init.trunc_normal_(layer.weight, std=math.sqrt(1 / fan_in))
    _fill_with_zeros(layer.bias)


def _fill_with_normal(tensor: Tensor, std: float, cut: bool) -> None:
    if cut:
        nn.init.trunc_normal_(tensor, std=std, a=-2 * std, b=2 * std)
    else:
        nn.init.normal_(tensor, std=std)


def _fill_with_zeros(bias: Tensor | None) -> None:
    if bias is not None:
        nn.init.zeros_(bias)
