"""What ``vit-course grade`` does: its options, what it refuses, and where it prints and writes what it found."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from exercise_kit.batch.batch import Grader
from exercise_kit.batch.job import Done, GradingSettings
from exercise_kit.batch.locations import GradeError, find_place
from exercise_kit.engine.class_exercises import set_class_in_use
from exercise_kit.files import write_and_make_folder
from exercise_kit.judge.result import LogKind, Result, make_grade_json
from exercise_kit.progress_bar import progress_bar
from exercise_kit.quoting import make_one_line
from exercise_kit.report.terminal import describe_broken_checks, render_overview, render_submission
from exercise_kit.sandbox.devices import DeviceError, list_missing_protections, resolve_device
from exercise_kit.submission.find import describe_stray_files, find, find_apparent_class, find_submitted_folders
from exercise_kit.submission.flags import SAME_FILE, flag_same_file
from exercise_kit.submission.released import (
    CONFIG,
    Lessons,
    find_current_class,
    find_unclaimed_class,
    is_class,
    remember_class,
)


class GradeUsageError(GradeError):
    """An option names something that there is not, or that cannot be; the message says what there is.

    Attributes: ``option``, as it is written on the command line.
    """

    def __init__(self, option: str, message: str) -> None:
        super().__init__(message)
        self.option = option


@dataclass(frozen=True)
class GradeOptions(GradingSettings):
    """What was asked for: see ``vit-course grade --help``."""

    paths: Sequence[Path]
    class_dir: Path | None = None
    json: str | None = None
    jobs: int = 1
    scheduler: str | None = None
    resume: bool = False


def grade(options: GradeOptions, out: Console, err: Console, progress: Console | None = None) -> bool:
    """Grade, and print a table, and JSON where it was requested; JSON on stdout stands alone.

    Args:
        options: what to grade, and how.
        out: where the table goes.
        err: where remarks go.
        progress: where the progress bar is shown; ``err`` by default.

    Returns:
        Whether every submission was graded, to its end, and kept.

    Raises:
        GradeUsageError: there is no class, exercise or device of that name, or no file can be where JSON is asked for.
        GradeError: there is no sandbox here, no hidden checks, no scheduler at the address; or JSON cannot be written.
    """
    options = _check_options(options)
    handed_in = find(options.paths, Lessons(options.class_dir).names, options.class_dir)
    jobs = max(1, min(options.jobs, len(handed_in)))
    device = options.limits.device
    where = "" if device == "cpu" else f" on {device}, where each submission starts CUDA anew"
    report = partial(err.print, markup=False)
    with (
        Grader(find_place(options.class_dir), options, jobs, options.scheduler, report) as grader,
        progress_bar(progress or err, f"grading{where}", len(handed_in)) as advance,
    ):
        done = list(grader.run(handed_in, lambda _: advance()))
    _print_report(options, done, out, err)
    return any(each.result for each in done) and all(map(_is_grading_finished, done))


def _check_options(options: GradeOptions) -> GradeOptions:
    """The options with the class folder and the device that they stand for; raises as :func:`grade` does."""
    class_dir = _choose_class_dir(options)
    set_class_in_use(class_dir)
    lessons = Lessons(class_dir)
    if not lessons.names:
        raise GradeError(
            "There are no lessons here; grade in a clone of the course or a class folder, or give --class DIR."
        )
    if options.exercise and not lessons.find_by_exercise(options.exercise):
        known = ", ".join(name for lesson in lessons for name in lesson.names)
        raise GradeUsageError("--exercise", f"there is no exercise {options.exercise!r}; there are: {known}")
    if options.json is not None and (not Path(options.json).name or Path(options.json).is_dir()):
        raise GradeUsageError("--json", f"{options.json!r} is no file; name one, or - for stdout")
    try:
        device = resolve_device(options.limits.device, here=not options.scheduler)
    except DeviceError as error:
        raise GradeUsageError("--device", str(error)) from None
    if options.sandboxed and not options.scheduler:
        _require_sandbox(device)
    return replace(options, class_dir=class_dir, limits=options.limits.on(device))


def _print_report(options: GradeOptions, done: Sequence[Done], out: Console, err: Console) -> None:
    results = _flag_same_files(done)
    _print_remarks(options, done, results, err)
    _warn_of_other_classes(options.paths, options.class_dir, err)
    for stray in filter(None, map(describe_stray_files, find_submitted_folders(options.paths))):
        err.print(f"{stray}.", markup=False)
    if options.json != "-":
        out.print(
            render_submission(results[0], min(out.width, 100)) if len(results) == 1 else render_overview(results),
            soft_wrap=False,
        )
        if not options.sandboxed:
            out.print("Not sandboxed: students' code ran with your rights (--no-sandbox).")
    if options.json is not None:
        _write_json(results, options.json, out)
    if not results:
        err.print("There is nothing to grade: no notebook or .py file with an exercise of the course.")


def _is_grading_finished(done: Done) -> bool:
    """Say whether a file needs nothing more of the grader; what went wrong in a student's own code is graded."""
    result = done.result
    if result is None:
        return True
    failed = any(entry.kind is LogKind.GRADER_FAILED for entry in result.log)
    return result.status == "graded" and not result.waiting and not failed and not done.unkept


