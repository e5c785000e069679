"""How a mistake looks in training: derived from what was measured, or decided by hand."""

import json
from pathlib import Path

import pytest

from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.in_training import NOT_MEASURED, TIE, InTraining, TrainingEffect, find_training_effect
from exercise_kit.engine.verdict import Cause, CheckResult, Verdict
from vit_course.exercises.catalog import EXERCISES

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "broken_vit_all.json"
RIGHT = {"accuracy": 0.41, "loss": 1.58, "classes": 10}


def make_effect(accuracy=0.41, loss=1.58):
    return find_training_effect(
        "Mlp: x", {"right": RIGHT, "mistakes": {"Mlp: x": {"accuracy": accuracy, "loss": loss}}}
    )


@pytest.mark.parametrize(
    ("accuracy", "loss", "kind"),
    [
        (0.41, 1.58, InTraining.HIDDEN),
        (0.41 - TIE + 1e-6, 1.58, InTraining.HIDDEN),
        (0.41 - TIE - 1e-6, 1.58, InTraining.WORSE),
        (0.41 + TIE + 1e-6, 1.58, InTraining.BETTER),
        (0.36, 2.09, InTraining.WORSE),
        (0.10, 2.30, InTraining.STUCK),
    ],
)
def test_the_kind_follows_from_accuracy_and_loss(accuracy, loss, kind):
    assert make_effect(accuracy, loss) == TrainingEffect(kind, accuracy, 0.41)


def test_what_equals_another_mistake_looks_like_it_and_what_equals_the_right_model_is_not_seen():
    known = {
        "right": RIGHT,
        "mistakes": {
            "Mlp: x": {"accuracy": 0.3, "loss": 1.8},
            "Mlp: y": {"same_as": "Mlp: x"},
            "Mlp: z": {"same_as": "right"},
            "Mlp: w": {"stops": "RuntimeError: no"},
        },
    }
    assert (
        find_training_effect("Mlp: y", known)
        == find_training_effect("Mlp: x", known)
        == TrainingEffect(InTraining.WORSE, 0.3, 0.41)
    )
    assert find_training_effect("Mlp: z", known) == TrainingEffect(InTraining.UNSEEN)
    assert find_training_effect("Mlp: w", known) == TrainingEffect(InTraining.STOPS)
    assert find_training_effect("Mlp: v", known) == NOT_MEASURED


def test_only_what_was_measured_is_reported():
    assert TrainingEffect(InTraining.WORSE).sentence == ""
    measured = "With this bug, a small ViT reached 34.6% on CIFAR-10; without the bug, 41.0%"
    assert make_effect(0.346).sentence == f"{measured} (one run each, ± 2 points)."


@pytest.mark.parametrize("accuracy", [0.41, 0.41 - TIE + 1e-6, 0.41 + TIE + 1e-6, 0.5])
def test_a_run_that_shows_nothing_is_not_reported_and_no_bug_reads_as_an_improvement(accuracy):
    assert make_effect(accuracy).sentence == ""


def test_a_report_tells_it_after_the_explanation():
    cause = Cause("no activation", "Nothing stands between.", "What?", "04_block, Gate", make_effect(0.3).sentence)
    result = CheckResult("it_bends", "It bends.", Verdict.FAIL, "seen", causes=(cause,))
    assert list(result.parts()) == ["Seen", "Likely cause", "Where to look"]
    assert result.parts()["Likely cause"].startswith("This looks like *no activation*: Nothing stands between. With")


def test_a_decision_by_hand_goes_before_the_exercises_and_that_before_what_was_measured():
    exercise = Exercise("Mlp", "04_block", in_training=InTraining.HIDDEN)

    def no_activation():
        """Nothing stands between."""

    exercise.misconception("What?", "04_block, Gate")(no_activation)
    exercise.misconception("What?", "04_block, Gate", InTraining.STOPS)(no_activation)
    assert [each.effect.kind for each in exercise.misconceptions] == [InTraining.HIDDEN, InTraining.STOPS]


def test_what_the_benchmark_has_decided_is_told():
    """A mistake that it does not know yet is said to be not measured; nobody has to train it before it lands."""
    found = json.loads(RESULTS.read_text())
    trained = {row["name"] for row in found["rows"]} - {"right"}
    unmeasured = {
        f"{exercise.name}: {wrong.name}"
        for exercise in {id(each.misconceptions): each for each in reversed(EXERCISES.values())}.values()
        for wrong in exercise.misconceptions
        if wrong.effect.kind == InTraining.UNMEASURED
    }
    decided = trained | {
        key for key in found["not_trained"] if _find_equivalent_mistake(key, found) not in found["not_run_yet"]
    }
    assert not unmeasured & decided


def _find_equivalent_mistake(key, found):
    return found["not_trained"][key].removeprefix("same logits and gradients as ")


def test_every_word_stands_for_some_mistake():
    used = {wrong.effect.kind for exercise in EXERCISES.values() for wrong in exercise.misconceptions}
    assert used >= set(InTraining) - {InTraining.UNMEASURED}
