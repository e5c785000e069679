"""What the checks of both loops share, the one that trains and the one that measures.

The small model and its losses as textbooks write them, in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.compare import are_close, describe_kind
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure, Undecided

Weights = dict[str, Tensor]
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Setting:
    """What a loop is given: ``weights`` of a small model and ``batches`` (images, labels)."""

    weights: Weights
    batches: list[tuple[Tensor, Tensor]]

    @property
    def batch_sizes(self) -> list[int]:
        """How many images each batch has."""
        return [len(labels) for _, labels in self.batches]


def draw_batch_sizes(probe: Probe) -> tuple[int, ...]:
    """Return how many images each batch has, the last one not full."""
    full, rest = probe.choice((5, 6, 7)), probe.choice((2, 3, 4))
    return (full, full, full, rest) if probe.is_secret else (6, 6, 2)


def draw_setting(probe: Probe, sizes: Sequence[int] = ()) -> Setting:
    """Random weights, and batches whose losses are far from each other, the last one's the largest."""
    channels, height, width, classes = probe.sizes(4, low=3, high=7, shown=(3, 4, 2, 5))
    features = channels * height * width
    weights = probe.weights({"classifier.weight": (classes, features), "classifier.bias": (classes,)})
    weights["dropout.keep"] = 2.0 * (probe.uniform(features) < 0.5)
    weights["dropout.keep"][:2] = torch.tensor([0.0, 2.0])
    batches = []
    for number, size in enumerate(sizes or draw_batch_sizes(probe)):
        images = (1 + number) * probe.images(size, channels, height, width)
        batches.append((images, probe.integers(size, high=classes)))
    return Setting(weights, batches)


def logits_of(weights: Weights, images: Tensor, training: bool) -> Tensor:
    """The small model's output, (batch, classes) float64."""
    return features_of(weights, images, training) @ weights["classifier.weight"].double().T + weights["classifier.bias"]


def features_of(weights: Weights, images: Tensor, training: bool) -> Tensor:
    """Return what its classifier reads, (batch, features) float64."""
    return images.double().flatten(1) * (weights["dropout.keep"] if training else 1.0)


def losses_of(logits: Tensor, labels: Tensor) -> Tensor:
    """The cross-entropy of each image, (batch,)."""
    return logits.logsumexp(-1) - logits.gather(1, labels[:, None]).squeeze(1)


def expect_batches_on_device(student: Student, given: Setting, learning_rate: float | None = None) -> None:
    """Fail when a loop leaves images or labels of its batches on the CPU, with a model that is elsewhere.

    Args:
        student: whose loop it is.
        given: what the loop is given.
        learning_rate: of the SGD; None for a loop that gets no optimizer.

    Raises:
        Failure: with what was left behind.
        Undecided: the loop reads numbers before it runs the model.
    """
    fields = {"weights": given.weights, "batches": given.batches, "learning_rate": learning_rate}
    notes = student.run_fixture("elsewhere", **fields)
    left_behind, mixed = "cpu" in notes["images"], bool(notes["mixed"])
    student.note_instead(("elsewhere", left_behind, mixed))
    if not notes["images"] and not mixed:
        if notes["read"] is True:
            raise Undecided("numbers are read before the model is run, so only a GPU could show where it computes")
        seen = "with the model on another device, the model was not run"
        raise Failure(seen, "the same as on the CPU", "Which line asks on which device the model is?")
    if left_behind or mixed:
        what = "the model was shown images" if left_behind else "some numbers of the batch were used"
        look = "What is the argument `device` for, and which tensors of a batch have to go there?"
        seen = f"with the model on another device, {what} that were still on the CPU, as on a GPU they would be"
        raise Failure(seen, "images and labels on the device of the model", look)


def expect_one_number(returned: Any, name: str, wanted: str) -> float:
    """A returned number, as a float or in a tensor; Failure when it is something else."""
    if isinstance(returned, Tensor) and returned.numel() == 1 and returned.dtype != torch.bool:
        return float(returned.detach())
    if isinstance(returned, Real) and not isinstance(returned, bool):
        return float(returned)
    look = "Does every path end in a `return`?" if returned is None else "What does your `return` line give back?"
    raise Failure(f"{name} {describe_kind(returned)}", wanted, look)


def expect_right_number(student: Student, found: float, right: float, name: str, look: str) -> None:
    """Fail unless two numbers are alike; ``found`` goes on record."""
    student.note(torch.tensor(found))
    if not are_close(torch.tensor(found), torch.tensor(right)):
        raise Failure(f"{name} {found:.4f}", f"{right:.4f}", look)
