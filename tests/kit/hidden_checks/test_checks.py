"""Graded checks in this process: a teacher's functions beside the claims, and what is heard of them by whom."""

import logging
import os
import re
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import pytest
import torch

from exercise_kit.engine import check
from exercise_kit.engine.course import course
from exercise_kit.engine.student import Student
from exercise_kit.hidden_checks import HiddenChecksError
from exercise_kit.hidden_checks.checks import HiddenChecks, derive_seed, make_reference_student
from tests.answers import write_answer_cell
from tests.machine import needs_sandbox

CONFTEST = Path(__file__).parents[2] / "hidden" / "conftest.py"
HEAD = """
import pytest
import torch
from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.verdict import Failure, Undecided

patchify = pytest.mark.exercise("patchify", points=2)
"""
KEY = b"a submission"


@pytest.fixture
def collect_checks(tmp_path):
    """Collects checks that are given as text."""

    def collect(source):
        folder = tmp_path / "hidden"
        folder.mkdir(exist_ok=True)
        (folder / "conftest.py").write_text(CONFTEST.read_text())
        (folder / "test_patchify.py").write_text(HEAD + source)
        return HiddenChecks(folder)

    return collect


def make_right_patchify():
    return make_reference_student("patchify")


def make_student_factory(function):
    return lambda: Student({"patchify": function})


def evaluate_own_check(checks, student=make_right_patchify, exercise="patchify", key=KEY):
    """Return what comes of the one check in the folder; those of the exercise itself come before it."""
    (check,) = (each for each in checks.exercises()[exercise] if each.file.name.startswith("test_"))
    return checks.evaluate(exercise, check, student(), key)


ROWS = '''
@pytest.mark.exercise("fix_patchify", points=0.5)
@patchify
def test_rows_come_first(student, reference, probe, exercise):
    """Tokens follow the image
    row by row.

    For staff: a word that no student reads.
    """
    size = probe.choice((2, 3))
    images = probe.images(2, 3, 2 * size, 3 * size)
    expect_equal(student(images, size), reference.patchify(images, size), exercise)
'''


def test_what_is_collected(collect_checks):
    exercises = collect_checks(ROWS).exercises()
    assert exercises.keys() == course().exercises.keys()
    *claims, own = exercises["patchify"]
    assert (own.name, own.worth) == ("test_rows_come_first", 2.0)
    assert own.claim == "Tokens follow the image row by row."
    assert exercises["fix_patchify"][-1].worth == 0.5
    assert [each.name for each in claims[:2]] == ["test_every_patch_becomes_one_token", "test_tokens_run_row_by_row"]
    assert claims[0].worth == 0.0 < claims[1].worth
    assert "test_two_sides_that_do_not_fit_are_refused" in [each.name for each in claims]  # which `check` never asks
    asked = [each.name for each in check("patchify", *course().references()["patchify"]).results]
    assert "tokens_run_row_by_row" in asked
    assert "two_sides_that_do_not_fit_are_refused" not in asked


def test_right_and_wrong_answers_again_and_again(collect_checks):
    checks = collect_checks(ROWS)
    for _ in range(3):
        assert evaluate_own_check(checks).result.verdict == "pass"
        wrong = evaluate_own_check(checks, make_student_factory(lambda images, size: images))
        assert wrong.result.verdict == "fail"
        assert "has the shape" in wrong.result.seen
        assert wrong.record
        fixed = lambda: make_reference_student("fix_patchify")  # noqa: E731
        assert evaluate_own_check(checks, fixed, "fix_patchify").result.verdict == "pass"


def test_draws_belong_to_key_exercise_and_check(collect_checks):
    checks = collect_checks(ROWS)
    first, again = (evaluate_own_check(checks).record[0][1] for _ in range(2))
    other = evaluate_own_check(checks, key=b"another").record[0][1]
    assert torch.equal(first, again)
    assert first.shape != other.shape or not torch.equal(first, other)
    seeds = [
        derive_seed(b"key", "patchify", "a"),
        derive_seed(b"key", "patchify", "b"),
        derive_seed(b"key", "unpatchify", "a"),
    ]
    assert len({*seeds, derive_seed(b"other", "patchify", "a")}) == 4


VERDICTS = {
    "assert student.name == 'x', 'the order of the tokens is another one'": "the order of the tokens is another one",
    "assert student.name == 'x', (\n        'told on a second line'\n    )": "told on a second line",
    "assert student.name == 'x', f'{student.name} is called otherwise'": "patchify is called otherwise",
    "assert student.name == '42 is the answer'": "patchify does not do this",
    "pytest.fail('said aloud')": "said aloud",
    "assert 42 == pytest.approx(41)": "patchify does not do this",
    "raise Failure('seen', 'expected', 'look')": "seen",
}


