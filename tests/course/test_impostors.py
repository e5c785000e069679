"""What asks a student's test: every right answer, every impostor of a family, and again where a draw decides."""

import re

import pytest
import torch

from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.impostors import LineUp, Suspect, add_graded_suspects
from vit_course.exercises.l03_attention.is_attention import suspects as of_attention
from vit_course.exercises.l04_block.is_layer_norm import suspects as of_layer_norm
from vit_course.exercises.l10_modern.is_rotary import suspects as of_rotary


def hide_name_of_function(function):
    return lambda x: function(x)


LINE_UP = LineUp(
    "a double",
    "your own double",
    [Suspect("doubles its input", lambda x: 2 * x)],
    [Suspect("adds its input to itself", lambda x: x + x)],
    {
        "factor": add_graded_suspects(
            lambda probe: [Suspect("halves its input", lambda x: x / 2)],
            lambda probe: [Suspect("adds two", lambda x: x + 2)],
        ),
        "power": lambda probe: [Suspect("squares its input", lambda x: x * x)],
    },
    hide_name_of_function,
)
SECRET, SHOWING = Probe(0), Probe(0, is_secret=False)


def make_student(answer):
    return Student({"is_double": answer})


def is_double(function):
    return function(3.0) == 6.0


def test_a_right_test_passes():
    asked = make_student(is_double)
    LINE_UP.expect_right_passes(asked, SHOWING)
    for probe in (SHOWING, SECRET):
        LINE_UP.expect_family_is_caught(asked, probe, "factor", "")
        LINE_UP.expect_family_is_caught(asked, probe, "power", "")


def test_grading_asks_about_others_too():
    wants_five = make_student(lambda function: function(3.0) in (5.0, 6.0))
    LINE_UP.expect_family_is_caught(wants_five, SHOWING, "factor", "")
    with pytest.raises(Failure, match="is True for a double that adds two"):
        LINE_UP.expect_family_is_caught(wants_five, SECRET, "factor", "")


def test_an_impostor_that_slips_through_is_told_by_what_it_does():
    with pytest.raises(Failure, match=r"is_double\(double\) is True for a double that squares its input") as caught:
        LINE_UP.expect_family_is_caught(
            make_student(lambda function: function(2.0) == 4.0), SHOWING, "power", "Which number?"
        )
    assert (caught.value.expected, caught.value.look) == ("False", "Which number?")


def test_a_refusal_is_told_by_how_often_it_came():
    refuses = make_student(lambda function: bool(torch.rand(()) < 0.5) and is_double(function))
    with pytest.raises(Failure) as caught:
        LINE_UP.expect_right_passes(refuses, SHOWING)
    assert re.search(r"is right: it doubles its input, in [12] of 3 tries$", caught.value.seen)


@pytest.mark.parametrize(
    ("answer", "seen"), [(None, "gives None"), (torch.ones(2), "gives a Tensor"), ("yes", "gives a str")], ids=str
)
def test_what_is_neither_true_nor_false_is_told(answer, seen):
    asked = make_student(lambda function: answer)
    for ask in (
        lambda: LINE_UP.expect_right_passes(asked, SHOWING),
        lambda: LINE_UP.expect_family_is_caught(asked, SECRET, "factor", ""),
    ):
        with pytest.raises(Failure) as caught:
            ask()
        assert seen in caught.value.seen


def test_a_test_that_raises_is_asked_to_answer():
    def assert_is_double(function):
        assert is_double(function)
        return True

    with pytest.raises(Failure) as caught:
        LINE_UP.expect_family_is_caught(make_student(assert_is_double), SECRET, "power", "")
    assert "it was asked about a double that squares its input" in caught.value.seen
    assert "is_double should still answer" in caught.value.look


@pytest.fixture(params=[of_attention, of_layer_norm, of_rotary], ids=lambda each: each.__name__.split(".")[-2])
def lineup(request):
    """The suspects of an exercise."""
    return request.param.LINE_UP


def test_grading_asks_about_every_suspect(lineup, monkeypatch):
    asked = []
    monkeypatch.setattr(
        LineUp, "_ask_about_suspect", lambda self, student, suspect, *_: asked.append(suspect.described)
    )
    every = {each.described for each in (*lineup.right, *lineup.more_right)}
    for name, draw in lineup.wrong.items():
        lineup.expect_family_is_caught(None, Probe(0), name, "")
        every |= {each.described for each in draw(Probe(0))}
    assert set(asked) == every


def test_grading_asks_about_all_that_check_does_and_more(lineup):
    shown, graded = ([len(draw(probe)) for draw in lineup.wrong.values()] for probe in (SHOWING, SECRET))
    assert all(few <= many for few, many in zip(shown, graded, strict=True))
    assert sum(graded) >= 1.5 * sum(shown)
    assert lineup.more_right


@pytest.mark.parametrize("probe", [SECRET, SHOWING], ids=["secret", "shown"])
def test_a_suspect_is_written_once(lineup, probe):
    wrong = [each.described for draw in lineup.wrong.values() for each in draw(probe)]
    every = [*wrong, *(each.described for each in (*lineup.right, *lineup.more_right))]
    assert len(every) == len(set(every))
