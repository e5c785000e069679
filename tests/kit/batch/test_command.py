"""What `vit-course grade --json` publishes."""

import io
import json
import subprocess
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from exercise_kit.batch.job import Done
from exercise_kit.cli.grade import (
    GradeOptions,
    GradeUsageError,
    _flag_same_files,
    _is_grading_finished,
    _make_published_json,
    _write_json,
    grade,
)
from exercise_kit.engine.verdict import CheckResult, Verdict
from exercise_kit.judge.result import ExerciseResult, LogEntry, LogKind, Result
from exercise_kit.reasons import Reason

FAILED = CheckResult("test_a", "Tokens follow the image.", Verdict.FAIL)
NAMED = CheckResult("test_b", "Every patch is a token.", Verdict.FAIL, "zeros")
PASSED = CheckResult("test_c", "The dtype is kept.", Verdict.PASS)


def test_exactly_the_published_keys():
    problem = {"problem": "the cell of patchify is empty", "reason": Reason.EMPTY_CELL, "kind": "its cell is empty"}
    exercise = ExerciseResult("patchify", 0.0, 8.0, None, (FAILED, NAMED, PASSED), **problem)
    published = _make_published_json(
        [Result("a.ipynb", "ada", "01_patchify", "graded", seconds=0.123456, exercises=(exercise,))]
    )
    json.dumps(published)
    assert published["version"] == 1
    (entry,) = published["submissions"]
    assert list(entry) == [
        *("path", "student", "assignment", "status", "reason", "score", "max_score", "seconds", "flags", "exercises")
    ]
    assert entry["seconds"] == 0.1235
    (shown,) = entry["exercises"]
    assert list(shown) == ["name", "score", "max_score", "misconception", "checks", "problem", "reason", "kind"]
    assert {key: shown[key] for key in problem} == problem
    for check in shown["checks"]:
        assert list(check)[:6] == ["name", "verdict", "message", "misconception", "parts", "kind"]
        assert list(check)[6:] == ["claim", "pages", "same_as", "waits_for", "leads", "reason", "guard"]
    assert shown["checks"][1]["parts"] == {"Seen": "zeros"}
    messages = [check["message"] for check in shown["checks"]]
    assert messages == ["the cell of patchify is empty", "Seen: zeros.", None]


WAITS = ExerciseResult("patchify", 0.0, 8.0, reason=Reason.OUR_ERROR)
GRADED = Result("a.ipynb", "ada", "01_patchify", "graded")


@pytest.mark.parametrize(
    ("done", "settled"),
    [
        (Done(GRADED), True),
        (Done(replace(GRADED, reason="the cell of patchify raised SyntaxError when it ran")), True),
        (Done(None), True),
        (Done(replace(GRADED, status="rejected")), False),
        (Done(replace(GRADED, exercises=(WAITS,))), False),
        (Done(replace(GRADED, log=(LogEntry(LogKind.GRADER_FAILED, "OSError"),))), False),
        (Done(GRADED, unkept="its result could not be kept: File exists"), False),
    ],
)
def test_a_student_who_fails_is_no_error(done, settled):
    assert _is_grading_finished(done) is settled


@pytest.mark.parametrize("target", ["-", "grades.json"])
def test_what_a_terminal_would_act_upon_is_escaped_and_stays_exact(tmp_path, target):
    odd = "a\u202eb\u200bc\ufeffd\u2066e\x1b[2Jf\x7fg\x9bh\u2028i\U000e0041j\udcffk\U0001f642é\nl"
    out = Console(file=io.StringIO())
    _write_json([Result(odd, odd, odd, "graded")], target if target == "-" else str(tmp_path / target), out)
    text = out.file.getvalue() if target == "-" else (tmp_path / target).read_text("utf-8")
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    assert "\U0001f642é" in text
    (entry,) = json.loads(text)["submissions"]
    assert [entry[name] for name in ("path", "student", "assignment")] == [odd] * 3


def test_a_folder_that_nobody_claimed_as_a_class_is_not_graded_as_one(tmp_path, monkeypatch):
    folder = tmp_path / "inbox of eve"
    (folder / "submitted").mkdir(parents=True)
    (folder / "nbgrader_config.py").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(folder)
    out = Console(file=io.StringIO())
    with pytest.raises(GradeUsageError, match=f"vit-course grade --class '{folder}' '{folder}'"):
        grade(GradeOptions([folder]), out, out)
    assert out.file.getvalue() == ""


def make_done(student, *files, path="a.ipynb", flags=()):
    return Done(Result(path, student, "07_experiments", "graded", flags=flags), files=files)


@pytest.mark.parametrize(
    ("handed_in", "flagged"),
    [
        ([make_done("ada", "one"), make_done("ben", "other"), make_done("eve", "one")], [True, False, True]),
        ([make_done("ada", "one", path="1.ipynb"), make_done("ada", "one", path="2.ipynb")], [False, False]),
        ([make_done(None, "one", path="1.ipynb"), make_done(None, "one", path="2.ipynb")], [True, True]),
        ([make_done("ada"), make_done("ben")], [False, False]),
    ],
    ids=["of another student", "one's own, again", "nobody knows whose", "no file"],
)
def test_who_hands_in_the_file_of_another_is_flagged(handed_in, flagged):
    assert [each.flags == ("same-file",) for each in _flag_same_files(handed_in)] == flagged


def test_a_flag_is_added_to_the_others_and_what_is_no_submission_is_left_out():
    results = _flag_same_files([make_done("ada", "one", flags=("timeout",)), Done(None), make_done("ben", "one")])
    assert [each.flags for each in results] == [("timeout", "same-file"), ("same-file",)]


def test_the_commands_do_without_torch():
    """Only a job's process needs it, while the command's waits."""
    modules = "exercise_kit.cli.grade, exercise_kit.report.collect"
    source = f"import sys, {modules}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", source], check=True)
