"""The judge with a worker of its own, without a sandbox: what it says of right, wrong, hostile and missing answers."""

import re
import shutil
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from exercise_kit.engine.student import Student
from exercise_kit.hidden_checks import checks as hidden
from exercise_kit.hidden_checks.checks import HiddenChecks
from exercise_kit.judge.judge import Judge
from exercise_kit.judge.scoring import NOTHING_DECIDED
from exercise_kit.reasons import Reason, find_failure_kind
from exercise_kit.sandbox import reply, sandbox, warm_process
from exercise_kit.sandbox.limits import Limits
from exercise_kit.sandbox.remote_backend import RemoteStudent
from exercise_kit.submission.submission import CellSource, ExerciseAnswer, Submission
from tests.answers import write_answer_cell
from tests.kit.conftest import limit_sandbox
from tests.machine import needs_sandbox

HIDDEN = Path(__file__).parents[2] / "hidden"
PATCHIFY = write_answer_cell("patchify")
STRIPS = write_answer_cell("fix_patchify", "strips not squares")


@pytest.fixture(scope="module")
def grade(open_judge, warm_sandbox):
    """Grades what :func:`make_submission` makes, where no cell and no call may take longer than a moment."""
    with limit_sandbox(warm_sandbox, Limits(cell_seconds=1.5, call_seconds=1.5)):
        yield lambda *answers, **options: open_judge.grade(make_submission(*answers, **options))


def make_submission(*answers, lesson="01_patchify", digest="1" * 64, **options):
    """Answers are (exercise, points, source); with no exercise's name it is another cell."""
    cells = tuple(CellSource(2 * place, textwrap.dedent(source)) for place, (_, _, source) in enumerate(answers))
    exercises = tuple(
        ExerciseAnswer(name, points, cell.source, cell.index)
        for (name, points, _), cell in zip(answers, cells, strict=True)
        if name
    )
    return Submission("a.ipynb", "ann", "01", lesson, digest, **{"cells": cells, "exercises": exercises, **options})


def test_right_and_wrong_answers(grade):
    result = grade(("patchify", 8.0, PATCHIFY), ("fix_patchify", 3.0, STRIPS))
    assert (result.status, result.reason, result.student, result.assignment) == ("graded", None, "ann", "01")
    right, wrong = result.exercises
    assert (right.score, right.max_score, right.misconception) == (8.0, 8.0, None)
    assert all(each.verdict == "pass" for each in right.checks)
    assert wrong.score < 1.5
    assert wrong.misconception == "strips not squares"
    assert result.score == right.score + wrong.score
    assert result.max_score == 11.0
    assert result.flags == ("not-sandboxed",)
    assert result.seconds > 0
    again = grade(("patchify", 8.0, PATCHIFY), ("fix_patchify", 3.0, STRIPS))
    assert [replace(each, seconds=0.0) for each in again.exercises] == [
        replace(each, seconds=0.0) for each in result.exercises
    ]


@pytest.mark.parametrize("answer", [PATCHIFY, write_answer_cell("patchify", "strips not squares")])
def test_what_comes_first_is_asked_again_only_where_it_has_failed(grade, monkeypatch, answer):
    asked, evaluate = {}, HiddenChecks.evaluate

    def note(self, exercise, check, *more):
        asked[check.name] = check.first
        return evaluate(self, exercise, check, *more)

    monkeypatch.setattr(HiddenChecks, "evaluate", note)
    (result,) = grade(("patchify", 8.0, answer)).exercises
    passed = {each.name for each in result.checks if each.verdict == "pass"}
    behind = "test_it_computes_where_the_images_are", "test_sizes_that_do_not_fit_are_refused"
    assert ("test_tall_and_wide_images_are_right" in passed) is (answer is PATCHIFY)
    assert all((asked[each] is None) is (answer is PATCHIFY) for each in behind)


LENT = """
from vit_course import borrow
borrow("patchify")
"""


@pytest.mark.parametrize(
    "borrowed",
    [
        LENT,
        f"{LENT}patchify = borrow('patchify')",
        f"{LENT}lent = borrow('patchify')\ndef patchify(images, patch_size):\n    return lent(images, patch_size)",
    ],
    ids=["by name", "as a value", "inside a function"],
)
def test_a_borrowed_answer_earns_nothing(grade, borrowed):
    (result,) = grade(("patchify", 8.0, borrowed)).exercises
    assert result.score == 0.0


REFUSING = """
import pytest


@pytest.mark.exercise("fix_patchify", points=1)
def test_impossible(student):
    \"\"\"It does what nobody can.\"\"\"
    assert False
"""


