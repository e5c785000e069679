"""Training fixtures of lesson 08: a small Vision Transformer with the parts of lesson 05.

They run beside a student's code, in a kernel or in a judge's worker. They take and return plain values and tensors,
hold no answer and judge nothing. Of the package they import the config and the other device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exercise_kit.engine.training_fixtures import call_on_other_device
from vit_course.config import ViTConfig

Weights = Mapping[str, Tensor]


class _Patches(nn.Module):
    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.patch_size = config.patch_size
        self.projection = nn.Linear(config.in_channels * config.patch_size**2, config.embed_dim)

    def forward(self, images: Tensor) -> Tensor:
        return self.projection(F.unfold(images, self.patch_size, stride=self.patch_size).mT)


class _Attention(nn.Module):
    """torch's fused attention; asked for one-hot values it tells the weights."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.qkv = nn.Linear(config.embed_dim, 3 * config.embed_dim, bias=config.qkv_bias)
        self.projection = nn.Linear(config.embed_dim, config.embed_dim)
        self.dropout = nn.Dropout(1.0)

    def forward(self, x: Tensor, return_weights: bool = False) -> Any:
        batch, tokens, _ = x.shape
        query, key, value = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        output = self.dropout(self.projection(mixed))
        if not return_weights:
            return output
        one_hot = torch.eye(tokens, dtype=x.dtype, device=x.device).expand(batch, self.num_heads, tokens, tokens)
        return output, F.scaled_dot_product_attention(query, key, one_hot)


class _Mlp(nn.Module):
    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.fc1 = nn.Linear(config.embed_dim, config.hidden_dim)
        self.fc2 = nn.Linear(config.hidden_dim, config.embed_dim)
        self.dropout = nn.Dropout(1.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.fc2(F.gelu(self.fc1(x))))


