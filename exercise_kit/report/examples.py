"""One anonymous example of a mistake: a student's code, and beside it what the student was told."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from exercise_kit.judge.result import CheckOutcome
from exercise_kit.report.anonymous import Anonymiser, Unshowable
from exercise_kit.report.answers import Answer
from exercise_kit.report.shares import said
from exercise_kit.report.work import ClassWork
from exercise_kit.submission.answers import answers_of
from exercise_kit.submission.notebook_file import Unreadable, open_notebook, open_script, read_bytes
from exercise_kit.submission.released import ReleasedLesson
from exercise_kit.submission.result_file import ResultFile

MOST_READ = 6  # answers of which the shortest is shown
EXPECTED = "Expected"  # never on the page: it may hold what the hidden checks wait for


@dataclass(frozen=True)
class Example:
    """An answer: its ``exercise``, its ``code`` ("" where it cannot be shown), and the message's parts by label."""

    exercise: str
    code: str
    message: Mapping[str, str]


class Examples:
    """Chooses and reads examples.

    Args:
        work: the class's.
        anonymiser: takes names out.
    """

    def __init__(self, work: ClassWork, anonymiser: Anonymiser) -> None:
        self._lessons = {each.name: each.released for each in work.lessons}
        self._anonymiser = anonymiser

    def of(self, answers: Iterable[Answer], fits: Callable[[Answer], bool] = lambda _: True) -> Example:
        """The example of one of the answers, of which there is at least one: of a few that fit, the shortest code.

        Which few is decided by a digest of the file's path, so that it is not the first of the alphabet.
        """
        answers = list(answers)
        chosen = sorted([each for each in answers if fits(each)] or answers, key=_by_chance)[:MOST_READ]
        shown = [(each, self._code(each)) for each in chosen]
        written = [(each, code) for each, code in shown if code]
        best, code = min(written, key=lambda each: (len(each[1]), each[1])) if written else shown[0]
        return Example(best.result.name, code, self.message(best.check))

    def message(self, check: CheckOutcome | None) -> dict[str, str]:
        """What a student was told, by label; what was expected is left out."""
        if check is None:
            return {}
        parts = dict(check.parts) or {"Seen": said(check)}
        return {label: self._anonymiser.text(text) for label, text in parts.items() if label != EXPECTED and text}

    def _code(self, answer: Answer) -> str:
        lesson = self._lessons.get(answer.work.lesson or "")
        if lesson is None:
            return ""
        objects = next((each.objects for each in lesson.exercises if each.name == answer.result.name), ())
        try:
            return self._anonymiser.code(_source(answer, lesson), objects)
        except (Unshowable, Unreadable):
            return ""


def _by_chance(answer: Answer) -> str:
    return hashlib.sha256(str(answer.work.path).encode("utf-8", "surrogateescape")).hexdigest()


def _source(answer: Answer, lesson: ReleasedLesson) -> str:
    """The source of the cell that holds an answer; "" where there is none, or only a file."""
    path = answer.work.path
    content = read_bytes(path)
    file = open_script(content) if path.suffix.lower() == ".py" else open_notebook(content)
    found, _ = answers_of(file.cells, lesson, (answer.result.name,), False, lambda name: ResultFile(name, "", "", " "))
    return (found[0].source or "") if found else ""
