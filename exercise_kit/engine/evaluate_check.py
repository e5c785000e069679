"""One check asked of one student, by ``check`` and by grading: what became of it, as a line of a report."""

from __future__ import annotations

from exercise_kit.engine.exercise import NOTHING, Check, Given
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import CheckResult, Failure, Undecided, Verdict
from exercise_kit.engine.watchdog import TimeIsUpError
from exercise_kit.reasons import Reason, failure_kind


def evaluate_check(
    check: Check, student: Student, probe: Probe | None = None, given: Given = NOTHING
) -> tuple[CheckResult, Failure | None]:
    """The line of a report for a check, and the failure that it tells of, if it does.

    Args:
        check, student, probe, given: as :meth:`Check.ask` has them.
    """
    try:
        check.ask(student, probe, given)
    except Failure as found:
        return as_result(check.name, check.claim, found), found
    except Undecided as doubt:
        return as_result(check.name, check.claim, doubt), None
    except TimeIsUpError as late:
        wanted, look = "an answer in less than a second", "Is there a loop that does not end, or a line that waits?"
        failure = Failure(f"{student.name} {late}", wanted, look, Reason.TIME)
        return as_result(check.name, check.claim, failure), failure
    return CheckResult(check.name, check.claim, Verdict.PASS), None


def as_result(name: str, claim: str, found: Failure | Undecided) -> CheckResult:
    """The line of a report for a check that ended in a failure or could not decide."""
    if isinstance(found, Undecided):
        return CheckResult(name, claim, Verdict.UNDECIDED, seen=str(found), reason=found.reason)
    return CheckResult(
        *(name, claim, Verdict.FAIL, found.seen, found.expected),
        look=found.look,
        reason=found.reason,
        stumbled_over=found.stumbled_over,
        kind=failure_kind(found.seen),
        is_anothers=found.is_anothers,
    )
