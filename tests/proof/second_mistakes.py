"""A known mistake is one mistake: which checks each one fails, and what of that its own sentence does not account for.

    python -m tests.proof.second_mistakes                    # all exercises, some minutes; ends with 1 if it found any
    python -m tests.proof.second_mistakes patchify Mlp       # these alone
    python -m tests.proof.second_mistakes patchify --points  # and those that keep more than two thirds of the points
    python -m tests.proof.second_mistakes patchify --all     # every known mistake, with the checks that it fails
    python -m tests.proof.second_mistakes --secrets 8        # those whose points depend on what a secret draws

A machine cannot read a sentence, so the rule is about what was recorded. Each check is evaluated on the mistake and on
the right answer with the same draws, and the two records are compared where the check ended. Most differences are the
mistake itself: other numbers, another shape, an exception. Seven kinds are a promise of their own, which nearly every
mistake could keep (``KINDS``): the error that is asked for, the dtype, the device, an input left alone, a result of its
own, the mode, the gradient of right numbers. A mistake that breaks one of these has to say so, with one of the words of
that kind in its name or its sentence; else it is listed as a second mistake.

With ``--points`` it is listed too where it keeps more than two thirds of the exercise's hidden points, unless each
hidden check that it fails may cost less than a third.

What is right all the same stands in ``second_mistakes.txt``, one a line: ``exercise: mistake: kind: the reason``, and
of what may cost less than a third ``points: kind: the reason`` or ``points: exercise: hidden check or mistake: the
reason``, with patterns as in a shell. A line there that nothing needs any more is reported as well.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.compare import are_close
from exercise_kit.engine.course import course
from exercise_kit.engine.diagnosis import Record
from exercise_kit.engine.evaluate_check import Outcome
from exercise_kit.engine.exercise import Exercise, Misconception
from exercise_kit.engine.name_failures import observe_misconception
from exercise_kit.engine.records import is_same_record
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Cause, Verdict
from exercise_kit.judge.scoring import compute_fraction
from exercise_kit.reasons import Reason
from tests.our_hidden_checks import hidden_checks

KEY = b"second mistakes"
MOST_KEPT, MOST_APART = 2 / 3, 0.15
KEEPS, HIDDEN = "points", "hidden "
EXAMPLE = "test_its_own_example_comes_out"  # it asks again what other checks ask
LISTED = Path(__file__).with_suffix(".txt")
# kind of promise → beginnings of words, one of which a sentence has that tells of it
KINDS = {
    "error": "error valueerror raise refus accept silen complain exception",
    "dtype": "dtype float integer precision digit round bool numpy",
    "device": "device cpu gpu cuda",
    "input": "place chang overwrit written spoil alter modif",
    "own result": "memory view cache kept keep earlier outlive share global alias",
    "mode": "mode train eval dropout",
    "gradient": "gradient graph detach grad no_grad numpy learn frozen backward",
}
_OF_RECORDS = {
    "changed inputs": "input",
    "on the CPU": "device",
    "results of their own": "own result",
    "modes changed by forward": "mode",
    "gradients": "gradient",
    "numbers named": "error",
}
_OF_REASONS = {Reason.ACCEPTED: "error", Reason.DTYPE: "dtype", Reason.DEVICE: "device"}


@dataclass(frozen=True)
class Failed:
    """A check that a known mistake fails: its ``name``, and the ``kind`` of promise that it breaks there, or ""."""

    name: str
    kind: str


@dataclass(frozen=True)
class Finding:
    """What a known mistake fails.

    Attributes: ``exercise``, ``wrong``, ``failed`` (public checks, then hidden ones), ``kept`` (the share of points).
    """

    exercise: str
    wrong: Misconception
    failed: tuple[Failed, ...]
    kept: float

    @property
    def unexplained_failures(self) -> dict[str, list[str]]:
        """Kind → the checks that fail for it, where the mistake's sentence does not account for them."""
        found: dict[str, list[str]] = {}
        for each in self.failed:
            if each.kind and not has_word_of_kind(self.wrong.cause, each.kind):
                found.setdefault(each.kind, []).append(each.name)
        return found

    def find_reasons_for_little_cost(self, reasons: Collection[tuple[str, ...]]) -> list[tuple[str, ...]] | None:
        """The reasons why it may keep more than two thirds of the points; None where a failed check has none."""
        names = (each for each in self.failed if each.name.startswith(HIDDEN))
        hidden = [(each.name.removeprefix(HIDDEN), each.kind) for each in names]
        if whole := self._find_listed(reasons, self.wrong.name):
            return [whole]
        found = [
            (kind,) if (kind,) in reasons else self._find_listed(reasons, name)
            for name, kind in hidden
            if name != EXAMPLE
        ]
        return None if None in found else [key for key in found if key]

    def _find_listed(self, reasons: Collection[tuple[str, ...]], name: str) -> tuple[str, ...] | None:
        """The reason that is listed for one of its hidden checks, or for itself, by name."""
        listed = (key for key in reasons if len(key) == 2)
        return next((key for key in listed if fnmatch(self.exercise, key[0]) and fnmatch(name, key[1])), None)


