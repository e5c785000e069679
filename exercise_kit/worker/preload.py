"""What the warm process imports and makes ready once, so that no child pays for it.

Its memory is gathered into large pages: a fork and a child's end then touch hundreds of entries, not a hundred
thousand. Where the kernel cannot do that, a fork takes longer, and that is all.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import re
import warnings
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


_PACKAGES = (
    *("torch", "torch.testing", "torch._dynamo", "torch.optim", "torch.utils.data", "torchvision"),
    *("numpy", "matplotlib", "matplotlib.figure", "matplotlib.font_manager", "matplotlib.pyplot"),
    *("matplotlib.backends.backend_agg", "IPython", "torchinfo", "PIL.Image", "PIL.JpegImagePlugin"),
    *("PIL.PngImagePlugin", "PIL.BmpImagePlugin", "PIL.GifImagePlugin", "PIL.PpmImagePlugin"),
)


def preload_all(device: str = "cpu") -> Any:
    """Import the packages that there are, and make the shell.

    Args:
        device: where children will compute; torch makes its threads for devices at the first backward pass, and no
            thread survives a fork, so that for any device but the CPU none runs here.
    """
    with contextlib.suppress(ImportError):
        import torch

        torch.set_num_threads(1)  # before any operation: a child of a process with more threads would hang
    for package in _PACKAGES:
        with contextlib.suppress(ImportError):
            importlib.import_module(package)
    from . import dataloader
    from .shell import make_shell

    shell = make_shell()
    _warm_up(backward=device == "cpu")
    dataloader.without_workers(shell.note)
    warnings.formatwarning = _without_path
    warnings.filterwarnings("ignore", message="To exit: use")  # IPython's, at sys.exit()
    return shell


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
