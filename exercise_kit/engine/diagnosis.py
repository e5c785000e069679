"""Which known mistake gives what the student gave? By matching outputs on the same inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache, partial

from exercise_kit.engine.exercise import Exercise, Misconception, PublicCheck
from exercise_kit.engine.probes import Probe, fresh_settings
from exercise_kit.engine.records import incomparable, same_record
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Evidence, Pair, likely_pairs, most_evaluated, pairs_of
from exercise_kit.engine.verdict import Cause, Failure, Undecided
from exercise_kit.engine.watchdog import TimeIsUpError

Record = list[object]
Observe = Callable[[Misconception, str], tuple[bool, Record]]
# so many failures are taken apart to choose the pairs that are evaluated
MOST_EVIDENCE = 3
# of one failure; with more a student would read a list and know nothing
MOST_NAMES = 3


def run(check: PublicCheck, student: Student) -> None:
    """Run ``check`` with its own probe, so that all are evaluated on the same draws, and fresh global settings.

    Raises:
        Failure: with what is wrong. An answer at which the check itself breaks off is wrong too.
        Undecided: when the check cannot tell.
        TimeIsUpError: the answer did not end.
    """
    with fresh_settings():
        try:
            check.function(student, Probe(check.name))
        except (Failure, Undecided, KeyboardInterrupt, TimeIsUpError):
            raise
        except BaseException as error:  # whatever an odd answer sets off
            raise incomparable(student.name, student.record, error) from None


def diagnose(exercise: Exercise, records: Mapping[str, Record], failed: Sequence[str]) -> dict[str, tuple[Cause, ...]]:
    """For each public check of an exercise that ``failed``, the misconceptions that explain it, one or two at once."""
    checks = {each.name: each for each in exercise.checks}

    def observe(wrong: Misconception, check_name: str) -> tuple[bool, Record]:
        return observed(wrong, exercise.objects, checks[check_name])

    found = {name: explain(exercise.misconceptions, records, set(failed), name, observe) for name in failed}
    return explain_by_two(exercise, records, failed, found, observe)


def explain(
    misconceptions: Iterable[Misconception],
    records: Mapping[str, Record],
    failed: Set[str],
    name: str,
    observe: Observe,
) -> tuple[Cause, ...]:
    """The misconceptions that explain why the check called ``name`` failed.

    Args:
        misconceptions: the ones to choose from.
        records: what the student gave in every check that ran, by the check's name.
        failed: the names of the checks that the student failed.
        name: the one to explain.
        observe: for a misconception and a check's name, whether it fails that check, and what it gives there.

    Returns:
        The misconceptions that fail this check with the same answers, unless other failures contradict them, and among
        those the ones that agree with the student in the most checks. More than one when these checks cannot
        tell them apart; none when nothing fits.
    """

    def seen(wrong: Misconception, check_name: str) -> tuple[bool, bool]:
        fails, answers = observe(wrong, check_name)
        return fails, same_record(answers, records[check_name])

    matching = [
        wrong
        for wrong in misconceptions
        if _fits(records[name], failed, name, partial(seen, wrong))
        and _is_supported(records, failed, partial(seen, wrong))
    ]
    if len(matching) > 1:
        votes = [sum(seen(wrong, each)[1] for each in records) for wrong in matching]
        matching = [wrong for wrong, vote in zip(matching, votes, strict=True) if vote == max(votes)]
    return _limit_causes(tuple(wrong.cause for wrong in matching))


def _limit_causes(causes: tuple[Cause, ...]) -> tuple[Cause, ...]:
    """The causes, or none where they are so many that whoever reads them knows no more than before."""
    return causes if len(causes) <= MOST_NAMES else ()


def _fits(record: Record, failed: Set[str], name: str, seen: Callable[[str], tuple[bool, bool]]) -> bool:
    """Whether a misconception fails a check as the student does, and the other failures do not speak against it.

    One alike answer may be chance: zeros match whatever gives zeros in that check. So of the checks that both
    fail, most have to agree, and all of them when there is nothing but an exception, which many mistakes raise.
    What the student passes is another matter: see :func:`_is_supported`.
    """
    if seen(name) != (True, True):
        return False
    both = [agrees for each in failed for fails, agrees in [seen(each)] if fails]
    only_raised = all(isinstance(entry, tuple) and entry[:1] == ("raised",) for entry in record)
    return all(both) if only_raised else 2 * sum(both) > len(both)


def _is_supported(records: Mapping[str, Record], failed: Set[str], seen: Callable[[str], tuple[bool, bool]]) -> bool:
    """Whether a misconception explains at least as many failures as it would have caused that are not there.

    It may lack a little more than the student does, but whoever passes nearly all that it fails has not made it.
    """
    explained = sum(seen(each) == (True, True) for each in failed if each in records)
    missing = sum(seen(each)[0] for each in records if each not in failed)
    return explained >= missing


def _may_be_two(found: Mapping[str, tuple[Cause, ...]]) -> bool:
    """Whether no one misconception explains all failures, so that there may be two."""
    return bool(found) and not set.intersection(*(set(each) for each in found.values()))


def explain_by_two(
    exercise: Exercise,
    records: Mapping[str, Record],
    failed: Sequence[str],
    found: Mapping[str, tuple[Cause, ...]],
    observe: Observe,
) -> dict[str, tuple[Cause, ...]]:
    """``found``, what single misconceptions explain, with two at once wherever these explain more.

    Args:
        exercise: whose pairs are to choose from.
        records: what the student gave in every check that ran, by the check's name.
        failed: the names of the checks that the student failed.
        found: the single misconceptions that explain each of them; a check that is missing here was not evaluated.
        observe: for a misconception and a check's name, whether it fails that check, and what it gives there.

    Returns:
        ``found`` with the cause of a pair at every failure at which the pair gives what the student gave. The pair
        agrees with the student in all checks that both fail, explains more of them than any one misconception and than
        it fails of those that the student passes, and one by more than an exception; of several the ones that agree in
        the most checks.
    """

    def seen(wrong: Misconception, check_name: str) -> tuple[bool, bool]:
        fails, answers = observe(wrong, check_name)
        return fails, same_record(answers, records[check_name])

    if not _may_be_two(found):
        return dict(found)
    unexplained = [name for name in failed if name in found and not found[name] and _has_values(records[name])]
    alone = Counter(cause for causes in found.values() for cause in causes)
    passed = [name for name in records if name not in failed]
    fitting: list[tuple[int, Pair, list[str]]] = []
    for pair in _likely(exercise, {name: records[name] for name in unexplained[:MOST_EVIDENCE]}, alone, observe):
        explained = _explained(
            pair, [*unexplained, *(name for name in failed if name not in unexplained)], passed, seen
        )
        if len(explained) > max(alone.values(), default=0) and (not unexplained or {*unexplained} & {*explained}):
            fitting.append((len(explained), pair, explained))
    best = [each for each in fitting if each[0] == max(count for count, _, _ in fitting)]
    if len({pair.cause for _, pair, _ in best}) > 1:
        votes = [sum(seen(pair, each)[1] for each in records) for _, pair, _ in best]
        best = [each for each, vote in zip(best, votes, strict=True) if vote == max(votes)]
    causes = _limit_causes(tuple(dict.fromkeys(pair.cause for _, pair, _ in best)))
    if not causes:
        return dict(found)
    explained_by_pair = {
        name for _, _, explained in best for name in explained if len(causes) == 1 or not found.get(name)
    }
    return {**found, **dict.fromkeys(explained_by_pair, causes)}


def _explained(
    pair: Pair,
    failed: Sequence[str],
    passed: Sequence[str],
    seen: Callable[[Misconception, str], tuple[bool, bool]],
) -> list[str]:
    """The failures at which a pair gives what the student gave; none where it gives something else at one of them, or
    fails as many of the checks that the student has passed.
    """
    explained = []
    for name in failed:
        fails, agrees = seen(pair, name)
        if fails and not agrees:
            return []
        explained += [name] * fails
    return explained if sum(seen(pair, name)[0] for name in passed) < len(explained) else []


def _likely(
    exercise: Exercise, unexplained: Mapping[str, Record], alone: Iterable[Cause], observe: Observe
) -> list[Pair]:
    evidence = [
        Evidence(record, {one.name: observe(one, check_name)[1] for one in exercise.misconceptions})
        for check_name, record in unexplained.items()
    ]
    likely = likely_pairs(pairs_of(exercise), evidence, {cause.name for cause in alone})
    return likely[: most_evaluated(exercise)]


def _has_values(record: Record) -> bool:
    """Whether a record holds more than exceptions."""
    return not all(isinstance(entry, tuple) and entry[:1] in (("raised",), ("built",)) for entry in record)


@cache
def observed(wrong: Misconception, names: tuple[str, ...], check: PublicCheck) -> tuple[bool, Record]:
    """Whether a misconception fails a check, and what the check wrote down on the way."""
    student = Student(dict(zip(names, wrong.objects, strict=True)))
    try:
        run(check, student)
    except (Failure, Undecided) as verdict:
        return isinstance(verdict, Failure), student.record
    return False, student.record
