"""``vit-course grade``: grade what paths name, and tell."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from exercise_kit.batch.batch import Grader
from exercise_kit.batch.device import DeviceError, checked
from exercise_kit.batch.job import Done
from exercise_kit.batch.places import PlaceError, place_of
from exercise_kit.batch.store import write_text
from exercise_kit.batch.told import broken_checks, overview, sheet
from exercise_kit.judge.result import Result, as_json, one_line
from exercise_kit.submission.finding import HandedIn, find, looks_like_class
from exercise_kit.submission.flags import SAME_FILE, with_same_file
from exercise_kit.submission.released import CONFIG, Lessons, is_class, operators_class


class GradeUsageError(Exception):
    """An option names something that there is not, or that cannot be; the message says what there is.

    Attributes: ``option``, as it is written on the command line.
    """

    def __init__(self, option: str, message: str) -> None:
        super().__init__(message)
        self.option = option


class GradeError(Exception):
    """Nothing can be graded; the message says why, and what to do."""


@dataclass(frozen=True)
class GradeOptions:
    """What was asked for: see ``vit-course grade --help``."""

    paths: Sequence[Path]
    class_dir: Path | None = None
    exercise: str | None = None
    json: str | None = None
    jobs: int = 1
    scheduler: str | None = None
    resume: bool = False
    sandbox: bool = True
    fresh: bool = False
    device: str = "cpu"


def grade(options: GradeOptions, out: Console, err: Console) -> bool:
    """Grade, and tell: JSON where it was asked for, else a table.

    Args:
        options: what to grade, and how.
        out: where the table goes.
        err: where progress and remarks go.

    Returns:
        Whether every submission was graded and none of them needs a word.

    Raises:
        GradeUsageError: there is no class, exercise or device of that name, or no file can be where JSON is asked for.
        GradeError: there is no sandbox here, no hidden checks, no scheduler at the address; or JSON cannot be written.
    """
    class_dir = _class_dir(options)
    lessons = Lessons(class_dir)
    if not lessons.names:
        raise GradeError(
            "There are no lessons here; grade in a clone of the course or a class folder, or give --class DIR."
        )
    if options.exercise and not lessons.of_exercise(options.exercise):
        known = ", ".join(name for lesson in lessons for name in lesson.names)
        raise GradeUsageError("--exercise", f"there is no exercise {options.exercise!r}; there are: {known}")
    if options.json is not None and (not Path(options.json).name or Path(options.json).is_dir()):
        raise GradeUsageError("--json", f"{options.json!r} is no file; name one, or - for stdout")
    device = _device(options)
    if options.sandbox and not options.scheduler:
        _require_walls(device)
    handed_in = find(options.paths, lessons.names, class_dir)
    done = _graded(replace(options, device=device), class_dir, handed_in, err)
    results = _flagged(done)
    _remarks(options, done, results, err)
    _tell_of_other_classes(options.paths, class_dir, err)
    if options.json is None:
        out.print(sheet(results[0]) if len(results) == 1 else overview(results), soft_wrap=False)
        if not options.sandbox:
            out.print("Not sandboxed: students' code ran with your rights (--no-sandbox).")
    else:
        _write_json(results, options.json, out)
    if not results:
        err.print("There is nothing to grade: no notebook or .py file with an exercise of the course.")
    return bool(results) and all(each.status == "graded" and each.reason is None for each in results)


def _class_dir(options: GradeOptions) -> Path | None:
    """The class folder: the one that was named, else the one that the command runs in; None: there is none."""
    if options.class_dir is None:
        return operators_class(options.paths)
    if not is_class(options.class_dir):
        raise GradeUsageError("--class", f"{options.class_dir} is no class folder: it has no {CONFIG}")
    return options.class_dir.resolve()


def _device(options: GradeOptions) -> str:
    try:
        return checked(options.device, here=not options.scheduler)
    except DeviceError as error:
        raise GradeUsageError("--device", str(error)) from None


def _tell_of_other_classes(paths: Sequence[Path], class_dir: Path | None, err: Console) -> None:
    """Name the folders that look like classes, whose checks were not used because a student could have made them."""
    found = dict.fromkeys(filter(None, (*map(looks_like_class, paths), operators_class())))
    for folder in (each for each in found if class_dir is None or each.resolve() != class_dir.resolve()):
        used = f"those of {class_dir}" if class_dir else "the course's own checks"
        name = shlex.quote(one_line(str(folder)))
        err.print(
            f"{name} looks like a class folder, but a student could have handed it in: {used} were used. If it is your "
            f"own class, grade again with --class {name}.",
            markup=False,
        )


def _require_walls(device: str) -> None:
    from exercise_kit.worker.survey import available

    walls = available()
    if not (walls.enough or (device != "cpu" and walls.enough_for_a_gpu)):
        remedies = "".join(f"\n  {name}: {remedy}" for name, remedy in walls.missing.items())
        raise GradeError(
            "This machine cannot keep students' code apart, so nothing was graded. What is missing:"
            f"{remedies}\n'vit-course doctor' tells more. To run the code unguarded, give --no-sandbox."
        )


def _graded(options: GradeOptions, class_dir: Path | None, handed_in: list[HandedIn], err: Console) -> list[Done]:
    try:
        grader = Grader(
            place_of(class_dir),
            jobs=max(1, min(options.jobs, len(handed_in))),
            confined=options.sandbox,
            fresh=options.fresh,
            exercise=options.exercise,
            scheduler=options.scheduler,
            device=options.device,
        )
    except PlaceError as error:
        raise GradeError(str(error)) from None
    except ModuleNotFoundError as error:
        if error.name != "distributed":
            raise
        raise GradeError('--scheduler needs dask: pip install "vit-course[cluster]"') from None
    except (OSError, ValueError) as error:
        if not options.scheduler:
            raise
        raise GradeError(f"there is no scheduler at {options.scheduler}: {error}") from None
    with grader, _progress(err, len(handed_in)) as advance:
        return list(grader.run(handed_in, lambda _: advance()))


def _flagged(done: Sequence[Done]) -> list[Result]:
    """The results; of students who handed in the same file, each with a flag."""
    found = [(each.result, each.files) for each in done if each.result is not None]
    shared = with_same_file([(result.student or result.path, files) for result, files in found])
    return [
        replace(result, flags=(*result.flags, SAME_FILE)) if same else result
        for (result, _), same in zip(found, shared, strict=True)
    ]


@contextmanager
def _progress(err: Console, total: int) -> Iterator[Callable[[], None]]:
    if not err.is_terminal:
        yield lambda: None
        return
    columns = (TextColumn("grading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("grading", total=total)
        yield lambda: bar.advance(task)


def _remarks(options: GradeOptions, done: Sequence[Done], results: Sequence[Result], err: Console) -> None:
    for text in broken_checks(results):
        err.print(text, markup=False)
    if options.resume:
        taken_over = sum(each.taken_over for each in done)
        err.print(f"{taken_over} of {len(results)} results were taken over from an earlier run.")
    if options.json is not None:
        for each in results:
            if each.reason:
                err.print(one_line(f"{each.path}: {each.status}: {each.reason}"), markup=False)


def _published(results: list[Result]) -> dict[str, Any]:
    """What other programs read, and no key more; what is wrong with a whole exercise is said at each of its checks."""
    published = as_json(results)
    for exercise in (each for entry in published["submissions"] for each in entry["exercises"]):
        problem = exercise.pop("problem")
        for check in exercise["checks"]:
            del check["claim"], check["parts"]
            if check["verdict"] != "pass" and check["message"] is None:
                check["message"] = problem
    return published


def _write_json(results: list[Result], target: str, out: Console) -> None:
    text = _harmless(json.dumps(_published(results), indent=1, ensure_ascii=False)) + "\n"
    if target == "-":
        out.file.write(text)
        out.file.flush()  # a full disk is told here, not when the program ends
        return
    try:
        write_text(Path(target), text)
    except OSError as error:
        out.print(overview(results), soft_wrap=False)  # so that nothing is lost
        raise GradeError(f"cannot write {os.fspath(target)}: {error.strerror or error}") from None


def _harmless(text: str) -> str:
    """JSON in which all that a terminal would act upon, or not show, is escaped: a file's name stays exact in it."""
    return "".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in text)
