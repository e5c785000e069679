"""The attack corpus before the real judge: no undeserved point, no leak, nothing changed outside, no neighbor hurt."""

from __future__ import annotations

import copy
import json
import os
import re
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil
import pytest
import torch

from exercise_kit.judge.judge import Judge
from exercise_kit.judge.result import Result
from exercise_kit.sandbox.limits import Limits
from exercise_kit.submission.find import find
from exercise_kit.submission.parse import read
from exercise_kit.submission.released import Lessons
from tests.e2e.attacks import folders
from tests.e2e.attacks.attack import ALL_OF_PATCHIFY, RIGHT, WRONG, Attack
from tests.e2e.attacks.corpus import ATTACKS, hand_in, read_released_notebook
from tests.e2e.submissions import read_mark
from tests.machine import needs_sandbox

pytestmark = needs_sandbox
ROOT = Path(__file__).parents[2]
LESSON = "01_patchify"
# of the judge's own memory: what one attack may add to the most that was ever needed
ROOM = 1 << 30
SECRET = "INSTRUCTOR-7f3a"
SHORT = Limits(cell_seconds=2.0, call_seconds=2.0, total_seconds=20.0)


@dataclass(frozen=True)
class Grader:
    """A class folder, and the judge that grades it."""

    folder: Path
    judge: Judge
    lessons: Lessons

    def grade(self, path: Path) -> Result:
        (found,) = find([path], self.lessons.names)
        return self.judge.grade(read(found, self.lessons))


@pytest.fixture(scope="module")
def grader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grader]:
    folder = tmp_path_factory.mktemp("attacked") / "class"
    for name in ("release", "source"):
        place = folder / name / LESSON
        place.mkdir(parents=True)
        built = ROOT / ("notebooks" if name == "release" else "solutions") / f"{LESSON}.ipynb"
        (place / built.name).write_bytes(built.read_bytes())
    (folder / "nbgrader_config.py").write_text("c = get_config()\n")
    (folder / "gradebook.db").write_bytes(b"the grades")
    (folder / ".vit_course").mkdir()
    (folder / ".vit_course" / "secret").write_text(SECRET)
    os.environ["INSTRUCTOR_TOKEN"] = SECRET
    neighbor = hand_in(folder, "neighbor-0", Attack("none", "nothing", RIGHT, ALL_OF_PATCHIFY))
    with Judge(ROOT / "tests" / "hidden", SECRET.encode(), SHORT) as judge:
        grader = Grader(folder, judge, Lessons(folder))
        assert grader.grade(neighbor).score == ALL_OF_PATCHIFY  # the sandbox's own processes have started
        yield grader
    del os.environ["INSTRUCTOR_TOKEN"]


def list_watched_files(folder: Path) -> dict[str, object]:
    """List what an attack must leave as it is: the class, the installed packages, the shared places of the machine."""
    torch_home = Path(torch.__file__).parent
    watched = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    watched += [*torch_home.glob("*.py"), Path(os.path.realpath(os.sys.executable)), Path("/etc/passwd")]
    state: dict[str, object] = {str(path): _stat_file(path) for path in watched}
    for home in (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), Path("/"), Path.home(), torch_home, ROOT):
        state[f"in {home}"] = sorted(name for name in os.listdir(home) if "attacked" in name or "bomb" in name)
    return state


def _stat_file(path: Path) -> tuple[int, int, int, int]:
    fact = path.stat()
    return fact.st_mode, fact.st_uid, fact.st_size, fact.st_mtime_ns


def list_child_processes() -> set[int]:
    """The processes that this one has started, and theirs."""
    return {process.pid for process in psutil.Process().children(recursive=True)}


def measure_peak_memory() -> int:
    """The most bytes that this process, which is the judge's, has held at any time."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda each: each.name)
@pytest.mark.proof
def test_an_attack_gets_what_it_deserves(grader: Grader, attack: Attack) -> None:
    student = f"attack-{ATTACKS.index(attack)}"
    path = hand_in(grader.folder, student, attack)
    processes = list_child_processes()
    before = list_watched_files(grader.folder)
    most = measure_peak_memory()
    result = grader.grade(path)
    assert measure_peak_memory() - most < ROOM, "the judge's memory"
    stored = re.sub(r'"image/png": "[^"]*"', "", json.dumps(result.to_store()))  # letters of a picture spell anything
    assert result.status == "graded", result.reason
    assert result.score == attack.honest, stored[:3000]
    assert "LEAK" not in stored, stored[stored.index("LEAK") :][:200]
    assert SECRET not in stored
    assert not any(_has_live_output(run.outputs) for run in result.runs)
    assert set(attack.flags) <= set(result.flags), result.flags
    assert list_watched_files(grader.folder) == before
    neighbor = grader.grade(grader.folder / "submitted" / "neighbor-0" / LESSON / f"{LESSON}.ipynb")
    assert neighbor.score == ALL_OF_PATCHIFY, "the next submission suffers"
    assert len(list_child_processes()) <= len(processes), "a process is left"


def _has_live_output(outputs: tuple[object, ...]) -> bool:
    return any(set(each.get("data", {})) - {"text/plain", "image/png"} for each in outputs if isinstance(each, dict))


@pytest.mark.parametrize("attack", folders.FOLDER_ATTACKS, ids=lambda each: each.name)
@pytest.mark.proof
def test_a_hostile_folder_gets_what_it_deserves(grader: Grader, attack: folders.FolderAttack) -> None:
    notebook = read_released_notebook(LESSON)
    for cell in notebook.cells:
        if read_mark(cell).get("grade_id") == "patchify":
            cell.source = WRONG
    home = grader.folder / "submitted" / f"folder-{attack.name.replace(' ', '-')}" / LESSON
    home.mkdir(parents=True)
    attack.build(home, json.loads(nbformat.writes(copy.deepcopy(notebook))))
    before = list_watched_files(grader.folder)
    results = [grader.judge.grade(read(each, grader.lessons)) for each in find([home.parent], grader.lessons.names)]
    stored = json.dumps([each.to_store() for each in results])
    assert all(each.score == 0 for each in results), stored[:3000]
    assert ("graded" in {each.status for each in results}) == attack.graded, stored[:3000]
    assert all(each.reason for each in results if each.status != "graded")
    assert SECRET not in stored
    assert list_watched_files(grader.folder) == before


def test_what_attacks_call_in_the_worker_is_there() -> None:
    """An attack that calls what has been renamed fails by itself, and shows nothing."""
    tables = (Path(__file__).parent / "attacks").glob("*.toml")
    called = {name for each in tables for name in re.findall(r"serv(?:ing\(\)|er)\.(_\w+)", each.read_text("utf-8"))}
    server = (ROOT / "exercise_kit" / "worker" / "requests.py").read_text("utf-8").partition("class Callbacks")[0]
    assert len(called) >= 4
    assert called == {name for name in called if re.search(rf"(def |self\.){name}\b", server)}


def test_no_two_attacks_have_one_name() -> None:
    names = [each.name for each in (*ATTACKS, *folders.FOLDER_ATTACKS)]
    assert len(names) == len(set(names))
