"""How much of the machine one child may use, and the exit statuses by which it says what ran out.

Time: the judge measures it, since it knows how busy the machine is. A signal stops a cell from within, so that the cell
keeps what it has defined. Code that does not react to the signal (in C, or because it catches everything) is ended by
the judge a little later, with the whole process.

Disk: where the scratch folder has no file system of its own, a process of the child's user looks at it many times a
second and kills a child that has written too much. It counts files with a name, and files without one that the child
still has open or mapped into its memory.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import select
import signal
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

OUT_OF_MEMORY = 77
BROKEN = 78
OUT_OF_DISK = 79


NUMBER_OF_FILES = 256
GPU_BYTES = 4 << 30  # of main memory, for CUDA's own libraries and their buffers
STACK_BYTES = 8 << 20


@dataclass(frozen=True)
class Bounds:
    """Limits that the kernel holds a child to; wall time and the judge's patience are the judge's.

    Attributes:
        memory_bytes: address space above what the warm process takes; with a GPU, whose driver reserves far more
            addresses than it uses, memory of its own.
        gpu: whether a GPU is used.
        cpu_seconds: processor time; over it comes SIGXCPU, a second later SIGKILL.
        file_bytes: the largest file.
        threads: how many threads there may be.
    """

    memory_bytes: int
    cpu_seconds: int
    file_bytes: int
    threads: int = 64
    gpu: bool = False


def apply_process_limits(bounds: Bounds, proc: int, other_tasks: int) -> None:
    """Put the limits into force for this process, for ever.

    Args:
        bounds: the limits.
        proc: descriptor of a /proc in which this process is seen.
        other_tasks: tasks of the same user that the kernel counts beside this process' own.
    """
    with contextlib.suppress(OSError):
        _write_proc_file(proc, "self/oom_score_adj", b"1000")  # where memory runs out, this process goes first
    addresses, data = _measure_own_memory(proc)
    if bounds.gpu:
        _set_limit(resource.RLIMIT_DATA, data + bounds.memory_bytes + GPU_BYTES)
    else:
        _set_limit(resource.RLIMIT_AS, addresses + bounds.memory_bytes)
    _set_limit(resource.RLIMIT_CPU, bounds.cpu_seconds, bounds.cpu_seconds + 1)
    _set_limit(resource.RLIMIT_FSIZE, bounds.file_bytes)
    _set_limit(resource.RLIMIT_NPROC, other_tasks + bounds.threads)
    _set_limit(resource.RLIMIT_NOFILE, NUMBER_OF_FILES)
    _set_limit(resource.RLIMIT_STACK, STACK_BYTES)
    for nothing in (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE):
        _set_limit(nothing, 0)


def _set_limit(which: int, soft: int, hard: int | None = None) -> None:
    """Set a limit, or leave the one there is where it is lower."""
    wanted = (soft, soft if hard is None else hard)
    highest = resource.getrlimit(which)[1]
    if highest != resource.RLIM_INFINITY:
        wanted = (min(wanted[0], highest), min(wanted[1], highest))
    resource.setrlimit(which, wanted)


def _measure_own_memory(proc: int) -> tuple[int, int]:
    """The address space of this process, and how much of it is its own data, in bytes."""
    descriptor = os.open("self/statm", os.O_RDONLY, dir_fd=proc)
    try:
        pages = [int(number) for number in os.read(descriptor, 100).split()]
    finally:
        os.close(descriptor)
    return pages[0] * resource.getpagesize(), pages[5] * resource.getpagesize()


def _write_proc_file(proc: int, path: str, text: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY, dir_fd=proc)
    try:
        os.write(descriptor, text)
    finally:
        os.close(descriptor)


class CellTimeout(BaseException):
    """Raised in a cell when its time is over."""


CellTimeout.__name__ = "TimeoutError"  # as the student reads it


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise :class:`CellTimeout` in what runs here when the warm process says that the time of ``seconds`` is over."""

    def raise_timeout(*_: object) -> NoReturn:
        raise CellTimeout(f"stopped after {seconds:g} seconds")

    signal.signal(signal.SIGALRM, raise_timeout)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)


