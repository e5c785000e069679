"""A broken ViT still learns: every architecture misconception of the library, trained alike on CIFAR-10.

    python benchmarks/broken_vit.py --data cifar10.npz                        # all of them, briefly
    python benchmarks/broken_vit.py --data cifar10.npz --selection classics   # eight of them, longer, three seeds

Every model of a seed starts from the same weights, wherever it has them, and sees the same batches. Mistakes
that no training can tell from the right model or from one another, or that stop it, are listed with the reason.
Prints a table and writes results/broken_vit_all.json or results/broken_vit_classics.json, and of all mistakes what
the library tells students (vit_course/exercises/in_training.json); a run that was stopped goes on where it was. With a
GPU or a long night, `--train 50000 --epochs 10 --wrong-seeds 3` says more.

Lessons 00, 05 and 06 quote the eight, and figures/broken_vit.py draws them. results/broken_vit_first.json is an earlier
run of them, with two seeds of each wrong model and three of the right one; lesson 06 tells what the second run changed.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from arms import collect_conditions, write_result
from distinguishable import sort_out_distinguishable
from for_library import LIBRARY, collect_training_outcomes
from wrong_models import WrongModel, iterate_wrong_models

from vit_course.config import ViTConfig
from vit_course.data import Augmentation, ImageDataset, load_npz
from vit_course.training import TrainingDivergedError, TrainingSettings, fit
from vit_course.vit import VisionTransformer

CONFIG = ViTConfig(image_size=32, patch_size=8, embed_dim=64, depth=4, num_heads=4)
NUM_TEST = 5_000
RIGHT = "right"
RESULTS = Path(__file__).parent / "results"
CLASSICS = (
    "PatchEmbedding: embedding in column order",
    "PatchEmbedding: reshaped where transposed",
    "MultiHeadSelfAttention: heads not scaled",
    "MultiHeadSelfAttention: softmax down the queries",
    "MultiHeadSelfAttention: heads split by view",
    "MultiHeadSelfAttention: projection not used",
    "MultiHeadSelfAttention: attention over the batch",
    "VisionTransformer: softmax in the head",
)


@dataclass(frozen=True)
class Selection:
    """Which mistakes are trained, and for how long unless told otherwise."""

    file: str
    train_images: int
    epochs: int
    wrong_seeds: int
    keys: tuple[str, ...] | None = None


SELECTIONS = {
    "all": Selection("broken_vit_all.json", 20_000, 3, 1),
    "classics": Selection("broken_vit_classics.json", 30_000, 6, 3, CLASSICS),
}


@dataclass
class Row:
    """One model: for each seed what came out.

    Attributes: ``name``, "right" or "exercise: misconception"; and for each of ``seeds`` the test accuracy
    (0 to 1, None where training stopped), the training loss of every epoch (None where nobody kept it), the
    seconds of training and measuring by the clock, and why training stopped (None where it did not).
    """

    name: str
    seeds: list[int] = field(default_factory=list)
    accuracies: list[float | None] = field(default_factory=list)
    train_losses: list[list[float] | None] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    stopped: list[str | None] = field(default_factory=list)

    def add_seed(self, seed: int, accuracy: float | None, losses: list[float], seconds: float, why: str | None) -> None:
        """Add what one seed came to."""
        self.seeds.append(seed)
        self.accuracies.append(accuracy)
        self.train_losses.append([round(loss, 4) for loss in losses])
        self.seconds.append(round(seconds, 1))
        self.stopped.append(why)


def train_row(
    row: Row, wrong: WrongModel | None, train: ImageDataset, test: ImageDataset, settings: TrainingSettings
) -> None:
    """Train one model from one seed, and add what came out to its row."""
    torch.manual_seed(settings.seed)
    right = VisionTransformer(CONFIG)
    model = wrong.build(right) if wrong else right
    started = time.perf_counter()
    try:
        history = fit(model, train, test, settings)
    except TrainingDivergedError as error:
        row.add_seed(settings.seed, None, [], time.perf_counter() - started, str(error).split(":")[0])
    else:
        seconds = time.perf_counter() - started
        row.add_seed(settings.seed, history.validation_accuracy[-1], history.train_loss, seconds, None)


def describe_conditions(train: ImageDataset, test: ImageDataset, settings: TrainingSettings) -> dict[str, Any]:
    """All that accuracies depend on, but the seed."""
    return collect_conditions(
        "broken_vit",
        device=f"{settings.device}, {torch.get_num_threads()} thread(s)",
        data={"name": train.name, "train_images": len(train), "test_images": len(test)},
        model=asdict(CONFIG),
        settings={name: value for name, value in asdict(settings).items() if name != "seed"},
    )


def _add_newer_settings(logged: dict[str, Any]) -> dict[str, Any]:
    """A log whose settings have those, too, that the training did not have yet: they are off."""
    settings = logged.get("settings", {})
    augmentation = asdict(Augmentation()) | settings.get("augmentation", {})
    off = json.loads(json.dumps(asdict(TrainingSettings())))  # a log has lists where settings have tuples
    return logged | {"settings": off | {"seed": None} | settings | {"augmentation": augmentation}}


def load_rows(path: Path, known: dict[str, Any], names: list[str]) -> list[Row]:
    """The rows of an earlier run under the same conditions, which is gone on with; or empty rows.

    Raises:
        ValueError: the file holds rows of other conditions, which are not to be lost.
    """
    rows = {name: Row(name) for name in names}
    if path.exists():
        result = json.loads(path.read_text())
        then, now = _add_newer_settings(result), _add_newer_settings(known)
        other = [name for name in known if then.get(name) != now[name]]
        if other:
            raise ValueError(f"{path} holds rows of another {', '.join(other)}: give another --output, or remove it")
        rows |= {row["name"]: Row(**row) for row in result["rows"] if row["name"] in rows}
    return list(rows.values())


def save_rows(path: Path, known: dict[str, Any], rows: list[Row], reasons: dict[str, str]) -> None:
    """Write everything that is needed to quote the table, or to make it again."""
    date = datetime.now(UTC).date().isoformat()
    result = known | {
        "date": date,
        "rows": [asdict(row) for row in rows if row.seeds],
        "not_run_yet": [row.name for row in rows if not row.seeds],
        "not_trained": reasons,
    }
    write_result(path, result)


def format_table(rows: list[Row], reasons: dict[str, str]) -> str:
    """The rows as text, best first: mean accuracy over seeds, then each seed's; and what was not trained."""
    width = max(len(name) for name in (*reasons, *(row.name for row in rows)))
    lines = [f"{'model':{width}}   mean   each seed, % of the test images right"]
    for row in sorted(rows, key=_compute_mean_accuracy, reverse=True):
        if not row.seeds:
            lines.append(f"{row.name:{width}}  not run yet")
            continue
        each = [why or f"{accuracy:5.1%}" for accuracy, why in zip(row.accuracies, row.stopped, strict=True)]
        lines.append(f"{row.name:{width}}  {_compute_mean_accuracy(row):5.1%}   {'  '.join(each)}")
    return "\n".join([*lines, "", *(f"{name:{width}}  {reason}" for name, reason in reasons.items())])


