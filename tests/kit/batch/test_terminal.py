"""Results in a terminal."""

import pytest
from rich.console import Console

from exercise_kit.engine.verdict import CheckResult, Verdict
from exercise_kit.judge.result import ExerciseResult, LogEntry, LogKind, Result, add_wait_causes_to_reason
from exercise_kit.reasons import Reason
from exercise_kit.report.terminal import describe_broken_checks, render_overview, render_submission


def print_to_text(renderable):
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(renderable)
    return console.export_text()


def make_result(**more):
    checks = (
        CheckResult("test_a", "Tokens follow the image.", Verdict.PASS),
        CheckResult("test_b", "Every patch is a token.", Verdict.FAIL, "token 1 holds [bold]pixels[/bold]"),
    )
    exercise = ExerciseResult("patchify", 4.0, 8.0, "column order", checks)
    facts = {"score": 4.0, "max_score": 8.0, "exercises": (exercise,)} | more
    return Result("some/where.ipynb", "ada", "01_patchify", "graded", **facts)


def test_a_table_tells_who_what_and_why():
    text = print_to_text(
        render_overview(
            [make_result(flags=("timeout",)), Result("b\x1b[31m.ipynb", None, None, "rejected", "it is empty")]
        )
    )
    assert "ada" in text
    assert "4 of 8" in text
    assert "[timeout]; patchify: column order" in text
    assert "rejected" in text
    assert "it is empty" in text
    assert "\x1b" not in text
    assert "1 of 2 graded" in text


def test_what_is_not_graded_yet_is_no_zero_and_the_summary_names_what_it_waits_for():
    broke = "hidden/test_unpatchify.py:7: NameError: no"
    undecided = (CheckResult("test_a", "It holds.", Verdict.UNDECIDED, "the check itself broke"),)
    second = ExerciseResult("unpatchify", 0.0, 5.0, None, undecided, reason=Reason.NOTHING_DECIDED, waits_for=broke)
    waiting = add_wait_causes_to_reason(make_result(max_score=13.0, exercises=(*make_result().exercises, second)))
    text = print_to_text(render_overview([make_result(), waiting, waiting]))
    assert "4 of 8, – of 5" in text
    assert "1 of 3 graded, 2 wait for hidden/test_unpatchify.py:7\nRepair what they wait for" in text
    text = print_to_text(render_submission(waiting))
    assert "unpatchify is not graded yet, and that is no fault of the student: hidden/test_unpatchify.py:7:" in text
    assert "unpatchify: not graded yet, – of 5 points" in text
    assert "itself broke" not in text


def test_a_sheet_is_the_report_of_check_and_takes_no_markup():
    lines = [line.rstrip() for line in print_to_text(render_submission(make_result())).splitlines()]
    assert lines[1:] == [
        "patchify: column order",
        "patchify: 1 of 2 checks passes, 4 of 8 points",
        "  ✗ fail      asked: Every patch is a token.",
        "              Seen: token 1 holds [bold]pixels[/bold]",
        "  ✓ 1 check passes",
    ]


def test_a_table_leaves_out_the_folder_that_all_files_share():
    paths = ("/a/long/folder/x/1.ipynb", "/a/long/folder/2.ipynb")
    text = print_to_text(render_overview([Result(path, None, None, "rejected", "it is empty") for path in paths]))
    assert "x/1.ipynb" in text
    assert "long" not in text


def test_a_file_s_name_takes_one_line_whatever_it_holds():
    odd = Result("a", "new\nline", "01\tpatchify", "graded", "its file is named a\n(1).ipynb")
    text = print_to_text(render_overview([odd, odd]))
    assert "new line" in text
    assert "2 of 2 graded; 2 of them with something to look at" in text


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (LogKind.BROKEN_CHECK, "A hidden check is broken (patchify, test_mine)"),
        (LogKind.GRADER_FAILED, "The grader failed in a hidden check (patchify, test_mine)"),
    ],
)
def test_a_check_that_does_not_count_is_reported_once_with_its_reason(kind, words):
    about = ("patchify", "test_mine")
    log = (
        LogEntry(kind, "Traceback\n  line 3\nKeyError: 7\n", *about),
        LogEntry(LogKind.DETAIL, "Traceback", "patchify", "test_other"),
        LogEntry(LogKind.GRADER_FAILED, "while it looked for the mistake's name", "patchify"),
    )
    broken = make_result(log=log)
    (line,) = describe_broken_checks([broken, make_result(), broken])
    assert line.startswith(f"{words} on 2 of 3 submissions")
    assert line.endswith("KeyError: 7")
