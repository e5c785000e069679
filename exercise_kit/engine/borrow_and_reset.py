"""``borrow`` and ``reset``: a way on for a student who is stuck, and a way back to the empty cell."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from exercise_kit.conventions import STUBS
from exercise_kit.engine.arguments import describe_unknown_exercise, find_exercise_ignoring_case
from exercise_kit.engine.compare import join_names
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.engine.lent import hide_source, load_right_parts
from exercise_kit.engine.notebook_or_script import find_ipython_shell
from exercise_kit.engine.release_settings import read_release_settings


def borrow(name: str) -> Any:
    """Take the course's part in the place of yours, so that the lesson goes on; it earns nothing.

    The part has your names at once, until you run your own cell again.

    Args:
        name: of the exercise, as "one_hot".

    Returns:
        the part, or a tuple of them where an exercise asks for several; None where there is none to borrow.
    """
    known = find_exercise_ignoring_case(name)
    if known is None:
        print(describe_unknown_exercise(name, function_name="borrow"))
        return None
    if not read_release_settings().borrow:
        print("Your teacher has switched borrowing off. Ask them, or go on with what does not need this part.")
        return None
    right = load_right_parts(known)
    if not right:
        print(f"There is no part to borrow for {known.name}. Go on: a cell that needs it says that it waits.")
        return None
    lent = {each: hide_source(part) for each, part in right.items()}
    sys._getframe(1).f_globals.update(lent)
    names, verbs = (
        join_names([f"`{each}`" for each in lent]),
        ("is", "earns") if len(lent) == 1 else ("are", "earn"),
    )
    print(f"{names} {verbs[0]} the course's now, and {verbs[1]} nothing. Run your own cell again to take yours back.")
    return next(iter(lent.values())) if len(lent) == 1 else tuple(lent.values())


def reset(name: str) -> None:
    """Give an exercise's empty cell back: in Jupyter as a new cell below, elsewhere as text.

    Args:
        name: of the exercise, as "one_hot".
    """
    known = find_exercise_ignoring_case(name)
    text = _read_stubs().get(known.name) if known else None
    if known is None or text is None:
        print(
            f"{known.name} has no cell to fill in." if known else describe_unknown_exercise(name, function_name="reset")
        )
        return
    shell = find_ipython_shell()
    if shell is None or not hasattr(shell, "kernel"):
        print(text)
        return
    shell.set_next_input(text, replace=False)
    print(f"The empty cell of {known.name} is below. Copy it over yours: only the old cell is handed in.")


@cache
def _read_stubs() -> Mapping[str, str]:
    place = files(read_package_name()) / "exercises" / STUBS
    found: dict[str, str] = json.loads(place.read_text("utf-8")) if place.is_file() else {}
    return found
