"""One simulated submission: the released notebook, filled in, and what is true of it."""

from __future__ import annotations

import hashlib
import hmac
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from exercise_kit.conventions import make_check_grade_id
from exercise_kit.engine.course import course
from exercise_kit.nbgrader.demo_class import read_model_answers
from exercise_kit.simulate.answer_pool import LessonPools, Variants
from exercise_kit.simulate.answers import SimulatedAnswer
from exercise_kit.simulate.ground_truth import Oracle
from exercise_kit.simulate.profiles import Drawing, StudentProfile
from exercise_kit.submission.released import Lessons

COMMENTS = (
    "# I checked this with the example in the docstring",
    "# TODO: ask in the next session whether the order matters",
    "# not sure about the last axis",
    "# took me two hours ...",
    "# works on my machine :)",
    "# see my notes from the lecture, page 3",
    "# geht das auch kürzer?",
    "# версия 3, теперь правильно",
    "# 这样对吗？",
    "# à revoir : pourquoi transpose ?",
)


@dataclass(frozen=True)
class Written:
    """The parts of a notebook that a student has filled in.

    Attributes: ``answers`` by exercise, ``comments`` by exercise (a line above the code), ``questions`` by their
    names (those that were answered), ``points`` of the exercises.
    """

    answers: Mapping[str, SimulatedAnswer]
    comments: Mapping[str, str]
    questions: Mapping[str, str]
    points: Mapping[str, float]


def fill_in_notebook(released: Mapping[str, Any], written: Written) -> bytes:
    """The bytes of a submitted notebook.

    Args:
        released: the notebook that students got.
        written: what this one wrote.
    """
    cells = [filled for cell in released["cells"] for filled in _fill_released_cell(cell, written)]
    text = json.dumps({**released, "cells": cells}, ensure_ascii=False, indent=1, sort_keys=True)
    return (text + "\n").encode()


def _fill_released_cell(cell: Mapping[str, Any], written: Written) -> Sequence[Mapping[str, Any]]:
    """The cell in the place of a released one; none where the student has deleted it."""
    name = cell.get("metadata", {}).get("nbgrader", {}).get("grade_id")
    answer = written.answers.get(name) if name else None
    if answer is not None:
        if answer.source is None:
            return (cell,)
        comment = written.comments.get(answer.exercise)
        return ({**cell, "source": f"{comment}\n{answer.source}" if comment else answer.source},)
    if name in written.questions:
        return ({**cell, "source": written.questions[name]},)
    checked = next((each for each in written.answers.values() if make_check_grade_id(each.exercise) == name), None)
    return (cell,) if checked is None else _fill_check_cell(cell, checked, written.points.get(checked.exercise, 0.0))


