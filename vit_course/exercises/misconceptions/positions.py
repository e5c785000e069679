"""Known mistakes of lesson 02, first part: the table of positions, entry by entry."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from exercise_kit.engine.exercise import InTraining
from vit_course.exercises.checks.positions import sinusoidal_positions, sinusoids

BASE = 10_000
CLOCK = "02_positions, A clock with many hands"


def _filled(num_positions: int, embed_dim: int, entry: Callable[[int, int], float]) -> Tensor:
    """A table with ``entry(position, dimension)`` everywhere; an odd embed_dim is refused."""
    if embed_dim % 2:
        raise ValueError(f"embed_dim {embed_dim} is odd")
    return torch.tensor([[entry(p, d) for d in range(embed_dim)] for p in range(num_positions)])


def _wave(dimension: int, angle: float) -> float:
    return math.cos(angle) if dimension % 2 else math.sin(angle)


def _turns(dimension: int, embed_dim: int) -> float:
    """Radians a step of the hand that a dimension belongs to."""
    return BASE ** -(dimension // 2 * 2 / embed_dim)


@sinusoidal_positions.misconception("What stands beside the sine of an angle, in the very next dimension?", CLOCK)
def halves_concatenated(num_positions: int, embed_dim: int) -> Tensor:
    """All sines come first and all cosines after them, where sine and cosine should alternate."""
    half = embed_dim // 2

    def entry(position: int, dimension: int) -> float:
        angle = position * _turns(2 * (dimension % half), embed_dim)
        return math.sin(angle) if dimension < half else math.cos(angle)

    return _filled(num_positions, embed_dim, entry)


@sinusoidal_positions.misconception("What is the sine of 0, and which dimension shows it?", CLOCK)
def sine_and_cosine_swapped(num_positions: int, embed_dim: int) -> Tensor:
    """The cosines stand in the even dimensions and the sines in the odd ones."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d + 1, p * _turns(d, embed_dim)))


@sinusoidal_positions.misconception("Where does a hand point, if its sine is all that you know?", CLOCK)
def sines_only(num_positions: int, embed_dim: int) -> Tensor:
    """Every dimension is a sine."""
    return _filled(num_positions, embed_dim, lambda p, d: math.sin(p * _turns(d, embed_dim)))


@sinusoidal_positions.misconception("Which of your angles change from one position to the next?", CLOCK)
def position_missing_from_the_angle(num_positions: int, embed_dim: int) -> Tensor:
    """The angle is the frequency alone, so every position has the same row."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, _turns(d, embed_dim)))


@sinusoidal_positions.misconception("Which dimensions share one hand, and so one frequency?", CLOCK)
def a_frequency_for_every_dimension(num_positions: int, embed_dim: int) -> Tensor:
    """The exponent counts dimensions one by one, so a sine and the cosine beside it belong to different hands."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, p * BASE ** -(d / embed_dim)))


@sinusoidal_positions.misconception("Which dimensions share one hand, and so one frequency?", CLOCK)
def column_taken_for_hand(num_positions: int, embed_dim: int) -> Tensor:
    """The i of the exponent counts columns where it should count hands, so a sine and the cosine beside it part."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, p * BASE ** -(2 * d / embed_dim)))


@sinusoidal_positions.misconception("Over which numbers does the exponent run, from the first hand to the last?", CLOCK)
def exponent_half_as_large(num_positions: int, embed_dim: int) -> Tensor:
    """The exponent is half as large as the formula has it, so even the last hand is too fast."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, p * BASE ** -(d // 2 / embed_dim)))


@sinusoidal_positions.misconception("How often is your index doubled on its way into the exponent?", CLOCK)
def exponent_twice_as_large(num_positions: int, embed_dim: int) -> Tensor:
    """The index is doubled twice, so the hands slow down to one in a hundred million."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, p * _turns(d, embed_dim) ** 2))


@sinusoidal_positions.misconception("Do later hands turn faster, or slower?", CLOCK)
def multiplied_where_divided(num_positions: int, embed_dim: int) -> Tensor:
    """The position is multiplied by the power of 10000, so later hands race where they should crawl."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, p / _turns(d, embed_dim)))


