"""A check neither depends on torch's global settings nor leaves them changed, and nothing reaches stderr."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def fresh_settings() -> Iterator[None]:
    """Torch as at a fresh start: float32, CPU, gradients on, no autocast, a fixed random state."""
    with settings_kept(), torch.random.fork_rng(devices=[]), torch.inference_mode(False), torch.enable_grad():
        if torch.get_default_device().type != "cpu":
            torch.set_default_device("cpu")
        torch.set_default_dtype(torch.float32)
        torch.default_generator.manual_seed(0)
        with torch.autocast("cpu", enabled=False):
            yield


@contextlib.contextmanager
def settings_kept() -> Iterator[None]:
    """Put back what the code inside changes: default dtype and device, gradient mode, threads, warnings."""
    dtype, device = torch.get_default_dtype(), _chosen_device()
    gradients, threads, depth = torch.is_grad_enabled(), torch.get_num_threads(), sys.getrecursionlimit()
    with warnings.catch_warnings():
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
            torch.set_grad_enabled(gradients)
            if _chosen_device() != device:
                torch.set_default_device(device)
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)
            sys.setrecursionlimit(depth)


def _chosen_device() -> torch.device | None:
    """What ``set_default_device`` was given last; ``get_default_device`` cannot tell None from the CPU."""
    context = getattr(getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None), "device_context", None)
    return None if context is None else context.device


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nothing on stderr, for which nbgrader gives a cell zero: no warning, no log, no line of torch's C++."""
    silenced = logging.root.manager.disable
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()), _descriptor_silenced():
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(silenced)


@contextlib.contextmanager
def uncompiled() -> Iterator[None]:
    """What torch.compile has compiled runs as it was written: at once, and seen by whoever watches."""
    if "torch._dynamo" not in sys.modules:  # nothing was compiled, and the import takes a second
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


@contextlib.contextmanager
def _descriptor_silenced() -> Iterator[None]:
    """Send file descriptor 2 to nowhere; where there is none, leave things as they are."""
    try:
        kept = os.dup(2)
    except OSError:
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