def has_word_of_kind(cause: Cause, kind: str) -> bool:
    """Say whether the name or the sentence of a mistake has a word of a kind of promise."""
    words = re.findall(r"\w+", f"{cause.name} {cause.explanation}".lower())
    return any(word.startswith(tuple(KINDS[kind].split())) for word in words)


def find_kind_of_failure(record: Record, right: Record, reason: Reason | None = None) -> str:
    """The kind of promise that is broken where a check ended.

    Args:
        record: what the check wrote down of a mistake.
        right: what it wrote down of the right answer.
        reason: of the failure, which decides where the records say nothing.

    Returns: a key of ``KINDS``, or "" where the mistake itself shows: numbers, shapes, exceptions.
    """
    differing = [place for place, entry in enumerate(record) if not is_same_record(entry, (*right, *record)[place])]
    if not differing or len(right) < len(record):
        return _OF_REASONS.get(reason, "") if reason else ""
    entry, wanted = record[differing[-1]], right[differing[-1]]
    label = entry[0] if isinstance(entry, tuple) and entry else ""
    if isinstance(wanted, tuple) and wanted[:1] == ("raised",):
        return "error"
    if label == "gradients" and not _is_gradient_missing(entry, wanted) and len(differing) > 1:
        return ""  # of other numbers the gradient is another one, too
    if isinstance(label, str) and label in _OF_RECORDS:
        return _OF_RECORDS[label]
    return "dtype" if _is_same_but_for_dtype(entry, wanted) else ""


def _is_gradient_missing(found: Any, wanted: Any) -> bool:
    """Say whether a gradient on record is None, where the right answer has one."""
    return any(here is None and there is not None for here, there in zip(found[1], wanted[1], strict=False))


def _is_same_but_for_dtype(found: object, wanted: object) -> bool:
    if isinstance(found, Tensor) and isinstance(wanted, Tensor):
        return found.shape == wanted.shape and are_close(found.to(torch.float64), wanted.to(torch.float64))
    if isinstance(found, tuple) and isinstance(wanted, tuple):
        pairs = zip(found, wanted, strict=False)
        return len(found) == len(wanted) and all(
            is_same_record(*each) or _is_same_but_for_dtype(*each) for each in pairs
        )
    return False


def list_distinct_exercises() -> list[Exercise]:
    """The exercises with code to write, without those that share the checks of another."""
    first = {id(each.checks): each for each in reversed(list(course().exercises.values())) if not each.file}
    return [each for each in course().exercises.values() if first.get(id(each.checks)) is each]


def iterate_findings(exercise: Exercise, mistakes: Sequence[Misconception] | None = None) -> Iterator[Finding]:
    """Yield what each known mistake of an exercise fails; of ``mistakes`` alone, where they are given."""
    right = Misconception(Cause("right", "", "", ""), course().references()[exercise.name])
    records = {each.check.name: each.record for each in _run_hidden_checks(exercise, right)}
    for wrong in exercise.misconceptions if mistakes is None else mistakes:
        outcomes = _run_hidden_checks(exercise, wrong)
        hidden = (
            Failed(f"{HIDDEN}{name}", find_kind_of_failure(each.record, records[name], each.result.reason))
            for each in outcomes
            if (name := each.check.name) and each.result.verdict == Verdict.FAIL
        )
        failed = *_iterate_public_failures(exercise, wrong, right), *hidden
        yield Finding(exercise.name, wrong, failed, compute_fraction(exercise.name, outcomes))


def _iterate_public_failures(exercise: Exercise, wrong: Misconception, right: Misconception) -> Iterator[Failed]:
    lost: set[str] = set()
    for check in exercise.checks:
        if not lost.isdisjoint(check.needs):
            lost.add(check.name)
            continue
        fails, record = observe_misconception(wrong, exercise.objects, check)
        if fails:
            lost.add(check.name)
            yield Failed(
                check.name, find_kind_of_failure(record, observe_misconception(right, exercise.objects, check)[1])
            )


def _run_hidden_checks(exercise: Exercise, wrong: Misconception, key: bytes = KEY) -> list[Outcome]:
    named = dict(zip(exercise.objects, wrong.objects, strict=True))
    return list(hidden_checks().run(exercise.name, lambda: Student(named), key))