@sinusoidal_positions.misconception("Which number is raised to the power in the formula?", CLOCK)
def base_e_for_10000(num_positions: int, embed_dim: int) -> Tensor:
    """The base of the power is e, so all hands turn at nearly the same speed."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, p * math.exp(-(d // 2 * 2 / embed_dim))))


@sinusoidal_positions.misconception("What is 2 // 8 in Python, and what is 2 / 8?", CLOCK)
def exponent_rounded_to_zero(num_positions: int, embed_dim: int) -> Tensor:
    """The exponent is a whole number and always 0, so all hands turn alike."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, float(p)))


@sinusoidal_positions.misconception("What is the number of the first position?", CLOCK)
def counted_from_1(num_positions: int, embed_dim: int) -> Tensor:
    """The first position is called 1, so every hand is a step ahead."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, (p + 1) * _turns(d, embed_dim)))


@sinusoidal_positions.misconception("Which axis counts the positions?", CLOCK, InTraining.STOPS)
def table_on_its_side(num_positions: int, embed_dim: int) -> Tensor:
    """The table has a row for every dimension and a column for every position."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, p * _turns(d, embed_dim))).T


@sinusoidal_positions.misconception("How many axes was the table asked to have?", CLOCK, InTraining.UNSEEN)
def a_batch_axis_in_front(num_positions: int, embed_dim: int) -> Tensor:
    """The table has a batch axis of length 1 in front, and nobody asked for one."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, p * _turns(d, embed_dim)))[None]


@sinusoidal_positions.misconception("If embed_dim is 7, which sine has no cosine?", CLOCK, InTraining.UNSEEN)
def odd_length_rounded_up(num_positions: int, embed_dim: int) -> Tensor:
    """For an odd embed_dim the table has one dimension too many, and nobody is told."""
    return sinusoids(num_positions, embed_dim + embed_dim % 2)


@sinusoidal_positions.misconception("If embed_dim is 7, which sine has no cosine?", CLOCK, InTraining.UNSEEN)
def odd_length_accepted(num_positions: int, embed_dim: int) -> Tensor:
    """For an odd embed_dim the last sine stands without its cosine, and nobody is told."""
    entries = [[_wave(d, p * _turns(d, embed_dim)) for d in range(embed_dim)] for p in range(num_positions)]
    return torch.tensor(entries)


@sinusoidal_positions.misconception("Who notices when embed_dim is odd: you, or torch?", CLOCK, InTraining.UNSEEN)
def odd_length_left_to_torch(num_positions: int, embed_dim: int) -> Tensor:
    """Nothing looks at embed_dim, so for an odd one torch stumbles over sines and cosines that do not match."""
    if embed_dim % 2:
        raise RuntimeError("The expanded size of the tensor must match the existing size")
    return sinusoids(num_positions, embed_dim)


@sinusoidal_positions.misconception(
    "Which exponent has the last hand in the formula: 1, or less?", CLOCK, InTraining.HIDDEN
)
def exponent_over_half_minus_one(num_positions: int, embed_dim: int) -> Tensor:
    """The exponent is i / (embed_dim / 2 - 1) and reaches 1, so all hands but the first are too slow."""
    last = max(embed_dim // 2 - 1, 1)
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, p * BASE ** -(d // 2 / last)))


@sinusoidal_positions.misconception(
    "Which dtype has your table, and which one does the text ask for?", CLOCK, InTraining.UNSEEN
)
def table_in_float64(num_positions: int, embed_dim: int) -> Tensor:
    """The table is float64, as NumPy makes it, where float32 was asked for."""
    if embed_dim % 2:
        raise ValueError(f"embed_dim {embed_dim} is odd")
    return sinusoids(num_positions, embed_dim).double()
