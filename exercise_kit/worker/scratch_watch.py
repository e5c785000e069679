"""Holds a child to the size of its scratch folder where that is no file system of its own.

A process of the child's user looks at the folder many times a second and kills the child that has written too much. It
counts what has a name, and the files without one that the child still holds: those that it has open and those that it
has mapped into its memory.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import stat
import time
from pathlib import Path
from typing import NoReturn

MOST_ENTRIES = 4096  # files and folders, as many as where the folder is a file system
MOST_MAPPED = 4  # of the files that have no name and are not open; their sizes cannot be seen
_MILLISECONDS = 20  # between two looks
_REST = 4  # times as long as a look took
_FITS, TOO_MUCH = 0, 3  # exit statuses
_DELETED = re.compile(
    r"(?P<first>[0-9a-f]+)-(?P<end>[0-9a-f]+) \S+ \S+ \S+ (?P<inode>[1-9]\d*) +(?P<path>.*) \(deleted\)"
)


def watch(child: int, most_bytes: int) -> NoReturn:
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
            if not fits(child, most_bytes):
                signal.pidfd_send_signal(process, signal.SIGKILL)
                os._exit(TOO_MUCH)
            pause = max(_MILLISECONDS, _REST * 1000 * (time.monotonic() - began))
    except ProcessLookupError:
        pass
    finally:
        os._exit(_FITS)


def fits(child: int, most_bytes: int) -> bool:
    """Whether this folder and the nameless files of the child are within bounds; what cannot be looked into is not."""
    try:
        named, entries = _in_folder()
    except OSError:
        return False
    if entries > MOST_ENTRIES or named > most_bytes:
        return False
    opened = _open_without_name(child, os.stat(".").st_dev)
    mapped = {inode: size for inode, size in _mapped_without_name(child).items() if inode not in opened}
    return len(mapped) <= MOST_MAPPED and named + sum(opened.values()) + sum(mapped.values()) <= most_bytes


def _in_folder() -> tuple[int, int]:
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


def _open_without_name(child: int, device: int) -> dict[int, int]:
    """Inode → bytes on disk of the files on this device that the child holds open and that have no name."""
    found = {}
    with contextlib.suppress(OSError):  # it is about to end, or its walls are not up yet
        for descriptor in os.listdir(f"/proc/{child}/fd"):
            with contextlib.suppress(OSError):
                facts = os.stat(f"/proc/{child}/fd/{descriptor}")
                if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 0 and facts.st_dev == device:
                    found[facts.st_ino] = facts.st_blocks * 512
    return found


def _mapped_without_name(child: int) -> dict[int, int]:
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
