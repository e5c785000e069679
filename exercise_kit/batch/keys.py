"""What an exercise's result depends on, as a key: when one of it changes, the exercise is graded again."""

from __future__ import annotations

import ast
import hashlib
import platform
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import exercise_kit
from exercise_kit.batch.places import Place
from exercise_kit.engine.course import course, package
from exercise_kit.submission.submission import ExerciseAnswer, Submission

if TYPE_CHECKING:
    from exercise_kit.judge.refused import Refused


def exercise_keys(
    submission: Submission, place: Place, confined: bool, refused: Refused | None = None, device: str = "cpu"
) -> dict[str, str]:
    """The key of each exercise of a submission.

    It depends on the submission's content, the exercise's points, the check files that hold its checks, the files
    that these may share, this package's code, torch's version, the secret, whether a sandbox is used, and the device;
    that of a result which is a file, on this file and on the grader's images too; and on the checks that do not count
    because they are ``refused`` by the lesson's model answer. Which test cells the lesson has, or whose the
    submission is, changes no score and no key. What is the grader's stands first, before a dash.
    """
    halves = graders_halves([each.name for each in submission.exercises], place, confined, device)
    left_out = {name: sorted(checks) for name, checks in (refused or {}).items()}
    return {
        each.name: f"{halves[each.name]}-{_submitters_half(submission, each, left_out.get(each.name))}"
        for each in submission.exercises
    }


def graders_halves(exercises: Iterable[str], place: Place, confined: bool, device: str = "cpu") -> dict[str, str]:
    """What all keys of each exercise begin with while checks, code, secret and sandbox stay as they are."""
    checks = _check_digests(place.checks, stamp(place.checks))
    shared = (code_digest(), checks[""], place.secret, confined, device)
    return {name: _digest(*shared, checks.get(name)) for name in exercises}


def _submitters_half(submission: Submission, answer: ExerciseAnswer, left_out: list[str] | None) -> str:
    return _digest(submission.digest, submission.lesson, _asked(answer), left_out)


def _asked(answer: ExerciseAnswer) -> tuple[object, ...]:
    asked = (answer.name, answer.max_score, answer.cell, answer.problem, answer.parts)
    if answer.file is None:
        return asked
    results = course().results
    return *asked, answer.file.digest, results.stamp() if results else None


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """What changes when a Python file of a folder does; cheaper than a digest."""
    facts = ((path, path.stat()) for path in sorted(folder.rglob("*.py")))
    return tuple((str(path), fact.st_mtime_ns, fact.st_size) for path, fact in facts)


@lru_cache(maxsize=4)
def _check_digests(folder: Path, of: object) -> dict[str, str]:
    """A digest of each exercise's check files; under "" one of all files that hold no checks of an exercise."""
    texts: dict[str, list[str]] = {"": []}
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        for exercise in set(_marked(content)) or {""}:
            texts.setdefault(exercise, []).append(f"{path.relative_to(folder)} {hashlib.sha256(content).hexdigest()}")
    return {exercise: _digest(sorted(files)) for exercise, files in texts.items()}


def _marked(content: bytes) -> Iterator[str]:
    """The exercises that a check file's marks name, as in ``@pytest.mark.exercise("patchify", points=2)``."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "exercise":
            yield from (str(part.value) for part in node.args if isinstance(part, ast.Constant))


@lru_cache(maxsize=1)
def code_digest() -> str:
    """A digest of the kit's code and of the course's, and of the versions that it runs on."""
    homes = {Path(exercise_kit.__file__).parent, Path(str(files(package())))}
    paths = sorted(path for home in homes for path in home.rglob("*.py"))
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    return _digest(digests, platform.python_version(), *map(_version, ("torch", "torchvision", "pytest", "IPython")))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
