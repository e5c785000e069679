"""A root file system of exactly the files that a worker may read, and one writable folder."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Sequence
from pathlib import Path

from .kernel import LIBC, architecture, checked, syscall

SCRATCH = Path("/student")
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
OLD = "/.old"
# any folder serves to mount the new root on before it becomes the root
FIRST_PLACE = "/usr"

OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000
OPEN_TREE_CLONE = 1
MOVE_EMPTY_PATH = 4  # the source is the descriptor itself
READ_ONLY, NO_SETUID, NO_DEVICES, NO_EXECUTION = 1, 2, 4, 8  # the same bits in mount(2) and in mount_setattr(2)
BIND, PRIVATE, RECURSIVE = 0x1000, 0x40000, 0x4000
DETACH = 2


def build_root(readable: Sequence[Path], scratch_bytes: int, owner: int) -> Path:
    """Replace the root of this mount namespace, which must be the caller's own; gives the writable folder.

    Args:
        readable: bound read-only where they are; what does not exist is left out.
        scratch_bytes: the size of the writable folder.
        owner: user (and group) of that folder.

    Raises:
        OSError: what the kernel refused.
    """
    real = {path: os.path.realpath(path) for path in readable}
    _mount("none", "/", None, PRIVATE | RECURSIVE)
    devices = {device: _clone(device) for device in DEVICES}
    _mount("tmpfs", FIRST_PLACE, "tmpfs", NO_SETUID | NO_DEVICES, "mode=0755,size=16m")
    os.mkdir(FIRST_PLACE + OLD)
    syscall(PIVOT_ROOT[architecture()], FIRST_PLACE.encode(), (FIRST_PLACE + OLD).encode())
    os.chdir("/")
    for path, source in real.items():
        _bind(OLD + source, str(path))
    checked(LIBC.umount2(OLD.encode(), ctypes.c_int(DETACH)), "umount2")
    os.rmdir(OLD)
    for device in devices:
        _make_place(device, is_folder=False)
    SCRATCH.mkdir()
    _set_flags(AT_FDCWD, "/", AT_RECURSIVE, READ_ONLY | NO_SETUID | NO_DEVICES)
    for device, tree in devices.items():
        _set_flags(tree, "", AT_EMPTY_PATH, READ_ONLY | NO_SETUID | NO_EXECUTION)
        syscall(MOVE_MOUNT, tree, b"", AT_FDCWD, device.encode(), MOVE_EMPTY_PATH)
        os.close(tree)
    options = f"size={scratch_bytes},nr_inodes=4096,mode=0700,uid={owner},gid={owner}"
    _mount("tmpfs", str(SCRATCH), "tmpfs", NO_SETUID | NO_DEVICES | NO_EXECUTION, options)
    return SCRATCH


def _bind(source: str, target: str) -> None:
    if os.path.exists(source):
        _make_place(target, is_folder=os.path.isdir(source))
        _mount(source, target, None, BIND | RECURSIVE)


def _make_place(target: str, *, is_folder: bool) -> None:
    place = Path(target)
    if is_folder:
        place.mkdir(parents=True, exist_ok=True)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()


def _mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    what = kind.encode() if kind else None
    result = LIBC.mount(source.encode(), target.encode(), what, ctypes.c_ulong(flags), options.encode())
    checked(result, f"mount {target}")


def _clone(path: str) -> int:
    return syscall(OPEN_TREE, AT_FDCWD, path.encode(), OPEN_TREE_CLONE | os.O_CLOEXEC)


def _set_flags(folder: int, path: str, how: int, flags: int) -> None:
    attributes = struct.pack("=QQQQ", flags, 0, 0, 0)
    syscall(MOUNT_SETATTR, folder, path.encode(), how, attributes, len(attributes))
