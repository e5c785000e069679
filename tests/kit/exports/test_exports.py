"""`vit-course export`: the columns that Canvas, Moodle and Gradescope document, and a sentence for what is left out."""

import csv
import json
import re
import stat

import pytest
from typer.testing import CliRunner

from exercise_kit.__main__ import app

ROSTER = "id,first,last,email\nada,Ada,Lovelace,ada@example.org\nben,Ben,Bit,\ncleo,Cleo,Côté,cleo@example.org\n"
# as Canvas exports it: a byte-order mark, a line of the assignments' points, and columns that are read-only
CANVAS = (
    "\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,Essay (11),Final Score\n"
    "    Points Possible,,,,,10,(read only)\n"
    '"Lovelace, Ada",1001,S-7,ada,Mondays,8,80\n'
    '"Bit, Ben",1002,S-8,ben@uni.example,Mondays,,\n'
)


def make_published_result(student="ada", lesson="01_patchify", score=9.5, **changes):
    """A published result of two exercises, out of 10 points."""
    checks = [
        {"name": "test_tokens_run_row_by_row", "verdict": "pass", "message": None, "misconception": None},
        {
            "name": "test_shape",
            "verdict": "fail",
            "message": "Seen: it is.",
            "misconception": None,
            "parts": {"Expected": "(3, 2)", "Seen": "(2, 3)"},
        },
    ]
    first = {"name": "patchify", "score": 8.0, "max_score": 8.0, "misconception": None, "checks": checks[:1]}
    second = {"name": "unpatchify", "score": 1.5, "max_score": 2.0, "misconception": "column order", "checks": checks}
    made = {"path": f"submitted/{student}/{lesson}/{lesson}.ipynb", "student": student, "assignment": lesson}
    made |= {"status": "graded", "reason": None, "score": score, "max_score": 10.0, "seconds": 0.4, "flags": []}
    return made | {"exercises": [first, second]} | changes


def make_rejected(student="ben", **changes):
    """A published result of a file that cannot be graded."""
    reason = {"status": "rejected", "reason": "the file is empty", "score": 0.0, "max_score": 0.0, "exercises": []}
    return make_published_result(student) | reason | changes


@pytest.fixture
def write_results(tmp_path):
    """Writes results into a file."""

    def write_entries(*entries):
        path = tmp_path / "results.json"
        path.write_text(json.dumps({"version": 1, "submissions": entries}))
        return path

    return write_entries


def run_export(path, system, *options):
    return CliRunner().invoke(app, ["export", str(path), "--to", system, *map(str, options)])


def write_roster(tmp_path, text=ROSTER):
    path = tmp_path / "roster.csv"
    path.write_text(text, encoding="utf-8")
    return path


def read_csv_rows(text):
    return list(csv.reader(text.splitlines()))


def test_canvas_gets_its_own_columns_and_the_points_possible(write_results):
    entries = (
        make_published_result(),
        make_published_result("ben", score=7.125),
        make_published_result("ada", "02_positions", 4.0, max_score=20.0),
    )
    done = run_export(write_results(*entries), "canvas")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == (
        "Student,ID,SIS User ID,SIS Login ID,Section,01_patchify,02_positions\n"
        "    Points Possible,,,,,10,20\n"
        "ada,,,ada,,9.5,4\n"
        "ben,,,ben,,7.12,\n"
    )


def test_canvas_s_own_gradebook_is_a_roster(write_results, tmp_path):
    path = write_results(make_published_result(), make_published_result("S-8"), make_published_result("dan"))
    done = run_export(path, "canvas", "--roster", write_roster(tmp_path, CANVAS))
    assert done.exit_code == 1
    assert "dan is not in the roster" in done.stderr
    assert read_csv_rows(done.stdout)[2:] == [
        ["Lovelace, Ada", "1001", "S-7", "ada", "Mondays", "9.5"],
        ["Bit, Ben", "1002", "S-8", "ben@uni.example", "Mondays", "9.5"],
    ]


