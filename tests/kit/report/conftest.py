"""A class folder to hand in to, and results to keep there, without a judge."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from exercise_kit.batch.locations import find_place
from exercise_kit.batch.result_cache import Store, make_exercise_keys
from exercise_kit.engine.verdict import Cause, CheckResult, Verdict
from exercise_kit.judge.result import ExerciseResult, Result
from exercise_kit.reasons import find_failure_kind
from exercise_kit.report.collect import State, SubmittedWork
from exercise_kit.sandbox.limits import Limits
from exercise_kit.submission.find import FoundFile
from exercise_kit.submission.parse import read
from exercise_kit.submission.released import Lessons

ROOT = Path(__file__).parents[3]
LESSON = "01_patchify"
STRIPS = """
def patchify(images, patch_size):
    # by Zoë Quist
    batch, channels, height, width = images.shape
    return images.reshape(batch, -1, channels * patch_size**2)
"""


def make_failed_check(name="test_rows", misconception=None, seen="token 1 differs", **parts):
    told = tuple({"Seen": seen, "Expected": "0.4711 there", **parts}.items())
    causes = (Cause(misconception, "", "", ""),) if misconception else ()
    return CheckResult(
        *(name, f"{name} holds.", Verdict.FAIL, seen), causes=causes, saved_parts=told, kind=find_failure_kind(seen)
    )


def make_passed_check(name="test_shape"):
    return CheckResult(name, f"{name} holds.", Verdict.PASS)


def make_exercise_result(name="patchify", *checks, score=0.0, max_score=8.0, **more):
    return ExerciseResult(name, score, max_score, None, checks, **more)


def make_submitted_work(who, lesson, *exercises, flags=(), path=None):
    """A graded notebook with these exercises in it."""
    score, worth = sum(each.score for each in exercises), sum(each.max_score for each in exercises)
    result = Result("p", who, lesson, "graded", None, score, worth, 0.5, flags, exercises)
    return SubmittedWork(path or Path(f"{who}/{lesson}.ipynb"), who, lesson, State.GRADED, result)


class Class:
    """A class folder with one released lesson or more."""

    def __init__(self, folder, *lessons):
        self.folder = folder
        folder.mkdir()
        (folder / "nbgrader_config.py").write_text("")
        (folder / "submitted").mkdir()
        for lesson in lessons:
            home = folder / "release" / lesson
            home.mkdir(parents=True)
            shutil.copyfile(ROOT / "notebooks" / f"{lesson}.ipynb", home / f"{lesson}.ipynb")
        self.lessons = Lessons(folder)

    def hand_in(self, student, lesson=LESSON, **answers):
        notebook = json.loads((ROOT / "notebooks" / f"{lesson}.ipynb").read_bytes())
        notebook["metadata"]["of"] = student.encode("utf-8", "replace").decode()
        for cell in notebook["cells"]:
            name = cell["metadata"].get("nbgrader", {}).get("grade_id")
            cell["source"] = answers.get(name, cell["source"])
        path = self.folder / "submitted" / student / lesson / f"{lesson}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(notebook), encoding="utf-8")
        return path

    def submission(self, path):
        *_, student, lesson, _ = path.parts
        return read(FoundFile(path, student, lesson), self.lessons)

    def keep(self, path, *exercises, sandboxed=True, only=False, **more):
        """Keep these results, and full points for the other exercises unless ``only`` these."""
        submission, place = self.submission(path), find_place(self.folder)
        results_by_name = {each.name: each for each in exercises}
        full = [ExerciseResult(each.name, each.max_score, each.max_score) for each in submission.exercises]
        chosen = tuple(
            results_by_name.get(each.name, each) for each in full if each.name in results_by_name or not only
        )
        score, worth = sum(each.score for each in chosen), sum(each.max_score for each in chosen)
        result = Result(submission.path, submission.student, submission.assignment, "graded", None, score, worth, 0.5)
        result = Result(**{**vars(result), **more, "exercises": chosen})
        store = Store(place.results, place.secret)
        store.save(submission, make_exercise_keys(submission, place, sandboxed, Limits()), result)
        return store._find_entry_path(submission.content, submission.lesson)


@pytest.fixture
def class_folder(tmp_path):
    return Class(tmp_path / "vision", LESSON)
