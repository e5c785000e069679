"""The weights file: one safetensors file with a model's weights, its sizes, and what its images looked like.

Tensors and text reach the disk in one piece, or not at all.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from exercise_kit.files import write
from vit_course.config import ViTConfig

VERSION = 1
KEY = "vit_course"
RUN_KEY = "vit_course_run"  # of a run's state, see run_folder


class DatasetFacts(Protocol):
    """What is kept of a data set; a `vit_course.data.ImageDataset` has it."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def classes(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def mean(self) -> tuple[float, ...]: ...  # noqa: D102
    @property
    def std(self) -> tuple[float, ...]: ...  # noqa: D102


@dataclass(frozen=True)
class SavedModel:
    """What a weights file holds.

    Attributes:
        model: with the saved weights, on the CPU, in eval mode.
        config: its sizes.
        dataset_name: what it was trained on.
        classes: the name of each class.
        mean, std: one number per channel; images must be normalized with them.
    """

    model: nn.Module
    config: ViTConfig
    dataset_name: str
    classes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def normalize(self, images: Tensor) -> Tensor:
        """Images (batch, channels, height, width), floats in [0, 1], on the scale that the model was trained with."""
        mean, std = (torch.tensor(each, device=images.device)[:, None, None] for each in (self.mean, self.std))
        return (images - mean) / std


def save_model(path: Path | str, model: nn.Module, dataset: DatasetFacts) -> None:
    """Write a weights file, in one piece or not at all.

    Args:
        path: of the file; its folder exists.
        model: its weights are saved under their `state_dict` names, and the sizes that `model.config` holds.
        dataset: what it was trained on: name, classes and statistics are saved.

    Raises:
        CheckpointError: when the file cannot be written.
    """
    save_weights(Path(path), model.state_dict(), make_header(model, dataset))


def save_weights(path: Path, weights: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
    """Write a weights file from its parts, as `save_model` does."""
    write_tensors(path, weights, {KEY: json.dumps(header)})


def make_header(model: nn.Module, dataset: DatasetFacts) -> dict[str, Any]:
    """Return what a weights file's header says; "model" is None for a model without a `ViTConfig`."""
    config = getattr(model, "config", None)
    data = {"name": dataset.name, "classes": dataset.classes, "mean": dataset.mean, "std": dataset.std}
    return {"version": VERSION, "model": asdict(config) if isinstance(config, ViTConfig) else None, "data": data}


def load_model(path: Path | str, build: Callable[[ViTConfig], nn.Module] | None = None) -> SavedModel:
    """Read a weights file; nothing in it is unpickled or run.

    Args:
        path: of the file. Where it has no header, `<stem>.json` beside it is read, which holds the same JSON.
        build: makes the model of these sizes; None for a `VisionTransformer`.

    Raises:
        CheckpointError: when a file is missing, cut short, of another version, or does not fit its own config.
    """
    path = Path(path)
    weights, metadata = read_tensors(path)
    header = _read_header(path, metadata)
    config = _read_config(path, header)
    data = _read_dataset_facts(path, header, config.in_channels)
    if config.depth > len(weights):  # before as many blocks are built
        raise CheckpointError(f"{path} describes {config.depth} blocks and holds {len(weights)} weights")
    with torch.random.fork_rng(devices=[]):
        model = (build or _build_without_memory)(config)
    wanted = model.state_dict()
    check_weights_fit(path, weights, wanted)
    model.load_state_dict({name: weights[name].to(tensor.dtype) for name, tensor in wanted.items()}, assign=True)
    return SavedModel(model.eval(), config, *data)


def _build_without_memory(config: ViTConfig) -> nn.Module:
    """A model of shapes alone, so that a config of absurd sizes costs no memory; its numbers come from the file."""
    from vit_course.vit import VisionTransformer  # which a grader's worker keeps from students who build one

    with torch.device("meta"):
        return VisionTransformer(config)


def _read_header(path: Path, metadata: dict[str, str]) -> dict[str, Any]:
    """The JSON that describes the weights, of a version that we know."""
    beside = path.with_suffix(".json")
    if RUN_KEY in metadata:
        raise CheckpointError(
            f"{path} is the state of a run, for going on with it; its weights file is best.safetensors"
        )
    if KEY not in metadata and not beside.is_file():
        raise CheckpointError(f"{path} does not say which model it holds, and there is no {beside.name} beside it")
    try:
        header = json.loads(metadata[KEY] if KEY in metadata else beside.read_text("utf-8"))
    except ValueError as error:
        raise CheckpointError(f"the description of {path} is no JSON ({error}); save the model again") from error
    version = header.get("version") if isinstance(header, dict) else None
    if version != VERSION:
        raise CheckpointError(f"{path} is of version {version!r}, and this vit_course reads version {VERSION}")
    return header


def _read_config(path: Path, header: dict[str, Any]) -> ViTConfig:
    fields = header.get("model")
    if not isinstance(fields, dict):
        raise CheckpointError(
            f"{path} holds the weights of a model that has no ViTConfig: build it and load them there"
        )
    if isinstance(fields.get("image_size"), list):
        fields = fields | {"image_size": tuple(fields["image_size"])}
    try:
        return ViTConfig(**fields)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path} describes a model that cannot be: {error}") from error


def _read_dataset_facts(
    path: Path, header: dict[str, Any], channels: int
) -> tuple[str, tuple[str, ...], tuple[float, ...], tuple[float, ...]]:
    try:
        data = header["data"]
        mean, std = (tuple(float(number) for number in data[name]) for name in ("mean", "std"))
        if not len(mean) == len(std) == channels or not all(map(math.isfinite, mean + std)) or min(std) <= 0:
            raise ValueError(f"mean {mean} and std {std} of {channels} channels")
        return str(data["name"]), tuple(str(name) for name in data["classes"]), mean, std
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} does not say what images it was trained on ({error!r})") from error


def check_weights_fit(path: Path, found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    """Say in words what `load_state_dict` would say in a list of names.

    Raises:
        CheckpointError: when weights are missing, left over or of another shape.
    """
    wrong = [f"lacks {name}" for name in wanted if name not in found]
    wrong += [f"holds {name}, which that model has not" for name in found if name not in wanted]
    wrong += [
        f"{name} is {tuple(found[name].shape)} and not {tuple(tensor.shape)}"
        for name, tensor in wanted.items()
        if name in found and found[name].shape != tensor.shape
    ]
    if wrong:
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise CheckpointError(f"the weights in {path} do not fit the model that it describes: {wrong[0]}{more}")


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
        raise CheckpointError(f"{path} {_describe_unreadable_file(path, f'({error}); {advice}')}") from error


def _describe_unreadable_file(path: Path, advice: str) -> str:
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
