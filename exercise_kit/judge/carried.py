"""An error carried forward is reported, and not paid twice.

An answer that calls another exercise's answer fails when that one is wrong. So it is evaluated a second time, with the
model solutions of its parts in their places: a check that passes then counts as passed, and the report says where the
mistake is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from exercise_kit.engine.verdict import Verdict
from exercise_kit.judge.hidden import Outcome
from exercise_kit.submission.submission import CellSource, ExerciseAnswer


def cells_with_parts(cells: Sequence[CellSource], answer: ExerciseAnswer) -> list[CellSource]:
    """A submission's cells, and the model solutions of an answer's parts.

    They stand before the answer's cell, for what it looks up while it runs, and at the end, for what it looks up when
    it is called.
    """
    model = "\n\n".join(part.source for part in answer.parts)
    before = [each for each in cells if answer.cell is None or each.index < answer.cell]
    after = list(cells[len(before) :])
    last = max((each.index for each in cells), default=0) + 1
    return [*before, CellSource(last, model), *after, CellSource(last + 1, model)]


def merge(first: Sequence[Outcome], second: Sequence[Outcome]) -> tuple[list[Outcome], int]:
    """The outcomes that count, and how many checks pass only with the model solutions of the parts.

    Args:
        first: with the student's own parts; of a class of which something is not written, its checks earn nothing.
        second: of the same checks, with the model solutions; those that could not be evaluated are missing.
    """
    again = {each.check.name: each for each in second}
    gained = {name for name, each in again.items() if each.result.verdict == Verdict.PASS} & {
        each.check.name for each in first if each.result.verdict == Verdict.FAIL
    }
    if not gained:
        return list(first), 0
    return [_better(each, again.get(each.check.name, each)) for each in first], len(gained)


def _better(first: Outcome, second: Outcome) -> Outcome:
    """The second where it passes, and its record for the mistake's name; of a second failure no word is shown.

    The model solution stood beside the answer then, and a hostile one could put it into an exception's text or a
    class's name.
    """
    if first.result.verdict == Verdict.PASS:
        return first
    return second if second.result.verdict == Verdict.PASS else replace(first, record=second.record)
