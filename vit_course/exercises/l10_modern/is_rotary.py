"""`is_rotary`: a test that the student writes, tested with right and with wrong rotary positions.

The known mistakes are tests that leave a fact out, ask with sizes that hide an impostor, or ask for more than is true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.impostors import Candidate, Family, LineUp, Suspect
from vit_course.exercises.l10_modern import LESSON, rotary_cases
from vit_course.exercises.l10_modern.rotary_2d.claims import Grid, Pair, oracle


def _described(functions: Sequence[Candidate]) -> list[Suspect]:
    return [Suspect(each.__doc__ or "", each) for each in functions]


def _family(functions: Sequence[Candidate]) -> Family:
    return lambda probe: _described(functions)


LINE_UP = LineUp(
    "a rotate",
    "your own rotary_2d",
    _described(rotary_cases.RIGHT),
    {name: _family(functions) for name, functions in rotary_cases.WRONG.items()},
    lambda function: function,
)

is_rotary = Exercise("is_rotary", LESSON, in_training=InTraining.UNSEEN)


@is_rotary.check(guard=True)
def right_rotations_pass(student: Student, probe: Probe) -> None:
    """Right rotary positions pass, whatever is left free in them."""
    LINE_UP.expect_right_passes(student, probe)


@is_rotary.check(needs=right_rotations_pass)
def it_catches_what_comes_back_wrong(student: Student, probe: Probe) -> None:
    """It catches a query and a key that trade places, or come back in another shape."""
    look = "How do you know which of the two tensors is the query, and which shape it should have?"
    LINE_UP.expect_caught(student, probe, "returned", look)


@is_rotary.check(needs=right_rotations_pass)
def it_catches_queries_and_keys_that_disagree(student: Student, probe: Probe) -> None:
    """It catches queries and keys that are not rotated by the same rule."""
    look = "Query and key move by the same number of rows and columns: what becomes of their dot product?"
    LINE_UP.expect_caught(student, probe, "disagreeing", look)


@is_rotary.check(needs=right_rotations_pass)
def it_catches_an_axis_that_does_not_count(student: Student, probe: Probe) -> None:
    """It catches rotations that ignore the row or the column."""
    LINE_UP.expect_caught(
        student, probe, "one axis", "What has to change when a patch moves one row down, or one column on?"
    )


@is_rotary.check(needs=right_rotations_pass)
def it_catches_rows_and_columns_taken_together(student: Student, probe: Probe) -> None:
    """It catches rows and columns that turn the same numbers."""
    look = "Which numbers does a step down turn, which ones a step to the right, and may a number be among both?"
    LINE_UP.expect_caught(student, probe, "together", look)


@is_rotary.check(needs=right_rotations_pass)
def it_catches_patches_at_other_places(student: Student, probe: Probe) -> None:
    """It catches patches that are taken to be at another row or column."""
    look = "Are there tokens in front of your patches, and could rows and columns of your grid trade places unseen?"
    LINE_UP.expect_caught(student, probe, "places", look)


@is_rotary.check(needs=right_rotations_pass)
def it_catches_positions_that_are_added(student: Student, probe: Probe) -> None:
    """It catches positions that are added instead of rotated."""
    look = "Which dot products stay the same after a rotation, and not after an addition?"
    LINE_UP.expect_caught(student, probe, "added", look)


@is_rotary.check(needs=right_rotations_pass)
def it_catches_other_lengths(student: Student, probe: Probe) -> None:
    """It catches tokens that come back longer or shorter."""
    LINE_UP.expect_caught(student, probe, "lengths", "What does a rotation never change about a vector?")


@is_rotary.check(needs=right_rotations_pass)
def it_catches_pairs_of_one_speed(student: Student, probe: Probe) -> None:
    """It catches pairs of one half that turn at the same speed, or not at all."""
    look = "Which query, all zeros but for one number, shows how far its pair has turned?"
    LINE_UP.expect_caught(student, probe, "speeds", look)


@is_rotary.check(needs=right_rotations_pass)
def it_catches_another_start(student: Student, probe: Probe) -> None:
    """It catches tokens that are rotated where they should stay as they are."""
    LINE_UP.expect_caught(
        student, probe, "start", "By which angle do tokens turn that have no place, or are at row 0, column 0?"
    )


@is_rotary.check(needs=right_rotations_pass)
def it_catches_mixed_images(student: Student, probe: Probe) -> None:
    """It catches images of a batch that get mixed, or are not rotated alike."""
    LINE_UP.expect_caught(
        student, probe, "images", "Does an image come back as it does alone, whatever its place in the batch?"
    )


@is_rotary.check(needs=right_rotations_pass)
def it_catches_uneven_steps(student: Student, probe: Probe) -> None:
    """It catches angles that do not grow by the same amount with each row, or with each column."""
    look = "Is a step from row 0 to row 1 the same as one from row 1 to row 2, and how is it with columns?"
    LINE_UP.expect_caught(student, probe, "uneven", look)


is_rotary.example("""
>>> is_rotary(lambda query, key, grid_size: (query, key))  # nothing is rotated
False
""")


Rotate = Callable[[Tensor, Tensor, Grid], Pair]
TEST = "10_modern, A test for rotations"


def _near(first: Tensor, second: Tensor) -> bool:
    return torch.allclose(first, second, atol=1e-4)


def _same_everywhere(images: int, tokens: int, head_dim: int) -> Tensor:
    """(2, images, 3, tokens, head_dim): a query and a key for each image and head, the same for all its tokens."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(2, images, 3, 1, head_dim, generator=generator).expand(-1, -1, -1, tokens, -1)


