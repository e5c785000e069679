"""What only grading asks of ``sinusoidal_positions``.

One check asks for float32, as the exercise does; in all others a table of other floats passes.
"""

from __future__ import annotations

from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.expect import expect_independent_results
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l02_positions.sinusoidal_positions import claims


@claims.sinusoidal_positions.check(graded_only=True, points=0.5)
def a_hand_turns_evenly(student: Student, probe: Probe) -> None:
    """Each hand turns alike at every step, and slower than the hand before it."""
    name, table = claims.call_and_expect_table(student, probe.choice((9, 13, 19)), 2 * probe.choice((3, 5, 6)))
    turns = claims.turn_angles_of(table)
    uneven = ((turns - turns[:1]).abs() > 2e-5).nonzero()
    look = "Is the angle of a hand its position times a number that belongs to the hand?"
    # float32 holds the angle of a position below 20 to 1e-6; the slowest hand turns more than 4e-4
    if len(uneven):
        step, hand = (int(index) for index in uneven[0])
        seen = f"hand {hand} of {name} turns {turns[0, hand]:.4g} radian from position 0 to 1"
        raise Failure(f"{seen}, and {turns[step, hand]:.4g} from {step} to {step + 1}", "the same at every step", look)
    slower = turns[0, 1:] < turns[0, :-1] - 1e-5
    if not slower.all():
        hand = int((~slower).nonzero()[0])
        seen = f"hand {hand} of {name} turns {turns[0, hand]:.4g} radian a step"
        raise Failure(f"{seen}, and hand {hand + 1} {turns[0, hand + 1]:.4g}", "slower and slower hands", look)


@claims.sinusoidal_positions.check(graded_only=True, points=0.5)
def tables_of_any_size_are_right(student: Student, probe: Probe) -> None:
    """One hand or very many, one position or very many: the table holds them all."""
    claims.expect_right_table(student, probe.choice((6, 7, 9)), 2)
    claims.expect_right_table(student, 3, 2 * probe.choice((48, 55, 67)))
    claims.expect_right_table(student, 1, 2 * probe.choice((5, 9)))
    far = probe.choice((1030, 1100, 1200))
    name, table = claims.call_and_expect_table(student, far, 12)
    right = claims.compute_expected_table(far, 12)
    # float32 holds an angle of 1200 to 6e-5, and its own powers of 10000 move it by 7e-4; half precision is off by 0.1
    if not (table.double() - right.double()).abs().max() < 4e-3:
        look = "What happens to large positions on the way?"
        expect_equal(table, right, name, claims.TABLE_AXES, look=look, any_float=True)


@claims.sinusoidal_positions.check(graded_only=True, points=0.4)
def every_call_stands_alone(student: Student, probe: Probe) -> None:
    """A table depends on the two numbers of its own call, and on no call before."""
    few, more = sorted(probe.sizes(2, low=4, high=15))
    half, other = probe.sizes(2, low=2, high=8)
    for num_positions, embed_dim in ((few, 2 * half), (more, 2 * half), (few, 2 * other), (few, 2 * half)):
        claims.expect_right_table(student, num_positions, embed_dim)
    expect_independent_results(student, (few, 2 * half), (few, 2 * other))
