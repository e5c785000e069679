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


def move_into_large_pages(proc: int | None = None) -> int:
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


# the shell imports matplotlib, so that the rest of it costs next to nothing
_FIRST = (
    *("torch", "torch.testing", "torch.optim", "torch.utils.data", "numpy", "IPython", "matplotlib.figure"),
    *("matplotlib.font_manager", "matplotlib.pyplot", "matplotlib.backends.backend_agg", "PIL.Image"),
    *("PIL.JpegImagePlugin", "PIL.PngImagePlugin", "PIL.BmpImagePlugin", "PIL.GifImagePlugin", "PIL.PpmImagePlugin"),
)
# each of these takes half as long as torch does, or as long: the first submission waits only for what its code uses
_LATER = {
    # torch imports it for any optimizer, and sympy, which assert_close imports, with it
    "torch._dynamo": re.compile(
        r"\b(optim|Adam\w*|SGD|_dynamo|assert_close|torch\.(compile|export)|training|recipes)\b"
    ),
    "torchvision": re.compile(r"\btorchvision\b"),
    "torchinfo": re.compile(r"\btorchinfo\b"),
}


def find_used_packages(source: str) -> list[str]:
    """Which later packages code seems to use; what is missed here is imported when the code runs."""
    return [package for package, used in _LATER.items() if used.search(source)]


def preload_first(device: str = "cpu") -> Any:
    """Import the packages that every submission needs, and make the shell.

    Args:
        device: where children will compute; torch makes its threads for devices at the first backward pass, and no
            thread survives a fork, so that for any device but the CPU none runs here.
    """
    with contextlib.suppress(ImportError):
        import torch

        torch.set_num_threads(1)  # before any operation: a child of a process with more threads would hang
    _import_packages(_FIRST)
    from .shell import make_shell

    shell = make_shell()
    _warm_up_torch(backward=device == "cpu")
    _disable_data_loader_workers(shell.print_note_on_omission)
    warnings.formatwarning = _format_warning_without_path
    warnings.filterwarnings("ignore", message="To exit: use")  # IPython's, at sys.exit()
    return shell


def preload_later(packages: Sequence[str] | None) -> None:
    """Import those of the later packages that there are; None: all of them."""
    _import_packages(list(_LATER) if packages is None else packages)
    if packages is None or "torch._dynamo" in packages:
        import torch

        torch.testing.assert_close(torch.ones(2), torch.ones(2))


def _import_packages(packages: Sequence[str]) -> None:
    for package in packages:
        with contextlib.suppress(ImportError):
            importlib.import_module(package)


def _warm_up_torch(*, backward: bool) -> None:
    """Do once what torch does at first use."""
    import torch

    layer = torch.nn.Linear(2, 2)
    result = layer(torch.ones(1, 2)).sum()
    if backward:
        result.backward()


def _format_warning_without_path(message: Warning | str, category: type[Warning], *_: object, **__: object) -> str:
    return f"{category.__name__}: {message}\n"


_ONLY_WITH_WORKERS = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "worker_init_fn", "timeout")


def _disable_data_loader_workers(note: Callable[[str], None]) -> None:
    """From here on every DataLoader loads in this process; the first that asked for workers leaves a ``note``."""
    from torch.utils.data import DataLoader

    begin = DataLoader.__init__
    noted_once: list[bool] = []

    @functools.wraps(begin)
    def init_without_workers(loader: Any, *inputs: Any, num_workers: int = 0, **options: Any) -> None:
        inputs, num_workers = _remove_worker_argument(inputs, num_workers)
        if num_workers:
            for name in _ONLY_WITH_WORKERS:
                options.pop(name, None)
            if not noted_once:
                noted_once.append(True)
                note("DataLoader loads without workers while grading")
        begin(loader, *inputs, **options)

    kind: Any = DataLoader
    kind.__init__ = init_without_workers


def _remove_worker_argument(inputs: tuple[Any, ...], num_workers: int) -> tuple[tuple[Any, ...], int]:
    """The positional arguments of DataLoader with no workers among them, and how many were asked for."""
    place = 5  # dataset, batch_size, shuffle, sampler, batch_sampler, num_workers
    if len(inputs) <= place:
        return inputs, num_workers
    return (*inputs[:place], 0, *inputs[place + 1 :]), inputs[place]
