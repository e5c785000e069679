"""torchvision's ViT-B/16: with its real weights where they can be had, with random ones where not."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from http.client import HTTPException
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import torch
from torch import nn

__all__ = ["vit_b_16"]


def vit_b_16(patience: float = 5.0) -> tuple[nn.Module, bool]:
    """torchvision's ViT-B/16 in evaluation mode, and whether its weights are real; says which on stdout.

    The real weights (ImageNet, 330 MB) are downloaded once into torch's own cache, with a progress bar. Where
    that cannot be done, a model stands in whose parameters are all random and none of them zero.

    Args:
        patience: seconds to wait for the server's first answer.
    """
    import torchvision

    weights = torchvision.models.ViT_B_16_Weights.IMAGENET1K_V1
    file = Path(torch.hub.get_dir(), "checkpoints", Path(urlsplit(weights.url).path).name)
    problem = _download_weights(weights.url, file, patience)
    model = torchvision.models.vit_b_16()
    if problem is None:
        model.load_state_dict(torch.load(file, map_location="cpu", weights_only=True))
        print("ViT-B/16 with its real weights: trained on 1.28 million photos of ImageNet.")
    else:
        _randomize(model)
        print(f"No real weights here ({problem}): a ViT-B/16 with random weights stands in.")
    return model.eval(), problem is None


def _download_weights(url: str, file: Path, patience: float) -> str | None:
    """Download ``url`` unless ``file`` is there; None, or why that failed."""
    if file.is_file():
        return None
    if not _does_server_answer(url, patience):
        return f"{urlsplit(url).hostname} does not answer"
    checksum = file.stem.rpartition("-")[2]  # torch's habit: the name ends in the first digits of the SHA-256
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with redirect_stderr(sys.stdout), _limit_socket_silence(10 * patience):
            torch.hub.download_url_to_file(url, str(file), checksum)
    except (OSError, HTTPException) as error:
        return f"the download broke off: {error}"
    except RuntimeError:
        return "the download was damaged"
    return None


def _does_server_answer(url: str, patience: float) -> bool:
    """Say whether the server answers in time; in a thread, since looking up a name knows no time limit."""
    answers: list[bool] = []

    def request_head() -> None:
        try:
            urlopen(Request(url, method="HEAD"), timeout=patience).close()
        except (OSError, HTTPException):
            return
        answers.append(True)

    thread = Thread(target=request_head, daemon=True)
    thread.start()
    thread.join(patience)
    return bool(answers)


@contextmanager
def _limit_socket_silence(seconds: float) -> Iterator[None]:
    """Let sockets give up after so many seconds without a byte."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


@torch.no_grad()
def _randomize(model: nn.Module) -> None:
    """Move every parameter a little, the same way each time; torchvision starts its head and most biases at zero."""
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.02)
