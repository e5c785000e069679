"""The fixture ``results``: what the judge measures of a file that was handed in, as a hidden check asks for it."""

from __future__ import annotations

from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.checks.results import BY_CHANCE, handed_in, noting
from vit_course.exercises.judging.exam import Exam, Measured

# of ten classes; whoever knows nothing is right on a tenth
_CHANCE = 0.2


class Results:
    """What a student handed in, and the exam that it sits.

    Args:
        student: gives the file when called.
        exam: measures the model in it.
    """

    def __init__(self, student: Student, exam: Exam) -> None:
        self._student = student
        self._exam = exam

    def measured(self) -> Measured:
        """The accuracy of the model.

        Raises:
            Failure: the file cannot be used.
            Undecided: the grader has no images.
        """
        file = handed_in(self._student)
        return noting(self._student, lambda: self._exam.measure(file))

    def expect_at_least(self, percent: float) -> None:
        """Fail unless the model is right on so many percent of the held-out images."""
        measured = self.measured()
        self._student.record.append(("measured", BY_CHANCE if measured.share < _CHANCE else str(measured)))
        if measured.share < percent / 100:
            look = "What changed the validation accuracy most in your experiments, and what have you not tried yet?"
            raise Failure(f"it is right on {measured}", f"at least {percent:g} %", look)