MOST_ENTRIES = 4096  # files and folders, as many as where the folder is a file system
MOST_MAPPED = 4  # of the files that have no name and are not open; their sizes cannot be seen
_MILLISECONDS = 20  # between two looks
_REST = 4  # times as long as a look took
_FITS, TOO_MUCH = 0, 3  # exit statuses
_DELETED = re.compile(
    r"(?P<first>[0-9a-f]+)-(?P<end>[0-9a-f]+) \S+ \S+ \S+ (?P<inode>[1-9]\d*) +(?P<path>.*) \(deleted\)"
)


def kill_when_files_exceed(child: int, most_bytes: int) -> NoReturn:
    """Kill ``child`` as soon as its files take more than ``most_bytes``; exit with ``TOO_MUCH`` then, 0 otherwise.

    For a process of its own, of the child's user and in the scratch folder; it ends when the child does.
    """
    try:
        process = os.pidfd_open(child)
        poller = select.poll()
        poller.register(process, select.POLLIN)
        pause = float(_MILLISECONDS)
        while not poller.poll(pause):
            began = time.monotonic()
            if not is_scratch_within_bounds(child, most_bytes):
                signal.pidfd_send_signal(process, signal.SIGKILL)
                os._exit(TOO_MUCH)
            pause = max(_MILLISECONDS, _REST * 1000 * (time.monotonic() - began))
    except ProcessLookupError:
        pass
    finally:
        os._exit(_FITS)


def is_scratch_within_bounds(child: int, most_bytes: int) -> bool:
    """Say whether this folder and the child's nameless files are within bounds; what cannot be looked into is not."""
    try:
        named, entries = _measure_working_folder()
    except OSError:
        return False
    if entries > MOST_ENTRIES or named > most_bytes:
        return False
    opened = _find_nameless_open_files(child, os.stat(".").st_dev)
    mapped = {inode: size for inode, size in _find_nameless_mappings(child).items() if inode not in opened}
    return len(mapped) <= MOST_MAPPED and named + sum(opened.values()) + sum(mapped.values()) <= most_bytes


def _measure_working_folder() -> tuple[int, int]:
    """Bytes on disk and number of all that lies in this folder; OSError for one in it that cannot be looked into.

    But for folders of another user's: the warm process may have left some, and the child cannot write there.
    """
    size = count = 0
    left = [(".", os.getuid())]
    while left and count <= MOST_ENTRIES:
        folder, owner = left.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        facts = entry.stat(follow_symlinks=False)
                        size += facts.st_blocks * 512
                        count += 1
                        if stat.S_ISDIR(facts.st_mode):
                            left.append((entry.path, facts.st_uid))
                    if count > MOST_ENTRIES:
                        break
        except (FileNotFoundError, NotADirectoryError):  # it has just gone
            continue
        except PermissionError:
            if owner == os.getuid():
                raise
    return size, count


def _find_nameless_open_files(child: int, device: int) -> dict[int, int]:
    """Inode → bytes on disk of the files on this device that the child holds open and that have no name."""
    found = {}
    with contextlib.suppress(OSError):  # it is about to end, or its sandbox is not in place yet
        for descriptor in os.listdir(f"/proc/{child}/fd"):
            with contextlib.suppress(OSError):
                facts = os.stat(f"/proc/{child}/fd/{descriptor}")
                if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 0 and facts.st_dev == device:
                    found[facts.st_ino] = facts.st_blocks * 512
    return found


def _find_nameless_mappings(child: int) -> dict[int, int]:
    """Inode → bytes mapped, of the files of this folder that have no name."""
    found: dict[int, int] = {}
    folder = f"{os.getcwd()}/"
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{child}/maps").read_text("utf-8", "replace").splitlines():
            mapping = _DELETED.fullmatch(line)
            if mapping and mapping["path"].startswith(folder):
                inode = int(mapping["inode"])
                found[inode] = found.get(inode, 0) + int(mapping["end"], 16) - int(mapping["first"], 16)
    return found
