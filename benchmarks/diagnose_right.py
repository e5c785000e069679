"""Right models that nobody may tell wrong: ours and those of timm, torchvision, transformers and vit-pytorch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from torch import nn

import vit_course
from vit_course.config import ViTConfig

Make = Callable[[], nn.Module]
SIDE, CLASSES = 32, 10
_SMALL = ViTConfig(image_size=SIDE, patch_size=8, embed_dim=48, depth=2, num_heads=4)
_OURS: dict[str, dict[str, Any]] = {
    "plain": {},
    "convolution": {"patch_embedding": "convolution"},
    "no positions": {"positions": "none"},
    "sinusoidal": {"positions": "sinusoidal"},
    "sinusoidal 2d": {"positions": "sinusoidal_2d"},
    "learned from sinusoidal": {"positions": "learned_from_sinusoidal"},
    "mean pooling": {"pooling": "mean"},
    "mean pooling, sinusoidal 2d": {"pooling": "mean", "positions": "sinusoidal_2d"},
    "head of two layers, tanh": {"representation_size": 32},
    "head of two layers, relu": {"representation_size": 32, "head_activation": "relu"},
    "dropout": {
        "embedding_dropout": 0.1,
        "attention_dropout": 0.1,
        "projection_dropout": 0.1,
        "mlp_dropout": 0.1,
    },
    "no qkv bias": {"qkv_bias": False},
    "tanh GELU": {"gelu": "tanh"},
    "torchvision's start": {"initialisation": "torchvision"},
    "truncated normal": {"initialisation": "truncated_normal"},
    "large positions": {"position_std": 1.0},
    "one head": {"num_heads": 1},
    "narrow MLP": {"mlp_ratio": 1.0},
    "depth 1": {"depth": 1},
    "two images wide": {"image_size": (16, 32)},
    "gray": {"in_channels": 1},
}
_TIMM: dict[str, dict[str, Any]] = {
    "vit_tiny_patch16_224": {},
    "vit_tiny_patch16_224 ": {"qk_norm": True},
    "vit_tiny_patch16_224  ": {"pool_type": "avg", "global_pool": "avg", "class_token": False},
    "vit_tiny_patch16_224   ": {"init_values": 1e-5, "reg_tokens": 4, "drop_path_rate": 0.1},
    "deit_tiny_distilled_patch16_224": {},
    "deit3_small_patch16_224": {},
    "vit_small_patch14_reg4_dinov2": {},
    "beit_base_patch16_224": {},
    "beitv2_base_patch16_224": {},
    "eva02_tiny_patch14_224": {},
    "vit_relpos_small_patch16_224": {},
    "vit_srelpos_small_patch16_224": {},
    "vit_relpos_medium_patch16_rpn_224": {},
    "cait_xxs24_224": {},
    "vit_base_patch16_clip_224": {},
    "vit_base_patch16_siglip_224": {},
    "vit_small_patch16_rope_224": {},
    "vit_little_patch16_reg1_gap_256": {},
}
_TORCH_SIZES = {
    "image_size": SIDE,
    "patch_size": 8,
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
}
_TRANSFORMERS = ("ViT", "DeiT", "Beit", "Dinov2", "Dinov2WithRegisters", "ViTMSN", "Data2VecVision", "IJepa")
_LUCID: dict[str, tuple[str, dict[str, Any]]] = {
    "vit.ViT": ("ViT", {}),
    "vit.ViT mean": ("ViT", {"pool": "mean"}),
    "simple_vit.SimpleViT": ("SimpleViT", {}),
    "vit_for_small_dataset.ViT": ("ViT", {}),
    "simple_vit_with_register_tokens.SimpleViT": ("SimpleViT", {}),
    "simple_vit_with_qk_norm.SimpleViT": ("SimpleViT", {}),
    "simple_flash_attn_vit.SimpleViT": ("SimpleViT", {"use_flash": False}),
    "simple_vit_with_patch_dropout.SimpleViT": ("SimpleViT", {}),
    "vit_with_patch_dropout.ViT": ("ViT", {}),
    "parallel_vit.ViT": ("ViT", {}),
    "deepvit.DeepViT": ("DeepViT", {}),
    "cait.CaiT": ("CaiT", {"cls_depth": 1}),
    "learnable_memory_vit.ViT": ("ViT", {}),
    "simple_vit_with_value_residual.SimpleViT": ("SimpleViT", {}),
    "simple_vit_with_hyper_connections.SimpleViT": ("SimpleViT", {"num_residual_streams": 2}),
    "vit_with_decorr.ViT": ("ViT", {}),
}


def iterate_right_models() -> Iterator[tuple[str, str, Make]]:
    """(family, name, how to make it): all take (2, 3, 32, 32), but where the config says otherwise."""
    for name, changed in _OURS.items():
        config = dataclasses.replace(_SMALL, **changed)
        yield "vit_course", name, lambda config=config: vit_course.VisionTransformer(config)
    for name, config in vit_course.PRESETS.items():
        small = dataclasses.replace(config, depth=2)
        yield "vit_course", f"preset {name}", lambda config=small: vit_course.VisionTransformer(config)
    yield from _iterate_timm_models()
    yield from _iterate_torchvision_models()
    yield from _iterate_transformers_models()
    yield from _iterate_vit_pytorch_models()


def find_image_shape(model: nn.Module) -> tuple[int, int, int]:
    """(channels, height, width) that a model of these takes."""
    config = getattr(model, "config", None)
    if isinstance(config, ViTConfig):
        return config.in_channels, config.height, config.width
    return 3, SIDE, SIDE


def _iterate_timm_models() -> Iterator[tuple[str, str, Make]]:
    import timm

    for name, more in _TIMM.items():
        sizes: dict[str, Any] = {"img_size": SIDE, "patch_size": 8, "depth": 2, "num_classes": CLASSES}
        yield (
            "timm",
            f"{name.strip()} {more or ''}".strip(),
            lambda name=name, kept={**sizes, **more}: timm.create_model(
                name.strip(), **{key: value for key, value in kept.items() if key != "pool_type"}
            ),
        )


def _iterate_torchvision_models() -> Iterator[tuple[str, str, Make]]:
    from torchvision.models.vision_transformer import VisionTransformer

    for name, more in {
        "vit": {},
        "vit, dropout": {"dropout": 0.1, "attention_dropout": 0.1},
        "vit, representation": {"representation_size": 32},
    }.items():
        yield (
            "torchvision",
            name,
            lambda more=more: VisionTransformer(SIDE, 8, 2, 4, 48, 96, num_classes=CLASSES, **more),
        )


def _iterate_transformers_models() -> Iterator[tuple[str, str, Make]]:
    import transformers

    for name in _TRANSFORMERS:
        for implementation in ("eager", "sdpa"):

            def make(name: str = name, implementation: str = implementation) -> nn.Module:
                config = getattr(transformers, f"{name}Config")(
                    **_TORCH_SIZES, num_labels=CLASSES, attn_implementation=implementation
                )
                return getattr(transformers, f"{name}ForImageClassification")(config)  # type: ignore[no-any-return]

            yield "transformers", f"{name}, {implementation}", make


def _iterate_vit_pytorch_models() -> Iterator[tuple[str, str, Make]]:
    from importlib import import_module

    for path, (kind, more) in _LUCID.items():
        sizes: dict[str, Any] = {
            "image_size": SIDE,
            "patch_size": 8,
            "num_classes": CLASSES,
            "dim": 48,
            "depth": 2,
            "heads": 4,
            "mlp_dim": 96,
        }

        def make(path: str = path, kind: str = kind, kept: dict[str, Any] = {**sizes, **more}) -> nn.Module:  # noqa: B006
            module = import_module(f"vit_pytorch.{path.partition('.')[0]}")
            return getattr(module, kind)(**kept)  # type: ignore[no-any-return]

        yield "vit-pytorch", path, make
