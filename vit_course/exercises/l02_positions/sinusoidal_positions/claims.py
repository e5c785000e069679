"""`sinusoidal_positions`: the table of positions.

The oracle is complex numbers on the unit circle. The known mistakes make the table entry by entry.
"""

from __future__ import annotations

import cmath
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.compare import are_close, expect_equal, expect_tensor, format_dtype
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_value_error, ignore_wrong_numbers
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare_pairs
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l02_positions import LESSON

TABLE_AXES = ("position", "dimension")


def clock_hands_of(position: int, embed_dim: int) -> list[complex]:
    """The clock hands of one position, embed_dim / 2 of them, as complex numbers of length 1."""
    return [cmath.rect(1.0, position / 10_000 ** (2 * hand / embed_dim)) for hand in range(embed_dim // 2)]


def compute_expected_table(num_positions: int, embed_dim: int) -> Tensor:
    """The oracle of sinusoidal_positions, (num_positions, embed_dim) in float32."""
    rows = [clock_hands_of(position, embed_dim) for position in range(num_positions)]
    return torch.tensor([[part for hand in row for part in (hand.imag, hand.real)] for row in rows])


def format_vector(values: Tensor) -> str:
    """The numbers of a vector, as a message shows them."""
    return ", ".join(f"{float(value):.4g}" for value in values)


def call_and_expect_float_table(student: Student, arguments: tuple[Any, int], num_positions: int) -> tuple[str, Tensor]:
    """(name, table) of one call: (num_positions, embed_dim) floats of any dtype, which one claim alone asks for."""
    embed_dim = arguments[-1]
    name = f"{student.name}({', '.join(map(str, arguments))})"
    table = expect_tensor(student(*arguments), (num_positions, embed_dim), name)
    if not table.is_floating_point():
        raise Failure(
            f"{name} has dtype {format_dtype(table.dtype)}", "float32", "Which line decides the dtype of the table?"
        )
    return name, table


def call_and_expect_table(student: Student, num_positions: int, embed_dim: int) -> tuple[str, Tensor]:
    """(name, table) of one call."""
    return call_and_expect_float_table(student, (num_positions, embed_dim), num_positions)


def expect_right_table(student: Student, num_positions: int, embed_dim: int) -> None:
    """The whole table, right."""

    def describe_first_wrong_hand(actual: Tensor, expected: Tensor) -> tuple[str, str] | None:
        here, there = (turn_angles_of(each[:2])[0] for each in (actual, expected))
        slips = (~here.isclose(there, rtol=1e-3, atol=0.0)).nonzero()
        if not len(slips):
            return None
        hand = int(slips[0])
        seen = f"hand {hand} (dimensions {2 * hand} and {2 * hand + 1}) turns {float(here[hand]):.4g} radian"
        return f"{seen} from position 0 to 1", f"{float(there[hand]):.4g} radian"

    name, table = call_and_expect_table(student, num_positions, embed_dim)
    look = "What is the exponent of 10000 for the first hand, and for the last?"
    expect_equal(
        table,
        compute_expected_table(num_positions, embed_dim),
        name,
        TABLE_AXES,
        describe_first_wrong_hand,
        look,
        any_float=True,
    )


def turn_angles_of(table: Tensor) -> Tensor:
    """(positions - 1, hands): the angle, from -pi to pi, by which a hand turns from each position to the next."""
    hands = torch.complex(table[:, 1::2].double(), table[:, 0::2].double())
    return (hands[1:] * hands[:-1].conj()).angle()


def expect_float32(student: Student, table: Tensor, name: str) -> None:
    """Fail when a table has another dtype; a model of float32 weights would compute in it, or refuse it."""
    student.note_instead(("dtype", str(table.dtype)))  # whatever its numbers are
    if table.dtype != torch.float32:
        look = "Which line decides the dtype, and what does NumPy or Python make of a number?"
        raise Failure(f"{name} has dtype {format_dtype(table.dtype)}", "float32", look)


sinusoidal_positions = Exercise("sinusoidal_positions", LESSON, in_training=InTraining.HIDDEN)


@sinusoidal_positions.check(guard=True)
def every_position_has_a_row(student: Student, probe: Probe) -> None:
    """The table has a row for every position and a column for every dimension."""
    for num_positions, embed_dim in ((7, 12), (9, 4)):
        call_and_expect_table(student, num_positions, embed_dim)


@sinusoidal_positions.check(needs=every_position_has_a_row, points=0.5)
def position_0_alternates_0_and_1(student: Student, probe: Probe) -> None:
    """At position 0 all hands point up: its row is 0, 1, 0, 1, and so on."""
    num_positions, hands = probe.choice((11, 17, 23), shown=5), probe.choice((4, 5, 7), shown=4)
    _, table = call_and_expect_table(student, num_positions, 2 * hands)
    wanted = compute_expected_table(1, 2 * hands)[0]
    if not are_close(table[0], wanted):
        raise Failure(
            f"row 0 is {format_vector(table[0])}",
            format_vector(wanted),
            "Which angle does position 0 give, and its sine?",
        )


@sinusoidal_positions.check(needs=every_position_has_a_row, points=0.6)
def the_first_hand_turns_one_radian_a_step(student: Student, probe: Probe) -> None:
    """Dimensions 0 and 1 are the sine and the cosine of the position itself."""
    num_positions, hands = probe.choice((11, 17, 23), shown=6), probe.choice((4, 5, 7), shown=2)
    name, table = call_and_expect_table(student, num_positions, 2 * hands)
    look = "Work out sin 1 and cos 1, in radian. Where do they stand in your row 1?"
    wanted = compute_expected_table(num_positions, 2)
    expect_equal(table[:, :2], wanted, f"the first hand of {name}", TABLE_AXES, look=look, any_float=True)


@sinusoidal_positions.check(needs=every_position_has_a_row, points=0.4)
def two_neighbors_are_one_hand(student: Student, probe: Probe) -> None:
    """Dimensions 2i and 2i + 1 are sine and cosine of one angle, so their squares sum to 1."""
    _, table = call_and_expect_table(student, probe.choice((9, 13, 19), shown=6), 2 * probe.choice((3, 5, 6), shown=5))
    length = table.float().unflatten(1, (-1, 2)).square().sum(2)
    if not are_close(length, torch.ones_like(length)):
        row, hand = (int(index) for index in ((length - 1).abs() > 1e-5).nonzero()[0])
        pair = format_vector(table[row, 2 * hand : 2 * hand + 2])
        raise Failure(
            f"at position {row}, dimensions {2 * hand} and {2 * hand + 1} are {pair}, whose squares sum to "
            f"{float(length[row, hand]):.3g}",
            "1",
            "Which angle stands in the sine, and which in the cosine beside it?",
        )


@sinusoidal_positions.check(needs=two_neighbors_are_one_hand, points=1.8)
def each_hand_turns_slower_than_the_one_before(student: Student, probe: Probe) -> None:
    """Hand i turns by 1 / 10000^(2i / embed_dim) radian a step."""
    first, second, third = probe.sizes(3, high=12, shown=(8, 3, 6))
    for num_positions, hands in (
        (probe.choice((8, 14, 21), shown=9), first),
        (second + 20, second),
        (third, third + 12),
    ):
        expect_right_table(student, num_positions, 2 * hands)


@sinusoidal_positions.check(
    needs=every_position_has_a_row, worth=0.5, guard=True, points=0.4, first=each_hand_turns_slower_than_the_one_before
)
def the_table_is_float32(student: Student, probe: Probe) -> None:
    """The table is float32, as the exercise says."""
    num_positions, hands = probe.sizes(2, shown=(6, 5))
    name = f"sinusoidal_positions({num_positions}, {2 * hands})"
    expect_float32(student, student(num_positions, 2 * hands), name)


@sinusoidal_positions.check(
    guard=True, points=0.7, first=ignore_wrong_numbers(each_hand_turns_slower_than_the_one_before)
)
def an_odd_length_is_refused(student: Student, probe: Probe) -> None:
    """An odd embed_dim, which leaves one sine without its cosine, raises ValueError naming it."""
    num_positions, hands = probe.sizes(2, shown=(5, 3))
    for embed_dim in (2 * hands + 1, 1, 2 * hands + 13):
        expect_value_error(student, (num_positions, embed_dim), (embed_dim,), f"embed_dim {embed_dim}")


sinusoidal_positions.example(
    """
>>> sinusoidal_positions(2, 4)[0].tolist()
[0.0, 1.0, 0.0, 1.0]
>>> [round(number, 2) for number in sinusoidal_positions(2, 4)[1].tolist()]
[0.84, 0.54, 0.01, 1.0]
""",
    points=0.2,
    first=each_hand_turns_slower_than_the_one_before,
)


read_mistakes(sinusoidal_positions, __name__)
declare_pairs(sinusoidal_positions, Edits(quick=True))
