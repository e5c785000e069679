"""seccomp: which system calls a process may make, as a BPF program that the kernel runs at each of them.

Only what the tables name is allowed. Anything else answers EPERM, as it would to somebody without the right; calls
that have an older form, and those that the tables have never heard of, answer ENOSYS, so that the C library falls
back. Another architecture's calls kill.

The numbers are from the kernel's own tables (``asm/unistd_64.h`` for x86_64, ``asm-generic/unistd.h`` for aarch64);
None: absent there. What Python, torch, numpy, matplotlib and the C library ask for was seen with strace; the calls
that they fall back on and the newer ones that stand for the same thing were added by hand.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .linux import find_architecture, syscall


class Number(NamedTuple):
    """One call's number on each architecture."""

    x86_64: int | None
    aarch64: int | None


# the newest call of the kernel that these tables were read from (6.18): what is newer does not exist for a worker
NEWEST = 469

ALLOWED: dict[str, Number] = {
    # memory of its own
    "brk": Number(12, 214),
    "mmap": Number(9, 222),
    "munmap": Number(11, 215),
    "mremap": Number(25, 216),
    "mprotect": Number(10, 226),
    "madvise": Number(28, 233),
    "msync": Number(26, 227),
    "membarrier": Number(324, 283),
    "map_shadow_stack": Number(453, 453),
    "mseal": Number(462, 462),
    # threads, waiting, time
    "futex": Number(202, 98),
    "futex_waitv": Number(449, 449),
    "futex_wake": Number(454, 454),
    "futex_wait": Number(455, 455),
    "futex_requeue": Number(456, 456),
    "set_robust_list": Number(273, 99),
    "set_tid_address": Number(218, 96),
    "rseq": Number(334, 293),
    "arch_prctl": Number(158, None),
    "sched_yield": Number(24, 124),
    "sched_getaffinity": Number(204, 123),
    "getcpu": Number(309, 168),
    "nanosleep": Number(35, 101),
    "clock_nanosleep": Number(230, 115),
    "clock_gettime": Number(228, 113),
    "clock_getres": Number(229, 114),
    "gettimeofday": Number(96, 169),
    "time": Number(201, None),
    "times": Number(100, 153),
    "setitimer": Number(38, 103),
    "getitimer": Number(36, 102),
    "alarm": Number(37, None),
    "pause": Number(34, None),
    "restart_syscall": Number(219, 128),
    "exit": Number(60, 93),
    "exit_group": Number(231, 94),
    # signals to itself, and children that it does not have
    "rt_sigaction": Number(13, 134),
    "rt_sigprocmask": Number(14, 135),
    "rt_sigreturn": Number(15, 139),
    "rt_sigpending": Number(127, 136),
    "rt_sigsuspend": Number(130, 133),
    "rt_sigtimedwait": Number(128, 137),
    "sigaltstack": Number(131, 132),
    "wait4": Number(61, 260),
    "waitid": Number(247, 95),
    # what it is, and what the machine is
    "getpid": Number(39, 172),
    "gettid": Number(186, 178),
    "getppid": Number(110, 173),
    "getpgid": Number(121, 155),
    "getpgrp": Number(111, None),
    "getsid": Number(124, 156),
    "getuid": Number(102, 174),
    "geteuid": Number(107, 175),
    "getgid": Number(104, 176),
    "getegid": Number(108, 177),
    "getresuid": Number(118, 148),
    "getresgid": Number(120, 150),
    "getgroups": Number(115, 158),
    "capget": Number(125, 90),
    "getpriority": Number(140, 141),
    "sched_getscheduler": Number(145, 120),
    "sched_getparam": Number(143, 121),
    "sched_get_priority_max": Number(146, 125),
    "sched_get_priority_min": Number(147, 126),
    "uname": Number(63, 160),
    "sysinfo": Number(99, 179),
    "getrusage": Number(98, 165),
    "getrlimit": Number(97, 163),
    "setrlimit": Number(160, 164),
    "getrandom": Number(318, 278),
    "umask": Number(95, 166),
    # descriptors
    "read": Number(0, 63),
    "write": Number(1, 64),
    "readv": Number(19, 65),
    "writev": Number(20, 66),
    "pread64": Number(17, 67),
    "pwrite64": Number(18, 68),
    "preadv": Number(295, 69),
    "pwritev": Number(296, 70),
    "preadv2": Number(327, 286),
    "pwritev2": Number(328, 287),
    "lseek": Number(8, 62),
    "close": Number(3, 57),
    "close_range": Number(436, 436),
    "dup": Number(32, 23),
    "dup2": Number(33, None),
    "dup3": Number(292, 24),
    "pipe": Number(22, None),
    "pipe2": Number(293, 59),
    "eventfd": Number(284, None),
    "eventfd2": Number(290, 19),
    "poll": Number(7, None),
    "ppoll": Number(271, 73),
    "select": Number(23, None),
    "pselect6": Number(270, 72),
    "epoll_create": Number(213, None),
    "epoll_create1": Number(291, 20),
    "epoll_ctl": Number(233, 21),
    "epoll_wait": Number(232, None),
    "epoll_pwait": Number(281, 22),
    "epoll_pwait2": Number(441, 441),
    "getsockname": Number(51, 204),
    "getpeername": Number(52, 205),
    # files, where Landlock lets it
    "open": Number(2, None),
    "openat": Number(257, 56),
    "creat": Number(85, None),
    "stat": Number(4, None),
    "fstat": Number(5, 80),
    "lstat": Number(6, None),
    "newfstatat": Number(262, None),
    "fstatat": Number(None, 79),
    "statx": Number(332, 291),
    "access": Number(21, None),
    "faccessat": Number(269, 48),
    "faccessat2": Number(439, 439),
    "readlink": Number(89, None),
    "readlinkat": Number(267, 78),
    "getdents": Number(78, None),
    "getdents64": Number(217, 61),
    "getcwd": Number(79, 17),
    "chdir": Number(80, 49),
    "fchdir": Number(81, 50),
    "mkdir": Number(83, None),
    "mkdirat": Number(258, 34),
    "rmdir": Number(84, None),
    "unlink": Number(87, None),
    "unlinkat": Number(263, 35),
    "rename": Number(82, None),
    "renameat": Number(264, 38),
    "renameat2": Number(316, 276),
    "link": Number(86, None),
    "linkat": Number(265, 37),
    "symlink": Number(88, None),
    "symlinkat": Number(266, 36),
    "ftruncate": Number(77, 46),
    "fallocate": Number(285, 47),
    "fsync": Number(74, 82),
    "fdatasync": Number(75, 83),
    "fadvise64": Number(221, 223),
    "statfs": Number(137, 43),
    "fstatfs": Number(138, 44),
}
# allowed in some ways only; the filter looks at their arguments
FILTERED: dict[str, Number] = {
    "clone": Number(56, 220),
    "kill": Number(62, 129),
    "tgkill": Number(234, 131),
    "prlimit64": Number(302, 261),
    "sched_setaffinity": Number(203, 122),
    "fcntl": Number(72, 25),
    "ioctl": Number(16, 29),
    "prctl": Number(157, 167),
    "socket": Number(41, 198),
    "sendto": Number(44, 206),
    "recvfrom": Number(45, 207),
    "getsockopt": Number(55, 209),
    "socketpair": Number(53, 199),
}
# what CUDA's driver cannot start without, from 570 on: memory that is a file, where memory lies, and a socket with a
# name, at which other processes may ask for its descriptor. Nobody is let in: connect and accept stay refused.
# Sources: github.com/NVIDIA/OpenShell, issue 1696; github.com/nolabs-ai/nono, pull request 673
FOR_GPU: dict[str, Number] = {
    "memfd_create": Number(319, 279),
    "get_mempolicy": Number(239, 236),
    "set_mempolicy": Number(238, 237),
    "mbind": Number(237, 235),
    "bind": Number(49, 200),
    "listen": Number(50, 201),
}
# refused as if the kernel did not have them, so that the caller falls back on what is allowed
ABSENT: dict[str, Number] = {
    "clone3": Number(435, 435),
    "openat2": Number(437, 437),
}
# refused as a file system without extended attributes would, which shutil takes for granted
UNSUPPORTED: dict[str, Number] = {
    "listxattr": Number(194, 11),
    "llistxattr": Number(195, 12),
    "flistxattr": Number(196, 13),
}


