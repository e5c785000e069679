"""What only grading asks of ``parameter_groups``."""

from __future__ import annotations

from exercise_kit.engine.examples import expect_docstring_example
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l06_training.parameter_groups import claims


@claims.parameter_groups.check(graded_only=True, points=0.2)
def a_model_of_one_kind(student: Student, probe: Probe) -> None:
    """If all parameters of a model belong to one group, the other group is there, too, and is empty."""
    parts = {f"part.{number}": ("LayerNorm", (size,)) for number, size in enumerate(probe.sizes(2))}
    claims.expect_right_groups(
        student, parts | {"bias": ("Parameter", probe.sizes(1))}, claims.draw_weight_decay(probe)
    )


@claims.parameter_groups.check(graded_only=True, points=0.1)
def its_own_example_comes_out(student: Student, probe: Probe) -> None:
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    claims.expect_right_groups(student, {"layer": ("Linear", probe.sizes(2))}, claims.draw_weight_decay(probe))
    expect_docstring_example(student)
