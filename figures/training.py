"""Figures of lesson 06: the three piles, faulty trainings, the learning-rate finder, early stopping."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from canvas import Canvas
from matplotlib.axes import Axes
from style import BLUE, GRAY, GREEN, INK, ORANGE, POINTS_PER_PIXEL, QUIET, VERMILION, save_all_figures, shade, tint

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results" / "lesson_cifar.json"
PANELS = ("learning rate too high", "no zero_grad", "softmax before the loss")
PANELS += ("sorted by class", "learning rate too low", "few images")
PATIENCE = 3
INVENTED = [2.2, 1.9, 1.7, 1.75, 1.6, 1.5, 1.45, 1.52, 1.49, 1.42, 1.47, 1.56, 1.51]
SMALL = 12 * POINTS_PER_PIXEL


def read_results() -> dict[str, Any]:
    """The log that benchmarks/lesson_cifar.py has written."""
    log: dict[str, Any] = json.loads(RESULTS.read_text())
    return log


def list_runs_of_arm(log: dict[str, Any], arm: str) -> list[dict[str, list[float]]]:
    """All seeds of an arm."""
    return list(log["results"][arm].values())


def three_piles() -> Canvas:
    """Which images may be looked at when."""
    canvas = Canvas(356, "Three piles, three rules", "CIFAR-10: 50,000 images to work with, 10,000 under seal.")
    piles = [
        (45_000, "train", BLUE, "at every step", "to learn from", "weights, mean, std"),
        (5_000, "validation", ORANGE, "after every epoch", "to choose by", "rate, size, the end"),
        (10_000, "test", GREEN, "once, at the end", "to judge by", "nothing at all"),
    ]
    x = 24.0
    columns = (44, 184, 308)
    for column, words in zip(columns, ("seen", "for", "decides"), strict=True):
        canvas.text(column, 164, words, 12, QUIET)
    for level, (count, name, color, *rules) in enumerate(piles):
        width, y = 420 * count / 60_000, 194 + 54 * level
        canvas.box(x, 92, width, 46, tint(color, 0.75), color, radius=4)
        x += width + 6
        canvas.box(24, y - 6, 12, 30, tint(color, 0.75), color, radius=3)
        canvas.text(44, y, f"{name}: {count:,}", 14, shade(color), weight="bold")
        for column, words in zip(columns, rules, strict=True):
            canvas.text(column, y + 22, words, 12.5)
    return canvas.describe(
        "Three piles of images: 45,000 to train, seen at every step; 5,000 to validate, seen after every epoch to "
        "choose by; 10,000 to test, seen once at the end.",
        """A bar cut in three. 45,000 training images are seen at every step and decide weights, mean and
        deviation. 5,000 validation images are seen after every epoch and decide what is chosen: learning rate,
        sizes, when to stop. 10,000 test images are seen once, at the end, and decide nothing: they judge.""",
    )


def smooth_losses(losses: list[float], width: int = 5) -> np.ndarray:
    """Means over `width` neighboring steps."""
    return np.convolve(losses, np.ones(width) / width, mode="valid")


def sick_curves() -> Canvas:
    """Six wrong trainings, each over a correct one."""
    curves = read_results()["curves"]
    subtitle = "Loss of a small ViT on CIFAR-10, 300 steps.\nDashed: the same correct training in each."
    canvas = Canvas(694, "Six faulty trainings:\nwhat is wrong with each?", subtitle)
    for number, name in enumerate(PANELS):
        row, column = divmod(number, 2)
        x, y = 44 + 222 * column, 128 + 186 * row
        axes = canvas.plot_area(x, y, 190, 150)
        axes.plot(smooth_losses(curves["healthy"]["loss"]), color=GRAY, linewidth=1.2, dashes=(3, 2))
        axes.plot(smooth_losses(curves[name]["loss"]), color=BLUE, linewidth=1.5)
        dots = curves[name]["validation_loss"]
        places = np.linspace(300 / len(dots), 300, len(dots))
        axes.plot(places, dots, "o", color=ORANGE, markersize=3.5, markeredgecolor=shade(ORANGE), markeredgewidth=0.5)
        axes.set(xlim=(0, 308), ylim=(0, 4.2), xticks=(0, 100, 200, 300), yticks=(0, 1, 2, 3, 4))
        canvas.text(x + 10, y + 14, "ABCDEF"[number], 18, weight="bold")
        if not number:
            write_curve_label(axes, 150, 3.05, "training", BLUE)
            write_curve_label(axes, 150, 2.52, "validation", shade(ORANGE))
            write_curve_label(axes, 150, 1.08, "correct", QUIET)
    canvas.text(456, 674, "step", 12, QUIET, align="right")
    ends = "; ".join(
        f"{letter} {np.mean(curves[name]['loss'][-30:]):.2f} and {curves[name]['validation_loss'][-1]:.2f}"
        for letter, name in zip("ABCDEF", PANELS, strict=True)
    )
    return canvas.describe(
        "Six panels, A to F, each with the training loss of a faulty run in blue, its validation loss as orange dots, "
        "and a correct run in dashed gray.",
        f"""Six panels of loss against 300 steps, each over the same correct run, which falls from 2.3 to
        {np.mean(curves["healthy"]["loss"][-30:]):.2f}. A shoots up in the first steps, then stays on a high plateau.
        B sinks a little, then climbs and shakes. C sinks slowly along a high line. D goes up and down like a saw, and
        its dots climb.
        E sinks very slowly in a straight line. F falls to zero while its orange dots climb out of sight. Training
        loss over the last 30 steps, and validation loss at the end: {ends}. The causes are in the lesson, folded.""",
    )


def rate_finder() -> Canvas:
    """Loss against a rising learning rate, in three zones."""
    log = read_results()
    rates, losses = (np.array(log["finder"][name]) for name in ("learning_rate", "loss"))
    peak = log["training"]["learning_rate"]
    canvas = Canvas(366, "The learning-rate finder", "100 steps, the rate of each 1.12 times that of the one before.")
    axes = canvas.plot_area(52, 94, 404, 208)
    axes.axvspan(peak / 2, peak * 2, color=tint(GREEN, 0.16), zorder=0)
    axes.plot(rates, losses, color=tint(BLUE, 0.45), linewidth=1)
    axes.plot(rates[2:-2], smooth_losses(list(losses)), color=BLUE, linewidth=2)
    axes.set(xscale="log", xlim=(rates[0], rates[-1]), ylim=(1.6, 3.4), yticks=(1.6, 2, 2.4, 2.8, 3.2))
    axes.minorticks_off()
    axes.set_xticks(10.0 ** np.arange(-5, 1), ("1e-5", "1e-4", "1e-3", "1e-2", "0.1", "1"))
    axes.tick_params(axis="x", pad=6)
    for x, y, words, color in (
        (8e-5, 2.62, "too little\nhappens", QUIET),
        (peak, 2.62, "take it\nfrom here", shade(GREEN)),
        (1.4e-1, 2.95, "the wall", shade(VERMILION, 0.2)),
    ):
        axes.text(x, y, words, color=color, size=13 * POINTS_PER_PIXEL, weight="bold", ha="center")
    canvas.text(254, 344, "learning rate", 13, align="center")
    canvas.text(24, 78, "training loss", 12, QUIET)
    lowest = rates[2:-2][smooth_losses(list(losses)).argmin()]
    return canvas.describe(
        "The loss of 100 steps against a rising learning rate: flat, then falling, then a wall; a band marks where to "
        "take the peak rate.",
        f"""Training loss of 100 steps against the learning rate, from 1e-5 to 1 on a logarithmic axis. On the left
        the loss stays near 2.3, in the middle it falls, it is lowest near {lowest:.0e}, and on the right it climbs
        like a wall. A green band from {peak / 2:.0e} to {peak * 2:.0e}, left of the lowest point, is where the peak
        rate is taken from.""",
    )


def count_epochs_since_best(losses: list[float]) -> list[int]:
    """Epochs since the last new best, after each epoch."""
    best, counts = math.inf, []
    for loss in losses:
        counts.append(0 if loss < best else counts[-1] + 1)
        best = min(best, loss)
    return counts


def draw_count_of_bad_epochs(validation: list[float], title: str, subtitle: str) -> tuple[Canvas, Axes, int]:
    """Validation loss by epoch, the count that early stopping keeps under each epoch, and the epoch where it stops."""
    counts, last = count_epochs_since_best(validation), len(validation)
    stop = counts.index(PATIENCE) + 1
    best = stop - PATIENCE
    canvas = Canvas(392, title, subtitle)
    axes = canvas.plot_area(52, 92, 404, 200)
    epochs = range(1, last + 1)
    axes.plot(epochs, validation, "o-", color=ORANGE, markersize=3.5)
    axes.axvline(stop, color=VERMILION, linewidth=1.4)
    axes.plot([best], [validation[best - 1]], "o", color="none", markeredgecolor=INK, markersize=10)
    axes.set(xlim=(0.3, last + 0.7), xticks=[])
    canvas.text(24, 78, "loss", 12, QUIET)
    for epoch, count in zip(epochs, counts, strict=True):
        if epoch > stop and epoch % 3:
            continue  # two digits have no room at each of thirty epochs
        x = 52 + 404 * (epoch - 0.3) / (last + 0.4)
        color = VERMILION if epoch == stop else INK if epoch < stop else GRAY
        canvas.text(x, 312, f"{epoch}", 12, QUIET, align="center")
        canvas.text(x, 342, f"{count}", 12.5, color, align="center", weight="bold" if epoch <= stop else "normal")
    canvas.text(52, 370, "upper line: epoch; lower line: epochs since the last new best", 12, QUIET)
    return canvas, axes, stop


def early_stopping() -> Canvas:
    """Draw what early stopping counts, on a curve that was invented: the lesson asks to predict the real one."""
    title = "Early stopping counts the epochs since the best"
    canvas, axes, stop = draw_count_of_bad_epochs(INVENTED, title, f"An invented validation loss; patience {PATIENCE}.")
    axes.set(ylim=(1.3, 2.3), yticks=(1.4, 1.6, 1.8, 2, 2.2))
    write_curve_label(axes, stop - 0.15, 2.16, "stop", shade(VERMILION, 0.2), align="right")
    write_curve_label(axes, 3.7, 1.8, "validation", shade(ORANGE))
    return canvas.describe(
        f"An invented validation loss by epoch; the count of epochs since the best reaches the patience of {PATIENCE} "
        f"after epoch {stop}.",
        f"""An invented validation loss over {len(INVENTED)} epochs: {", ".join(map(str, INVENTED))}. Under the axis
        stands for each epoch how many have passed since the last new best:
        {", ".join(map(str, count_epochs_since_best(INVENTED)[:stop]))}. The best, the circle, is epoch
        {stop - PATIENCE}; at {PATIENCE}, after epoch {stop}, a red line says stop.""",
    )


def overfitting() -> Canvas:
    """Validation and training loss on few images, and what early stopping counts."""
    run = list_runs_of_arm(read_results(), "few images")[0]
    train, validation = run["train_loss"], run["validation_loss"]
    counts, title = count_epochs_since_best(validation), "Two thousand images, learned by heart"
    canvas, axes, stop = draw_count_of_bad_epochs(
        validation, title, f"CIFAR-10, {len(train)} epochs; patience {PATIENCE}."
    )
    best = stop - PATIENCE
    axes.plot(range(1, len(train) + 1), train, "--", color=BLUE)
    axes.set(ylim=(0, max(validation) + 0.5))
    write_curve_label(axes, stop + 0.4, 0.35, "stop", shade(VERMILION, 0.2))
    write_curve_label(axes, len(train) - 8, validation[-5] + 0.25, "validation", shade(ORANGE))
    write_curve_label(axes, len(train) - 8, train[-8] + 0.2, "training", BLUE)
    return canvas.describe(
        f"Validation loss by epoch turns round after epoch {best}; the count of epochs since the best reaches the "
        f"patience of {PATIENCE} after epoch {stop}.",
        f"""Loss against {len(train)} epochs of training on 2,000 images. Training loss falls from {train[0]:.2f} to
        {train[-1]:.2f}. Validation loss falls to {validation[best - 1]:.2f} after epoch {best}, the circle, and climbs
        to {validation[-1]:.2f}. Under the axis stands for each epoch how many have passed since the last new best:
        {", ".join(map(str, counts[:stop]))}. At {PATIENCE}, after epoch {stop}, a red line says stop.""",
    )


def write_curve_label(axes: Axes, x: float, y: float, words: str, color: str, align: str = "left") -> None:
    """A bold word beside a curve."""
    axes.text(x, y, words, color=color, size=13 * POINTS_PER_PIXEL, weight="bold", ha=align)


FIGURES = {
    "three_piles": three_piles,
    "sick_curves": sick_curves,
    "rate_finder": rate_finder,
    "early_stopping": early_stopping,
    "overfitting": overfitting,
}

if __name__ == "__main__":
    save_all_figures(FIGURES)