@pytest.mark.parametrize(("line", "seen"), VERDICTS.items(), ids=range(len(VERDICTS)))
def test_what_a_student_reads_of_a_failure(collect_checks, line, seen):
    """Of a wrong answer, which gives nothing; a line that fails the right one, too, is no failure of a student's."""
    asks = "    if not student(torch.ones(1, 1, 2, 2), 1).numel():"
    checks = collect_checks(f"@patchify\ndef test_it(student):\n{asks}\n{textwrap.indent(line, ' ' * 8)}\n")
    outcome = evaluate_own_check(checks, make_student_factory(lambda images, size: images[:0]))
    assert outcome.result.verdict == "fail"
    assert outcome.result.seen == seen
    assert "42" not in (outcome.result.message or "")


def test_the_instructor_reads_more(collect_checks):
    outcome = evaluate_own_check(
        collect_checks("@patchify\ndef test_it(student):\n    print('by hand')\n    assert 42 == 41\n")
    )
    assert "assert 42 == 41" in outcome.log
    assert "by hand" in outcome.log


@pytest.mark.parametrize(
    "line",
    [
        "pytest.skip('no such thing here')",
        "pytest.xfail('no such thing here')",
        "raise Undecided('no such thing here')",
    ],
)
def test_what_cannot_be_decided(collect_checks, line):
    outcome = evaluate_own_check(collect_checks(f"@patchify\ndef test_it(student):\n    {line}\n"))
    assert outcome.result.verdict == "undecided"
    assert outcome.result.seen == "no such thing here"
    assert outcome.log == ""


def test_a_check_that_breaks_by_itself_is_not_counted(collect_checks):
    outcome = evaluate_own_check(collect_checks("@patchify\ndef test_it(student):\n    {}['answer 42']\n"))
    assert outcome.result.verdict == "undecided"
    assert "answer 42" not in outcome.result.message
    assert "KeyError: 'answer 42'" in outcome.log


def test_a_check_that_an_odd_answer_breaks_is_failed(collect_checks):
    checks = collect_checks("@patchify\ndef test_it(student):\n    student(torch.ones(1, 1, 2, 2), 1).shape\n")
    outcome = evaluate_own_check(checks, make_student_factory(lambda *_: "text"))
    assert outcome.result.verdict == "fail"
    assert "cannot be compared" in outcome.result.seen
    assert "AttributeError" in outcome.log


MISTAKES = {
    "def test_it(student)\n    pass": "test_patchify.py:8: SyntaxError",
    "@pytest.fixture\ndef images(probe): ...": "images: fixtures are not read",
    "@pytest.mark.parametrize('size', [2, 3])\n@patchify\ndef test_it(student): ...": "mark 'parametrize' is not read",
    "import no_such_module": "test_patchify.py:8: ModuleNotFoundError: No module named 'no_such_module'",
    "1 / 0": "test_patchify.py:8: ZeroDivisionError",
    "def test_it(student): ...": "test_patchify.py:8: test_it: it lacks a mark",
    "@patchify\ndef test_it(): ...": "test_patchify.py:8: test_it: it has to take `student`",
    "@patchify\ndef test_it(student, pupil): ...": "test_patchify.py:8: test_it: there is nothing called 'pupil'",
    "@pytest.mark.exercise('pachify', points=1)\ndef test_it(student): ...": "no exercise called 'pachify'",
    "@pytest.mark.exercise('patchify')\ndef test_it(student): ...": "has to read @pytest.mark.exercise",
    "@pytest.mark.exercise('patchify', points=-1)\ndef test_it(student): ...": "a number above 0, not -1",
    "@pytest.mark.exercise('patchify', points=1)\n@patchify\ndef test_it(student): ...": "marked twice",
    "@pytest.mark.skip\n@patchify\ndef test_it(student): ...": "mark 'skip' is not read",
}


@pytest.mark.parametrize(("source", "said"), MISTAKES.items(), ids=range(len(MISTAKES)))
def test_an_instructors_mistake_is_reported_with_file_and_line(collect_checks, source, said):
    checks = collect_checks(source)
    assert checks.problems.keys() == {"patchify"}
    assert "patchify" not in checks.exercises()
    problem = checks.problems["patchify"]
    assert said in problem
    assert re.match(r"hidden/test_patchify\.py:\d+: ", problem)
    assert len(problem.splitlines()) == 1


def test_no_such_folder(tmp_path):
    with pytest.raises(HiddenChecksError, match="nowhere"):
        HiddenChecks(tmp_path / "nowhere")


def test_two_files_with_a_check_of_one_name(collect_checks, tmp_path):
    collect_checks(ROWS)
    (tmp_path / "hidden" / "test_second.py").write_text(HEAD + ROWS)
    checks = HiddenChecks(tmp_path / "hidden")
    assert re.match(r"hidden/test_second\.py:\d+: .* another check of this name", checks.problems["patchify"])