def test_moodle_gets_who_then_a_grade_with_its_feedback(write_results, tmp_path):
    entries = make_published_result(), make_published_result("cleo", "02_positions", 3.0)
    done = run_export(write_results(*entries), "moodle", "--roster", write_roster(tmp_path))
    assert (done.exit_code, done.stderr) == (0, "")
    said = "patchify 8 of 8; unpatchify 1.5 of 2 (looks like: column order)"
    lessons = ["01_patchify", "01_patchify (feedback)", "02_positions", "02_positions (feedback)"]
    assert read_csv_rows(done.stdout) == [
        ["First name", "Last name", "ID number", "Email address", *lessons],
        ["Ada", "Lovelace", "ada", "ada@example.org", "9.5", said, "-", ""],
        ["Cleo", "Côté", "cleo", "cleo@example.org", "-", "", "3", said],
    ]


def test_moodle_gets_no_line_whose_identifier_is_empty(write_results, tmp_path):
    """Moodle would give that line's grades to the student above it."""
    results = write_results(make_published_result(), make_published_result("ben"))
    done = run_export(results, "moodle", "--roster", write_roster(tmp_path))
    assert done.exit_code == 1
    assert "ben has no email address in the roster" in done.stderr
    assert [row[2] for row in read_csv_rows(done.stdout)[1:]] == ["ada"]
    by_id = run_export(results, "moodle", "--roster", write_roster(tmp_path, "id,first\nada,Ada\nben,Ben\n"))
    assert by_id.exit_code == 0
    assert read_csv_rows(by_id.stdout)[0][:4] == ["First name", "Last name", "ID number", "01_patchify"]
    assert [row[2] for row in read_csv_rows(by_id.stdout)[1:]] == ["ada", "ben"]


@pytest.mark.parametrize("system", ["canvas", "moodle"])
def test_what_is_left_out_gets_a_sentence_and_all_others_a_grade(write_results, tmp_path, system):
    entries = (
        make_published_result(),
        make_rejected(),
        make_published_result("eve"),
        make_published_result("cleo"),
        make_published_result("cleo", path="submitted/cleo/copy.ipynb"),
        make_published_result(None, path="inbox/x.ipynb"),
        make_published_result("ada", None),
        make_rejected("ada", status="error", reason="no torch"),
    )
    done = run_export(write_results(*entries), system, "--roster", write_roster(tmp_path))
    assert done.exit_code == 1
    lines = done.stderr.splitlines()
    assert len(lines) == 6
    for words in (
        "ben.*rejected: the file is empty",
        "eve is not in the roster: left out",
        "cleo has 2 results for 01_patchify .*copy.ipynb.*none of them is exported",
        "inbox/x.ipynb: no student",
        "no lesson",
        "the grader failed: no torch",
    ):
        assert len([line for line in lines if re.search(words, line)]) == 1, words
    assert "cleo" not in done.stdout
    assert "9.5" in done.stdout


def test_a_graded_file_beside_a_rejected_one_is_no_second_result(write_results):
    done = run_export(write_results(make_published_result(), make_rejected("ada")), "canvas")
    assert read_csv_rows(done.stdout)[2][-1] == "9.5"
    assert len(done.stderr.splitlines()) == 1


def test_formulas_are_defused_and_an_id_that_is_one_is_not_exported(write_results, tmp_path):
    listed = write_roster(tmp_path, "id,first,last,email\nada,=1+1,@SUM(A1),ada@example.org\n")
    done = run_export(write_results(make_published_result()), "moodle", "--roster", listed)
    assert read_csv_rows(done.stdout)[1][:2] == ["'=1+1", "'@SUM(A1)"]
    done = run_export(write_results(make_published_result(), make_published_result("=HYPERLINK(1)")), "canvas")
    assert "enter this grade by hand" in done.stderr
    assert "HYPERLINK" not in done.stdout


