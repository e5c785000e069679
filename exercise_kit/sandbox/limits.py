"""How much of the machine a submission may use; how a worker was lost, as a kind and as a clause for the student."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace

from exercise_kit.engine.watchdog import CALL_SECONDS, TOTAL_SECONDS
from exercise_kit.worker.bounds import BROKEN, OUT_OF_DISK, OUT_OF_MEMORY

# an H200's machine of slow cores had not graded one notebook after 22 seconds, with 20 for the start
_SECONDS_TO_START_CUDA, _SLOWER_AT_FIRST = 180.0, 3


@dataclass(frozen=True)
class Limits:
    """Where one worker computes, what it may use there, and how long it may take.

    Attributes:
        device: as :func:`~exercise_kit.sandbox.devices.resolve_device` gives it; the judge compares on the CPU.
        start_seconds: until a worker is ready, by the clock; on a GPU it starts CUDA then, which no fork can inherit.
        cell_seconds, call_seconds, total_seconds: for one cell, for one call and for everything together. Seconds in
            which the machine was busy with others do not count (see :mod:`exercise_kit.sandbox.request_clock`).
        memory_bytes: beyond what the warm process holds.
        scratch_bytes: on disk.
        reply_bytes: of tensors in one reply.
        cell_chars, all_chars: of one cell's output, and of all.
        pictures: in all.
        picture_bytes: of one picture.
    """

    device: str = "cpu"
    start_seconds: float = 20.0
    cell_seconds: float = 10.0
    call_seconds: float = CALL_SECONDS
    total_seconds: float = TOTAL_SECONDS
    memory_bytes: int = 1 << 30
    scratch_bytes: int = 64 << 20
    reply_bytes: int = 64 << 20
    cell_chars: int = 10_000
    all_chars: int = 200_000
    pictures: int = 12
    picture_bytes: int = 1 << 20

    def on(self, device: str) -> Limits:
        """The limits for work on a device: CUDA starts slowly, and loads code at the first call of each operation."""
        if not device.startswith("cuda"):
            return replace(self, device=device)
        slow = {
            name: _SLOWER_AT_FIRST * getattr(self, name) for name in ("cell_seconds", "call_seconds", "total_seconds")
        }
        return replace(self, device=device, start_seconds=_SECONDS_TO_START_CUDA, **slow)


class WorkerLost(Exception):
    """A worker did not answer as it should, and is gone.

    Attributes:
        kind: "time", "cpu", "memory", "disk", "output", "ended" or "protocol".
        words: a clause about the student's code ("did not answer within 10 seconds").
        cell: the index of the cell that ran, or None.
    """

    def __init__(self, kind: str, words: str, cell: int | None = None) -> None:
        super().__init__(f"{kind}: {words}")
        self.kind = kind
        self.words = words
        self.cell = cell


class GraderFailed(Exception):
    """The grader's own code failed while it talked to a worker: nothing can be said about the student's answer.

    Attributes: ``details``, the traceback for the instructor, where there is one; the message is a clause.
    """

    def __init__(self, words: str, details: str = "") -> None:
        super().__init__(words)
        self.details = details


def is_out_of_memory(error: BaseException | None) -> bool:
    """Say whether memory ran out in this process, as Python or as torch's allocator says it."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and "can't allocate memory" in str(error)[:1000]
    )


def make_timeout_loss(seconds: float) -> WorkerLost:
    """It was still at work when its time was over."""
    return WorkerLost("time", f"did not answer within {seconds:g} seconds")


def make_protocol_loss(words: str) -> WorkerLost:
    """It sent what no reply is."""
    return WorkerLost("protocol", f"sent something that is no answer: {words}")


def make_exit_loss(status: int | None, by_itself: bool) -> WorkerLost:
    """It closed its end of the line.

    Args:
        status: of its exit; minus a signal's number; None when nobody knows.
        by_itself: nobody ended it from outside.
    """
    if status is None or not by_itself:
        return WorkerLost("ended", "hung up on the judge")
    if status in (OUT_OF_MEMORY, -signal.SIGKILL):
        return WorkerLost("memory", "ran out of memory")
    if status == OUT_OF_DISK:
        return WorkerLost("disk", "wrote more files than it may")
    if status == -signal.SIGXCPU:
        return WorkerLost("cpu", "used up its processor time")
    if status == BROKEN:
        return WorkerLost("ended", "broke off the process that it ran in")
    if status >= 0:
        return WorkerLost("ended", f"ended the process that it ran in, with status {status}")
    return WorkerLost("ended", f"crashed the process that it ran in, with the signal {_name_signal(-status)}")


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
