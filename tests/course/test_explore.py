"""The figures of the lessons that can be moved: they draw what they were given, and say what is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.course.figures_drawn import read_drawn_array
from tests.course.test_interactive import split_widget
from vit_course.explore import (
    DIVISORS,
    HEAD_DIMS,
    MEAN,
    PATCH_SIZES,
    SIDE,
    explore_attention,
    explore_patches,
    explore_positions,
    explore_softmax,
)
from vit_course.interactive import Interactive
from vit_course.interpret import attention_rollout
from vit_course.patches import patchify
from vit_course.positions import sinusoidal_positions, sinusoidal_positions_2d


def make_random_tensor(*sizes: int) -> Tensor:
    return torch.rand(*sizes, generator=torch.Generator().manual_seed(0))


def in_strips(images: Tensor, patch_size: int) -> Tensor:
    return images.reshape(1, (SIDE // patch_size) ** 2, 3 * patch_size**2)


@pytest.mark.parametrize("patch_size", PATCH_SIZES)
def test_patches_are_those_of_the_picture_and_the_token_the_one_of_the_pixel(patch_size):
    picture = (255 * make_random_tensor(3, SIDE, SIDE)).to(torch.uint8)
    figure = explore_patches(picture, patchify)
    figure.move(patch_size=patch_size, row=100, column=44)
    row, column = 100 // patch_size, 44 // patch_size
    token = row * (SIDE // patch_size) + column
    assert np.abs(read_drawn_array(figure.figure, 0) - picture.permute(1, 2, 0).numpy().astype(int)).max() <= 1
    inside = read_drawn_array(figure.figure, 0)[row * patch_size :, column * patch_size :][:patch_size, :patch_size]
    assert np.array_equal(read_drawn_array(figure.figure, 1), inside)
    red, green, blue = (line.get_ydata() for line in figure.figure.axes[2].lines)
    assert np.allclose(np.concatenate([red, green, blue]), patchify(picture[None] / 255, patch_size)[0, token])
    assert f"lies in token {token}: patch row {row}, patch column {column}." in figure.sentence
    assert f"= {(SIDE // patch_size) ** 2:,} tokens of {3 * patch_size**2:,} numbers" in figure.sentence


def test_a_wrong_patchify_makes_a_wrong_picture():
    right, wrong = (explore_patches(make_random_tensor(3, SIDE, SIDE), each) for each in (patchify, in_strips))
    assert not np.array_equal(read_drawn_array(right.figure), read_drawn_array(wrong.figure))


def unwritten(images: Tensor, patch_size: int) -> Any:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (unwritten, "is not written"),
        (lambda images, patch_size: None, "patchify gave NoneType for an image of (1, 3, 192, 192); (1, 144, 768)"),
        (lambda images, patch_size: images, "patchify gave (1, 3, 192, 192)"),
        (lambda images, patch_size: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_patchify_that_fails_gets_a_sentence_and_no_traceback(wrong, words):
    figure = explore_patches(make_random_tensor(3, 300, 200), wrong)
    assert words in figure.sentence
    assert figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("sizes", [(3, 1, 1), (1, 8, 8), (3, 40, 500), (3, 500, 1), (3, SIDE, SIDE)])
def test_a_picture_of_any_size_is_cut(sizes):
    figure = explore_patches(make_random_tensor(*sizes), patchify)
    assert read_drawn_array(figure.figure, 0).shape == (SIDE, SIDE, 3)
    assert figure.sentence.startswith("Patches of 16")


def test_what_is_no_picture_is_refused():
    with pytest.raises(ValueError, match="1 or 3 channels"):
        explore_patches(make_random_tensor(4, 8, 8), patchify)


def test_a_map_is_the_similarity_of_the_chosen_position():
    learned = torch.randn(1, 1 + 12, 8, generator=torch.Generator().manual_seed(0))
    tables = {"1-D": sinusoidal_positions(12, 8), "2-D": sinusoidal_positions_2d((3, 4), 8), "learned": learned}
    figure = explore_positions(tables, (3, 4))
    figure.move(row=2, column=1)
    for number, table in enumerate((tables["1-D"], tables["2-D"], learned[0, 1:])):
        expected = F.cosine_similarity(table, table[2 * 4 + 1], dim=-1)
        assert np.allclose(read_drawn_array(figure.figure, number).ravel(), expected, atol=1e-6)
        expected[2 * 4 + 1] = -1
        row, column = divmod(int(expected.argmax()), 4)
        assert f"{list(tables)[number]}: row {row}, column {column} ({expected.max():.2f})" in figure.sentence


def test_a_table_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="mine: 11 positions do not fit a grid of 3 x 4"):
        explore_positions({"mine": torch.zeros(11, 8)}, (3, 4))
    with pytest.raises(ValueError, match="no table"):
        explore_positions({}, (3, 4))


def test_the_weights_are_the_softmax_of_the_scores_that_are_drawn():
    figure = explore_softmax()
    for head_dim in HEAD_DIMS:
        for divisor in DIVISORS:
            figure.move(head_dim=head_dim, divisor=divisor)
            scores, weights = (torch.tensor([bar.get_height() for bar in axes.patches]) for axes in figure.figure.axes)
            assert torch.allclose(scores.softmax(dim=0), weights, atol=1e-5)
            assert scores.abs().max() < figure.figure.axes[0].get_ylim()[1], "a bar leaves the figure"
            assert ("the root of head_dim" in figure.sentence) == (divisor**2 == head_dim)


def test_what_the_lesson_says_of_the_root_is_so():
    figure = explore_softmax()
    for head_dim in HEAD_DIMS:
        figure.move(head_dim=head_dim, divisor=head_dim**0.5)
        assert 0.15 < max(bar.get_height() for bar in figure.figure.axes[1].patches) < 0.35


def make_attention_weights(tokens: int, depth: int = 3, num_heads: int = 2) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(1, num_heads, tokens, tokens, generator=generator).softmax(dim=-1) for _ in range(depth)]


def measure_patch_brightness(figure: Interactive) -> np.ndarray:
    """Return how bright each of 2 x 3 patches of a black picture is, the brightest 1."""
    image = read_drawn_array(figure.figure, 1).astype(float)[..., 0]
    dim = image.reshape(2, image.shape[0] // 2, 3, image.shape[1] // 3).mean(axis=(1, 3))
    return (dim - 25.5) / (dim.max() - 25.5)


@pytest.mark.parametrize("class_tokens", [0, 1])
@pytest.mark.parametrize("head", [MEAN, 1])
@pytest.mark.parametrize("share", [0, 50, 100])
def test_the_light_is_that_of_the_query_block_head_and_share(class_tokens, head, share):
    weights = make_attention_weights(6 + class_tokens)
    figure = explore_attention(torch.zeros(3, 8, 12), weights, (2, 3), attention_rollout)
    figure.move(row=1, column=2, block=1, head=head, share=share)
    raw = weights[1][0].mean(dim=0) if head == MEAN else weights[1][0, head]
    rolled = attention_rollout(weights[:2])[0]
    looks = ((1 - share / 100) * raw + share / 100 * rolled)[class_tokens + 5, class_tokens:]
    assert np.allclose(measure_patch_brightness(figure).ravel(), looks / looks.max(), atol=0.02)
    row, column = divmod(int(looks.argmax()), 3)
    assert figure.sentence.startswith("Query patch row 1, column 2; ")
    assert figure.sentence.endswith(f"It looks most at row {row}, column {column} ({looks.max():.2f}).")


def test_the_class_token_can_ask_where_there_is_one():
    weights = make_attention_weights(7)
    figure = explore_attention(torch.zeros(3, 8, 12), weights, (2, 3), attention_rollout)
    figure.move(query="class token", block=0)
    looks = weights[0][0].mean(dim=0)[0, 1:]
    assert np.allclose(measure_patch_brightness(figure).ravel(), looks / looks.max(), atol=0.02)
    assert figure.sentence.startswith("Query: the class token; block 0")
    (query, row, *_), _, _ = split_widget(figure.widget())
    assert [label for label, _ in query.options] == ["patch", "class token"]
    assert row.disabled
    figure = explore_attention(torch.zeros(3, 8, 12), make_attention_weights(6), (2, 3), attention_rollout)
    (query, row, *_), _, _ = split_widget(figure.widget())
    assert [label for label, _ in query.options] == ["patch"]
    assert not row.disabled


@pytest.mark.parametrize(
    ("rollout", "words"), [(unwritten, "TypeError"), (lambda weights: weights[0], "rollout gave (1, 2, 6, 6)")]
)
def test_a_wrong_rollout_gets_a_sentence_and_raw_attention_stays(rollout, words):
    figure = explore_attention(torch.zeros(3, 8, 12), make_attention_weights(6), (2, 3), rollout)
    assert "It looks most at" in figure.sentence
    figure.move(share=100)
    assert words in figure.sentence
    figure.move(share=0)
    assert "It looks most at" in figure.sentence


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([], "no block"),
        (make_attention_weights(9), r"block 0 are \(1, 2, 9, 9\); for a grid of 2 x 3 patches"),
        ([each[0] for each in make_attention_weights(6)], r"block 0 are \(2, 6, 6\)"),
    ],
)
def test_weights_that_do_not_fit_are_refused(weights, words):
    with pytest.raises(ValueError, match=words):
        explore_attention(torch.zeros(3, 8, 12), weights, (2, 3), attention_rollout)


def test_blocks_may_have_different_numbers_of_heads():
    weights = [make_attention_weights(6, 1, heads)[0] for heads in (1, 4)]
    figure = explore_attention(torch.zeros(3, 8, 12), weights, (2, 3), attention_rollout)
    figure.move(head=3, block=0)
    assert "It looks most at" in figure.sentence
