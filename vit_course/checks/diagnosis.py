"""Which known mistake gives what the student gave? By matching outputs on the same inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from functools import cache, partial

from vit_course.checks.answers import incomparable, same_record
from vit_course.checks.exercise import Exercise, Misconception, PublicCheck
from vit_course.checks.isolation import fresh_settings
from vit_course.checks.probes import Probe
from vit_course.checks.student import Student
from vit_course.checks.verdict import Cause, Failure, Undecided

Record = list[object]
Observe = Callable[[Misconception, str], tuple[bool, Record]]


def run(check: PublicCheck, student: Student) -> None:
    """Run ``check`` with its own probe, so that everybody is asked the same, and fresh global settings.

    Raises:
        Failure: with what is wrong. An answer at which the check itself breaks off is wrong too.
        Undecided: when the check cannot tell.
    """
    with fresh_settings():
        try:
            check.function(student, Probe(check.name))
        except (Failure, Undecided, KeyboardInterrupt):
            raise
        except BaseException as error:  # whatever an odd answer sets off
            raise incomparable(student.name, student.record, error) from None


def causes(exercise: Exercise, records: dict[str, Record], failed: Set[str], name: str) -> tuple[Cause, ...]:
    """The misconceptions that explain why the public check called ``name`` failed, as :func:`explain` finds them."""
    checks = {each.name: each for each in exercise.checks}
    return explain(
        exercise.misconceptions,
        records,
        failed,
        name,
        lambda wrong, asked: _observe(wrong, exercise.objects, checks[asked]),
    )


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
        The misconceptions that fail this check with the same answers, unless they are belied by others, and among
        those the ones that agree with the student in the most checks. More than one when these checks cannot
        tell them apart; none when nothing fits.
    """

    def seen(wrong: Misconception, asked: str) -> tuple[bool, bool]:
        fails, answers = observe(wrong, asked)
        return fails, same_record(answers, records[asked])

    matching = [wrong for wrong in misconceptions if _fits(records[name], failed, name, partial(seen, wrong))]
    if len(matching) > 1:
        votes = [sum(seen(wrong, each)[1] for each in records) for wrong in matching]
        matching = [wrong for wrong, vote in zip(matching, votes, strict=True) if vote == max(votes)]
    return tuple(wrong.cause for wrong in matching)


def _fits(record: Record, failed: Set[str], name: str, seen: Callable[[str], tuple[bool, bool]]) -> bool:
    """Whether a misconception fails a check as the student does, and the other failures do not speak against it.

    One alike answer may be chance: zeros match whatever gives zeros in that check. So of the checks that both
    fail, most have to agree, and all of them when there is nothing but an exception, which many mistakes raise.
    A check that the student passes says nothing: a misconception may lack more than the student does.
    """
    if seen(name) != (True, True):
        return False
    both = [agrees for each in failed for fails, agrees in [seen(each)] if fails]
    only_raised = all(isinstance(entry, tuple) and entry[:1] == ("raised",) for entry in record)
    return all(both) if only_raised else 2 * sum(both) > len(both)


@cache
def _observe(wrong: Misconception, names: tuple[str, ...], check: PublicCheck) -> tuple[bool, Record]:
    """Whether a misconception fails a check, and what the check wrote down on the way."""
    student = Student(dict(zip(names, wrong.objects, strict=True)))
    try:
        run(check, student)
    except (Failure, Undecided) as verdict:
        return isinstance(verdict, Failure), student.record
    return False, student.record
