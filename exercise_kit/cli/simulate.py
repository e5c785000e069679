"""``vit-course simulate``: a class with known true scores, to rehearse on."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from exercise_kit.cli.class_lessons import find_class_with_lessons, open_lessons_root, prove_exercises, require_clone
from exercise_kit.cli.errors import exit_on_errors, needs, stop
from exercise_kit.progress_bar import progress_bar
from exercise_kit.submission.released import CLONE, remember_class

if TYPE_CHECKING:
    from exercise_kit.simulate.simulate import Simulated


# where the lessons are, when this is an editable install of a clone
_console = Console(highlight=False, soft_wrap=True)
_errors = Console(stderr=True, highlight=False, soft_wrap=True)
_MOST_DIFFERENCES = 40


def simulate(
    directory: Annotated[
        Path, typer.Argument(help="The folder to make (it must not exist, or be empty); with --check, a simulated one.")
    ],
    students: Annotated[int, typer.Option(help="How many invented students hand in.")] = 12,
    seed: Annotated[int, typer.Option(help="The same seed makes the same class, byte for byte.")] = 1,
    lesson: Annotated[
        list[str] | None,
        typer.Option(help="A lesson that they hand in, as 01_topic; again for more. All by default."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Grade what is not graded yet, and compare all grades with the truth.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="With --check: how many submissions are graded at a time.")] = 1,
    root: Annotated[
        Path, typer.Option(help="The clone of the course whose lessons are used.", resolve_path=True)
    ] = CLONE,
) -> None:
    """Make a class whose true scores are known, to rehearse grading, feedback and the report on."""
    if check:
        _compare_grades_with_truth(directory, jobs)
    else:
        _simulate_class(directory, root, students, seed, lesson or ())


def _simulate_class(directory: Path, root: Path, students: int, seed: int, lessons: Sequence[str]) -> None:
    require_clone(root)
    if (class_dir := find_class_with_lessons()) is not None:
        prove_exercises(class_dir)
    with needs("grading"):
        from exercise_kit.hidden_checks import HiddenChecksError
        from exercise_kit.nbgrader.class_folder import ClassFolderError
        from exercise_kit.simulate.simulate import SimulationError, choose_lessons
        from exercise_kit.simulate.simulate import simulate as simulate_class
    with exit_on_errors(ClassFolderError, HiddenChecksError, SimulationError), open_lessons_root(root) as lessons_root:
        total = max(students, 0) * len(choose_lessons(lessons_root, lessons))
        with progress_bar(_errors, "writing", total) as advance:
            made = simulate_class(directory, lessons_root, students, seed, lessons, advance)
    remember_class(made.path)
    _print_simulated_class(made)


def _print_simulated_class(simulated_class: Simulated) -> None:
    kinds = ", ".join(
        f"{count} {kind}" for kind, count in sorted(simulated_class.kinds.items(), key=lambda each: -each[1])
    )
    lessons = ", ".join(simulated_class.lessons)
    _console.print(
        f"Made {simulated_class.path}: {simulated_class.students} students, lessons {lessons}.",
        markup=False,
    )
    _console.print(f"Answers: {kinds}.", markup=False)
    _console.print("truth.json says what grading has to find. Next:")
    _console.print(f"  cd {shlex.quote(str(simulated_class.path))}", markup=False)
    for command in (
        "vit-course grade submitted --jobs 2",
        "vit-course simulate . --check",
        "vit-course report .",
        f"nbgrader generate_assignment {simulated_class.lessons[0]}   # and on, as README.md tells",
    ):
        _console.print(f"  {command}", markup=False)


def _compare_grades_with_truth(directory: Path, jobs: int) -> None:
    with needs("grading"):
        from exercise_kit.batch.locations import GradeError
        from exercise_kit.cli.grade import GradeOptions, grade
        from exercise_kit.simulate.simulate import (
            SimulationError,
            compare_grades_with_truth,
            count_named_mistakes,
            read_truth,
        )
    with exit_on_errors(SimulationError):
        truth = read_truth(directory)
    with tempfile.TemporaryDirectory() as folder, exit_on_errors(GradeError), needs("grading"):
        target = Path(folder) / "grades.json"
        options = GradeOptions([directory], directory, json=str(target), jobs=jobs)
        grade(options, _console, Console(quiet=True), progress=_errors)
        graded = json.loads(target.read_bytes())
    differences = compare_grades_with_truth(truth, graded)
    for text in differences[:_MOST_DIFFERENCES]:
        _console.print(text, markup=False)
    count = len(truth["submissions"])
    if differences:
        more = f" ({len(differences) - _MOST_DIFFERENCES} more)" if len(differences) > _MOST_DIFFERENCES else ""
        noun = "difference" if len(differences) == 1 else "differences"
        raise stop(f"{len(differences)} {noun}{more} between the grades of {count} submissions and their truth.")
    wrong, named = count_named_mistakes(truth)
    _console.print(f"The grades of {count} submissions are what they have to be: scores, names, verdicts, flags.")
    _console.print(f"Of {wrong} answers with a mistake of the library, or two, {named} get exactly its name.")
