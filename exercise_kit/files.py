"""Write a file whole or not at all: every command that keeps or gives out something writes it here."""

from __future__ import annotations

import errno
import glob
import os
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal
from uuid import uuid4

DRAFT = ".part"  # how the name of what is not whole yet ends
EXPIRY = 3600.0  # seconds after which nobody is at work on a draft any more
_DESCRIPTORS = ("/proc/", "/dev/fd/", "/dev/stdout", "/dev/stderr")


def write(path: Path, content: bytes, mode: int | None = None) -> None:
    """Give a file its content: whoever reads it, and whenever this process dies, it is the old one or the new one.

    A link is replaced and never followed: somebody else may have put it there, to have a file of this account's
    overwritten. What is no regular file (a device, a pipe) stays what it is, and so does ``/dev/stdout``:
    the content goes straight into it.

    Args:
        path: of the file; the folder exists.
        content: all of it.
        mode: who may read the file, less the umask; None: as before, and everybody where it is new.

    Raises:
        IsADirectoryError: there is a folder in its place.
        OSError: it cannot be written, and the error names ``path``; a file that was there before is whole.
    """
    try:
        found: int | None = path.lstat().st_mode
    except FileNotFoundError:
        found = None
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder; name a file", str(path))
    if found is not None and stat.S_ISLNK(found):
        found = None
    is_descriptor = os.path.abspath(path).startswith(_DESCRIPTORS)
    if is_descriptor or (found is not None and not stat.S_ISREG(found)):
        with open(os.open(path, os.O_WRONLY | os.O_APPEND), "wb") as stream:
            stream.write(content)
        return
    _write_draft_and_rename(path.absolute(), content, mode, found)


def write_and_make_folder(path: Path, content: bytes) -> None:
    """Give a file its content, as :func:`write` does, and make its folder where there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, content)


def read_content(path: Path) -> bytes | None:
    """Read what stands in a file; None where there is none."""
    return path.read_bytes() if path.is_file() else None


def remove_drafts(folder: Path, name: str = "*") -> None:
    """Remove what processes that were killed left half written, of the file of this name alone, or of all."""
    for draft in folder.glob(f".{name}.*{DRAFT}"):
        with suppress(OSError):  # another process was quicker
            if time.time() - draft.stat().st_mtime > EXPIRY:
                draft.unlink()


def explain_unreadable_folder(folder: Path) -> str:
    """Why this account cannot see what a folder holds, as a clause; "": it can, or there is no such folder.

    A search in a folder that may not be read finds nothing, and says nothing.
    """
    try:
        os.listdir(folder)
    except PermissionError:
        return f"this account may not read {folder}; run the command as the account that it belongs to"
    except OSError:
        pass
    return ""


def _write_draft_and_rename(path: Path, content: bytes, mode: int | None, earlier_mode: int | None) -> None:
    name = path.name[:80]
    draft = path.with_name(f".{name}.{uuid4().hex}{DRAFT}")
    remove_drafts(path.parent, glob.escape(name))
    try:
        with _defer_signals():
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode)
            with open(handle, "wb") as file:
                if mode is None and earlier_mode is not None:
                    os.fchmod(handle, stat.S_IMODE(earlier_mode))
                file.write(content)
                file.flush()
                os.fsync(handle)
            os.replace(draft, path)
    except OSError as error:  # the name of a draft says nothing to anybody
        if error.errno is not None:
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    _sync_folder(path.parent)


@contextmanager
def _defer_signals() -> Iterator[None]:
    """Hold back what would end this process between a draft and its file: nobody else would remove the draft."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power failure, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def find_user_folder(kind: Literal["cache", "config"]) -> Path:
    """Where this account keeps what is ours: below the folder that an XDG variable names, else below home.

    Raises:
        FileNotFoundError: the account has no home.
    """
    folder = os.environ.get(f"XDG_{kind.upper()}_HOME", "")
    try:
        home = Path(folder) if os.path.isabs(folder) else Path.home() / f".{kind}"
    except RuntimeError:
        raise FileNotFoundError(errno.ENOENT, "this account has no home folder; set HOME", "~") from None
    return home / "vit_course"
