"""Pictures of a training run: curves with bands over seeds, and the mistakes that are left.

Numbers and tensors in, matplotlib figure out, as in `vit_course.plots`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from vit_course import plots
from vit_course.metrics import Confusion
from vit_course.plots import SEQUENTIAL, Curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["plot_runs", "show_confusions"]

MOST_NAMES = 20  # classes that can be named along an axis and still be read


def plot_runs(runs: Sequence[Curves], title: str = "") -> Figure:
    """Loss (left) and accuracy (right) by epoch; with several runs their mean, and a band from least to most.

    Runs of different length (one stopped early) are drawn as far as the shortest goes.

    Args:
        runs: one per seed: losses, and accuracies in [0, 1]; a `vit_course.training.History` will do.
        title: above both.

    Raises:
        ValueError: for no run, or a run without an epoch.
    """
    epochs = min((len(run.validation_loss) for run in runs), default=0)
    if not epochs:
        raise ValueError("there is no epoch to draw")
    figure = plots.new_figure(8.4, 3.4)
    if title:
        figure.suptitle(title, color=plots.INK)
    left, right = figure.subplots(1, 2)
    _draw_mean_curves(left, runs, epochs, "loss", lambda run: (run.train_loss, run.validation_loss))
    _draw_mean_curves(
        right,
        runs,
        epochs,
        "accuracy, %",
        lambda run: (_convert_to_percent(run.train_accuracy), _convert_to_percent(run.validation_accuracy)),
    )
    last = [100 * run.validation_accuracy[epochs - 1] for run in runs]
    seeds = f", mean of {len(runs)} seeds" if len(runs) > 1 else ""
    right.set_title(f"validation at the end: {sum(last) / len(last):.1f} %{seeds}", fontsize=9, color=plots.INK)
    left.legend(frameon=False)
    return figure


def show_confusions(
    matrix: Tensor, classes: Sequence[str], worst: Sequence[Confusion], images: Tensor, per_row: int = 6
) -> Figure:
    """The confusion matrix, and beside it pictures of the worst confusions, the most confident mistakes first.

    Args:
        matrix: (num_classes, num_classes) counts, rows are the true classes. The diagonal is left blank, so that
            the colors tell mistakes apart.
        classes: one name per class.
        worst: what to show in rows beside the matrix, see `vit_course.metrics.worst_confusions`.
        images: (num_images, channels, height, width) uint8, the ones that `worst` points into.
        per_row: the most pictures of one confusion.

    Raises:
        ValueError: when there are not as many names as classes.
    """
    if matrix.shape != (len(classes), len(classes)):
        raise ValueError(f"a matrix {tuple(matrix.shape)} with {len(classes)} names of classes")
    figure = plots.new_figure(11.5, 5.4)
    if not worst:
        _draw_confusion_matrix(figure.subplots(), matrix, classes)
        return figure
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(1.15, 1)).ravel()
    for part in (left, right):
        part.set_facecolor(plots.BACKGROUND)
    _draw_confusion_matrix(left.subplots(), matrix, classes)
    _draw_confused_images(right, classes, worst, images, per_row)
    return figure


def _convert_to_percent(shares: Sequence[float]) -> list[float]:
    return [100 * share for share in shares]


def _draw_mean_curves(
    axes: Axes,
    runs: Sequence[Curves],
    epochs: int,
    name: str,
    pick: Callable[[Curves], tuple[Sequence[float], Sequence[float]]],
) -> None:
    """Mean curves of training and validation, and their bands when there are several runs."""
    parts = [torch.tensor([pick(run)[part][:epochs] for run in runs]) for part in (0, 1)]  # (runs, epochs) each
    plots.draw_curves(axes, parts[0].mean(0).tolist(), parts[1].mean(0).tolist(), name)
    axes.locator_params(axis="x", integer=True, min_n_ticks=1)
    if len(runs) > 1:
        for values, color in zip(parts, (plots.BLUE, plots.ORANGE), strict=True):
            low, high = values.amin(0).tolist(), values.amax(0).tolist()
            axes.fill_between(range(1, epochs + 1), low, high, color=color, alpha=0.2, linewidth=0)


def _draw_confusion_matrix(axes: Axes, matrix: Tensor, classes: Sequence[str]) -> None:
    mistakes = matrix.detach().cpu().double()
    right = mistakes.diagonal().sum().item() / max(1.0, mistakes.sum().item())
    mistakes.fill_diagonal_(torch.nan)
    drawn = axes.imshow(mistakes.numpy(), cmap=SEQUENTIAL, vmin=0, interpolation="nearest")
    axes.set_facecolor(plots.BACKGROUND)
    axes.set(xlabel="taken for", ylabel="class", title=f"{right:.1%} on the diagonal, which is left blank")
    axes.title.set(fontsize=10, color=plots.INK)
    if len(classes) <= MOST_NAMES:
        axes.set_xticks(range(len(classes)), classes, rotation=45, ha="right", fontsize=8)
        axes.set_yticks(range(len(classes)), classes, fontsize=8)
    axes.figure.colorbar(drawn, ax=axes, shrink=0.8, label="images").outline.set_visible(False)


def _draw_confused_images(
    figure: SubFigure, classes: Sequence[str], worst: Sequence[Confusion], images: Tensor, per_row: int
) -> None:
    """One row for each confusion: what it is, and the first `per_row` of its pictures."""
    rows: list[SubFigure] = figure.subfigures(len(worst), 1, squeeze=False).ravel().tolist()
    for confusion, row in zip(worst, rows, strict=True):
        line = row.subplots(1, per_row, squeeze=False)[0]
        shown = confusion.images[:per_row]
        pictures = plots.convert_to_pictures(images[list(shown)].cpu())
        for axes, picture in zip(line, pictures, strict=False):
            plots.draw_picture(axes, picture)
        for axes in line[len(shown) :]:
            axes.set_axis_off()
        pair = f"{classes[confusion.label]} taken for {classes[confusion.guess]}"
        words = f"{pair}: {confusion.count} ({confusion.share:.1%})"
        row.suptitle(words, x=0.01, ha="left", fontsize=8, color=plots.INK)
        row.set_facecolor(plots.BACKGROUND)
