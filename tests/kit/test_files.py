"""Files are written whole or not at all, and what is no regular file stays what it is."""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import exercise_kit
import vit_course
from exercise_kit.files import find_user_folder, remove_drafts, write
from tests.waiting import GIVE_UP


def list_names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_made_and_replaced(tmp_path):
    path = tmp_path / "a.json"
    write(path, b"old")
    before = path.stat().st_ino
    write(path, b"new")
    assert (path.read_bytes(), list_names(tmp_path)) == (b"new", ["a.json"])
    assert path.stat().st_ino != before, "written over: a reader could have seen half of it"


def test_drafts_of_killed_processes_are_cleared_and_fresh_ones_are_not(tmp_path):
    drafts = [f".{name}.{digit}.part" for digit in "12" for name in ("[ann].json", "b.json")]
    for draft in drafts:
        (tmp_path / draft).touch()
    for draft in drafts[:2]:
        os.utime(tmp_path / draft, (0, 0))
    write(tmp_path / "[ann].json", b"")
    assert list_names(tmp_path) == sorted(["[ann].json", *drafts[1:]])
    remove_drafts(tmp_path)
    assert list_names(tmp_path) == sorted(["[ann].json", *drafts[2:]])


ENDED = """
import os, signal, sys
from pathlib import Path
from exercise_kit.files import write
by = signal.Signals[sys.argv[2]]
if by != signal.SIGINT:
    signal.signal(by, signal.SIG_DFL)  # under nohup a process inherits that SIGHUP is ignored
fsync = os.fsync
os.fsync = lambda handle: (os.kill(os.getpid(), by), fsync(handle))
write(Path(sys.argv[1]), b"new")
signal.pause()
"""


@pytest.mark.parametrize("by", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_who_is_ended_in_the_middle_leaves_no_draft(tmp_path, by):
    path = tmp_path / "grades.csv"
    done = subprocess.run([sys.executable, "-c", ENDED, str(path), by], check=False, stderr=subprocess.DEVNULL)
    assert done.returncode == -signal.Signals[by]
    assert list_names(tmp_path) == (["grades.csv"] if by != "SIGINT" else [])


def test_an_error_names_the_file_and_not_its_draft(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied", "a draft")

    monkeypatch.setattr(os, "open", refuse)  # root may write into a folder that is read-only
    with pytest.raises(PermissionError) as caught:
        write(tmp_path / "report.html", b"")
    assert caught.value.filename == str(tmp_path / "report.html")


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_what_cannot_be_written_leaves_what_was_there(tmp_path, monkeypatch, broken):
    path = tmp_path / "a.json"
    write(path, b"old")

    def raise_disk_full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, broken, raise_disk_full)
    with pytest.raises(OSError, match="No space"):
        write(path, b"new")
    assert (path.read_bytes(), list_names(tmp_path)) == (b"old", ["a.json"])


def test_modes_are_kept_or_as_evaluated(tmp_path):
    path, mask = tmp_path / "a", os.umask(0o027)
    try:
        write(path, b"")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        write(path, b"")
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
        write(path, b"", mode=0o600)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(mask)


@pytest.mark.parametrize("target", ["a file", "nothing yet", "itself", "a pipe", "/dev/stdout"])
def test_a_link_is_replaced_and_never_followed(tmp_path, target):
    link, led_to = tmp_path / "link", tmp_path / "target"
    if target == "a file":
        led_to.write_bytes(b"a grader's own")
    if target == "a pipe":
        os.mkfifo(led_to)
    before = led_to.lstat() if os.path.lexists(led_to) else None
    link.symlink_to({"itself": link, "/dev/stdout": Path("/dev/stdout")}.get(target, led_to))
    write(link, b"new")
    assert (link.is_symlink(), link.read_bytes()) == (False, b"new")
    assert os.path.lexists(led_to) == (before is not None)
    if before is not None:
        after = led_to.lstat()
        assert (after.st_size, after.st_mode, after.st_ino) == (before.st_size, before.st_mode, before.st_ino)


def test_folders_are_refused_also_behind_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    for path in (tmp_path / "folder", tmp_path / "link"):
        with pytest.raises(IsADirectoryError, match="it is a folder; name a file"):
            write(path, b"x")
    assert list_names(tmp_path) == ["folder", "link"]


def test_a_pipe_gets_the_content_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write(pipe, b"x" * 200_000)
    reader.join(GIVE_UP)
    assert got == [b"x" * 200_000]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list_names(tmp_path) == ["pipe"]


def test_a_device_swallows_the_content_and_stays(tmp_path):
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        device.open("wb").close()
    except OSError as error:
        pytest.skip(f"no device can be made here: {error}")
    write(device, b"x")
    assert stat.S_ISCHR(device.stat().st_mode)
    assert list_names(tmp_path) == ["null"]


def test_stdout_that_goes_into_a_file_keeps_what_was_printed_before(tmp_path):
    out = tmp_path / "out"
    code = "from pathlib import Path; from exercise_kit.files import write; print('before', flush=True); "
    code += "write(Path('/dev/stdout'), b'the content\\n'); print('after')"
    with out.open("ab") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
    assert out.read_text() == "before\nthe content\nafter\n"


@pytest.mark.parametrize("kind", ["cache", "config"])
def test_the_user_s_folder_is_where_xdg_says_or_in_the_home(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    in_home = tmp_path / f".{kind}" / "vit_course"
    for value, folder in (("", in_home), ("relative", in_home), ("/there", Path("/there/vit_course"))):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", value)
        assert find_user_folder(kind) == folder
    monkeypatch.delenv(f"XDG_{kind.upper()}_HOME")
    assert find_user_folder(kind) == in_home


# each renames something that no reader of another program has been promised: a folder, a student's file, a download
OTHERS = {
    "data/torchvision_sets.py",
    "sandbox/package_view.py",
    "worker/namespaces.py",
    "nbgrader/class_folder.py",
    "nbgrader/submission_exporter.py",
    "authoring/release.py",
    "progress/log.py",
}


def test_there_is_one_writer():
    packages = [Path(each.__file__).parent for each in (vit_course, exercise_kit)]
    renaming = re.compile(r"os\.(replace|rename)\(|\.rename\(|mkstemp\(")
    paths = [(path, home) for home in packages for path in home.rglob("*.py")]
    found = {str(path.relative_to(home)) for path, home in paths if renaming.search(path.read_text())}
    assert found == OTHERS | {"files.py"}
