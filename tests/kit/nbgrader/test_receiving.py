"""What happens to a submission's folder before nbgrader reads it."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from exercise_kit.nbgrader.fault_messages import LegibleLog
from exercise_kit.nbgrader.submission_exporter import receive, remove_copied_files, set_secret_aside
from tests.kit.conftest import make_chain_of_folders

LESSON = "01_double"


def hand_in(class_dir, *names):
    """Ada's folder with these files, and their paths as nbgrader gives them to the hook."""
    folder = class_dir / "submitted" / "ada" / LESSON
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(Path(name).name)
    return folder, [str(folder / name) for name in names]


@pytest.mark.parametrize("name", ["01_double (1).ipynb", "01_double-Copy1.ipynb", "ada 01_double.ipynb"])
def test_a_renamed_notebook_gets_its_lesson_s_name_back(tmp_path, name):
    folder, notebooks = hand_in(tmp_path, name)
    receive(notebooks, assignment="*", student="*")
    assert [path.name for path in folder.iterdir()] == ["01_double.ipynb"]
    assert notebooks == [str(folder / "01_double.ipynb")]
    assert (folder / "01_double.ipynb").read_text() == name


@pytest.mark.parametrize(
    "names",
    [["01_double.ipynb"], ["02_triple.ipynb"], ["01_double.ipynb", "01_double (1).ipynb"], ["a.ipynb", "b.ipynb"]],
)
def test_any_other_name_is_left_and_nbgrader_asks_for_the_lesson_s(tmp_path, names):
    folder, notebooks = hand_in(tmp_path, *names)
    receive(notebooks, assignment="*", student="*")
    assert notebooks == [str(folder / "01_double.ipynb")]
    assert sorted(path.name for path in tmp_path.rglob("*.ipynb")) == sorted(names)


def test_one_folder_deeper_a_notebook_stays_beside_its_files(tmp_path):
    folder, deeper = hand_in(tmp_path, "unpacked/01_double.ipynb")
    receive([str(folder / "01_double.ipynb")], assignment="*", student="*")
    assert [str(path) for path in tmp_path.rglob("*.ipynb")] == deeper


def test_a_link_is_removed_and_what_it_led_to_stays(tmp_path):
    secret = tmp_path / "source.txt"
    secret.write_text("the answers")
    folder, notebooks = hand_in(tmp_path, "01_double.ipynb")
    (folder / "deep").mkdir()
    (folder / "deep" / "notes.txt").symlink_to(secret)
    (folder / "all").symlink_to(tmp_path)
    receive(notebooks)
    assert sorted(path.name for path in folder.rglob("*")) == ["01_double.ipynb", "deep"]
    assert secret.read_text() == "the answers"
    assert len(notebooks) == 1


def test_a_notebook_that_is_a_link_stays_for_the_reader_to_refuse(tmp_path):
    _, (own,) = hand_in(tmp_path, "01_double.ipynb")
    theirs = tmp_path / "submitted" / "eve" / LESSON / "01_double.ipynb"
    theirs.parent.mkdir(parents=True)
    theirs.symlink_to(own)
    notebooks = [str(theirs)]
    receive(notebooks)
    assert notebooks == [str(theirs)]
    assert theirs.is_symlink()


def test_a_folder_without_notebooks_is_left(tmp_path):
    notebooks: list[str] = []
    receive(notebooks)
    assert notebooks == []


def test_pipes_go_since_nbgrader_would_copy_them(tmp_path):
    folder, (own,) = hand_in(tmp_path, "01_double.ipynb")
    for name in ("pipe.ipynb", "pipe.txt"):
        os.mkfifo(folder / name)
    (folder / "folder.ipynb").mkdir()
    notebooks = [own, str(folder / "pipe.ipynb"), str(folder / "folder.ipynb")]
    receive(notebooks)
    assert notebooks == [own]
    assert sorted(path.name for path in folder.iterdir()) == ["01_double.ipynb", "folder.ipynb", "pipe.ipynb"]


