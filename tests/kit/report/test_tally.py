"""What a class's results are counted to."""

from dataclasses import replace
from pathlib import Path

import pytest

from exercise_kit.engine.verdict import CheckResult, Verdict
from exercise_kit.reasons import Reason
from exercise_kit.report.answers import Lost, split_lost_points
from exercise_kit.report.collect import ClassWork, LessonPlan, State, SubmittedWork
from exercise_kit.report.manual_grading import ManualGrading, Question
from exercise_kit.report.page import format_count, format_percent, format_points, summarize_class
from exercise_kit.report.tally import find_known_mistakes, tally_class
from tests.answers import find_known_mistake
from tests.kit.report.conftest import (
    LESSON,
    make_exercise_result,
    make_failed_check,
    make_passed_check,
    make_submitted_work,
)

MISSING = CheckResult("test_rows", "rows hold.", Verdict.FAIL)


def make_class_work(*results, points=None):
    """A class of students, each of whom has some results."""
    flags = ("test-cell-edited",)
    handed_in = (make_submitted_work(f"s{index}", LESSON, *each, flags=flags) for index, each in enumerate(results))
    return ClassWork("vision", tuple(handed_in), (LessonPlan(LESSON, points or {"patchify": 8.0}),))


def count_answers(*results):
    """The tally of a class of students, each of whom has one result."""
    return tally_class(make_class_work(*((each,) for each in results)))


def list_lost_points(result, **options):
    return [(share.why, share.points, share.name) for share in split_lost_points(result, **options)]


def test_lost_points_are_shared_out_among_the_failed_checks():
    result = make_exercise_result(
        "patchify",
        make_failed_check(misconception="column order"),
        make_failed_check("test_other"),
        make_passed_check(),
        score=2.0,
    )
    assert list_lost_points(result) == [(Lost.NAMED, 3.0, "column order"), (Lost.UNNAMED, 3.0, "")]
    assert list_lost_points(result, is_consequence=True)[1][0] is Lost.FOLLOWS
    assert list_lost_points(make_exercise_result("patchify", make_passed_check(), score=8.0)) == []


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        (Reason.NOT_WRITTEN, Lost.UNWRITTEN),
        (Reason.PARTLY_WRITTEN, Lost.UNWRITTEN),
        (Reason.NO_CELL, Lost.UNWRITTEN),
        (Reason.EMPTY_CELL, Lost.UNWRITTEN),
        (Reason.NOT_DEFINED, Lost.UNEVALUATED),
        (Reason.NOT_RUN, Lost.UNEVALUATED),
    ],
)
def test_answers_of_which_nothing_was_evaluated(reason, why):
    assert list_lost_points(make_exercise_result("patchify", MISSING, problem="whatever the words", reason=reason)) == [
        (why, 8.0, "")
    ]


def test_two_mistakes_at_once_are_both_counted():
    both = make_failed_check(misconception="column order, and channels last inside a token")
    found = count_answers(make_exercise_result("patchify", both))
    assert {(each.misconception.name, each.lost, each.students, each.together) for each in found.mistakes} == {
        ("column order", 4.0, 1, 1),
        ("channels last inside a token", 4.0, 1, 1),
    }


def test_a_misconception_is_reported_as_the_library_has_it():
    cause = find_known_mistake("patchify", "column order").cause
    (facts,) = find_known_mistakes("patchify", "column order")
    assert (facts.explanation, facts.question, facts.section) == (cause.explanation, cause.question, cause.section)
    assert [each.name for each in find_known_mistakes("patchify", "gone, and forgotten")] == ["gone, and forgotten"]


def test_a_mistake_is_one_in_all_exercises_that_share_it():
    points = {"patchify": 8.0, "fix_patchify": 3.0}
    wrong = make_failed_check(misconception="column order")
    results = [make_exercise_result(name, wrong, max_score=worth) for name, worth in points.items()]
    (mistake,) = tally_class(make_class_work(results, points=points)).mistakes
    assert (mistake.students, mistake.lost, dict(mistake.exercises)) == (1, 11.0, {"patchify": 1, "fix_patchify": 1})


def test_the_costliest_comes_first():
    cheap, dear = (make_failed_check(misconception=name) for name in ("column order", "strips not squares"))
    found = count_answers(make_exercise_result("patchify", cheap, score=7.0), make_exercise_result("patchify", dear))
    assert [each.misconception.name for each in found.mistakes] == ["strips not squares", "column order"]


def test_wrong_answers_without_a_name_are_grouped_by_the_kind_of_their_first_failure():
    first = make_failed_check(seen="token 3 of (2, 10, 48) is 0.5 too large, at `x`")
    alike = make_failed_check(seen="token 12 of (4, 3) is 1e-3 too large, at `a b`")
    more = make_failed_check("test_other", seen="the same as above")
    checks = [first], [alike], [alike, more], [make_failed_check(seen="patchify returned None")]
    found = count_answers(*(make_exercise_result("patchify", *each) for each in checks))
    assert [len(each.answers) for each in found.unexplained] == [2, 1, 1]
    assert found.unexplained[0].kind == "token # of (…) is # too large, at …"


def test_what_follows_from_an_earlier_mistake_is_no_group_of_its_own(lessons):
    released = lessons.get("04_block")
    points = {each.name: each.points for each in released.exercises}
    plan = LessonPlan("04_block", points, released)
    assert "Mlp" in plan.builds_on()["EncoderBlock"]
    assert plan.builds_on()["Mlp"] == frozenset()
    results = [
        make_exercise_result(name, make_failed_check(), max_score=points[name]) for name in ("Mlp", "EncoderBlock")
    ]
    found = tally_class(ClassWork("vision", (make_submitted_work("s", "04_block", *results),), (plan,)))
    assert dict(found.following) == {"EncoderBlock": 1}
    assert [each.exercise for each in found.unexplained] == ["Mlp"]


