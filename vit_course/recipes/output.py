"""Where a command's answer goes: to a file that can be written, or to stdout as far as somebody reads it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from vit_course.recipes.recipe import RecipeError


def refuse_output(output: str | None) -> None:
    """Look at what --json names before the work is done.

    Args:
        output: None, "-" for stdout, or the name of a file.

    Raises:
        RecipeError: it is a folder, or its folder is not there.
    """
    if output is None or output == "-":
        return
    path = Path(output)
    if path.is_dir():
        raise RecipeError(f"{path} is a folder; name a file with --json")
    if not path.parent.is_dir():
        raise RecipeError(f"there is no folder {path.parent} to write {path.name} into; make it, or name another")


def say(text: str) -> None:
    """Print; a reader who has seen enough and closes the pipe, as `head` does, is no failure."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains when it ends
