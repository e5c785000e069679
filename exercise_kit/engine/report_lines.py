"""The lines of a report, of ``check`` and of grading alike, from what the checks found: each thing is told once.

A failure waits for a check that has to pass first, says what an earlier one said in one word, or stands behind a first
cause.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from exercise_kit.engine.first_cause import put_first_causes_in_front
from exercise_kit.engine.python_slips import find_slip
from exercise_kit.engine.slip_searches import Definition
from exercise_kit.engine.verdict import CheckResult, Verdict
from exercise_kit.reasons import Reason

_SAME_UP_TO_NUMBERS = (Reason.RAISED, Reason.PARAMETERS, Reason.TIME, Reason.KIND)
Needs = Mapping[str, Sequence[str]]


def make_report_lines(
    results: Sequence[CheckResult], needs: Needs, written: Sequence[Definition], leads: Mapping[str, str] | None = None
) -> tuple[CheckResult, ...]:
    """The lines of a report.

    Args:
        results: of the checks, in their order; failures with their causes.
        needs: a check's name → the names of the checks that have to pass first.
        written: what the student wrote, in which slips of Python are looked for.
        leads: the name of a mistake → the check that tells of it, where that is not the first that it fails.
    """
    lines = _abbreviate_repetitions(_put_telling_checks_first(_make_dependents_wait(results, needs), leads or {}))
    return put_first_causes_in_front(lines, find_slip(written, lines))


def mark_waiting(result: CheckResult, waits_for: CheckResult) -> CheckResult:
    """The line of a check that is not asked, or whose failure says nothing, before another one passes."""
    # for what that one waits for, where it waits itself
    reason = waits_for.seen if waits_for.waits_for else f"it waits until “{waits_for.claim}” passes"
    waiting = CheckResult(result.name, result.claim, Verdict.UNDECIDED, seen=reason, reason=Reason.WAITS_FOR_CHECK)
    return replace(waiting, worth=result.worth, guard=result.guard, waits_for=waits_for.waits_for or waits_for.name)


def _make_dependents_wait(results: Sequence[CheckResult], needs: Needs) -> list[CheckResult]:
    """The results of checks that were all evaluated, where a failure waits for a check that has to pass first.

    So grading, which gives points for each claim, tells no more than ``check``, which asks one after the other. Of a
    guard, and of a check without prerequisites, nobody knows whether its claim holds where numbers are wrong that a
    claim before it has found wrong, and that no known mistake explains: it waits for that claim.
    """
    by_name: dict[str, CheckResult] = {}
    found = []
    own = next((each for each in results if each.verdict == Verdict.FAIL and not each.is_anothers), None)
    wrong: CheckResult | None = None
    for each in results:
        first = (by_name[name] for name in needs.get(each.name, ()) if name in by_name)
        waits_for = next((one for one in first if one.verdict == Verdict.FAIL or one.waits_for), None)
        waits_for = waits_for or (own if each.is_anothers else None)
        if each.is_unnamed_number:
            waits_for = waits_for or (None if needs.get(each.name) and not each.guard else wrong)
            wrong = wrong or (each if needs.get(each.name) else None)
        found.append(mark_waiting(each, waits_for) if waits_for and each.verdict == Verdict.FAIL else each)
        if not each.is_anothers:  # else nobody knows whether its own claim holds
            by_name[each.name] = found[-1]
    return found


def _put_telling_checks_first(results: Sequence[CheckResult], leads: Mapping[str, str]) -> list[CheckResult]:
    """The results, where the check that tells best of a mistake comes before the others that fail of it."""
    ordered = list(results)
    for mistake, name in leads.items():
        same = [place for place, each in enumerate(ordered) if each.misconception == mistake]
        best = next((place for place in same if ordered[place].name == name), None)
        if best is not None:
            ordered.insert(same[0], ordered.pop(best))
    return ordered


def _abbreviate_repetitions(results: Sequence[CheckResult]) -> list[CheckResult]:
    """Say the same thing once: a failure, or a cause, that was reported before is only named again."""
    reported: dict[tuple[str, tuple[str, ...]], str] = {}
    explained: dict[tuple[str, ...], str] = {}
    shortened = []
    for result in results:
        names = tuple(cause.name for cause in result.causes)
        # an exception, a wrong name or another dtype comes back with other inputs, and is the same all the same
        seen = result.seen
        if result.stumbled_over and result.reason != Reason.DIFFERENT:
            seen = f"{result.reason}: {result.stumbled_over}"
        if result.reason in _SAME_UP_TO_NUMBERS:
            seen = re.sub(r"[0-9]+", "#", seen)
        before = reported.setdefault((seen, names), result.name) if seen else result.name
        known = before != result.name
        if known and result.verdict == Verdict.FAIL:
            result = replace(result, seen="the same as above", expected="", look="", same_as=before)
        elif known and result.verdict == Verdict.UNDECIDED and result.reason != Reason.WAITS_FOR_CHECK:
            result = replace(result, seen="the same as above")
        if names and (first := explained.setdefault(names, result.name)) != result.name:
            result = replace(result, is_repeated=True, same_as=first)
        shortened.append(result)
    return shortened
