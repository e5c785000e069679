"""Two mistakes at once: wrong implementations that make two known mistakes of an exercise, built from those of one.

Four sources, none of which needs code for a single pair. Objects: where an exercise asks for two, one is wrong in each.
Classes: two that bend different methods of one common base are inherited from together. Layouts: where an answer is
a rearrangement of its input, both are carried out one after the other, by :mod:`exercise_kit.engine.rearranging`.
Parts: where the mistakes are settings of one formula, which the course declares, both are set.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, update_wrapper
from itertools import combinations
from types import CodeType, FunctionType
from typing import Any

from exercise_kit.engine.exercise import Exercise, Misconception
from exercise_kit.engine.rearranging import Function, Layout, alike, rearranged, rearranges
from exercise_kit.engine.verdict import Cause

# what stands in every class, whatever it overrides
_IN_EVERY_CLASS = {*vars(type("Empty", (), {})), "__annotations__", "__annotate_func__", "__parameters__"}


@dataclass(frozen=True, kw_only=True)
class Pair(Misconception):
    """Two misconceptions in one implementation.

    Attributes: ``first`` and ``second``, in the order of the library; what the two do may depend on which is carried
    out first, and then there are two pairs of one cause.
    """

    first: Misconception
    second: Misconception

    @property
    def both(self) -> tuple[Misconception, Misconception]:
        """The two."""
        return self.first, self.second


@dataclass(frozen=True)
class Parts:
    """An exercise whose mistakes are settings of one function.

    Attributes: ``make(*inputs, **settings)``, right without settings; for wrong implementations their ``settings``,
    of which two that set different things can be made at once; ``quick``, whether a call takes next to no time, and
    ``slow``, whether one takes a whole model's.
    """

    make: Function
    settings: Mapping[Function, Mapping[str, Any]]
    quick: bool = False
    slow: bool = False


MOST_PAIRS, MOST_OF_QUICK, MOST_OF_SLOW = 60, 200, 8
_DECLARED: list[tuple[list[Misconception], Layout | Parts]] = []
_BUILT: dict[int, tuple[int, tuple[Pair, ...]]] = {}


def declare(exercise: Exercise, source: Layout | Parts) -> None:
    """Say where an exercise's pairs come from; classes and several objects need no word."""
    _DECLARED.append((exercise.misconceptions, source))
    _BUILT.clear()


def pairs_of(exercise: Exercise) -> tuple[Pair, ...]:
    """Every two mistakes of an exercise that can be made at once, as one implementation; built once.

    Some may do no more than one of the two, or than nothing: :func:`exercise_kit.engine.run.why_no_pair` tells.
    """
    library = exercise.misconceptions
    count, built = _BUILT.get(id(library), (-1, ()))
    if count != len(library):
        found: dict[tuple[str, str], list[Pair]] = {}
        for pair in _built(exercise):
            found.setdefault((pair.first.name, pair.second.name), []).append(pair)
        # of two sources the first one to know a pair
        built = tuple(pair for pairs in found.values() for pair in pairs)
        _BUILT[id(library)] = len(library), built
    return built


def most_asked(exercise: Exercise) -> int:
    """How many pairs may be asked about one answer; each takes a check's time."""
    sources = [source for library, source in _DECLARED if library is exercise.misconceptions]
    if any(isinstance(each, Parts) and each.slow for each in sources):
        return MOST_OF_SLOW
    return MOST_OF_QUICK if any(isinstance(each, Layout) or each.quick for each in sources) else MOST_PAIRS


def cause_of(first: Cause, second: Cause) -> Cause:
    """The cause of both at once, with the question that leads out of the first."""
    explanation = f"Two mistakes at once. {first.explanation} {second.explanation}"
    return Cause(f"{first.name}, and {second.name}", explanation, first.question, first.section)


def _built(exercise: Exercise) -> Iterator[Pair]:
    sources = [source for library, source in _DECLARED if library is exercise.misconceptions]
    ways = [_from(source) for source in sources] + [_of_two_objects, _of_two_classes]
    for first, second in combinations(exercise.misconceptions, 2):
        for way in ways:
            made = list(way(first, second))
            for objects in made:
                yield Pair(cause=cause_of(first.cause, second.cause), objects=objects, first=first, second=second)
            if made:
                break


