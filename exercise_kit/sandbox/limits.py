"""How much of the machine a submission may use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What one worker may use, and how long it may take.

    Attributes: seconds for one cell, for one call and for everything together, without those in which the machine was
    busy with others (see :mod:`exercise_kit.sandbox.patience`); ``memory_bytes`` beyond what the warm
    process holds; ``scratch_bytes`` on disk; ``reply_bytes`` of tensors in one reply; characters of one cell's output
    and of all, pictures in all and bytes of one picture.
    """

    cell_seconds: float = 10.0
    call_seconds: float = 10.0
    total_seconds: float = 60.0
    memory_bytes: int = 1 << 30
    scratch_bytes: int = 64 << 20
    reply_bytes: int = 64 << 20
    cell_chars: int = 10_000
    all_chars: int = 200_000
    pictures: int = 12
    picture_bytes: int = 1 << 20
