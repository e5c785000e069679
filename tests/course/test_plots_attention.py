"""Pictures of attention: what is drawn is what was given, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.image import imread
from torch import Tensor

from tests.course.figures_drawn import expect_drawn, make_random_rgb, read_drawn_array
from vit_course import plots_attention as plots
from vit_course.training import checkpoints
from vit_course.training.checkpoints import CannotWriteError


def make_random_maps(*sizes: int) -> Tensor:
    return torch.rand(*sizes, generator=torch.Generator().manual_seed(1))


DISTANCES = {"trained": [torch.tensor([3.0, 7.0]), torch.tensor([8.0, 9.0])], "fresh": [torch.tensor([8.0, 8.5])] * 2}
DRAW: dict[str, Callable[[], Figure]] = {
    "every head": lambda: plots.show_every_head(
        make_random_rgb(), [make_random_maps(3, 2, 3), make_random_maps(3, 2, 3)]
    ),
    "maps": lambda: plots.show_maps(
        make_random_rgb(),
        {"one": make_random_maps(2, 3), "two": make_random_maps(2, 3), "three": make_random_maps(2, 3)},
        columns=3,
    ),
    "lit": lambda: plots.show_lit(make_random_rgb(4), make_random_maps(4, 2, 3), list("abcd")),
    "distance": lambda: plots.plot_attention_distance(DISTANCES, 8.0, "how far"),
    "filters": lambda: plots.show_filters(torch.randn(5, 3, 4, 4)),
}


@pytest.mark.parametrize("name", DRAW)
def test_a_figure_is_drawn_for_a_notebook_and_no_global_state_changes(name: str) -> None:
    expect_drawn(DRAW[name])


def test_light_falls_where_the_map_says() -> None:
    spot = torch.zeros(2, 3)
    spot[1, 2] = 0.4
    picture = read_drawn_array(plots.show_maps(torch.full((3, 8, 12), 0.5), {"spot": spot}), 1)
    brightness = picture.sum(-1)
    row, column = np.unravel_index(brightness.argmax(), brightness.shape)
    assert row >= 4
    assert column >= 8
    assert brightness[0, 0] < brightness[-1, -1]


def test_each_map_is_scaled_to_its_own_maximum() -> None:
    one = make_random_maps(2, 3)
    figure = plots.show_maps(make_random_rgb(), {"full": one, "tenth": one / 10})
    assert np.allclose(read_drawn_array(figure, 1), read_drawn_array(figure, 2), atol=1e-5)


def test_blocks_are_lines_and_heads_are_columns() -> None:
    figure = DRAW["every head"]()
    assert [axes.get_ylabel() for axes in figure.axes[::4]] == ["block 0", "block 1"]
    assert [axes.get_title() for axes in figure.axes[1:4]] == ["head 0", "head 1", "head 2"]
    first, second = make_random_maps(3, 2, 3), make_random_maps(3, 2, 3) ** 2
    lit = plots.show_every_head(make_random_rgb(), [first, second])
    expected = plots.show_maps(make_random_rgb(), {"": second[1]})
    assert np.allclose(read_drawn_array(lit, 4 + 2), read_drawn_array(expected, 1))


def test_every_head_becomes_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "heads"
    files = plots.save_every_head(
        (255 * make_random_rgb()).byte(), [make_random_maps(3, 2, 3), make_random_maps(3, 2, 3)], folder
    )
    assert [path.name for path in files[:4]] == [f"block_{b}_head_{h}.png" for b, h in ((0, 0), (0, 1), (0, 2), (1, 0))]
    assert sorted(folder.iterdir()) == sorted(files)
    height, width = imread(files[0]).shape[:2]
    assert max(height, width) >= 224
    assert width / height == 12 / 8
    plots.save_every_head(make_random_rgb(), [make_random_maps(3, 2, 3)], folder)  # again, over the old ones


def test_a_folder_that_cannot_be_written_is_a_sentence_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_permission_error(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:  # root may write everywhere
        patched.setattr(Path, "mkdir", raise_permission_error)
        with pytest.raises(
            CannotWriteError, match=r"cannot make the folder .*heads: Permission denied\. Choose"
        ) as why:
            plots.save_every_head(make_random_rgb(), [make_random_maps(3, 2, 3)], tmp_path / "heads")
    assert why.value._render_traceback_() == [str(why.value)]
    monkeypatch.setattr(checkpoints, "write", raise_permission_error)
    with pytest.raises(
        CannotWriteError, match=r"cannot write .*block_0_head_0\.png, .*: Permission denied\. Make room"
    ):
        plots.save_every_head(make_random_rgb(), [make_random_maps(3, 2, 3)], tmp_path / "heads")


def test_distances_of_every_head_are_marked() -> None:
    axes = DRAW["distance"]().axes[0]
    marked = [list(line.get_ydata()) for line in axes.lines]
    assert marked == [[3.0, 7.0], [8.0, 9.0], [8.0, 8.5], [8.0, 8.5], [8.0, 8.0]]
    assert [text.get_text() for text in axes.figure.legends[0].get_texts()] == [
        "trained",
        "fresh",
        "looks everywhere alike",
    ]


def test_zero_is_gray_in_a_filter() -> None:
    filters = torch.zeros(2, 3, 4, 4)
    filters[1, 0, 0, 0] = -7.0
    figure = plots.show_filters(filters)
    assert np.allclose(read_drawn_array(figure, 0), 0.5)
    assert read_drawn_array(figure, 1)[0, 0].tolist() == [0.0, 0.5, 0.5]


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "no block": (lambda: plots.show_every_head(make_random_rgb(), []), "no block to show"),
    "a batch": (lambda: plots.show_maps(make_random_rgb(2), {"": make_random_maps(2, 3)}), "one image"),
    "a map with a batch axis": (
        lambda: plots.show_maps(make_random_rgb(), {"": make_random_maps(1, 2, 3)}),
        "maps must be",
    ),
    "logits": (lambda: plots.show_maps(make_random_rgb(), {"": -make_random_maps(2, 3)}), "shares from 0 to 1"),
    "NaN": (lambda: plots.show_maps(make_random_rgb(), {"": make_random_maps(2, 3) * torch.nan}), "shares from 0 to 1"),
    "titles": (
        lambda: plots.show_lit(make_random_rgb(2), make_random_maps(2, 2, 3), ["a"]),
        "2 images, 2 maps and 1 titles",
    ),
    "models": (lambda: plots.plot_attention_distance({}), "one to three models"),
    "flat filters": (lambda: plots.show_filters(torch.ones(5, 48)), "filters must be"),
}


@pytest.mark.parametrize(("draw", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_said_in_words(draw: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        draw()
