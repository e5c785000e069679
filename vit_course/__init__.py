"""A hands-on course on the Vision Transformer: the reference package, its lessons' checks, and the grader."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from exercise_kit.supported import require_supported
from vit_course import renamed

if TYPE_CHECKING:
    from exercise_kit.engine import check
    from vit_course.config import PRESETS, ViTConfig
    from vit_course.vit import VisionTransformer

require_supported()
renamed.install()

try:
    __version__ = version("vit-course")
except PackageNotFoundError:  # used from a clone that is not installed
    __version__ = "0+clone"

__all__ = ["PRESETS", "ViTConfig", "VisionTransformer", "__version__", "check"]

_HOME = {
    "PRESETS": "vit_course.config",
    "ViTConfig": "vit_course.config",
    "VisionTransformer": "vit_course.vit",
    "check": "exercise_kit.engine",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'vit_course' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
