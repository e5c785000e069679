"""Tensors and text to disk in one piece, or not at all."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from exercise_kit.files import write


class CheckpointError(ValueError):
    """A checkpoint cannot be read or written; the message says why and what to do."""


class CannotWriteError(CheckpointError):
    """A file cannot be written, for want of room or of rights. Jupyter shows the sentence, and no traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file: whoever reads it, and whenever this process dies, the file is the old one or the new one.

    Raises:
        CannotWriteError: when the disk is full or the folder cannot be written to; the old file is whole.
    """
    try:
        write(path, content)
    except OSError as error:
        kept = "; the file that was there before is whole" if path.is_file() else ""
        raise CannotWriteError(
            f"cannot write {path}, {len(content):,} bytes: {error.strerror}. Make room there, or choose another "
            f"folder{kept}"
        ) from error


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str]) -> None:
    """Write a safetensors file atomically; tensors come from any device.

    Raises:
        CannotWriteError: as for `write_atomically`.
    """
    from safetensors.torch import save

    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    write_atomically(path, save(plain, metadata))


def read_tensors(
    path: Path, advice: str = "copy it again, or save it anew"
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a safetensors file, on the CPU, and its metadata. Nothing is unpickled.

    Args:
        path: of the file.
        advice: what to do about a damaged one, for the message.

    Raises:
        CheckpointError: when there is no such file, it was cut short, or it is no safetensors file.
    """
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise CheckpointError(f"no checkpoint {path}")
    try:
        with safe_open(path, framework="pt") as file:
            names = list(file.keys())
            return {name: file.get_tensor(name) for name in names}, dict(file.metadata() or {})
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{path} {_what_is_wrong(path, f'({error}); {advice}')}") from error


def _what_is_wrong(path: Path, advice: str) -> str:
    content = path.stat().st_size
    with path.open("rb") as file:
        first = file.read(9)
    if first[:2] == b"PK" or first[:1] == b"\x80":
        return (
            "is a pickle of torch.save, which is not loaded since it may run any code; where it was made, save the "
            "model in Python with vit_course.training.save_model"
        )
    if len(first) == 9 and first[8:] == b"{" and struct.unpack("<Q", first[:8])[0] < 100_000_000:
        return f"was cut short or damaged: it has {content} bytes {advice}"
    return f"is no safetensors file {advice}"
