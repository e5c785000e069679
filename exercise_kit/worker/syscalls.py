"""The numbers of the system calls that a worker may make, in any way or in some; every other is refused.

From the kernel's own tables (``asm/unistd_64.h`` for x86_64, ``asm-generic/unistd.h`` for aarch64); None: absent there.
What Python, torch, numpy, matplotlib and the C library ask for was seen with strace; the calls that they fall back on
and the newer ones that stand for the same thing were added by hand.
"""

from __future__ import annotations

from typing import NamedTuple


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
LOOKED_AT: dict[str, Number] = {
    "clone": Number(56, 220),
    "kill": Number(62, 129),
    "tgkill": Number(234, 131),
    "prlimit64": Number(302, 261),
    "sched_setaffinity": Number(203, 122),
    "fcntl": Number(72, 25),
    "ioctl": Number(16, 29),
    "prctl": Number(157, 167),
    "sendto": Number(44, 206),
    "recvfrom": Number(45, 207),
    "getsockopt": Number(55, 209),
    "socketpair": Number(53, 199),
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
