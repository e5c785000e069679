"""What only grading asks of ``vit_cifar``: the accuracy of the model on held-out images of CIFAR-10."""

from __future__ import annotations

from exercise_kit.engine.exercise import CheckFunction
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l07_experiments.model_accuracy import Results
from vit_course.exercises.l07_experiments.vit_cifar.claims import THRESHOLDS, vit_cifar, word_threshold_claim


@vit_cifar.check(graded_only=True, points=1)
def it_can_be_measured(student: Student, probe: Probe, results: Results) -> None:
    """The file is a whole weights file, and its model, of 10 million parameters at most, can classify images."""
    results.measure_accuracy()


def _make_threshold_claim(percent: int) -> CheckFunction:
    def expect_threshold(student: Student, probe: Probe, results: Results) -> None:
        results.expect_accuracy_at_least(percent)

    expect_threshold.__name__ = f"at_least_{percent}_percent"
    expect_threshold.__doc__ = word_threshold_claim(percent)
    return expect_threshold


for _percent, _points in THRESHOLDS.items():
    vit_cifar.check(graded_only=True, points=_points)(_make_threshold_claim(_percent))