def _cosines(rotate: Rotate, grid_size: Grid, head_dim: int) -> list[Tensor]:
    """How far each number turns in a step down, and in a step to the right: two of (head_dim,)."""
    axes = torch.eye(head_dim)[:, None].expand(-1, grid_size[0] * grid_size[1], -1)
    turned, _ = rotate(axes, axes, grid_size)
    return [F.cosine_similarity(turned[:, 0], turned[:, patch], dim=-1) for patch in (grid_size[1], 1)]


def _facts(
    rotate: Rotate, images: int = 2, in_front: int = 1, grid: Grid = (3, 5), head_dim: int = 8, one: bool = False
) -> dict[str, bool]:
    """What holds of ``rotate``; with ``one`` the query is the key too."""
    query, key = _same_everywhere(images, in_front + grid[0] * grid[1], head_dim)
    given = [query, query if one else key]
    found = rotate(given[0], given[1], grid)
    if [each.shape for each in found] != [query.shape, query.shape]:
        return {"shapes": False}
    patches = [each[..., in_front:, :] for each in found]
    scores = (patches[0] @ patches[1].mT).unflatten(-1, grid).unflatten(-3, grid)
    alone = rotate(given[0][-1:], given[1][-1:], grid)
    down, right = _cosines(rotate, grid, head_dim)
    start = [each[..., : in_front + 1, :] for each in (*found, *given)]
    return {
        "lengths": all(
            _near(each.norm(dim=-1), before.norm(dim=-1)) for each, before in zip(found, given, strict=True)
        ),
        "start": _near(start[0], start[2]) and _near(start[1], start[3]),
        "rows": _near(scores[..., 1:, :, 1:, :], scores[..., :-1, :, :-1, :]),
        "columns": _near(scores[..., 1:, :, 1:], scores[..., :-1, :, :-1]),
        "apart": torch.equal(down > 0.9999, right < 0.9999),
        "speeds": all((each.sort().values.diff() > 1e-3).sum() == head_dim // 4 for each in (down, right)),
        "images": all(_near(each, other[-1:]) for each, other in zip(alone, found, strict=True)),
    }


def _all_but(left_out: Sequence[str], facts: dict[str, bool]) -> bool:
    return all(holds for name, holds in facts.items() if name not in left_out)


@is_rotary.misconception("For which wrong rotate does your test return False?", TEST)
def never_says_no(rotate: Rotate) -> bool:
    """The test returns True for everything."""
    return True


@is_rotary.misconception("Which of your facts does your own rotary_2d fail, and by how much?", TEST)
def never_says_yes(rotate: Rotate) -> bool:
    """The test returned False for everything, right or wrong: a fact is wrong, or too strict."""
    return False


@is_rotary.misconception("What do your `return` lines say when a fact holds: True or False?", TEST)
def answer_turned_round(rotate: Rotate) -> bool:
    """The test returns True for wrong rotations and False for right ones."""
    return not all(_facts(rotate).values())


@is_rotary.misconception("What should is_rotary give back when a fact does not hold?", TEST)
def asserts_where_it_should_answer(rotate: Rotate) -> bool:
    """The test stops with an AssertionError where it should return False."""
    assert all(_facts(rotate).values()), "these are no rotary positions"
    return True


@is_rotary.misconception("Do 0.1 + 0.2 and 0.3 agree to the last digit in a computer?", TEST)
def compared_to_the_last_digit(rotate: Rotate) -> bool:
    """The test asks for exact equality, but right answers differ in their last digits."""
    query, key = _same_everywhere(2, 16, 8)
    found = rotate(query, key, (3, 5))
    return all(_facts(rotate).values()) and torch.equal(found[0][..., 1, :], query[..., 1, :])


@is_rotary.misconception("Which of its numbers would be others if a right rotate turned the other way round?", TEST)
def compared_with_one_rotation(rotate: Rotate) -> bool:
    """The test compares with the numbers of one rotary_2d, so it refuses every other pairing, direction and speed."""
    query, key = _same_everywhere(2, 16, 8)
    found = rotate(query, key, (3, 5))
    if [each.shape for each in found] != [query.shape, key.shape]:
        return False
    return all(_near(each, right) for each, right in zip(found, oracle(query, key, (3, 5)), strict=True))


@is_rotary.misconception("Which two numbers make a pair: does is_rotary say so?", TEST)
def neighbors_for_pairs(rotate: Rotate) -> bool:
    """The test wants neighboring numbers to be pairs, but a rotate may pair others."""
    query, key = _same_everywhere(2, 16, 8)
    found, _ = rotate(query, key, (3, 5))
    if found.shape != query.shape:
        return False
    lengths, before = (each.unflatten(-1, (-1, 2)).norm(dim=-1) for each in (found, query))
    return all(_facts(rotate).values()) and _near(lengths, before)


@is_rotary.misconception("Which half turns by the row: does is_rotary say so?", TEST)
def rows_in_the_first_half(rotate: Rotate) -> bool:
    """The test wants the first half to turn by the row, but a rotate may turn other numbers by it."""
    query, key = _same_everywhere(2, 16, 8)
    found, _ = rotate(query, key, (3, 5))
    return all(_facts(rotate).values()) and _near(found[..., :6, :4], query[..., :6, :4])


@is_rotary.misconception("By which angle is the patch at row 0 and column 0 turned?", TEST)
def every_patch_has_to_turn(rotate: Rotate) -> bool:
    """The test wants every patch to change, but the one at row 0 and column 0 turns by an angle of 0."""
    facts = _facts(rotate)
    return _all_but(["start"], facts) and not facts.get("start", True)


@is_rotary.misconception("Can two tensors of one shape hold different numbers?", TEST)
def shapes_only(rotate: Rotate) -> bool:
    """The test looks at the shapes and never at a number."""
    query, key = _same_everywhere(2, 16, 8)
    return [each.shape for each in rotate(query, key, (3, 5))] == [query.shape, key.shape]


@is_rotary.misconception("Which functions keep the length of a vector and are no rotary positions?", TEST)
def lengths_only(rotate: Rotate) -> bool:
    """The test asks whether all lengths are kept, which holds for every rotation, whatever its angle."""
    return _facts(rotate).get("lengths", False)


@is_rotary.misconception("In which directions can query and key move together?", TEST)
def moved_down_only(rotate: Rotate) -> bool:
    """The test moves query and key down together, and never to the right."""
    return _all_but(["columns"], _facts(rotate))


@is_rotary.misconception("In which directions can query and key move together?", TEST)
def moved_to_the_right_only(rotate: Rotate) -> bool:
    """The test moves query and key to the right together, and never down."""
    return _all_but(["rows"], _facts(rotate))


@is_rotary.misconception("Does anything in your test say that dot products have to differ?", TEST)
def nothing_has_to_change(rotate: Rotate) -> bool:
    """All that is tested holds where nothing is rotated too: what stays the same is asked for, and no difference."""
    return _all_but(["apart", "speeds"], _facts(rotate))


@is_rotary.misconception("May one and the same number turn by the row and by the column?", TEST)
def rows_and_columns_not_taken_apart(rotate: Rotate) -> bool:
    """The test never asks whether other numbers turn by the row than by the column."""
    return _all_but(["apart"], _facts(rotate))


@is_rotary.misconception("How could you see at which speed one single pair turns?", TEST)
def speeds_not_looked_at(rotate: Rotate) -> bool:
    """The test never asks whether the pairs turn at different speeds."""
    return _all_but(["speeds"], _facts(rotate))


@is_rotary.misconception("How many pairs has each half, if head_dim is 4?", TEST)
def one_pair_in_each_half(rotate: Rotate) -> bool:
    """Every test has a head_dim of 4, so each half has one pair, and one speed."""
    return all(_facts(rotate, head_dim=4).values())


@is_rotary.misconception("What does a rotation never change about a vector?", TEST)
def lengths_not_looked_at(rotate: Rotate) -> bool:
    """The test never asks whether tokens keep their lengths."""
    return _all_but(["lengths"], _facts(rotate))


@is_rotary.misconception("Which tokens should come back as they went in?", TEST)
def start_not_looked_at(rotate: Rotate) -> bool:
    """The test never asks which tokens stay as they are: those in front of the patches, and the first patch."""
    return _all_but(["start"], _facts(rotate))


@is_rotary.misconception("Which tokens can stand in front of the patches?", TEST)
def no_token_in_front(rotate: Rotate) -> bool:
    """All tokens of the test are patches, so it cannot see what happens to a class token."""
    return all(_facts(rotate, in_front=0).values())


@is_rotary.misconception("In a square grid, can you tell rows from columns?", TEST)
def a_square_grid(rotate: Rotate) -> bool:
    """The grid of the test has as many rows as columns, so the two can trade places unseen."""
    return all(_facts(rotate, grid=(4, 4)).values())


@is_rotary.misconception("How many steps down can two patches take together in a grid of two rows?", TEST)
def two_rows_and_two_columns(rotate: Rotate) -> bool:
    """The grid of the test has two rows and two columns, too few to compare one step with the next."""
    return all(_facts(rotate, grid=(2, 2)).values())


@is_rotary.misconception("Does an image come back in a batch as it does alone?", TEST)
def images_not_looked_at(rotate: Rotate) -> bool:
    """The test never asks whether an image comes back in a batch as it does alone."""
    return _all_but(["images"], _facts(rotate))


@is_rotary.misconception("How would you notice that two images were mixed up?", TEST)
def one_image(rotate: Rotate) -> bool:
    """The test tries a single image, so it cannot see what happens between the images of a batch."""
    return all(_facts(rotate, images=1).values())


@is_rotary.misconception("Could a test notice that query and key were swapped when they are the same tensor?", TEST)
def query_is_key(rotate: Rotate) -> bool:
    """One tensor is query and key, so the test cannot show which of the two comes back first."""
    return all(_facts(rotate, one=True).values())


@is_rotary.misconception("rotate gives two tensors. Where does your test read the second?", TEST)
def key_not_looked_at(rotate: Rotate) -> bool:
    """The test looks at the query that comes back and never at the key."""

    def query_twice(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
        found, _ = rotate(query, key, grid_size)
        return found, found

    return all(_facts(query_twice, one=True).values())
