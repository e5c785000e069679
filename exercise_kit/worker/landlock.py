"""Which files a process may read and write, held by Landlock: a part of Linux since 5.13.

Newer kernels also refuse network, signals and devices by it. Which paths a child gets, ``readable_paths.py`` says.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Sequence
from pathlib import Path

from .linux import PR_SET_NO_NEW_PRIVS, prctl, syscall

# the numbers are the same on every architecture
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION_FLAG = 1
PATH_BENEATH = 1
LOG_NOTHING = 1  # ABI 7: what is denied to students does not fill the kernel's log

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = (1 << bit for bit in range(6))
MAKE_DIR, MAKE_REG, MAKE_SYM = 1 << 7, 1 << 8, 1 << 12
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
READ = READ_FILE | READ_DIR
# no execution, no sockets, pipes or devices made
WRITE = READ | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SYM | REFER | TRUNCATE
# all rights on files that an ABI knows; a right that is handled and not granted is denied
HANDLED = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
BIND_AND_CONNECT_TCP = 3
ABSTRACT_SOCKETS_AND_SIGNALS = 3


def read_landlock_version() -> int:
    """The ABI of this kernel's Landlock; 0 where it is absent or switched off."""
    try:
        return syscall(CREATE_RULESET, 0, 0, VERSION_FLAG)
    except OSError:
        return 0


def make_ruleset(
    readable: Sequence[Path], listable: Sequence[Path], writable: Sequence[Path], devices: Sequence[Path] = ()
) -> int:
    """A descriptor of the rules, which ``restrict_files`` puts into force; it passes through fork, not through exec.

    No right to bind or connect over TCP is granted (ABI 4), none to reach abstract unix sockets or to send signals
    outside (ABI 6).

    Args:
        readable: files, and folders with all that is in them.
        listable: folders of which the names, below too, may be read.
        writable: folders in which everything but devices, pipes and sockets may be made; files that may be written.
        devices: devices that may be read, written and steered (ioctl).

    Raises:
        OSError: the kernel has no Landlock.
    """
    abi = syscall(CREATE_RULESET, 0, 0, VERSION_FLAG)
    handled = HANDLED[min(abi, 5)]
    attributes = struct.pack("=QQQ", handled, BIND_AND_CONNECT_TCP, ABSTRACT_SOCKETS_AND_SIGNALS)
    known = attributes[: 8 if abi < 4 else 16 if abi < 6 else 24]
    rules = syscall(CREATE_RULESET, known, len(known), 0)
    steered = READ_FILE | WRITE_FILE | IOCTL_DEV
    for paths, rights in ((readable, READ), (listable, READ_DIR), (writable, WRITE), (devices, steered)):
        for path in paths:
            _add_path_rule(rules, path, rights & handled)
    return rules


def allow_naming_threads(rules: int, proc: int) -> None:
    """Let this process name its own threads, and read what /proc says of them: else CUDA's driver from 570 on fails.

    A process' own folder of /proc is there once it runs, so that the child adds the rule. Later children, which share
    the rules, find nothing where it leads.

    Args:
        rules: of ``make_ruleset``.
        proc: descriptor of a /proc in which this process is seen.
    """
    handled = HANDLED[min(read_landlock_version(), 5)]
    for path, rights in (("self/task", READ | WRITE_FILE), ("self/status", READ_FILE), ("self/maps", READ_FILE)):
        _add_path_rule(rules, path, rights & handled, proc)


def restrict_files(rules: int) -> None:
    """Put the rules into force for this process and all that it forks, for ever."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    flags = LOG_NOTHING if read_landlock_version() >= 7 else 0
    syscall(RESTRICT_SELF, rules, flags)


def _add_path_rule(rules: int, path: Path | str, rights: int, folder: int | None = None) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return  # what cannot be reached needs no rule
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= FILE_RIGHTS
        syscall(ADD_RULE, rules, PATH_BENEATH, struct.pack("=Qi", rights, place), 0)
    finally:
        os.close(place)
