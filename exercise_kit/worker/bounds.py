"""How much of the machine one child may use."""

from __future__ import annotations

import contextlib
import os
import resource
from dataclasses import dataclass

NUMBER_OF_FILES = 256
GPU_BYTES = 4 << 30  # of main memory, for CUDA's own libraries and their buffers
STACK_BYTES = 8 << 20


@dataclass(frozen=True)
class Bounds:
    """Limits that the kernel holds a child to; wall time and the judge's patience are the judge's.

    Attributes:
        memory_bytes: address space above what the warm process takes; with a GPU, whose driver reserves far more
            addresses than it uses, memory of its own.
        gpu: whether a GPU is used.
        cpu_seconds: processor time; over it comes SIGXCPU, a second later SIGKILL.
        file_bytes: the largest file.
        threads: how many threads there may be.
    """

    memory_bytes: int = 1 << 30
    cpu_seconds: int = 60
    file_bytes: int = 64 << 20
    threads: int = 64
    gpu: bool = False


def set_bounds(bounds: Bounds, proc: int, other_tasks: int) -> None:
    """Put the limits into force for this process, for ever.

    Args:
        bounds: the limits.
        proc: descriptor of a /proc in which this process is seen.
        other_tasks: tasks of the same user that the kernel counts beside this process' own.
    """
    with contextlib.suppress(OSError):
        _write(proc, "self/oom_score_adj", b"1000")  # where memory runs out, this process goes first
    addresses, data = _size_of_self(proc)
    if bounds.gpu:
        _limit(resource.RLIMIT_DATA, data + bounds.memory_bytes + GPU_BYTES)
    else:
        _limit(resource.RLIMIT_AS, addresses + bounds.memory_bytes)
    _limit(resource.RLIMIT_CPU, bounds.cpu_seconds, bounds.cpu_seconds + 1)
    _limit(resource.RLIMIT_FSIZE, bounds.file_bytes)
    _limit(resource.RLIMIT_NPROC, other_tasks + bounds.threads)
    _limit(resource.RLIMIT_NOFILE, NUMBER_OF_FILES)
    _limit(resource.RLIMIT_STACK, STACK_BYTES)
    for nothing in (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE):
        _limit(nothing, 0)


def _limit(which: int, soft: int, hard: int | None = None) -> None:
    """Set a limit, or leave the one there is where it is lower."""
    wanted = (soft, soft if hard is None else hard)
    highest = resource.getrlimit(which)[1]
    if highest != resource.RLIM_INFINITY:
        wanted = (min(wanted[0], highest), min(wanted[1], highest))
    resource.setrlimit(which, wanted)


def _size_of_self(proc: int) -> tuple[int, int]:
    """The address space of this process and what of it is data of its own, in bytes."""
    descriptor = os.open("self/statm", os.O_RDONLY, dir_fd=proc)
    try:
        pages = [int(number) for number in os.read(descriptor, 100).split()]
    finally:
        os.close(descriptor)
    return pages[0] * resource.getpagesize(), pages[5] * resource.getpagesize()


def _write(proc: int, path: str, text: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY, dir_fd=proc)
    try:
        os.write(descriptor, text)
    finally:
        os.close(descriptor)
