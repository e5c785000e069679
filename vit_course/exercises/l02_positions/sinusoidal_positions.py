"""`sinusoidal_positions`: the table of positions.

The oracle is complex numbers on the unit circle. The known mistakes make the table entry by entry.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable

import torch
from torch import Tensor

from exercise_kit.engine.compare import close, expect_equal, expect_tensor, short
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_value_error
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Parts, declare
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l02_positions import LESSON

TABLE_AXES = ("position", "dimension")


def hands_of(position: int, embed_dim: int) -> list[complex]:
    """The clock hands of one position, embed_dim / 2 of them, as complex numbers of length 1."""
    return [cmath.rect(1.0, position / 10_000 ** (2 * hand / embed_dim)) for hand in range(embed_dim // 2)]


def sinusoids(num_positions: int, embed_dim: int) -> Tensor:
    """The oracle of sinusoidal_positions, (num_positions, embed_dim) in float32."""
    rows = [hands_of(position, embed_dim) for position in range(num_positions)]
    return torch.tensor([[part for hand in row for part in (hand.imag, hand.real)] for row in rows])


def vector_text(values: Tensor) -> str:
    """The numbers of a vector, as a message shows them."""
    return ", ".join(f"{float(value):.4g}" for value in values)


def expect_float32(student: Student, table: Tensor, name: str) -> None:
    """Fail when a table has another dtype; a model of float32 weights would compute in it, or refuse it."""
    student.record[-1:] = [("dtype", str(table.dtype))]  # whatever its numbers are
    if table.dtype != torch.float32:
        look = "Which line decides the dtype, and what does NumPy or Python make of a number?"
        raise Failure(f"{name} has dtype {short(table.dtype)}", "float32", look)


sinusoidal_positions = Exercise("sinusoidal_positions", LESSON, in_training=InTraining.HIDDEN)


@sinusoidal_positions.check(guard=True)
def every_position_has_a_row(student: Student, probe: Probe) -> None:
    """The table has a row for every position and a column for every dimension."""
    for num_positions, embed_dim in ((7, 12), (9, 4)):
        name = f"sinusoidal_positions({num_positions}, {embed_dim})"
        expect_tensor(student(num_positions, embed_dim), (num_positions, embed_dim), name)


@sinusoidal_positions.check(needs=every_position_has_a_row)
def position_0_alternates_0_and_1(student: Student, probe: Probe) -> None:
    """At position 0 all hands point up: its row is 0, 1, 0, 1, and so on."""
    table = expect_tensor(student(5, 8), (5, 8), "sinusoidal_positions(5, 8)")
    wanted = sinusoids(1, 8)[0]
    if not close(table[0], wanted):
        raise Failure(
            f"row 0 is {vector_text(table[0])}", vector_text(wanted), "Which angle does position 0 give, and its sine?"
        )


@sinusoidal_positions.check(needs=every_position_has_a_row)
def the_first_hand_turns_one_radian_a_step(student: Student, probe: Probe) -> None:
    """Dimensions 0 and 1 are the sine and the cosine of the position itself."""
    name = "the first hand of sinusoidal_positions(6, 4)"
    table = expect_tensor(student(6, 4), (6, 4), "sinusoidal_positions(6, 4)")
    look = "Work out sin 1 and cos 1, in radian. Where do they stand in your row 1?"
    expect_equal(table[:, :2], sinusoids(6, 2), name, TABLE_AXES, look=look, any_float=True)


@sinusoidal_positions.check(needs=every_position_has_a_row)
def two_neighbors_are_one_hand(student: Student, probe: Probe) -> None:
    """Dimensions 2i and 2i + 1 are sine and cosine of one angle, so their squares sum to 1."""
    table = expect_tensor(student(6, 10), (6, 10), "sinusoidal_positions(6, 10)")
    length = table.float().unflatten(1, (5, 2)).square().sum(2)
    if not close(length, torch.ones(6, 5)):
        row, hand = (int(index) for index in ((length - 1).abs() > 1e-5).nonzero()[0])
        pair = vector_text(table[row, 2 * hand : 2 * hand + 2])
        raise Failure(
            f"at position {row}, dimensions {2 * hand} and {2 * hand + 1} are {pair}, whose squares sum to "
            f"{float(length[row, hand]):.3g}",
            "1",
            "Which angle stands in the sine, and which in the cosine beside it?",
        )


@sinusoidal_positions.check(needs=two_neighbors_are_one_hand)
def each_hand_turns_slower_than_the_one_before(student: Student, probe: Probe) -> None:
    """Hand i turns by 1 / 10000^(2i / embed_dim) radian a step."""
    for num_positions, embed_dim in ((9, 16), (40, 6), (6, 10)):
        name = f"sinusoidal_positions({num_positions}, {embed_dim})"

        def describe(actual: Tensor, expected: Tensor) -> tuple[str, str] | None:
            here, there = _first_turns(actual), _first_turns(expected)
            slips = (~here.isclose(there, rtol=1e-3, atol=0.0)).nonzero()
            if not len(slips):
                return None
            hand = int(slips[0])
            seen = f"hand {hand} (dimensions {2 * hand} and {2 * hand + 1}) turns {float(here[hand]):.4g} radian"
            return f"{seen} from position 0 to 1", f"{float(there[hand]):.4g} radian"

        look = "What is the exponent of 10000 for the first hand, and for the last?"
        wanted = sinusoids(num_positions, embed_dim)
        expect_equal(student(num_positions, embed_dim), wanted, name, TABLE_AXES, describe, look, any_float=True)


def _first_turns(table: Tensor) -> Tensor:
    """The angle, from -pi to pi, by which each hand turns from position 0 to 1."""
    start, end = torch.complex(table[:2, 1::2].double(), table[:2, 0::2].double())
    return (end * start.conj()).angle()


@sinusoidal_positions.check(needs=every_position_has_a_row, worth=0.5, guard=True)
def the_table_is_float32(student: Student, probe: Probe) -> None:
    """The table is float32, as the exercise says."""
    expect_float32(student, student(6, 10), "sinusoidal_positions(6, 10)")


@sinusoidal_positions.check(guard=True)
def an_odd_length_is_refused(student: Student, probe: Probe) -> None:
    """An odd embed_dim, which leaves one sine without its cosine, raises ValueError naming it."""
    expect_value_error(student, (5, 7), (7,), "embed_dim 7")


sinusoidal_positions.example("""
>>> sinusoidal_positions(2, 4)[0].tolist()
[0.0, 1.0, 0.0, 1.0]
>>> [round(number, 2) for number in sinusoidal_positions(2, 4)[1].tolist()]
[0.84, 0.54, 0.01, 1.0]
""")


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
    """The exponent counts columns and not hands, so a sine and the cosine beside it belong to different hands."""
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
    """The position is multiplied by the power of 10000, so later hands turn faster and not more slowly."""
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
    """For an odd embed_dim the table has one dimension too many, and no error is raised."""
    return sinusoids(num_positions, embed_dim + embed_dim % 2)


@sinusoidal_positions.misconception("If embed_dim is 7, which sine has no cosine?", CLOCK, InTraining.UNSEEN)
def odd_length_accepted(num_positions: int, embed_dim: int) -> Tensor:
    """For an odd embed_dim the last sine stands without its cosine, and no error is raised."""
    entries = [[_wave(d, p * _turns(d, embed_dim)) for d in range(embed_dim)] for p in range(num_positions)]
    return torch.tensor(entries)


@sinusoidal_positions.misconception(
    "Which line of yours looks at embed_dim before torch does?", CLOCK, InTraining.UNSEEN
)
def odd_length_left_to_torch(num_positions: int, embed_dim: int) -> Tensor:
    """Nothing looks at embed_dim, so for an odd one torch raises an error about sines and cosines that do not match."""
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


def _refused(embed_dim: int) -> None:
    if embed_dim % 2:
        raise ValueError(f"embed_dim {embed_dim} is odd")


def _left_to_torch(embed_dim: int) -> None:
    if embed_dim % 2:
        raise RuntimeError("The expanded size of the tensor must match the existing size")


def _table(
    num_positions: int,
    embed_dim: int,
    *,
    wave: Callable[[int, float, int], float] = lambda d, angle, half: math.cos(angle) if d % 2 else math.sin(angle),
    hand: Callable[[int, int], int] = lambda d, half: d // 2 * 2,
    power: Callable[[int, int], float] = lambda hand, embed_dim: BASE ** -(hand / embed_dim),
    place: Callable[[int], float] = float,
    odd: Callable[[int], None] = _refused,
    laid: Callable[[Tensor], Tensor] = lambda table: table,
) -> Tensor:
    odd(embed_dim)
    half = embed_dim // 2
    dimensions = [(d, power(hand(d, half), embed_dim)) for d in range(embed_dim)]
    return laid(
        torch.tensor([[wave(d, place(p) * turn, half) for d, turn in dimensions] for p in range(num_positions)])
    )


declare(
    sinusoidal_positions,
    Parts(
        _table,
        {
            halves_concatenated: {
                "wave": lambda d, angle, half: math.sin(angle) if d < half else math.cos(angle),
                "hand": lambda d, half: 2 * (d % half),
            },
            sine_and_cosine_swapped: {"wave": lambda d, angle, half: math.sin(angle) if d % 2 else math.cos(angle)},
            sines_only: {"wave": lambda d, angle, half: math.sin(angle)},
            position_missing_from_the_angle: {"place": lambda p: 1.0},
            a_frequency_for_every_dimension: {"hand": lambda d, half: d},
            column_taken_for_hand: {"hand": lambda d, half: 2 * d},
            exponent_half_as_large: {"power": lambda hand, embed_dim: BASE ** -(hand / 2 / embed_dim)},
            exponent_twice_as_large: {"power": lambda hand, embed_dim: BASE ** -(2 * hand / embed_dim)},
            multiplied_where_divided: {"power": lambda hand, embed_dim: BASE ** (hand / embed_dim)},
            base_e_for_10000: {"power": lambda hand, embed_dim: math.exp(-hand / embed_dim)},
            exponent_rounded_to_zero: {"power": lambda hand, embed_dim: 1.0},
            counted_from_1: {"place": lambda p: p + 1.0},
            table_on_its_side: {"laid": lambda table: table.T},
            a_batch_axis_in_front: {"laid": lambda table: table[None]},
            odd_length_accepted: {"odd": lambda embed_dim: None},
            odd_length_left_to_torch: {"odd": _left_to_torch},
        },
        quick=True,
    ),
)
