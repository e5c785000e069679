"""Whether grades are what they have to be: the truth of a simulated class against what grading found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from exercise_kit.submission.flags import NOT_SANDBOXED, WEAKER_SANDBOX

_ROUNDING = 1e-3  # scores are kept with four digits, and sums of some of them add up their roundings


def compare(truth: Mapping[str, Any], graded: Mapping[str, Any]) -> list[str]:
    """Every difference between the truth and the grades, in words; an empty list: there is none.

    Args:
        truth: as ``truth.json`` holds it.
        graded: what ``vit-course grade --json`` writes.
    """
    expected = {(each["student"], each["lesson"]): each for each in truth["submissions"]}
    found = {(each["student"], each["assignment"]): each for each in graded["submissions"]}
    differences = [f"{_whose(each)}: it was not graded" for each in expected if each not in found]
    differences += [f"{_whose(each)}: nobody handed it in" for each in found if each not in expected]
    for place, each in expected.items():
        if place in found:
            differences += [f"{_whose(place)}: {text}" for text in _of_submission(each, found[place])]
    return differences


def _whose(place: tuple[Any, Any]) -> str:
    return f"{place[0]}, {place[1]}"


def _of_submission(expected: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    if found["status"] != expected["status"]:
        yield f"it is {found['status']} ({found['reason']}), and should be {expected['status']}"
        return
    flags = set(found["flags"]) - {NOT_SANDBOXED, WEAKER_SANDBOX}
    for flag in sorted(flags ^ set(expected["flags"])):
        yield f"it has the flag {flag}" if flag in flags else f"it lacks the flag {flag}"
    yield from _scores("all exercises", expected, found)
    by_name = {each["name"]: each for each in found["exercises"]}
    for exercise in expected["exercises"]:
        if exercise["name"] not in by_name:
            yield f"{exercise['name']} was not graded"
        else:
            yield from _of_exercise(exercise, by_name.pop(exercise["name"]))
    yield from (f"{name} is no exercise of this lesson" for name in by_name)


def _of_exercise(expected: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    name = expected["name"]
    told = f"{name} ({expected['kind']}: {expected['answer']})"
    yield from _scores(told, expected, found)
    if found["misconception"] != expected["named"]:
        yield f"{told} is named {found['misconception']}, and should be {expected['named']}"
    verdicts = {each["name"]: each["verdict"] for each in found["checks"]}
    for check in (*expected["checks"], *(verdicts.keys() - expected["checks"].keys())):
        one, other = verdicts.get(check, "not asked"), expected["checks"].get(check, "not known")
        if one != other:
            yield f"{told}: {check} is {one}, and should be {other}"


def _scores(what: str, expected: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    for score in ("score", "max_score"):
        if abs(found[score] - expected[score]) > _ROUNDING:
            yield f"{what}: the {score.replace('_', ' ')} is {found[score]:g}, and should be {expected[score]:g}"


def share_named(truth: Mapping[str, Any]) -> tuple[int, int]:
    """How many answers hold a mistake of the library, or two, and of how many of them the very name is told."""
    wrong: Sequence[Mapping[str, Any]] = [
        exercise for each in truth["submissions"] for exercise in each["exercises"] if exercise["misconception"]
    ]
    return len(wrong), sum(each["named"] == each["misconception"] for each in wrong)