def test_a_link_in_a_folder_that_nothing_can_be_removed_from_goes(tmp_path):
    folder, notebooks = hand_in(tmp_path, "01_double.ipynb", "locked/notes.txt")
    locked = folder / "locked"
    (locked / "secret").symlink_to(tmp_path)
    locked.chmod(0o500)
    receive(notebooks)
    assert sorted(path.name for path in locked.iterdir()) == ["notes.txt"]


def test_folders_too_deep_for_a_path_keep_no_link(tmp_path):
    folder, notebooks = hand_in(tmp_path, "01_double.ipynb")
    for number in range(6):
        (folder / f"s{number}").mkdir()
        (folder / f"s{number}" / "secret").symlink_to(tmp_path)
        make_chain_of_folders(folder / f"q{number}", "d" * 200, 25)
    receive(notebooks)
    assert not [path for number in range(6) for path in (folder / f"s{number}").iterdir()]


@pytest.mark.parametrize(
    "text", [b"garbage \x1b[31m", b"\xff\xfe\xff", b"0001-01-01 00:00:00+14:00", b"9" * 10_000, b"", b" \n"]
)
def test_a_timestamp_that_tells_no_time_is_set_aside(tmp_path, text, caplog):
    folder, notebooks = hand_in(tmp_path, "01_double.ipynb")
    stamp = folder / "timestamp.txt"
    stamp.write_bytes(text)
    receive(notebooks)
    assert not stamp.exists()
    assert stamp.with_name("timestamp.txt.unreadable").read_bytes() == text
    assert "\x1b" not in caplog.text


def test_a_timestamp_that_is_a_folder_is_set_aside_and_a_good_one_stays(tmp_path):
    folder, notebooks = hand_in(tmp_path, "01_double.ipynb", "timestamp.txt/x")
    receive(notebooks)
    stamp = folder / "timestamp.txt"
    assert not stamp.exists()
    stamp.write_text("2026-11-23 10:00:00.0 UTC")
    receive(notebooks)
    assert stamp.read_text() == "2026-11-23 10:00:00.0 UTC"


def test_of_copies_only_what_was_released_stays_and_the_time(tmp_path):
    released, copied = tmp_path / "source", tmp_path / "autograded"
    beside = ("data/b.html", "timestamp.txt", "p/q.html")
    for folder, names in ((released, ("data/a.csv",)), (copied, ("data/a.csv", *beside))):
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(name)
    remove_copied_files(copied, released)
    left = sorted(str(path.relative_to(copied)) for path in copied.rglob("*") if path.is_file())
    assert left == ["data/a.csv", "timestamp.txt"]
    assert not (copied / "p").exists()


@pytest.mark.parametrize("secret", [b"0a" * 64, b"9" * 128])
def test_a_secret_of_nbgrader_s_stays_and_is_copied(tmp_path, secret):
    file = tmp_path / "submission_secret.txt"
    file.write_bytes(secret)
    set_secret_aside(file)
    remove_copied_files(tmp_path, tmp_path / "released")
    assert file.read_bytes() == secret


@pytest.mark.parametrize("secret", [b"", b"0a" * 63, b"0A" * 64, b"0a" * 64 + b"\n", b"\xff" * 128, b"a" * 5000, None])
def test_what_is_no_secret_is_set_aside(tmp_path, secret):
    file = tmp_path / "submission_secret.txt"
    if secret is None:
        file.symlink_to(tmp_path / "secret")
        (tmp_path / "secret").write_bytes(b"0a" * 64)
    else:
        file.write_bytes(secret)
    set_secret_aside(file)
    assert not file.exists()
    assert file.with_name("submission_secret.txt.unreadable").is_symlink() == (secret is None)


def test_a_name_in_the_log_cannot_disturb_a_terminal(caplog):
    log = logging.getLogger("a command of nbgrader's")
    log.addFilter(LegibleLog())
    log.addFilter(LegibleLog())
    log.warning("Skipping '%s'", "\x1b[2Ja\u202eb")
    try:
        raise ValueError("\x1b]0;title\x07")
    except ValueError:
        log.exception("it failed")
    assert caplog.messages == ["Skipping ' [2Ja b'", "it failed"]
    assert "\x1b" not in caplog.text
    assert "ValueError" in caplog.text
