"""DataLoader without worker processes: a submission has none to give."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch.utils.data import DataLoader

_ONLY_WITH_WORKERS = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "worker_init_fn", "timeout")


def without_workers(note: Callable[[str], None]) -> None:
    """From here on every DataLoader loads in this process; the first that asked for workers leaves a ``note``."""
    begin = DataLoader.__init__
    noted_once: list[bool] = []

    @functools.wraps(begin)
    def init(loader: Any, *inputs: Any, num_workers: int = 0, **options: Any) -> None:
        inputs, num_workers = _by_position(inputs, num_workers)
        if num_workers:
            for name in _ONLY_WITH_WORKERS:
                options.pop(name, None)
            if not noted_once:
                noted_once.append(True)
                note("DataLoader loads without workers while grading")
        begin(loader, *inputs, **options)

    kind: Any = DataLoader
    kind.__init__ = init


def _by_position(inputs: tuple[Any, ...], num_workers: int) -> tuple[tuple[Any, ...], int]:
    """The positional arguments of DataLoader with no workers among them, and how many were asked for."""
    place = 5  # dataset, batch_size, shuffle, sampler, batch_sampler, num_workers
    if len(inputs) <= place:
        return inputs, num_workers
    return (*inputs[:place], 0, *inputs[place + 1 :]), inputs[place]
