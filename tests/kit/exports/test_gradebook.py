"""`vit-course export CLASS`: the gradebook's grades, and a sentence for each that is not complete."""

import csv
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from openpyxl import load_workbook

from exercise_kit.engine.rendering import REPORT_MIME
from exercise_kit.judge.result import Result
from exercise_kit.nbgrader.cleaning import PLACE
from exercise_kit.nbgrader.grader_notes import NOTES, make_notes
from tests.kit.exports.test_exports import read_csv_rows, run_export
from tests.waiting import GIVE_UP

LESSONS = {"01_patchify": 26.0, "02_positions": 10.0}
QUESTION = "patches-or-pixels"
SOFFICE = shutil.which("soffice")
GERMAN = """<oor:items xmlns:oor="http://openoffice.org/2001/registry"><item oor:path="/org.openoffice.Setup/L10N">
<prop oor:name="ooSetupSystemLocale" oor:op="fuse"><value>de-DE</value></prop></item></oor:items>"""


def write_autograded_notebook(folder, student, lesson, finished=True):
    """An autograded notebook, whose check names a mistake."""
    report = {"name": "patchify", "misconception": "column order"}
    mark = {"grade_id": "check-patchify", "grade": True, "solution": False}
    output = {"output_type": "execute_result", "data": {REPORT_MIME: report}, "metadata": {}}
    metadata = {"nbgrader": mark} | ({} if finished else {PLACE: 3})
    cell = {"cell_type": "code", "source": "", "metadata": metadata, "outputs": [output], "execution_count": None}
    notes = make_notes(Result("p", student, lesson, "graded", flags=("timeout",)))
    path = folder / "autograded" / student / lesson / f"{lesson}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": [cell], "metadata": {NOTES: notes} if finished else {}}))


def add_graded_submission(gradebook, student, lesson, points, by_hand=None, penalty=None, comment=None):
    notebook = gradebook.add_submission(lesson, student).notebooks[0]
    for each in notebook.comments:
        each.manual_comment = (comment or {}).get(each.name)
    for grade in notebook.grades:
        if grade.name == QUESTION:
            grade.manual_score, grade.needs_manual_grade = by_hand, by_hand is None
        else:
            grade.auto_score, grade.needs_manual_grade = points, False
    notebook.late_submission_penalty = penalty
    gradebook.db.commit()


@pytest.fixture(scope="module")
def class_folder(tmp_path_factory):
    """Ada was late, Ben waits for a person, Cleo's grading was interrupted, Dan has handed in nothing."""
    folder = tmp_path_factory.mktemp("class")
    (folder / "nbgrader_config.py").write_text("")
    with pytest.MonkeyPatch.context() as patch:  # nbgrader calls alembic by its name
        patch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
        gradebook = Gradebook(f"sqlite:///{folder}/gradebook.db")
    with gradebook:
        for lesson, worth in LESSONS.items():
            gradebook.add_assignment(lesson)
            gradebook.add_notebook(lesson, lesson)
            for name, points, kind in (("check-patchify", worth, "code"), (QUESTION, 2.0, "markdown")):
                gradebook.add_grade_cell(name, lesson, lesson, max_score=points, cell_type=kind)
            for name in ("patchify", QUESTION):
                gradebook.add_solution_cell(name, lesson, lesson)
        for student in ("ada", "ben", "cleo", "dan"):
            gradebook.add_student(student, first_name=student.title(), last_name="Of Class", email=f"{student}@x.org")
        add_graded_submission(
            gradebook, "ada", "01_patchify", 20.25, 1.5, 2.0, {"patchify": "Short;\n=nice", QUESTION: "Why?"}
        )
        add_graded_submission(gradebook, "ada", "02_positions", 10.0, 2.0)
        add_graded_submission(gradebook, "ben", "01_patchify", 26.0)
        add_graded_submission(gradebook, "cleo", "01_patchify", None)
    for lesson in LESSONS:
        write_autograded_notebook(folder, "ada", lesson)
    write_autograded_notebook(folder, "ben", "01_patchify")
    write_autograded_notebook(folder, "cleo", "01_patchify", finished=False)
    return folder


