from __future__ import annotations

import math

import pytest
import torch

from vit_course.positions import add_class_token, sinusoidal_positions
from vit_course.pretrained import resize_positions

pytestmark = pytest.mark.usefixtures("seed_torch")


def test_sinusoids_are_exact_far_from_the_start() -> None:
    # angles in float32 would be wrong by 1e-3 here
    last = sinusoidal_positions(100_000, 4)[-1]
    expected = [f(99_999 * rate) for rate in (1.0, 0.01) for f in (math.sin, math.cos)]
    torch.testing.assert_close(last, torch.tensor(expected), atol=1e-6, rtol=0)


@pytest.mark.parametrize("class_shape", [(1, 1, 4), (1, 4), (4,)])
def test_a_class_token_and_positions_may_lack_their_leading_axes(class_shape: tuple[int, ...]) -> None:
    tokens, class_token, positions = torch.randn(3, 5, 4), torch.randn(1, 1, 4), torch.randn(1, 6, 4)
    expected = add_class_token(tokens, class_token, positions)
    assert torch.equal(add_class_token(tokens, class_token.reshape(class_shape), positions[0]), expected)


def test_positions_with_no_or_with_many_leading_rows_resize_one_by_one() -> None:
    many = torch.randn(2, 13, 6)
    resized = resize_positions(many, (3, 4), (5, 2))
    assert resized.shape == (2, 11, 6)
    for one, expected in zip(many, resized, strict=True):
        assert torch.equal(resize_positions(one, (3, 4), (5, 2)), expected)
