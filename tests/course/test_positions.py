from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from vit_course.positions import add_class_token, sinusoidal_positions, sinusoidal_positions_2d
from vit_course.pretrained import resize_positions

pytestmark = pytest.mark.usefixtures("seed_torch")


def test_sinusoids_are_exact_far_from_the_start() -> None:
    # angles in float32 would be wrong by 1e-3 here
    last = sinusoidal_positions(100_000, 4)[-1]
    expected = [f(99_999 * rate) for rate in (1.0, 0.01) for f in (math.sin, math.cos)]
    torch.testing.assert_close(last, torch.tensor(expected), atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sinusoidal_positions(4, 7), "embed_dim 7 is not divisible by 2"),
        (lambda: sinusoidal_positions_2d((2, 2), 6), "embed_dim 6 is not divisible by 4"),
        (
            lambda: add_class_token(torch.zeros(2, 5, 4), torch.zeros(1, 1, 4), torch.zeros(1, 5, 4)),
            r"positions has 5 rows, not 1 \+ 5",
        ),
        (lambda: resize_positions(torch.zeros(1, 12, 4), (3, 4), (2, 2)), r"positions has 12 rows, not 1 \+ 3 \* 4"),
    ],
    ids=["sinusoidal", "sinusoidal_2d", "class_token", "resize"],
)
def test_sizes_that_do_not_fit_are_refused_with_both_numbers(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("class_shape", [(1, 1, 4), (1, 4), (4,)])
@pytest.mark.parametrize("positions_shape", [(1, 6, 4), (6, 4)])
def test_class_token_comes_first_and_positions_are_added_to_all(
    batch: int, class_shape: tuple[int, ...], positions_shape: tuple[int, ...]
) -> None:
    tokens, class_token = torch.randn(batch, 5, 4), torch.randn(class_shape)
    positions = torch.randn(positions_shape)
    result = add_class_token(tokens, class_token, positions)
    rows = positions.reshape(6, 4)
    assert result.shape == (batch, 6, 4)
    for image in range(batch):
        assert torch.equal(result[image, 0], class_token.flatten() + rows[0])
        assert torch.equal(result[image, 1:], tokens[image] + rows[1:])


def test_positions_with_no_or_with_many_leading_rows_resize_one_by_one() -> None:
    many = torch.randn(2, 13, 6)
    resized = resize_positions(many, (3, 4), (5, 2))
    assert resized.shape == (2, 11, 6)
    for one, expected in zip(many, resized, strict=True):
        assert torch.equal(resize_positions(one, (3, 4), (5, 2)), expected)


def test_bfloat16_positions_stay_that() -> None:
    positions = torch.randn(1, 13, 6).bfloat16()
    assert resize_positions(positions, (3, 4), (6, 4)).dtype == torch.bfloat16
