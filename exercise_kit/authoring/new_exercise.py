"""The skeleton of an exercise of a class's own: a small one that works, to be changed, or a variant of one of ours."""

from __future__ import annotations

import keyword
import re
from importlib.resources import files
from pathlib import Path
from string import Template

from exercise_kit.authoring.build import SOURCES
from exercise_kit.authoring.class_lessons import read_lesson_sources
from exercise_kit.engine.class_exercises import EXERCISES, LESSON_NAME, LESSONS
from exercise_kit.engine.course import course
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.engine.lesson_answers import find_exercise_cell, list_lesson_dependencies
from exercise_kit.files import write

_TEMPLATES = files("exercise_kit") / "templates"
FIRST_OF_CLASS = 50  # a class's own lessons stand behind those that the course may still get


class NewExerciseError(Exception):
    """The skeleton cannot be made; the message says why, and what to do."""


def new_exercise(class_dir: Path, root: Path, name: str, lesson: str | None, variant_of: str | None) -> list[Path]:
    """Write the files of a new exercise into a class folder; nothing that is there is replaced.

    Args:
        class_dir: the class folder.
        root: a clone of the course.
        name: the exercise's; of a skeleton also the function's.
        lesson: as "50_tokens"; one that the class has gets the exercise at its end; None: a new lesson of its name.
        variant_of: the exercise of the course that it is a variant of; None: the small one.

    Returns:
        the files that were written, relative to the class folder.

    Raises:
        NewExerciseError: the name or the lesson cannot be used, or there is no such exercise of the course.
        AuthoringError: the class's settings cannot be read.
    """
    if not lesson:
        taken = (int(each[:2]) for each in read_lesson_sources(class_dir, root) if each[:2].isdecimal())
        number = max(FIRST_OF_CLASS - 1, *taken) + 1
        lesson = f"{number:02d}_{re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', name).lower()}"
    _require_valid_names(class_dir, name, lesson, variant_of)
    values = {"name": name, "lesson": lesson, "objects": name, "package": read_package_name(), "number": lesson[:2]}
    values["title"] = lesson[3:].replace("_", " ").capitalize()
    if variant_of:
        contents = _render_variant_files(class_dir, root, name, lesson, variant_of)
    else:
        contents = {
            Path(EXERCISES, f"{name}.py"): _fill_template("checks", values),
            Path(LESSONS, f"{lesson}.py"): _fill_template("cells", values),
        }
    place = Path(LESSONS, f"{lesson}.py")
    places = (class_dir / place, root / SOURCES / place.name)
    before = next((path.read_text("utf-8") for path in places if path.is_file()), None) or _fill_template(
        "lesson", values
    )
    contents[place] = f"{before.rstrip()}\n{contents[place]}"
    for path, text in contents.items():
        (class_dir / path).parent.mkdir(exist_ok=True, mode=0o700)
        write(class_dir / path, text.encode(), 0o600)
    return list(contents)


def _require_valid_names(class_dir: Path, name: str, lesson: str, variant_of: str | None) -> None:
    known = course()
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise NewExerciseError(f"{name!r} is no name of a Python function; choose one as count_tokens")
    if not LESSON_NAME.fullmatch(lesson):
        raise NewExerciseError(f"{lesson!r} is no lesson's name; it is NN_topic, two digits and lower case")
    ours = known.exercises.keys() - (known.own.exercises.keys() if known.own else set())
    if name in ours:
        raise NewExerciseError(f"the course has an exercise called {name!r}; choose another name")
    path = Path(EXERCISES, f"{name}.py")
    if (class_dir / path).exists():
        raise NewExerciseError(f"there is already a file {path}; choose another name")
    if variant_of and (variant_of not in ours or known.exercises[variant_of].file):
        raise NewExerciseError(f"{variant_of!r} is no exercise of the course to make a variant of")


def _fill_template(kind: str, values: dict[str, str]) -> str:
    return Template((_TEMPLATES / f"new_exercise_{kind}.py.txt").read_text("utf-8")).substitute(values)


def _render_variant_files(class_dir: Path, root: Path, name: str, lesson: str, variant_of: str) -> dict[Path, str]:
    """The files of a variant: its checks begin with the original's, points and all, and its cell is a copy."""
    original = course().exercises[variant_of]
    module = getattr(original.checks[0].function, "__module__", "")
    checks = (
        f'"""`{name}`: a variant of `{variant_of}`, with its checks and known mistakes, and yours."""\n\n'
        f"from {module} import {variant_of} as original\n\n"
        f'LESSON = "{lesson}"  # the lesson\'s file, without .py\n'
        f'{name} = original.variant("{name}", LESSON)\n\n'
        f"# Add to it as to any exercise: @{name}.check, @{name}.misconception(question, section)\n"
    )
    source = (root / SOURCES / f"{original.lesson}.py").read_text("utf-8")
    cell = find_exercise_cell(source, variant_of)
    if cell is None:
        raise NewExerciseError(f"there is no cell of {variant_of!r} to make a variant of")
    around = "\n".join(
        [
            f"from {read_package_name()} import check",
            *list_lesson_dependencies(source, original.objects, read_package_name()),
        ]
    )
    cells = f"\n# %% [markdown]\n# ### Exercise: `{name}`\n"
    cells += f'\n# %%\n{around}\n\n\n# %% exercise="{name}"\n{cell}'
    cells = f'{cells.rstrip()}\n\n\n# %% check="{name}" points=4\ncheck("{name}", {", ".join(original.objects)})\n'
    return {
        Path(EXERCISES, f"{name}.py"): checks,
        Path(LESSONS, f"{lesson}.py"): cells,
    }
