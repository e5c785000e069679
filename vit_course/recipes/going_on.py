"""How a run that stopped goes on: what is said of it, and whether a finished one is what was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vit_course.recipes.images import name_of
from vit_course.recipes.recipe import Recipe, RecipeError
from vit_course.recipes.result import RunResult, definition, read_result
from vit_course.training import OutOfMemoryError, TrainingDivergedError
from vit_course.training.safe_files import CannotWriteError
from vit_course.training.tracking import TrackerError


class RunInterruptedError(Exception):
    """Somebody pressed Ctrl-C; the message says what is left and how to go on."""


def finished_result(path: Path, recipe: Recipe, data: Path | None, changed: dict[str, Any]) -> RunResult:
    """The result of a run that is finished, if that run is what was asked for.

    Args:
        path: of its result.json.
        recipe: what was asked for, and with which seed the caller has compared.
        data: as for `load_images`.
        changed: settings by name, in place of the recipe's own.

    Raises:
        RecipeError: the run had other settings or other images, or its result is damaged.
    """
    result = read_result(path)
    mine = definition(recipe)
    begun = {**result.definition.get("settings", {}), **result.changed, "data": result.data.get("name")}
    asked = {**mine["settings"], **changed, "data": name_of(recipe.dataset, data)}
    for name, value in asked.items():
        if begun.get(name) != value:
            raise RecipeError(
                f"{path.parent} holds a finished run with {name} = {begun.get(name)!r}, not {value!r}; name another "
                "folder with --out"
            )
    return result


@contextmanager
def in_words_of_the_command(folder: Path) -> Iterator[None]:
    """Add to what ends a training what somebody at a command line can do about it."""
    try:
        yield
    except TrainingDivergedError as error:
        raise TrainingDivergedError(
            f"{error}. The rates stand in the recipe: try another --seed, a larger --batch-size or --precision fp32, "
            f"or train in Python with settings of your own (vit_course.training.fit). Its epochs are in {folder}"
        ) from error
    except OutOfMemoryError as error:
        size = error.batch_size
        way = "--resume and --device cpu" if size is None else f"--batch-size {size} and another folder by --out"
        raise OutOfMemoryError(f"{error}. That is the same command with {way}", size) from error
    except TrackerError as error:
        raise RecipeError(
            f"{error}. Then the same command with --resume begins; without --wandb it does too"
        ) from error
    except CannotWriteError as error:
        raise CannotWriteError(f"{error}. With room, the same command with --resume goes on") from error
