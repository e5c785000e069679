"""Runs that die at a chosen moment, each in a process of its own: forked from this one, which has torch loaded.

python killed_runs.py FOLDER      prints one JSON object
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch._dynamo
from safetensors import safe_open

from vit_course.config import ViTConfig
from vit_course.data import Augmentation, shapes, train_validation_split
from vit_course.training import CheckpointError, TrainingSettings, fit, load_model, trainer, updates
from vit_course.vit import VisionTransformer

SETTINGS = TrainingSettings(
    epochs=3,
    batch_size=16,
    learning_rate=4e-3,
    muon_learning_rate=0.02,
    label_smoothing=0.1,
    augmentation=Augmentation(max_shift=1, flip=True, mixup=0.2),
    ema_decay=0.9,
)
STEPS = 5 * SETTINGS.epochs


def train(folder: Path, resume: bool = True) -> dict[str, object]:
    torch.manual_seed(0)
    model = VisionTransformer(ViTConfig(8, 4, embed_dim=16, depth=2, num_heads=2, mlp_dropout=0.1))
    training, validation = train_validation_split(shapes(100, image_size=8), 30)
    history = fit(model, training, validation, SETTINGS, folder=folder, resume=resume, trackers=())
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return {
        "weights": compute_digest(model),
        "losses": history.validation_loss,
        "epochs": [json.loads(line)["epoch"] for line in lines],
        "best": compute_digest(load_model(folder / "best.safetensors").model),
    }


def compute_digest(model: torch.nn.Module) -> str:
    return hashlib.sha256(b"".join(tensor.numpy().tobytes() for tensor in model.state_dict().values())).hexdigest()


def run_in_child_process(action: Callable[[], object]) -> object:
    """Return what `action` returns, or the signal that ended the process that it ran in."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            os.write(writing, json.dumps(action()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    status = os.waitpid(child, 0)[1]
    return json.loads(answer) if answer else {"signal": os.WTERMSIG(status)}


def train_and_get_signal(number: signal.Signals, step: int, folder: Path) -> dict[str, object]:
    """Train, and get this signal in the given step of the run, counted from 1."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    whole = updates.Updates.differentiate_and_update

    def apply_or_send_signal(self: updates.Updates, loss: torch.Tensor) -> None:
        if self.steps == step:
            os.kill(os.getpid(), number)
        whole(self, loss)

    updates.Updates.differentiate_and_update = apply_or_send_signal
    return train(folder)


def die_at(step: int, folder: Path) -> None:
    """Train, and be killed in the given step."""
    train_and_get_signal(signal.SIGKILL, step, folder)


def die_while_writing(call: str, count: int, folder: Path) -> None:
    """Train, and be killed just before the given call of os.fsync or os.replace, counted from 1."""
    whole, left = getattr(os, call), [count]

    def call_or_die(*arguments: object) -> object:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(*arguments)

    setattr(os, call, call_or_die)
    train(folder)


def count_epochs_kept_when_interrupted(folder: Path) -> int:
    """Train with epochs too short for a checkpoint each, get Ctrl-C's signal, and tell how many epochs were kept."""
    trainer.WRITE_EVERY = 60.0
    train_and_get_signal(signal.SIGINT, 12, folder)
    with safe_open(folder / "last.safetensors", "pt") as file:
        return len(json.loads(file.metadata()["vit_course_run"])["history"]["seconds"])


def train_on_full_disk(folder: Path) -> dict[str, object]:
    """Train where no file may grow over 10 kB, after a first epoch where one might."""
    try:
        run_in_child_process(lambda: die_at(8, folder))
        before = (folder / "last.safetensors").read_bytes()
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
        train(folder)
    except CheckpointError as error:
        whole = (folder / "last.safetensors").read_bytes() == before
        return {"message": str(error), "whole": whole, "files": sorted(os.listdir(folder))}
    return {}


def die_between_checkpoints(step: int, folder: Path) -> None:
    """Train with epochs that are too short for a checkpoint each, and be killed."""
    trainer.WRITE_EVERY = 60.0
    die_at(step, folder)


def main(folder: Path) -> None:
    trainer.WRITE_EVERY = 0.0
    torch.set_num_threads(1)
    draw = random.Random(0)
    results: dict[str, object] = {"whole": run_in_child_process(lambda: train(folder / "whole", resume=False))}
    steps = sorted(draw.sample(range(1, STEPS + 1), 3))
    died = [run_in_child_process(lambda step=step: die_at(step, folder / "steps")) for step in steps]
    results["steps"] = {"at": steps, "died": died, "then": run_in_child_process(lambda: train(folder / "steps"))}
    moments = [("fsync", 3), ("replace", 4), ("replace", 5), ("fsync", 6)]
    died = [
        run_in_child_process(lambda call=call, n=n: die_while_writing(call, n, folder / "writing"))
        for call, n in moments
    ]
    results["writing"] = {"died": died, "then": run_in_child_process(lambda: train(folder / "writing"))}
    died = [run_in_child_process(lambda: die_between_checkpoints(13, folder / "frugal"))]
    results["frugal"] = {"died": died, "then": run_in_child_process(lambda: train(folder / "frugal"))}
    results["interrupted"] = run_in_child_process(
        lambda: train_and_get_signal(signal.SIGINT, 12, folder / "interrupted")
    )
    results["interrupted, then"] = run_in_child_process(lambda: train(folder / "interrupted"))
    results["kept"] = run_in_child_process(lambda: count_epochs_kept_when_interrupted(folder / "kept"))
    results["kept, then"] = run_in_child_process(lambda: train(folder / "kept"))
    results["no room"] = run_in_child_process(lambda: train_on_full_disk(folder / "room"))
    print(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
