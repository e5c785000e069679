"""``pytest tests/hidden --submission FILE``: pytest itself evaluates the hidden checks on one submission.

The student's code runs in a worker, as with ``vit-course grade``, and never in pytest's process. What only the judge
does is left out: points, names of mistakes, and the rules on what an exercise forbids.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from exercise_kit.engine.class_exercises import in_use
from exercise_kit.engine.course import course
from exercise_kit.engine.student import Student
from exercise_kit.sandbox.devices import checked, missing_protections
from exercise_kit.sandbox.limits import WorkerLost
from exercise_kit.sandbox.package_view import view_of
from exercise_kit.sandbox.remote_backend import RemoteStudent
from exercise_kit.sandbox.sandbox import Sandbox, Worker
from exercise_kit.submission.find import find
from exercise_kit.submission.parse import read
from exercise_kit.submission.released import Lessons
from exercise_kit.submission.result_file import contents
from exercise_kit.submission.submission import ExerciseAnswer, Submission


class EvaluatedSubmission:
    """One submission, and the worker in which its cells have run; closed at the end of pytest's session.

    Args:
        path: a notebook, or a ``.py`` file with an exercise's names.
        device: as on the command line.

    Raises:
        ValueError: it is no submission, or the device or a sandbox is not there; the message says what to do.
    """

    def __init__(self, path: Path, device: str) -> None:
        device = checked(device)
        if missing_protections(device):
            raise ValueError(
                "this machine has no sandbox for a student's code; 'vit-course doctor' says what is missing"
            )
        self._submission = _read(path)
        self._answers = {each.name: each for each in self._submission.exercises}
        lesson = self._submission.lesson
        self._view = view_of(lesson) if lesson else None
        self._sandbox = Sandbox(views=[self._view] if self._view else [], device=device)
        self._worker: Worker | None = None

    def close(self) -> None:
        """End the worker."""
        self._sandbox.close()

    def student(self, exercise: str) -> Student:
        """Whoever answers the checks of ``exercise``; pytest's own outcomes where the submission does not."""
        answer = self._answers.get(exercise)
        if answer is None:
            pytest.skip(f"the submission is not evaluated on {exercise}")
        if answer.file:
            return _of_file(answer)
        if answer.source is None:
            pytest.fail(answer.problem or f"{exercise} is not written", pytrace=False)
        try:
            return RemoteStudent(self._ready_worker(), course().exercises[exercise].objects)
        except WorkerLost as lost:
            pytest.fail(f"the submission {lost.words}", pytrace=False)

    def _ready_worker(self) -> Worker:
        if self._worker is None or self._worker.lost:
            self._worker = self._sandbox.worker(self._view)
            for _ in self._worker.run(self._submission.cells):
                pass
        return self._worker


def _read(path: Path) -> Submission:
    lessons = Lessons(in_use().folder)
    handed_in = find([path], lessons.names)
    if len(handed_in) != 1:
        raise ValueError(f"{path} is not one submission: name a notebook, or a .py file with an exercise's names")
    submission = read(handed_in[0], lessons)
    if submission.rejected or not submission.exercises:
        raise ValueError(f"{path} cannot be evaluated: {submission.reason or 'it holds no exercise of the course'}")
    return submission


def _of_file(answer: ExerciseAnswer) -> Student:
    if answer.problem or answer.file is None:
        pytest.fail(answer.problem or f"{answer.name} is not there", pytrace=False)
    handed_in = contents(answer.file)
    return Student({answer.name: lambda: handed_in})
