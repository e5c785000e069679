"""How good a classifier is: logits and labels in, numbers out; no model, no data set, no picture.

And what one costs: :func:`operations_of` a model, from its config alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_course.config import ViTConfig

__all__ = [
    "Confusion",
    "Metrics",
    "Spread",
    "calibration_error",
    "confusion_matrix",
    "measure",
    "operations_of",
    "paired_interval",
    "spread",
    "top_k",
    "worst_confusions",
]

CALIBRATION_BINS = 15
# what an exponential, an error function or a norm costs for each of its numbers
_COSTLY = 40
# Student's t, two-sided 95 %, by degrees of freedom
_T_95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571}


@dataclass(frozen=True)
class Metrics:
    """What is reported of one set of images; everything but `loss` and `num_images` is in [0, 1].

    Attributes:
        num_images: how many were classified.
        loss: mean cross-entropy in nats.
        top1, top5: share of images whose class is the best guess, or among the best five.
        macro_precision, macro_recall, macro_f1: of each class by itself, then the mean over classes.
        micro_precision, micro_recall, micro_f1: over all images at once. With one label for each image all
            three equal top1; they are here to be seen doing so.
        calibration_error: how far confidence and accuracy lie apart, see `calibration_error`.
    """

    num_images: int
    loss: float
    top1: float
    top5: float
    macro_precision: float
    macro_recall: float
    macro_f1: float
    micro_precision: float
    micro_recall: float
    micro_f1: float
    calibration_error: float


@dataclass(frozen=True)
class Confusion:
    """Images of class `label` that were taken for class `guess`.

    Attributes:
        label, guess: indices of classes.
        count: how many images.
        share: count divided by the number of images of class `label`.
        images: their indices, the most confident mistake first.
    """

    label: int
    guess: int
    count: int
    share: float
    images: tuple[int, ...]


@dataclass(frozen=True)
class Spread:
    """A mean over seeds and the sample standard deviation, which is None for a single seed."""

    mean: float
    deviation: float | None
    count: int


def measure(logits: Tensor, labels: Tensor) -> Metrics:
    """All metrics at once.

    Args:
        logits: (num_images, num_classes), any float dtype and device.
        labels: (num_images,) int64.

    Raises:
        ValueError: when the shapes do not fit together, there is no image, or a logit is not a number.
        ImportError: when scikit-learn is missing.
    """
    from sklearn.metrics import precision_recall_fscore_support

    logits, labels = _check_inputs(logits, labels)
    guesses = logits.argmax(dim=-1)
    classes = range(logits.shape[1])
    averaged = {
        average: precision_recall_fscore_support(
            labels.numpy(), guesses.numpy(), labels=classes, average=average, zero_division=0.0
        )
        for average in ("macro", "micro")
    }
    return Metrics(
        num_images=len(labels),
        loss=F.cross_entropy(logits, labels).item(),
        top1=top_k(logits, labels, 1),
        top5=top_k(logits, labels, 5),
        **{
            f"{average}_{name}": float(value)
            for average, values in averaged.items()
            for name, value in zip(("precision", "recall", "f1"), values[:3], strict=True)
        },
        calibration_error=calibration_error(logits.softmax(dim=-1), labels),
    )


def top_k(logits: Tensor, labels: Tensor, k: int) -> float:
    """Share of images whose class is among the `k` largest logits; with k or fewer classes it is 1.

    Args:
        logits: (num_images, num_classes).
        labels: (num_images,) int64.
    """
    best = logits.topk(min(k, logits.shape[1]), dim=-1).indices  # (num_images, k)
    return (best == labels[:, None]).any(dim=-1).double().mean().item()


def calibration_error(probabilities: Tensor, labels: Tensor, bins: int = CALIBRATION_BINS) -> float:
    """Expected calibration error: images sorted into bins by confidence, |accuracy - confidence| averaged.

    Each bin counts by its number of images. A model that is right in 80 % of the cases in which it is 80 %
    sure has an error of 0.

    Args:
        probabilities: (num_images, num_classes), each row summing to 1.
        labels: (num_images,) int64.
        bins: of equal width over [0, 1].

    Source: Guo et al. 2017, "On Calibration of Modern Neural Networks", equation 3.
    """
    confidence, guesses = probabilities.double().max(dim=-1)
    excess = (guesses == labels).double() - confidence  # accuracy - confidence, summed over a bin below
    number = (confidence * bins).ceil().long().clamp(1, bins) - 1  # bins are open below and closed above
    sums = torch.zeros(bins, dtype=torch.float64, device=excess.device).index_add_(0, number, excess)
    return sums.abs().sum().item() / len(labels)


def confusion_matrix(labels: Tensor, guesses: Tensor, num_classes: int) -> Tensor:
    """Count how often class `row` was taken for class `column`: (num_classes, num_classes) int64.

    Args:
        labels, guesses: (num_images,) int64, below num_classes.
    """
    pairs = (labels * num_classes + guesses).cpu()  # every pair a number of its own
    return torch.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)


def worst_confusions(logits: Tensor, labels: Tensor, count: int) -> list[Confusion]:
    """The pairs (class, what it is taken for) that make the largest share of their class, worst first.

    Args:
        logits: (num_images, num_classes).
        labels: (num_images,) int64.
        count: the most pairs wanted; there are fewer when fewer kinds of mistake were made.
    """
    logits, labels = _check_inputs(logits, labels)
    confidence, guesses = logits.softmax(dim=-1).max(dim=-1)
    of_class = torch.bincount(labels, minlength=logits.shape[1])
    wrong = (guesses != labels).nonzero().flatten()
    wrong = wrong[confidence[wrong].argsort(descending=True)]
    pairs: dict[tuple[int, int], list[int]] = {}
    for image in wrong.tolist():
        pairs.setdefault((int(labels[image]), int(guesses[image])), []).append(image)
    found = [
        Confusion(label, guess, len(images), len(images) / int(of_class[label]), tuple(images))
        for (label, guess), images in pairs.items()
    ]
    return sorted(found, key=lambda pair: (-pair.share, -pair.count, pair.label, pair.guess))[:count]


def spread(values: Sequence[float]) -> Spread:
    """Mean and sample standard deviation of one number per seed.

    Raises:
        ValueError: for no value at all.
    """
    if not values:
        raise ValueError("a mean over no seed at all")
    return Spread(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None, len(values))


def _check_inputs(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Logits as float32 and labels, both on the CPU."""
    if logits.ndim != 2 or labels.shape != logits.shape[:1]:
        raise ValueError(
            f"logits must be (num_images, num_classes) and labels (num_images,), not {tuple(logits.shape)} "
            f"and {tuple(labels.shape)}"
        )
    if not len(labels):
        raise ValueError("there is no image to measure on")
    logits, labels = logits.detach().float().cpu(), labels.cpu()
    if logits.isnan().any():
        raise ValueError(f"{int(logits.isnan().any(dim=-1).sum())} of {len(labels)} images have a logit that is NaN")
    return logits, labels


