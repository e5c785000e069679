"""A weights file that somebody handed in, read as bytes that may be anything: safetensors, and never a pickle.

safetensors' own reader takes it apart. Everything that the file says about itself is checked before it is used: its
size, the header's size, dtypes, and every field of the model's config. So a small file cannot cost much memory or time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from torch import Tensor

from exercise_kit.conventions import MOST_BYTES
from exercise_kit.engine.compare import format_shape, join_names
from exercise_kit.engine.verdict import Failure
from exercise_kit.quoting import quote_first_line
from vit_course.config import ViTConfig
from vit_course.exercises.l05_vit.vision_transformer.claims import list_parameter_shapes
from vit_course.metrics import operations_of

MOST_PARAMETERS = 10_000_000
_MOST_HEADER = 1 << 20
_DTYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_MOST_AXES = 8
_SAVE = "Is it what `save_model` wrote, whole and under this name?"
_PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


class Refused(Failure):
    """A weights file that cannot be used.

    Args:
        kind: one word for the reason, by which two files with the same fault are known.
    """

    def __init__(self, kind: str, seen: str, expected: str = "", look: str = "") -> None:
        super().__init__(seen, expected, look)
        self.kind = kind


@dataclass(frozen=True)
class WeightsFile:
    """What stands in a weights file, nothing of it tried yet.

    Attributes: ``tensors`` by name, float32; ``described``, the JSON about model and data, None where there is
    none.
    """

    tensors: Mapping[str, Tensor]
    described: Mapping[str, Any] | None


def read_weights(content: bytes | str, beside: bytes | None = None) -> WeightsFile:
    """Take a weights file apart.

    Args:
        content: of the file; a text says why there is none.
        beside: of the JSON file beside it, which counts where the header says nothing about model and data.

    Raises:
        Refused: with what is wrong about the file.
    """
    if isinstance(content, str):
        look = "Which cell trains your model and saves it, and have you run it?"
        raise Refused("missing", content, "the file", look)
    if len(content) > MOST_BYTES:
        seen, wanted = f"the file has more than {MOST_BYTES >> 20} MB", f"{MOST_BYTES >> 20} MB at most"
        look = "Which size costs the most parameters, and what else than the model's weights was saved?"
        raise Refused("size", seen, f"{wanted}, room for {MOST_PARAMETERS:,} parameters in float32", look)
    header, held = _read_header(content)
    notes = header.pop("__metadata__", None)
    metadata = notes.get("vit_course") if isinstance(notes, dict) else None
    _expect_all_numbers(header, held)
    tensors = _read_tensors(content)
    text = metadata if isinstance(metadata, str) else beside
    return WeightsFile(tensors, None if text is None else _parse_description(text))


def _read_header(content: bytes) -> tuple[dict[str, Any], int]:
    """The header, and how many bytes of numbers follow it."""
    if content.startswith(_PICKLES):
        raise Refused(
            "pickle",
            "the file is a pickle or an archive, as torch.save writes it: whoever loads one runs what stands in it",
            "a safetensors file",
            "Which function of the course saves a model?",
        )
    length = int.from_bytes(content[:8], "little")
    if len(content) < 10 or length > _MOST_HEADER or content[8:9] != b"{":
        raise Refused("other", "the file is no safetensors file", "a header of less than 1 MB, and numbers", _SAVE)
    if 8 + length > len(content):
        raise Refused("cut", f"the file ends after {len(content):,} bytes, in its header", "all of it", _SAVE)
    try:
        header = json.loads(content[8 : 8 + length].decode(), object_pairs_hook=_make_dict_without_duplicates)
    except (ValueError, RecursionError):
        raise Refused("header", "the file's header is no JSON that can be read", "a safetensors file", _SAVE) from None
    if not isinstance(header, dict):
        raise Refused("header", "the file's header lists no tensors", "a safetensors file", _SAVE)
    return header, len(content) - 8 - length


def _make_dict_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name twice")
    return found


def _expect_all_numbers(header: Mapping[str, Any], held: int) -> None:
    """Fail where the file ends before the numbers that its header lists; the commonest accident has words."""
    ends = [entry.get("data_offsets") for entry in header.values() if isinstance(entry, dict)]
    end = max((each[-1] for each in ends if isinstance(each, list) and each and type(each[-1]) is int), default=0)
    if end > held:
        seen = f"the file holds {held:,} bytes of numbers, and its header lists {end:,}"
        raise Refused("cut", seen, "all of them", _SAVE)


def _read_tensors(content: bytes) -> dict[str, Tensor]:
    """The tensors by name, as safetensors' own reader finds them in the bytes."""
    from safetensors import SafetensorError, deserialize  # not with the limits above, which whoever finds files needs

    try:
        return {name: _make_tensor(name, **entry) for name, entry in deserialize(content)}
    except SafetensorError as error:
        seen = f"safetensors cannot read the file: {quote_first_line(str(error).rpartition('deserializing: ')[2], 120)}"
        raise Refused("header", seen, "a safetensors file", _SAVE) from None


