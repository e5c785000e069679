"""One run, alone or as one of several processes: writes what came out as JSON.

torchrun --nproc-per-node 2 shared_run.py FILE

Beside FILE, one named .threads then says which threads are left when Python ends.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

import torch

from vit_course.config import ViTConfig
from vit_course.data import Augmentation, shapes, train_validation_split
from vit_course.training import TrainingSettings, fit
from vit_course.training.hardware import is_main_process
from vit_course.vit import VisionTransformer


def train(file: Path) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = VisionTransformer(ViTConfig(8, 4, embed_dim=16, depth=2, num_heads=2))
    # 49 images to learn from: the last batch has one, so that the second process has none; and 31 to measure on
    training, validation = train_validation_split(shapes(80, image_size=8), 31)
    settings = TrainingSettings(
        epochs=3,
        batch_size=16,
        learning_rate=4e-3,
        muon_learning_rate=0.02,
        ema_decay=0.5,
        augmentation=Augmentation(max_shift=1, mixup=0.2),
    )
    history = fit(model, training, validation, settings, folder=file.with_suffix(".run"), trackers=())
    result = asdict(history) | {"weights": model.head.weight.flatten().tolist()}
    again = fit(model, training, validation, settings)  # the processes are still together
    result["again"] = again.validation_loss
    if is_main_process():
        file.write_text(json.dumps(result))


def write_threads(file: Path) -> None:
    names = []
    for path in sorted(Path("/proc/self/task").glob("*/comm")):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread may end after it was listed
            names.append(path.read_text())
    file.write_text("".join(names))


if __name__ == "__main__":
    if is_main_process():
        atexit.register(write_threads, Path(sys.argv[1]).with_suffix(".threads"))  # the first of all, so it runs last
    train(Path(sys.argv[1]))
