"""Make an nbgrader course folder out of the built lessons."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from uuid import uuid4

from exercise_kit.conventions import CODE_STUB, TEXT_STUB
from exercise_kit.engine.course import course
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.files import explain_unreadable_folder

TEMPLATES = files("exercise_kit") / "templates"
OF_CLASS = ".of_class"  # in the root of a class's lessons, what its folder holds beside notebooks and hidden checks


class ClassFolderError(Exception):
    """A class folder cannot be made; the message says what to do."""


@dataclass(frozen=True)
class ClassFolder:
    """A class folder: where it is, and the names of its lessons, which are nbgrader's assignments."""

    path: Path
    lessons: tuple[str, ...]


def new_class(directory: Path, lessons_root: Path) -> ClassFolder:
    """Make a course folder in which nbgrader's commands and its formgrader page work as they are.

    The folder appears complete or not at all. It is its owner's alone, and so is what nbgrader will put there, its
    gradebook among it.

    Args:
        directory: where to make it; it must not exist, or be empty.
        lessons_root: the repository's root, whose `solutions/` holds the built notebooks with answers, and whose
            `tests/hidden/` what collects the graded checks for pytest.

    Raises:
        ClassFolderError: the directory is in use, no lesson has been built, or this account may not read them.
    """
    directory = directory.resolve()
    checks = lessons_root / "tests" / "hidden"
    if why := explain_unreadable_folder(lessons_root / "solutions") or explain_unreadable_folder(checks):
        raise ClassFolderError(why)
    notebooks = sorted((lessons_root / "solutions").glob("*.ipynb"))
    if not notebooks:
        message = f"no built lesson in {lessons_root / 'solutions'}; run 'vit-course build' there first"
        raise ClassFolderError(message)
    refuse_nonempty_folder(directory)
    draft = directory.with_name(f".{directory.name}-{uuid4().hex[:8]}")
    try:
        _fill_class_folder(draft, notebooks)
        _copy_hidden_checks(checks, draft / "hidden")
        if (lessons_root / OF_CLASS).is_dir():
            shutil.copytree(lessons_root / OF_CLASS, draft, dirs_exist_ok=True)
        _restrict_to_owner(draft)
        move_into_place(draft, directory)
    except OSError as error:
        raise ClassFolderError(f"cannot make {directory}: {error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return ClassFolder(directory, tuple(notebook.stem for notebook in notebooks))


def refuse_nonempty_folder(directory: Path) -> None:
    """See that a class folder can be made in a place.

    Raises:
        ClassFolderError: there is a file, or a folder that is not empty.
    """
    if directory.exists() and not directory.is_dir():
        raise ClassFolderError(f"{directory} is not a folder; name a new one")
    if directory.exists() and any(directory.iterdir()):
        raise ClassFolderError(f"{directory} exists and is not empty; name a new folder")


def move_into_place(draft: Path, directory: Path) -> None:
    """Give a folder that is complete its name and its mode; the place does not exist, or is an empty folder."""
    if not directory.exists():
        draft.rename(directory)
        return
    directory.chmod(stat.S_IMODE(draft.stat().st_mode))
    for child in draft.iterdir():  # an empty folder stays the one that a shell may be standing in
        child.rename(directory / child.name)


def _fill_class_folder(folder: Path, notebooks: Sequence[Path]) -> None:
    for notebook in notebooks:
        target = folder / "source" / notebook.stem / notebook.name
        target.parent.mkdir(parents=True)
        shutil.copyfile(notebook, target)
    names = [notebook.stem for notebook in notebooks]
    _write_template(
        folder / "nbgrader_config.py",
        "nbgrader_config.py.txt",
        code_stub=repr(CODE_STUB),
        text_stub=repr(TEXT_STUB),
        package=read_package_name(),
        lesson=names[0],
    )
    results = course().results
    _write_template(
        folder / "README.md",
        "README.md",
        package=read_package_name(),
        results=results.readme if results else "",
        lesson=names[0],
        lessons=", ".join(names),
    )


def _copy_hidden_checks(checks: Path, target: Path) -> None:
    """Copy what collects the graded checks for pytest; an instructor adds some beside it, which nobody is given."""
    target.mkdir()
    for path in sorted(checks.glob("*.py")):
        shutil.copyfile(path, target / path.name)


def _restrict_to_owner(folder: Path) -> None:
    """Nobody else reads answers, checks and grades, whatever the umask is."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)


def _write_template(path: Path, template: str, **values: str) -> None:
    text = Template((TEMPLATES / template).read_text(encoding="utf-8"))
    path.write_text(text.substitute(values), encoding="utf-8")