def test_results_out_of_different_points_are_reported(write_results):
    done = run_export(write_results(make_published_result(), make_published_result("ben", max_score=8.0)), "canvas")
    assert done.exit_code == 1
    assert "01_patchify has results out of 8 and 10 points" in done.stderr


def test_gradescope_gets_a_test_for_each_exercise_and_no_flag(write_results, tmp_path):
    out = tmp_path / "out.json"
    path = write_results(make_published_result(None, flags=["reference-copied"]))
    done = run_export(path, "gradescope", "--out", out, "--visibility", "after_due_date")
    assert done.exit_code == 0
    assert "not exported: submitted/None/01_patchify/01_patchify.ipynb: reference-copied" in done.stderr
    made = json.loads(out.read_text())
    assert {name: made[name] for name in made if name != "tests"} == {
        "score": 9.5,
        "execution_time": 0.4,
        "output_format": "text",
        "visibility": "after_due_date",
        "stdout_visibility": "hidden",
    }
    first, second = made["tests"]
    assert first["output"] == "patchify: 1 of 1 check passes, 8 of 8 points"
    assert second == {
        "name": "unpatchify",
        "score": 1.5,
        "max_score": 2.0,
        "status": "failed",
        "output_format": "text",
        "output": "unpatchify: 1 of 2 checks passes, 1.5 of 2 points\n  ✗ fail      asked: shape\n"
        "              Seen: (2, 3)\n              Expected: (3, 2)\n  ✓ 1 check passes",
    }
    assert "reference-copied" not in out.read_text()


def test_gradescope_tells_a_student_why_nothing_could_be_graded(write_results):
    made = json.loads(run_export(write_results(make_rejected()), "gradescope").stdout)
    assert (made["score"], made["output"]) == (0, "It could not be graded: the file is empty")
    assert "There is no notebook" in json.loads(run_export(write_results(), "gradescope").stdout)["output"]


UNDECIDED = {"name": "test_a", "verdict": "undecided", "message": None, "misconception": None}


@pytest.mark.parametrize(
    "found", [{"checks": [], "reason": "our-error"}, {"checks": [UNDECIDED]}], ids=["unusable", "undecided"]
)
@pytest.mark.parametrize("system", ["canvas", "moodle", "gradescope", "classroom50"])
def test_a_lesson_of_which_a_part_is_not_graded_yet_has_no_grade(write_results, monkeypatch, system, found):
    for name in RUNNER:
        monkeypatch.setenv(name, RUNNER[name])
    waiting = make_published_result("ben", score=8.0)
    waiting["exercises"][1] |= {"score": 0.0, "misconception": None, **found}
    others = [make_published_result()] if system in ("canvas", "moodle") else []
    done = run_export(write_results(waiting, *others), system)
    assert done.exit_code == 1
    assert "no grade, for unpatchify is not graded yet" in " ".join(done.stderr.split())
    assert "ben" not in done.stdout
    assert ("ada" in done.stdout) == bool(others)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([make_published_result(), make_published_result("ben")], "one submission at a time, and here are 2"),
        ([make_rejected(status="error", reason="no torch")], "that is no zero: no torch"),
    ],
)
def test_gradescope_gets_no_file_that_would_read_as_a_wrong_grade(write_results, tmp_path, entries, words):
    out = tmp_path / "out.json"
    done = run_export(write_results(*entries), "gradescope", "--out", out)
    assert done.exit_code == 1
    assert words in done.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("no JSON", "is no file that 'vit-course grade --json' wrote"),
        ("[]", "is no file that"),
        ('{"version": 1, "submissions": [{}]}', "is no file that"),
        ('{"version": 9, "submissions": []}', "is of version 9"),
        ('{"version": 1, "submissions": []}', "There is no grade to export"),
        (None, "No such file"),
    ],
)
def test_what_holds_no_results_gets_a_sentence(tmp_path, content, words):
    path = tmp_path / "results.json"
    if content is not None:
        path.write_text(content)
    done = run_export(path, "canvas", "--out", tmp_path / "out.csv")
    assert done.exit_code == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out.csv").exists()


