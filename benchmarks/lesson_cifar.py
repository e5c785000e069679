"""What lessons 06 and 07 show and quote: six faulty trainings, the learning-rate finder, experiments from three seeds.

    python benchmarks/lesson_cifar.py --data cifar10.npz

All of it takes about half an hour on two idle cores; a run that was stopped goes on where it was. Prints a table and
writes results/lesson_cifar.json, which figures/training.py and figures/experiments.py draw.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from arms import (
    NUM_VALIDATION,
    SPLIT_SEED,
    Log,
    collect_conditions,
    load_train_and_validation,
    make_parser,
    schedule_learning_rates,
    train_for,
)
from torch import Tensor, nn
from torch.optim import AdamW

from exercise_kit.authoring.lesson import Role, read_lesson
from vit_course.config import ViTConfig
from vit_course.data import Augmentation, Batches, ImageDataset
from vit_course.staff.references import mixup
from vit_course.training import evaluate, parameter_groups, train_one_epoch
from vit_course.vit import VisionTransformer

PLAIN, MOVED = Augmentation(), Augmentation(max_shift=2, flip=True)
BASE = ViTConfig(patch_size=8, embed_dim=64, depth=4, num_heads=4, position_std=0.5)
SEED_A = replace(BASE, embed_dim=16, num_heads=2, positions="sinusoidal")
BATCH, WEIGHT_DECAY, LEARNING_RATE = 128, 0.05, 2e-3
SEEDS = (0, 1, 2)
MIXUP_ALPHA = 0.4
CONVNET_RATES, CONVNET_RATE = (6e-4, 2e-3, 6e-3), 6e-3  # tried, and the best of them: see "convnet_rates" in the log
SICK_STEPS, SICK_EVERY, SICK_VALIDATION, SICK_RATE = 300, 50, 2_000, 1e-3
TEMPERATURES = (1, 1.5, 2, 3, 4, 6)
FINDER_STEPS, LOWEST_RATE, HIGHEST_RATE = 100, 1e-5, 1.0
ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "lesson_cifar.json"


@dataclass(frozen=True)
class Arm:
    """One way to train: the model, what is changed in it (``dropped``: by stochastic depth), what it learns from."""

    config: ViTConfig = BASE
    softmax: bool = False
    scrambled: bool = False
    augmentation: Augmentation = PLAIN
    mixup: bool = False
    dropped: float = 0.0
    num_train: int = 10_000
    epochs: int = 6
    convolutional: bool = False
    learning_rate: float = LEARNING_RATE


FEW = Arm(num_train=2_000, epochs=30)
SMALL_POSITIONS = replace(BASE, position_std=0.02)
ARMS = {
    "base": Arm(),
    "no positions": Arm(replace(BASE, positions="none")),
    "sine positions": Arm(replace(BASE, positions="sinusoidal")),
    "small positions": Arm(SMALL_POSITIONS),
    "softmax before the loss": Arm(softmax=True),
    "patches of 16": Arm(replace(BASE, patch_size=16)),
    "patches of 4": Arm(replace(BASE, patch_size=4)),
    "mean of the tokens": Arm(replace(BASE, pooling="mean")),
    "few images": FEW,
    "few images, shifted and flipped": replace(FEW, augmentation=MOVED),
    "few images, shifted, flipped and mixed": replace(FEW, augmentation=MOVED, mixup=True),
    "few images, shifted, flipped, stochastic depth": replace(FEW, augmentation=MOVED, dropped=0.2),
    "lab sheet": Arm(SEED_A),
    "lab sheet, softmax before the loss": Arm(SEED_A, softmax=True),
    "scrambled": Arm(scrambled=True),
    "small positions, scrambled": Arm(SMALL_POSITIONS, scrambled=True),
    "convolutions": Arm(convolutional=True, learning_rate=CONVNET_RATE),
}


@dataclass(frozen=True)
class Defect:
    """One wrong training, and what is wrong with it."""

    learning_rate: float = SICK_RATE
    zero_grad: bool = True
    softmax: bool = False
    in_order: bool = False
    num_train: int = 10_000


DEFECTS = {
    "healthy": Defect(),
    "learning rate too high": Defect(learning_rate=100 * SICK_RATE),
    "no zero_grad": Defect(zero_grad=False),
    "softmax before the loss": Defect(softmax=True),
    "sorted by class": Defect(in_order=True),
    "learning rate too low": Defect(learning_rate=SICK_RATE / 100),
    "few images": Defect(num_train=500),
}


class SoftmaxInTheModel(nn.Module):
    """Gives probabilities where the loss wants logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        return self.model(images).softmax(dim=-1)


class ConvNet(nn.Sequential):
    """Four times: a 3 × 3 convolution in steps of two pixels, a norm, ReLU; then the mean over the places."""

    def __init__(self, widths: tuple[int, ...] = (32, 64, 112, 128), num_classes: int = 10) -> None:
        layers: list[nn.Module] = []
        for before, after in itertools.pairwise((3, *widths)):
            convolution = nn.Conv2d(before, after, kernel_size=3, stride=2, padding=1, bias=False)
            layers += [convolution, nn.BatchNorm2d(after), nn.ReLU()]
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], num_classes))


