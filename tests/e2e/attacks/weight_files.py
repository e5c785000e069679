"""Attacks by the file that is handed in for ``vit_cifar``: each wants points, time, memory, or to be unpickled."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
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


def _read_right_bytes() -> bytes:
    content = vit_cifar()[0]
    assert isinstance(content, bytes)
    return content


def _split_right_file() -> tuple[dict[str, Any], bytes]:
    """Header and numbers of a right file."""
    content = _read_right_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def _join_header_and_numbers(header: Mapping[str, Any] | bytes, numbers: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + numbers


def _make_builder_of_bytes(content: bytes | Callable[[], bytes]) -> Callable[[Path], None]:
    def write_attack(folder: Path) -> None:
        (folder / FILE).write_bytes(content if isinstance(content, bytes) else content())

    return write_attack


def _make_header_attack(
    change: Callable[[dict[str, Any], bytes], tuple[Mapping[str, Any] | bytes, bytes]],
) -> Callable[..., None]:
    return _make_builder_of_bytes(lambda: _join_header_and_numbers(*change(*_split_right_file())))


def _make_description_change(part: str, **changes: object) -> Callable[[Path], None]:
    """Right weights, and a description in which something is another thing."""

    def change_header(header: dict[str, Any], numbers: bytes) -> tuple[Mapping[str, Any], bytes]:
        description = describe_model(CONFIG)
        description[part] |= changes
        return header | {"__metadata__": {"vit_course": json.dumps(description)}}, numbers

    return _make_header_attack(change_header)


_make_config_attack = partial(_make_description_change, "model")
_make_statistics_attack = partial(_make_description_change, "data")


def _make_weights_attack(change: Callable[[str, Tensor], Tensor], config: ViTConfig = CONFIG) -> Callable[[Path], None]:
    """A file whose tensors are others."""

    def build_content() -> bytes:
        tensors = {name: change(name, torch.zeros(size)) for name, size in list_state_shapes(config).items()}
        return make_weights_file(tensors, describe_model(config))

    return _make_builder_of_bytes(build_content)


def _make_header_only_attack(**sizes: Any) -> Callable[[Path], None]:
    """A file that is right about a model of these sizes, as far as its header can be."""

    def build_content() -> bytes:
        description = describe_model(CONFIG)
        description["model"] = asdict(CONFIG) | sizes
        return _join_header_and_numbers({"__metadata__": {"vit_course": json.dumps(description)}}, b"")

    return _make_builder_of_bytes(build_content)


class _Unpickled:
    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return os.system, ("touch /tmp/attacked",)


def _make_pickle(as_zip: bool = True) -> bytes:
    buffer = io.BytesIO()
    torch.save({"head.weight": _Unpickled()}, buffer, _use_new_zipfile_serialization=as_zip)
    return buffer.getvalue()


def _make_zip_bomb() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("archive/data.pkl", b"0" * (200 << 20))
    return buffer.getvalue()


def _put_tensors_at_one_place(header: dict[str, Any], numbers: bytes) -> tuple[Mapping[str, Any], bytes]:
    """Thousands of tensors of a megabyte, all at the same place."""
    place = {"dtype": "F32", "shape": [len(numbers) // 4], "data_offsets": [0, len(numbers) // 4 * 4]}
    return {f"t{number}": place for number in range(8000)}, numbers


def _overlap_two_tensors(header: dict[str, Any], numbers: bytes) -> tuple[Mapping[str, Any], bytes]:
    header["head.bias"]["data_offsets"] = header["head.weight"]["data_offsets"]
    return header, numbers


def _claim_gigantic_shape(header: dict[str, Any], numbers: bytes) -> tuple[Mapping[str, Any], bytes]:
    header["head.weight"]["shape"] = [1 << 39, 1 << 39, 1 << 39]
    return header, numbers


def _add_empty_tensors(header: dict[str, Any], numbers: bytes) -> tuple[Mapping[str, Any], bytes]:
    empty = {f"e{number}": {"dtype": "F32", "shape": [0, 1 << 39], "data_offsets": [0, 0]} for number in range(9000)}
    return {**empty, **header}, numbers


def _rename_with_control_characters(header: dict[str, Any], numbers: bytes) -> tuple[Mapping[str, Any], bytes]:
    header["\x1b[2J<script>\u202e" * 3000] = header.pop("head.bias")
    return header, numbers


def _repeat_name(header: dict[str, Any], numbers: bytes) -> tuple[bytes, bytes]:
    text = json.dumps(header)
    return (text[:-1] + ', "head.bias": ' + json.dumps(header["head.bias"]) + "}").encode(), numbers


def _write_without_description(folder: Path) -> None:
    header, numbers = _split_right_file()
    del header["__metadata__"]
    (folder / FILE).write_bytes(_join_header_and_numbers(header, numbers))


def _make_description_attack(content: bytes) -> Callable[[Path], None]:
    def write_attack(folder: Path) -> None:
        _write_without_description(folder)
        (folder / FILE).with_suffix(".json").write_bytes(content)

    return write_attack


def _link_description_to_secret(folder: Path) -> None:
    _write_without_description(folder)
    (folder / FILE).with_suffix(".json").symlink_to(folder.parents[2] / ".vit_course" / "secret")


def _link_to_classmate(folder: Path) -> None:
    """To a classmate's file, which is right."""
    other = folder.parents[1] / "classmate.safetensors"
    other.write_bytes(_read_right_bytes())
    (folder / FILE).symlink_to(other)


