"""What lesson 06 quotes: its first training without one of the tools at a time, from three seeds.

    python benchmarks/training_tools.py --data cifar10.npz

Model, images, batches and seeds are those of the arm "base" of lesson_cifar.py, with which each arm is compared. The
rate of SGD is the one that was best with seed 0 among three. Takes about fifteen minutes on one idle core; a run that
was stopped goes on where it was. Prints a table and writes results/training_tools.json.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from arms import (
    Log,
    collect_conditions,
    format_row,
    load_train_and_validation,
    make_parser,
    schedule_learning_rates,
    train_for,
)
from lesson_cifar import (
    BASE,
    BATCH,
    LEARNING_RATE,
    SEEDS,
    WEIGHT_DECAY,
)
from lesson_cifar import RESULTS as BASE_RESULTS
from torch import nn
from torch.optim import SGD, AdamW, Optimizer

from vit_course.data import Batches, ImageDataset
from vit_course.training import parameter_groups
from vit_course.vit import VisionTransformer

NUM_TRAIN, EPOCHS, MOMENTUM, SGD_RATES = 10_000, 6, 0.9, (0.03, 0.1, 0.3)
RESULTS = Path(__file__).parent / "results" / "training_tools.json"


@dataclass(frozen=True)
class Arm:
    """An optimizer for a model, and whether its rate follows the schedule."""

    optimizer: Callable[[nn.Module], Optimizer]
    scheduled: bool = True


def make_sgd_arm(rate: float) -> Arm:
    """SGD with momentum; weight decay acts through the rate, so that it is made as strong as AdamW's."""
    decay = WEIGHT_DECAY * LEARNING_RATE / rate
    return Arm(lambda model: SGD(parameter_groups(model, decay), lr=rate, momentum=MOMENTUM))


ARMS = {
    "constant rate": Arm(lambda model: AdamW(parameter_groups(model, WEIGHT_DECAY), lr=LEARNING_RATE), scheduled=False),
    "no weight decay": Arm(lambda model: AdamW(parameter_groups(model, 0.0), lr=LEARNING_RATE)),
    **{f"SGD, {rate}": make_sgd_arm(rate) for rate in SGD_RATES},
}


def train_arm(arm: Arm, seed: int, train: ImageDataset, validation: ImageDataset) -> dict[str, Any]:
    """Train once: accuracy in [0, 1] after the last epoch, and seconds."""
    torch.manual_seed(seed)
    model = VisionTransformer(BASE)
    optimizer, loader = arm.optimizer(model), Batches(train.subset(slice(NUM_TRAIN)), BATCH, shuffle=True, seed=seed)
    if arm.scheduled:
        schedule_learning_rates(optimizer, EPOCHS * len(loader))
    found = train_for(EPOCHS, model, optimizer, loader, validation)
    return {"accuracy": found["validation_accuracy"][-1], "seconds": found["seconds"][-1]}


def format_table(results: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Per cent of the validation images right, and the difference from the base where there are as many seeds."""
    base = json.loads(BASE_RESULTS.read_text())["results"]["base"].values()
    of_base = [100 * run["validation_accuracy"][-1] for run in base]
    return "\n".join(
        format_row(name, [100 * run["accuracy"] for run in runs.values()], of_base) for name, runs in results.items()
    )


def main() -> None:
    arguments = make_parser(__doc__, RESULTS).parse_args()
    torch.set_num_threads(1)
    train, validation = load_train_and_validation(arguments.data)
    log = Log(arguments.output, collect_conditions("training_tools", num_train=NUM_TRAIN, epochs=EPOCHS), ARMS)

    def measure_accuracy(name: str, seed: int) -> float:
        by = partial(train_arm, ARMS[name], seed, train, validation)
        return log.measure_once("results", name, str(seed), by=by)["accuracy"]

    best = max((f"SGD, {rate}" for rate in SGD_RATES), key=lambda name: measure_accuracy(name, SEEDS[0]))
    for name in (best, "constant rate", "no weight decay"):
        for seed in SEEDS:
            measure_accuracy(name, seed)
    print(format_table(log.found["results"]))


if __name__ == "__main__":
    main()
