"""Our model and the same model from timm, torchvision, transformers and vit-pytorch, for models.py to time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor, nn

from vit_course.config import ViTConfig
from vit_course.vit import VisionTransformer

OURS = "ours"


@dataclass(frozen=True)
class Peer:
    """A library's ViT.

    Attributes: ``make`` from our config, which raises ImportError where the library is not installed, and
    ``remark``: where it is another model than ours.
    """

    make: Callable[[ViTConfig], nn.Module]
    remark: str = ""


def _build_timm_model(config: ViTConfig) -> nn.Module:
    from timm.models.vision_transformer import VisionTransformer as Timm

    return Timm(
        img_size=(config.height, config.width),
        patch_size=config.patch_size,
        num_classes=config.num_classes,
        embed_dim=config.embed_dim,
        depth=config.depth,
        num_heads=config.num_heads,
        mlp_ratio=config.mlp_ratio,
    )


def _build_torchvision_model(config: ViTConfig) -> nn.Module:
    from torchvision.models import VisionTransformer as Torchvision

    return Torchvision(
        config.height,
        config.patch_size,
        config.depth,
        config.num_heads,
        config.embed_dim,
        config.hidden_dim,
        num_classes=config.num_classes,
    )


class _Logits(nn.Module):
    """transformers' model, its logits taken out of its answer."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        return self.model(images).logits


def _build_transformers_model(config: ViTConfig) -> nn.Module:
    from transformers import ViTConfig as Config
    from transformers import ViTForImageClassification

    theirs = Config(
        hidden_size=config.embed_dim,
        num_hidden_layers=config.depth,
        num_attention_heads=config.num_heads,
        intermediate_size=config.hidden_dim,
        image_size=config.height,
        patch_size=config.patch_size,
        num_labels=config.num_classes,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        attn_implementation="sdpa",
    )
    return _Logits(ViTForImageClassification(theirs))


def _build_vit_pytorch_model(config: ViTConfig) -> nn.Module:
    from vit_pytorch import ViT

    return ViT(
        image_size=config.height,
        patch_size=config.patch_size,
        num_classes=config.num_classes,
        dim=config.embed_dim,
        depth=config.depth,
        heads=config.num_heads,
        mlp_dim=config.hidden_dim,
        dim_head=config.head_dim,
    )


# by the name under which the library is installed
PEERS = {
    "timm": Peer(_build_timm_model),
    "torchvision": Peer(_build_torchvision_model),
    "transformers": Peer(_build_transformers_model),
    "vit-pytorch": Peer(
        _build_vit_pytorch_model, "two norms more before the blocks, no bias in queries, keys and values"
    ),
}


def build_models(config: ViTConfig, device: str) -> tuple[dict[str, nn.Module], dict[str, dict[str, Any]]]:
    """Every model that is installed here, ours first, and of each: version, parameters, remark."""
    found: dict[str, nn.Module] = {OURS: VisionTransformer(config)}
    facts: dict[str, dict[str, Any]] = {OURS: {}}
    for name, peer in PEERS.items():
        try:
            found[name] = peer.make(config)
        except ImportError:
            facts[name] = {"remark": "not installed: left out"}
            continue
        facts[name] = {"version": version(name)} | ({"remark": peer.remark} if peer.remark else {})
    for name, model in found.items():
        facts[name]["parameters"] = sum(parameter.numel() for parameter in model.parameters())
        model.to(device)
        with torch.no_grad():  # some start with a head of zeros, which would spare the backward pass its work
            for parameter in model.parameters():
                parameter.add_(0.02 * torch.randn_like(parameter))
    return found, facts
