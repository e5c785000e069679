"""A weights file that somebody handed in, read as bytes that may be anything: safetensors, and no pickle ever.

The file is one header, JSON, and the numbers behind it. What it says of itself is checked before it is used: names,
dtypes, places and sizes in the header, and every field of the model's config, so that a small file cannot ask for
much memory or much time.

Source of the format: safetensors' own description, format version 0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from exercise_kit.engine.compare import quoted
from exercise_kit.engine.course import MOST_BYTES
from exercise_kit.engine.verdict import Failure

if TYPE_CHECKING:
    from torch import Tensor

MOST_PARAMETERS = 10_000_000
_MOST_HEADER = 1 << 20
_DTYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_BYTES = {"F32": 4, "F16": 2, "BF16": 2}
_SAVE = "Is it what `save_model` wrote, whole and under this name?"
# name, first byte, the byte behind the last, shape, dtype
_Place = tuple[str, int, int, tuple[int, ...], str]
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

    Attributes: ``tensors`` by name, float32; ``described``, the JSON that tells of model and data, None where there is
    none.
    """

    tensors: Mapping[str, Tensor]
    described: Mapping[str, Any] | None


def read_weights(content: bytes | str, beside: bytes | None = None) -> WeightsFile:
    """Take a weights file apart.

    Args:
        content: of the file; a text says why there is none.
        beside: of the JSON file beside it, which counts where the header tells nothing of model and data.

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
    header, start = _header(content)
    notes = header.pop("__metadata__", None)
    told = notes.get("vit_course") if isinstance(notes, dict) else None
    tensors = _tensors(header, content, start)
    text = told if isinstance(told, str) else beside
    return WeightsFile(tensors, None if text is None else _described(text))


def _header(content: bytes) -> tuple[dict[str, Any], int]:
    """The header, and where the numbers begin."""
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
        header = json.loads(content[8 : 8 + length].decode(), object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError):
        raise Refused("header", "the file's header is no JSON that can be read", "a safetensors file", _SAVE) from None
    if not isinstance(header, dict):
        raise Refused("header", "the file's header tells of no tensors", "a safetensors file", _SAVE)
    return header, 8 + length


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name twice")
    return found


def _tensors(header: Mapping[str, Any], content: bytes, start: int) -> dict[str, Tensor]:
    """The tensors, which lie side by side behind the header, without a gap and to the end of the file."""
    places = sorted((_place(name, told) for name, told in header.items()), key=lambda place: place[1:3])
    end = 0
    for name, begin, stop, *_ in places:
        if begin != end:
            seen = f"in the file {_called(name)} begins at byte {begin} of the numbers, where {end} is next"
            raise Refused("header", seen, "tensors side by side", _SAVE)
        end = stop
    held = len(content) - start
    if end > held:
        seen = f"the file holds {held:,} bytes of numbers, and its header tells of {end:,}"
        raise Refused("cut", seen, "all of them", _SAVE)
    if end < held:
        raise Refused("header", f"{held - end:,} bytes in the file belong to no tensor", "nothing but tensors", _SAVE)
    cut = partial(_tensor, content, start)
    return {name: cut(begin, stop, shape, dtype) for name, begin, stop, shape, dtype in places}


def _place(name: str, told: Any) -> _Place:
    """Name, first and last byte, shape and dtype of a tensor, as the header has them."""
    fields = told if isinstance(told, dict) else {}
    dtype, sizes, offsets = str(fields.get("dtype")), fields.get("shape"), fields.get("data_offsets")
    if dtype not in _DTYPES and isinstance(fields.get("dtype"), str):
        seen = f"{_called(name)} is of the dtype {quoted(dtype, 20)}"
        raise Refused("dtype", seen, "float32, float16 or bfloat16", "What does `model.float()` do before you save?")
    shape, place = _sizes(sizes, 8), _sizes(offsets, 2)
    right = dtype in _DTYPES and len(place) == 2 and (shape or sizes == [])
    if not right or not 0 < math.prod(shape) * _BYTES[dtype] == place[1] - place[0]:
        seen = f"the file's header tells nonsense of {_called(name)}"
        raise Refused("header", seen, "a dtype, a shape, and the place of as many bytes as that needs", _SAVE)
    return name, place[0], place[1], shape, _DTYPES[dtype]


def _sizes(value: Any, most: int) -> tuple[int, ...]:
    """Sizes, none of them beyond any file's; () where it is no list of such."""
    right = isinstance(value, list) and len(value) <= most and all(type(n) is int and 0 <= n < 1 << 40 for n in value)
    return tuple(value) if right else ()


def _tensor(content: bytes, start: int, begin: int, stop: int, shape: tuple[int, ...], dtype: str) -> Tensor:
    import torch  # not with the limits above, which whoever finds files needs

    numbers = bytearray(content[start + begin : start + stop])
    return torch.frombuffer(numbers, dtype=getattr(torch, dtype)).reshape(shape).float()


def _described(text: str | bytes) -> Mapping[str, Any]:
    try:
        described = json.loads(text)
    except (ValueError, RecursionError):
        described = None
    if not isinstance(described, dict):
        raise Refused("config", "what the file tells of its model is no JSON that can be read", "a config", _SAVE)
    return described


def _called(name: str) -> str:
    return quoted(name, 60)


def written(tensors: Mapping[str, Tensor], described: Mapping[str, Any] | None) -> bytes:
    """The bytes of a weights file: float32, with the JSON in the header where there is any."""
    header: dict[str, Any] = {}
    if described is not None:
        header["__metadata__"] = {"vit_course": json.dumps(described)}
    numbers = b""
    for name, tensor in tensors.items():
        data = tensor.detach().float().contiguous().numpy().tobytes()
        places = [len(numbers), len(numbers) + len(data)]
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": places}
        numbers += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + numbers
