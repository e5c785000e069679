"""The kernel's calls that Python has no name for, through ctypes."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from typing import Any

# on Windows only the refusal, `architecture`, is of use
LIBC = ctypes.CDLL(None if os.name == "posix" else "msvcrt", use_errno=True)
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38


class WallError(Exception):
    """A wall of the sandbox cannot be had here; says why."""


def architecture() -> str:
    """ "x86_64" or "aarch64".

    Raises:
        WallError: not Linux, or another processor (a 32-bit Python too).
    """
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    if sys.platform != "linux" or machine not in ("x86_64", "aarch64") or sys.maxsize < 2**32:
        raise WallError(f"the sandbox knows Linux on x86_64 and aarch64; this is {sys.platform} on {machine}")
    return machine


def syscall(number: int, *arguments: Any) -> int:
    """Make a system call; integers are passed as 64 bits, ctypes objects as they are.

    Raises:
        OSError: with the kernel's errno.
    """
    passed = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    LIBC.syscall.restype = ctypes.c_long
    return checked(LIBC.syscall(ctypes.c_long(number), *passed), f"system call {number}")


def prctl(option: int, *arguments: int) -> int:
    """prctl(2), its missing arguments zero.

    Raises:
        OSError: with the kernel's errno.
    """
    padded = (*arguments, 0, 0, 0, 0)[:4]
    return checked(LIBC.prctl(ctypes.c_int(option), *map(ctypes.c_ulong, padded)), f"prctl {option}")


def checked(result: int, what: str) -> int:
    """The result of a C function that answers -1 and errno on an error; OSError then."""
    if result == -1:
        number = ctypes.get_errno() or errno.EINVAL
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def die_with(parent: int) -> None:
    """Be killed when the parent process dies, at once where it is dead already.

    The kernel forgets this when a process changes its user: call it after.

    Args:
        parent: what ``os.getppid()`` gives while the parent lives (0 where it is outside the pid namespace).
    """
    prctl(PR_SET_PDEATHSIG, 9)
    if os.getppid() != parent:
        os._exit(1)
