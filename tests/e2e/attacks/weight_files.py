"""Attacks by the file that is handed in for ``vit_cifar``: each wants points, time, memory, or to be unpickled."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tests.outline import POINTS
from vit_course.config import ViTConfig
from vit_course.exercises.l07_experiments.model_accuracy import CONFIG, vit_cifar
from vit_course.exercises.l07_experiments.vit_cifar.claims import describe_model
from vit_course.exercises.l07_experiments.weights_file import list_state_shapes, make_weights_file

FILE = "vit_cifar.safetensors"
EVERYTHING = POINTS["07_experiments"]["vit_cifar"]
LOADS = EVERYTHING / 8  # the share of the first claim


@dataclass(frozen=True)
class FileAttack:
    """A hostile weights file.

    Attributes: ``name``, ``aim``, ``build`` (fills the student's folder, in which the notebook lies already) and
    ``honest``, the points that it deserves.
    """

    name: str
    aim: str
    build: Callable[[Path], None]
    honest: float = 0.0


def _right() -> bytes:
    content = vit_cifar()[0]
    assert isinstance(content, bytes)
    return content


def _taken_apart() -> tuple[dict[str, Any], bytes]:
    """Header and numbers of a right file."""
    content = _right()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def _put_together(header: Mapping[str, Any] | bytes, numbers: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + numbers


def _bytes(content: bytes | Callable[[], bytes]) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        (folder / FILE).write_bytes(content if isinstance(content, bytes) else content())

    return build


def _header(change: Callable[[dict[str, Any], bytes], tuple[Mapping[str, Any] | bytes, bytes]]) -> Callable[..., None]:
    return _bytes(lambda: _put_together(*change(*_taken_apart())))


def _config(**changes: object) -> Callable[[Path], None]:
    """Right weights, and a config in which something is another thing."""

    def change(header: dict[str, Any], numbers: bytes) -> tuple[Mapping[str, Any], bytes]:
        description = describe_model(CONFIG)
        description["model"] |= changes
        return header | {"__metadata__": {"vit_course": json.dumps(description)}}, numbers

    return _header(change)


def _weights(change: Callable[[str, Tensor], Tensor], config: ViTConfig = CONFIG) -> Callable[[Path], None]:
    """A file whose tensors are others."""

    def content() -> bytes:
        tensors = {name: change(name, torch.zeros(size)) for name, size in list_state_shapes(config).items()}
        return make_weights_file(tensors, describe_model(config))

    return _bytes(content)


def _model(**sizes: Any) -> Callable[[Path], None]:
    """A file that is right about a model of these sizes, as far as its header can be."""

    def content() -> bytes:
        description = describe_model(CONFIG)
        description["model"] = asdict(CONFIG) | sizes
        return _put_together({"__metadata__": {"vit_course": json.dumps(description)}}, b"")

    return _bytes(content)


class _Unpickled:
    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return os.system, ("touch /tmp/attacked",)


def _pickle() -> bytes:
    buffer = io.BytesIO()
    torch.save({"head.weight": _Unpickled()}, buffer)
    return buffer.getvalue()


def _old_pickle() -> bytes:
    buffer = io.BytesIO()
    torch.save({"head.weight": _Unpickled()}, buffer, _use_new_zipfile_serialization=False)
    return buffer.getvalue()


def _bomb() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("archive/data.pkl", b"0" * (200 << 20))
    return buffer.getvalue()


def _share_bytes(header: dict[str, Any], numbers: bytes) -> tuple[Mapping[str, Any], bytes]:
    """Thousands of tensors of a megabyte, all at the same place."""
    place = {"dtype": "F32", "shape": [len(numbers) // 4], "data_offsets": [0, len(numbers) // 4 * 4]}
    return {f"t{number}": place for number in range(8000)}, numbers


def _overlapping(header: dict[str, Any], numbers: bytes) -> tuple[Mapping[str, Any], bytes]:
    header["head.bias"]["data_offsets"] = header["head.weight"]["data_offsets"]
    return header, numbers


def _gigantic_shape(header: dict[str, Any], numbers: bytes) -> tuple[Mapping[str, Any], bytes]:
    header["head.weight"]["shape"] = [1 << 39, 1 << 39, 1 << 39]
    return header, numbers


def _of_nothing(header: dict[str, Any], numbers: bytes) -> tuple[Mapping[str, Any], bytes]:
    empty = {f"e{number}": {"dtype": "F32", "shape": [0, 1 << 39], "data_offsets": [0, 0]} for number in range(9000)}
    return {**empty, **header}, numbers


def _name_with_control_characters(header: dict[str, Any], numbers: bytes) -> tuple[Mapping[str, Any], bytes]:
    header["\x1b[2J<script>\u202e" * 3000] = header.pop("head.bias")
    return header, numbers


def _twice(header: dict[str, Any], numbers: bytes) -> tuple[bytes, bytes]:
    text = json.dumps(header)
    return (text[:-1] + ', "head.bias": ' + json.dumps(header["head.bias"]) + "}").encode(), numbers


def _no_description(folder: Path) -> None:
    header, numbers = _taken_apart()
    del header["__metadata__"]
    (folder / FILE).write_bytes(_put_together(header, numbers))


def _beside(content: bytes) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        _no_description(folder)
        (folder / FILE).with_suffix(".json").write_bytes(content)

    return build


def _linked_description(folder: Path) -> None:
    _no_description(folder)
    (folder / FILE).with_suffix(".json").symlink_to(folder.parents[2] / ".vit_course" / "secret")


def _link_to_classmate(folder: Path) -> None:
    """To a classmate's file, which is right."""
    other = folder.parents[1] / "classmate.safetensors"
    other.write_bytes(_right())
    (folder / FILE).symlink_to(other)


def _sparse(folder: Path) -> None:
    with (folder / FILE).open("wb") as file:
        file.truncate(50 << 30)


def _spoilt(value: float) -> Callable[[Path], None]:
    def change(header: dict[str, Any], numbers: bytes) -> tuple[Mapping[str, Any], bytes]:
        begin, stop = header["norm.weight"]["data_offsets"]
        return header, numbers[:begin] + struct.pack("<f", value) * ((stop - begin) // 4) + numbers[stop:]

    return _header(change)


def _statistics(**changes: object) -> Callable[[Path], None]:
    def change(header: dict[str, Any], numbers: bytes) -> tuple[Mapping[str, Any], bytes]:
        description = describe_model(CONFIG)
        description["data"] |= changes
        return header | {"__metadata__": {"vit_course": json.dumps(description)}}, numbers

    return _header(change)


def _always_one_class(name: str, tensor: Tensor) -> Tensor:
    return torch.arange(10.0) == 7 if name == "head.bias" else torch.ones_like(tensor)


_LARGE = replace(CONFIG, embed_dim=2048, depth=12, num_heads=2)
_SLOW = replace(CONFIG, patch_size=1, embed_dim=64, depth=64)
FILE_ATTACKS = [
    FileAttack("right file", "nothing: it is what the exercise asks for", _bytes(_right), EVERYTHING),
    FileAttack(
        "config beside",
        "nothing: the config lies in a file beside it",
        _beside(json.dumps(describe_model(CONFIG)).encode()),
        EVERYTHING,
    ),
    FileAttack("one class", "a model that says ship, whatever it sees", _weights(_always_one_class), LOADS),
    FileAttack("pickle", "torch.load runs what stands in it", _bytes(_pickle)),
    FileAttack("old pickle", "the same in the older format", _bytes(_old_pickle)),
    FileAttack("zip bomb", "two hundred megabytes in two hundred kilobytes", _bytes(_bomb)),
    FileAttack("cut", "the numbers end before the header says", _bytes(lambda: _right()[:-1])),
    FileAttack("cut in the header", "the header itself ends early", _bytes(lambda: _right()[:40])),
    FileAttack("empty", "an empty file", _bytes(b"")),
    FileAttack(
        "long header", "the header claims a hundred megabytes", _bytes(struct.pack("<Q", 100 << 20) + b"{" * (8 << 20))
    ),
    FileAttack("endless header", "the header claims 2 to the 64 bytes", _bytes(b"\xff" * 8 + b'{"a": 1}')),
    FileAttack("deep header", "the header is nested without end", _bytes(_put_together(b'{"a":' * 170_000, b""))),
    FileAttack(
        "long number", "a size has half a million digits", _bytes(_put_together(b'{"a": ' + b"9" * 500_000 + b"}", b""))
    ),
    FileAttack("shared bytes", "eight thousand tensors lie at the same place", _header(_share_bytes)),
    FileAttack("overlap", "two tensors lie at the same place", _header(_overlapping)),
    FileAttack("gigantic shape", "a shape of 2 to the 117 numbers", _header(_gigantic_shape)),
    FileAttack("tensors of nothing", "nine thousand tensors without a number", _header(_of_nothing)),
    FileAttack("name twice", "a name stands in the header twice", _header(_twice)),
    FileAttack("names that write", "a name is a script, and moves the cursor", _header(_name_with_control_characters)),
    FileAttack("more behind", "something follows the numbers", _bytes(lambda: _right() + b"import os")),
    FileAttack("float64", "the numbers are of another dtype", _bytes(lambda: _right().replace(b'"F32"', b'"F64"'))),
    FileAttack("NaN", "weights that are no numbers", _spoilt(float("nan"))),
    FileAttack("infinity", "weights that are infinite", _spoilt(float("inf"))),
    FileAttack("overflow", "weights whose logits are infinite", _spoilt(3e38)),
    FileAttack("wide config", "the config asks for a million dimensions", _config(embed_dim=1_000_000, num_heads=1)),
    FileAttack("deep config", "the config asks for a million blocks", _config(depth=1_000_000)),
    FileAttack("endless config", "a size in it has a hundred digits", _config(embed_dim=10**100)),
    FileAttack("fine patches", "patches of a pixel on pictures of 512", _config(image_size=512, patch_size=1)),
    FileAttack("negative config", "a size is negative", _config(depth=-1)),
    FileAttack("fractional config", "a size is no whole number", _config(num_heads=2.5)),
    FileAttack("worded config", "a size is a text", _config(embed_dim="16")),
    FileAttack("truth for a size", "a size is true", _config(depth=True)),
    FileAttack("listed config", "a choice is a list", _config(pooling=["mean"])),
    FileAttack("unknown choice", "a choice that there is not", _config(pooling="__import__('os')")),
    FileAttack("unknown field", "a field that there is not", _config(forward="lambda images: labels")),
    FileAttack("NaN in the config", "a ratio that is no number", _config(mlp_ratio=float("nan"))),
    FileAttack("gigantic head", "a head with a million hidden units", _config(representation_size=1 << 20)),
    FileAttack("large model", "a model of six hundred million parameters", _model(**asdict(_LARGE))),
    FileAttack("slow model", "few parameters, and a thousand tokens in 64 blocks", _model(**asdict(_SLOW))),
    FileAttack("no deviation", "pictures are divided by zero", _statistics(std=[0.0, 0.0, 0.0])),
    FileAttack("mean without end", "pictures are shifted by infinity", _statistics(mean=[float("inf")] * 3)),
    FileAttack(
        "another version",
        "the description is of a version that there is not",
        _header(lambda header, numbers: (header | {"__metadata__": {"vit_course": '{"version": 99}'}}, numbers)),
    ),
    FileAttack("no config", "the weights alone", _no_description),
    FileAttack("deep JSON beside", "the file beside it is nested without end", _beside(b"[" * 60_000)),
    FileAttack("large JSON beside", "the file beside it has a hundred megabytes", _beside(b" " * (100 << 20))),
    FileAttack("secret beside", "the file beside it is a link to the grader's secret", _linked_description),
    FileAttack("link", "the file is a link to a classmate's", _link_to_classmate),
    FileAttack("device", "the file is a link to /dev/zero", lambda folder: (folder / FILE).symlink_to("/dev/zero")),
    FileAttack("fifo", "the file is a pipe that nobody writes to", lambda folder: os.mkfifo(folder / FILE)),
    FileAttack("folder", "the file is a folder", lambda folder: (folder / FILE).mkdir()),
    FileAttack("fifty gigabytes", "the file has fifty gigabytes of nothing", _sparse),
]