NUMBER_OF = {"x86_64": 317, "aarch64": 277}  # of the call seccomp itself
SET_MODE_FILTER = 1
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32 = 0x40000000  # the bit of x32's numbers on x86_64

LOAD, JUMP_EQUAL, JUMP_GREATER, JUMP_ANY_BIT, AND, RETURN = 0x20, 0x15, 0x25, 0x45, 0x54, 0x06
ALLOW, KILL = 0x7FFF0000, 0x80000000
REFUSE, UNKNOWN, NO_SUPPORT = (0x00050000 | number for number in (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP))
AT_NUMBER, AT_ARCHITECTURE = 0, 4

# what the C library asks for when it starts a thread: VM, FS, FILES, SIGHAND, THREAD, SYSVSEM, and perhaps SETTLS,
# PARENT_SETTID, CHILD_CLEARTID, DETACHED; no namespaces, no pidfd, no other parent, no files of its own
CLONE_THREAD, CLONE_FLAGS = 0x50F00, 0x7D0F00
AF_UNIX, SOCK_STREAM, SOCK_SEQPACKET, SOL_SOCKET = 1, 1, 5, 1
MSG_SENT = 0x4040  # DONTWAIT, NOSIGNAL; not OOB, FASTOPEN, ZEROCOPY
MSG_RECEIVED = 0x142  # PEEK, DONTWAIT, WAITALL; not OOB, ERRQUEUE
SOCKET_OPTIONS = (3, 4, 38, 39)  # SO_TYPE, SO_ERROR, SO_PROTOCOL, SO_DOMAIN: what Python asks; no SO_PEERPIDFD
# F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_GETLK, F_SETLK, F_SETLKW, the same for open files, F_DUPFD_CLOEXEC,
# F_GETPIPE_SZ, F_GET_SEALS; no owners of signals, leases or notices, which reach other processes
FCNTL_ALLOWED = (0, 1, 2, 3, 5, 6, 7, 36, 37, 38, 1030, 1032, 1034)
F_SETFL, O_ASYNC = 4, 0x2000
# TCGETS, TCGETS2 and TIOCGWINSZ ("is this a terminal?"), FIONREAD, FIONBIO, FIOCLEX, FIONCLEX
IOCTL_ALLOWED = (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5451, 0x5450)
# FIOSETOWN, SIOCSPGRP, FIOASYNC, TIOCSTI, TIOCLINUX, SIOCUNIXFILE: refused where a GPU's driver needs all others
IOCTL_REFUSED = (0x8901, 0x8902, 0x5452, 0x5412, 0x541C, 0x89E0)
# PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_CAPBSET_READ, PR_GET_NO_NEW_PRIVS, PR_SET_VMA
PRCTL_ALLOWED = (3, 15, 16, 23, 39, 0x53564D41)