def operations_of(config: ViTConfig) -> float:
    """About how many floating-point operations one image costs: two for each product, more for softmax and GELU."""
    dim, hidden, tokens = config.embed_dim, config.hidden_dim, config.num_tokens
    products = (4 * dim + 2 * hidden) * dim + 2 * tokens * dim
    others = _COSTLY * (tokens * config.num_heads + hidden + 4 * dim)
    patches = config.in_channels * config.height * config.width * dim
    return float(config.depth * tokens * (2 * products + others) + 2 * patches)


def paired_interval(accuracies: Sequence[float], baseline: Sequence[float]) -> tuple[float, float]:
    """The mean of paired differences, and half the width of its 95 % t interval (Student 1908).

    Args:
        accuracies: of one way to train, a number for each seed.
        baseline: of another one, for the same seeds.

    Raises:
        ValueError: for fewer than 2 seeds, more than 6, or not as many of both.
    """
    if len(accuracies) != len(baseline) or len(baseline) - 1 not in _T_95:
        raise ValueError(f"there are {len(accuracies)} and {len(baseline)} numbers; both must be 2 to 6, and as many")
    differences = [one - other for one, other in zip(accuracies, baseline, strict=True)]
    count = len(differences)
    return statistics.fmean(differences), _T_95[count - 1] * statistics.stdev(differences) / count**0.5
