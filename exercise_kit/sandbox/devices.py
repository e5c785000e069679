"""On which device students' code may compute here, and whether it can be kept apart there."""

from __future__ import annotations

import re
from collections.abc import Mapping

NAMES = "cpu, cuda, or cuda:1 for the second GPU"
_CUDA = re.compile(r"cuda(?::(\d{1,3}))?")


class DeviceError(ValueError):
    """No student's code can be graded on the device; the message says why, and what can be named."""


def resolve_device(name: str, *, here: bool = True) -> str:
    """The device in full: "cpu", "cuda:0".

    Args:
        name: as on the command line.
        here: look whether this machine has it; not where other machines grade.

    Raises:
        DeviceError: it is no such device, or not there.
    """
    if name == "cpu":
        return name
    if name.split(":")[0] == "mps":
        raise DeviceError("Apple's GPUs have no float64, which the hidden checks ask for; grade on cpu or cuda")
    found = _CUDA.fullmatch(name)
    if not found:
        raise DeviceError(f"{name!r} is no device to grade on; name one of: {NAMES}")
    number = int(found[1] or 0)
    if here:
        _require_gpu(number)
    return f"cuda:{number}"


def _require_gpu(number: int) -> None:
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        raise DeviceError(
            "PyTorch sees no NVIDIA GPU on this machine. On Colab: Runtime > Change runtime type > GPU; "
            "or grade with --device cpu"
        )
    if number >= count:
        there = "one GPU, cuda:0" if count == 1 else f"{count} GPUs, cuda:0 to cuda:{count - 1}"
        raise DeviceError(f"there is no cuda:{number} on this machine; it has {there}")


def list_missing_protections(device: str) -> Mapping[str, str]:
    """List what this machine lacks for keeping students' code apart, each with what to do; empty if it has enough."""
    from exercise_kit.worker.capabilities import probe_capabilities

    protections = probe_capabilities()
    enough = protections.is_sufficient or (device != "cpu" and protections.is_sufficient_for_gpu)
    return {} if enough else protections.missing
