"""What asks a student's test: every right answer, every impostor of a family, and again where a draw decides."""

import re

import pytest
import torch

from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.impostors import LineUp, Suspect
from vit_course.staff import hidden_attention_cases, hidden_layer_norm_cases, hidden_rotary_cases
from vit_course.staff.impostors import HiddenLineUp


def doubles(x):
    """doubles its input"""
    return 2 * x


def adds_itself(x):
    """adds its input to itself"""
    return x + x


def halves(x):
    """halves its input"""
    return x / 2


def squares(x):
    """squares its input"""
    return x * x


def unnamed(function):
    return lambda x: function(x)


LINE_UP = LineUp("a double", "your own double", (doubles, adds_itself), {"factor": (halves,), "power": (squares,)})
HIDDEN = HiddenLineUp(
    "a double",
    "your own double",
    tuple(Suspect(each.__doc__, each) for each in (doubles, adds_itself)),
    {"factor": lambda probe: [Suspect("halves its input", halves)]},
    unnamed,
)


def student(answer):
    return Student({"is_double": answer})


def is_double(function):
    return function(3.0) == 6.0


def test_a_right_test_passes():
    asked = student(is_double)
    LINE_UP.expect_right_passes(asked)
    LINE_UP.expect_caught(asked, "factor", "")
    HIDDEN.expect_distinguished(asked, Probe(0), "factor", "")


def test_an_impostor_that_slips_through_is_told_by_what_it_does():
    with pytest.raises(Failure, match=r"is_double\(double\) is True for a double that squares its input") as caught:
        LINE_UP.expect_caught(student(lambda function: function(2.0) == 4.0), "power", "Which number?")
    assert (caught.value.expected, caught.value.look) == ("False", "Which number?")


def test_a_refusal_is_told_by_how_often_it_came():
    refuses = student(lambda function: bool(torch.rand(()) < 0.5) and is_double(function))
    with pytest.raises(Failure) as caught:
        LINE_UP.expect_right_passes(refuses)
    assert re.search(r"is right: it doubles its input, in [12] of 3 tries$", caught.value.seen)


@pytest.mark.parametrize(
    ("answer", "seen"), [(None, "gives None"), (torch.ones(2), "gives a Tensor"), ("yes", "gives a str")], ids=str
)
def test_what_is_neither_true_nor_false_is_told(answer, seen):
    for expect in (LINE_UP.expect_right_passes, lambda each: HIDDEN.expect_distinguished(each, Probe(0), "factor", "")):
        with pytest.raises(Failure) as caught:
            expect(student(lambda function: answer))
        assert seen in caught.value.seen


def test_a_test_that_raises_is_asked_to_answer():
    def asserts(function):
        assert is_double(function)
        return True

    with pytest.raises(Failure) as caught:
        HIDDEN.expect_distinguished(student(asserts), Probe(0), "factor", "")
    assert "it was asked about a double that halves its input" in caught.value.seen
    assert "is_double should still answer" in caught.value.look


@pytest.mark.parametrize(
    "cases", [hidden_attention_cases, hidden_layer_norm_cases, hidden_rotary_cases], ids=lambda each: each.__name__
)
def test_hidden_checks_ask_about_every_right_answer(cases, monkeypatch):
    asked = []
    monkeypatch.setattr(HiddenLineUp, "_judge", lambda self, student, suspect, *_: asked.append(suspect.described))
    line_up = HiddenLineUp("a case", "your own", cases.RIGHT, cases.WRONG, unnamed)
    for family in cases.WRONG:
        line_up.expect_distinguished(None, Probe(0), family, "")
    assert {each.described for each in cases.RIGHT} <= set(asked)
