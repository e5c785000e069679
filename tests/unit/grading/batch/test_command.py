"""What `vit-course grade --json` publishes."""

from vit_course.grading.batch.command import _published
from vit_course.grading.judging.result import CheckOutcome, ExerciseResult, Result

FAILED = CheckOutcome("test_a", "fail", None, None, "Tokens follow the image.", {"Seen": "x"})
TOLD = CheckOutcome("test_b", "fail", "Seen: zeros.", "column order", "Every patch is a token.")
PASSED = CheckOutcome("test_c", "pass", None, None, "The dtype is kept.")


def test_exactly_the_published_keys():
    exercise = ExerciseResult("patchify", 0.0, 8.0, None, (FAILED, TOLD, PASSED), "the cell of patchify is empty")
    published = _published([Result("a.ipynb", "ada", "01_patchify", "graded", exercises=(exercise,))])
    assert published["version"] == 1
    (entry,) = published["submissions"]
    assert list(entry) == [
        *("path", "student", "assignment", "status", "reason", "score", "max_score", "seconds", "flags", "exercises")
    ]
    (told,) = entry["exercises"]
    assert list(told) == ["name", "score", "max_score", "misconception", "checks"]
    assert all(list(check) == ["name", "verdict", "message", "misconception"] for check in told["checks"])
    messages = [check["message"] for check in told["checks"]]
    assert messages == ["the cell of patchify is empty", "Seen: zeros.", None]