def test_canvas_gets_all_points_out_of_the_lesson_s_own(class_folder):
    done = run_export(class_folder, "canvas")
    assert read_csv_rows(done.stdout) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "01_patchify", "02_positions"],
        ["    Points Possible", "", "", "", "", "28", "12"],
        ["Of Class, Ada", "", "", "ada", "", "19.75", "12"],
    ]
    assert done.exit_code == 1
    assert "ben, 01_patchify: no grade, for patches-or-pixels has no points yet; give them in formgrader" in done.stderr
    assert "cleo, 01_patchify: no grade, for the grader failed: there is no finished page of it" in done.stderr
    assert "For you to look at, and not exported: ada, 01_patchify: timeout" in done.stderr


def test_moodle_reads_of_what_the_points_are_made(class_folder):
    (_, ada) = read_csv_rows(run_export(class_folder, "moodle", "--lesson", "01_patchify").stdout)
    assert ada[:5] == ["Ada", "Of Class", "ada", "ada@x.org", "19.75"]
    assert ada[5] == (
        "patchify 20.25 of 26 (looks like: column order): Short; '=nice; patches-or-pixels 1.5 of 2: Why?; late: -2"
    )


def test_the_total_is_of_all_lessons_and_what_was_not_handed_in_earns_nothing(class_folder):
    (_, worth, ada) = read_csv_rows(run_export(class_folder, "canvas", "--total").stdout)
    assert (worth[5:], ada[5:]) == (["40"], ["31.75"])


def test_gradescope_takes_one_student_s_lesson(class_folder):
    done = run_export(class_folder, "gradescope", "--student", "ada", "--lesson", "01_patchify")
    made = json.loads(done.stdout)
    assert made["score"] == 19.75
    assert [(each["name"], each["score"], each["max_score"]) for each in made["tests"]] == [
        ("patchify", 20.25, 26.0),
        (QUESTION, 1.5, 2.0),
    ]
    outputs = [each["output"] for each in made["tests"]]
    first = "patchify: 20.25 of 26 points\n  This looks like *column order*.\nShort;\n=nice"
    assert outputs == [first, f"{QUESTION}: 1.5 of 2 points\nWhy?"]
    assert made["output"] == "Late: -2 points."
    assert "takes one submission at a time" in run_export(class_folder, "gradescope", "--student", "ada").stderr
    nobody = run_export(class_folder, "gradescope", "--student", "ben").stderr
    assert "ben, 01_patchify: no grade, for patches-or-pixels has no points yet" in nobody


def test_a_spreadsheet_gets_the_parts_and_no_zero_for_what_is_missing(class_folder):
    done = run_export(class_folder, "csv", "--lesson", "01_patchify")
    found = {row["student_id"]: row for row in csv.DictReader(done.stdout.splitlines())}
    ada = {name: found["ada"][name] for name in ("automatic", "by_hand", "late_penalty", "score", "max_score")}
    assert ada == {"automatic": "20.25", "by_hand": "1.5", "late_penalty": "2", "score": "19.75", "max_score": "28"}
    scores = {who: (row["score"], row["not_graded_yet"]) for who, row in found.items()}
    assert scores == {"ada": ("19.75", "0"), "ben": ("", "2"), "cleo": ("", "28")}, "Dan handed nothing in: no line"
    assert (done.exit_code, "no points yet" in done.stderr) == (1, True)


@pytest.mark.parametrize("options", [(), ("--total",)])
def test_in_xlsx_the_same_numbers_are_numbers(class_folder, tmp_path, options):
    """A spreadsheet under a German locale takes a csv file's 19.75 for a text, and 0.583 for 583."""
    out = tmp_path / "grades.xlsx"
    assert run_export(class_folder, "xlsx", *options, "--out", out).exit_code == 1
    read = [["" if each is None else each for each in row] for row in load_workbook(out).active.values]
    lines = read_csv_rows(run_export(class_folder, "csv", *options).stdout)
    assert read[0] == lines[0]
    for row, line in zip(read[1:], lines[1:], strict=True):
        assert [str(each) for each in row[:5]] == line[:5]
        assert row[5:] == [each if each == "" else pytest.approx(float(each), abs=0) for each in line[5:]]
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert run_export(class_folder, "xlsx").exit_code == 2, "not to a terminal"