def test_answers_that_could_not_be_evaluated_count_for_no_check():
    facts = {"reason": Reason.NOT_RUN, "kind": "the answer was not evaluated: it took too long"}
    problems = (f"whatever the words, {place}" for place in "ab")
    found = count_answers(*(make_exercise_result("patchify", MISSING, problem=each, **facts) for each in problems))
    assert found.exercises[0].checks == {}
    (group,) = found.unevaluated
    assert (group.exercise, group.kind, len(group.answers)) == ("patchify", facts["kind"], 2)


def test_checks_bins_flags_and_times():
    undecided = CheckResult("test_gradient", "", Verdict.UNDECIDED, "no GPU")
    results = [
        make_exercise_result("patchify", make_passed_check(), undecided, score=8.0, seconds=0.2),
        make_exercise_result("patchify", make_failed_check("test_shape"), score=4.0, seconds=0.4),
        make_exercise_result("patchify", make_failed_check("test_shape"), score=1.0),
        make_exercise_result("patchify", make_failed_check("test_shape")),
        make_exercise_result("patchify", MISSING, problem="unwritten", reason=Reason.NOT_WRITTEN, seconds=9.0),
    ]
    found = count_answers(*results)
    (only,) = found.exercises
    assert only.bins == (1, 1, 1, 1, 1)
    assert (only.seconds, found.flags["test-cell-edited"], found.median) == ([0.2, 0.4], 5, 0.125)
    shape, gradient = only.checks["test_shape"], only.checks["test_gradient"]
    assert (shape.passed, shape.failed, shape.failing, gradient.undecided, gradient.failing) == (1, 3, 0.75, 1, 0.0)
    assert gradient.claim == "gradient"


def test_an_exercise_of_an_older_release_is_left_out():
    gone, kept = make_exercise_result("gone", make_failed_check()), make_exercise_result("patchify", score=8.0)
    found = tally_class(make_class_work([gone, kept]))
    assert [each.name for each in found.exercises] == ["patchify"]
    assert not found.unexplained


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ((0.5, 0.5, 1.0), "; hardest were patchify, unpatchify, with 50 % in the mean, and easiest fix_patchify, with"),
        ((0.5, 1.0, 1.0), "; hardest was patchify, with 50 % in the mean, and easiest unpatchify, fix_patchify, with"),
        ((0.5, 0.5, 0.5), "their points or more."),
    ],
)
def test_equals_are_equally_hard(shares, said):
    points = {"patchify": 8.0, "unpatchify": 8.0, "fix_patchify": 8.0}
    results = tuple(
        make_exercise_result(name, make_passed_check(), score=8.0 * each)
        for name, each in zip(points, shares, strict=True)
    )
    (_, how_well, _) = summarize_class(tally_class(make_class_work(results, points=points)))
    assert said in how_well.replace("\u00a0", " ")


def test_three_sentences():
    wrong = make_exercise_result("patchify", make_failed_check(misconception="column order"), score=2.0)
    right = make_exercise_result("patchify", make_passed_check(), score=8.0)
    assert summarize_class(count_answers(wrong, right)) == [
        "2 students handed in 2 notebooks for 1 lesson; all are graded.",
        "Half of the graded notebooks earn 62\u00a0% of their points or more.",
        "Of the mistakes that have a name, “column order” cost the class most: 1 student and 6 points; "
        "all answers are written.",
    ]
    assert summarize_class(tally_class(ClassWork("vision", (), ()))) == ["Nobody has handed in anything yet."]
    waiting = SubmittedWork(Path("p"), "s", LESSON, State.WAITING)
    assert summarize_class(tally_class(ClassWork("vision", (waiting,), ()))) == [
        "1 student handed in 1 notebook: 0 are graded, 1 is not graded yet."
    ]


def test_the_first_sentence_says_what_waits_for_a_person():
    """Nothing is called graded whose written answers nobody has read."""
    done = make_class_work((make_exercise_result("patchify", make_passed_check(), score=8.0),))
    waits = ClassWork("vision", (SubmittedWork(Path("p"), "s", LESSON, State.WAITING),), ())

    def write_first_sentence(found, waiting, again=0):
        book = ManualGrading((Question(LESSON, "question-1", 3, waiting, again),))
        return summarize_class(tally_class(replace(found, manual_grading=book)))[0]

    assert write_first_sentence(done, 0).endswith("; all are graded.")
    assert write_first_sentence(done, 1).endswith(
        "; all code is graded, and 1 written answer waits for a grade by hand."
    )
    assert write_first_sentence(done, 0, 2).endswith(
        "; all code is graded, and 2 answers with points are to be looked at."
    )
    assert write_first_sentence(done, 1, 1).endswith(
        "waits for a grade by hand and 1 answer with points is to be looked at."
    )
    assert write_first_sentence(waits, 2).endswith("1 is not graded yet; 2 written answers wait for a grade by hand.")


def test_numbers():
    assert [format_percent(share) for share in (0, 0.001, 0.5, 0.999, 1)] == [
        f"{each}\u00a0%" for each in ("0", "1", "50", "99", "100")
    ]
    assert [format_points(value) for value in (0, 0.25, 3.0, 12.04, 1234.5)] == ["0", "0.2", "3", "12", "1,234"]
    assert (format_count(1, "box", "boxes"), format_count(2000, "box", "boxes")) == ("1 box", "2,000 boxes")
