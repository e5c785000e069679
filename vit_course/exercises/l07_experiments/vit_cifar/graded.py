"""What only grading asks of ``vit_cifar``: the accuracy of the model on held-out images of CIFAR-10."""

from __future__ import annotations

from exercise_kit.engine.exercise import CheckFunction
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l07_experiments.model_accuracy import Results
from vit_course.exercises.l07_experiments.vit_cifar.claims import THRESHOLDS, claim, vit_cifar


@vit_cifar.check(graded_only=True, points=1)
def it_can_be_measured(student: Student, probe: Probe, results: Results) -> None:
    """The file is a whole weights file, and its model, of 10 million parameters at most, can classify images."""
    results.measured()


def _at_least(percent: int) -> CheckFunction:
    def check(student: Student, probe: Probe, results: Results) -> None:
        results.expect_at_least(percent)

    check.__name__ = f"at_least_{percent}_percent"
    check.__doc__ = claim(percent)
    return check


for _percent, _points in THRESHOLDS.items():
    vit_cifar.check(graded_only=True, points=_points)(_at_least(_percent))
