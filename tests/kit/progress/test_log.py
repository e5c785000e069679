"""The log: nothing of it is lost, nothing in it is believed that is not ours, and nobody's else is written."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

import vit_course
from exercise_kit.engine import own_folder
from exercise_kit.engine.run import check
from exercise_kit.progress import log
from tests.kit.progress.conftest import restart_kernel

GOOD = '{"v": 1, "t": 1000.0, "s": "a", "kind": "guess", "name": "rows", "guess": 0.5}'
CHECK = GOOD.replace('"guess", "name": "rows", "guess": 0.5', '"check", "exercise": "e", "points": 1, "share": 1.0')
CHECK = CHECK.replace("}", ', "state": "passed", "mistakes": []}')
DAMAGED = (
    *("", "{", "null", "[]", "3", '"text"', GOOD[:40], GOOD.replace('"v": 1', '"v": 0'), "[" * 5000),
    *(GOOD.replace("1000.0", each) for each in ("NaN", "-1", "true", '"now"', "1e400")),
    *(GOOD.replace("0.5", each) for each in ("null", "NaN", "[1]", "1" + 5000 * "0")),
    *(GOOD.replace('"guess"', each) for each in ('"unknown"', "7")),
    *(CHECK.replace("1.0", each) for each in ("-1", '"all"')),
    *(CHECK.replace("[]", each) for each in ("[1]", "3")),
)


def read_log(folder: Path) -> list[dict[str, object]]:
    path = folder / log.FILE
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_graded_cell_s_report_is_one_line(kernel_folder: Path) -> None:
    check("patchify", lambda images, patch_size: vit_course.patchify(images.transpose(2, 3), patch_size), points=8)
    (line,) = read_log(kernel_folder)
    assert (line["lesson"], line["exercise"], line["state"]) == ("01_patchify", "patchify", "failed")
    assert line["mistakes"] == ["the whole image transposed"]
    assert stat.S_IMODE((kernel_folder / log.FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("points", [None, 0])
def test_a_demonstration_or_a_bug_hunt_without_points_is_not_noted(kernel_folder: Path, points: float | None) -> None:
    check("patchify", vit_course.patchify, points=points)
    check("patchify", vit_course.patchify, vit_course.patchify, points=points)
    assert read_log(kernel_folder) == []


def not_written(images: object, patch_size: int) -> None:
    raise NotImplementedError


def test_what_is_not_written_yet_is_no_mistake(kernel_folder: Path) -> None:
    check("patchify", not_written, points=8)
    (line,) = read_log(kernel_folder)
    assert (line["state"], line["share"], line["mistakes"]) == ("unwritten", 0.0, [])


@pytest.mark.parametrize("by", ["the switch", "nbgrader", "no kernel"])
def test_nothing_is_written_where_nobody_learns(kernel_folder: Path, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    if by == "the switch":
        monkeypatch.setenv(log.SWITCH, "off")
    elif by == "nbgrader":
        monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    else:
        monkeypatch.setattr(log, "is_in_notebook_kernel", lambda: False)
    check("patchify", vit_course.patchify, points=8)
    log.note("guess", name="rows", guess=1)
    assert list(kernel_folder.iterdir()) == []
    assert [each["kind"] for each in log.read_current_events().events] == ["guess"]


def append_many_events(folder: str, number: int) -> None:
    for each in range(200):
        log._append_events(Path(folder) / log.FILE, [{**json.loads(GOOD), "name": f"{number} {each} {'x' * 300}"}])


def test_kernels_at_the_same_time_lose_no_line(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=append_many_events, args=(str(tmp_path), number)) for number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    found = log.read(tmp_path / log.FILE)
    assert found.unreadable == 0
    assert len({each["name"] for each in found.events}) == 800


@pytest.mark.parametrize("line", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_line_is_counted_and_costs_no_other(tmp_path: Path, line: str) -> None:
    (tmp_path / log.FILE).write_text(f"{GOOD}\n{line}\n{CHECK}\n")
    found = log.read(tmp_path / log.FILE)
    assert (len(found.events), found.unreadable) == (2, 1 if line else 0)


def test_a_damaged_file_is_begun_anew_and_kept_beside(
    kernel_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for round_ in ("", "2"):
        restart_kernel(monkeypatch, f"kernel {round_}")
        with (kernel_folder / log.FILE).open("a") as file:
            file.write(f"{GOOD}\n{GOOD[:30]}")
        before = (kernel_folder / log.FILE).read_text()
        log.note("active")
        assert (kernel_folder / f"my_progress.before{round_}.jsonl").read_text() == before
        said = capsys.readouterr()
        assert "1 of its lines cannot be read" in said.out
        assert not said.err
    assert [each["kind"] for each in read_log(kernel_folder)] == [
        "guess",
        "guess",
        "active",
        "active",
    ]  # by their times


@pytest.mark.parametrize("content", [b"\xff\xfe\x00garbage", b"PK\x03\x04", b"[1, 2]"])
def test_another_kind_of_file_in_its_place_stops_nothing(kernel_folder: Path, content: bytes) -> None:
    (kernel_folder / log.FILE).write_bytes(content)
    log.note("active")
    assert [each["kind"] for each in read_log(kernel_folder)] == ["active"]
    assert (kernel_folder / "my_progress.before.jsonl").read_bytes() == content


def test_a_large_file_is_set_aside(kernel_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_MOST_BYTES", 10)
    (kernel_folder / log.FILE).write_text(f"{GOOD}\n")
    log.note("active")
    assert [each["kind"] for each in read_log(kernel_folder)] == ["active"]


def test_where_a_drive_is_mounted_it_goes_there(kernel_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drive = kernel_folder / "MyDrive"
    drive.mkdir()
    monkeypatch.setattr(own_folder, "DRIVE", drive)
    log.note("guess", name="rows", guess=1)
    assert [path.name for path in kernel_folder.iterdir()] == ["MyDrive"]
    assert [each["name"] for each in read_log(drive)] == ["rows"]
    assert [each["name"] for each in log.read_current_events().events] == ["rows"]


def put_folder_in_place_of_log(folder: Path) -> Callable[[], object]:
    (folder / log.FILE).mkdir()
    return lambda: None


def make_log_read_only(folder: Path) -> Callable[[], object]:
    real = os.open

    def refuse_to_open_log(path: object, *arguments: int) -> int:
        if str(path).endswith(log.FILE):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *arguments)  # type: ignore[arg-type]

    os.open = refuse_to_open_log  # type: ignore[assignment]  # root may write everywhere
    return lambda: setattr(os, "open", real)


@pytest.mark.parametrize("hinder", [put_folder_in_place_of_log, make_log_read_only])
def test_where_nothing_can_be_written_it_lasts_as_long_as_the_kernel(
    kernel_folder: Path, capsys: pytest.CaptureFixture[str], hinder: Callable[[Path], Callable[[], object]]
) -> None:
    undo = hinder(kernel_folder)
    try:
        log.note("guess", name="rows", guess=1)
        log.note("guess", name="columns", guess=2)
    finally:
        undo()
    said = capsys.readouterr()
    assert said.out.count("cannot be kept") == 1
    assert not said.err
    assert [each["name"] for each in log.read_current_events().events] == ["rows", "columns"]


def test_delete_takes_the_old_ones_too_and_nothing_else(kernel_folder: Path) -> None:
    for name in (log.FILE, "my_progress.before.jsonl", "my_progress.before2.jsonl", "my_vit.py", "01_patchify.ipynb"):
        (kernel_folder / name).write_text("mine")
    assert len(log.delete(kernel_folder / log.FILE)) == 3
    assert sorted(each.name for each in kernel_folder.iterdir()) == ["01_patchify.ipynb", "my_vit.py"]
