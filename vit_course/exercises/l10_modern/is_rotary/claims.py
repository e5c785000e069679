"""`is_rotary`: a test that the student writes, tested with right and with wrong rotary positions.

The known mistakes are tests that leave a fact out, ask with sizes that hide an impostor, or ask for more than is true.
"""

from __future__ import annotations

from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare_pairs
from vit_course.exercises.l10_modern import LESSON
from vit_course.exercises.l10_modern.is_rotary.suspects import LINE_UP

is_rotary = Exercise("is_rotary", LESSON, in_training=InTraining.UNSEEN)


@is_rotary.check(guard=True, points=0.4, first="it_catches_positions_that_are_added")
def right_rotations_pass(student: Student, probe: Probe) -> None:
    """Right rotary positions pass, whatever is left free in them."""
    LINE_UP.expect_right_passes(student, probe)


@is_rotary.check(needs=right_rotations_pass, points=0.25)
def it_catches_what_comes_back_wrong(student: Student, probe: Probe) -> None:
    """It catches a query and a key that trade places, or come back in another shape."""
    look = "How do you know which of the two tensors is the query, and which shape it should have?"
    LINE_UP.expect_family_is_caught(student, probe, "returned", look)


@is_rotary.check(needs=right_rotations_pass, points=0.41)
def it_catches_queries_and_keys_that_disagree(student: Student, probe: Probe) -> None:
    """It catches queries and keys that are not rotated by the same rule."""
    look = "Query and key move by the same number of rows and columns: what becomes of their dot product?"
    LINE_UP.expect_family_is_caught(student, probe, "disagreeing", look)


@is_rotary.check(needs=right_rotations_pass, points=0.27)
def it_catches_an_axis_that_does_not_count(student: Student, probe: Probe) -> None:
    """It catches rotations that ignore the row or the column."""
    LINE_UP.expect_family_is_caught(
        student, probe, "one axis", "What has to change when a patch moves one row down, or one column on?"
    )


@is_rotary.check(needs=right_rotations_pass, points=0.35)
def it_catches_rows_and_columns_taken_together(student: Student, probe: Probe) -> None:
    """It catches rows and columns that turn the same numbers."""
    look = "Which numbers does a step down turn, which ones a step to the right, and may a number be among both?"
    LINE_UP.expect_family_is_caught(student, probe, "together", look)


@is_rotary.check(needs=right_rotations_pass, points=0.2)
def it_catches_patches_at_other_places(student: Student, probe: Probe) -> None:
    """It catches patches that are taken to be at another row or column."""
    look = "Are there tokens in front of your patches, and could rows and columns of your grid trade places unseen?"
    LINE_UP.expect_family_is_caught(student, probe, "places", look)


@is_rotary.check(needs=right_rotations_pass, points=0.1)
def it_catches_positions_that_are_added(student: Student, probe: Probe) -> None:
    """It catches positions that are added or multiplied instead of rotated."""
    look = "Which dot products stay the same after a rotation, and not after an addition?"
    LINE_UP.expect_family_is_caught(student, probe, "added", look)


@is_rotary.check(needs=right_rotations_pass, points=0.16)
def it_catches_other_lengths(student: Student, probe: Probe) -> None:
    """It catches tokens that come back longer or shorter."""
    LINE_UP.expect_family_is_caught(student, probe, "lengths", "What does a rotation never change about a vector?")


@is_rotary.check(needs=right_rotations_pass, points=0.34)
def it_catches_pairs_of_one_speed(student: Student, probe: Probe) -> None:
    """It catches pairs of one half that turn at the same speed, or not at all."""
    look = "Which query, all zeros but for one number, shows how far its pair has turned?"
    LINE_UP.expect_family_is_caught(student, probe, "speeds", look)


@is_rotary.check(needs=right_rotations_pass, points=0.12)
def it_catches_another_start(student: Student, probe: Probe) -> None:
    """It catches tokens that are rotated where they should stay as they are."""
    LINE_UP.expect_family_is_caught(
        student, probe, "start", "By which angle do tokens turn that have no place, or are at row 0, column 0?"
    )


@is_rotary.check(needs=right_rotations_pass, points=0.15)
def it_catches_mixed_images(student: Student, probe: Probe) -> None:
    """It catches images of a batch that get mixed, or are not rotated alike."""
    LINE_UP.expect_family_is_caught(
        student, probe, "images", "Does an image come back as it does alone, whatever its place in the batch?"
    )


@is_rotary.check(needs=right_rotations_pass, points=0.2)
def it_catches_uneven_steps(student: Student, probe: Probe) -> None:
    """It catches angles that do not grow by the same amount with each row, or with each column."""
    look = "Is a step from row 0 to row 1 the same as one from row 1 to row 2, and how is it with columns?"
    LINE_UP.expect_family_is_caught(student, probe, "uneven", look)


is_rotary.example(
    """
>>> is_rotary(lambda query, key, grid_size: (query, key))  # nothing is rotated
False
""",
    points=0.05,
    first=it_catches_positions_that_are_added,
)


read_mistakes(is_rotary, __name__)
declare_pairs(is_rotary, Edits(slow=True))