class _Block(nn.Module):
    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(config.embed_dim, eps=config.layer_norm_eps)
        self.attention = _Attention(config)
        self.norm2 = nn.LayerNorm(config.embed_dim, eps=config.layer_norm_eps)
        self.mlp = _Mlp(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class SmallViT(nn.Module):
    """A model with the names of lesson 05, and nothing beyond; its blocks do nothing while it trains.

    Args:
        weights: every parameter by its name; the model computes in their dtype.
        config: its sizes.

    Shapes: images (batch, in_channels, height, width) → logits (batch, num_classes).
    """

    def __init__(self, weights: Weights, config: ViTConfig) -> None:
        super().__init__()
        self.patch_embedding = _Patches(config)
        self.class_token = nn.Parameter(torch.zeros(1, 1, config.embed_dim))
        self.positions = nn.Parameter(torch.zeros(1, 1 + config.num_patches, config.embed_dim))
        self.blocks = nn.ModuleList(_Block(config) for _ in range(config.depth))
        self.norm = nn.LayerNorm(config.embed_dim, eps=config.layer_norm_eps)
        self.head = nn.Linear(config.embed_dim, config.num_classes)
        self._pools_by_mean = config.pooling == "mean"  # of the class token's and the patches' tokens
        self.load_state_dict({name: each.clone() for name, each in weights.items()}, assign=True)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (batch, num_classes)."""
        class_tokens = self.class_token.expand(len(images), -1, -1)
        x = torch.cat([class_tokens, self.patch_embedding(images)], dim=1) + self.positions
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x.mean(dim=1) if self._pools_by_mean else x[:, 0])

    def __repr__(self) -> str:
        return "a small model"


class Left:
    """What a model is like before a call, to find out afterward what the call has changed.

    Args:
        model: which has the ``weights``.
        weights: every parameter by its name.
    """

    def __init__(self, model: SmallViT, weights: Weights) -> None:
        self._weights = weights
        self._parts, self._parameters = dict(model.named_modules()), dict(model.named_parameters())
        self._modes = {name: each.training for name, each in self._parts.items()}
        self._hooked = {name: _list_hook_ids(each) for name, each in self._parts.items()}
        self._learning = {name: each.requires_grad for name, each in self._parameters.items()}
        self._gradients = {
            name: None if each.grad is None else each.grad.clone() for name, each in self._parameters.items()
        }

    def list_what_is_left(self) -> dict[str, list[str]]:
        """Names of parts and parameters that are another than before: see :func:`predict`."""
        hooks = [name for name, each in self._parts.items() if _list_hook_ids(each) != self._hooked[name]]
        replaced = [name for name, each in self._parts.items() if "forward" in vars(each)]
        parameters, weights = self._parameters.items(), self._weights
        return {
            "modes": [name or "the model" for name, each in self._parts.items() if each.training != self._modes[name]],
            "hooks": [name or "the model" for name in hooks],
            "replaced": [name or "the model" for name in replaced],
            "gradients": [name for name, each in parameters if not _is_same_tensor(each.grad, self._gradients[name])],
            "frozen": [name for name, each in parameters if each.requires_grad != self._learning[name]],
            "changed": [name for name, each in parameters if not torch.equal(each.detach(), weights[name])],
        }


def switch_modes_of_parts(model: nn.Module, apart: Sequence[str]) -> None:
    """Put the parts of these names into the other mode than the model's."""
    for name in apart:
        model.get_submodule(name).train(not model.training)


def predict(
    function: Callable[..., Any],
    weights: Weights,
    config: ViTConfig,
    image: Tensor,
    training: bool,
    apart: Sequence[str] = (),
) -> dict[str, Any]:
    """Call ``function(model, image)`` with a :class:`SmallViT`.

    Args:
        weights, config: of the model.
        image: (channels, height, width).
        training: the model's mode before.
        apart: names of the parts that are in the other mode.

    Returns:
        "returned": the result.
        "modes": names of parts whose mode has changed.
        "hooks": names of parts with other hooks than before.
        "replaced": names of parts with a forward that is not their class's.
        "gradients": names of parameters with another gradient than before.
        "frozen": names of parameters that now require a gradient and did not before, or the other way round.
        "changed": names of parameters with other numbers than before.
        "image_changed": whether the call has changed the image.
        "recording": whether torch still records gradients.
    """
    model, given = SmallViT(weights, config).train(training), image.clone()
    switch_modes_of_parts(model, apart)
    _leave_traces_of_earlier_use(model)
    left = Left(model, weights)
    returned = function(model, given)
    return {
        "returned": returned,
        **left.list_what_is_left(),
        "image_changed": not torch.equal(image, given.detach()),
        "recording": torch.is_grad_enabled(),
    }


def predict_stopped(function: Callable[..., Any], weights: Weights, config: ViTConfig, image: Tensor) -> dict[str, Any]:
    """Call ``function(model, image)`` with a model in training mode, which an image of another size stops.

    Returns:
        "modes", "hooks", "replaced", "frozen": as in :func:`predict`.
        "recording": whether torch still records gradients.
    """
    model = SmallViT(weights, config).train()
    left = Left(model, weights)
    with suppress(Exception):
        function(model, image)
    behind = left.list_what_is_left()
    names = "modes", "hooks", "replaced", "frozen"
    return {name: behind[name] for name in names} | {"recording": torch.is_grad_enabled()}


def _leave_traces_of_earlier_use(model: SmallViT) -> None:
    """Leave in a model what somebody else may have: a gradient, a frozen parameter, hooks of their own."""
    model.norm.weight.grad = torch.ones_like(model.norm.weight)
    model.norm.bias.requires_grad_(False)
    attention = model.get_submodule(f"blocks.{len(model.blocks) - 1}.attention")
    attention.register_forward_hook(lambda *_: None)
    attention.register_forward_pre_hook(lambda *_: None)


def _list_hook_ids(part: nn.Module) -> tuple[list[int], list[int]]:
    return list(part._forward_hooks), list(part._forward_pre_hooks)


def _is_same_tensor(found: Tensor | None, before: Tensor | None) -> bool:
    return found is before if found is None or before is None else torch.equal(found, before)


def rollout(function: Callable[..., Any], inputs: Sequence[Sequence[Tensor]]) -> dict[str, Any]:
    """Call ``function(layers)``; ``inputs`` is the list of this one argument.

    Returns:
        "returned": the result.
        "layers": the tensors of the argument after the call.
        "kept": how many are still in the list.
    """
    layers = [layer.clone() for layer in inputs[0]]
    given = list(layers)
    returned = function(given)
    return {"returned": returned, "layers": [layer.detach() for layer in layers], "kept": len(given)}


def predict_elsewhere(
    function: Callable[..., Any], weights: Weights, config: ViTConfig, image: Tensor
) -> dict[str, Any]:
    """Call ``function(model, image)`` on another device than the CPU; what :func:`device` notes of it."""
    return call_on_other_device(function, [SmallViT(weights, config), image])


FIXTURES: dict[str, Callable[..., dict[str, Any]]] = {
    "predict": predict,
    "predict_stopped": predict_stopped,
    "predict_elsewhere": predict_elsewhere,
    "rollout": rollout,
}
