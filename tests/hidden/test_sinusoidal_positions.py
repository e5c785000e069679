"""Hidden checks of ``sinusoidal_positions``.

One check asks for float32, as the exercise does; in all others a table of other floats passes.
"""

import pytest
import torch

from exercise_kit.engine.compare import expect_equal, expect_tensor, short
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import expect_result_of_its_own, expect_value_error
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l02_positions.sinusoidal_positions.claims import expect_float32

AXES = ("position", "dimension")
LOOK = "Which angle has that hand at that position, and which of sine and cosine stands in that column?"


def _table(student, num_positions, embed_dim):
    """(name, table) of one call; Failure unless it has the right shape, and floats."""
    name = f"sinusoidal_positions({num_positions}, {embed_dim})"
    table = expect_tensor(student(num_positions, embed_dim), (num_positions, embed_dim), name)
    if not table.is_floating_point():
        raise Failure(f"{name} has dtype {short(table.dtype)}", "float32", "Which line decides the dtype of the table?")
    return name, table


def _expect_right(student, reference, num_positions, embed_dim):
    name, table = _table(student, num_positions, embed_dim)
    right = reference.sinusoidal_positions(num_positions, embed_dim)
    expect_equal(table, right, name, AXES, look=LOOK, any_float=True)


def _turns(table):
    """(positions - 1, hands): the angle, from -pi to pi, by which a hand turns from each position to the next."""
    hands = torch.complex(table[:, 1::2].double(), table[:, 0::2].double())
    return (hands[1:] * hands[:-1].conj()).angle()


@pytest.mark.exercise("sinusoidal_positions", points=1.1)
def test_the_clock_starts_at_twelve_and_its_first_hand_turns_one_radian_a_step(student, reference, probe):
    """Row 0 is 0, 1, 0, 1 and so on; dimensions 0 and 1 are the sine and the cosine of the position itself."""
    num_positions, embed_dim = probe.choice((11, 17, 23)), 2 * probe.choice((4, 5, 7))
    name, table = _table(student, num_positions, embed_dim)
    right = reference.sinusoidal_positions(num_positions, embed_dim)
    look = "Work out sine and cosine of 0 and of 1, in radian. Where do they stand in your table?"
    expect_equal(table[:1], right[:1], f"row 0 of {name}", AXES, look=look, any_float=True)
    expect_equal(table[:, :2], right[:, :2], f"the first hand of {name}", AXES, look=look, any_float=True)


@pytest.mark.exercise("sinusoidal_positions", points=0.9)
def test_two_neighbors_are_one_hand_that_turns_evenly(student, probe):
    """Dimensions 2i and 2i + 1 are the tip of one hand, which turns alike at every step, and slower than hand i - 1."""
    num_positions, embed_dim = probe.choice((9, 13, 19)), 2 * probe.choice((3, 5, 6))
    name, table = _table(student, num_positions, embed_dim)
    lengths = table.float().unflatten(1, (-1, 2)).square().sum(2)
    ones = torch.ones_like(lengths)
    expect_equal(lengths, ones, f"sine² + cosine² of {name}", ("position", "hand"), look=LOOK)
    turns = _turns(table)
    even = turns[:1].expand_as(turns)
    look = "Is the angle of a hand its position times a number that belongs to the hand?"
    # float32 holds the angle of a position below 20 to 1e-6; the slowest hand turns more than 4e-4
    if ((turns - even).abs() > 2e-5).any():
        step, hand = (int(index) for index in ((turns - even).abs() > 2e-5).nonzero()[0])
        seen = f"hand {hand} of {name} turns {turns[0, hand]:.4g} radian from position 0 to 1"
        raise Failure(f"{seen}, and {turns[step, hand]:.4g} from {step} to {step + 1}", "the same at every step", look)
    slower = turns[0, 1:] < turns[0, :-1] - 1e-5
    if not slower.all():
        hand = int((~slower).nonzero()[0])
        seen = f"hand {hand} of {name} turns {turns[0, hand]:.4g} radian a step"
        raise Failure(f"{seen}, and hand {hand + 1} {turns[0, hand + 1]:.4g}", "slower and slower hands", look)


@pytest.mark.exercise("sinusoidal_positions", points=1.8)
def test_every_hand_has_its_own_speed(student, reference, probe):
    """Hand i has the angle position / 10000^(2i / embed_dim)."""
    first, second, third = probe.sizes(3, low=2, high=12)
    for num_positions, half in ((probe.choice((8, 14, 21)), first), (second + 20, second), (third, third + 12)):
        _expect_right(student, reference, num_positions, 2 * half)


@pytest.mark.exercise("sinusoidal_positions", points=0.5)
def test_tables_of_any_size_are_right(student, reference, probe):
    """One hand or very many, one position or very many: the table holds them all."""
    many, far = 2 * probe.choice((48, 55, 67)), probe.choice((1030, 1100, 1200))
    _expect_right(student, reference, probe.choice((6, 7, 9)), 2)
    _expect_right(student, reference, 3, many)
    _expect_right(student, reference, 1, 2 * probe.choice((5, 9)))
    name, table = _table(student, far, 12)
    right = reference.sinusoidal_positions(far, 12)
    # float32 holds an angle of 1200 to 6e-5, and its own powers of 10000 move it by 7e-4; half precision is off by 0.1
    if not (table.double() - right.double()).abs().max() < 4e-3:
        expect_equal(table, right, name, AXES, look="What happens to large positions on the way?", any_float=True)


@pytest.mark.exercise("sinusoidal_positions", points=0.4)
def test_every_call_stands_alone(student, reference, probe):
    """A table depends on the two numbers of its own call, and on no call before."""
    few, more = sorted(probe.sizes(2, low=4, high=15))
    half, other = probe.sizes(2, low=2, high=8)
    for num_positions, embed_dim in ((few, 2 * half), (more, 2 * half), (few, 2 * other), (few, 2 * half)):
        _expect_right(student, reference, num_positions, embed_dim)
    expect_result_of_its_own(student, (few, 2 * half), (few, 2 * other))


@pytest.mark.exercise("sinusoidal_positions", points=0.7)
def test_an_odd_length_is_refused(student, reference, probe):
    """An odd embed_dim, which leaves one sine without its cosine, raises ValueError naming it."""
    num_positions, half = probe.sizes(2, low=2, high=9)
    _expect_right(student, reference, num_positions, 2 * half)
    for embed_dim in (2 * half + 1, 1, 2 * half + 13):
        expect_value_error(student, (num_positions, embed_dim), (embed_dim,), f"embed_dim {embed_dim}")


@pytest.mark.exercise("sinusoidal_positions", points=0.4)
def test_the_table_is_float32(student, reference, probe):
    """The table is float32, as the exercise says."""
    num_positions, half = probe.sizes(2)
    _expect_right(student, reference, num_positions, 2 * half)
    name, table = _table(student, num_positions, 2 * half)
    expect_float32(student, table, name)


@pytest.mark.exercise("sinusoidal_positions", points=0.2)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    num_positions, half = probe.sizes(2)
    _expect_right(student, reference, num_positions, 2 * half)
    expect_example(student)
