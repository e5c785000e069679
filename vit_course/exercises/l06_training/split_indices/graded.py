"""What only grading asks of ``split_indices``."""

from __future__ import annotations

from exercise_kit.engine.examples import expect_docstring_example
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l06_training.split_indices import claims


@claims.split_indices.check(graded_only=True, points=0.15)
def its_own_example_comes_out(student: Student, probe: Probe) -> None:
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    claims.expect_whole_split(student, probe)
    expect_docstring_example(student)
