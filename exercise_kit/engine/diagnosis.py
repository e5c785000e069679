"""Which known mistake gives what the student gave? By matching outputs on the same inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache
from itertools import islice

from exercise_kit.engine.errors import may_share_operation
from exercise_kit.engine.exercise import Exercise, Misconception
from exercise_kit.engine.records import is_same_record
from exercise_kit.engine.two_mistakes import (
    Evidence,
    Pair,
    get_most_pairs_evaluated,
    list_pairs,
    sort_pairs_by_likelihood,
)
from exercise_kit.engine.verdict import Cause

Record = list[object]
Observe = Callable[[Misconception, str], tuple[bool, Record]]
Holds = Callable[[Misconception], bool]
# so many failures are taken apart to choose the pairs that are evaluated
MOST_EVIDENCE = 3
# of one failure; with more a student would read a list and know nothing
MOST_NAMES = 3


def _always_holds(mistake: Misconception) -> bool:
    """Hold every sentence for true, where no student is at hand of whom it could be untrue."""
    return True


class Compared:
    """How misconceptions behave in the checks that a student took, and whether the student's code behaves alike.

    To observe a misconception takes a check's time, so each is observed and compared once, when it is first needed.

    Args:
        records: what the student gave in every check that ran, by the check's name.
        observe: for a misconception and a check's name, whether it fails that check, and what it gives there.
        holds: whether a misconception's sentence is true of the student.

    Attributes: ``holds``.
    """

    def __init__(self, records: Mapping[str, Record], observe: Observe, holds: Holds = _always_holds) -> None:
        self._records, self._observe, self.holds = records, observe, cache(holds)
        self._seen: dict[tuple[Misconception, str], tuple[bool, Record]] = {}
        self._agrees: dict[tuple[Misconception, str], bool] = {}

    def fails(self, mistake: Misconception, name: str) -> bool:
        """Say whether a misconception fails a check."""
        place = mistake, name
        if place not in self._seen:
            self._seen[place] = self._observe(mistake, name)
        return self._seen[place][0]

    def agrees(self, mistake: Misconception, name: str) -> bool:
        """Say whether a misconception gives in a check what the student gave."""
        place = mistake, name
        if place not in self._agrees:
            self.fails(mistake, name)
            self._agrees[place] = is_same_record(self._seen[place][1], self._records[name])
        return self._agrees[place]

    def explains(self, mistake: Misconception, name: str) -> bool:
        """Say whether a misconception fails a check, with what the student gave."""
        return self.fails(mistake, name) and self.agrees(mistake, name)

    def may_raise_at_same_step(self, mistake: Misconception, name: str) -> bool:
        """Say whether each exception that both raise in a check may come from the same step."""
        return all(map(_may_come_from_same_step, self._seen[mistake, name][1], self._records[name]))

    def count_differing_checks(self, mistake: Misconception, failed: Iterable[str]) -> int:
        """In how many checks that both fail a misconception was observed to give something else."""
        observed = [name for name in failed if (mistake, name) in self._seen]
        return sum(self.fails(mistake, name) and not self.agrees(mistake, name) for name in observed)


def find_causes(
    misconceptions: Iterable[Misconception],
    records: Mapping[str, Record],
    failed: Set[str],
    name: str,
    seen: Compared,
    decisive: Set[str] = frozenset(),
) -> tuple[Cause, ...]:
    """The misconceptions that explain why the check called ``name`` failed.

    Args:
        misconceptions: the ones to choose from.
        records: what the student gave in every check that ran, by the check's name.
        failed: the names of the checks that the student failed.
        name: the one to explain.
        seen: what the misconceptions do there.
        decisive: the checks that are no guards: whoever passes one that a misconception fails has not made it.

    Returns:
        The misconceptions that fail this check with the same answers, unless other failures contradict them, and among
        those the ones that agree with the student in the most checks. More than one when these checks cannot
        tell them apart; none when nothing fits.
    """
    matching = [
        wrong
        for wrong in misconceptions
        if _explains_failure(wrong, records[name], failed, name, seen)
        and _is_supported(wrong, records, failed, seen, decisive)
        and seen.holds(wrong)
    ]
    if len(matching) > 1:
        votes = [sum(seen.agrees(wrong, each) for each in records) for wrong in matching]
        matching = [wrong for wrong, vote in zip(matching, votes, strict=True) if vote == max(votes)]
    return _drop_causes_if_too_many(tuple(wrong.cause for wrong in matching))


def _is_bare_bool(entry: object) -> bool:
    """Say whether an entry of a record is a bare yes or no, as a student's test of others' code gives it."""
    return isinstance(entry, tuple) and entry[:1] == ("returned",) and isinstance(entry[-1], bool)


def _may_come_from_same_step(first_entry: object, second_entry: object) -> bool:
    """Say whether two entries of records hold exceptions that may come from the same step, or none."""
    if isinstance(first_entry, tuple) and isinstance(second_entry, tuple):
        return all(map(may_share_operation, first_entry, second_entry))
    return True


def _drop_causes_if_too_many(causes: tuple[Cause, ...]) -> tuple[Cause, ...]:
    """The causes, or none where they are so many that whoever reads them knows no more than before."""
    return causes if len(causes) <= MOST_NAMES else ()


def _explains_failure(mistake: Misconception, record: Record, failed: Set[str], name: str, seen: Compared) -> bool:
    """Say whether a misconception fails a check as the student does, and the other failures do not speak against it.

    One alike answer may be chance: zeros match whatever gives zeros in that check. So of the checks that both
    fail, most have to agree, and all of them when there is nothing but yes or no, or an exception, which many mistakes
    raise; then the lines that raised it have to do the same, too.
    What the student passes is another matter: see :func:`_is_supported`. Nothing is observed once this is decided.
    """
    only_raised = all(isinstance(entry, tuple) and entry[:1] == ("raised",) for entry in record)
    most_against = 0 if only_raised or all(map(_is_bare_bool, record)) else (len(failed) - 1) // 2
    if seen.count_differing_checks(mistake, failed) > most_against or not seen.explains(mistake, name):
        return False
    if only_raised and not seen.may_raise_at_same_step(mistake, name):
        return False
    agreeing = against = 0
    for each in failed:
        if not seen.fails(mistake, each):
            continue
        agreeing += seen.agrees(mistake, each)
        against += not seen.agrees(mistake, each)
        if against > most_against:
            return False
    return agreeing > against


def _is_supported(
    mistake: Misconception, records: Mapping[str, Record], failed: Set[str], seen: Compared, decisive: Set[str]
) -> bool:
    """Say whether a misconception explains at least as many failures as it would cause that the student does not have.

    A student may pass a few guards that the misconception fails: an error, say, that it forgets besides. Whoever passes
    a decisive check has not made it: a name never contradicts a tick of the same report.
    """
    if any(name not in failed and seen.fails(mistake, name) for name in records if name in decisive):
        return False
    explained = sum(seen.explains(mistake, each) for each in failed if each in records)
    return not _fails_more_checks_than(mistake, [each for each in records if each not in failed], explained, seen)


def _fails_more_checks_than(mistake: Misconception, names: Sequence[str], count: int, seen: Compared) -> bool:
    """Say whether a misconception fails more than ``count`` of these checks."""
    fails = (name for name in names if seen.fails(mistake, name)) if len(names) > count else iter(())
    return next(islice(fails, count, None), None) is not None


def _may_be_two_mistakes(causes_by_check: Mapping[str, tuple[Cause, ...]]) -> bool:
    """Say whether no one misconception explains all failures, so that there may be two."""
    return bool(causes_by_check) and not set.intersection(*(set(each) for each in causes_by_check.values()))


def find_causes_in_pairs(
    exercise: Exercise,
    records: Mapping[str, Record],
    failed: Sequence[str],
    known_causes: Mapping[str, tuple[Cause, ...]],
    observe: Observe,
    decisive: Set[str] = frozenset(),
    holds: Holds = _always_holds,
) -> dict[str, tuple[Cause, ...]]:
    """``known_causes``, what single misconceptions explain, with two at once wherever these explain more.

    A pair explains the failures if:

    - it gives what the student gave in all checks that both fail, and in one of them more than an exception;
    - it explains more failures than any single misconception;
    - it fails fewer of the checks that the student passes than it explains failures, and none of those that tell.

    Of several such pairs those count that agree with the student in the most checks; if these are still several, none.

    Args:
        exercise: whose pairs are to choose from.
        records: what the student gave in every check that ran, by the check's name.
        failed: the names of the checks that the student failed.
        known_causes: the single misconceptions that explain each; a check that is missing was not evaluated.
        observe: for a misconception and a check's name, whether it fails that check, and what it gives there.
        decisive: as :func:`find_causes` has it.
        holds: whether a misconception's sentence is true of the student.

    Returns:
        ``known_causes``, with the cause of the pair at every failure that the pair explains.
    """

    pairs = list_pairs(exercise) if _may_be_two_mistakes(known_causes) else ()
    if not pairs:
        return dict(known_causes)
    seen = Compared(records, observe)
    unexplained = [
        name for name in failed if name in known_causes and not known_causes[name] and _has_values(records[name])
    ]
    alone = Counter(cause for causes in known_causes.values() for cause in causes)
    passed = [name for name in records if name not in failed]
    ordered = [*unexplained, *(name for name in failed if name not in unexplained)]
    evidence = {name: records[name] for name in unexplained[:MOST_EVIDENCE]}
    least = max(alone.values(), default=0) + 1  # of failures that a pair has to explain
    best: list[tuple[Pair, list[str]]] = []
    for pair in _order_pairs_by_likelihood(exercise, pairs, evidence, alone, observe):
        explained = _list_explained_failures(pair, ordered, passed, least, seen)
        if any(seen.fails(pair, name) for name in passed if name in decisive and explained):
            continue
        if explained and not all(map(holds, pair.both)):
            continue
        if explained and (not unexplained or {*unexplained} & {*explained}):
            best = [(pair, explained)] if len(explained) > least else [*best, (pair, explained)]
            least = len(explained)
    if len({pair.cause for pair, _ in best}) > 1:
        votes = [sum(seen.agrees(pair, each) for each in records) for pair, _ in best]
        best = [each for each, vote in zip(best, votes, strict=True) if vote == max(votes)]
    causes = tuple(dict.fromkeys(pair.cause for pair, _ in best))
    if len(causes) != 1:  # of pairs that are alike here, at least one name would be false
        return dict(known_causes)
    return {**known_causes, **dict.fromkeys((name for _, explained in best for name in explained), causes)}


def _list_explained_failures(
    pair: Pair, failed: Sequence[str], passed: Sequence[str], least: int, seen: Compared
) -> list[str]:
    """The failures at which a pair gives what the student gave.

    None, where it gives something else at one of them, fails as many of the checks that the student has passed, or
    explains fewer than ``least``.
    """
    explained: list[str] = []
    for place, name in enumerate(failed):
        fails = seen.fails(pair, name)
        explained += [name] * fails
        if (fails and not seen.agrees(pair, name)) or len(explained) + len(failed) - place - 1 < least:
            return []
    return [] if _fails_more_checks_than(pair, passed, len(explained) - 1, seen) else explained


def _order_pairs_by_likelihood(
    exercise: Exercise,
    pairs: Sequence[Pair],
    unexplained: Mapping[str, Record],
    alone: Iterable[Cause],
    observe: Observe,
) -> list[Pair]:
    evidence = [
        Evidence(record, {one.cause: observe(one, check_name)[1] for one in exercise.misconceptions})
        for check_name, record in unexplained.items()
    ]
    return sort_pairs_by_likelihood(pairs, evidence, set(alone))[: get_most_pairs_evaluated(exercise)]


def _has_values(record: Record) -> bool:
    """Say whether a record holds more than exceptions."""
    return not all(isinstance(entry, tuple) and entry[:1] in (("raised",), ("built",)) for entry in record)