def _make_tensor(name: str, dtype: str, shape: list[int], data: bytearray) -> Tensor:
    import torch

    if dtype not in _DTYPES:
        seen = f"{_quote_name(name)} is of the dtype {quote_first_line(dtype, 20)}"
        raise Refused("dtype", seen, "float32, float16 or bfloat16", "What does `model.float()` do before you save?")
    if len(shape) > _MOST_AXES or not data:
        seen = f"{_quote_name(name)} has {len(shape)} axes and {len(data)} bytes"
        raise Refused("header", seen, f"numbers on at most {_MOST_AXES} axes", _SAVE)
    return torch.frombuffer(bytearray(data), dtype=getattr(torch, _DTYPES[dtype])).reshape(shape).float()


def _parse_description(text: str | bytes) -> Mapping[str, Any]:
    try:
        described = json.loads(text)
    except (ValueError, RecursionError):
        described = None
    if not isinstance(described, dict):
        raise Refused("config", "what the file says about its model is no JSON that can be read", "a config", _SAVE)
    return described


def _quote_name(name: str) -> str:
    return quote_first_line(name, 60)


def make_weights_file(tensors: Mapping[str, Tensor], described: Mapping[str, Any] | None) -> bytes:
    """The bytes of a weights file: float32, with the JSON in the header where there is any."""
    from safetensors.torch import save

    notes = None if described is None else {"vit_course": json.dumps(described)}
    return save({name: tensor.detach().float().contiguous() for name, tensor in tensors.items()}, notes)


VERSION = 1
IMAGE_SIZE, CHANNELS, CLASSES = (32, 32), 3, 10
MOST_OPERATIONS = 3e9
_MOST_DEPTH, _MOST_SIZE = 100, 1 << 20
_LOOK = "What did `save_model` write, and what was changed afterward?"
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


def read_config(file: WeightsFile) -> ViTConfig:
    """The config that stands in a file.

    Raises:
        Refused: there is none, it is of another version, or is none of a model for small color images.
    """
    if file.described is None:
        seen = "the file says nothing about its model, and no JSON file of its name lies beside it"
        raise Refused(
            "no config", seen, "the config of the model", "Which function writes weights and config together?"
        )
    if file.described.get("version") != VERSION:
        raise Refused(
            "config", f"the file is of version {_quote_value(file.described.get('version'))}", str(VERSION), _LOOK
        )
    settings = file.described.get("model")
    if not isinstance(settings, dict):
        raise Refused("config", "the file holds no config of its model", "the fields of its ViTConfig", _LOOK)
    known = {field.name for field in fields(ViTConfig)}
    if strangers := [quote_first_line(name, 40) for name in settings if name not in known]:
        raise Refused("config", f"its config has {join_names(strangers)}, which no ViTConfig has", "a ViTConfig", _LOOK)
    try:
        config = ViTConfig(**{name: _read_config_field(name, value) for name, value in settings.items()})
        sides = (config.height, config.width)
    except (ValueError, TypeError, OverflowError, ArithmeticError) as error:
        raise Refused(
            "config", f"its config is none of a model: {quote_first_line(error)}", "a ViTConfig", _LOOK
        ) from None
    if (sides, config.in_channels, config.num_classes) != (IMAGE_SIZE, CHANNELS, CLASSES):
        seen = f"its model takes {config.in_channels} x {sides[0]} x {sides[1]} images of {config.num_classes} classes"
        look = "Of which data set are image size, channels and classes?"
        raise Refused("config", seen, "one for 3 x 32 x 32 images of 10 classes", look)
    return config


