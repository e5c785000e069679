"""What the warm process imports and makes ready once, so that no child pays for it.

Its memory is gathered into large pages: a fork and a child's end then touch hundreds of entries, not a hundred
thousand. Where the kernel cannot do that, a fork takes longer, and that is all. A DataLoader loads without worker
processes from then on: a submission has none to give.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import os
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

_LARGE = 2 << 20  # bytes of a large page on x86-64, and on ARM with pages of 4 KiB
_COLLAPSE = 25  # MADV_COLLAPSE, from Linux 6.1 on
_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw-p [0-9a-f]+ 00:00 0\s*(\[heap\])?")


def gather(proc: int | None = None) -> int:
    """Move this process' own memory into large pages; how many there are now.

    Args:
        proc: descriptor of /proc, where that is not in its place.
    """
    try:
        maps = os.open("/proc/self/maps" if proc is None else "self/maps", os.O_RDONLY, dir_fd=proc)
        with open(maps, encoding="ascii", errors="replace") as listed:
            mappings = [found for line in listed if (found := _MAPPING.fullmatch(line.strip()))]
        madvise = ctypes.CDLL(None).madvise
    except (OSError, AttributeError):
        return 0
    count = 0
    for mapping in mappings:
        first, end = (int(address, 16) // _LARGE * _LARGE for address in (mapping[1], mapping[2]))
        start = first if first == int(mapping[1], 16) else first + _LARGE
        for address in range(start, end, _LARGE):
            count += madvise(ctypes.c_void_p(address), ctypes.c_size_t(_LARGE), _COLLAPSE) == 0
    return count


_FIRST = ("torch", "torch.testing", "torch.optim", "torch.utils.data", "numpy", "IPython")
# these take as long as torch does: the first submission waits for them only where its code may use them
_REST = (
    *("torch._dynamo", "torchvision", "matplotlib", "matplotlib.figure", "matplotlib.font_manager"),
    *("matplotlib.pyplot", "matplotlib.backends.backend_agg", "torchinfo", "PIL.Image", "PIL.JpegImagePlugin"),
    *("PIL.PngImagePlugin", "PIL.BmpImagePlugin", "PIL.GifImagePlugin", "PIL.PpmImagePlugin"),
)
# torch imports torch._dynamo for any optimizer; a lesson's own modules import what they draw, load and train with
_USES_REST = re.compile(
    r"\b(optim|compile|jit|export|vmap|func|_dynamo|torchvision|matplotlib|plt|torchinfo|PIL|eval|exec|import_module"
    r"|__import__|plots\w*|training|trained|recipes|fine_tuning)\b"
)


def uses_rest(source: str) -> bool:
    """Whether code may import what is not among the first packages; what is missed is imported when it runs."""
    return _USES_REST.search(source) is not None


def preload_first(device: str = "cpu") -> Any:
    """Import the packages that every submission needs, and make the shell.

    Args:
        device: where children will compute; torch makes its threads for devices at the first backward pass, and no
            thread survives a fork, so that for any device but the CPU none runs here.
    """
    with contextlib.suppress(ImportError):
        import torch

        torch.set_num_threads(1)  # before any operation: a child of a process with more threads would hang
    _import(_FIRST)
    from .shell import make_shell

    shell = make_shell()
    _warm_up(backward=device == "cpu")
    _load_without_workers(shell.note)
    warnings.formatwarning = _without_path
    warnings.filterwarnings("ignore", message="To exit: use")  # IPython's, at sys.exit()
    return shell


def preload_rest() -> None:
    """Import the other packages that there are."""
    _import(_REST)


def _import(packages: Sequence[str]) -> None:
    for package in packages:
        with contextlib.suppress(ImportError):
            importlib.import_module(package)


def _warm_up(*, backward: bool) -> None:
    """Do once what torch does at first use."""
    import torch

    layer = torch.nn.Linear(2, 2)
    result = layer(torch.ones(1, 2)).sum()
    if backward:
        result.backward()
    torch.testing.assert_close(torch.ones(2), torch.ones(2))


def _without_path(message: Warning | str, category: type[Warning], *_: object, **__: object) -> str:
    return f"{category.__name__}: {message}\n"


_ONLY_WITH_WORKERS = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "worker_init_fn", "timeout")


def _load_without_workers(note: Callable[[str], None]) -> None:
    """From here on every DataLoader loads in this process; the first that asked for workers leaves a ``note``."""
    from torch.utils.data import DataLoader

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
