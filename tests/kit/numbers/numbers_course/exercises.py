"""The exercises: their oracles, public checks and known mistakes."""

import numpy as np
import torch
from torch import nn

from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_value_error
from exercise_kit.engine.in_training import InTraining

LESSON = "00_numbers"
AXES = ("row", "place")


def windows_mean(values, width):
    """The oracle of moving_average, by NumPy."""
    ones = np.ones(width) / width
    return torch.tensor(np.stack([np.convolve(row, ones, "valid") for row in values.double().numpy()])).to(values.dtype)


moving_average = Exercise("moving_average", LESSON, in_training=InTraining.UNSEEN)


@moving_average.check(points=1)
def every_window_has_its_mean(student, probe):
    """Place i holds the mean of the width values that begin at i."""
    for length, width in ((7, 3), probe.sizes(2, low=3, high=9, shown=(9, 4))):
        values = probe.normal(2, length + width)
        expect_equal(student(values, width), windows_mean(values, width), "moving_average", AXES)


@moving_average.check(points=1)
def a_window_that_is_too_wide_is_refused(student, probe):
    """A width above the number of values raises ValueError naming both."""
    rows, places = probe.sizes(2, shown=(2, 5))
    described = f"{places} values and width {places + 2}"
    expect_value_error(student, (probe.normal(rows, places), places + 2), (places, places + 2), described)


@moving_average.misconception("How many windows fit?", "00_numbers, Windows")
def padded_with_zeros(values, width):
    """The values are padded with zeros, so that there are as many means as values."""
    _refuse(values, width)
    padded = torch.cat([torch.zeros(len(values), width - 1).to(values), values], dim=1)
    return windows_mean(padded, width)


@moving_average.misconception("What makes a sum a mean?", "00_numbers, Windows")
def summed_up(values, width):
    """The values of a window are added and not divided by their number."""
    _refuse(values, width)
    return windows_mean(values, width) * width


@moving_average.misconception("What should happen when nothing fits?", "00_numbers, Windows")
def nothing_refused(values, width):
    """A window that is wider than the values gives an empty result."""
    return values.unfold(1, width, 1).mean(2) if width <= values.shape[1] else values[:, :0]


def _refuse(values, width):
    if width > values.shape[1]:
        raise ValueError(f"width {width} is more than {values.shape[1]} values")


moving_average.example("""
>>> moving_average(torch.tensor([[1.0, 3.0, 5.0]]), 2).tolist()
[[2.0, 4.0]]
""")

one_hot = Exercise("one_hot", LESSON, in_training=InTraining.UNSEEN)


@one_hot.check(points=2)
def each_label_is_a_row_with_one_one(student, probe):
    """Row i has a one at the place of label i, and zeros elsewhere, in float32."""
    count, classes = probe.sizes(2, low=3, shown=(6, 4))
    labels = probe.integers(count, high=classes)
    expect_equal(student(labels, classes), torch.eye(classes)[labels], "one_hot", AXES)


@one_hot.misconception("Which axis counts the classes?", "00_numbers, Labels")
def classes_first(labels, num_classes):
    """The table has a row for each class, and a column for each label."""
    return torch.eye(num_classes)[labels].T


@one_hot.misconception("Which dtype does a loss expect?", "00_numbers, Labels")
def integers_kept(labels, num_classes):
    """The table keeps the integers' dtype."""
    return torch.eye(num_classes)[labels].long()


one_hot.example("""
>>> one_hot(torch.tensor([1, 0]), 2).tolist()
[[0.0, 1.0], [1.0, 0.0]]
""")

Standardize = Exercise("Standardize", LESSON, is_class=True, in_training=InTraining.UNSEEN)


def standardize(x, scale, shift):
    """The oracle of Standardize: every column with mean 0 and variance 1, then scaled and shifted."""
    return (x - x.mean(0)) / x.std(0, unbiased=False) * scale + shift


def _build_loaded(student, probe):
    module = student.build(3)
    weights = probe.weights({"scale": (3,), "shift": (3,)})
    module.load(weights)
    return module, weights


@Standardize.check(points=3)
def columns_are_standardized(student, probe):
    """Every column gets mean 0 and variance 1, and is then scaled and shifted."""
    module, weights = _build_loaded(student, probe)
    x = probe.normal(8, 3)
    expect_equal(module(x), standardize(x, **weights), "Standardize", AXES)


class _Base(nn.Module):
    def __init__(self, num_features):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(num_features)), nn.Parameter(torch.zeros(num_features))


@Standardize.misconception("Over which axis is the mean?", "00_numbers, Columns")
class RowsStandardized(_Base):
    """Rows are standardized, where columns should be."""

    def forward(self, x):
        return (x - x.mean(1, keepdim=True)) / x.std(1, unbiased=False, keepdim=True) * self.scale + self.shift


@Standardize.misconception("What comes after the division?", "00_numbers, Columns")
class NeverShifted(_Base):
    """The columns are scaled and not shifted."""

    def forward(self, x):
        return standardize(x, self.scale, 0.0)


Standardize.example("""
>>> Standardize(1)(torch.tensor([[0.0], [2.0]])).tolist()
[[-1.0], [1.0]]
""")

EXERCISES = {each.name: each for each in (moving_average, one_hot, Standardize)}