def _compute_mean_accuracy(row: Row) -> float:
    measured = [accuracy for accuracy in row.accuracies if accuracy is not None]
    return mean(measured) if measured else 0.0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="cifar10.npz")
    parser.add_argument("--selection", choices=list(SELECTIONS), default="all")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds the right model is trained from")
    parser.add_argument("--wrong-seeds", type=int, help="how many each wrong one is trained from")
    parser.add_argument("--train", type=int, help="how many images to train on")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", type=Path)
    parser.add_argument(
        "--list", action="store_true", help="train nothing: show what is known and what is still to run"
    )
    arguments = parser.parse_args()
    selection = SELECTIONS[arguments.selection]
    arguments.keys = selection.keys
    arguments.wrong_seeds = arguments.wrong_seeds or selection.wrong_seeds
    arguments.train = arguments.train or selection.train_images
    arguments.epochs = arguments.epochs or selection.epochs
    arguments.output = arguments.output or RESULTS / selection.file
    return arguments


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    train = load_npz(arguments.data, "train").subset(slice(arguments.train))
    test = load_npz(arguments.data, "test").subset(slice(NUM_TEST)).with_statistics_of(train)
    settings = TrainingSettings(arguments.epochs, device=arguments.device)
    now = describe_conditions(train, test, settings)
    chosen = [each for each in iterate_wrong_models() if arguments.keys is None or each.key in arguments.keys]
    worth, reasons = sort_out_distinguishable(chosen, CONFIG)
    wrong = {each.key: each for each in worth}
    try:
        rows = load_rows(arguments.output, now, [RIGHT, *wrong])
    except ValueError as error:
        raise SystemExit(str(error)) from None
    save_rows(arguments.output, now, rows, reasons)
    for seed in range(max(arguments.seeds, arguments.wrong_seeds)):
        for row in rows:
            if (
                arguments.list
                or seed in row.seeds
                or seed >= (arguments.seeds if row.name == RIGHT else arguments.wrong_seeds)
            ):
                continue
            train_row(row, wrong.get(row.name), train, test, replace(settings, seed=seed))
            save_rows(arguments.output, now, rows, reasons)
            outcome = row.stopped[-1] or f"{row.accuracies[-1]:.2%}"
            print(f"seed {seed}  {row.name}: {outcome} in {row.seconds[-1]:.0f} s", flush=True)
    if arguments.output == RESULTS / SELECTIONS["all"].file and rows[0].seeds:
        write_result(LIBRARY, collect_training_outcomes(rows[0], rows[1:], reasons, CONFIG.num_classes))
    print(format_table(rows, reasons))


if __name__ == "__main__":
    main()
