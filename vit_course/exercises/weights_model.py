"""The model that a weights file tells of: its config, field by field, its sizes, and whether the weights fit it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from torch import Tensor

from exercise_kit.engine.compare import listed, quoted, shape
from vit_course.config import ViTConfig
from vit_course.exercises.checks.vit import parameter_shapes
from vit_course.exercises.weights_file import MOST_PARAMETERS, Refused, WeightsFile
from vit_course.metrics import operations_of

VERSION = 1
IMAGE_SIZE, CHANNELS, CLASSES = (32, 32), 3, 10
MOST_OPERATIONS = 3e9
_MOST_DEPTH, _MOST_SIZE = 100, 1 << 20
_LOOK = "What did `save_model` write, and what was changed afterwards?"
_WHOLE = ("patch_size", "in_channels", "num_classes", "embed_dim", "depth", "num_heads", "representation_size")
# field → the least and the most that it can be; the others are words or whole numbers
_REAL = {
    "mlp_ratio": (0.0, 1000.0),
    "layer_norm_eps": (0.0, 1.0),
    "position_std": (0.0, 100.0),
    **dict.fromkeys(("embedding_dropout", "attention_dropout", "projection_dropout", "mlp_dropout"), (0.0, 1.0)),
}


@dataclass(frozen=True)
class SavedModel:
    """A model as it was handed in, its weights checked against its config.

    Attributes: ``config``, ``weights`` under the names of a VisionTransformer's state dict, and ``mean`` and ``std``, a
    number for each channel, on the scale where white is 1.
    """

    config: ViTConfig
    weights: Mapping[str, Tensor]
    mean: tuple[float, ...]
    std: tuple[float, ...]


def config_of(file: WeightsFile) -> ViTConfig:
    """The config that stands in a file.

    Raises:
        Refused: there is none, it is of another version, or is none of a model for small colour images.
    """
    if file.described is None:
        seen = "the file tells nothing of its model, and no JSON file of its name lies beside it"
        raise Refused(
            "no config", seen, "the config of the model", "Which function writes weights and config together?"
        )
    if file.described.get("version") != VERSION:
        raise Refused("config", f"the file is of version {_said(file.described.get('version'))}", str(VERSION), _LOOK)
    told = file.described.get("model")
    if not isinstance(told, dict):
        raise Refused("config", "the file tells no config of its model", "the fields of its ViTConfig", _LOOK)
    known = {field.name for field in fields(ViTConfig)}
    if strangers := [quoted(name, 40) for name in told if name not in known]:
        raise Refused("config", f"its config has {listed(strangers)}, which no ViTConfig has", "a ViTConfig", _LOOK)
    try:
        config = ViTConfig(**{name: _field(name, value) for name, value in told.items()})
        sides = (config.height, config.width)
    except (ValueError, TypeError, OverflowError, ArithmeticError) as error:
        raise Refused("config", f"its config is none of a model: {quoted(error)}", "a ViTConfig", _LOOK) from None
    if (sides, config.in_channels, config.num_classes) != (IMAGE_SIZE, CHANNELS, CLASSES):
        seen = f"its model takes {config.in_channels} x {sides[0]} x {sides[1]} images of {config.num_classes} classes"
        look = "Of which data set are image size, channels and classes?"
        raise Refused("config", seen, "one for 3 x 32 x 32 images of 10 classes", look)
    return config


def _field(name: str, value: Any) -> Any:
    """A field's value, of the kind and within the bounds that it can have."""
    if name == "representation_size" and value is None:
        return None
    if name == "image_size" and isinstance(value, list):
        return tuple(_whole(name, each) for each in value[:3])
    if name in (*_WHOLE, "image_size"):
        return _whole(name, value)
    if name in _REAL:
        least, most = _REAL[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise ValueError(f"{name} is {_said(value)}, not a number from {least:g} to {most:g}")
        return float(value)
    if type(value) is not (bool if name == "qkv_bias" else str):
        raise ValueError(f"{name} is {_said(value)}")
    return value


def _whole(name: str, value: Any) -> int:
    most = _MOST_DEPTH if name == "depth" else _MOST_SIZE
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{name} is {_said(value)}, not a whole number up to {most}")
    return value


def _said(value: Any) -> str:
    return quoted(repr(value)[:60] if isinstance(value, int | float | str | None) else type(value).__name__, 40)


def shapes_of(config: ViTConfig) -> dict[str, tuple[int, ...]]:
    """Name → shape of all that the state dict of a VisionTransformer of ``config`` holds."""
    shapes = parameter_shapes(config)
    shapes["positions"] = (1, config.num_tokens, config.embed_dim)
    if config.positions == "none":
        del shapes["positions"]
    if config.pooling == "mean":
        del shapes["class_token"]
    if config.patch_embedding == "convolution":
        kernel = (config.embed_dim, config.in_channels, config.patch_size, config.patch_size)
        shapes["patch_embedding.projection.weight"] = kernel
    if (width := config.representation_size) is not None:
        del shapes["head.weight"], shapes["head.bias"]
        shapes |= {"head.0.weight": (width, config.embed_dim), "head.0.bias": (width,)}
        shapes |= {"head.2.weight": (config.num_classes, width), "head.2.bias": (config.num_classes,)}
    return shapes


def count_of(config: ViTConfig) -> int:
    """How many numbers the state dict of a VisionTransformer of ``config`` holds."""
    return sum(map(math.prod, shapes_of(config).values()))


def expect_affordable(config: ViTConfig) -> None:
    """Refused unless a model of ``config`` is as small as it may be, and as fast as it has to be."""
    dim, hidden = config.embed_dim, config.hidden_dim
    blocks = config.depth * (4 * dim + 2 * hidden) * dim  # without listing them: a depth may be anything here
    others = dim * (config.num_tokens + config.patch_size**2 * config.in_channels + (config.representation_size or 0))
    count = blocks + others if max(blocks, others) > MOST_PARAMETERS else count_of(config)
    if count > MOST_PARAMETERS:
        look = "Which size costs the most parameters?"
        raise Refused("size", f"its model has {count:,} parameters", f"{MOST_PARAMETERS:,} at most", look)
    if (operations := operations_of(config)) > MOST_OPERATIONS:
        seen = f"one image takes its model about {operations / 1e9:.1f} billion operations"
        look = "How many tokens does an image become, and how long is each?"
        raise Refused("size", seen, f"{MOST_OPERATIONS / 1e9:g} billion at most, so that it can be measured", look)


def expect_fitting(tensors: Mapping[str, Tensor], config: ViTConfig) -> None:
    """Refused unless the tensors have the names and the shapes that ``config`` asks for."""
    wanted = shapes_of(config)
    for name in wanted:
        if name not in tensors:
            raise Refused("names", f"the file holds no `{name}`", f"`{name}` {shape(wanted[name])}", _LOOK)
        if tuple(tensors[name].shape) != wanted[name]:
            seen = f"`{name}` has the shape {shape(tensors[name])}"
            raise Refused("names", seen, f"{shape(wanted[name])}, as its config tells", _LOOK)
    if strangers := [quoted(name, 60) for name in tensors if name not in wanted]:
        raise Refused(
            "names", f"the file holds {listed(strangers)}, which its model has not", "the model's alone", _LOOK
        )


def expect_finite(tensors: Mapping[str, Tensor]) -> None:
    """Refused when a number is NaN or infinite."""
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            kind = "NaN (not a number)" if tensor.isnan().any() else "infinity"
            look = "What did the loss say when the weights became so?"
            raise Refused("finite", f"{quoted(name, 60)} holds {kind}", "finite numbers everywhere", look)


def saved_model(file: WeightsFile) -> SavedModel:
    """The model in a file, all of it checked.

    Raises:
        Refused: with the first thing that is wrong.
    """
    config = config_of(file)
    expect_affordable(config)
    expect_fitting(file.tensors, config)
    expect_finite(file.tensors)
    data = file.described.get("data") if file.described else None
    return SavedModel(config, file.tensors, *(_statistics(data, name) for name in ("mean", "std")))


def _statistics(data: object, name: str) -> tuple[float, ...]:
    told = data.get(name) if isinstance(data, dict) else None
    numbers = told if isinstance(told, list) and len(told) == CHANNELS else []
    if not numbers or not all(type(each) in (int, float) and abs(each) < 1e6 for each in numbers):
        raise Refused("data", f"the file tells no {name} for each of the {CHANNELS} channels", "three numbers", _LOOK)
    if name == "std" and min(numbers) < 1e-6:
        raise Refused("data", "the file tells a standard deviation that is no positive number", "three numbers", _LOOK)
    return tuple(map(float, numbers))
