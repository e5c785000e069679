"""What the tests of three modules of pictures ask of every figure, and how they read what one shows."""

from __future__ import annotations

import copy
from collections.abc import Callable

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor


def make_random_rgb(*batch: int, height: int = 8, width: int = 12) -> Tensor:
    return torch.rand(*batch, 3, height, width, generator=torch.Generator().manual_seed(0))


def read_drawn_array(figure: Figure, number: int = 0) -> np.ndarray:
    """The array that the figure's axes of this number show."""
    return np.asarray(figure.axes[number].images[0].get_array())


def expect_drawn(draw: Callable[[], Figure]) -> None:
    """A figure is drawn, a notebook can show it although pyplot does not know of it, and no global state changes."""
    from matplotlib import pyplot

    settings, numbers = copy.copy(mpl.rcParams), pyplot.get_fignums()
    assert draw()._repr_png_().startswith(b"\x89PNG")
    assert dict(mpl.rcParams) == dict(settings)
    assert pyplot.get_fignums() == numbers
