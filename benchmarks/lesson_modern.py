"""What lesson 10 quotes of its own cells: larger images, a masked autoencoder, and four short cells.

    python benchmarks/lesson_modern.py --data cifar10.npz

Runs the functions that the lesson itself defines, read from solutions/10_modern.py; the experiment of that lesson is
modern.py's. Trains from three seeds. Takes twenty minutes on an idle core; a run that was stopped goes on where it
was. Writes results/lesson_modern.json.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import torch
import torch.nn.functional as F
from arms import Log, collect_conditions, format_row, make_parser
from lesson_cifar import SEEDS, define_from_note
from torch import Tensor, nn

from exercise_kit.engine.lesson_answers import load_right_objects
from vit_course.modern import ROTARY_BASE
from vit_course.trained import trained_vit

ROOT = Path(__file__).parents[1]
LESSON = ROOT / "solutions" / "10_modern.py"
RESULTS = Path(__file__).parent / "results" / "lesson_modern.json"
TRAINED = 4  # rows and columns of the grid that the lesson's models are trained with
LAST = 250  # steps over which the loss is averaged
REPEATS = 5  # of a measurement that varies
WIDTHS = (1, 1.5, 2, 3, 4)  # of a blur, in pixels
SHORT = ("growth", "lengths_after", "largest_weights")


def make_short_cells() -> dict[str, Callable[[], Any]]:
    """Return what the lesson's short cells print, by name: each is measured when it is called."""
    growth, lengths_after, largest_weights = load_right_objects(LESSON, SHORT, "vit_course")
    names = {"torch": torch, "F": F, "nn": nn, "math": math, "time": time, "device": "cpu"}
    speed_up = define_from_note("what_else", names)["speed_up"]
    depth = trained_vit().config.depth
    return {
        "growth": lambda: {str(initial): round(growth(initial), 3) for initial in (None, 0.1, 1e-4)},
        "lengths": lambda: [[round(each, 2) for each in lengths_after(number)] for number in range(depth)],
        "largest_weights": lambda: {
            str(factor): [round(each, 3) for each in largest_weights(factor)] for factor in (1, 3, 10)
        },
        "speed_up": lambda: {str(each): [round(speed_up(each), 2) for _ in range(REPEATS)] for each in (65, 257, 1025)},
    }


def rotate_between_positions(query: Tensor, key: Tensor, grid_size: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Like rotary_2d, but a larger grid covers the places of the trained one, as a resized table does."""
    front, pairs = query.shape[-2] - grid_size[0] * grid_size[1], query.shape[-1] // 4
    speeds = ROTARY_BASE ** (-torch.arange(pairs) / pairs)
    places = [(torch.arange(side) + 0.5) * TRAINED / side - 0.5 for side in grid_size]
    row, column = (each.flatten() for each in torch.meshgrid(*places, indexing="ij"))
    angles = F.pad(torch.cat([torch.outer(row, speeds), torch.outer(column, speeds)], dim=1), (0, 0, front, 0))
    turn = torch.polar(torch.ones_like(angles), angles)

    def turn_vectors(vectors: Tensor) -> Tensor:
        return torch.view_as_real(torch.view_as_complex(vectors.unflatten(-1, (-1, 2)).contiguous()) * turn).flatten(-2)

    return turn_vectors(query), turn_vectors(key)


def measure_by_image_size(seed: int) -> dict[str, dict[str, float]]:
    """Accuracies of a plain and of a rotary model from a seed, by the size of the images that they are given."""
    names = ("by_side", "learn", "train", "ModernViT", "Arm", "Parts", "BASE")
    measure, learn, train, model_class, arm, parts, base = load_right_objects(LESSON, names, "vit_course")
    found = {}
    for name, one in {"plain": arm(), "rotary": arm(parts(rotary=True), replace(base, positions="none"))}.items():
        torch.manual_seed(seed)
        model = model_class(one.config, one.parts)
        learn(model, train.subset(slice(one.num_train)), one, seed)
        found[name] = measure(model, one)
    lesson = measure.__globals__
    lesson["rotary_2d"] = rotate_between_positions
    found["rotary, between"] = measure(model, one)
    return {name: {str(side): round(each, 2) for side, each in of_it.items()} for name, of_it in found.items()}


def measure_masked_autoencoder(seed: int) -> dict[str, Any]:
    """A masked autoencoder from a seed: its loss, and how well a probe reads its encoder, trained and fresh."""
    names = ("learn_to_paint", "fresh_painter", "probed", "mean_token")
    learn_to_paint, fresh_painter, probed, mean_token = load_right_objects(LESSON, names, "vit_course")
    started = time.perf_counter()
    painter, losses = learn_to_paint(seed)
    return {
        "seconds": round(time.perf_counter() - started, 1),
        "loss": round(mean(losses[-LAST:]), 4),
        "first_loss": round(losses[0], 4),
        "trained": [round(each, 4) for each in probed(mean_token(painter))],
        "fresh": [round(each, 4) for each in probed(mean_token(fresh_painter(seed)))],
    }


def measure_probe_on_pixels() -> dict[str, list[float]]:
    """Accuracy of a probe on pixels and its weight decay: the best one, and the one that is best for features."""
    (probed,) = load_right_objects(LESSON, ("probed",), "vit_course")
    each = {"best": probed(lambda images: images.flatten(1))}
    each["as features"] = probed(lambda images: images.flatten(1), decays=(0.001,))
    return {name: [round(number, 4) for number in found] for name, found in each.items()}


def measure_blur_loss() -> dict[str, float]:
    """The loss of a blur on hidden patches, by its width."""
    (loss_of_blur,) = load_right_objects(LESSON, ("loss_of_blur",), "vit_course")
    return {str(width): round(loss_of_blur(width), 4) for width in WIDTHS}


def main() -> None:
    arguments = make_parser(__doc__, RESULTS).parse_args()
    torch.set_num_threads(1)
    os.environ["VIT_COURSE_DATA"] = str(arguments.data.parent)  # where the lesson's load_dataset looks
    log = Log(arguments.output, collect_conditions("lesson_modern"))
    for name, measure in make_short_cells().items():
        log.measure_once("short", name, by=measure)
    for name, measure in (("pixels", measure_probe_on_pixels), ("blur", measure_blur_loss)):
        log.measure_once(name, by=measure)
    for seed in SEEDS:
        log.measure_once("by_side", str(seed), by=partial(measure_by_image_size, seed))
        log.measure_once("painted", str(seed), by=partial(measure_masked_autoencoder, seed))
    runs = log.found["painted"].values()
    each = {name: [run[name][0] for run in runs] for name in ("fresh", "trained")}
    print(format_row("fresh", each["fresh"]))
    print(format_row("trained", each["trained"], each["fresh"]))


if __name__ == "__main__":
    main()
