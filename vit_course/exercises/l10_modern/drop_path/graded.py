"""What only grading asks of ``DropPath``."""

from __future__ import annotations

from exercise_kit.engine.evaluate_check import ask_first
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l10_modern.drop_path import claims


@claims.DropPath.check(graded_only=True, points=0.97)
def in_evaluation_nothing_is_dropped(student: Student, probe: Probe) -> None:
    """In evaluation mode the branch is returned unchanged, while training some of the images are dropped."""
    claims.in_evaluation_nothing_is_dropped(student, probe)  # before: tells *only in evaluation* from *never dropped*
    ask_first(claims.an_image_is_dropped_whole_or_kept, student, probe)
