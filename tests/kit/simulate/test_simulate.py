"""Simulated classes: who is in them, what is handed in, and what is refused."""

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from exercise_kit.nbgrader.class_folder import ClassFolderError
from exercise_kit.simulate.answers import Kind
from exercise_kit.simulate.profiles import HOSTILE, PROFILES, draw_names, draw_profiles
from exercise_kit.simulate.simulate import SimulationError, read_truth, simulate

ROOT = Path(__file__).parents[3]
LESSON = "00_start"


def simulate_class(folder, students=8, seed=7, lessons=(LESSON,)):
    return simulate(folder, ROOT, students, seed, lessons)


def read_all_files(folder):
    """The bytes of every file; without Python's own, which name the folder that they lie in."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    return {path.relative_to(folder): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def simulated_class(tmp_path_factory):
    return simulate_class(tmp_path_factory.mktemp("simulated") / "class")


def test_the_same_seed_makes_the_same_bytes(simulated_class, tmp_path):
    again = simulate_class(tmp_path / "again")
    assert read_all_files(again.path) == read_all_files(simulated_class.path)
    assert again.kinds == simulated_class.kinds
    other = simulate_class(tmp_path / "other", students=2, seed=8)
    assert not {path.name for path in (other.path / "submitted").iterdir()} <= {
        path.name for path in (simulated_class.path / "submitted").iterdir()
    }


def test_every_notebook_that_is_written_is_counted(tmp_path):
    written = []
    simulate(tmp_path / "class", ROOT, 2, 7, (LESSON,), lambda: written.append(1))
    assert len(written) == 2


def test_everybody_hands_in_a_notebook_of_the_lesson(simulated_class):
    truth = read_truth(simulated_class.path)
    released = json.loads((ROOT / "notebooks" / f"{LESSON}.ipynb").read_bytes())
    assert len(truth["submissions"]) == 8
    for entry in truth["submissions"]:
        folder = simulated_class.path / "submitted" / entry["student"] / LESSON
        notebook = json.loads((folder / f"{LESSON}.ipynb").read_bytes())
        deleted = sum("deleted" in each["answer"] for each in entry["exercises"])
        assert len(notebook["cells"]) == len(released["cells"]) - deleted
        assert (folder / "timestamp.txt").read_text("utf-8").strip() == entry["handed_in"]
        assert entry["late"] == (entry["handed_in"] > truth["due"][LESSON])


def test_the_truth_is_complete_and_kept_from_students(simulated_class):
    truth = read_truth(simulated_class.path)
    assert (simulated_class.path / "truth.json").stat().st_mode & 0o077 == 0
    assert not list((simulated_class.path / "source").rglob("truth.json"))
    for entry in truth["submissions"]:
        assert entry["score"] == pytest.approx(sum(each["score"] for each in entry["exercises"]))
        for each in entry["exercises"]:
            assert each["kind"] in list(Kind)
            assert each["checks"]
            assert set(each["checks"].values()) <= {"pass", "fail", "undecided"}
            assert (each["misconception"] is not None) == (each["kind"] in ("misconception", "two at once", "hostile"))
            if each["kind"] == "right":
                assert each["score"] == each["max_score"]
        assert entry["flags"] == sorted({flag for each in entry["exercises"] for flag in each["flags"]})


def test_sorts_of_students_have_their_shares():
    draw = random.Random(1)
    counts = Counter(sort.name for sort in draw_profiles(200, draw))
    assert counts == {sort.name: round(200 * sort.share) for sort in PROFILES}
    assert [sort.name for sort in draw_profiles(6, draw)].count(HOSTILE) == 1
    assert len(draw_profiles(1, draw)) == 1


def test_names_are_different_and_can_be_folders():
    found = draw_names(3000, random.Random(2))
    assert len(set(found)) == 3000
    assert all(name == name.strip() and "/" not in name and not name.startswith(".") for name in found)
    assert {any(letter > "\u0370" for letter in name) for name in found} == {True, False}, "several scripts"


@pytest.mark.parametrize(
    ("students", "lessons", "message"),
    [
        (0, (), "a class of 0 students has nobody in it; give --students 1 or more"),
        (-3, (), "a class of -3 students"),
        (2, ("09_nothing",), "there is no lesson '09_nothing'; there are: 00_start, 01_patchify"),
    ],
)
def test_what_cannot_be_is_reported_and_nothing_is_made(tmp_path, students, lessons, message):
    with pytest.raises(SimulationError, match=message):
        simulate_class(tmp_path / "class", students, lessons=lessons)
    assert not list(tmp_path.iterdir())


def test_a_folder_in_use_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ClassFolderError, match="exists and is not empty; name a new folder"):
        simulate_class(tmp_path)
    with pytest.raises(ClassFolderError, match="is not a folder"):
        simulate_class(tmp_path / "mine.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_failure_half_way_leaves_nothing(tmp_path):
    def raise_disk_full():
        raise OSError("disk full")

    with pytest.raises(SimulationError, match=r"cannot make .*class: disk full"):
        simulate(tmp_path / "class", ROOT, 2, 1, (LESSON,), raise_disk_full)
    assert not list(tmp_path.iterdir())


def test_a_class_without_a_truth_is_reported(tmp_path):
    with pytest.raises(SimulationError, match=r"there is no .*truth\.json: only a class made by vit-course simulate"):
        read_truth(tmp_path)
    (tmp_path / "truth.json").write_text("[]")
    with pytest.raises(SimulationError, match="cannot be read"):
        read_truth(tmp_path)


def run_simulate(*arguments):
    program = (
        "import typer; from exercise_kit.cli.simulate import simulate;"
        "app = typer.Typer(); app.command()(simulate); app()"
    )
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, check=False
    )


@pytest.mark.proof
def test_the_command_tells_how_to_go_on(tmp_path):
    done = run_simulate(tmp_path / "a class", "--students", 1, "--lesson", LESSON)
    assert done.returncode == 0, done.stderr
    for line in ("cd '", "vit-course grade submitted", "vit-course simulate . --check", "generate_assignment 00_start"):
        assert line in done.stdout
    for arguments, message in (
        ((tmp_path / "a class",), "exists and is not empty; name a new folder"),
        ((tmp_path / "b", "--root", tmp_path), "name a clone of the course with --root"),
        ((tmp_path / "b", "--check"), "only a class made by vit-course simulate has a truth"),
    ):
        refused = run_simulate(*arguments)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert message in refused.stderr
        assert "Traceback" not in refused.stderr
