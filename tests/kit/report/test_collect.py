"""What is known of each file of a class: nothing is graded, and what is kept is believed as far as its keys hold."""

import json
from datetime import date
from html import unescape

import pytest

from exercise_kit.judge.result import make_grade_json
from exercise_kit.reasons import Reason
from exercise_kit.report import collect
from exercise_kit.report.collect import ReportError, State, collect_class_work
from exercise_kit.report.page import render_lecture_page, render_private_page, summarize_class
from exercise_kit.report.tally import tally_class
from tests.kit.report.conftest import LESSON, Class, make_exercise_result, make_passed_check
from tests.outline import POINTS

OF_PATCHIFY = POINTS[LESSON]["patchify"]
NOT_YET = "patchify is not written yet"


def list_states(work):
    return {each.student: each.state for each in work.handed_in}


def test_each_file_is_in_one_state(class_folder):
    class_folder.keep(class_folder.hand_in("graded"), sandboxed=False)
    class_folder.keep(class_folder.hand_in("partly"), make_exercise_result(max_score=OF_PATCHIFY), only=True)
    class_folder.hand_in("waiting")
    class_folder.hand_in("rejected").write_text("{")
    class_folder.hand_in("another").write_text('{"cells": [], "nbformat": 4}')
    (class_folder.folder / "submitted" / "empty" / LESSON).mkdir(parents=True)
    work = collect_class_work(class_folder.folder)
    assert list_states(work) == {
        "graded": State.GRADED,
        "partly": State.PARTLY,
        "waiting": State.WAITING,
        "rejected": State.REJECTED,
        "another": State.REJECTED,
        "empty": State.REJECTED,
    }
    assert work.lessons[0].points == {each.name: each.points for each in class_folder.lessons.get(LESSON).exercises}


def test_results_under_other_keys_are_older_and_are_shown(class_folder):
    class_folder.keep(class_folder.hand_in("ann"), make_exercise_result())
    check = class_folder.folder / "hidden" / "test_patchify.py"
    check.parent.mkdir()
    check.write_text('import pytest\n\n\n@pytest.mark.exercise("patchify", points=1)\ndef test_a(student): ...\n')
    (work,) = collect_class_work(class_folder.folder).handed_in
    assert (work.state, work.result.exercises[0].score) == (State.OLDER, 0.0)


def test_results_for_other_points_are_older(class_folder):
    class_folder.keep(class_folder.hand_in("ann"), make_exercise_result(max_score=80.0))
    assert list_states(collect_class_work(class_folder.folder)) == {"ann": State.OLDER}


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": 1}', '{"format": 1, "keys": {}, "result": {"path": 1}}'])
def test_a_damaged_entry_is_as_good_as_none(class_folder, damage):
    class_folder.keep(class_folder.hand_in("ann")).write_text(damage)
    assert list_states(collect_class_work(class_folder.folder)) == {"ann": State.WAITING}


def test_a_result_that_was_edited_is_shown_to_nobody(class_folder):
    entry = class_folder.keep(class_folder.hand_in("ann"), make_exercise_result())
    entry.write_text(entry.read_text().replace('"score": 0.0', '"score": 8.0'))
    (work,) = collect_class_work(class_folder.folder).handed_in
    assert (work.state, work.result) == (State.WAITING, None)
    assert work.reason == "its kept result had been changed by somebody else; grade it again"


def test_content_is_what_the_grader_reads(tmp_path):
    class_folder = Class(tmp_path / "vision", "07_experiments")
    lesson, path = class_folder.lessons.get("07_experiments"), class_folder.hand_in("ann", "07_experiments")
    assert collect._compute_content_digest(path, lesson) == class_folder.submission(path).content
    (path.parent / "vit_cifar.safetensors").write_bytes(b"weights")
    assert collect._compute_content_digest(path, lesson) == class_folder.submission(path).content