def print_points_by_chance(exercises: Sequence[Exercise], secrets: int) -> int:
    """Print the mistakes whose points depend by more than ``MOST_APART`` on the secret: two students may share one.

    Returns: how many there are.
    """
    found = 0
    for exercise, wrong in ((each, wrong) for each in exercises for wrong in each.misconceptions):
        outcomes = [_run_hidden_checks(exercise, wrong, f"secret {number}".encode()) for number in range(secrets)]
        kept = [compute_fraction(exercise.name, each) for each in outcomes]
        if max(kept) - min(kept) > MOST_APART:
            found += 1
            failing = [{one.check.name for one in each if one.result.verdict == Verdict.FAIL} for each in outcomes]
            at_times = ", ".join(sorted(set.union(*failing) - set.intersection(*failing)))
            print(f"{exercise.name}: {wrong.name} (keeps {min(kept):.0%} to {max(kept):.0%})")
            print(f"    at times fails {at_times}", flush=True)
    return found


def read_listed_reasons() -> tuple[dict[tuple[str, ...], str], dict[tuple[str, ...], str]]:
    """Why all is right, by (exercise, mistake, kind), and why little is lost, by (kind,) or (exercise, check)."""
    beyond: dict[tuple[str, ...], str] = {}
    points: dict[tuple[str, ...], str] = {}
    for line in LISTED.read_text("utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            first, *rest = (each.strip() for each in line.split(":"))
            if first != KEEPS:
                beyond[first, rest[0], rest[1]] = ":".join(rest[2:])
            elif rest[0] in KINDS:
                points[rest[0],] = ":".join(rest[1:])
            else:
                points[rest[0], rest[1]] = ":".join(rest[2:])
    return beyond, points


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a mistake is more than one (or keeps too much), or a reason is listed for nothing."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("exercise", nargs="*", help="these alone; all by default")
    parser.add_argument("--all", action="store_true", help="every known mistake, with the checks that it fails")
    parser.add_argument("--points", action="store_true", help="those too that keep more than two thirds of the points")
    parser.add_argument("--secrets", type=int, help="evaluate under so many, and list what depends on them; no more")
    options = parser.parse_args(arguments)
    exercises = list_distinct_exercises()
    if options.exercise:
        exercises = [_find_exercise(name, exercises, parser) for name in dict.fromkeys(options.exercise)]
    if options.secrets:
        return int(print_points_by_chance(exercises, options.secrets) > 0)
    (reasons, cheap), counts = read_listed_reasons(), Counter()
    used: set[tuple[str, ...]] = set()
    for finding in (finding for each in exercises for finding in iterate_findings(each)):
        keys = {kind: (finding.exercise, finding.wrong.name, kind) for kind in finding.unexplained_failures}
        used |= {key for key in keys.values() if key in reasons}
        beyond = {kind: finding.unexplained_failures[kind] for kind, key in keys.items() if key not in reasons}
        counts += Counter(mistakes=1, second=bool(beyond))
        if finding.kept > MOST_KEPT:
            why = finding.find_reasons_for_little_cost(cheap)
            used |= set(why or ())
            counts += Counter(little=1, kept=why is None)
            if why is None and options.points:
                beyond[KEEPS] = [f"{finding.kept:.0%} of them are kept"]
        _print_finding(finding, beyond, options.all)
    checked = {each.name for each in exercises}
    for key in (
        stale := [
            *(key for key in reasons if key[0] in checked and key not in used),
            *([] if options.exercise else [key for key in cheap if key not in used]),
        ]
    ):
        print(f"{LISTED.name} lists {': '.join(key)}, which nothing needs")
    print(f"{counts['mistakes']} known mistakes of {len(exercises)} exercises:")
    print(f"  {counts['second']} make a second mistake that their sentence does not account for")
    kept = f"{counts['little']} keep more than two thirds of the hidden points"
    print(f"  {kept}, {counts['kept']} of them without a reason")
    return int(bool(counts["second"] or (options.points and counts["kept"]) or stale))


def _find_exercise(name: str, exercises: Sequence[Exercise], parser: argparse.ArgumentParser) -> Exercise:
    """Return the exercise of a name, or the one whose checks it shares; end with 2 where there is none."""
    known = course().exercises
    if name not in known or known[name].file:
        found = get_close_matches(name.replace("_", "").lower(), names := {each.lower(): each for each in known}, 1)
        hint = f"; did you mean {names[found[0]]}?" if found else ""
        parser.error(
            f"no exercise with code is called {name!r}; its name is the one in check(...), not the folder's{hint}"
        )
    return next(each for each in exercises if each.checks is known[name].checks)


def _print_finding(finding: Finding, beyond: Mapping[str, Sequence[str]], is_whole: bool) -> None:
    if beyond or is_whole:
        print(f"{finding.exercise}: {finding.wrong.name} (keeps {finding.kept:.0%})", flush=True)
    for kind, checks in beyond.items():
        print(f"    {kind}: {', '.join(checks)}")
    if is_whole:
        print(f"    fails {', '.join(each.name for each in finding.failed)}")


if __name__ == "__main__":
    sys.exit(main())
