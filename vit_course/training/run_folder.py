"""The folder of a run: what it is, its numbers, its best weights, and its state for going on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from vit_course.training.checkpoints import (
    RUN_KEY,
    CannotWriteError,
    CheckpointError,
    make_header,
    read_tensors,
    save_weights,
    write_atomically,
    write_tensors,
)
from vit_course.training.history import History, RunFolderError
from vit_course.training.settings import TrainingSettings

if TYPE_CHECKING:
    from vit_course.training.checkpoints import DatasetFacts
    from vit_course.training.feeding import Feed

STATE_VERSION = 1
FILES = ("config.json", "metrics.jsonl", "best.safetensors", "last.safetensors")
MAY_DIFFER = {"device", "compile"}  # settings that another machine may need
CANNOT_RESUME = "the run cannot go on without it: begin anew in another folder"


@dataclass(frozen=True)
class RunState:
    """What a run goes on from.

    Attributes:
        tensors: of model, average and optimizers, by name.
        numbers: what belongs to them and is no tensor.
        history: of the epochs done.
    """

    tensors: Mapping[str, Tensor]
    numbers: Mapping[str, Any]
    history: History


class RunFolder:
    """Reads and writes the files of one run; every file is the old one or the new one, whenever the process dies.

    Args:
        path: of the folder; made when it is not there.
        description: what the run is, as `describe_run` tells.
        resume: whether to go on with a run that is there.

    Raises:
        RunFolderError: when the folder holds something and `resume` is not asked for, or holds another run.
        CheckpointError: when the state in it cannot be read.
    """

    def __init__(self, path: Path, description: dict[str, Any], resume: bool) -> None:
        self.path, self.description = path, description
        self.state: RunState | None = None
        self.best: dict[str, Tensor] | None = None
        if path.exists() and not path.is_dir():
            raise RunFolderError(f"{path} is a file; a run needs a folder")
        if not resume and path.is_dir() and any(path.iterdir()):
            raise RunFolderError(f"the run folder {path} exists: go on with it by resume, or choose another folder")
        if resume and (path / "last.safetensors").is_file():
            self.state = self._read_state()
            self.best, _ = read_tensors(path / "best.safetensors", CANNOT_RESUME)

    def begin(self) -> None:
        """Make the folder, describe the run in it, and delete what was written after the saved state."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunFolderError(f"cannot make the run folder {self.path}: {error.strerror}") from error
        for name in FILES:
            for left in self.path.glob(f".{name}.*"):  # of a process that was killed while it wrote
                left.unlink()
        write_atomically(self.path / "config.json", _encode_json(self.description, indent=1))
        rows = [] if self.state is None else self.state.history.rows()
        write_atomically(self.path / "metrics.jsonl", b"".join(map(_encode_json, rows)))

    def add_epoch(self, history: History) -> None:
        """Append the last epoch's numbers to metrics.jsonl."""
        path = self.path / "metrics.jsonl"
        try:
            with path.open("ab") as file:
                file.write(_encode_json(history.rows()[-1]))
        except OSError as error:
            raise CannotWriteError(f"cannot write {path}: {error.strerror}. Make room there") from error

    def save_best(self, model: nn.Module, weights: Mapping[str, Tensor], dataset: DatasetFacts) -> None:
        """Write best.safetensors, a weights file with other weights than the model now has."""
        save_weights(self.path / "best.safetensors", weights, make_header(model, dataset))

    def save_state(self, state: RunState) -> None:
        """Write last.safetensors, from which a killed run goes on."""
        known = {"state_version": STATE_VERSION, "numbers": state.numbers, "history": asdict(state.history)}
        header = {RUN_KEY: json.dumps(self.description | known)}
        write_tensors(self.path / "last.safetensors", state.tensors, header)

    def _read_state(self) -> RunState:
        path = self.path / "last.safetensors"
        tensors, metadata = read_tensors(path, CANNOT_RESUME)
        try:
            header = json.loads(metadata[RUN_KEY])
            version = header["state_version"]
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{path} is no state of a run") from error
        if version != STATE_VERSION:
            raise CheckpointError(f"{path} is of version {version!r}, and this vit_course reads {STATE_VERSION}")
        self._check_same(header)
        try:
            return RunState(tensors, header["numbers"], History(**header["history"]))
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"{path} is no whole state of a run ({error})") from error

    def _check_same(self, header: dict[str, Any]) -> None:
        """Refuse to go on as something else than what was begun."""
        now = json.loads(_encode_json(self.description))
        for part, mine in now.items():
            theirs = header.get(part)
            if not isinstance(mine, dict) or not isinstance(theirs, dict):
                differing = [part] if mine != theirs else []
                mine, theirs = now, header
            else:
                differing = [name for name in mine if mine[name] != theirs.get(name) and name not in MAY_DIFFER]
            if differing:
                name = differing[0]
                raise RunFolderError(
                    f"the run in {self.path} was begun with {part} {name} = {theirs.get(name)!r}, "
                    f"not {mine[name]!r}: go on with the same, or choose another folder"
                )


def describe_run(model: nn.Module, images: Feed, settings: TrainingSettings) -> dict[str, Any]:
    """Return what a run is, for config.json and for going on with it."""
    known = make_header(model, images.about)
    counts = {"train_images": images.num_train, "validation_images": images.num_validation}
    return {"model": known["model"], "data": known["data"] | counts, "settings": asdict(settings)}


def _encode_json(value: object, indent: int | None = None) -> bytes:
    return (json.dumps(value, indent=indent) + "\n").encode()
