"""The lines of a report by cause: one cause is one entry, and the one that has to be mended first comes first.

Python's own errors and slips lead, then an input that was changed, then shapes and names of parameters, then mistakes
that have a name, then whatever else differs. Numbers of an answer with a wrong shape say little, and a name says more
than a first difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from exercise_kit.engine.verdict import CheckResult, Verdict
from exercise_kit.reasons import Reason

_SHAPES = (Reason.SHAPE, Reason.PARAMETERS)


@dataclass(frozen=True)
class CauseGroup:
    """Checks that one cause stops.

    Attributes: ``first``, which says what is wrong; ``same``, other failures with the same cause; ``waiting``, the
    checks that could not be decided because of these.
    """

    first: CheckResult
    same: tuple[CheckResult, ...] = ()
    waiting: tuple[CheckResult, ...] = ()


def split_into_cause_groups_and_passed(results: Sequence[CheckResult]) -> tuple[list[CauseGroup], list[CheckResult]]:
    """Group what fails or could not be decided by cause and in order; and give what passes."""
    by_name = {each.name: each for each in results}

    def find_result_to_fold_under(result: CheckResult) -> CheckResult:
        """The line under which a result folds; itself where it says something of its own."""
        for other in (result.waits_for, result.same_as):
            if other in by_name and other != result.name and by_name[other].verdict != Verdict.PASS:
                return find_result_to_fold_under(by_name[other])
        return result

    folded: dict[str, list[CheckResult]] = {}
    for each in results:
        if each.verdict != Verdict.PASS:
            folded.setdefault(find_result_to_fold_under(each).name, []).append(each)
    groups = [_make_group(by_name[name], members) for name, members in folded.items()]
    return sorted(groups, key=lambda group: _rank_by_verdict(group.first)), [
        each for each in results if each.verdict == "pass"
    ]


def _make_group(leading_result: CheckResult, members: Sequence[CheckResult]) -> CauseGroup:
    others = [each for each in members if each is not leading_result]
    same = tuple(each for each in others if each.verdict == Verdict.FAIL)
    return CauseGroup(leading_result, same, tuple(each for each in others if each.verdict == Verdict.UNDECIDED))


def _rank_by_verdict(result: CheckResult) -> int:
    """Lower is earlier."""
    if result.verdict == Verdict.UNDECIDED:
        return 5 if result.reason == Reason.REMARK else 6
    if result.leads:
        return 0
    if result.reason == Reason.CHANGED:
        return 1
    if result.reason in _SHAPES:
        return 2
    return 3 if result.causes or result.misconception else 4
