"""`vit-course grade` on a class, as an instructor runs it: the real judge, a kill half-way, and a grader beside it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from exercise_kit.nbgrader.class_folder import new_class
from tests.e2e.attacks.folders import add_own_class
from tests.e2e.commands import ROOT, make_command
from tests.outline import POINTS
from tests.waiting import GIVE_UP, wait_until

LESSON = "01_patchify"
STUDENTS = 8
ALL_POINTS = sum(POINTS[LESSON].values())


def make_class(path, students, wrong=None):
    """A class in which everybody has another notebook: right, but for the wrong one and the last, which is none."""
    folder = new_class(path, ROOT).path
    text = (ROOT / "solutions" / f"{LESSON}.ipynb").read_text("utf-8")
    mistaken = text.replace("permute(0, 2, 4, 1, 3, 5)", "permute(0, 4, 2, 1, 3, 5)")
    for number in range(students):
        notebook = json.loads(mistaken if number == wrong else text)
        notebook["metadata"]["student"] = number
        target = folder / "submitted" / f"student {number}" / LESSON / f"{LESSON}.ipynb"
        target.parent.mkdir(parents=True)
        target.write_text(json.dumps(notebook), encoding="utf-8")
    target.write_text("<html>", encoding="utf-8")
    return folder


@pytest.fixture
def class_dir(tmp_path):
    return make_class(tmp_path / "a class", STUDENTS)


def make_grade_command(folder, *options):
    return make_command("grade", folder / "submitted", "--class", folder, "--jobs", 2, *options)


def read_results(path):
    return json.loads(path.read_text(encoding="utf-8"))["submissions"]


def list_kept_results(folder):
    """The kept results of students; that of the model answers is no student's."""
    found = (folder / ".vit_course" / "results").glob("*.json")
    return [path for path in found if "submitted" in json.loads(path.read_bytes())["result"]["path"]]


def list_processes(session):
    """The processes of a session that run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, of = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if of == str(session) and state != "Z":
            found.append(stat.parent.name)
    return found


@pytest.mark.proof
def test_a_run_that_was_killed_goes_on_where_it_was(class_dir, tmp_path):
    first = subprocess.Popen(
        make_grade_command(class_dir), start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_until(lambda: len(list_kept_results(class_dir)) >= 2)
    first.send_signal(signal.SIGKILL)
    first.wait()
    wait_until(lambda: not list_processes(first.pid))
    before = {path: path.stat().st_mtime_ns for path in list_kept_results(class_dir)}
    assert 2 <= len(before) < STUDENTS - 1
    target = tmp_path / "results.json"
    done = subprocess.run(
        make_grade_command(class_dir, "--resume", "--json", target), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"{len(before)} of {STUDENTS} results were taken over" in done.stderr
    assert {path: path.stat().st_mtime_ns for path in before} == before, "nothing was graded twice"
    entries = read_results(target)
    assert [entry["student"] for entry in entries] == [f"student {number}" for number in range(STUDENTS)]
    assert [entry["score"] for entry in entries[:-1]] == [ALL_POINTS] * (STUDENTS - 1)
    assert (entries[-1]["status"], entries[-1]["score"]) == ("rejected", 0.0)


@pytest.mark.proof
def test_a_class_folder_that_was_handed_in_chooses_no_checks(class_dir, tmp_path):
    """Every entry: a notebook, folders, a tree of their own; from their folder, from outside, with --class."""
    wrong = json.loads((ROOT / "notebooks" / f"{LESSON}.ipynb").read_bytes())
    in_tree = class_dir / "submitted" / "eve" / LESSON
    loose, in_own_tree = tmp_path / "downloads" / "eve", tmp_path / "downloads" / "mal"
    for folder in (in_tree, loose, in_own_tree):
        folder.mkdir(parents=True)
        add_own_class(folder, wrong)
    shutil.move(in_own_tree / f"{LESSON}.ipynb", tmp_path / "work.ipynb")
    (in_own_tree / "submitted" / "ada" / LESSON).mkdir(parents=True)
    shutil.move(tmp_path / "work.ipynb", in_own_tree / "submitted" / "ada" / LESSON / f"{LESSON}.ipynb")
    entries = [
        in_tree / f"{LESSON}.ipynb",
        in_tree,
        in_tree.parent,
        loose / f"{LESSON}.ipynb",
        in_own_tree,
        loose.parent,
    ]
    target = tmp_path / "results.json"
    environment = os.environ | {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    for here, options in ((in_tree, ()), (tmp_path, ("--class", class_dir)), (tmp_path, ())):
        order = make_command("grade", *entries, "--json", target, *options)
        done = subprocess.run(order, cwd=here, env=environment, capture_output=True, text=True, check=False)
        found = {Path(entry["path"]).relative_to(tmp_path).parts[-4:]: entry for entry in read_results(target)}
        assert len(found) == 3, done.stderr
        assert {(entry["status"], entry["score"]) for entry in found.values()} == {("graded", 0.0)}
        assert {Path(path[-1]).stem for path in found} == {LESSON}
        assert all("check-files" in entry["flags"] for path, entry in found.items() if "ada" not in path), found
        assert f"{in_own_tree} looks like a class folder" in done.stderr
    assert [path.name for path in Path("/tmp").glob("attacked-*")] == []


def test_nothing_is_imported_from_where_a_submission_lies(tmp_path):
    """A file named as a module of Python's, or of a package that the grader needs, beside the graded notebook."""
    folder, trace = tmp_path / "downloads", tmp_path / "trace"
    folder.mkdir()
    shutil.copy(ROOT / "solutions" / f"{LESSON}.ipynb", folder)
    for name in {
        *sys.stdlib_module_names,
        "torch",
        "numpy",
        "rich",
        "typer",
        "pytest",
        "nbformat",
        "torchvision",
        "conftest",
    }:
        (folder / f"{name}.py").write_text(f"open({str(trace)!r}, 'a').write('{name} ')\nraise ImportError\n")
    environment = os.environ | {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    order = [str(Path(sys.executable).parent / "vit-course"), "grade", f"{LESSON}.ipynb"]
    order += ["--json", str(tmp_path / "results.json")]
    done = subprocess.run(order, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert not trace.exists(), trace.read_text()
    (found,) = read_results(tmp_path / "results.json")
    assert found["score"] == found["max_score"] > 0, done.stderr


@pytest.mark.proof
def test_two_graders_at_once_and_a_stop_by_hand_do_no_harm(class_dir, tmp_path):
    targets = [tmp_path / "a.json", tmp_path / "b.json"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    stopped = subprocess.Popen(make_grade_command(class_dir), **quiet)
    both = [subprocess.Popen(make_grade_command(class_dir, "--json", target), **quiet) for target in targets]
    wait_until(lambda: list_kept_results(class_dir))
    os.killpg(stopped.pid, signal.SIGINT)
    assert stopped.wait(GIVE_UP) == 130
    *progress, last = stopped.stderr.read().splitlines()
    assert last == "Stopped. What was graded is kept; the same command goes on from there."
    assert all(line.startswith("grading: ") for line in progress)
    wait_until(lambda: not list_processes(stopped.pid))
    for grader, target in zip(both, targets, strict=True):
        assert grader.wait(GIVE_UP) == 1
        assert [entry["score"] for entry in read_results(target)[:-1]] == [ALL_POINTS] * (STUDENTS - 1)
    assert not list((class_dir / ".vit_course" / "results").glob("*.part"))
