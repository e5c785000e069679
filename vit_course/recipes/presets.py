"""Models by name: the sizes of the papers, and the models of five published notebooks."""

from __future__ import annotations

from dataclasses import replace

from vit_course.config import ViTConfig

_BASE = ViTConfig(image_size=224, patch_size=16, num_classes=1000, embed_dim=768, depth=12, num_heads=12)
_LAB = ViTConfig(embed_dim=16, depth=4, num_heads=2, positions="sinusoidal")
_WALKTHROUGH = ViTConfig(patch_embedding="convolution", initialisation="torchvision")
_LIGHTNING = ViTConfig(
    embed_dim=256,
    num_heads=8,
    mlp_ratio=2.0,
    representation_size=512,
    head_activation="relu",
    embedding_dropout=0.2,
    attention_dropout=0.2,
    mlp_dropout=0.2,
)

PRESETS: dict[str, ViTConfig] = {
    # Touvron et al. 2021 (DeiT), table 1, for Ti and S; Dosovitskiy et al. 2020, table 1, for B and L
    "vit_tiny_16": replace(_BASE, embed_dim=192, num_heads=3),
    "vit_small_16": replace(_BASE, embed_dim=384, num_heads=6),
    "vit_base_16": _BASE,
    "vit_base_32": replace(_BASE, patch_size=32),
    "vit_large_16": replace(_BASE, embed_dim=1024, depth=24, num_heads=16),
    # the models of five published notebooks
    "lab_mnist": replace(_LAB, image_size=28, in_channels=1, embed_dim=8, depth=2),
    "lab_cifar10": _LAB,
    "walkthrough_mnist": replace(
        _WALKTHROUGH,
        image_size=28,
        patch_size=2,
        in_channels=1,
        embed_dim=64,
        depth=2,
        num_heads=2,
        representation_size=32,
    ),
    "walkthrough_512": replace(
        _WALKTHROUGH, image_size=512, patch_size=16, num_classes=1000, embed_dim=768, num_heads=12
    ),
    "lightning_cifar10": _LIGHTNING,
    "lightning_cifar100": replace(
        _LIGHTNING,
        num_classes=100,
        depth=24,
        embedding_dropout=0.1,
        attention_dropout=0.1,
        mlp_dropout=0.1,
    ),
    "critical_cifar100": ViTConfig(
        num_classes=100,
        embed_dim=256,
        depth=4,
        num_heads=8,
        positions="learned_from_sinusoidal",
        representation_size=256,
    ),
    "annotated_cifar10": ViTConfig(
        embed_dim=48,
        depth=4,
        num_heads=4,
        patch_embedding="convolution",
        gelu="tanh",
        initialisation="truncated_normal",
    ),
}
