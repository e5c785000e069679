"""Ready-made answers before the real judge: no points and a flag; right answers beside them get all their points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from exercise_kit.judge.judge import Judge
from exercise_kit.submission.find import find
from exercise_kit.submission.flags import FORBIDDEN_FUNCTION, OTHER_CODE, POSSIBLE_BYPASS
from exercise_kit.submission.parse import read
from exercise_kit.submission.released import Lessons
from exercise_kit.submission.submission import Submission
from tests.e2e.attacks import late
from tests.e2e.attacks.attack import Attack
from tests.e2e.attacks.corpus import hand_in, read_attacks
from tests.machine import needs_sandbox

pytestmark = needs_sandbox
ROOT = Path(__file__).parents[2]
Read = Callable[[Attack], Submission]
BYPASSES = [*read_attacks("attention"), *read_attacks("norms"), *read_attacks("ready_made")]
FLAGGED = read_attacks("flagged")
HONEST = read_attacks("odd_company")
LATE = read_attacks("late", late.COMPUTED)
WITHOUT_EFFECT = read_attacks("without_effect")
NOTICED = read_attacks("noticed")
HONEST_CHANGES = read_attacks("in_sight")
WITHHELD = read_attacks("withheld")


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(ROOT / "tests" / "hidden", b"doors") as opened:
        yield opened


@pytest.fixture(scope="module")
def lessons() -> Lessons:
    return Lessons(None, ROOT)


@pytest.fixture
def submission(tmp_path: Path, lessons: Lessons) -> Read:
    def make_submission(case: Attack) -> Submission:
        (found,) = find([hand_in(tmp_path, "student", case)], lessons.names)
        return read(found, lessons).keep_exercises([case.exercise])

    return make_submission


@pytest.mark.parametrize("case", BYPASSES, ids=lambda each: each.name)
@pytest.mark.proof
def test_a_way_round_earns_nothing(judge: Judge, submission: Read, case: Attack) -> None:
    result = judge.grade(submission(case))
    assert result.status == "graded", result.reason
    assert result.score == 0
    assert FORBIDDEN_FUNCTION in result.flags, result.exercises
    assert "This exercise asks" in (result.exercises[0].problem or "")


@pytest.mark.parametrize("case", FLAGGED, ids=lambda each: each.name)
@pytest.mark.proof
def test_what_no_watch_can_see_is_flagged(judge: Judge, submission: Read, case: Attack) -> None:
    assert POSSIBLE_BYPASS in judge.grade(submission(case)).flags


@pytest.mark.parametrize("case", LATE, ids=lambda each: each.name)
@pytest.mark.proof
def test_what_runs_behind_the_call_earns_nothing(judge: Judge, submission: Read, case: Attack) -> None:
    result = judge.grade(submission(case))
    assert result.status == "graded", result.reason
    assert result.score == 0
    assert {FORBIDDEN_FUNCTION, POSSIBLE_BYPASS} & set(result.flags)


@pytest.mark.parametrize("case", WITHOUT_EFFECT, ids=lambda each: each.name)
def test_what_the_page_shows_is_what_runs(judge: Judge, submission: Read, case: Attack) -> None:
    result = judge.grade(submission(case))
    assert result.status == "graded", result.reason
    assert result.score == 0, result.exercises
    assert OTHER_CODE not in result.flags


@pytest.mark.parametrize("case", NOTICED, ids=lambda each: each.name)
def test_other_code_than_the_page_shows_earns_nothing(judge: Judge, submission: Read, case: Attack) -> None:
    result = judge.grade(submission(case))
    assert result.status == "graded", result.reason
    assert result.score == 0, result.exercises
    assert OTHER_CODE in result.flags, result.exercises


@pytest.mark.parametrize("case", HONEST_CHANGES, ids=lambda each: each.name)
def test_code_that_is_changed_in_sight_gets_its_points(judge: Judge, submission: Read, case: Attack) -> None:
    result = judge.grade(submission(case))
    assert result.score == case.honest > 0, (result.exercises, result.reason)


@pytest.mark.parametrize("case", WITHHELD, ids=lambda each: each.name)
@pytest.mark.proof
def test_what_no_watch_sees_is_not_there(judge: Judge, submission: Read, case: Attack) -> None:
    result = judge.grade(submission(case))
    assert result.status == "graded", result.reason
    assert result.score == case.honest


@pytest.mark.parametrize("case", HONEST, ids=lambda each: each.name)
def test_a_right_answer_in_odd_company_gets_its_points(judge: Judge, submission: Read, case: Attack) -> None:
    result = judge.grade(submission(case))
    assert result.exercises[0].problem is None
    assert result.score == case.honest > 0, result.exercises
    assert result.flags == ()
