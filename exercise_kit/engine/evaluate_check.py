"""One check asked of one student, by ``check`` and by grading: what became of it, as a line of a report."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from exercise_kit.engine.exercise import NOTHING, Check, Given
from exercise_kit.engine.probes import Probe
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
    """Ask a check.

    Args:
        check, student, probe, given: as :meth:`Check.ask` has them.
    """
    found: Failure | Undecided | None = None
    try:
        check.ask(student, probe, given)
    except (Failure, Undecided) as error:
        found = error
    except TimeIsUpError as late:
        wanted, look = "an answer in less than a second", "Is there a loop that does not end, or a line that waits?"
        found = Failure(f"{student.name} {late}", wanted, look, Reason.TIME)
    return Outcome(
        check, make_check_result(check, found), student.record, found if isinstance(found, Failure) else None
    )


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
