"""Pictures of a run: what they show, and that they touch nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from tests.course.figures_drawn import expect_drawn
from vit_course.metrics import Confusion
from vit_course.plots_training import plot_runs, show_confusions
from vit_course.training import History

CLASSES = ("cat", "dog", "ship")
MATRIX = torch.tensor([[8, 2, 0], [1, 9, 0], [0, 0, 10]])
WORST = [Confusion(0, 1, 2, 0.2, (3, 1)), Confusion(1, 0, 1, 0.1, (2,))]
IMAGES = torch.randint(0, 256, (4, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def make_history(*validation: float) -> History:
    history = History()
    history.train_loss = [2 * value for value in validation]
    history.validation_loss = list(validation)
    history.train_accuracy = history.validation_accuracy = [1 - value / 10 for value in validation]
    return history


DRAW = {
    "one run": lambda: plot_runs([make_history(2.0, 1.0)], "a run"),
    "three runs": lambda: plot_runs([make_history(2.0, 1.0), make_history(2.2, 1.4, 1.0), make_history(1.9, 0.9)]),
    "confusions": lambda: show_confusions(MATRIX, CLASSES, WORST, IMAGES),
    "no mistakes": lambda: show_confusions(torch.eye(3) * 5, CLASSES, [], IMAGES),
    "many classes": lambda: show_confusions(torch.ones(100, 100), [str(i) for i in range(100)], WORST, IMAGES),
}


@pytest.mark.parametrize("name", DRAW)
def test_a_figure_is_drawn_for_a_notebook_and_no_global_state_changes(name: str) -> None:
    expect_drawn(DRAW[name])


def read_drawn_lines(figure: Figure, axes: int) -> list[list[float]]:
    return [line.get_ydata().tolist() for line in figure.axes[axes].lines]


def test_several_runs_are_drawn_as_their_mean_as_far_as_the_shortest_goes() -> None:
    train, validation = read_drawn_lines(DRAW["three runs"](), 0)
    assert validation == pytest.approx([(2.0 + 2.2 + 1.9) / 3, (1.0 + 1.4 + 0.9) / 3])
    assert train == pytest.approx([2 * value for value in validation])


def test_the_band_reaches_from_the_least_to_the_most() -> None:
    figure = DRAW["three runs"]()
    heights = figure.axes[0].collections[1].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((0.9, 2.2))
    assert not DRAW["one run"]().axes[0].collections


def test_accuracy_is_shown_in_percent() -> None:
    figure = DRAW["one run"]()
    assert read_drawn_lines(figure, 1)[1] == pytest.approx([80, 90])
    assert "90.0 %" in figure.axes[1].get_title()


def test_runs_without_an_epoch_are_refused() -> None:
    with pytest.raises(ValueError, match="no epoch"):
        plot_runs([History()])
    with pytest.raises(ValueError, match="no epoch"):
        plot_runs([])


def test_the_matrix_shows_mistakes_and_leaves_the_diagonal_blank() -> None:
    drawn = np.ma.filled(DRAW["confusions"]().axes[0].images[0].get_array(), np.nan)
    assert np.isnan(np.diagonal(drawn)).all()
    assert drawn[0, 1] == 2


def test_each_confusion_has_its_pictures_and_says_what_it_is() -> None:
    figure = DRAW["confusions"]()
    pictures = [axes for axes in figure.axes if axes.images and axes.images[0].get_array().shape == (8, 8, 3)]
    assert len(pictures) == 3
    rows = figure.subfigs[1].subfigs
    assert [row.get_suptitle() for row in rows] == ["cat taken for dog: 2 (20.0%)", "dog taken for cat: 1 (10.0%)"]
    first = IMAGES[3].permute(1, 2, 0) / 255
    assert np.allclose(pictures[0].images[0].get_array(), first.numpy())


def test_another_number_of_names_is_refused() -> None:
    with pytest.raises(ValueError, match="2 names"):
        show_confusions(MATRIX, CLASSES[:2], WORST, IMAGES)
