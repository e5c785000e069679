from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from vit_course.positions import add_class_token, sinusoidal_positions, sinusoidal_positions_2d
from vit_course.pretrained import resize_positions

pytestmark = pytest.mark.usefixtures("seeded")


def test_sinusoids_follow_the_formula_written_as_a_loop() -> None:
    num_positions, embed_dim = 50, 6
    expected = torch.zeros(num_positions, embed_dim)
    for position in range(num_positions):
        for pair in range(embed_dim // 2):
            angle = position / 10_000 ** (2 * pair / embed_dim)
            expected[position, 2 * pair] = math.sin(angle)
            expected[position, 2 * pair + 1] = math.cos(angle)
    torch.testing.assert_close(sinusoidal_positions(num_positions, embed_dim), expected, atol=1e-6, rtol=0)


def test_sinusoids_are_exact_far_from_the_start() -> None:
    # angles in float32 would be wrong by 1e-3 here
    last = sinusoidal_positions(100_000, 4)[-1]
    expected = [f(99_999 * rate) for rate in (1.0, 0.01) for f in (math.sin, math.cos)]
    torch.testing.assert_close(last, torch.tensor(expected), atol=1e-6, rtol=0)


def test_the_2d_table_tells_the_row_then_the_column() -> None:
    rows, columns, embed_dim = 3, 5, 8
    table = sinusoidal_positions_2d((rows, columns), embed_dim)
    assert table.shape == (15, 8)
    of_one_axis = sinusoidal_positions(5, 4)
    for row in range(rows):
        for column in range(columns):
            token = table[row * columns + column]
            assert torch.equal(token, torch.cat([of_one_axis[row], of_one_axis[column]]))


def test_tables_are_float32() -> None:
    assert sinusoidal_positions(3, 4).dtype == torch.float32
    assert sinusoidal_positions_2d((2, 3), 4).dtype == torch.float32


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


def test_class_token_gathers_gradient_from_every_image() -> None:
    class_token = torch.zeros(1, 1, 4, requires_grad=True)
    add_class_token(torch.zeros(3, 5, 4), class_token, torch.zeros(1, 6, 4)).sum().backward()
    assert torch.equal(class_token.grad, torch.full((1, 1, 4), 3.0))


@pytest.mark.parametrize(("old", "new"), [((3, 5), (6, 10)), ((4, 4), (7, 3)), ((6, 4), (2, 3)), ((2, 7), (7, 2))])
def test_resizing_equals_timm_without_antialiasing(old: tuple[int, int], new: tuple[int, int]) -> None:
    from timm.layers import resample_abs_pos_embed

    positions = torch.randn(1, 1 + old[0] * old[1], 6)
    theirs = resample_abs_pos_embed(positions, list(new), list(old), num_prefix_tokens=1, antialias=False)
    torch.testing.assert_close(resize_positions(positions, old, new), theirs, atol=1e-6, rtol=0)


def test_the_same_grid_gives_the_same_positions() -> None:
    positions = torch.randn(1, 13, 6)
    torch.testing.assert_close(resize_positions(positions, (3, 4), (3, 4)), positions, atol=1e-6, rtol=0)


def test_the_class_row_is_left_alone() -> None:
    positions = torch.randn(1, 13, 6)
    assert torch.equal(resize_positions(positions, (3, 4), (5, 2))[:, 0], positions[:, 0])


def test_rows_stay_rows() -> None:
    pattern = torch.arange(3.0)[:, None].expand(3, 4).reshape(1, 12, 1)
    positions = torch.cat([torch.zeros(1, 1, 1), pattern], dim=1)
    grid = resize_positions(positions, (3, 4), (6, 2))[0, 1:, 0].reshape(6, 2)
    assert torch.allclose(grid[:, 0], grid[:, 1])
    assert bool((grid[1:, 0] > grid[:-1, 0]).all())


def test_positions_with_no_or_with_many_leading_rows_resize_one_by_one() -> None:
    many = torch.randn(2, 13, 6)
    resized = resize_positions(many, (3, 4), (5, 2))
    assert resized.shape == (2, 11, 6)
    for one, expected in zip(many, resized, strict=True):
        assert torch.equal(resize_positions(one, (3, 4), (5, 2)), expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_resizing_keeps_the_dtype_and_takes_strided_input(dtype: torch.dtype) -> None:
    positions = torch.randn(1, 6, 13).to(dtype).transpose(1, 2)
    resized = resize_positions(positions, (3, 4), (6, 4))
    assert resized.dtype == dtype
    assert resized.shape == (1, 25, 6)
