"""Giving up what a process may do: its user, its groups, its capabilities."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from .kernel import architecture, prctl, syscall

CHOWN, DAC_READ_SEARCH, SETGID, SETUID = 0, 2, 6, 7
CAPGET = {"x86_64": 125, "aarch64": 90}
CAPSET = {"x86_64": 126, "aarch64": 91}
CAPABILITY_VERSION_3 = 0x20080522
PR_SET_KEEPCAPS, PR_CAPBSET_DROP = 8, 24
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4


def can_change_user() -> bool:
    """Whether this process is root in more than name: one in a container may have lost its capabilities."""
    header, held = struct.pack("=Ii", CAPABILITY_VERSION_3, 0), ctypes.create_string_buffer(24)
    syscall(CAPGET[architecture()], header, held)
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
    _empty_bounding_set()
    if uid is not None:
        prctl(PR_SET_KEEPCAPS, int(bool(capabilities)))
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    sets = struct.pack("=IIIIII", capabilities, capabilities, 0, 0, 0, 0)
    syscall(CAPSET[architecture()], header, sets)


def _empty_bounding_set() -> None:
    """No later exec could win a capability; only a process that has any may do this, and only it needs to."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.EPERM):  # past the last one; nothing to give up
                return
            raise
