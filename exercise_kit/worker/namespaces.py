"""What the warm process can see of the machine: read-only files, one scratch folder, no network, no other processes.

User, mount, pid, network, ipc, uts and cgroup namespaces are entered once: the children forked inside cost nothing
more. Three processes take part. The *outer* one is what the judge started: it writes the maps of users, then only
waits. The *middle* one builds the new root and waits. The *inner* one, the first of its pid namespace, goes on. The
scratch folder, the one place where a student's code may write, is made empty again after each child.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import stat
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from .linux import LIBC, PR_SET_DUMPABLE, die_with_parent, find_architecture, prctl, raise_if_failed, syscall

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
    devices = {device: _clone_mount(device) for device in DEVICES}
    _mount("tmpfs", FIRST_PLACE, "tmpfs", NO_SETUID | NO_DEVICES, "mode=0755,size=16m")
    os.mkdir(FIRST_PLACE + OLD)
    syscall(PIVOT_ROOT[find_architecture()], FIRST_PLACE.encode(), (FIRST_PLACE + OLD).encode())
    os.chdir("/")
    for path, source in real.items():
        _bind_mount(OLD + source, str(path))
    raise_if_failed(LIBC.umount2(OLD.encode(), ctypes.c_int(DETACH)), "umount2")
    os.rmdir(OLD)
    for device in devices:
        _make_mount_point(device, is_folder=False)
    SCRATCH.mkdir()
    _set_mount_flags(AT_FDCWD, "/", AT_RECURSIVE, READ_ONLY | NO_SETUID | NO_DEVICES)
    for device, tree in devices.items():
        _set_mount_flags(tree, "", AT_EMPTY_PATH, READ_ONLY | NO_SETUID | NO_EXECUTION)
        syscall(MOVE_MOUNT, tree, b"", AT_FDCWD, device.encode(), MOVE_EMPTY_PATH)
        os.close(tree)
    options = f"size={scratch_bytes},nr_inodes=4096,mode=0700,uid={owner},gid={owner}"
    _mount("tmpfs", str(SCRATCH), "tmpfs", NO_SETUID | NO_DEVICES | NO_EXECUTION, options)
    return SCRATCH


def _bind_mount(source: str, target: str) -> None:
    if os.path.exists(source):
        _make_mount_point(target, is_folder=os.path.isdir(source))
        _mount(source, target, None, BIND | RECURSIVE)


def _make_mount_point(target: str, *, is_folder: bool) -> None:
    place = Path(target)
    if is_folder:
        place.mkdir(parents=True, exist_ok=True)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()


def _mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    what = kind.encode() if kind else None
    result = LIBC.mount(source.encode(), target.encode(), what, ctypes.c_ulong(flags), options.encode())
    raise_if_failed(result, f"mount {target}")


def _clone_mount(path: str) -> int:
    return syscall(OPEN_TREE, AT_FDCWD, path.encode(), OPEN_TREE_CLONE | os.O_CLOEXEC)


def _set_mount_flags(folder: int, path: str, how: int, flags: int) -> None:
    attributes = struct.pack("=QQQQ", flags, 0, 0, 0)
    syscall(MOUNT_SETATTR, folder, path.encode(), how, attributes, len(attributes))


def clear_folder(folder: str) -> bool:
    """Remove all that is in ``folder``, however deep or oddly named; whether that worked.

    Links are removed, not followed. A folder's own folders are moved to the top before it is removed, so that no
    depth of nesting is too deep.
    """
    numbers = count()
    try:
        while entries := list(os.scandir(folder)):
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    _flatten_folders(folder, entry.path, numbers)
                else:
                    os.unlink(entry.path)
    except OSError:
        return False
    return True


def _flatten_folders(top: str, folder: str, numbers: count[int]) -> None:
    """Remove ``folder`` with its files, and move its folders to ``top`` under names that nothing there has."""
    os.chmod(folder, stat.S_IRWXU)
    for entry in list(os.scandir(folder)):
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.path)
            continue
        os.chmod(entry.path, stat.S_IRWXU)
        while os.path.lexists(name := os.path.join(top, f"{next(numbers)}")):
            pass
        os.rename(entry.path, name)
    os.rmdir(folder)


NEW_MOUNT, NEW_CGROUP, NEW_UTS, NEW_IPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
NEW_USER, NEW_PID, NEW_NET = 0x10000000, 0x20000000, 0x40000000
EVERYTHING = NEW_MOUNT | NEW_CGROUP | NEW_UTS | NEW_IPC | NEW_USER | NEW_PID | NEW_NET
CLOSE_RANGE = 436
LAST_DESCRIPTOR = 0xFFFFFFFF
UNSHARED, MAPPED, ONE_USER, READY, GO = b"u", b"m", b"1", b"r", b"g"


@dataclass(frozen=True)
class Inside:
    """What the inner process has.

    Attributes:
        scratch: the only writable folder, a tmpfs of limited size.
        uid: the user that a child should become; None where there is only one.
        proc: descriptor of the *outer* /proc, for the child's own size; to be closed before student code.
    """

    scratch: Path
    uid: int | None
    proc: int


def enter_namespaces(readable: Sequence[Path], scratch_bytes: int, uid: int) -> Inside | None:
    """Go on in new namespaces, as their first process; None where they are refused, with nothing changed.

    The process that called this one waits outside from now on, exits as the inner one does (128 + n for signal n),
    and all die together with its parent. Single-threaded callers only.

    Args:
        readable: files and folders that exist inside, read-only; their parents hold nothing else.
        scratch_bytes: the size of the writable folder.
        uid: an unprivileged user for the children, when the caller is root.
    """
    proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    from_middle, to_outer = os.pipe()
    from_outer, to_middle = os.pipe()
    outer, judge = os.getpid(), os.getppid()
    middle = os.fork()
    if middle:
        os.close(to_outer)
        os.close(from_outer)
        _run_outer_process(middle, judge, from_middle, to_middle, uid)
        for descriptor in (from_middle, to_middle, proc):
            os.close(descriptor)
        return None
    try:
        os.close(from_middle)
        os.close(to_middle)
        several = _unshare_namespaces(outer, to_outer, from_outer)
        owner = uid if several else os.getuid()
        scratch = build_root(readable, scratch_bytes, owner)
        inner = os.fork()
        if inner:
            _wait_as_middle_process(inner)
        die_with_parent(0)
        os.write(to_outer, READY)
        if os.read(from_outer, 1) != GO:
            os._exit(1)
        os.close(to_outer)
        os.close(from_outer)
    except BaseException:
        os._exit(1)
    return Inside(scratch, uid if several else None, proc)


def _unshare_namespaces(outer: int, to_outer: int, from_outer: int) -> bool:
    """Leave the old namespaces; whether there is more than one user in the new ones."""
    prctl(PR_SET_DUMPABLE, 1)  # else a process that has changed its user may not have its maps written
    raise_if_failed(LIBC.unshare(ctypes.c_int(EVERYTHING)), "unshare")
    os.write(to_outer, UNSHARED)
    answer = os.read(from_outer, 1)
    if answer not in (MAPPED, ONE_USER):
        raise OSError("no map of users")
    die_with_parent(outer)
    LIBC.sethostname(b"worker", 6)
    return answer == MAPPED


def _run_outer_process(middle: int, judge: int, from_middle: int, to_middle: int, uid: int) -> None:
    """Write the maps, then wait for ever; comes back only where the namespaces could not be had."""
    with contextlib.suppress(OSError):
        if os.read(from_middle, 1) == UNSHARED:
            os.write(to_middle, _write_user_maps(middle, uid))
            if os.read(from_middle, 1) == READY:
                os.write(to_middle, GO)
                _wait_as_outer_process(middle, judge)
    os.kill(middle, signal.SIGKILL)
    os.waitpid(middle, 0)


def _write_user_maps(middle: int, uid: int) -> bytes:
    """Map this user, and for root an unprivileged one beside it; what there is then."""
    folder = Path(f"/proc/{middle}")
    own_uid, own_gid = os.geteuid(), os.getegid()
    if own_uid == 0:
        with contextlib.suppress(OSError):
            (folder / "uid_map").write_text(f"0 0 1\n{uid} {uid} 1\n")
            (folder / "gid_map").write_text(f"0 0 1\n{uid} {uid} 1\n")
            return MAPPED
    (folder / "setgroups").write_text("deny")
    (folder / "uid_map").write_text(f"{own_uid} {own_uid} 1\n")
    (folder / "gid_map").write_text(f"{own_gid} {own_gid} 1\n")
    return ONE_USER


def _wait_as_outer_process(middle: int, judge: int) -> None:
    """Wait for the middle process, and die with the judge; never comes back.

    The judge's death is seen by its pid descriptor: a parent-death signal would come when the *thread* that started
    this process ends.
    """
    _close_descriptors()
    try:
        watched = [os.pidfd_open(judge), os.pidfd_open(middle)]
    except OSError:
        die_with_parent(judge)
        watched = []
    if os.getppid() != judge:
        os._exit(1)
    if watched and watched[0] in select.select(watched, [], [])[0]:
        os._exit(1)
    _exit_with_status_of(middle)


def _wait_as_middle_process(inner: int) -> None:
    _close_descriptors()
    _exit_with_status_of(inner)


def _exit_with_status_of(child: int) -> None:
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _close_descriptors() -> None:
    """Hold no descriptor open (the judge waits for their ends), and leave Ctrl-C to the judge."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    syscall(CLOSE_RANGE, 3, LAST_DESCRIPTOR, 0)