Instruction = tuple[int, int, int, int]


def compile_filter(own_pid: int, *, gpu: bool = False) -> bytes:
    """The filter for a process of this pid, as the kernel's array of ``sock_filter``.

    Args:
        own_pid: of the process.
        gpu: let a GPU's driver have the ioctls that it is made of; which devices can be opened is Landlock's.

    Raises:
        ProtectionError: an architecture whose numbers are not known here.
    """
    machine = find_architecture()
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
    for name, body in _make_argument_rules(own_pid, gpu).items():
        number = getattr(FILTERED[name], machine)
        steps += [(JUMP_EQUAL, 0, len(body), number), *body]
    for calls, answer in ((ALLOWED | (FOR_GPU if gpu else {}), ALLOW), (ABSENT, UNKNOWN), (UNSUPPORTED, NO_SUPPORT)):
        for number in _list_syscall_numbers(calls, machine):
            steps += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, answer)]
    steps.append((RETURN, 0, 0, REFUSE))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def restrict_calls(filter_program: bytes) -> None:
    """Put a filter into force for this process and its threads, for ever; no_new_privs must be set.

    Raises:
        OSError: the kernel, or a container round it, refuses filters.
    """
    code = ctypes.create_string_buffer(filter_program, len(filter_program))
    head = struct.pack("@HP", len(filter_program) // 8, ctypes.addressof(code))
    syscall(NUMBER_OF[find_architecture()], SET_MODE_FILTER, 0, head)


def _list_syscall_numbers(calls: Mapping[str, Number], machine: str) -> list[int]:
    return [number for call in calls.values() if (number := getattr(call, machine)) is not None]


def _make_argument_rules(own_pid: int, gpu: bool) -> dict[str, list[Instruction]]:
    """For each call that is allowed in some ways only: what decides, once its number is known."""
    return {
        "clone": [*_refuse_other_bits(0, CLONE_FLAGS), *_allow_only(0, [CLONE_THREAD], mask=CLONE_THREAD)],
        "kill": _allow_only(0, [own_pid]),
        "tgkill": _allow_only(0, [own_pid]),
        "prlimit64": _allow_only(0, [0, own_pid]),
        "sched_setaffinity": _allow_only(0, [0, own_pid]),
        "fcntl": [*_refuse_bits_when_equal(1, F_SETFL, 2, O_ASYNC), *_allow_only(1, [*FCNTL_ALLOWED, F_SETFL])],
        "ioctl": _refuse_only(1, IOCTL_REFUSED) if gpu else _allow_only(1, IOCTL_ALLOWED),
        "prctl": _allow_only(0, PRCTL_ALLOWED),
        "socket": [
            *_require_one_of(0, [AF_UNIX]),
            *_allow_only(1, [SOCK_SEQPACKET] if gpu else [], mask=0xF),
        ],
        # an address would reach sockets that others listen on
        "sendto": [*_refuse_other_bits(3, MSG_SENT), *_require_null(4), (RETURN, 0, 0, ALLOW)],
        "recvfrom": [*_refuse_other_bits(3, MSG_RECEIVED), (RETURN, 0, 0, ALLOW)],
        "getsockopt": [*_require_one_of(1, [SOL_SOCKET]), *_allow_only(2, SOCKET_OPTIONS)],
        # a pair of datagram sockets could send to any address
        "socketpair": [*_require_one_of(0, [AF_UNIX]), *_allow_only(1, [SOCK_STREAM], mask=0xF)],
    }


def _find_low_half_offset(argument: int) -> int:
    """Where the low half of an argument stands (both architectures are little-endian).

    The arguments looked at are of type ``int`` or flags below 2**32: the kernel reads their low half only, and so do
    we; but for ``clone`` of x86_64, whose high half the kernel cuts off as well.
    """
    return 16 + 8 * argument


def _require_one_of(argument: int, allowed: Sequence[int], mask: int = 0xFFFFFFFF) -> list[Instruction]:
    """Refuse the call unless an argument has one of these values."""
    left = range(len(allowed) - 1, -1, -1)
    tests = [(JUMP_EQUAL, after + 1, 0, value) for value, after in zip(allowed, left, strict=True)]
    return [(LOAD, 0, 0, _find_low_half_offset(argument)), (AND, 0, 0, mask), *tests, (RETURN, 0, 0, REFUSE)]


def _allow_only(argument: int, allowed: Sequence[int], mask: int = 0xFFFFFFFF) -> list[Instruction]:
    """Allow the call when an argument has one of these values, refuse it otherwise."""
    return [*_require_one_of(argument, allowed, mask), (RETURN, 0, 0, ALLOW)]


def _refuse_only(argument: int, refused: Sequence[int]) -> list[Instruction]:
    """Refuse the call when an argument has one of these values, allow it otherwise."""
    tests = [step for value in refused for step in ((JUMP_EQUAL, 0, 1, value), (RETURN, 0, 0, REFUSE))]
    return [(LOAD, 0, 0, _find_low_half_offset(argument)), *tests, (RETURN, 0, 0, ALLOW)]


def _refuse_other_bits(argument: int, allowed: int) -> list[Instruction]:
    """Refuse the call when an argument has another bit than these."""
    others = ~allowed & 0xFFFFFFFF
    return [(LOAD, 0, 0, _find_low_half_offset(argument)), (JUMP_ANY_BIT, 0, 1, others), (RETURN, 0, 0, REFUSE)]


def _refuse_bits_when_equal(argument: int, value: int, other: int, bits: int) -> list[Instruction]:
    """Refuse the call when one argument has this value and another one of these bits."""
    return [
        (LOAD, 0, 0, _find_low_half_offset(argument)),
        (JUMP_EQUAL, 0, 3, value),
        (LOAD, 0, 0, _find_low_half_offset(other)),
        (JUMP_ANY_BIT, 0, 1, bits),
        (RETURN, 0, 0, REFUSE),
    ]


def _require_null(argument: int) -> list[Instruction]:
    """Refuse the call unless an argument is a null pointer."""
    return [
        step
        for half in (0, 4)
        for step in (
            (LOAD, 0, 0, _find_low_half_offset(argument) + half),
            (JUMP_EQUAL, 1, 0, 0),
            (RETURN, 0, 0, REFUSE),
        )
    ]
