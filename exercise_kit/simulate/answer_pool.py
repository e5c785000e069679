"""Every answer that a simulated student may give to the exercises of a lesson."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from exercise_kit.engine.course import course
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.engine.exercise import Exercise, Misconception
from exercise_kit.engine.run import explain_unrecognized_pair_of_mistakes
from exercise_kit.engine.two_mistakes import list_pairs
from exercise_kit.simulate.answers import Kind, Outcome, SimulatedAnswer, make_crashing_answers, make_hostile_answers
from exercise_kit.simulate.cells import write_cell
from exercise_kit.simulate.modules import NoSource
from exercise_kit.simulate.scopes import inline_required_cells, rewrite_in_other_style
from exercise_kit.submission.copied_reference import describe_copy
from exercise_kit.submission.flags import COPIED, POSSIBLE_BYPASS
from exercise_kit.submission.possible_bypass import find_possible_bypass
from exercise_kit.submission.released import ReleasedLesson
from exercise_kit.submission.slice import find_used_globals, parse
from exercise_kit.submission.submission import CellSource

Variants = Mapping[str, tuple[tuple[Any, ...], ...]]


@dataclass(frozen=True, eq=False)
class AnswerPool:
    """The answers to one exercise, by kind; a kind may have none.

    Attributes: ``exercise``, ``points`` that it is worth, and the ``lesson``'s other shelves.
    """

    exercise: Exercise
    points: float
    lesson: LessonPools

    @cached_property
    def right(self) -> tuple[SimulatedAnswer, ...]:
        """The model answer, the same in other words, and the right variants of the course's tests."""
        if self.exercise.file:
            return ()
        model = self._model
        own = [self._make_answer(Kind.RIGHT, name, source, Outcome.PASSES) for name, source in model.items()]
        return (*own, *self._make_variants())

    @property
    def misconceptions(self) -> tuple[Misconception, ...]:
        """The library's mistakes of this exercise, where it is answered in a cell."""
        return () if self.exercise.file else tuple(self.exercise.misconceptions)

    def explain_omitted_mistakes(self) -> dict[str, str]:
        """Misconceptions of which no cell can be made → why."""
        made = {each.name: self._make_mistaken_answer(each, Kind.MISCONCEPTION) for each in self.misconceptions}
        return {name: each for name, each in made.items() if isinstance(each, str)}

    @cache  # noqa: B019  # a shelf lives as long as its class is made
    def answer_with_mistake(self, mistake: Misconception) -> SimulatedAnswer | None:
        """A misconception as an answer; None where no cell can be made of it."""
        made = self._make_mistaken_answer(mistake, Kind.MISCONCEPTION)
        return made if isinstance(made, SimulatedAnswer) else None

    @cached_property
    def unwritten(self) -> tuple[SimulatedAnswer, ...]:
        """The cell as it was released."""
        name = "no file" if self.exercise.file else "stub"
        return (SimulatedAnswer(self.exercise.name, Kind.UNWRITTEN, name, None, Outcome.FAILS),)

    @cached_property
    def crashing(self) -> tuple[SimulatedAnswer, ...]:
        """Cells that break."""
        if self.exercise.file:
            return ()
        right = self.right[1]
        return tuple(map(self._add_flags, make_crashing_answers(self.exercise, right.source or "", right.uses)))

    def hostile(self, wrong_answer: SimulatedAnswer) -> tuple[SimulatedAnswer, ...]:
        """Attacks that go with a wrong answer; none where there is a rule, as attacks look like a bypass."""
        return (
            ()
            if self.exercise.name in course().rules
            else tuple(map(self._add_flags, make_hostile_answers(wrong_answer, self.points)))
        )

    @cached_property
    def two(self) -> tuple[Misconception, ...]:
        """The library's pairs of mistakes."""
        return () if self.exercise.file else list_pairs(self.exercise)

    @cache  # noqa: B019  # a shelf lives as long as its class is made
    def answer_with_pair(self, pair: Misconception) -> SimulatedAnswer | None:
        """Two mistakes at once as an answer; None where no cell can be made of them, or where one hides the other."""
        made = self._make_mistaken_answer(pair, Kind.TWO)
        return (
            made
            if isinstance(made, SimulatedAnswer) and not explain_unrecognized_pair_of_mistakes(self.exercise, pair)
            else None
        )

    def make_self_contained(self, answer: SimulatedAnswer) -> SimulatedAnswer:
        """The same answer with its own copy of what it takes from other exercises of the lesson."""
        if not answer.uses:
            return answer
        pools = list(self.lesson.find_needed_pools(answer.uses))
        names = {name: f"{self.exercise.name}_{name}" for each in pools for name in each.exercise.objects}
        required_cells = [each.right[0].source or "" for each in pools]
        return self._add_flags(
            replace(answer, source=inline_required_cells(answer.source or "", required_cells, names), uses=())
        )

    @property
    def _model(self) -> dict[str, str]:
        source = self.lesson.models[self.exercise.name]
        return {"model answer": source, "model answer in other words": rewrite_in_other_style(source)}

    def _make_variants(self) -> Iterator[SimulatedAnswer]:
        for objects in self.lesson.variants.get(self.exercise.name, ()):
            source = self._write_cell_or_none(objects)
            if source is not None and not self._find_suspicious_code(source):
                name = " and ".join(each.__name__.replace("_", " ") for each in objects)
                yield self._make_answer(Kind.RIGHT, name, source, Outcome.PASSES)

    def write_mistake_cell(self, mistake: Misconception) -> str:
        """The cell that holds a misconception.

        Raises:
            NoSource: none can be made.
        """
        return write_cell(
            self._map_names_to_objects(mistake.objects), self.exercise.name, self.lesson.keeps, self._stand_ins
        )

    def _make_mistaken_answer(self, mistake: Misconception, kind: Kind) -> SimulatedAnswer | str:
        """The answer that holds a misconception, or why there is none."""
        try:
            source = self.write_mistake_cell(mistake)
        except NoSource as reason:
            return str(reason)
        if used := self._find_suspicious_code(source):
            return f"it uses {used}, which no answer needs"
        return replace(
            self._make_answer(kind, mistake.name, source, Outcome.ASK),
            objects=tuple(mistake.objects),
            misconception=mistake.name,
        )

    def _make_answer(self, kind: Kind, name: str, source: str, outcome: Outcome) -> SimulatedAnswer:
        uses = self.lesson.find_used_exercises(self, source)
        return self._add_flags(SimulatedAnswer(self.exercise.name, kind, name, source, outcome, uses=uses))

    def _add_flags(self, answer: SimulatedAnswer) -> SimulatedAnswer:
        """The same answer, with the flags that its cell, as it stands, gets from whoever reads it."""
        name, objects, source = answer.exercise, self.exercise.objects, answer.source or ""
        cells = CellSource(0, "import torch\nfrom torch import nn"), CellSource(1, source)
        found = {
            COPIED: describe_copy(name, objects, source, self.lesson.released),
            POSSIBLE_BYPASS: find_possible_bypass(name, objects, cells),
        }
        flags = [flag for flag in answer.flags if flag not in found]
        return replace(answer, flags=(*flags, *(flag for flag, why in found.items() if why)))

    def _write_cell_or_none(self, objects: tuple[Any, ...]) -> str | None:
        try:
            return write_cell(self._map_names_to_objects(objects), self.exercise.name, self.lesson.keeps)
        except NoSource:
            return None

    def _map_names_to_objects(self, objects: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self.exercise.objects, objects, strict=True))

    def _find_suspicious_code(self, source: str) -> str:
        """Return what a person would look at in a cell; "": nothing."""
        found = find_possible_bypass(self.exercise.name, self.exercise.objects, (CellSource(0, source),))
        return found.used if found else ""

    @property
    def _stand_ins(self) -> Mapping[str, str]:
        return course().simulation.stand_ins.get(self.exercise.name, {})


