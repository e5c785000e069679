"""What check tells beginners: the name or the sentence that is true of their answer, and none that is false."""

import pytest

from exercise_kit.engine import check
from tests.answers import find_known_mistake
from tests.course.told_answers import ATTENTION, TOLD

NAMED = [  # (exercise, the known mistake that the report names, what it must not say)
    (ATTENTION, "keys on the left", ["no key is ever read"]),
    ("patchify", "width before height", ["Which token comes after the first"]),
    ("patchify", "windows left behind the channels", ["unfold"]),
    ("fix_patchify", "patches in a row by the height", []),
    ("fix_patchify", "rows of a channel by the width", []),
    ("VisionTransformer", "the stream added once more", ["Follow the figure"]),
    ("VisionTransformer", "each block given the same tokens", ["Follow the figure"]),
    ("VisionTransformer", "one mlp for all blocks", ["Follow the figure"]),
    ("attention_rollout", "earlier layers on the left", ["Two mistakes", "CPU"]),
    ("attention_rollout", "strongest head only", ["Two mistakes", "CPU"]),
]


def expect_told(exercise, objects, says, never):
    """Fail unless the report on an answer has the words that it says, and none of those that it must not say."""
    report = check(exercise, *objects, points=10)
    text = " ".join(str(report).split())
    assert report.score < 10, text
    assert [each for each in says if each not in text] == [], text
    assert [each for each in never if each in text] == [], text


@pytest.mark.parametrize(("exercise", "answer", "says", "never"), TOLD.values(), ids=TOLD)
def test_an_answer_is_told_what_is_true_of_it(exercise, answer, says, never):
    expect_told(exercise, [answer], says, never)


@pytest.mark.parametrize(("exercise", "name", "never"), NAMED, ids=[f"{row[0]}-{row[1]}" for row in NAMED])
def test_a_known_mistake_is_named(exercise, name, never):
    expect_told(exercise, find_known_mistake(exercise, name).objects, [f"*{name}*"], never)
