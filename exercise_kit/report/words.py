"""The report's sentences and numbers."""

from __future__ import annotations

from exercise_kit.report.shares import Lost
from exercise_kit.report.tally import Tally
from exercise_kit.report.work import State
from exercise_kit.submission import flags

FLAGS = {
    flags.TEST_EDITED: "a check cell was changed (the judge uses its own, so no points were won)",
    flags.TEST_DELETED: "a check cell was deleted (the judge uses its own, so no points were lost)",
    flags.COPIED: "an answer is, but for names, the course's own code",
    flags.FORBIDDEN_FUNCTION: "an answer calls what the exercise asks to write",
    flags.POSSIBLE_BYPASS: "an answer's code names what its exercise does not allow, or can hide what it calls",
    flags.TIMEOUT: "the code took too long and was stopped",
    flags.STOPPED: "the sandbox stopped the code: too much memory, or a forbidden system call",
    flags.SAME_FILE: "a trained model is, byte for byte, another student's: a copy, or one seed on machines alike",
    flags.WEAKER_SANDBOX: "graded in a weaker sandbox (this machine refuses namespaces)",
    flags.NOT_SANDBOXED: "graded without a sandbox (--no-sandbox)",
}
# what joins within Persian words, and within one picture made of several; and the space that does not break
_KEPT = "\n\t\u200c\u200d\u00a0"


def clean(text: str) -> str:
    """``text`` as a page can hold it, whoever wrote it: no control characters, no turning round of the writing."""
    return "".join(each if each.isprintable() or each in _KEPT else " " for each in text)


def percent(share: float) -> str:
    """0.714 → "71 %", with a space that does not break; what is not all or nothing is not rounded to it."""
    rounded = round(100 * share)
    if share < 1:
        rounded = min(rounded, 99)
    if share > 0:
        rounded = max(rounded, 1)
    return f"{rounded}\u00a0%"


def points(value: float) -> str:
    """12.04 → "12", 0.25 → "0.2": as many digits as a lecture needs."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0")


def plural(count: int, noun: str, several: str = "") -> str:
    """1, "notebook" → "1 notebook"; 3 → "3 notebooks"."""
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def sentences(found: Tally) -> list[str]:
    """The class in three sentences; one where nothing is graded."""
    handed_in = _handed_in(found)
    return [handed_in, *([_how_well(found), _what_next(found)] if found.shares() else ())]


def _handed_in(found: Tally) -> str:
    work = found.work
    if not work.handed_in:
        return "Nobody has handed in anything yet."
    students = plural(len({each.who for each in work.handed_in}), "student")
    told = f"{students} handed in {plural(len(work.handed_in), 'notebook')}"
    told += f" for {plural(len(work.lessons), 'lesson')}" if work.lessons else ""
    graded = len(work.in_state(State.GRADED, State.OLDER))
    rest = {
        "not graded yet": len(work.in_state(State.WAITING, State.PARTLY)),
        "rejected": len(work.in_state(State.REJECTED)),
        "lost to a failure of the grader": len(work.in_state(State.ERROR)),
    }
    if not any(rest.values()):
        return f"{told}; all are graded."
    listed = ", ".join(f"{count:,} {'is' if count == 1 else 'are'} {what}" for what, count in rest.items() if count)
    return f"{told}: {graded:,} {'is' if graded == 1 else 'are'} graded, {listed}."


def _how_well(found: Tally) -> str:
    tried = [each for each in found.exercises if each.answers and each.points]
    told = "Half of the graded notebooks or more earn nothing"
    if found.median:
        told = f"Half of the graded notebooks earn {percent(found.median)} of their points or more"
    if len(tried) < 2:
        return f"{told}."
    hardest, easiest = min(tried, key=lambda each: each.mean), max(tried, key=lambda each: each.mean)
    if hardest.mean == easiest.mean:
        return f"{told}."
    return (
        f"{told}; hardest was {hardest.name}, with {percent(hardest.mean)} in the mean, "
        f"and easiest {easiest.name}, with {percent(easiest.mean)}."
    )


def _what_next(found: Tally) -> str:
    lost = found.lost
    total = sum(lost.values())
    if not total:
        return "No points were lost."
    share = lost[Lost.UNWRITTEN] / total
    unwritten = (
        f"{percent(share)} of the lost points are answers that nobody wrote" if share else "all answers are written"
    )
    if not found.mistakes:
        return f"No lost point goes to a mistake that has a name; {unwritten}."
    first = found.mistakes[0]
    cost = f"{plural(first.students, 'student')} and {plural(round(first.lost), 'point')}"
    return f"Of the mistakes that have a name, “{first.told.name}” cost the class most: {cost}; {unwritten}."
