"""What the warm process imports and makes ready once, so that no child pays for it."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from typing import Any

_PACKAGES = (
    *("torch", "torch.testing", "torch._dynamo", "torch.optim", "torch.utils.data", "torchvision"),
    *("numpy", "matplotlib", "matplotlib.figure", "matplotlib.font_manager", "matplotlib.pyplot"),
    *("matplotlib.backends.backend_agg", "IPython", "torchinfo", "PIL.Image", "PIL.JpegImagePlugin"),
    *("PIL.PngImagePlugin", "PIL.BmpImagePlugin", "PIL.GifImagePlugin", "PIL.PpmImagePlugin"),
)


def everything(device: str = "cpu") -> Any:
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
    from . import loaders
    from .shell import make_shell

    shell = make_shell()
    _settle(backward=device == "cpu")
    loaders.without_workers(shell.note)
    warnings.formatwarning = _without_path
    warnings.filterwarnings("ignore", message="To exit: use")  # IPython's, at sys.exit()
    return shell


def _settle(*, backward: bool) -> None:
    """Do once what torch does at first use."""
    import torch

    layer = torch.nn.Linear(2, 2)
    result = layer(torch.ones(1, 2)).sum()
    if backward:
        result.backward()
    torch.testing.assert_close(torch.ones(2), torch.ones(2))


def _without_path(message: Warning | str, category: type[Warning], *_: object, **__: object) -> str:
    return f"{category.__name__}: {message}\n"
