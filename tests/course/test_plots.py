from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from torch import Tensor

from tests.course.figures_drawn import expect_drawn, make_random_rgb, read_drawn_array
from vit_course import plots
from vit_course.training import History


def make_attention_weights(batch: int, num_heads: int, tokens: int) -> Tensor:
    return torch.rand(batch, num_heads, tokens, tokens).softmax(-1)


HISTORY = History([2.0, 1.0], [0.3, 0.6], [1.9, 1.2], [0.4, 0.55], [1.0, 1.0])
DRAW: dict[str, Callable[[], Figure]] = {
    "images": lambda: plots.show_images(make_random_rgb(5), list("abcde"), columns=3),
    "patches": lambda: plots.show_patches(torch.rand(6, 12), (2, 3)),
    "matrix": lambda: plots.show_matrix(torch.randn(4, 6), "query", "key"),
    "history": lambda: plots.plot_history(HISTORY),
    "attention": lambda: plots.show_attention(
        make_random_rgb(2), make_attention_weights(2, 3, 7), (2, 3), ["cat", "dog"]
    ),
    "similarity": lambda: plots.show_position_similarity(torch.randn(1, 7, 8), (2, 3)),
}


@pytest.mark.parametrize("name", DRAW)
def test_a_figure_is_drawn_for_a_notebook_and_no_global_state_changes(name: str) -> None:
    expect_drawn(DRAW[name])


def test_importing_the_plots_imports_no_matplotlib() -> None:
    code = "import sys, vit_course.plots, vit_course.plots_attention; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestImages:
    def test_pixels_are_drawn_as_they_are(self) -> None:
        images = (make_random_rgb(2) * 255).to(torch.uint8)
        figure = plots.show_images(images)
        assert np.allclose(read_drawn_array(figure, 1), images[1].permute(1, 2, 0) / 255)

    def test_one_gray_image_is_a_batch_of_one(self) -> None:
        picture = read_drawn_array(plots.show_images(torch.full((1, 4, 6), 0.25)))
        assert picture.shape == (4, 6, 3)
        assert np.allclose(picture, 0.25)

    def test_empty_places_of_the_grid_stay_empty(self) -> None:
        figure = DRAW["images"]()
        assert [axes.get_title() for axes in figure.axes if axes.get_visible()] == list("abcde")


class TestPatches:
    def test_tokens_are_laid_row_by_row_with_gaps(self) -> None:
        patches = torch.arange(6)[:, None].expand(6, 3 * 4) / 10  # token number over ten in every pixel
        picture = read_drawn_array(plots.show_patches(patches, (2, 3)))
        assert picture.shape == (5, 8, 4)  # 2 and 3 patches of side 2, gaps of one
        assert np.allclose(picture[::3, ::3, 0], [[0.0, 0.1, 0.2], [0.3, 0.4, 0.5]])
        assert (picture[2, :, 3] == 0).all()  # the gap is transparent
        assert (picture[:, 2, 3] == 0).all()

    def test_inside_a_token_channels_come_first(self) -> None:
        patch = torch.arange(12).view(1, 12) / 12
        picture = read_drawn_array(plots.show_patches(patch, (1, 1)))
        assert np.allclose(picture[..., :3] * 12, torch.arange(12).view(3, 2, 2).permute(1, 2, 0))

    def test_up_to_64_are_numbered(self) -> None:
        assert [text.get_text() for text in DRAW["patches"]().axes[0].texts] == list("012345")
        assert not plots.show_patches(torch.rand(65, 4), (5, 13), channels=1).axes[0].texts


class TestMatrix:
    def test_axes_are_named_and_small_ones_are_written_out(self) -> None:
        axes = plots.show_matrix(torch.tensor([[1, 2, 3], [4, 5, 6]]), "query", "key", "scores").axes[0]
        assert (axes.get_ylabel(), axes.get_xlabel(), axes.get_title()) == ("query", "key", "scores")
        assert [text.get_text() for text in axes.texts] == list("123456")

    def test_zero_is_white_when_there_are_negative_numbers(self) -> None:
        image = plots.show_matrix(torch.tensor([[-1.0, 0.0], [0.5, 3.0]]), "row", "column").axes[0].images[0]
        assert image.get_clim() == (-3, 3)
        assert min(image.to_rgba(0.0)[:3]) > 0.95

    def test_a_gradient_does_not_matter(self) -> None:
        plots.show_matrix(torch.rand(3, 3, requires_grad=True), "row", "column")