def test_an_error_in_a_file_stops_all_exercises_that_it_is_about_and_no_other(collect_checks, tmp_path):
    other = '@pytest.mark.exercise("unpatchify", points=1)\n@pytest.mark.exercise("conv_from_linear", points=1)\n'
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "test_two.py").write_text(f"import pytest\n\n{other}def test_two(student)\n    pass\n")
    checks = collect_checks(ROWS)
    assert checks.exercises().keys() == course().exercises.keys() - {"conv_from_linear", "unpatchify"}
    assert checks.problems == dict.fromkeys(
        ("conv_from_linear", "unpatchify"), "hidden/test_two.py:5: SyntaxError: expected ':'"
    )


def test_a_file_that_is_about_no_exercise_stops_all(collect_checks, tmp_path):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "test_helpers.py").write_text("1 / 0\n")
    with pytest.raises(HiddenChecksError, match=r"^test_helpers\.py:1: ZeroDivisionError"):
        collect_checks(ROWS)


def test_nothing_is_printed(collect_checks, capfd):
    checks = collect_checks(
        "@patchify\ndef test_it(student):\n    print('aloud')\n    student(torch.ones(1, 1, 2, 2), 1)\n"
    )

    def prints(*_):
        print("by the student")
        print("on stderr", file=sys.stderr)
        warnings.warn("a warning", stacklevel=1)
        logging.getLogger().warning("a log")
        raise ValueError

    evaluate_own_check(checks, make_student_factory(prints))
    assert capfd.readouterr() == ("", "")


def run_pytest(folder, *arguments):
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def test_pytest_itself_asks_the_reference(collect_checks, tmp_path):
    collect_checks(ROWS + ROWS.replace("rows_come_first", "it_adds_one").replace("reference.", "1 + reference."))
    ended = run_pytest(tmp_path, "--rootdir", tmp_path, "-c", os.devnull, tmp_path / "hidden")
    for name in ("patchify", "fix_patchify"):
        assert f"{name}: rows_come_first PASSED" in ended.stdout, ended.stdout
        assert f"{name}: tokens_run_row_by_row PASSED" in ended.stdout
        assert f"{name}: it_adds_one FAILED" in ended.stdout, "a right answer that a check refuses is no skipped test"
    assert "2 failed" in ended.stdout
    assert "skipped" not in ended.stdout


@needs_sandbox
@pytest.mark.proof
def test_pytest_itself_asks_a_submission_in_a_process_of_its_own(collect_checks, tmp_path):
    collect_checks(ROWS)
    answer = f"import sys\nassert 'pytest' not in sys.modules\n\n{write_answer_cell('patchify')}"
    (tmp_path / "right.py").write_text(answer)
    asked = ["--rootdir", tmp_path, "-c", os.devnull, tmp_path / "hidden", "--submission", tmp_path / "right.py"]
    ended = run_pytest(tmp_path, *asked, "--device", "cpu")
    assert "patchify: rows_come_first PASSED" in ended.stdout, ended.stdout
    assert "fix_patchify: rows_come_first SKIPPED" in ended.stdout
    refused = run_pytest(tmp_path, *asked, "--device", "mps")
    assert refused.returncode == pytest.ExitCode.USAGE_ERROR
    assert "no float64" in refused.stderr


@needs_sandbox
@pytest.mark.parametrize("checks_first", [True, False], ids=["checks first", "submission first"])
@pytest.mark.proof
def test_pytest_itself_imports_nothing_from_beside_a_submission(collect_checks, tmp_path, checks_first):
    collect_checks(ROWS)
    (tmp_path / "hidden" / "pytest.ini").write_text("[pytest]\n")
    folder = tmp_path / "eve"
    folder.mkdir()
    (folder / "right.py").write_text(write_answer_cell("patchify"))
    (folder / "conftest.py").write_text(f"open({str(tmp_path / 'trace')!r}, 'w')\n")
    (folder / "pytest.ini").write_text("[pytest]\n")
    submission, checks = ("--submission", folder / "right.py"), tmp_path / "hidden"
    ended = run_pytest(tmp_path, *((checks, *submission) if checks_first else (*submission, checks)))
    assert not (tmp_path / "trace").exists()
    if checks_first:
        assert "patchify: rows_come_first PASSED" in ended.stdout, ended.stdout
    else:
        assert ended.returncode == pytest.ExitCode.USAGE_ERROR
        assert "name the folder of the hidden checks first" in ended.stderr


def test_a_wheel_which_lacks_what_only_grading_asks_grades_nothing(collect_checks, monkeypatch):
    monkeypatch.setitem(sys.modules, "vit_course.staff", None)
    with pytest.raises(HiddenChecksError, match="in a clone of the course, and in no wheel"):
        collect_checks(ROWS)