def test_one_file_of_two_students_is_flagged(tmp_path):
    class_folder = Class(tmp_path / "vision", "07_experiments")
    for student, weights in (("ann", b"mine"), ("ben", b"ours"), ("eve", b"ours")):
        path = class_folder.hand_in(student, "07_experiments")
        (path.parent / "vit_cifar.safetensors").write_bytes(weights)
        class_folder.keep(path, flags=("timeout",))
    flags = {each.student: each.result.flags for each in collect_class_work(class_folder.folder).handed_in}
    assert flags == {"ann": ("timeout",), "ben": ("timeout", "same-file"), "eve": ("timeout", "same-file")}


def test_a_file_outside_the_tree_is_read(class_folder):
    path = class_folder.folder / "submitted" / "ann"
    class_folder.hand_in("ben").rename(path.with_suffix(".ipynb"))
    assert [each.state for each in collect_class_work(class_folder.folder).handed_in if each.path.suffix] == [
        State.WAITING
    ]


def test_one_lesson_alone(tmp_path):
    class_folder = Class(tmp_path / "vision", LESSON, "03_attention")
    class_folder.hand_in("ann")
    class_folder.hand_in("ann", "03_attention")
    work = collect_class_work(class_folder.folder, "03_attention")
    assert [each.lesson for each in work.handed_in] == ["03_attention"]


def test_a_class_without_submissions(class_folder):
    assert collect_class_work(class_folder.folder).handed_in == ()
    (class_folder.folder / "submitted").rmdir()
    assert collect_class_work(class_folder.folder).handed_in == ()


def test_published_results_do_too(class_folder, tmp_path):
    class_folder.keep(
        class_folder.hand_in("ann"), make_exercise_result("patchify", make_passed_check(), max_score=OF_PATCHIFY)
    )
    class_folder.hand_in("ben").write_text("{")
    folder = collect_class_work(class_folder.folder)
    file = tmp_path / "grades.json"
    file.write_text(json.dumps(make_grade_json([each.result for each in folder.handed_in if each.result])))
    work = collect_class_work(file)
    assert (list_states(work), work.name, work.folder) == ({"ann": State.GRADED}, "grades", None)
    assert work.lessons[0].points == folder.lessons[0].points


CAUSE = "hidden/test_patchify.py:7: NameError: name 'nowhere' is not defined"


def test_what_waits_for_a_check_is_reported_and_counts_nowhere(class_folder, tmp_path):
    waiting = make_exercise_result(reason=Reason.OUR_ERROR, waits_for=CAUSE)
    right = make_exercise_result("unpatchify", make_passed_check(), score=5.0, max_score=5.0)
    class_folder.keep(class_folder.hand_in("ann"), waiting, right, only=True)
    folder = collect_class_work(class_folder.folder)
    file = tmp_path / "grades.json"
    file.write_text(json.dumps(make_grade_json([each.result for each in folder.handed_in])))
    for work, cause in ((folder, CAUSE), (collect_class_work(file), "the checks of patchify")):
        assert list_states(work) == {"ann": State.UNDECIDED}
        found = tally_class(work)
        assert found.shares() == [1.0]
        assert [each.name for each in found.exercises if each.answers] == ["unpatchify"]
        assert "0 are graded, 1 is waiting for a check to be mended." in summarize_class(found)[0]
        page = render_lecture_page(found, "vision", date(2026, 3, 7))
        assert cause in unescape(page)
        assert "5 of 5, – of 8" in render_private_page(found, "vision", date(2026, 3, 7))
    assert CAUSE in folder.handed_in[0].reason


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"version": 1}', '{"version": 1, "submissions": [3]}', "\udcff"]
)
def test_no_published_results(tmp_path, text):
    file = tmp_path / "grades.json"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ReportError, match="is no file that 'vit-course grade --json' wrote"):
        collect_class_work(file)


def test_published_results_of_another_version(tmp_path):
    file = tmp_path / "grades.json"
    file.write_text('{"version": 9, "submissions": []}')
    with pytest.raises(ReportError, match="version 9"):
        collect_class_work(file)
