"""The device on which a student's code computes: the CPU, or a GPU that the judge grades on.

The judge knows nothing of it. It sends numbers, which are put on the device here before a call, and gets numbers, which
are brought back to the CPU before they are sent: see :mod:`worker.values`.
"""

from __future__ import annotations

import torch

CPU = torch.device("cpu")


def start_device(name: str) -> torch.device:
    """The device of this name, ready for use; a GPU is initialized here, in the child, and never in the warm process.

    Raises:
        RuntimeError: there is no such device.
    """
    device = torch.device(name)
    if device.type == "cuda":
        device = torch.device("cuda", device.index or 0)
        torch.cuda.set_device(device)
        square = torch.ones(2, 2, device=device, requires_grad=True)
        (square @ square).sum().backward()  # so that no student's call pays for CUDA's libraries and threads
        torch.cuda.synchronize(device)
    return device


def reset_device(device: torch.device, seed: int | None) -> None:
    """Compute in full float32 on the device, whatever a cell has set, and draw what a fresh start draws.

    Args:
        device: the one that the student's code computes on.
        seed: what its generator begins with; None lets it go on.
    """
    if device.type != "cuda":
        return
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False
    if seed is not None:
        torch.cuda.manual_seed(seed)