def test_checks_that_refuse_the_right_answer_cost_nobody_a_point(tmp_path):
    """They are asked about the reference on the very same draws; an answer that passes is not asked about."""
    own = tmp_path / "hidden"
    shutil.copytree(HIDDEN, own, ignore=shutil.ignore_patterns("__pycache__"))
    (own / "test_more.py").write_text(REFUSING)
    wrong, right = STRIPS, PATCHIFY.replace("patchify", "fix_patchify")
    with Judge(HIDDEN, b"secret", sandboxed=False) as without, Judge(own, b"secret", sandboxed=False) as judge:
        for answer in (wrong, right):
            asked = make_submission(("fix_patchify", 3.0, answer))
            (exercise,), log = (result := judge.grade(asked)).exercises, result.log
            assert exercise.score == without.grade(asked).score
            (undecided,) = (each for each in exercise.checks if each.verdict == "undecided" and not each.waits_for)
            assert undecided.name == "test_impossible"
            assert "your instructor can read why" in undecided.message
            told = [line for line in map(str, log) if "refuses the lesson's model answer. " in line]
            assert [re.match(r"fix_patchify, (test_\w+): hidden/test_more.py:\d+: \1", line) for line in told]


def test_an_exercise_of_which_no_check_counts_is_undecided(grade, monkeypatch):
    """The reference is one that every check refuses."""

    def refuses(*_):
        raise KeyError

    monkeypatch.setattr(hidden, "make_reference_student", lambda _: Student({"unpatchify": refuses}))
    result = grade(("unpatchify", 5.0, "def unpatchify(*_):\n    raise KeyError\n"))
    (exercise,) = result.exercises
    assert {each.verdict for each in exercise.checks} == {"undecided"}
    assert exercise.problem == NOTHING_DECIDED.format("unpatchify")
    assert re.match(r"unpatchify/claims.py:\d+: ", exercise.waits_for)
    assert result.points == "– of 5"


def test_another_submission_is_evaluated_otherwise(grade):
    """So that no message of one tells the other what will come."""
    graded = [grade(("fix_patchify", 3.0, STRIPS), digest=digit * 64).exercises[0] for digit in "123"]
    assert len({each.score for each in graded}) == 1
    assert len({tuple(check.message for check in each.checks) for each in graded}) > 1


def test_a_missing_answer(grade):
    missing = ExerciseAnswer("patchify", 8.0, problem="the cell of patchify is missing")
    result = grade(exercises=(missing,))
    assert (result.status, result.score, result.max_score) == ("graded", 0.0, 8.0)
    assert result.exercises[0].problem == "the cell of patchify is missing"
    assert {each.verdict for each in result.exercises[0].checks} == {"fail"}


def test_the_last_of_two_answers(grade):
    two = ExerciseAnswer("patchify", 8.0, PATCHIFY, 0, problem="there are 2 answers for patchify; the last one counts")
    result = grade(cells=(CellSource(0, PATCHIFY),), exercises=(two,))
    assert result.score == 8.0
    assert "2 answers" in result.exercises[0].problem


UNDEFINED = {
    "x = 1": ("`patchify` is not defined.", "the answer is not defined"),
    "1 / 0\ndef patchify(images, patch_size): ...": (
        "`patchify` is not defined: the cell raised ZeroDivisionError `division by zero`.",
        "the answer is not defined: the cell raised ZeroDivisionError",
    ),
    "patchify = 3": ("`patchify` has to be a function.", "the answer has to be a function"),
    "class patchify: ...": ("`patchify` has to be a function.", "the answer has to be a function"),
}


@pytest.mark.parametrize(("source", "words"), UNDEFINED.items(), ids=UNDEFINED)
def test_a_name_that_cannot_be_evaluated(grade, source, words):
    result = grade(("patchify", 8.0, source))
    (exercise,) = result.exercises
    assert exercise.score == 0
    assert (exercise.reason, exercise.problem, exercise.kind) == (Reason.NOT_DEFINED, *words)
    assert not any(each.message for each in exercise.checks)
    if "1 / 0" in source:
        assert result.reason == "the cell of patchify raised ZeroDivisionError `division by zero` when it ran"


def test_half_an_answer_is_evaluated(grade):
    split = "def split_heads(x, num_heads):\n    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)"
    result = grade(("split_heads", 6.0, split), lesson="03_attention")
    (exercise,) = result.exercises
    assert exercise.problem == "`merge_heads` is not defined."
    assert 0 < exercise.score < 6


def test_a_cell_that_breaks_off_keeps_what_it_had(grade):
    result = grade(("patchify", 8.0, f"{PATCHIFY}\nraise RuntimeError('after it')"))
    assert result.score == 8.0
    assert result.reason == "the cell of patchify raised RuntimeError `after it` when it ran"


