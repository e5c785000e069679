"""One check asked of one student, by ``check`` and by grading: what became of it, as a line of a report."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, replace

from exercise_kit.engine.exercise import NOTHING, Check, CheckFunction, Given
from exercise_kit.engine.probes import Probe, use_fresh_settings
from exercise_kit.engine.records import make_incomparable_failure
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import CheckResult, Failure, Undecided, Verdict
from exercise_kit.engine.watchdog import TimeIsUpError
from exercise_kit.reasons import Reason, find_failure_kind


@dataclass(frozen=True)
class Outcome:
    """What a check found.

    Attributes:
        check: the check.
        result: what the student reads.
        record: what the student's code gave, for the diagnosis.
        failure: what the check raised; None where it passed or could not decide.
        log: for the instructor alone: how the check itself broke, and what it printed.
        broke: where the check itself broke, file and line, ": ", and the exception; "" where it did not.
    """

    check: Check
    result: CheckResult
    record: list[object] = field(default_factory=list, repr=False)
    failure: Failure | None = None
    log: str = ""
    broke: str = ""


def evaluate_check(check: Check, student: Student, probe: Probe | None = None, given: Given = NOTHING) -> Outcome:
    """Ask a check, with fresh global settings; an answer at which the check itself breaks off is wrong too.

    Args:
        check: which.
        student: whom.
        probe: from which it draws in grading, where what comes ``first`` is asked before it; None: ``check`` asks,
            with its own probe, so that all answer to the same draws.
        given: how to make what a check can name beside student and probe.
    """
    found: Failure | Undecided | None = None
    with use_fresh_settings():
        try:
            if probe is not None and callable(check.first):
                ask_first(check.first, student, probe)
            named = inspect.signature(check.function).parameters if given else ()
            more = {name: given[name]() for name in named if name in given}
            check.function(student, Probe(check.name, is_secret=False) if probe is None else probe, **more)
        except (Failure, Undecided) as error:
            found = error
        except TimeIsUpError as late:
            wanted, look = "an answer in less than a second", "Is there a loop that does not end, or a line that waits?"
            found = Failure(f"{student.name} {late}", wanted, look, Reason.TIME)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever an odd answer sets off
            found = make_incomparable_failure(student.name, student.record, error)
            found.error = error
    return Outcome(
        check, make_check_result(check, found), student.record, found if isinstance(found, Failure) else None
    )


def ask_first(claim: CheckFunction, student: Student, probe: Probe) -> None:
    """Ask a claim before another one.

    Raises:
        Failure: it does not hold.
    """
    try:
        claim(student, probe)
    except Failure as failure:  # that is told where it is asked, and the check behind it waits for it
        failure.is_anothers = True
        raise


def make_check_result(check: Check, ending: Failure | Undecided | None = None) -> CheckResult:
    """The line of a report for a check that ended so; None: it passed."""
    line = CheckResult(check.name, check.claim, Verdict.PASS, worth=check.worth, guard=check.guard)
    if ending is None:
        return line
    if isinstance(ending, Undecided):
        return replace(line, verdict=Verdict.UNDECIDED, seen=str(ending), reason=ending.reason)
    return replace(
        line,
        verdict=Verdict.FAIL,
        seen=ending.seen,
        expected=ending.expected,
        look=ending.look,
        reason=ending.reason,
        stumbled_over=ending.stumbled_over,
        kind=find_failure_kind(ending.seen),
        is_anothers=ending.is_anothers,
    )