def _fill_check_cell(cell: Mapping[str, Any], answer: SimulatedAnswer, points: float) -> Sequence[Mapping[str, Any]]:
    if answer.check == "":
        return ()
    changed = dict(cell) if answer.check is None else {**cell, "source": answer.check}
    if answer.claimed:
        data = {"text/plain": [repr(float(points))]}
        shown = {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": data}
        changed |= {"outputs": [shown], "execution_count": 1}
    return (changed,)


def read_released_notebook(path: Path) -> dict[str, Any]:
    """A built notebook, as JSON has it."""
    notebook: dict[str, Any] = json.loads(path.read_bytes())
    return notebook


# a lesson is due on a Sunday night, the next one a week later
_FIRST_DUE = datetime(2026, 10, 18, 21, 59, tzinfo=UTC)
_STAMP = "%Y-%m-%d %H:%M:%S UTC"
# the shares of cells with a comment, and of written answers that are short
_COMMENTED, _SHORT = 0.25, 0.4


def make_seeded_random(seed: int, purpose: str) -> random.Random:
    """Draws that depend on the class's seed and on what is drawn, and on nothing that was drawn before."""
    return random.Random(f"{seed} {purpose}")  # a rehearsal, no secret


@dataclass(frozen=True)
class Submitted:
    """What a student hands in for a lesson.

    Attributes: ``student``, ``answers`` by exercise, ``questions`` (name → whether it was answered), ``notebook`` (its
    bytes), ``handed_in`` and ``late``.
    """

    student: str
    answers: Mapping[str, SimulatedAnswer]
    questions: Mapping[str, bool]
    notebook: bytes
    handed_in: datetime
    late: bool


class SimulatedLesson:
    """A lesson of a simulated class.

    Args:
        name: the lesson's.
        class_dir: the class folder.
        root: the clone that the class was made of.
        variants: right variants by exercise.
        seed: of the class.
        week: how many weeks after the first lesson it is due.
    """

    def __init__(self, name: str, class_dir: Path, root: Path, variants: Variants, seed: int, week: int) -> None:
        self.name, self._seed = name, seed
        self._released = Lessons(class_dir, root).get(name)
        self._notebook = read_released_notebook(root / "notebooks" / f"{name}.ipynb")
        self._models = read_model_answers(class_dir, name)
        self.pools = LessonPools(self._released, self._models, variants)
        self._drawing = Drawing(self.pools, seed)
        self.points = {each.name: each.points for each in self._released.exercises}
        self._due = _FIRST_DUE + timedelta(weeks=week)
        marks = (cell["metadata"].get("nbgrader", {}) for cell in self._notebook["cells"])
        question_marks = self._released.find_cells_by_role("question")
        self.questions = {
            each["grade_id"]: each.get("points", 0) for each in marks if each.get("grade_id") in question_marks
        }

    @property
    def due(self) -> str:
        """When it is due, as nbgrader reads it."""
        return self._due.strftime(_STAMP)

    def draw_submission(self, student: str, sort: StudentProfile) -> Submitted:
        """Draw what a student of a sort hands in."""
        draw = make_seeded_random(self._seed, f"{student} {self.name}")
        answers = self._drawing.answers(sort, draw)
        late = draw.random() < sort.late
        hours = draw.uniform(0.2, 40) if late else -draw.expovariate(1 / 30)
        comments = {name: draw.choice(COMMENTS) for name in answers if draw.random() < _COMMENTED}
        questions = {
            name: self._draw_written_answer(name, draw) for name in self.questions if draw.random() >= sort.silent
        }
        notebook = fill_in_notebook(self._notebook, Written(answers, comments, questions, self.points))
        answered_questions = {name: name in questions for name in self.questions}
        return Submitted(student, answers, answered_questions, notebook, self._due + timedelta(hours=hours), late)

    def _draw_written_answer(self, name: str, draw: random.Random) -> str:
        text = self._models[name]
        if draw.random() >= _SHORT:
            return text
        return f"{text.partition(chr(10))[0]}\n\n{draw.choice(course().simulation.short_answers)}"

    def write(self, folder: Path, submitted: Submitted) -> None:
        """Write a submission below a ``submitted`` folder."""
        place = folder / submitted.student / self.name
        place.mkdir(parents=True)
        (place / f"{self.name}.ipynb").write_bytes(submitted.notebook)
        (place / "timestamp.txt").write_text(f"{submitted.handed_in.strftime(_STAMP)}\n", encoding="utf-8")

    def describe_truth(self, submitted: Submitted, secret: bytes, oracle: Oracle) -> dict[str, Any]:
        """Return what grading has to find in a submission, as JSON has it."""

        def key() -> bytes:
            digest = hashlib.sha256(submitted.notebook).hexdigest()
            return hmac.new(secret, digest.encode(), hashlib.sha256).digest()

        exercises = [self._describe_exercise(answer, oracle, key) for answer in submitted.answers.values()]
        return {
            "student": submitted.student,
            "lesson": self.name,
            "status": "graded",
            "handed_in": submitted.handed_in.strftime(_STAMP),
            "late": submitted.late,
            "score": round(sum(each["score"] for each in exercises), 4),
            "max_score": sum(self.points[each["name"]] for each in exercises),
            "flags": sorted({flag for each in submitted.answers.values() for flag in each.flags}),
            "exercises": exercises,
            "questions": [
                {"name": name, "points": points, "answered": submitted.questions[name]}
                for name, points in self.questions.items()
            ],
        }

    def _describe_exercise(self, answer: SimulatedAnswer, oracle: Oracle, key: Any) -> dict[str, Any]:
        expected, points = oracle.predict(answer, key), self.points[answer.exercise]
        return {
            "name": answer.exercise,
            "kind": str(answer.kind),
            "answer": answer.name,
            "misconception": answer.misconception,
            "named": expected.misconception,
            "score": round(points * expected.share, 4),
            "max_score": points,
            "flags": list(answer.flags),
            "checks": dict(expected.verdicts),
        }