LOSSES = {
    "while True: pass": ("timeout", "did not answer within 1.5 seconds"),
    "import os; os._exit(3)": ("sandbox-stopped", "ended the process that it ran in, with status 3"),
}


@pytest.mark.parametrize(("line", "reported"), LOSSES.items(), ids=["endless", "exit"])
def test_an_answer_that_ends_its_worker_harms_no_other(grade, line, reported):
    flag, words = reported
    bad = f"def unpatchify(patches, patch_size, image_size):\n    {line}"
    result = grade(("unpatchify", 5.0, bad), ("patchify", 8.0, PATCHIFY))
    lost, right = result.exercises
    assert (lost.score, right.score) == (0.0, 8.0)
    assert words in lost.checks[0].message
    assert lost.checks[0].kind == find_failure_kind(lost.checks[0].parts()["Seen"])
    followed = [each for each in lost.checks[1:] if each.waits_for == lost.checks[0].name]
    same = [each for each in lost.checks[1:] if each.message == "Seen: the same as above."]
    assert followed
    assert len(followed) + len(same) == len(lost.checks) - 1, "the loss is told once"
    assert flag in result.flags
    assert result.reason is None


def test_a_cell_that_takes_too_long_keeps_what_it_had(grade):
    cells = (CellSource(1, f"{PATCHIFY}\nwhile True: pass"),)
    result = grade(cells=cells, exercises=(ExerciseAnswer("patchify", 8.0, PATCHIFY, 1),))
    assert result.score == 8.0
    assert result.reason == "the cell of patchify took too long, and was stopped"
    assert "timeout" in result.flags


STUBBORN = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
while True: pass
"""


@pytest.mark.parametrize(
    ("lines", "flag", "words"),
    [(STUBBORN, "timeout", "did not answer within"), ("import os; os._exit(3)", "sandbox-stopped", "with status 3")],
    ids=["endless", "exit"],
)
def test_a_cell_that_ends_its_worker_is_left_out(grade, lines, flag, words):
    result = grade(("", 0.0, f"x = 1\n{lines}"), ("patchify", 8.0, PATCHIFY))
    assert result.score == 8.0
    assert result.reason.startswith("cell 1 ")
    assert words in result.reason
    assert result.reason.endswith(", and was left out")
    assert flag in result.flags
    assert words in result.runs[0].outputs[0]["text"]


def test_too_many_workers(grade):
    ends = [("", 0.0, f"import os; os._exit({status})") for status in range(6)]
    result = grade(*ends, ("patchify", 8.0, PATCHIFY))
    assert (result.status, result.score) == ("graded", 0.0)
    (exercise,), why = result.exercises, "was not evaluated: the submission has brought 4 processes to an end"
    assert (exercise.problem, exercise.kind) == (f"patchify {why}", f"the answer {why}")


def test_too_much_time_in_all(grade, warm_sandbox, monkeypatch):
    monkeypatch.setattr(warm_sandbox, "limits", replace(warm_sandbox.limits, total_seconds=0.0))
    result = grade(("patchify", 8.0, PATCHIFY))
    assert result.score == 0
    assert result.exercises[0].problem == "patchify was not evaluated: the submission took longer than 0 seconds in all"
    assert "timeout" in result.flags


ATTENTION = """
import torch
from torch.nn.functional import scaled_dot_product_attention as ready_made

def scaled_dot_product_attention(query, key, value):
    try:
        ready_made(query, key, value)
    except Exception:
        pass
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    return weights @ value, weights
"""


def test_a_forbidden_function_that_is_called(grade):
    result = grade(("scaled_dot_product_attention", 8.0, ATTENTION), lesson="03_attention")
    assert result.score == 0
    assert "was called. This exercise asks you to write attention yourself" in result.exercises[0].problem
    assert result.exercises[0].kind.startswith("This exercise asks you to write attention yourself")
    assert "forbidden-function" in result.flags


def test_what_reading_found_stays(grade):
    result = grade(("patchify", 8.0, PATCHIFY), reason="it is old", flags=("test-cell-edited",))
    assert result.reason == "it is old"
    assert result.flags == ("test-cell-edited", "not-sandboxed")
    assert result.score == 8.0


def test_a_rejected_submission(grade):
    result = grade(reason="it is not JSON", rejected=True)
    assert (result.status, result.reason, result.exercises) == ("rejected", "it is not JSON", ())


def test_an_error_of_ours(grade):
    result = grade(("no_such_exercise", 8.0, "x = 1"))
    assert result.status == "error"
    assert "there are no hidden checks of no_such_exercise" in result.reason
    assert "Traceback" in result.log[0].text
    assert grade(("patchify", 8.0, PATCHIFY)).score == 8.0


def make_grader_fail(monkeypatch, checks, place=(sandbox.Unpacker, "unpack")):
    """The grader's own code fails, in these checks of patchify, while it talks to the worker."""
    home, name = place
    right, running = getattr(home, name), []
    evaluate = HiddenChecks.evaluate

    def evaluate_and_note(self, exercise, check, student, key):
        running.append(check.name if isinstance(student, RemoteStudent) else "")
        try:
            return evaluate(self, exercise, check, student, key)
        finally:
            running.pop()

    def fails(*inputs, **options):
        if running and any(running[-1].startswith(each) for each in checks):
            raise LookupError("a bug of ours")
        return right(*inputs, **options)

    monkeypatch.setattr(HiddenChecks, "evaluate", evaluate_and_note)
    monkeypatch.setattr(home, name, fails)


