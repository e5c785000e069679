"""Whose lessons a command uses: the clone's, or those of the class folder that it runs in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from exercise_kit.cli.errors import exit_on_errors, needs, stop
from exercise_kit.engine.class_exercises import set_class_in_use
from exercise_kit.files import explain_unreadable_folder
from exercise_kit.submission.released import CLONE, find_current_class

_console = Console(highlight=False, soft_wrap=True)


def require_clone(root: Path) -> Path:
    """A clone's root, where this account finds lessons; else the command ends in a sentence."""
    if why := explain_unreadable_folder(root / "solutions"):
        raise stop(why)
    if not (root / "solutions").is_dir():
        raise stop(f"there is no folder {root / 'solutions'}; name a clone of the course with --root")
    return root


def find_class_with_lessons() -> Path | None:
    """The class folder that the command runs in, where it has exercises, lessons or settings of its own."""
    found = find_current_class()
    own = found is not None and any((found / name).exists() for name in ("exercises", "lessons", "class.toml"))
    set_class_in_use(found if own else None)
    return found if own else None


@contextmanager
def open_lessons_root(root: Path) -> Iterator[Path]:
    """A clone's root, or a folder like it with the lessons of the class folder that the command runs in."""
    found = find_class_with_lessons()
    if found is None:
        yield root
        return
    with needs("grading"):
        from exercise_kit.authoring.class_lessons import build_class_root
        from exercise_kit.authoring.lesson import AuthoringError
    with exit_on_errors(AuthoringError), build_class_root(found, root) as merged:
        yield merged


def build_class(class_dir: Path, root: Path, check: bool) -> None:
    """Build what a class has of its own, and prove its exercises; what is wrong ends the command."""
    with needs("grading"):
        from exercise_kit.authoring.class_lessons import build_class as build
        from exercise_kit.authoring.lesson import AuthoringError
    with exit_on_errors(AuthoringError):
        built = build(class_dir, root, check)
    for path in (*built.written, *built.stale):
        _console.print(f"{'stale  ' if check else 'written'} {path}", markup=False)
    for path in built.removed:
        _console.print(f"removed {path}: class.toml leaves it out", markup=False)
    _print_next_steps(class_dir, [path.stem for path in (*built.written, *built.stale, *built.removed)])
    prove_exercises(class_dir, list_checks=True)
    if built.stale:
        raise stop("Some notebooks of the class are not what their sources say. Run: vit-course build")


def _print_next_steps(class_dir: Path, changed: list[str]) -> None:
    """Of each lesson that students have already: what brings the change to the gradebook."""
    from exercise_kit.nbgrader.generate import describe_next_steps
    from exercise_kit.nbgrader.gradebook import GradebookError

    with exit_on_errors(GradebookError):
        for words in filter(None, (describe_next_steps(class_dir, lesson) for lesson in changed)):
            _console.print(words, markup=False)


def prove_exercises(class_dir: Path, list_checks: bool = False) -> None:
    """Show that right answers pass and known mistakes are caught, by name; what is not so ends the command.

    Args:
        class_dir: the class folder.
        list_checks: say in a line for each mistake which checks catch it.
    """
    with needs("grading"):
        from exercise_kit.authoring.proof import prove_class_exercises
        from exercise_kit.hidden_checks import HiddenChecksError
    with exit_on_errors(HiddenChecksError):
        proof = prove_class_exercises(class_dir / "hidden")
    if proof.problems:
        raise stop("\n".join(proof.problems))
    for name, caught in proof.caught.items():
        mistakes = "1 known mistake is" if len(caught) == 1 else f"{len(caught)} known mistakes are"
        _console.print(f"{name}: the lesson's answer passes, and its {mistakes} caught and named.", markup=False)
        for mistake, checks in caught.items() if list_checks else ():
            _console.print(f"  {mistake}: caught by {', '.join(checks)}", markup=False)
    for name in proof.all_or_nothing:
        _console.print(f"{name}: its one hidden check gives all of its points or none; a second one would share them.")


def new_exercise(
    name: Annotated[str, typer.Argument(help="The exercise's name, as count_tokens.")],
    lesson: Annotated[
        str | None, typer.Option(help="The lesson that it goes to, as 50_tokens; else a new one.")
    ] = None,
    variant_of: Annotated[
        str | None, typer.Option("--from", metavar="EXERCISE", help="Make a variant of this exercise of the course.")
    ] = None,
    root: Annotated[
        Path, typer.Option(help="The clone of the course whose lessons are used.", resolve_path=True)
    ] = CLONE,
) -> None:
    """Write the skeleton of an exercise of your own into the class folder that you work in."""
    if (class_dir := find_current_class()) is None:
        raise stop("This is no class folder. Make one with: vit-course new-class DIR; then run this in it.")
    set_class_in_use(class_dir)
    with needs("grading"):
        from exercise_kit.authoring.lesson import AuthoringError
        from exercise_kit.authoring.new_exercise import NewExerciseError
        from exercise_kit.authoring.new_exercise import new_exercise as write_skeleton
    with exit_on_errors(AuthoringError, NewExerciseError):
        written = write_skeleton(class_dir, root, name, lesson, variant_of)
    for path in written:
        _console.print(f"written {path}", markup=False)
    _console.print("It works as it is. Change it to yours, and prove it with: vit-course build")
