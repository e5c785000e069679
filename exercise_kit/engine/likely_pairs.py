"""Which two mistakes are worth asking about, when no one mistake explains a failure: read off what each does alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set

from exercise_kit.engine.answers import same_record
from exercise_kit.engine.two_at_once import Pair

Record = list[object]
Path = tuple[int, ...]
_NOWHERE = -1


class Evidence:
    """A failed check, taken apart: what stands where in the student's record, and in everybody else's.

    Equal values of one place have one number, so that pairs are compared by numbers alone.

    Args:
        student: the record of the student.
        others: for each misconception's name its record.
    """

    def __init__(self, student: Record, others: Mapping[str, Record]) -> None:
        taken_apart = {name: dict(_leaves(record)) for name, record in others.items()}
        self._places = [
            _Place(value, {name: leaves[path] for name, leaves in taken_apart.items() if path in leaves})
            for path, value in _leaves(student)
        ]

    def belies(self, first: str, second: str) -> bool:
        """Whether there is a place at which the student's value cannot come from these two.

        Where one of them is right, both together give what the other gives alone; where both are wrong they may
        give anything, and where neither gives anything both together do not either.
        """
        return any(place.belies(first, second) for place in self._places)

    def backs(self, first: str, second: str) -> bool:
        """Whether one of the two, and not most of the others, gives the student's value at some place."""
        return any(place.backs(first) or place.backs(second) for place in self._places)


class _Place:
    """The values at one place of a record, by number: 0 is the student's."""

    def __init__(self, student: object, others: Mapping[str, object]) -> None:
        kinds: list[object] = [student]
        self._numbers: dict[str, int] = {}
        for name, value in others.items():
            number = next((number for number, kind in enumerate(kinds) if same_record(kind, value)), len(kinds))
            if number == len(kinds):
                kinds.append(value)
            self._numbers[name] = number
        # most misconceptions are right in most places
        self._right = Counter(self._numbers.values()).most_common(1)[0][0] if self._numbers else _NOWHERE

    def backs(self, name: str) -> bool:
        return self._numbers.get(name) == 0 != self._right

    def belies(self, first: str, second: str) -> bool:
        numbers = {self._numbers.get(first, _NOWHERE), self._numbers.get(second, _NOWHERE)}
        if numbers == {_NOWHERE}:
            return True
        if _NOWHERE in numbers or self._right not in numbers:
            return False
        return next(iter(numbers - {self._right}), self._right) != 0


def _leaves(record: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    if isinstance(record, list | tuple):
        for number, each in enumerate(record):
            yield from _leaves(each, (*path, number))
    else:
        yield path, record


def likely_pairs(pairs: Sequence[Pair], evidence: Sequence[Evidence], named: Set[str]) -> list[Pair]:
    """The pairs, the likeliest first: those that nothing speaks against.

    Args:
        pairs: all of them.
        evidence: failures that no one misconception explains. Without any, only pairs of two that are named.
        named: the misconceptions that explain other failures.
    """
    if not evidence:
        return [pair for pair in pairs if all(each.name in named for each in pair.both)]

    def doubt(pair: Pair) -> tuple[int, int]:
        names = pair.first.name, pair.second.name
        against = sum(each.belies(*names) for each in evidence)
        return against, -sum(each.backs(*names) for each in evidence) - sum(each in named for each in names)

    return sorted(pairs, key=doubt)
