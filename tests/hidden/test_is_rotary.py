"""Hidden checks of is_rotary: the student's test, asked about right and wrong rotary positions."""

import pytest

from exercise_kit.engine.exercise import expect_example
from vit_course.exercises.impostors import LineUp
from vit_course.staff.hidden_rotary_cases import RIGHT, WRONG


def unnamed(rotate):
    return lambda query, key, grid_size: rotate(query, key, grid_size)


LINE_UP = LineUp("a rotate", "your own rotary_2d", RIGHT, WRONG, unnamed)


@pytest.mark.exercise("is_rotary", points=0.2)
def test_it_catches_what_comes_back_wrong(student, probe):
    """It catches a query and a key that trade places or have another shape, and lets right rotations pass."""
    look = "How do you know which of the two tensors is the query, and which shape it should have?"
    LINE_UP.expect_distinguished(student, probe, "returned", look)


@pytest.mark.exercise("is_rotary", points=0.4)
def test_it_catches_queries_and_keys_that_disagree(student, probe):
    """It catches queries and keys that are not rotated by the same rule, and lets right rotations pass."""
    look = "Query and key move by the same number of rows and columns: what becomes of their dot product?"
    LINE_UP.expect_distinguished(student, probe, "disagreeing", look)


@pytest.mark.exercise("is_rotary", points=0.3)
def test_it_catches_an_axis_that_does_not_count(student, probe):
    """It catches rotations that ignore the row or the column, and lets right rotations pass."""
    look = "What has to change when a patch moves one row down, or one column on?"
    LINE_UP.expect_distinguished(student, probe, "one axis", look)


@pytest.mark.exercise("is_rotary", points=0.4)
def test_it_catches_rows_and_columns_taken_together(student, probe):
    """It catches rows and columns that turn the same numbers, and lets right rotations pass."""
    look = "Which numbers does a step down turn, which ones a step to the right, and may a number be among both?"
    LINE_UP.expect_distinguished(student, probe, "together", look)


@pytest.mark.exercise("is_rotary", points=0.3)
def test_it_catches_patches_at_other_places(student, probe):
    """It catches patches that are taken to be at another row or column, and lets right rotations pass."""
    look = "Are there tokens in front of your patches, and could rows and columns of your grid trade places unseen?"
    LINE_UP.expect_distinguished(student, probe, "places", look)


@pytest.mark.exercise("is_rotary", points=0.2)
def test_it_catches_positions_that_are_added(student, probe):
    """It catches positions that are added or multiplied instead of rotated, and lets right rotations pass."""
    look = "Which dot products stay the same after a rotation, and not after an addition?"
    LINE_UP.expect_distinguished(student, probe, "added", look)


@pytest.mark.exercise("is_rotary", points=0.25)
def test_it_catches_other_lengths(student, probe):
    """It catches tokens that come back longer or shorter, and lets right rotations pass."""
    look = "What does a rotation never change about a vector?"
    LINE_UP.expect_distinguished(student, probe, "lengths", look)


@pytest.mark.exercise("is_rotary", points=0.35)
def test_it_catches_pairs_of_one_speed(student, probe):
    """It catches pairs of one half that turn at the same speed or not at all, and lets right rotations pass."""
    look = "Which query, all zeros but for one number, shows how far its pair has turned?"
    LINE_UP.expect_distinguished(student, probe, "speeds", look)


@pytest.mark.exercise("is_rotary", points=0.2)
def test_it_catches_another_start(student, probe):
    """It catches tokens that are rotated where they should stay as they are, and lets right rotations pass."""
    look = "Which tokens turn by an angle of 0, in front of the patches and among them?"
    LINE_UP.expect_distinguished(student, probe, "start", look)


@pytest.mark.exercise("is_rotary", points=0.15)
def test_it_catches_mixed_images(student, probe):
    """It catches images of a batch that get mixed or are not rotated alike, and lets right rotations pass."""
    look = "Does an image come back in a batch as it does alone, in every place?"
    LINE_UP.expect_distinguished(student, probe, "images", look)


@pytest.mark.exercise("is_rotary", points=0.2)
def test_it_catches_uneven_steps(student, probe):
    """It catches angles that do not grow by the same amount with each step, and lets right rotations pass."""
    look = "Is a step from row 0 to row 1 the same as one from row 1 to row 2, and how is it with columns?"
    LINE_UP.expect_distinguished(student, probe, "uneven", look)


@pytest.mark.exercise("is_rotary", points=0.05)
def test_its_own_example_comes_out(student, probe):
    """The example in the docstring comes out as it stands there, and right rotations pass."""
    LINE_UP.expect_distinguished(student, probe, "one axis", "What has to change when a patch moves?")
    expect_example(student)
