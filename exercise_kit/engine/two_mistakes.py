"""Two mistakes at once: how both are made in one implementation, and which two are worth evaluating.

Two edits of the exercise's program that touch different lines are both made. Where an answer rearranges its input, both
rearrangements follow one another, too; numbered inputs show where each number goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.exercise import Exercise, Misconception
from exercise_kit.engine.mistakes import Edit
from exercise_kit.engine.program import Implementations
from exercise_kit.engine.records import is_same_record
from exercise_kit.engine.verdict import BETWEEN, Cause

Function = Callable[..., Any]


@dataclass(frozen=True)
class Layout:
    """An exercise whose answers rearrange the numbers of the first input.

    Attributes: ``right`` (the oracle), ``inputs`` on which mistakes of layout show, and the ``place`` of the function
    among the exercise's objects.
    """

    right: Function
    inputs: tuple[Any, ...]
    place: int = 0


def is_rearrangement(layout: Layout, wrong_function: Function) -> bool:
    """Say whether a wrong answer has the numbers of the right one in other places."""
    answer = _call_on_numbered_inputs(wrong_function, layout.inputs)
    order = None if answer is None else _find_number_order(layout, answer, layout.inputs)
    return order is not None and not (order == torch.arange(len(order))).all()


def agree_on_numbers(layout: Layout, first_function: Function, second_function: Function) -> bool:
    """Say whether two answer alike on numbered inputs."""
    first, second = (_call_on_numbered_inputs(each, layout.inputs) for each in (first_function, second_function))
    return first is not None and second is not None and first.shape == second.shape and torch.equal(first, second)


def _call_on_numbered_inputs(function: Function, inputs: tuple[Any, ...]) -> Tensor | None:
    try:
        answer = function(_make_numbered_tensor(inputs[0]), *inputs[1:])
    except (RuntimeError, ValueError, IndexError):
        return None
    return answer if isinstance(answer, Tensor) else None


def _make_numbered_tensor(like: Tensor) -> Tensor:
    return torch.arange(like.numel(), dtype=torch.float64).reshape(like.shape)


def _find_number_order(layout: Layout, answer: Tensor, inputs: Sequence[Any]) -> Tensor | None:
    """For each number of an answer to numbered inputs its place in the right answer; None where one has none."""
    right = layout.right(_make_numbered_tensor(inputs[0]), *inputs[1:]).flatten().long()
    found = answer.flatten().long()
    if not torch.equal(found.sort().values, right.sort().values):
        return None
    places = torch.empty(int(right.max()) + 1, dtype=torch.int64)
    places[right] = torch.arange(len(right))
    return places[found]


def rearrange(layout: Layout, outer: Function, inner: Function, *inputs: Any) -> Any:
    """Rearrange what ``inner`` gives as ``outer`` rearranges the right answer; leave it where that cannot be."""
    pattern = outer(_make_numbered_tensor(inputs[0]), *inputs[1:])
    answer = inner(*inputs)
    try:
        order = _find_number_order(layout, pattern, inputs)
        shape = layout.right(_make_numbered_tensor(inputs[0]), *inputs[1:]).shape
    except (RuntimeError, ValueError):
        return answer
    if order is None or not isinstance(answer, Tensor) or answer.numel() != len(order):
        return answer
    return answer.flatten()[order.to(answer.device)].reshape(answer.shape if pattern.shape == shape else pattern.shape)


@dataclass(frozen=True, kw_only=True)
class Pair(Misconception):
    """Two misconceptions in one implementation.

    Attributes:
        first, second: in the order of the library. Where it matters which comes first, two pairs have one cause.
    """

    first: Misconception
    second: Misconception

    @property
    def both(self) -> tuple[Misconception, Misconception]:
        """The two."""
        return self.first, self.second


@dataclass(frozen=True)
class Edits:
    """An exercise whose mistakes are edits of its program, which needs no word but on its time.

    Attributes: ``quick``, whether a call takes next to no time; ``slow``, whether it takes as long as a whole model.
    """

    quick: bool = False
    slow: bool = False


MOST_PAIRS, MOST_OF_QUICK, MOST_OF_SLOW = 60, 200, 8
Source = Layout | Edits
_DECLARED: list[tuple[list[Misconception], Source]] = []
_BUILT: dict[int, tuple[int, tuple[Pair, ...]]] = {}


def declare_pairs(exercise: Exercise, source: Source) -> None:
    """Say where an exercise's pairs come from, or what they take; of edits none needs a word but on its time."""
    _DECLARED.append((exercise.misconceptions, source))
    _BUILT.clear()


def list_pairs(exercise: Exercise) -> tuple[Pair, ...]:
    """Every two mistakes of an exercise that can be made at once, as one implementation; built once.

    Some may do no more than one of the two, or than nothing: see
    :func:`exercise_kit.engine.run.explain_unrecognized_pair_of_mistakes`.
    """
    library = exercise.misconceptions
    count, built = _BUILT.get(id(library), (-1, ()))
    if count != len(library):
        built = tuple(_build_pairs(exercise))
        _BUILT[id(library)] = len(library), built
    return built


def get_most_pairs_evaluated(exercise: Exercise) -> int:
    """Return how many pairs may be evaluated for one answer; each takes a check's time."""
    sources = [source for library, source in _DECLARED if library is exercise.misconceptions]
    if any(isinstance(each, Edits) and each.slow for each in sources):
        return MOST_OF_SLOW
    return MOST_OF_QUICK if any(isinstance(each, Layout) or each.quick for each in sources) else MOST_PAIRS


def join_causes(first: Cause, second: Cause) -> Cause:
    """The cause of both at once, with the question that leads out of the first."""
    explanation = f"Two mistakes at once. {first.explanation} {second.explanation}"
    name, pages = f"{first.name}{BETWEEN}{second.name}", first.pages + second.pages
    return Cause(name, explanation, first.question, first.section, pages=pages)