def test_grades_are_written_for_their_owner_alone(write_results, tmp_path):
    out = tmp_path / "out.csv"
    assert run_export(write_results(make_published_result()), "canvas", "--out", out).exit_code == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_a_system_or_visibility_that_does_not_exist_is_a_usage_error(write_results):
    assert run_export(write_results(make_published_result()), "blackboard").exit_code == 2
    assert run_export(write_results(make_published_result()), "gradescope", "--visibility", "never").exit_code == 2


RUNNER = {
    "CLASSROOM": "vision",
    "ASSIGNMENT": "patchify",
    "ASSIGNMENT_TYPE": "individual",
    "OWNER": "ada",
    "SUBMISSION_TAG": "submit/2026-06-01T14-32-05Z-a1b2c3d",
    "COMMIT_URL": "https://git.example/commit/1",
    "RELEASE_URL": "https://git.example/release/1",
}
# of classroom50/result/v1: what must be there, of which type; and what a test must have
WHOLE = {
    **dict.fromkeys(("schema", "classroom", "assignment", "assignment_type", "owner", "submission", "commit"), str),
    **dict.fromkeys(("release", "review", "datetime"), str),
    **{"score": int, "max-score": int, "tests": list},
}
TEST = {"test-name": str, "passed": bool, "score": int, "max-score": int}


def test_classroom50_gets_its_result_in_hundredths_of_a_point(write_results, monkeypatch):
    for name, value in RUNNER.items():
        monkeypatch.setenv(name, value)
    done = run_export(write_results(make_published_result(None, flags=["reference-copied"])), "classroom50")
    assert done.exit_code == 0
    assert "reference-copied" not in done.stdout
    made = json.loads(done.stdout)
    assert {name: type(value) for name, value in made.items()} == WHOLE
    assert made["schema"] == "classroom50/result/v1"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made["datetime"])
    assert (made["score"], made["max-score"], made["review"]) == (950, 1000, RUNNER["COMMIT_URL"])
    first, second = made["tests"]
    for each in made["tests"]:
        assert {name: type(value) for name, value in each.items()} == TEST | {"output": str}
    assert (first["test-name"], first["passed"], first["score"]) == ("patchify", True, 800)
    assert (second["passed"], second["score"], second["max-score"]) == (False, 150, 200)


@pytest.mark.parametrize(
    ("entries", "missing", "words"),
    [
        ([make_published_result()], "COMMIT_URL", "the environment has no COMMIT_URL. Classroom 50's runner sets them"),
        ([make_rejected()], "", "it could not be graded: the file is empty"),
        ([], "", "no lesson was handed in"),
        ([make_published_result(), make_published_result("ben")], "", "Classroom 50 takes one submission at a time"),
    ],
)
def test_classroom50_gets_no_file_that_would_read_as_a_grade(write_results, monkeypatch, entries, missing, words):
    for name, value in RUNNER.items():
        monkeypatch.setenv(name, "" if name == missing else value)
    done = run_export(write_results(*entries), "classroom50")
    assert done.exit_code == 1
    assert words in done.stderr
    assert done.stdout == ""


def test_what_does_not_go_together_is_a_usage_error(tmp_path):
    run = CliRunner().invoke
    zipped = str(tmp_path / "autograder.zip")
    assert run(app, ["export", "--to", "gradescope"]).exit_code == 2
    assert run(app, ["export", "--to", "canvas", "--autograder", zipped]).exit_code == 2
    nowhere = run(app, ["export", "--to", "gradescope", "--autograder", zipped, "--root", str(tmp_path)])
    assert (nowhere.exit_code, list(tmp_path.iterdir())) == (1, [])
    assert "name a clone of the course with --root" in nowhere.stderr
