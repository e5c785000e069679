"""How much memory a job's process may take: the last wall against a submission that would take the machine's.

The limit is on private writable memory (RLIMIT_DATA, see getrlimit(2)), relative to what the process holds when it is
set, and soft, so that a process that is started from here can lift it for itself.
"""

from __future__ import annotations

import resource
from pathlib import Path

# while torch and the judge are still to be imported, and a submission is read
ROOM_TO_START = 4 << 30
# beyond the judge; it reads 64 MB at a time, and its own tensors are tiny
ROOM_TO_GRADE = 2 << 30


def leave_room(room: int) -> None:
    """Let this process take ``room`` bytes more than it holds now; where the kernel does not tell, nothing changes."""
    held, (_, hard) = _held(), resource.getrlimit(resource.RLIMIT_DATA)
    if held:
        most = held + room
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def is_short() -> bool:
    """Whether less than half of the room to grade is left, so that another process should take over."""
    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return soft != resource.RLIM_INFINITY and _held() > soft - ROOM_TO_GRADE // 2


def _held() -> int:
    """Bytes of private writable memory; 0 where that cannot be seen."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[5]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0