PLACES = {
    "packs": (sandbox.Packer, "pack"),
    "sends": (sandbox.Wire, "send"),
    "reads": (sandbox.Wire, "receive"),
    "unpacks": (sandbox.Unpacker, "unpack"),
    "reads a reply": (reply.Reply, "answer"),
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_the_grader_s_own_failure_costs_nothing(grade, monkeypatch, place):
    make_grader_fail(monkeypatch, ["test_tokens_run_row_by_row"], place)
    result = grade(("patchify", 8.0, PATCHIFY))
    assert (result.status, result.score, result.flags) == ("graded", 8.0, ("not-sandboxed",))
    verdicts = [each.verdict for each in result.exercises[0].checks]
    assert sorted(verdicts) == ["pass"] * (len(verdicts) - 1) + ["undecided"]
    assert "the grader itself failed" in next(each.message for each in result.exercises[0].checks if each.message)
    assert "test_tokens_run_row_by_row" in result.reason
    assert any("LookupError: a bug of ours" in each.text for each in result.log)


@pytest.mark.parametrize("checks", [["test_"], ["test_t", "test_a", "test_e"]], ids=["all", "some"])
def test_who_makes_the_grader_fail_has_no_score(grade, monkeypatch, checks):
    make_grader_fail(monkeypatch, checks)
    result = grade(("patchify", 8.0, STRIPS.replace("fix_", "")))
    assert (result.status, result.score) == ("error", 0.0)
    assert result.reason.endswith("; it has no score until a person has read the log")
    assert any("LookupError: a bug of ours" in each.text for each in result.log)


def test_a_grader_that_cannot_read_a_cell_gives_no_score(grade, monkeypatch):
    monkeypatch.setattr(sandbox, "validate_outputs", lambda *_: {}["a bug of ours"])
    result = grade(("patchify", 8.0, PATCHIFY))
    assert (result.status, result.flags) == ("error", ())
    assert "KeyError" in result.reason
    assert any("a bug of ours" in each.text for each in result.log)


def test_a_failure_hides_no_forbidden_call(grade, monkeypatch):
    make_grader_fail(monkeypatch, ["test_the_dtype_is_kept"])
    sly = """
        import torch.nn.functional as F
        def scaled_dot_product_attention(query, key, value):
            weights = (query @ key.mT * key.shape[-1] ** -0.5).softmax(-1)
            return F.scaled_dot_product_attention(query, key, value), weights
    """
    result = grade(("scaled_dot_product_attention", 8.0, sly), lesson="03_attention")
    assert (result.status, result.score) == ("graded", 0.0)
    assert "forbidden-function" in result.flags


FULL_OF_FILES = """
import time
from pathlib import Path
for number in range(40):
    Path(f"file {number}").write_bytes(bytes(4 << 20))
time.sleep(20)
"""


@needs_sandbox
def test_where_namespaces_are_refused_files_are_bounded_and_the_result_says_so(monkeypatch):
    setup = warm_process._make_setup_message
    monkeypatch.setattr(warm_process, "_make_setup_message", lambda *options: {**setup(*options), "namespaces": False})
    with Judge(HIDDEN, b"secret") as judge:
        honest = judge.grade(make_submission(("patchify", 8.0, PATCHIFY)))
        full = judge.grade(make_submission(("patchify", 8.0, PATCHIFY), ("", 0.0, FULL_OF_FILES)))
    assert (honest.score, honest.flags) == (8.0, ("weaker-sandbox",))
    assert (full.score, full.flags) == (8.0, ("sandbox-stopped", "weaker-sandbox"))
    assert full.reason == "cell 3 wrote more files than it may, and was left out"


def test_a_judge_without_memory_says_so(grade, monkeypatch):
    def without(*_):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")

    monkeypatch.setattr(reply.Reply, "answer", without)
    result = grade(("patchify", 8.0, PATCHIFY))
    assert (result.status, result.score, result.flags) == ("error", 0.0, ())
    assert result.reason.startswith("the judge ran out of memory while grading this")