def _build_pairs(exercise: Exercise) -> Iterator[Pair]:
    sources = [source for library, source in _DECLARED if library is exercise.misconceptions]
    layouts: list[Way] = [partial(_combine_layouts, each, {}) for each in sources if isinstance(each, Layout)]
    for first, second in combinations(exercise.misconceptions, 2):
        for way in (*layouts, _combine_edits):
            made = list(way(first, second))
            for objects in made:
                yield Pair(cause=join_causes(first.cause, second.cause), objects=objects, first=first, second=second)
            if made:
                break


Objects = Sequence[Function]
Way = Callable[[Misconception, Misconception], Iterator[Objects]]


def _get_wrong_function(mistake: Misconception) -> Function:
    return mistake.objects[mistake.place]


def _replace_wrong_function(mistake: Misconception, function: Function) -> Objects:
    return (*mistake.objects[: mistake.place], function, *mistake.objects[mistake.place + 1 :])


def _combine_edits(first: Misconception, second: Misconception) -> Iterator[Objects]:
    """Both edits of one program, where they touch different lines.

    The program's names are those of the mistakes: a bug hunt that shares them calls its own objects otherwise.
    """
    if isinstance(first, Edit) and isinstance(second, Edit) and not first.bug.touches(second.bug):
        yield Implementations(first.program, (first.bug, second.bug), first.objects.names)


def _combine_layouts(
    layout: Layout, is_rearrangement_by_name: dict[str, bool], first: Misconception, second: Misconception
) -> Iterator[Objects]:
    """Both rearrangements, in both orders where these differ; a layout and any other mistake in one order."""
    if {first.place, second.place} != {layout.place}:
        return
    for each in (first, second):
        is_rearrangement_by_name.setdefault(each.name, is_rearrangement(layout, _get_wrong_function(each)))
    orders = [pair for pair in ((first, second), (second, first)) if is_rearrangement_by_name[pair[1].name]]
    made = [
        _replace_wrong_function(
            inner, partial(rearrange, layout, _get_wrong_function(outer), _get_wrong_function(inner))
        )
        for inner, outer in orders
    ]
    if len(made) == 2 and agree_on_numbers(layout, made[0][layout.place], made[1][layout.place]):
        del made[1]
    yield from made


Record = list[object]
Path = tuple[int, ...]
_NOWHERE, _STUDENT = -1, 0  # numbers of values at a place: of what has none there, and of the student's own


class Evidence:
    """A failed check, taken apart: the value at each place of the student's record, and of each misconception's record.

    Equal values at one place have one number, so that pairs are compared by numbers alone.

    Args:
        student: the record of the student.
        others: for each misconception's cause its record.
    """

    def __init__(self, student: Record, others: Mapping[Cause, Record]) -> None:
        taken_apart = {cause: dict(_iterate_leaves(record)) for cause, record in others.items()}
        self._places = [
            _Place(value, {cause: leaves[path] for cause, leaves in taken_apart.items() if path in leaves})
            for path, value in _iterate_leaves(student)
        ]

    def rules_out(self, first: Cause, second: Cause) -> bool:
        """Say whether there is a place at which the student's value cannot come from these two.

        Where one of the two is right, the pair gives what the other gives alone. Where both are wrong, it may give
        anything; where neither gives a value, the pair gives none.
        """
        return any(place.rules_out(first, second) for place in self._places)

    def supports(self, first: Cause, second: Cause) -> bool:
        """Say whether one of the two, and not most of the others, gives the student's value at some place."""
        return any(place.supports(first) or place.supports(second) for place in self._places)


class _Place:
    """The values at one place of a record, by number: equal ones have the same."""

    def __init__(self, student: object, others: Mapping[Cause, object]) -> None:
        kinds: list[object] = [student]
        self._numbers: dict[Cause, int] = {}
        for cause, value in others.items():
            number = next((number for number, kind in enumerate(kinds) if is_same_record(kind, value)), len(kinds))
            if number == len(kinds):
                kinds.append(value)
            self._numbers[cause] = number
        # most misconceptions are right in most places
        self._right = Counter(self._numbers.values()).most_common(1)[0][0] if self._numbers else _NOWHERE

    def supports(self, cause: Cause) -> bool:
        return self._numbers.get(cause) == _STUDENT and self._right != _STUDENT

    def rules_out(self, first: Cause, second: Cause) -> bool:
        numbers = {self._numbers.get(first, _NOWHERE), self._numbers.get(second, _NOWHERE)}
        if numbers == {_NOWHERE}:
            return True
        if _NOWHERE in numbers or self._right not in numbers:
            return False
        return next(iter(numbers - {self._right}), self._right) != _STUDENT


def _iterate_leaves(record: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    if isinstance(record, list | tuple):
        for number, each in enumerate(record):
            yield from _iterate_leaves(each, (*path, number))
    else:
        yield path, record


def sort_pairs_by_likelihood(pairs: Sequence[Pair], evidence: Sequence[Evidence], named: Set[Cause]) -> list[Pair]:
    """The pairs, the likeliest first: those that nothing speaks against.

    Args:
        pairs: all of them.
        evidence: failures that no one misconception explains. Without any, only pairs of two that are named.
        named: the causes that explain other failures.
    """
    if not evidence:
        return [pair for pair in pairs if all(each.cause in named for each in pair.both)]

    def rate_doubt(pair: Pair) -> tuple[int, int]:
        causes = pair.first.cause, pair.second.cause
        against = sum(each.rules_out(*causes) for each in evidence)
        return against, -sum(each.supports(*causes) for each in evidence) - sum(each in named for each in causes)

    return sorted(pairs, key=rate_doubt)
