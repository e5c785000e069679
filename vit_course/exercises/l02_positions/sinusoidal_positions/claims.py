"""`sinusoidal_positions`: the table of positions.

The oracle is complex numbers on the unit circle. The known mistakes make the table entry by entry.
"""

from __future__ import annotations

import cmath

import torch
from torch import Tensor

from exercise_kit.engine.compare import close, expect_equal, expect_tensor, short
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_value_error
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare
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


read_mistakes(sinusoidal_positions, __name__)
declare(sinusoidal_positions, Edits(quick=True))
