"""Timing several pieces of work beside each other, fairly: in turns, in a drawn order, medians of ratios."""

from __future__ import annotations

import os
import platform
import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import torch

Work = Callable[[], object]


class Stopwatch:
    """Seconds that a piece of work takes once, from a run that is long enough to be read.

    On a GPU by the clock, everything queued waited for. On one thread of a CPU by the processor's time, which
    what else runs on the machine disturbs less; on several threads by the clock.

    Args:
        device: where the work runs, "cpu" or "cuda".
        seconds: the work is repeated until one reading takes about this long.
    """

    def __init__(self, device: str, seconds: float = 0.3) -> None:
        self.on_gpu = device != "cpu"
        self.seconds = seconds
        self.clock = time.perf_counter if self.on_gpu or torch.get_num_threads() > 1 else time.process_time

    def time_work(self, work: Work, repeats: int) -> float:
        """Seconds of one repeat, as the mean over ``repeats``."""
        self._wait()
        start = self.clock()
        for _ in range(repeats):
            work()
        self._wait()
        return (self.clock() - start) / repeats

    def choose_repeats(self, work: Work) -> int:
        """Return how often the work has to be done for one reading; warms up on the way."""
        self.time_work(work, 2)
        return max(1, round(self.seconds / max(self.time_work(work, 1), 1e-7)))

    def _wait(self) -> None:
        if self.on_gpu:
            torch.cuda.synchronize()


def time_in_turns(works: Mapping[str, Work], rounds: int, stopwatch: Stopwatch) -> dict[str, list[float]]:
    """Seconds of each piece of work in each round; in every round all have their turn, in a drawn order."""
    repeats = {name: stopwatch.choose_repeats(work) for name, work in works.items()}
    order, rng = list(works), random.Random(0)
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        rng.shuffle(order)
        for name in order:
            seconds[name].append(stopwatch.time_work(works[name], repeats[name]))
    return seconds


def compute_time_ratios(seconds: Mapping[str, list[float]], ours: str) -> dict[str, dict[str, float]]:
    """For each of the others: how many times our seconds it took, as median and quartiles over the rounds.

    Above 1 the other is slower than ``ours``. A round gives one ratio, so that a slow minute hits both sides.
    """
    found = {}
    for name, theirs in seconds.items():
        if name != ours:
            each = [other / own for other, own in zip(theirs, seconds[ours], strict=True)]
            low, _, high = quantiles(each, n=4) if len(each) > 1 else each * 3
            found[name] = {"median": round(median(each), 3), "low": round(low, 3), "high": round(high, 3)}
    return found


def measure_matmul_rate(device: str, dtype: torch.dtype, stopwatch: Stopwatch) -> float:
    """FLOP per second of the fastest square matrix product found: the peak that a model can hope for."""
    rates = []
    for side in (4096, 8192) if device != "cpu" else (768, 1536):
        first, second = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
        seconds = time_in_turns({"gemm": lambda a=first, b=second: a @ b}, 5, stopwatch)["gemm"]
        rates.append(2 * side**3 / min(seconds))
    return max(rates)


def describe_machine(device: str) -> dict[str, Any]:
    """Return what a reader has to know of the machine and the moment."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "device": torch.cuda.get_device_name() if device != "cpu" else f"CPU, {_read_processor_name()}",
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def _read_processor_name() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()