@pytest.mark.proof
@pytest.mark.skipif(SOFFICE is None, reason="there is no LibreOffice to read it with")
def test_libreoffice_reads_numbers_where_decimals_have_a_comma(class_folder, tmp_path):
    user = tmp_path / "profile" / "user"
    user.mkdir(parents=True)
    (user / "registrymodifications.xcu").write_text(GERMAN)
    run_export(class_folder, "xlsx", "--student", "ada", "--out", tmp_path / "grades.xlsx")
    command = [SOFFICE, "--headless", f"-env:UserInstallation={user.parent.as_uri()}", "--convert-to", "fods"]
    subprocess.run([*command, "grades.xlsx"], cwd=tmp_path, check=True, capture_output=True, timeout=GIVE_UP)
    read = re.sub(r"\s+", " ", (tmp_path / "grades.fods").read_text("utf-8"))
    assert re.search(r'value-type="float" office:value="19.75"[^>]*> ?<text:p>19,75<', read)


def test_what_hands_points_on_has_hundredths(class_folder, tmp_path):
    """Canvas, Moodle, Gradescope and a table say the same of 7.2083 points."""
    with Gradebook(f"sqlite:///{class_folder}/gradebook.db") as gradebook:
        grade = gradebook.find_grade("check-patchify", "02_positions", "02_positions", "ada")
        before, grade.auto_score = grade.auto_score, 5.20833
        gradebook.db.commit()
        alone = ("--student", "ada", "--lesson", "02_positions")
        canvas, moodle, table, gradescope = (
            run_export(class_folder, system, *alone).stdout for system in ("canvas", "moodle", "csv", "gradescope")
        )
        grade.auto_score = before
        gradebook.db.commit()
    assert read_csv_rows(canvas)[2][5] == read_csv_rows(moodle)[1][4] == read_csv_rows(table)[1][8] == "7.21"
    assert json.loads(gradescope)["score"] == 7.21


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--lesson", "07_train"), "has no lesson '07_train'; it has: 01_patchify, 02_positions"),
        (("--student", "eve"), "has no student 'eve'; it has: ada, ben, cleo, dan"),
    ],
)
def test_what_the_gradebook_does_not_have_is_named(class_folder, options, words):
    done = run_export(class_folder, "csv", *options)
    assert (done.exit_code, words in done.stderr) == (1, True)


def test_grades_csv_is_refused_with_the_way(class_folder):
    (class_folder / "grades.csv").write_text("assignment,score\n")
    said = run_export(class_folder / "grades.csv", "canvas").stderr
    assert "name a class folder, or make one with: vit-course grade submitted --json results.json" in said


@pytest.mark.parametrize(
    ("cell", "system", "score", "words"),
    [
        ("check-patchify", "csv", "19.75", "01_patchify: check-patchify is to be looked at in formgrader"),
        ("check-patchify", "canvas", "19.75", "01_patchify: check-patchify is to be looked at in formgrader"),
        (QUESTION, "csv", "", "no grade, for patches-or-pixels has points by hand for other work than there is now"),
        (QUESTION, "canvas", "", "no grade, for patches-or-pixels has points by hand for other work"),
        (QUESTION, "gradescope", "", "ada, 01_patchify: no grade, for patches-or-pixels has points by hand for other"),
    ],
)
def test_points_by_hand_for_other_work_are_no_grade_and_what_is_only_flagged_is(
    class_folder, cell, system, score, words
):
    with Gradebook(f"sqlite:///{class_folder}/gradebook.db") as gradebook:
        grade = gradebook.find_grade(cell, "01_patchify", "01_patchify", "ada")
        grade.needs_manual_grade = True
        gradebook.db.commit()
        done = run_export(class_folder, system, "--student", "ada", "--lesson", "01_patchify")
        grade.needs_manual_grade = False
        gradebook.db.commit()
    assert words in done.stderr
    assert done.exit_code == (0 if score else 1)
    assert ("19.75" in done.stdout) == bool(score)
