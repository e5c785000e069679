"""Differences between a truth and grades, in words."""

import copy

import pytest

from exercise_kit.simulate.simulate import compare_grades_with_truth, count_named_mistakes

EXERCISE = {
    "name": "patchify", "kind": "misconception", "answer": "column order", "misconception": "column order",
    "named": "column order", "score": 2.0, "max_score": 8.0, "flags": [],
    "checks": {"test_a": "pass", "test_b": "fail"},
}  # fmt: skip
TRUTH = {
    "submissions": [
        {
            "student": "美玲 王", "lesson": "01_patchify", "status": "graded", "score": 2.0, "max_score": 8.0,
            "flags": ["timeout"], "exercises": [EXERCISE],
        }
    ]
}  # fmt: skip


@pytest.fixture
def graded_results():
    exercise = {key: EXERCISE[key] for key in ("name", "score", "max_score", "misconception")}
    checks = [{"name": name, "verdict": verdict} for name, verdict in EXERCISE["checks"].items()]
    kept = {key: TRUTH["submissions"][0][key] for key in ("student", "status", "score", "max_score", "flags")}
    entry = {**kept, "assignment": "01_patchify", "reason": None, "exercises": [{**exercise, "checks": checks}]}
    return copy.deepcopy({"version": 1, "submissions": [entry]})


def test_equal_grades_have_no_difference(graded_results):
    assert compare_grades_with_truth(TRUTH, graded_results) == []
    graded_results["submissions"][0]["flags"].append("not-sandboxed")
    assert compare_grades_with_truth(TRUTH, graded_results) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda entry: entry.update(student="x"), ["it was not graded", "nobody handed it in"]),
        (lambda entry: entry.update(status="error", reason="broken"), ["it is error (broken), and should be graded"]),
        (lambda entry: entry.update(flags=["copied"]), ["it has the flag copied", "it lacks the flag timeout"]),
        (lambda entry: entry.update(score=3.0), ["all exercises: the score is 3, and should be 2"]),
        (lambda entry: entry.update(exercises=[]), ["patchify was not graded"]),
        (
            lambda entry: entry["exercises"][0].update(score=1.0, max_score=4.0),
            ["(misconception: column order): the score is 1, and should be 2", "the max score is 4, and should be 8"],
        ),
        (
            lambda entry: entry["exercises"][0].update(misconception=None),
            ["patchify (misconception: column order) is named None, and should be column order"],
        ),
        (lambda entry: entry["exercises"][0]["checks"][0].update(verdict="undecided"), ["test_a is undecided"]),
        (lambda entry: entry["exercises"][0]["checks"].pop(), ["test_b is not evaluated, and should be fail"]),
        (
            lambda entry: entry["exercises"][0]["checks"].append({"name": "test_c", "verdict": "pass"}),
            ["test_c is pass, and should be not known"],
        ),
        (lambda entry: entry["exercises"].append({"name": "other"}), ["other is no exercise of this lesson"]),
    ],
)  # fmt: skip
def test_every_difference_is_reported(graded_results, change, expected):
    change(graded_results["submissions"][0])
    differences = compare_grades_with_truth(TRUTH, graded_results)
    assert len(differences) == len(expected)
    for text, words in zip(sorted(differences), sorted(expected), strict=True):
        assert any(each in text for each in expected), text
        assert any(words in each for each in differences), words
        assert "01_patchify" in text


def test_named_answers_are_counted():
    other = {**EXERCISE, "named": None}
    right = {**EXERCISE, "misconception": None, "named": None}
    assert count_named_mistakes({"submissions": [{"exercises": [EXERCISE, other, right]}]}) == (2, 1)