class Mixed:
    """The batches of a loader, each blended by ``mixup``; the order of its draws follows from the seed."""

    def __init__(self, loader: Batches, num_classes: int, seed: int) -> None:
        self.loader, self.num_classes = loader, num_classes
        self.generator = np.random.default_rng(seed)

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for images, labels in self.loader:
            yield mixup(images, labels, self.num_classes, MIXUP_ALPHA, self.generator)


def scramble_patches(model: VisionTransformer) -> None:
    """Reshape the embedded patches where a transpose was meant."""
    model.patch_embedding.register_forward_hook(lambda layer, images, x: x.transpose(1, 2).reshape(x.shape))


def add_stochastic_depth(model: VisionTransformer, highest: float) -> None:
    """Stochastic depth: in training leave branches out, with a probability that grows from 0 to ``highest``."""
    from torchvision.ops import stochastic_depth  # a second, which those that import this file for another name save

    for block, probability in zip(model.blocks, torch.linspace(0, highest, len(model.blocks)).tolist(), strict=True):
        for branch in (block.attention, block.mlp):
            branch.register_forward_hook(
                lambda layer, _, x, p=probability: stochastic_depth(x, p, "row", layer.training)
            )


def build_model_and_optimizer(arm: Arm, seed: int, learning_rate: float) -> tuple[nn.Module, AdamW]:
    """A fresh model and its optimizer."""
    torch.manual_seed(seed)
    right = VisionTransformer(arm.config)
    if arm.scrambled:
        scramble_patches(right)
    if arm.dropped:
        add_stochastic_depth(right, arm.dropped)
    model: nn.Module = ConvNet() if arm.convolutional else right
    model = SoftmaxInTheModel(model) if arm.softmax else model
    return model, AdamW(parameter_groups(model, WEIGHT_DECAY), lr=learning_rate)


def train_arm(arm: Arm, seed: int, train: ImageDataset, validation: ImageDataset) -> dict[str, list[float]]:
    """Train once: losses and accuracy in [0, 1] after each epoch, and seconds in all."""
    model, optimizer = build_model_and_optimizer(arm, seed, arm.learning_rate)
    images = train.subset(slice(arm.num_train))
    batches = Batches(images, BATCH, arm.augmentation, shuffle=True, seed=seed)
    loader = Mixed(batches, len(train.classes), seed) if arm.mixup else batches
    schedule_learning_rates(optimizer, arm.epochs * len(loader))
    return train_for(arm.epochs, model, optimizer, loader, validation)


def compute_logits(model: nn.Module, images: Batches) -> Tensor:
    """Return what the model says of all images: (num_images, num_classes)."""
    model.eval()
    with torch.no_grad():
        return torch.cat([model(batch) for batch, _ in images])


def compute_confidence_when_wrong(logits: Tensor, labels: Tensor) -> float:
    """The mean probability of an answer that is wrong."""
    given, answers = logits.softmax(dim=-1).max(dim=-1)
    return given[answers != labels].mean().item()


def measure_overconfidence(train: ImageDataset, validation: ImageDataset) -> dict[str, Any]:
    """Few images, from seed 0: how sure the model is when it is wrong, after its best epoch and after its last; and the
    last one's loss on each half of the validation images, with the logits divided by a temperature.
    """
    model, optimizer = build_model_and_optimizer(FEW, 0, FEW.learning_rate)
    loader = Batches(train.subset(slice(FEW.num_train)), BATCH, shuffle=True, seed=0)
    schedule_learning_rates(optimizer, FEW.epochs * len(loader))
    watched, labels = Batches(validation, 500), validation.labels
    after: list[tuple[float, Tensor]] = []
    for _ in range(FEW.epochs):
        train_one_epoch(model, loader, optimizer, "cpu")
        logits = compute_logits(model, watched)
        after.append((F.cross_entropy(logits, labels).item(), logits))
    best, last = min(after, key=lambda each: each[0])[1], after[-1][1]
    half = len(labels) // 2
    halves = (slice(half), slice(half, None))
    return {
        "sure_when_wrong": [round(compute_confidence_when_wrong(each, labels), 4) for each in (best, last)],
        "loss_of_halves": {
            str(divisor): [round(F.cross_entropy(last[each] / divisor, labels[each]).item(), 4) for each in halves]
            for divisor in TEMPERATURES
        },
    }


def repeat_endlessly(loader: Batches) -> Iterator[tuple[Tensor, Tensor]]:
    """One pass after the other."""
    while True:
        yield from loader


def train_with_defect(defect: Defect, train: ImageDataset, validation: ImageDataset) -> dict[str, list[float]]:
    """A short training at a constant rate: the loss of every step, and now and then that of validation images."""
    model, optimizer = build_model_and_optimizer(Arm(softmax=defect.softmax), 0, defect.learning_rate)
    images = train.subset(slice(defect.num_train))
    if defect.in_order:
        images = images.subset(images.labels.argsort(stable=True))
    loader = repeat_endlessly(Batches(images, BATCH, shuffle=not defect.in_order))
    watched = Batches(validation.subset(slice(SICK_VALIDATION)), 500)
    losses, measured = [], []
    for step in range(1, SICK_STEPS + 1):
        pictures, labels = next(loader)
        loss = F.cross_entropy(model(pictures), labels)
        if defect.zero_grad:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 3))
        if step % SICK_EVERY == 0:
            measured.append(round(evaluate(model, watched, "cpu")[0], 3))
    return {"loss": losses, "validation_loss": measured}


