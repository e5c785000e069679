"""Bug hunts: programs with a bug from the library of misconceptions, another one for each seed.

What is hunted in is an exercise's ``program.py``; :mod:`exercise_kit.engine.program` tells how its lines are spoiled.
Every program holds an answer, so none of this is there while a submission is graded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vit_course.hunts.suspect import Suspect

__all__ = ["hunt"]


def hunt(exercise: str, seed: int = 1, bugs: int = 1) -> Suspect:
    """Draw a program with a bug to be found.

    In one version of the course the same seed gives the same program everywhere; neighboring seeds give different
    ones, and as many in a row as there are bugs give each of them once.

    Args:
        exercise: what the program tries to be, as "patchify".
        seed: any whole number, one for each student, say.
        bugs: how many there are in it.

    Returns:
        A program that shows itself as the value of a cell, runs when it is called, and does not tell its bug.

    Raises:
        ValueError: there is no such hunt, ``seed`` is no whole number, or it has fewer bugs. Shown as a sentence.
    """
    from exercise_kit.engine.notebook_or_script import hide_traceback
    from vit_course.hunts.choose import draw_bugs, find_ground  # with the checks, for those who hunt
    from vit_course.hunts.suspect import Suspect

    try:
        ground = find_ground(exercise)
        drawn = draw_bugs(ground, seed, bugs)
    except ValueError as error:
        raise hide_traceback(error) from None
    title = f"{ground.name}, seed {int(seed)}"
    return Suspect(ground.name, title, ground.text(drawn), ground.defines, len(drawn))
