"""seccomp: which system calls a process may make, as a BPF program that the kernel runs at each of them.

What is refused answers EPERM, as it would to somebody without the right; clone3 and calls that this table has never
heard of answer ENOSYS, so that the C library falls back on older ones. Another architecture's calls kill.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Callable, Iterator, Sequence

from .kernel import architecture, syscall
from .syscalls import DENIED, LOOKED_AT, NEWEST

NUMBER_OF = {"x86_64": 317, "aarch64": 277}  # of the call seccomp itself
SET_MODE_FILTER = 1
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32 = 0x40000000  # the bit of x32's numbers on x86_64

LOAD, JUMP_EQUAL, JUMP_GREATER, JUMP_ANY_BIT, AND, RETURN = 0x20, 0x15, 0x25, 0x45, 0x54, 0x06
ALLOW, KILL = 0x7FFF0000, 0x80000000
REFUSE, UNKNOWN = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
AT_NUMBER, AT_ARCHITECTURE = 0, 4

CLONE_THREAD = 0x10000
SOCK_STREAM = 1
# signals and their owners could be sent to others; the last two type into a terminal
FCNTL_REFUSED = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX
IOCTL_REFUSED = (0x8901, 0x8902, 0x5412, 0x541C)  # FIOSETOWN, SIOCSPGRP, TIOCSTI, TIOCLINUX
# PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_CAPBSET_READ, PR_GET_NO_NEW_PRIVS, PR_SET_VMA
PRCTL_ALLOWED = (3, 15, 16, 23, 39, 0x53564D41)

Instruction = tuple[int, int, int, int]


def program(own_pid: int) -> bytes:
    """The filter for a process of this pid, as the kernel's array of ``sock_filter``.

    Raises:
        WallError: an architecture whose numbers are not known here.
    """
    machine = architecture()
    steps: list[Instruction] = [
        (LOAD, 0, 0, AT_ARCHITECTURE),
        (JUMP_EQUAL, 1, 0, AUDIT_ARCH[machine]),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, AT_NUMBER),
        (JUMP_ANY_BIT, 0, 1, X32),
        (RETURN, 0, 0, KILL),
        (JUMP_GREATER, 0, 1, NEWEST),
        (RETURN, 0, 0, UNKNOWN),
    ]
    for name, rule in _closer_looks(own_pid).items():
        number = getattr(LOOKED_AT[name], machine)
        body = list(rule())
        steps += [(JUMP_EQUAL, 0, len(body), number), *body]
    for name in DENIED:
        number = getattr(DENIED[name], machine)
        if number is not None:
            steps += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE)]
    steps.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def restrict(filter_program: bytes) -> None:
    """Put a filter into force for this process and its threads, for ever; no_new_privs must be set.

    Raises:
        OSError: the kernel, or a container round it, refuses filters.
    """
    code = ctypes.create_string_buffer(filter_program, len(filter_program))
    head = struct.pack("@HP", len(filter_program) // 8, ctypes.addressof(code))
    syscall(NUMBER_OF[architecture()], SET_MODE_FILTER, 0, head)


def _closer_looks(own_pid: int) -> dict[str, Callable[[], Iterator[Instruction]]]:
    return {
        "clone": lambda: _unless_any_bit(0, CLONE_THREAD),
        "clone3": lambda: iter([(RETURN, 0, 0, UNKNOWN)]),
        "kill": lambda: _only(0, [own_pid]),
        "tgkill": lambda: _only(0, [own_pid]),
        "prlimit64": lambda: _only(0, [0, own_pid]),
        "sched_setaffinity": lambda: _only(0, [0, own_pid]),
        "fcntl": lambda: _all_but(1, FCNTL_REFUSED),
        "ioctl": lambda: _all_but(1, IOCTL_REFUSED),
        "prctl": lambda: _only(0, PRCTL_ALLOWED),
        # an address would reach sockets that others listen on
        "sendto": lambda: _only_null(4),
        # a pair of datagram sockets could send to any address
        "socketpair": lambda: _only(1, [SOCK_STREAM], mask=0xF),
    }


def _low(argument: int) -> int:
    """Where the low half of an argument stands (both architectures are little-endian)."""
    return 16 + 8 * argument


def _only(argument: int, allowed: Sequence[int], mask: int = 0xFFFFFFFF) -> Iterator[Instruction]:
    """Allow these values of an ``int`` argument; the kernel reads its low half only, and so do we."""
    yield (LOAD, 0, 0, _low(argument))
    yield (AND, 0, 0, mask)
    for value in allowed:
        yield (JUMP_EQUAL, 0, 1, value)
        yield (RETURN, 0, 0, ALLOW)
    yield (RETURN, 0, 0, REFUSE)


def _all_but(argument: int, refused: Sequence[int]) -> Iterator[Instruction]:
    yield (LOAD, 0, 0, _low(argument))
    for value in refused:
        yield (JUMP_EQUAL, 0, 1, value)
        yield (RETURN, 0, 0, REFUSE)
    yield (RETURN, 0, 0, ALLOW)


def _unless_any_bit(argument: int, bits: int) -> Iterator[Instruction]:
    """Allow a call whose argument has one of the bits."""
    yield (LOAD, 0, 0, _low(argument))
    yield (JUMP_ANY_BIT, 0, 1, bits)
    yield (RETURN, 0, 0, ALLOW)
    yield (RETURN, 0, 0, REFUSE)


def _only_null(argument: int) -> Iterator[Instruction]:
    for half in (0, 4):
        yield (LOAD, 0, 0, _low(argument) + half)
        yield (JUMP_EQUAL, 1, 0, 0)
        yield (RETURN, 0, 0, REFUSE)
    yield (RETURN, 0, 0, ALLOW)
