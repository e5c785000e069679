"""Calls of the Linux kernel that Python has no name for, through ctypes: prctl, capabilities and users."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from typing import Any

# on Windows only the refusal, `find_architecture`, is of use
LIBC = ctypes.CDLL(None if os.name == "posix" else "msvcrt", use_errno=True)
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38


class ProtectionError(Exception):
    """A protection of the sandbox cannot be had here; says why."""


def find_architecture() -> str:
    """Return "x86_64" or "aarch64".

    Raises:
        ProtectionError: not Linux, or another processor (a 32-bit Python too).
    """
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    if sys.platform != "linux" or machine not in ("x86_64", "aarch64") or sys.maxsize < 2**32:
        raise ProtectionError(f"the sandbox knows Linux on x86_64 and aarch64; this is {sys.platform} on {machine}")
    return machine


def syscall(number: int, *arguments: Any) -> int:
    """Make a system call; integers are passed as 64 bits, ctypes objects as they are.

    Raises:
        OSError: with the kernel's errno.
    """
    passed = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    LIBC.syscall.restype = ctypes.c_long
    return raise_if_failed(LIBC.syscall(ctypes.c_long(number), *passed), f"system call {number}")


def prctl(option: int, *arguments: int) -> int:
    """prctl(2), its missing arguments zero.

    Raises:
        OSError: with the kernel's errno.
    """
    padded = (*arguments, 0, 0, 0, 0)[:4]
    return raise_if_failed(LIBC.prctl(ctypes.c_int(option), *map(ctypes.c_ulong, padded)), f"prctl {option}")


def raise_if_failed(result: int, call_name: str) -> int:
    """The result of a C function that answers -1 and errno on an error; OSError then."""
    if result == -1:
        number = ctypes.get_errno() or errno.EINVAL
        raise OSError(number, f"{call_name}: {os.strerror(number)}")
    return result


def die_with_parent(parent: int) -> None:
    """Be killed when the parent process dies, at once where it is dead already.

    The kernel forgets this when a process changes its user: call it after.

    Args:
        parent: what ``os.getppid()`` gives while the parent lives (0 where it is outside the pid namespace).
    """
    prctl(PR_SET_PDEATHSIG, 9)
    if os.getppid() != parent:
        os._exit(1)


CHOWN, DAC_READ_SEARCH, SETGID, SETUID = 0, 2, 6, 7
CAPGET = {"x86_64": 125, "aarch64": 90}
CAPSET = {"x86_64": 126, "aarch64": 91}
CAPABILITY_VERSION_3 = 0x20080522
PR_SET_KEEPCAPS, PR_CAPBSET_DROP = 8, 24
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4


def can_change_user() -> bool:
    """Say whether this process is root in more than name: one in a container may have lost its capabilities."""
    header, held = struct.pack("=Ii", CAPABILITY_VERSION_3, 0), ctypes.create_string_buffer(24)
    syscall(CAPGET[find_architecture()], header, held)
    effective = struct.unpack("=IIIIII", held.raw)[0]
    return os.geteuid() == 0 and all(effective >> each & 1 for each in (CHOWN, SETGID, SETUID))


def drop_privileges(uid: int | None, capabilities: int = 0) -> None:
    """Become an unprivileged user, without groups, and give up every capability.

    Args:
        uid: user and group to become, for root; None: stay who one is.
        capabilities: a bit mask of those that are kept all the same.

    Raises:
        OSError: the kernel refused.
    """
    _drop_bounding_capabilities()
    if uid is not None:
        prctl(PR_SET_KEEPCAPS, int(bool(capabilities)))
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    sets = struct.pack("=IIIIII", capabilities, capabilities, 0, 0, 0, 0)
    syscall(CAPSET[find_architecture()], header, sets)


def _drop_bounding_capabilities() -> None:
    """No later exec could win a capability; only a process that has any may do this, and only it needs to."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.EPERM):  # past the last one; nothing to give up
                return
            raise