def test_history_tells_the_best_epoch() -> None:
    loss, accuracy = DRAW["history"]().axes
    assert [list(line.get_ydata()) for line in loss.lines] == [[2.0, 1.0], [1.9, 1.2]]
    assert accuracy.get_title() == "validation: 55.0 % after epoch 2"


class TestAttention:
    @pytest.mark.parametrize("class_token", [True, False])
    def test_light_falls_where_the_head_looks(self, class_token: bool) -> None:
        weights = torch.zeros(2, 6 + class_token, 6 + class_token)  # a grid of 2 by 3, two heads
        weights[0, :, class_token + 2] = 1  # every query looks at the patch top right
        weights[1, :, class_token + 3] = 1  # or bottom left
        figure = plots.show_attention(torch.full((3, 20, 30), 0.5), weights, (2, 3))
        saturation = [
            picture.max(-1) - picture.min(-1) for picture in (read_drawn_array(figure, 1), read_drawn_array(figure, 2))
        ]
        assert saturation[0][5, 25] > 0.5
        assert saturation[1][15, 5] > 0.5
        assert saturation[0][15, 5] == pytest.approx(0, abs=1e-6)

    def test_the_class_tokens_own_share_is_left_out(self) -> None:
        weights = torch.full((1, 5, 5), 0.001)
        weights[:, :, 0] = 0.996
        figure = plots.show_attention(torch.zeros(3, 4, 4), weights, (2, 2))
        assert np.ptp(read_drawn_array(figure, 1), axis=(0, 1)).max() < 1e-6


class TestPositionSimilarity:
    def test_each_small_map_is_the_similarity_of_its_patch(self) -> None:
        positions = torch.randn(1, 7, 8)
        picture = read_drawn_array(plots.show_position_similarity(positions, (2, 3)))
        patches = positions[0, 1:].reshape(2, 3, 8)
        expected = torch.cosine_similarity(patches[1, 2], patches, dim=-1)  # (2, 3)
        assert np.allclose(picture[3:5, 8:11], expected, atol=1e-6)  # pitch is 2 + 1 down, 3 + 1 across


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "four channels": (lambda: plots.show_images(torch.rand(2, 4, 5, 5)), "1 or 3 channels"),
    "an image of two axes": (lambda: plots.show_images(torch.rand(5, 5)), "1 or 3 channels"),
    "int64": (lambda: plots.show_images(torch.arange(75).reshape(3, 5, 5)), "uint8 or float, not torch.int64"),
    "not from 0 to 1": (
        lambda: plots.show_images(torch.randn(3, 50, 50)),
        r"must lie in \[0, 1\], but they run from -",
    ),
    "titles": (lambda: plots.show_images(make_random_rgb(2), ["one"]), "1 titles for 2 images"),
    "tokens and grid": (lambda: plots.show_patches(torch.rand(5, 12), (2, 3)), r"must be \(6, patch_dim\)"),
    "no square": (lambda: plots.show_patches(torch.rand(6, 13), (2, 3)), "3 channels times a square"),
    "a matrix of three axes": (
        lambda: plots.show_matrix(torch.rand(1, 2, 3), "row", "column"),
        r"must be \(rows, columns\), not \(1, 2, 3\)",
    ),
    "weights and images": (
        lambda: plots.show_attention(make_random_rgb(3), make_attention_weights(2, 2, 7), (2, 3)),
        "weights of 2 images for 3 images",
    ),
    "weights and grid": (
        lambda: plots.show_attention(make_random_rgb(2), make_attention_weights(2, 2, 7), (2, 2)),
        "do not fit a grid of 2 x 2 patches",
    ),
    "positions and grid": (
        lambda: plots.show_position_similarity(torch.randn(5, 8), (2, 3)),
        "5 positions do not fit a grid of 2 x 3 patches",
    ),
}


@pytest.mark.parametrize(("draw", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_said_in_words(draw: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        draw()
