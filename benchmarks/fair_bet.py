"""The bet of lesson 00, made fair: the right ViT and eight broken ones, each with the learning rate that suits it.

    python benchmarks/fair_bet.py --data cifar10.npz

broken_vit.py trains all models with one learning rate, tuned for none of them, and with positions that start so small
(0.02) that a short training hardly hears them: a baseline that some bugs help. Here positions start at 0.5, and each
model tries the same rates on validation images; then it is trained from three seeds with the rate that was best for
it, and measured on test images. The models of a seed start from the same weights and see the same batches, so their
differences are paired. Prints a table with a 95 % t interval for each difference, and writes results/fair_bet.json; a
run that was stopped goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from arms import Log, collect_conditions, make_parser
from broken_vit import CLASSICS, RIGHT
from broken_vit import CONFIG as QUIET
from wrong_models import iterate_wrong_models

from vit_course.data import ImageDataset, load_npz
from vit_course.metrics import paired_interval
from vit_course.training import TrainingDivergedError, TrainingSettings, fit
from vit_course.vit import VisionTransformer

RESULTS = Path(__file__).parent / "results" / "fair_bet.json"
CONFIG = replace(QUIET, position_std=0.5)
RATES = (1e-3, 2e-3, 4e-3)
SEEDS = (0, 1, 2)
NUM_TRAIN, NUM_VALIDATION, NUM_TEST = 25_000, 5_000, 5_000


@dataclass
class Row:
    """One model.

    Attributes: ``name``, "right" or "exercise: misconception"; ``tried``, learning rate → validation accuracy of
    seed 0; ``accuracies`` on test images, by seed, with the best rate; ``train_losses`` of the last epoch; ``seconds``.
    """

    name: str
    tried: dict[str, float] = field(default_factory=dict)
    accuracies: list[float] = field(default_factory=list)
    train_losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def best_rate(self) -> float:
        """The learning rate that was best on validation images; the smaller of two that are as good."""
        return float(max(self.tried, key=lambda each: self.tried[each]))


@dataclass(frozen=True)
class Task:
    """One training: of a model by its name, measured on validation images or on the test images."""

    name: str
    rate: float
    seed: int
    data: Path
    settings: TrainingSettings
    on_test: bool

    def train_and_test(self) -> tuple[float, float, float]:
        """Train: the accuracy (0 where training diverged), the last training loss, and the seconds."""
        torch.set_num_threads(1)
        train, validation, test = load_images_of_three_splits(self.data)
        torch.manual_seed(self.seed)
        model: Any = VisionTransformer(CONFIG)
        if self.name != RIGHT:
            model = next(each for each in iterate_wrong_models() if each.key == self.name).build(model)
        started = time.perf_counter()
        settings = replace(self.settings, learning_rate=self.best_rate, seed=self.seed)
        try:
            history = fit(model, train, test if self.on_test else validation, settings, progress=False)
        except TrainingDivergedError:
            return 0.0, float("inf"), round(time.perf_counter() - started, 1)
        seconds = round(time.perf_counter() - started, 1)
        return history.validation_accuracy[-1], round(history.train_loss[-1], 4), seconds


def load_images_of_three_splits(data: Path) -> tuple[ImageDataset, ImageDataset, ImageDataset]:
    """Training, validation and test images, the second apart from the first, all with the first's statistics."""
    full = load_npz(data, "train")
    train = full.subset(slice(NUM_TRAIN))
    validation = full.subset(slice(NUM_TRAIN, NUM_TRAIN + NUM_VALIDATION)).with_statistics_of(train)
    return train, validation, load_npz(data, "test").subset(slice(NUM_TEST)).with_statistics_of(train)


def make_rows(log: Log, names: Iterable[str]) -> list[Row]:
    """The rows of an earlier run, and an empty one for every other name."""
    rows = {name: Row(name) for name in names} | {row["name"]: Row(**row) for row in log.found.get("rows", [])}
    return list(rows.values())


def save_rows(log: Log, rows: list[Row]) -> None:
    """Write everything that is needed to quote the table, or to make it again."""
    log.found["rows"] = [asdict(row) for row in rows]
    log.write()


def format_table(rows: list[Row]) -> str:
    """The rows as text, best first."""
    right = next(row for row in rows if row.name == RIGHT)
    lines = [f"{'model':55} rate    mean   each seed                 against the right one"]
    for row in sorted((row for row in rows if row.accuracies), key=lambda each: -mean(each.accuracies)):
        each = "  ".join(f"{accuracy:.1%}" for accuracy in row.accuracies)
        against = ""
        if row is not right and len(row.accuracies) == len(right.accuracies) > 1:
            gap, half = paired_interval(row.accuracies, right.accuracies)
            against = f"{100 * gap:+.1f} ± {100 * half:.1f}"
        lines.append(f"{row.name:55} {row.best_rate:.3f}  {mean(row.accuracies):.1%}  {each:25} {against}")
    return "\n".join(lines)


def describe_conditions(settings: TrainingSettings) -> dict[str, Any]:
    """All that accuracies depend on, but the rate and the seed."""
    described = {name: value for name, value in asdict(settings).items() if name not in ("seed", "learning_rate")}
    images = {"train_images": NUM_TRAIN, "validation_images": NUM_VALIDATION, "test_images": NUM_TEST}
    return collect_conditions("fair_bet", data=images, model=asdict(CONFIG), settings=described, rates=RATES)


def tune_learning_rates(rows: list[Row], log: Log, make: Callable[..., Task], pool: Executor) -> None:
    """Try every rate on every model that has not tried it."""
    waiting = [(row, rate) for row in rows for rate in RATES if str(rate) not in row.tried]
    tasks = (make(row.name, rate, 0, on_test=False) for row, rate in waiting)
    for (row, rate), (accuracy, _, _) in zip(waiting, pool.map(Task.train_and_test, tasks), strict=True):
        row.tried[str(rate)] = accuracy
        save_rows(log, rows)
        print(f"{row.name}: {accuracy:.2%} on validation images with a rate of {rate}", flush=True)


def measure_accuracies(rows: list[Row], log: Log, make: Callable[..., Task], pool: Executor) -> None:
    """Train every model from every seed with the rate that suits it, and measure it on test images."""
    waiting = [(row, seed) for seed in SEEDS for row in rows if seed >= len(row.accuracies)]
    tasks = (make(row.name, row.best_rate, seed, on_test=True) for row, seed in waiting)
    for (row, seed), (accuracy, loss, seconds) in zip(waiting, pool.map(Task.train_and_test, tasks), strict=True):
        row.accuracies.append(accuracy)
        row.train_losses.append(loss)
        row.seconds.append(seconds)
        save_rows(log, rows)
        print(f"seed {seed}  {row.name}: {accuracy:.2%} with a rate of {row.best_rate}", flush=True)


def main() -> None:
    parser = make_parser(__doc__, RESULTS)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--workers", type=int, default=2, help="how many models are trained at a time")
    arguments = parser.parse_args()
    settings = TrainingSettings(arguments.epochs, device="cpu")
    log = Log(arguments.output, describe_conditions(settings))
    rows = make_rows(log, [RIGHT, *CLASSICS])
    make = partial(Task, data=arguments.data, settings=settings)
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        tune_learning_rates(rows, log, make, pool)
        measure_accuracies(rows, log, make, pool)
    print(format_table(rows))


if __name__ == "__main__":
    main()
