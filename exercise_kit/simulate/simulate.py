"""A class folder with notebooks of invented students, the truth about them, and whether grading found that truth."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from exercise_kit.batch.locations import read_or_create_secret
from exercise_kit.nbgrader.class_folder import move_into_place, new_class, refuse_nonempty_folder
from exercise_kit.simulate.ground_truth import Oracle
from exercise_kit.simulate.modules import load_right_variants
from exercise_kit.simulate.profiles import draw_names, draw_profiles
from exercise_kit.simulate.submissions import SimulatedLesson, make_seeded_random
from exercise_kit.submission.flags import NOT_SANDBOXED, WEAKER_SANDBOX

_ROUNDING = 1e-3  # scores are kept with four digits, and sums of some of them add up their roundings


def compare_grades_with_truth(truth: Mapping[str, Any], graded: Mapping[str, Any]) -> list[str]:
    """Every difference between the truth and the grades, in words; an empty list: there is none.

    Args:
        truth: as ``truth.json`` holds it.
        graded: what ``vit-course grade --json`` writes.
    """
    expected = {(each["student"], each["lesson"]): each for each in truth["submissions"]}
    found = {(each["student"], each["assignment"]): each for each in graded["submissions"]}
    differences = [f"{_write_place_label(each)}: it was not graded" for each in expected if each not in found]
    differences += [f"{_write_place_label(each)}: nobody handed it in" for each in found if each not in expected]
    for place, each in expected.items():
        if place in found:
            differences += [f"{_write_place_label(place)}: {text}" for text in _compare_submission(each, found[place])]
    return differences


def _write_place_label(place: tuple[Any, Any]) -> str:
    return f"{place[0]}, {place[1]}"


def _compare_submission(expected: Mapping[str, Any], graded: Mapping[str, Any]) -> Iterator[str]:
    if graded["status"] != expected["status"]:
        yield f"it is {graded['status']} ({graded['reason']}), and should be {expected['status']}"
        return
    flags = set(graded["flags"]) - {NOT_SANDBOXED, WEAKER_SANDBOX}
    for flag in sorted(flags ^ set(expected["flags"])):
        yield f"it has the flag {flag}" if flag in flags else f"it lacks the flag {flag}"
    yield from _compare_scores("all exercises", expected, graded)
    by_name = {each["name"]: each for each in graded["exercises"]}
    for exercise in expected["exercises"]:
        if exercise["name"] not in by_name:
            yield f"{exercise['name']} was not graded"
        else:
            yield from _compare_exercise(exercise, by_name.pop(exercise["name"]))
    yield from (f"{name} is no exercise of this lesson" for name in by_name)


def _compare_exercise(expected: Mapping[str, Any], graded: Mapping[str, Any]) -> Iterator[str]:
    name = expected["name"]
    answer_label = f"{name} ({expected['kind']}: {expected['answer']})"
    yield from _compare_scores(answer_label, expected, graded)
    if graded["misconception"] != expected["named"]:
        yield f"{answer_label} is named {graded['misconception']}, and should be {expected['named']}"
    # a check that waits for another one has failed, and a first cause is no check
    verdicts = {
        each["name"]: "fail" if each.get("waits_for") else each["verdict"]
        for each in graded["checks"]
        if not each.get("leads")
    }
    for check in (*expected["checks"], *(verdicts.keys() - expected["checks"].keys())):
        one, other = verdicts.get(check, "not evaluated"), expected["checks"].get(check, "not known")
        if one != other:
            yield f"{answer_label}: {check} is {one}, and should be {other}"


def _compare_scores(label: str, expected: Mapping[str, Any], graded: Mapping[str, Any]) -> Iterator[str]:
    for score in ("score", "max_score"):
        if abs(graded[score] - expected[score]) > _ROUNDING:
            yield f"{label}: the {score.replace('_', ' ')} is {graded[score]:g}, and should be {expected[score]:g}"


def count_named_mistakes(truth: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many answers hold one or two known mistakes, and how many of them get exactly the right name."""
    wrong: Sequence[Mapping[str, Any]] = [
        exercise for each in truth["submissions"] for exercise in each["exercises"] if exercise["misconception"]
    ]
    return len(wrong), sum(each["named"] == each["misconception"] for each in wrong)


TRUTH = "truth.json"
VERSION = 1


class SimulationError(Exception):
    """A class cannot be simulated; the message says why, and what to do."""


@dataclass(frozen=True)
class Simulated:
    """A simulated class.

    Attributes: ``path``, ``lessons``, ``students``, and how many answers there are of each kind (``kinds``).
    """

    path: Path
    lessons: tuple[str, ...]
    students: int
    kinds: Mapping[str, int]


