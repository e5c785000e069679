"""A first cause: what is wrong with an answer before a check can look at what it claims.

An answer that raises, that is not a tensor, or that has another dtype fails wherever its numbers are looked at, and
says nothing about their order. So one line at the top says that, and the checks that stumbled over it are undecided
until it is repaired. Points stay as they were: neither a failed nor an undecided check has earned its share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from exercise_kit.engine.exercise import is_example_check
from exercise_kit.engine.slip_searches import Slip
from exercise_kit.engine.verdict import CheckResult, Verdict
from exercise_kit.reasons import Reason

# told as broken: no check claims these, and a claim that does not hold would read as if it did
_CLAIMS = {
    Reason.TIME: "A call does not come back in time.",
    Reason.RAISED: "It raises an error.",
    Reason.KIND: "It returns another kind of object than the exercise asks for.",
    Reason.DTYPE: "Its numbers have another dtype than the exercise asks for.",
    Reason.DEVICE: "Its result is on another device than its input.",
    Reason.NOT_WRITTEN: "Something in it is not written yet.",
}
_FEWEST = 2
# what these print in an example is another thing
_FOLLOWED_BY = (Reason.DTYPE, Reason.KIND, Reason.SHAPE)


def put_first_causes_in_front(results: Sequence[CheckResult], slip: Slip | None = None) -> tuple[CheckResult, ...]:
    """The results, with first causes in front: failures over which several checks stumbled, which now wait for them.

    Args:
        results: of the checks.
        slip: of Python, for which all failures wait that it :meth:`~exercise_kit.engine.slip_searches.Slip.explains`.
    """
    if slip:
        return _make_results_wait_for_slip(slip, results)
    leading: dict[object, CheckResult] = {}
    for result in results:
        key = _make_first_cause_key(result)
        if key and key not in leading and _is_first_cause(result, results):
            leading[key] = _make_first_cause(result, f"first_cause_{len(leading) + 1}")
    wrong_kinds = (each for each in (*leading.values(), *results) if each.reason in _FOLLOWED_BY)
    followed = next((each for each in wrong_kinds if each.leads or each.causes), None)
    waiting = [
        _make_waiting_result(each, lead)
        if (lead := leading.get(_make_first_cause_key(each)) or _select_lead_if_cause(each, followed))
        else each
        for each in results
    ]
    waits_for = {each.name: each.waits_for for each in waiting}
    waiting = [replace(each, waits_for=waits_for.get(each.waits_for) or each.waits_for) for each in waiting]
    return (*leading.values(), *_fold_failures_under_changed_input(waiting))


def _fold_failures_under_changed_input(results: Sequence[CheckResult]) -> list[CheckResult]:
    """The results, where failures without a name fold under a changed input: the numbers may follow from that."""
    changed = next((each for each in results if each.reason == Reason.CHANGED), None)
    if changed is None:
        return list(results)
    follow = (Reason.DIFFERENT, Reason.SHAPE, Reason.RAISED)
    return [
        replace(each, same_as=changed.name) if each.reason in follow and not each.causes else each for each in results
    ]


def _make_results_wait_for_slip(slip: Slip, results: Sequence[CheckResult]) -> tuple[CheckResult, ...]:
    told = CheckResult("first_cause_1", slip.claim, Verdict.FAIL, slip.seen, look=slip.look, reason=Reason.SLIP)
    lead = replace(told, worth=0.0, leads=True)
    waits = {each.name for each in results if each.verdict == Verdict.FAIL and slip.explains(each)}
    behind = (_make_waiting_result(each, lead) if each.name in waits else each for each in results)
    return lead, *(replace(each, waits_for=lead.name) if each.waits_for in waits else each for each in behind)


def _make_first_cause_key(result: CheckResult) -> object:
    """Make what is alike in checks that stumbled over the same; None for those that found what they looked for.

    A known mistake has its name and its explanation, in whichever check it is reported.
    """
    if result.verdict != Verdict.FAIL or result.reason not in _CLAIMS or result.causes:
        return None
    over = (
        "" if result.reason in (Reason.KIND, Reason.DEVICE, Reason.NOT_WRITTEN) else result.stumbled_over or result.seen
    )
    return result.reason, over


def _select_lead_if_cause(result: CheckResult, lead: CheckResult | None) -> CheckResult | None:
    """``lead``, where it causes a failure that has no name of its own: numbers cut to integers, a printed example."""
    if lead is None or result.verdict != Verdict.FAIL or result.causes:
        return None
    example = is_example_check(result.name)
    if result.reason != Reason.DIFFERENT and not (example and result.reason == Reason.RAISED):
        return None
    is_whole = lead.reason == Reason.DTYPE and not lead.stumbled_over.startswith("float")
    return lead if example or is_whole else None


def _is_first_cause(result: CheckResult, results: Sequence[CheckResult]) -> bool:
    """Say whether a result is a first cause: whether it says more than its check claims.

    That a call does not end, or the dtype of plain inputs, is claimed by no check. An exception may be what one or two
    checks are about ("Lists and tuples will do"), so it is a first cause where half of the checks met it.
    """
    names = {each.name for each in results if _make_first_cause_key(each) == _make_first_cause_key(result)}
    stumbled = sum(each.name in names or each.waits_for in names for each in results)
    if result.reason in (Reason.TIME, Reason.DTYPE):
        return True
    if len(names) == 1 and result.reason != Reason.RAISED and any(_is_passed_claim(each) for each in results):
        return False  # elsewhere it is as it should be
    return stumbled >= _FEWEST and (result.reason != Reason.RAISED or 2 * stumbled >= len(results))


def _is_passed_claim(result: CheckResult) -> bool:
    return result.verdict == Verdict.PASS and not result.guard


def _make_first_cause(result: CheckResult, name: str) -> CheckResult:
    assert result.reason is not None
    return replace(result, name=name, claim=_CLAIMS[result.reason], worth=0.0, guard=False, leads=True)


def _make_waiting_result(result: CheckResult, lead: CheckResult) -> CheckResult:
    seen = f"it could not be decided because of the first cause: {lead.seen}"
    return CheckResult(
        *(result.name, result.claim, Verdict.UNDECIDED, seen),
        reason=Reason.WAITS_FOR_CHECK,
        worth=result.worth,
        guard=result.guard,
        waits_for=lead.name,
    )