def _choose_class_dir(options: GradeOptions) -> Path | None:
    """The class folder: the one that was named, else the one that the command runs in; None: there is none."""
    if options.class_dir is None:
        if folder := find_unclaimed_class(options.paths):
            raise GradeUsageError("--class", _explain_unclaimed_class(folder))
        return find_current_class(options.paths)
    if not is_class(options.class_dir):
        raise GradeUsageError("--class", f"{options.class_dir} is no class folder: it has no {CONFIG}")
    remember_class(options.class_dir)
    return options.class_dir.resolve()


def _explain_unclaimed_class(folder: Path) -> str:
    """A folder that a student could have handed in is graded as a class, with what is in it, only where one says so."""
    name = shlex.quote(make_one_line(str(folder)))
    return (
        f"{name} looks like a class folder, and this account has neither made it nor named it as its class. If it is "
        f"yours, say so once: vit-course grade --class {name} {name}. If a student handed it in, name the notebooks"
    )


def _warn_of_other_classes(paths: Sequence[Path], class_dir: Path | None, err: Console) -> None:
    """Name the folders that look like classes, whose checks were not used because a student could have made them."""
    found = dict.fromkeys(filter(None, (*map(find_apparent_class, paths), find_current_class())))
    for folder in (each for each in found if class_dir is None or each.resolve() != class_dir.resolve()):
        used = f"those of {class_dir}" if class_dir else "the course's own checks"
        name = shlex.quote(make_one_line(str(folder)))
        err.print(
            f"{name} looks like a class folder, but a student could have handed it in: {used} were used. If it is your "
            f"own class, grade again with --class {name}.",
            markup=False,
        )


def _require_sandbox(device: str) -> None:
    if missing := list_missing_protections(device):
        remedies = "".join(f"\n  {name}: {remedy}" for name, remedy in missing.items())
        raise GradeError(
            "This machine cannot keep students' code apart, so nothing was graded. What is missing:"
            f"{remedies}\n'vit-course doctor' says more. To run the code unguarded, give --no-sandbox."
        )


def _flag_same_files(done: Sequence[Done]) -> list[Result]:
    """The results; of students who handed in the same file, each with a flag."""
    found = [(each.result, each.files) for each in done if each.result is not None]
    shared = flag_same_file([(result.student or result.path, files) for result, files in found])
    return [
        replace(result, flags=(*result.flags, SAME_FILE)) if same else result
        for (result, _), same in zip(found, shared, strict=True)
    ]


def _print_remarks(options: GradeOptions, done: Sequence[Done], results: Sequence[Result], err: Console) -> None:
    for text in describe_broken_checks(results):
        err.print(text, markup=False)
    if options.resume:
        from_cache = sum(each.from_cache for each in done)
        err.print(f"{from_cache} of {len(results)} results were taken over from an earlier run.")
    if options.json is not None:
        for each in results:
            if each.reason:
                err.print(make_one_line(f"{each.path}: {each.status}: {each.reason}"), markup=False)


def _make_published_json(results: list[Result]) -> dict[str, Any]:
    """Return what other programs read: what is wrong with a whole exercise is said at its checks too."""
    published = make_grade_json(results)
    for exercise in (each for entry in published["submissions"] for each in entry["exercises"]):
        for check in exercise["checks"]:
            if check["verdict"] != "pass" and check["message"] is None:
                check["message"] = exercise["problem"]
    return published


def _write_json(results: list[Result], target: str, out: Console) -> None:
    text = _escape_for_terminal(json.dumps(_make_published_json(results), indent=1, ensure_ascii=False)) + "\n"
    if target == "-":
        out.file.write(text)
        out.file.flush()  # a full disk is reported here, not when the program ends
        return
    try:
        write_and_make_folder(Path(target), text.encode())
    except OSError as error:
        raise GradeError(f"cannot write {os.fspath(target)}: {error.strerror or error}") from None


def _escape_for_terminal(text: str) -> str:
    """JSON in which all that a terminal would act upon, or not show, is escaped: a file's name stays exact in it."""
    return "".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in text)
