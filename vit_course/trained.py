"""The trained Vision Transformer that comes with the course: recipe `cpu-course`, trained on CIFAR-10.

`weights/README.md` says how it was made and what it is good for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from torch import nn

from vit_course.config import ViTConfig
from vit_course.training.checkpoints import SavedModel, load_model

__all__ = ["trained_vit"]

WEIGHTS = Path(__file__).parent / "weights" / "vit_cifar10.safetensors"
DIGEST = "633b0bcdbde8dcd49172d2b99f2c9887acfede153537f43a3a30752c8afde87a"


def trained_vit(build: Callable[[ViTConfig], nn.Module] | None = None) -> SavedModel:
    """A Vision Transformer for 32 x 32 photos, with its classes and the statistics that its images need.

    Its weights are kept as float16 and given as float32; each call gives a model of its own, in evaluation mode.

    Args:
        build: makes the model that gets the weights, as a class of your own does; None for a `VisionTransformer`.

    Raises:
        ValueError: when the file is not the one that was released.
    """
    if hashlib.sha256(WEIGHTS.read_bytes()).hexdigest() != DIGEST:
        raise ValueError(f"{WEIGHTS} is not the file that came with this release; install the package again")
    return load_model(WEIGHTS, build)