class LessonPools:
    """The answers to all exercises of a lesson.

    Args:
        lesson: as it was released.
        models: the model answers' sources by exercise, as students would write them.
        variants: right variants by exercise, each a tuple of objects.
    """

    def __init__(self, lesson: ReleasedLesson, models: Mapping[str, str], variants: Variants) -> None:
        self.released, self.models, self.variants = lesson, models, variants
        self._number = int(lesson.name[:2])
        self.pools = {
            each.name: AnswerPool(course().exercises[each.name], each.points, self)
            for each in lesson.exercises
            if each.name in course().exercises
        }

    def keeps(self, module: str) -> bool:
        """Say whether a module of the package is there when this lesson is graded."""
        name = module.removeprefix(read_package_name()).lstrip(".").replace(".", "/") or "__init__"
        return course().modules.are_there(name, self._number)

    def find_used_exercises(self, pool: AnswerPool, source: str) -> tuple[str, ...]:
        """The other exercises of the lesson whose objects a cell calls."""
        tree = parse(source)
        used = find_used_globals(tree) or frozenset() if tree else frozenset()
        others = (each for each in self.pools.values() if each is not pool)
        return tuple(each.exercise.name for each in others if not used.isdisjoint(each.exercise.objects))

    def find_needed_pools(self, exercises: tuple[str, ...]) -> Iterator[AnswerPool]:
        """The exercises and those that their model answers use, these first."""
        for pool in self.pools.values():  # a lesson's exercises build on those before
            chain = set(exercises)
            for _ in self.pools:
                chain |= {used for name in chain for used in self.pools[name].right[0].uses}
            if pool.exercise.name in chain:
                yield pool
