"""What lesson 07 says of the model to hand in: what two rows of its table reach on the test photos, from one seed each.

    python benchmarks/hand_in.py --data cifar10.npz

"as they are" is what the lesson's cells train; "patches of 4, Muon" is the same model with smaller patches, trained by
`fit` with the settings that the lesson prints. The last row of the table, 96 wide on two cores, was the recipe
cpu-coffee before its images grew: results/hand_in/wide-SEED.json. Took 25 minutes on one busy core; a run that was
stopped goes on where it was. Writes results/hand_in.json.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from arms import Log, collect_conditions, load_train_and_validation, make_parser, schedule_learning_rates
from lesson_cifar import BASE, BATCH, LEARNING_RATE, MOVED, Arm, build_model_and_optimizer
from torch import nn

from vit_course.data import Augmentation, Batches, ImageDataset, load_npz
from vit_course.training import TrainingSettings, evaluate, fit, train_one_epoch
from vit_course.vit import VisionTransformer

SEED, EPOCHS = 0, 6
RESULTS = Path(__file__).parent / "results" / "hand_in.json"
SETTINGS = TrainingSettings(
    epochs=4,
    batch_size=64,
    learning_rate=4e-3,
    muon_learning_rate=0.007,
    label_smoothing=0.1,
    augmentation=Augmentation(flip=True),
)


def train_by_lesson(train: ImageDataset, _: ImageDataset) -> nn.Module:
    """The lesson's first model, trained by its own loop."""
    model, optimizer = build_model_and_optimizer(Arm(), SEED, LEARNING_RATE)
    loader = Batches(train, BATCH, MOVED, shuffle=True, seed=SEED)
    schedule_learning_rates(optimizer, EPOCHS * len(loader))
    for _ in range(EPOCHS):
        train_one_epoch(model, loader, optimizer, "cpu")
    return model


def train_with_muon(train: ImageDataset, validation: ImageDataset) -> nn.Module:
    """Patches of 4, trained by ``fit``."""
    torch.manual_seed(SEED)
    model = VisionTransformer(replace(BASE, patch_size=4))
    fit(model, train, validation, SETTINGS)
    return model


ROWS: dict[str, Callable[[ImageDataset, ImageDataset], nn.Module]] = {
    "as they are": train_by_lesson,
    "patches of 4, Muon": train_with_muon,
}


def main() -> None:
    arguments = make_parser(__doc__, RESULTS).parse_args()
    torch.set_num_threads(1)
    train, validation = load_train_and_validation(arguments.data)
    test = load_npz(arguments.data, "test").with_statistics_of(train)
    log = Log(arguments.output, collect_conditions("hand_in"), ROWS)

    def train_and_measure(trained: Callable[[ImageDataset, ImageDataset], nn.Module]) -> dict[str, float]:
        started = time.perf_counter()
        model = trained(train, validation)
        return {
            "seconds": round(time.perf_counter() - started),
            "validation_accuracy": evaluate(model, Batches(validation, 500), "cpu")[1],
            "test_accuracy": evaluate(model, Batches(test, 500), "cpu")[1],
        }

    for name, trained in ROWS.items():
        print(name, log.measure_once("results", name, by=partial(train_and_measure, trained)))


if __name__ == "__main__":
    main()
