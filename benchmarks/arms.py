"""Train these variants and write a table: what benchmarks share that train for long.

Each measurement is written when it is made, so a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from exercise_kit import files
from vit_course.data import Batches, ImageDataset, load_npz, split_indices
from vit_course.metrics import paired_interval
from vit_course.training import evaluate, train_one_epoch, warmup_cosine

WARMUP, NUM_VALIDATION, SPLIT_SEED = 0.1, 5_000, 0
Place = tuple[str, ...]


def collect_conditions(benchmark: str, **known: Any) -> dict[str, Any]:
    """All that a log's numbers depend on, torch's version among it, as JSON gives it back."""
    return json.loads(json.dumps({"benchmark": benchmark, "torch": torch.__version__, **known}))


class Log:
    """What a benchmark has found, in a file that is written after each measurement.

    Args:
        path: the file. What an earlier run under the same conditions has found is gone on with.
        known: the conditions. Where ``"arms"`` among them describes each arm, an arm whose description has changed
            begins anew, and all others keep their runs.
        arms: names of the arms, each of which has a place in ``found["results"]``.

    Raises:
        SystemExit: the file holds results under other conditions, which are not to be lost; the benchmark ends with
            one sentence on stderr.
    """

    def __init__(self, path: Path, known: Mapping[str, Any], arms: Iterable[str] = ()) -> None:
        self.path = path
        earlier: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else dict(known)
        if other := [name for name, value in known.items() if name != "arms" and earlier.get(name) != value]:
            raise SystemExit(f"{path} holds results of another {', '.join(other)}: give another --output, or move it")
        self.found = earlier | dict(known)
        if arms:
            now, before, runs = known.get("arms", {}), earlier.get("arms", {}), earlier.get("results", {})
            self.found["results"] = {
                name: runs.get(name, {})
                if _leave_out_switched_off(now.get(name)) == _leave_out_switched_off(before.get(name))
                else {}
                for name in arms
            }

    def measure_once(self, *place: str, by: Callable[[], Any]) -> Any:
        """Return what is found at a place, as ``"photos", "0"``: measured and written now, where nothing is."""
        if not self.find_at(place):
            self._keep_result(place, by())
        return self.find_at(place)

    def measure_missing(self, wanted: Mapping[Place, tuple[Any, ...]], by: Callable[..., Any], workers: int) -> None:
        """Measure what is missing, so many at a time, each in a process of its own.

        Args:
            wanted: place → what ``by`` is given there, in this order.
            by: it, what it is given and what it gives are pickled.
            workers: how many at a time.
        """
        waiting = [place for place in wanted if not self.find_at(place)]
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            results = pool.map(by, *zip(*(wanted[place] for place in waiting), strict=True)) if waiting else iter(())
            for place, found in zip(waiting, results, strict=True):
                self._keep_result(place, found)

    def find_at(self, place: Place) -> Any:
        """Return what is found at a place; nothing where nothing is."""
        found: Any = self.found
        for name in place:
            found = (found or {}).get(name)
        return found

    def _keep_result(self, place: Place, found: Any) -> None:
        *outer, last = place
        at = self.found
        for name in outer:
            at = at.setdefault(name, {})
        at[last] = round_numbers(found)
        self.write()
        shown = at[last]
        if isinstance(shown, dict):  # of what is measured after each epoch, the last is enough
            shown = {name: each[-1] if isinstance(each, list) else each for name, each in shown.items()}
        print(f"{', '.join(place)}: {shown}", flush=True)

    def write(self) -> None:
        """Write everything so far, and the date."""
        write_result(self.path, self.found | {"date": datetime.now(UTC).date().isoformat()})


def _leave_out_switched_off(description: Any) -> Any:
    """A description without what is off in it: an option that came later is off in all arms from before."""
    if not isinstance(description, dict):
        return description
    return {name: _leave_out_switched_off(value) for name, value in description.items() if value}


def write_result(path: Path, result: Mapping[str, Any]) -> None:
    """``result`` as JSON, whole or not at all; a list of numbers stands in one line."""
    text = json.dumps(result, indent=1, ensure_ascii=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, (re.sub(r"\n\s+(?=[-\d\]])", " ", text) + "\n").encode())


def round_numbers(found: Any) -> Any:
    """The same with numbers of five digits; whole numbers stay."""
    if isinstance(found, dict):
        return {name: round_numbers(each) for name, each in found.items()}
    if isinstance(found, list | tuple):
        return [round_numbers(each) for each in found]
    return float(f"{found:.5g}") if isinstance(found, float) else found


def make_parser(description: str | None, output: Path, data: str = "cifar10.npz") -> argparse.ArgumentParser:
    """The command line of a benchmark that writes a log, with ``--data`` and ``--output``."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help=data)
    parser.add_argument("--output", type=Path, default=output)
    return parser


def format_row(name: str, each: Sequence[float], baseline: Sequence[float] | None = None, width: int = 28) -> str:
    """A table's line: percent, seed by seed; beside a baseline of the same seeds the difference and its interval."""
    line = f"{name:{width}}" + "  ".join(f"{accuracy:5.1f}" for accuracy in each)
    if baseline is not None and len(each) == len(baseline) > 1:
        line += "   {:+5.1f} ± {:.1f}".format(*paired_interval(each, baseline))
    return line


def load_train_and_validation(data: Path) -> tuple[ImageDataset, ImageDataset]:
    """Training and validation images, both with the statistics of the former."""
    full = load_npz(data, "train")
    train_indices, validation_indices = split_indices(len(full), NUM_VALIDATION, SPLIT_SEED)
    train = replace(full.subset(train_indices), mean=(), std=())
    return train, full.subset(validation_indices).with_statistics_of(train)


def schedule_learning_rates(optimizer: Optimizer, total_steps: int) -> None:
    """Give every step its learning rate: a warm-up, then a cosine."""
    highest = [group["lr"] for group in optimizer.param_groups]
    steps = itertools.count()

    def before_update(optimizer: Optimizer, *_: object) -> None:
        factor = warmup_cosine(next(steps), round(WARMUP * total_steps), total_steps)
        for group, rate in zip(optimizer.param_groups, highest, strict=True):
            group["lr"] = factor * rate

    optimizer.register_step_pre_hook(before_update)


def train_for(
    epochs: int, model: nn.Module, optimizer: Optimizer, loader: Any, validation: ImageDataset
) -> dict[str, list[float]]:
    """Losses and accuracy in [0, 1] after each epoch, and the seconds of them all."""
    watched, started = Batches(validation, 500), time.perf_counter()
    history = [
        (train_one_epoch(model, loader, optimizer, "cpu"), *evaluate(model, watched, "cpu")) for _ in range(epochs)
    ]
    names = ("train_loss", "validation_loss", "validation_accuracy")
    columns = {name: list(each) for name, each in zip(names, zip(*history, strict=True), strict=True)}
    return columns | {"seconds": [round(time.perf_counter() - started, 1)]}