Objects = tuple[Function, ...]
Way = Callable[[Misconception, Misconception], Iterator[Objects]]


def _from(source: Layout | Parts) -> Way:
    if isinstance(source, Layout):
        return partial(_of_two_layouts, source, {})
    return partial(_of_two_parts, source)


def place_of(wrong: Misconception) -> int:
    """Which of a misconception's objects is the wrong one."""
    names = [re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", each.__name__).lower().strip("_") for each in wrong.objects]
    return names.index(wrong.name.replace(" ", "_")) if wrong.name.replace(" ", "_") in names else 0


def _wrong(wrong: Misconception) -> Function:
    return wrong.objects[place_of(wrong)]


def _with(wrong: Misconception, function: Function) -> Objects:
    place = place_of(wrong)
    return (*wrong.objects[:place], function, *wrong.objects[place + 1 :])


def _of_two_objects(first: Misconception, second: Misconception) -> Iterator[Objects]:
    """Where an exercise asks for several objects: one mistake in each of two."""
    if place_of(first) != place_of(second):
        yield _with(first, _wrong(first))[: place_of(second)] + second.objects[place_of(second) :]


def _of_two_classes(first: Misconception, second: Misconception) -> Iterator[Objects]:
    """A class that inherits both: where both override a method, the one that comes first has to hand on to the other.

    Where either could come first both are made, but for ``__init__``, of which the order seldom matters.
    """
    one, other = _wrong(first), _wrong(second)
    base = _common_base(one, other)
    if base is None or not isinstance(one, type) or not isinstance(other, type):
        return
    mine, theirs = _overridden(one, base), _overridden(other, base)
    shared = mine.keys() & theirs.keys()
    made = 0
    for outer, inner, methods in ((one, other, mine), (other, one, theirs)):
        if made and shared <= {"__init__"}:
            return
        if all(_hands_on(methods[name], name) for name in shared):
            try:
                both = type(f"{outer.__name__}And{inner.__name__}", (outer, inner), {"__module__": outer.__module__})
            except TypeError:  # no order of inheritance
                continue
            made += 1
            yield (both,)


def _common_base(one: Function, other: Function) -> type | None:
    """The private class from which both come, where neither comes from the other."""
    if not (isinstance(one, type) and isinstance(other, type)) or issubclass(one, other) or issubclass(other, one):
        return None
    return next((each for each in one.__mro__ if issubclass(other, each) and each.__name__.startswith("_")), None)


def _overridden(wrong: type, base: type) -> dict[str, Any]:
    """What a class and its parents below ``base`` define, by name."""
    below = wrong.__mro__[: wrong.__mro__.index(base)]
    return {
        name: value for each in reversed(below) for name, value in vars(each).items() if name not in _IN_EVERY_CLASS
    }


def _hands_on(method: object, name: str) -> bool:
    """Whether a method calls that of the next class."""
    return isinstance(method, FunctionType) and {"super", name} <= set(_names_in(method.__code__))


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names_in(each)


def _of_two_parts(parts: Parts, first: Misconception, second: Misconception) -> Iterator[Objects]:
    one, other = (parts.settings.get(_wrong(each)) for each in (first, second))
    if one is not None and other is not None and not one.keys() & other.keys():
        yield _with(first, _named(partial(parts.make, **one, **other), _wrong(first)))


def _named(function: Function, like: Function) -> Function:
    return update_wrapper(function, like, updated=())


def _of_two_layouts(
    layout: Layout, known: dict[str, bool], first: Misconception, second: Misconception
) -> Iterator[Objects]:
    """Both rearrangements, in both orders where these differ; a layout and any other mistake in one order."""
    if {place_of(first), place_of(second)} != {layout.place}:
        return
    for each in (first, second):
        known.setdefault(each.name, rearranges(layout, _wrong(each)))
    orders = [pair for pair in ((first, second), (second, first)) if known[pair[1].name]]
    made = [_with(inner, partial(rearranged, layout, _wrong(outer), _wrong(inner))) for inner, outer in orders]
    if len(made) == 2 and alike(layout, made[0][layout.place], made[1][layout.place]):
        del made[1]
    yield from made
