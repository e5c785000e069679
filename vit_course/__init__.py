"""A hands-on course on the Vision Transformer: the model and its parts, and ``check`` and ``hunt`` of the lessons.

All public names are here; each is imported from its module when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from exercise_kit.versions import require_supported_versions

if TYPE_CHECKING:
    from exercise_kit.engine import borrow, check, keep, own, predict, progress, reset, reveal
    from vit_course.attention import (
        MultiHeadSelfAttention,
        merge_heads,
        scaled_dot_product_attention,
        split_heads,
    )
    from vit_course.config import ViTConfig
    from vit_course.data.splits import split_indices
    from vit_course.diagnosis.asking import diagnose
    from vit_course.encoder import Encoder, EncoderBlock, Mlp
    from vit_course.fine_tuning import extract_features, fine_tuning_groups, linear_probe, replace_head
    from vit_course.hunts import hunt
    from vit_course.initialisation import initialise
    from vit_course.modern import (
        DropPath,
        LayerScale,
        QKNormAttention,
        add_registers,
        random_masking,
        rotary_2d,
    )
    from vit_course.patches import PatchEmbedding, patchify, unpatchify
    from vit_course.positions import add_class_token, sinusoidal_positions, sinusoidal_positions_2d
    from vit_course.pretrained import conv_from_linear, load_torchvision, resize_positions
    from vit_course.recipes.presets import PRESETS
    from vit_course.recording import record
    from vit_course.training.early_stopping import EarlyStopping
    from vit_course.training.loop import evaluate, train_one_epoch
    from vit_course.training.optimizers import parameter_groups, warmup_cosine
    from vit_course.vit import VisionTransformer

require_supported_versions()

try:
    __version__ = version("vit-course")
except PackageNotFoundError:  # used from a clone that is not installed
    __version__ = "0+clone"

__all__ = [
    "PRESETS",
    "DropPath",
    "EarlyStopping",
    "Encoder",
    "EncoderBlock",
    "LayerScale",
    "Mlp",
    "MultiHeadSelfAttention",
    "PatchEmbedding",
    "QKNormAttention",
    "ViTConfig",
    "VisionTransformer",
    "__version__",
    "add_class_token",
    "add_registers",
    "borrow",
    "check",
    "conv_from_linear",
    "diagnose",
    "evaluate",
    "extract_features",
    "fine_tuning_groups",
    "hunt",
    "initialise",
    "keep",
    "linear_probe",
    "load_torchvision",
    "merge_heads",
    "own",
    "parameter_groups",
    "patchify",
    "predict",
    "progress",
    "random_masking",
    "record",
    "replace_head",
    "reset",
    "resize_positions",
    "reveal",
    "rotary_2d",
    "scaled_dot_product_attention",
    "sinusoidal_positions",
    "sinusoidal_positions_2d",
    "split_heads",
    "split_indices",
    "train_one_epoch",
    "unpatchify",
    "warmup_cosine",
]

_HOME = {
    "attention": ("MultiHeadSelfAttention", "merge_heads", "scaled_dot_product_attention", "split_heads"),
    "config": ("ViTConfig",),
    "data.splits": ("split_indices",),
    "diagnosis.asking": ("diagnose",),
    "encoder": ("Encoder", "EncoderBlock", "Mlp"),
    "fine_tuning": ("extract_features", "fine_tuning_groups", "linear_probe", "replace_head"),
    "hunts": ("hunt",),
    "initialisation": ("initialise",),
    "modern": ("DropPath", "LayerScale", "QKNormAttention", "add_registers", "random_masking", "rotary_2d"),
    "patches": ("PatchEmbedding", "patchify", "unpatchify"),
    "positions": ("add_class_token", "sinusoidal_positions", "sinusoidal_positions_2d"),
    "pretrained": ("conv_from_linear", "load_torchvision", "resize_positions"),
    "recipes.presets": ("PRESETS",),
    "recording": ("record",),
    "training.early_stopping": ("EarlyStopping",),
    "training.loop": ("evaluate", "train_one_epoch"),
    "training.optimizers": ("parameter_groups", "warmup_cosine"),
    "vit": ("VisionTransformer",),
}
_MODULE_OF = {name: f"vit_course.{module}" for module, names in _HOME.items() for name in names}
_OF_THE_KIT = ("borrow", "check", "keep", "own", "predict", "progress", "reset", "reveal")
_MODULE_OF |= dict.fromkeys(_OF_THE_KIT, "exercise_kit.engine")


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'vit_course' has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
