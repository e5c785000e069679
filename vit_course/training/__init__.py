"""Training: a loop that is short enough to read, and what a run of hours needs around it.

The names below are loaded on demand, so that `import vit_course.training` imports torch and nothing heavier.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vit_course.training.checkpoints import CheckpointError, SavedModel, load_model, save_model
    from vit_course.training.early_stopping import EarlyStopping
    from vit_course.training.fitting import fit
    from vit_course.training.history import History, OutOfMemoryError, RunFolderError, TrainingDivergedError
    from vit_course.training.loop import evaluate, train_one_epoch
    from vit_course.training.muon import Muon
    from vit_course.training.optimizers import build_optimizers, parameter_groups, warmup_cosine
    from vit_course.training.progress import bar, draws_progress
    from vit_course.training.settings import TrainingSettings

_HOME = {
    "checkpoints": ("CheckpointError", "SavedModel", "load_model", "save_model"),
    "early_stopping": ("EarlyStopping",),
    "fitting": ("fit",),
    "history": ("History", "OutOfMemoryError", "RunFolderError", "TrainingDivergedError"),
    "loop": ("evaluate", "train_one_epoch"),
    "muon": ("Muon",),
    "optimizers": ("build_optimizers", "parameter_groups", "warmup_cosine"),
    "progress": ("bar", "draws_progress"),
    "settings": ("TrainingSettings",),
}

__all__ = [
    "CheckpointError",
    "EarlyStopping",
    "History",
    "Muon",
    "OutOfMemoryError",
    "RunFolderError",
    "SavedModel",
    "TrainingDivergedError",
    "TrainingSettings",
    "bar",
    "build_optimizers",
    "draws_progress",
    "evaluate",
    "fit",
    "load_model",
    "parameter_groups",
    "save_model",
    "train_one_epoch",
    "warmup_cosine",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(f"vit_course.training.{module}"), name)
    raise AttributeError(f"module 'vit_course.training' has no attribute {name!r}")