def _read_config_field(name: str, value: Any) -> Any:
    """A field's value, of the kind and within the bounds that it can have."""
    if name == "representation_size" and value is None:
        return None
    if name == "image_size" and isinstance(value, list):
        return tuple(_read_whole_number(name, each) for each in value[:3])
    if name in (*_WHOLE, "image_size"):
        return _read_whole_number(name, value)
    if name in _REAL:
        least, most = _REAL[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise ValueError(f"{name} is {_quote_value(value)}, not a number from {least:g} to {most:g}")
        return float(value)
    if type(value) is not (bool if name == "qkv_bias" else str):
        raise ValueError(f"{name} is {_quote_value(value)}")
    return value


def _read_whole_number(name: str, value: Any) -> int:
    most = _MOST_DEPTH if name == "depth" else _MOST_SIZE
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{name} is {_quote_value(value)}, not a whole number up to {most}")
    return value


def _quote_value(value: Any) -> str:
    return quote_first_line(
        repr(value)[:60] if isinstance(value, int | float | str | None) else type(value).__name__, 40
    )


def list_state_shapes(config: ViTConfig) -> dict[str, tuple[int, ...]]:
    """Name → shape of all that the state dict of a VisionTransformer of ``config`` holds."""
    shapes = list_parameter_shapes(config)
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


def count_numbers_in_state(config: ViTConfig) -> int:
    """Return how many numbers the state dict of a VisionTransformer of ``config`` holds."""
    return sum(map(math.prod, list_state_shapes(config).values()))


def expect_affordable_model(config: ViTConfig) -> None:
    """Refused unless a model of ``config`` is as small as it may be, and as fast as it has to be."""
    dim, hidden = config.embed_dim, config.hidden_dim
    blocks = config.depth * (4 * dim + 2 * hidden) * dim  # without listing them: a depth may be anything here
    others = dim * (config.num_tokens + config.patch_size**2 * config.in_channels + (config.representation_size or 0))
    count = blocks + others if max(blocks, others) > MOST_PARAMETERS else count_numbers_in_state(config)
    if count > MOST_PARAMETERS:
        look = "Which size costs the most parameters?"
        raise Refused("size", f"its model has {count:,} parameters", f"{MOST_PARAMETERS:,} at most", look)
    if (operations := operations_of(config)) > MOST_OPERATIONS:
        seen = f"one image takes its model about {operations / 1e9:.1f} billion operations"
        look = "How many tokens does an image become, and how long is each?"
        raise Refused("size", seen, f"{MOST_OPERATIONS / 1e9:g} billion at most, so that it can be measured", look)


def expect_tensors_fit_config(tensors: Mapping[str, Tensor], config: ViTConfig) -> None:
    """Refused unless the tensors have the names and the shapes that ``config`` asks for."""
    wanted = list_state_shapes(config)
    for name in wanted:
        if name not in tensors:
            raise Refused("names", f"the file holds no `{name}`", f"`{name}` {format_shape(wanted[name])}", _LOOK)
        if tuple(tensors[name].shape) != wanted[name]:
            seen = f"`{name}` has the shape {format_shape(tensors[name])}"
            raise Refused("names", seen, f"{format_shape(wanted[name])}, as its config says", _LOOK)
    if strangers := [quote_first_line(name, 60) for name in tensors if name not in wanted]:
        raise Refused(
            "names",
            f"the file holds {join_names(strangers)}, which its model has not",
            "the model's alone",
            _LOOK,
        )


def expect_finite_numbers(tensors: Mapping[str, Tensor]) -> None:
    """Refused when a number is NaN or infinite."""
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            kind = "NaN (not a number)" if tensor.isnan().any() else "infinity"
            look = "What did the loss say when the weights became so?"
            raise Refused("finite", f"{quote_first_line(name, 60)} holds {kind}", "finite numbers everywhere", look)


def check_and_make_model(file: WeightsFile) -> SavedModel:
    """The model in a file, all of it checked.

    Raises:
        Refused: with the first thing that is wrong.
    """
    config = read_config(file)
    expect_affordable_model(config)
    expect_tensors_fit_config(file.tensors, config)
    expect_finite_numbers(file.tensors)
    data = file.described.get("data") if file.described else None
    return SavedModel(config, file.tensors, *(_read_channel_statistics(data, name) for name in ("mean", "std")))


def _read_channel_statistics(data: object, name: str) -> tuple[float, ...]:
    numbers_read = data.get(name) if isinstance(data, dict) else None
    numbers = numbers_read if isinstance(numbers_read, list) and len(numbers_read) == CHANNELS else []
    if not numbers or not all(type(each) in (int, float) and abs(each) < 1e6 for each in numbers):
        raise Refused("data", f"the file gives no {name} for each of the {CHANNELS} channels", "three numbers", _LOOK)
    if name == "std" and min(numbers) < 1e-6:
        raise Refused(
            "data", "the file gives a standard deviation that is not a positive number", "three numbers", _LOOK
        )
    return tuple(map(float, numbers))