def find_learning_rate(train: ImageDataset) -> dict[str, list[float]]:
    """The learning-rate finder: the loss of each of 100 steps, while the rate rises by a constant factor."""
    model, optimizer = build_model_and_optimizer(Arm(), 0, LOWEST_RATE)
    rates = [LOWEST_RATE * (HIGHEST_RATE / LOWEST_RATE) ** (step / (FINDER_STEPS - 1)) for step in range(FINDER_STEPS)]
    losses = []
    for rate, batch in zip(
        rates, repeat_endlessly(Batches(train.subset(slice(10_000)), BATCH, shuffle=True)), strict=False
    ):
        for group in optimizer.param_groups:
            group["lr"] = rate
        losses.append(round(train_one_epoch(model, [batch], optimizer, "cpu"), 3))
    return {"learning_rate": [float(f"{rate:.3e}") for rate in rates], "loss": losses}


def try_convnet_rates(train: ImageDataset) -> dict[str, float]:
    """Accuracy of the ConvNet at each rate, from seed 0, on training images that no arm sees."""
    held_out = train.subset(slice(len(train) - NUM_VALIDATION, None))
    arms = {rate: replace(ARMS["convolutions"], learning_rate=rate) for rate in CONVNET_RATES}
    return {str(rate): train_arm(arm, 0, train, held_out)["validation_accuracy"][-1] for rate, arm in arms.items()}


def describe_conditions() -> dict[str, Any]:
    """All that the numbers depend on."""
    return collect_conditions(
        "lesson_cifar",
        device=f"cpu, {torch.get_num_threads()} thread(s)",
        data={"name": "cifar10", "num_validation": NUM_VALIDATION, "split_seed": SPLIT_SEED},
        training={"batch_size": BATCH, "weight_decay": WEIGHT_DECAY, "learning_rate": LEARNING_RATE},
        arms={name: asdict(arm) for name, arm in ARMS.items()},
        sick={name: asdict(defect) for name, defect in DEFECTS.items()},
    )


def format_table(result: dict[str, Any]) -> str:
    """Accuracy on validation images at the end: mean over the seeds, then each."""
    lines = [f"{'arm':40}   mean   each seed, % of the validation images right"]
    for name, runs in result["results"].items():
        last = [run["validation_accuracy"][-1] for run in runs.values()]
        lines.append(f"{name:40}  {mean(last):5.1%}   " + "  ".join(f"{accuracy:5.1%}" for accuracy in last))
    return "\n".join(lines)


def define_from_lesson(lesson: str, names: dict[str, Any]) -> dict[str, Any]:
    """``names`` with a lesson's functions and classes, which look for everything else among them.

    Args:
        lesson: its name, as "08_inside".
        names: what the definitions use.
    """
    for cell in read_lesson(ROOT, ROOT / "solutions" / f"{lesson}.py").cells:
        if cell.role is Role.CODE:
            _execute_definitions(cell.source, lesson, names)
    return names


def define_from_note(note: str, names: dict[str, Any]) -> dict[str, Any]:
    """``names`` with the functions and classes of a side note's code, which look for everything else among them."""
    text = (ROOT / "docs" / "site" / "notes" / f"{note}.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        _execute_definitions(block, note, names)
    return names


def _execute_definitions(source: str, name: str, names: dict[str, Any]) -> None:
    parts = [each for each in ast.parse(source).body if isinstance(each, ast.FunctionDef | ast.ClassDef)]
    exec(compile(ast.Module(parts, type_ignores=[]), name, "exec"), names)


def run_arm(name: str, seed: int, data: Path) -> dict[str, list[float]]:
    """Train one arm, alone in its process."""
    torch.set_num_threads(1)
    return train_arm(ARMS[name], seed, *load_train_and_validation(data))


def main() -> None:
    parser = make_parser(__doc__, RESULTS)
    parser.add_argument("--workers", type=int, default=2, help="how many arms are trained at a time")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    train, validation = load_train_and_validation(arguments.data)
    log = Log(arguments.output, describe_conditions(), ARMS)
    for name, defect in DEFECTS.items():
        log.measure_once("curves", name, by=partial(train_with_defect, defect, train, validation))
    log.measure_once("finder", by=partial(find_learning_rate, train))
    log.measure_once("convnet_rates", by=partial(try_convnet_rates, train))
    log.measure_once("overconfidence", by=partial(measure_overconfidence, train, validation))
    each = {("results", name, str(seed)): (name, seed) for seed in SEEDS for name in ARMS}
    log.measure_missing(each, partial(run_arm, data=arguments.data), arguments.workers)
    print(format_table(log.found))


if __name__ == "__main__":
    main()
