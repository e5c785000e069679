"""Weights files before the real judge: the honest score, nothing run, memory within bounds, and one clear sentence."""

from __future__ import annotations

import json
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from exercise_kit.engine import check
from exercise_kit.judge.judge import Judge
from exercise_kit.judge.result import Result
from exercise_kit.submission.find import find
from exercise_kit.submission.parse import read
from exercise_kit.submission.released import Lessons
from tests.e2e.attacks.corpus import read_released_notebook
from tests.e2e.attacks.weight_files import EVERYTHING, FILE, FILE_ATTACKS, FileAttack
from tests.journeys.roads import write_data_folder
from tests.waiting import GIVE_UP

ROOT = Path(__file__).parents[2]
LESSON = "07_experiments"
# of the judge's own memory: what one file may add to the most that was ever needed
ROOM = 512 << 20
SECRET = "INSTRUCTOR-7f3a"


@pytest.fixture(scope="module")
def class_and_judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Judge]]:
    """A class folder, and the judge that grades it on images that the reference is right on."""
    folder, data = (tmp_path_factory.mktemp("attacked") / name for name in ("class", "data"))
    (folder / ".vit_course").mkdir(parents=True)
    (folder / ".vit_course" / "secret").write_text(SECRET)
    (folder / "nbgrader_config.py").write_text("c = get_config()\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIT_COURSE_DATA", str(write_data_folder(data)))
        with Judge(ROOT / "tests" / "hidden", SECRET.encode(), sandboxed=False) as judge:
            yield folder, judge


def grade_attack(folder: Path, judge: Judge, attack: FileAttack) -> Result:
    home = folder / "submitted" / attack.name.replace(" ", "-") / LESSON
    home.mkdir(parents=True)
    (home / f"{LESSON}.ipynb").write_text(json.dumps(read_released_notebook(LESSON)), encoding="utf-8")
    attack.build(home)
    lessons = Lessons(folder)
    (found,) = find([home], lessons.names)
    return judge.grade(read(found, lessons, "vit_cifar"))


@pytest.fixture(autouse=True)
def _limit_time() -> Iterator[None]:
    def raise_timeout(*_: object) -> None:
        raise TimeoutError("the file hangs the grader")

    signal.signal(signal.SIGALRM, raise_timeout)
    signal.alarm(GIVE_UP)
    yield
    signal.alarm(0)


@pytest.mark.parametrize("attack", FILE_ATTACKS, ids=lambda each: each.name)
@pytest.mark.proof
def test_a_file_gets_what_it_deserves(class_and_judge: tuple[Path, Judge], attack: FileAttack) -> None:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = grade_attack(*class_and_judge, attack)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most < ROOM >> 10, "the judge's memory"
    stored = json.dumps(result.to_store())
    assert result.status == "graded", result.reason
    assert result.score == attack.honest, stored
    assert result.max_score == EVERYTHING
    assert not result.log, result.log
    assert SECRET not in stored
    assert not Path("/tmp/attacked").exists()
    (exercise,) = result.exercises
    said = exercise.problem or next(each.message for each in exercise.checks if each.message) or ""
    assert 10 < len(said) < 500, said
    assert said.isprintable(), said


@pytest.mark.parametrize("attack", FILE_ATTACKS, ids=lambda each: each.name)
@pytest.mark.proof
def test_the_public_check_says_so_too(tmp_path: Path, attack: FileAttack, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the student's kernel nothing is run either, and only what the judge has to measure is left open."""
    home = tmp_path / "class" / "submitted" / "ann" / LESSON
    home.mkdir(parents=True)
    monkeypatch.chdir(home)
    attack.build(home)
    report = check("vit_cifar", FILE, points=8)
    assert not Path("/tmp/attacked").exists()
    assert report.score is not None
    fine = attack.honest == EVERYTHING or attack.name in ("link", "overflow")
    assert all(each.verdict != "fail" for each in report.results) == fine, str(report)
    assert report.score < 8