def _write_sparse_file(folder: Path) -> None:
    with (folder / FILE).open("wb") as file:
        file.truncate(50 << 30)


def _make_spoiled_weights_attack(value: float) -> Callable[[Path], None]:
    def change_header(header: dict[str, Any], numbers: bytes) -> tuple[Mapping[str, Any], bytes]:
        begin, stop = header["norm.weight"]["data_offsets"]
        return header, numbers[:begin] + struct.pack("<f", value) * ((stop - begin) // 4) + numbers[stop:]

    return _make_header_attack(change_header)


def _predict_one_class(name: str, tensor: Tensor) -> Tensor:
    return torch.arange(10.0) == 7 if name == "head.bias" else torch.ones_like(tensor)


_LARGE = replace(CONFIG, embed_dim=2048, depth=12, num_heads=2)
_SLOW = replace(CONFIG, patch_size=1, embed_dim=64, depth=64)
FILE_ATTACKS = [
    FileAttack(
        "right file", "nothing: it is what the exercise asks for", _make_builder_of_bytes(_read_right_bytes), EVERYTHING
    ),
    FileAttack(
        "config beside",
        "nothing: the config lies in a file beside it",
        _make_description_attack(json.dumps(describe_model(CONFIG)).encode()),
        EVERYTHING,
    ),
    FileAttack(
        "one class", "a model that says ship, whatever it sees", _make_weights_attack(_predict_one_class), LOADS
    ),
    FileAttack("pickle", "torch.load runs what stands in it", _make_builder_of_bytes(_make_pickle)),
    FileAttack("old pickle", "the same, but no zip", _make_builder_of_bytes(lambda: _make_pickle(as_zip=False))),
    FileAttack("zip bomb", "two hundred megabytes in two hundred kilobytes", _make_builder_of_bytes(_make_zip_bomb)),
    FileAttack(
        "cut", "the numbers end before the header says", _make_builder_of_bytes(lambda: _read_right_bytes()[:-1])
    ),
    FileAttack(
        "cut in the header", "the header itself ends early", _make_builder_of_bytes(lambda: _read_right_bytes()[:40])
    ),
    FileAttack("empty", "an empty file", _make_builder_of_bytes(b"")),
    FileAttack(
        "long header",
        "the header claims a hundred megabytes",
        _make_builder_of_bytes(struct.pack("<Q", 100 << 20) + b"{" * (8 << 20)),
    ),
    FileAttack(
        "endless header", "the header claims 2 to the 64 bytes", _make_builder_of_bytes(b"\xff" * 8 + b'{"a": 1}')
    ),
    FileAttack(
        "deep header",
        "the header is nested without end",
        _make_builder_of_bytes(_join_header_and_numbers(b'{"a":' * 170_000, b"")),
    ),
    FileAttack(
        "long number",
        "a size has half a million digits",
        _make_builder_of_bytes(_join_header_and_numbers(b'{"a": ' + b"9" * 500_000 + b"}", b"")),
    ),
    FileAttack(
        "shared bytes", "eight thousand tensors lie at the same place", _make_header_attack(_put_tensors_at_one_place)
    ),
    FileAttack("overlap", "two tensors lie at the same place", _make_header_attack(_overlap_two_tensors)),
    FileAttack("gigantic shape", "a shape of 2 to the 117 numbers", _make_header_attack(_claim_gigantic_shape)),
    FileAttack("tensors of nothing", "nine thousand tensors without a number", _make_header_attack(_add_empty_tensors)),
    FileAttack("name twice", "a name stands in the header twice", _make_header_attack(_repeat_name)),
    FileAttack(
        "names that write",
        "a name is a script, and moves the cursor",
        _make_header_attack(_rename_with_control_characters),
    ),
    FileAttack(
        "more behind",
        "something follows the numbers",
        _make_builder_of_bytes(lambda: _read_right_bytes() + b"import os"),
    ),
    FileAttack(
        "float64",
        "the numbers are of another dtype",
        _make_builder_of_bytes(lambda: _read_right_bytes().replace(b'"F32"', b'"F64"')),
    ),
    FileAttack("NaN", "weights that are no numbers", _make_spoiled_weights_attack(float("nan"))),
    FileAttack("infinity", "weights that are infinite", _make_spoiled_weights_attack(float("inf"))),
    FileAttack("overflow", "weights whose logits are infinite", _make_spoiled_weights_attack(3e38)),
    FileAttack(
        "wide config", "the config asks for a million dimensions", _make_config_attack(embed_dim=1_000_000, num_heads=1)
    ),
    FileAttack("deep config", "the config asks for a million blocks", _make_config_attack(depth=1_000_000)),
    FileAttack("endless config", "a size in it has a hundred digits", _make_config_attack(embed_dim=10**100)),
    FileAttack(
        "fine patches", "patches of a pixel on pictures of 512", _make_config_attack(image_size=512, patch_size=1)
    ),
    FileAttack("negative config", "a size is negative", _make_config_attack(depth=-1)),
    FileAttack("fractional config", "a size is no whole number", _make_config_attack(num_heads=2.5)),
    FileAttack("worded config", "a size is a text", _make_config_attack(embed_dim="16")),
    FileAttack("truth for a size", "a size is true", _make_config_attack(depth=True)),
    FileAttack("listed config", "a choice is a list", _make_config_attack(pooling=["mean"])),
    FileAttack("unknown choice", "a choice that there is not", _make_config_attack(pooling="__import__('os')")),
    FileAttack("unknown field", "a field that there is not", _make_config_attack(forward="lambda images: labels")),
    FileAttack("NaN in the config", "a ratio that is no number", _make_config_attack(mlp_ratio=float("nan"))),
    FileAttack("gigantic head", "a head with a million hidden units", _make_config_attack(representation_size=1 << 20)),
    FileAttack("large model", "a model of six hundred million parameters", _make_header_only_attack(**asdict(_LARGE))),
    FileAttack(
        "slow model", "few parameters, and a thousand tokens in 64 blocks", _make_header_only_attack(**asdict(_SLOW))
    ),
    FileAttack("no deviation", "pictures are divided by zero", _make_statistics_attack(std=[0.0, 0.0, 0.0])),
    FileAttack(
        "mean without end", "pictures are shifted by infinity", _make_statistics_attack(mean=[float("inf")] * 3)
    ),
    FileAttack(
        "another version",
        "the description is of a version that there is not",
        _make_header_attack(
            lambda header, numbers: (header | {"__metadata__": {"vit_course": '{"version": 99}'}}, numbers)
        ),
    ),
    FileAttack("no config", "the weights alone", _write_without_description),
    FileAttack("deep JSON beside", "the file beside it is nested without end", _make_description_attack(b"[" * 60_000)),
    FileAttack(
        "large JSON beside", "the file beside it has a hundred megabytes", _make_description_attack(b" " * (100 << 20))
    ),
    FileAttack("secret beside", "the file beside it is a link to the grader's secret", _link_description_to_secret),
    FileAttack("link", "the file is a link to a classmate's", _link_to_classmate),
    FileAttack("device", "the file is a link to /dev/zero", lambda folder: (folder / FILE).symlink_to("/dev/zero")),
    FileAttack("fifo", "the file is a pipe that nobody writes to", lambda folder: os.mkfifo(folder / FILE)),
    FileAttack("folder", "the file is a folder", lambda folder: (folder / FILE).mkdir()),
    FileAttack("fifty gigabytes", "the file has fifty gigabytes of nothing", _write_sparse_file),
]