def simulate(
    directory: Path,
    root: Path,
    students: int,
    seed: int,
    lessons: Sequence[str] = (),
    report_progress: Callable[[], None] = lambda: None,
) -> Simulated:
    """Make a class folder, hand in lessons for invented students, and write down what grading has to find.

    The folder appears complete or not at all.

    Args:
        directory: where to make it; it must not exist, or be empty.
        root: a clone of the course, with built lessons.
        students: how many.
        seed: the same seed makes the same files.
        lessons: names of lessons; all of them by default.
        report_progress: is called for each notebook that is written.

    Raises:
        SimulationError: there is no such lesson, or fewer than one student.
        ClassFolderError: the directory is in use, or no lesson has been built.
        HiddenChecksError: the hidden checks cannot be used.
    """
    if students < 1:
        raise SimulationError(f"a class of {students} students has nobody in it; give --students 1 or more")
    wanted = choose_lessons(root, lessons)
    directory = directory.resolve()
    refuse_nonempty_folder(directory)
    draft = directory.with_name(f".{directory.name}-{uuid4().hex[:8]}")
    try:
        new_class(draft, root)
        kinds = _write_submissions(draft, root, students, seed, wanted, report_progress)
        move_into_place(draft, directory)
    except OSError as error:
        raise SimulationError(f"cannot make {directory}: {error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return Simulated(directory, tuple(wanted), students, kinds)


def choose_lessons(root: Path, lessons: Sequence[str]) -> list[str]:
    """The lessons to hand in, in the course's order.

    Raises:
        SimulationError: there is none of a name.
    """
    built = sorted(path.stem for path in (root / "notebooks").glob("*.ipynb"))
    if unknown := [name for name in lessons if name not in built]:
        raise SimulationError(f"there is no lesson {unknown[0]!r}; there are: {', '.join(built) or 'none'}")
    return [name for name in built if name in lessons or not lessons]


def _write_submissions(
    folder: Path, root: Path, students: int, seed: int, lessons: Sequence[str], advance: Callable[[], None]
) -> dict[str, int]:
    """Hand in, and write the truth down; gives how many answers there are of each kind."""
    variants = load_right_variants()
    handed_in = [SimulatedLesson(name, folder, root, variants, seed, week) for week, name in enumerate(lessons)]
    secret = hashlib.sha256(f"simulated class {seed}".encode()).hexdigest().encode()
    people = zip(
        draw_names(students, make_seeded_random(seed, "names")),
        draw_profiles(students, make_seeded_random(seed, "sorts")),
        strict=True,
    )
    kinds = Counter[str]()

    def make_entries(oracle: Oracle) -> Iterator[dict[str, Any]]:
        for student, sort in people:
            for lesson in handed_in:
                submitted = lesson.draw_submission(student, sort)
                lesson.write(folder / "submitted", submitted)
                entry = lesson.describe_truth(submitted, secret, oracle)
                kinds.update(each["kind"] for each in entry["exercises"])
                yield entry
                advance()

    head = {
        "version": VERSION,
        "students": students,
        "seed": seed,
        "due": {lesson.name: lesson.due for lesson in handed_in},
    }
    _write_truth(folder / TRUTH, head, make_entries(Oracle(folder / "hidden")))
    _write_class_secret(folder / ".vit_course" / "secret", secret)
    return dict(kinds)


def _write_truth(path: Path, head: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]) -> None:
    """One submission on a line, so that the file can be read by people, and written as it grows."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(json.dumps(head, ensure_ascii=False)[:-1] + ', "submissions": [')
        for number, entry in enumerate(entries):
            file.write((",\n" if number else "\n") + json.dumps(entry, ensure_ascii=False))
        file.write("\n]}\n")


def _write_class_secret(path: Path, secret: bytes) -> None:
    """Give the class a secret that follows from its seed: so the truth holds even where it depends on what is drawn."""
    path.parent.mkdir(mode=0o700)
    path.write_bytes(secret)
    path.chmod(0o600)
    if read_or_create_secret(path) != secret:
        raise SimulationError(f"the grader does not take {path} for its secret")


def read_truth(directory: Path) -> dict[str, Any]:
    """The truth of a simulated class.

    Raises:
        SimulationError: there is none, or it cannot be read.
    """
    path = directory / TRUTH
    try:
        truth: dict[str, Any] = json.loads(path.read_bytes())
        truth["submissions"]
    except FileNotFoundError:
        raise SimulationError(f"there is no {path}: only a class made by vit-course simulate has a truth") from None
    except (ValueError, KeyError, TypeError) as error:
        raise SimulationError(f"{path} cannot be read ({error}); simulate the class again") from None
    return truth
