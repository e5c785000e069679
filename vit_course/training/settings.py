"""How to train: every choice of a run in one frozen dataclass."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, get_args

from vit_course.data import Augmentation

Precision = Literal["auto", "fp32", "bf16", "fp16"]
Schedule = Literal["cosine", "constant"]
Growth = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class TrainingSettings:
    """How to train.

    Attributes:
        epochs: passes through the training images.
        batch_size: images per step, of all processes together; the last step of an epoch may have fewer.
        learning_rate: of AdamW, at its peak.
        muon_learning_rate: of Muon for the matrices inside the blocks, at its peak; None gives them to AdamW.
        weight_decay: of matrices only: norms, biases, positions and the class token are left alone.
        warmup: share of all steps over which the learning rates rise from zero.
        schedule: how the rates go on after the warm-up: in a "cosine" down to zero, or "constant".
        label_smoothing: share of the target spread over all classes, in training only.
        augmentation: what happens to training images.
        growth: (share of the steps, scale of the images) in order: until that share images are shrunk so, see
            `vit_course.training.growing`; () for whole images from the start.
        gradient_clip: largest norm of the gradient; None for no limit.
        ema_decay: measure and keep a moving average of the weights, of which a step replaces the share
            1 - ema_decay; None for the weights themselves.
        patience: stop once the validation loss has not fallen for so many epochs in a row; None for never.
        precision: of the products in the forward and backward pass; on a CPU "bf16" is that of the whole model. Weights
            and optimizer stay in float32.
            "auto" chooses what the device is fastest with, see `vit_course.training.hardware`.
        compile: whether to let torch.compile fuse the model first, which takes a minute or so.
        seed: of the order, the augmentation and dropout. The model's own start is the caller's.
        device: where to train, "cpu", "cuda", or "auto" for CUDA where there is one.

    Raises:
        ValueError: for a number outside its range, a word that is none of the above, or CUDA where there is none.
    """

    epochs: int = 10
    batch_size: int = 128
    learning_rate: float = 1e-3
    muon_learning_rate: float | None = None
    weight_decay: float = 0.05
    warmup: float = 0.1
    schedule: Schedule = "cosine"
    label_smoothing: float = 0.0
    augmentation: Augmentation = field(default_factory=Augmentation)
    growth: Growth = ()
    gradient_clip: float | None = 1.0
    ema_decay: float | None = None
    patience: int | None = None
    precision: Precision = "fp32"
    compile: bool = False
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        for name in ("learning_rate", "muon_learning_rate", "gradient_clip"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be positive, not {value}")
        for name in ("warmup", "label_smoothing", "ema_decay"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < 1:
                raise ValueError(f"{name} must be in [0, 1), not {value}")
        if not self.weight_decay >= 0:
            raise ValueError(f"weight_decay must not be negative, but it is {self.weight_decay}")
        self._check_growth()
        self._check_choices()

    def _check_growth(self) -> None:
        shares = [share for share, _ in self.growth]
        if shares != sorted(shares) or not all(0 < share < 1 and 0 < scale <= 1 for share, scale in self.growth):
            raise ValueError(f"growth has rising shares and scales between 0 and 1, but it is {self.growth}")

    def _check_choices(self) -> None:
        for name, kind in (("precision", Precision), ("schedule", Schedule)):
            if getattr(self, name) not in get_args(kind):
                allowed = ", ".join(map(repr, get_args(kind)))
                raise ValueError(f"{name} must be one of {allowed}, not {getattr(self, name)!r}")
        check_device(self.device)


def check_device(name: str) -> None:
    """Accept "cpu", "cuda", "cuda:0", "cuda:1", ... and "auto", whether there is such a device or not.

    Raises:
        ValueError: for anything else.
    """
    if not re.fullmatch(r"auto|cpu|cuda(:[0-9]{1,2})?", name):
        raise ValueError(f'device must be "cpu", "cuda" or "auto", not {name!r}')
