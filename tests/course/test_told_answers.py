"""What check tells beginners: the name or the sentence that is true of their answer, and none that is false."""

import pytest

from exercise_kit.engine import check
from tests.course.told_answers import TOLD


@pytest.mark.parametrize(
    ("exercise", "answer", "says", "never"), TOLD, ids=[f"{row[0]}-{row[1].__name__}" for row in TOLD]
)
def test_an_answer_is_told_what_is_true_of_it(exercise, answer, says, never):
    report = check(exercise, answer, points=10)
    text = " ".join(str(report).split())
    assert report.score < 10, text
    assert [each for each in says if each not in text] == [], text
    assert [each for each in never if each in text] == [], text
