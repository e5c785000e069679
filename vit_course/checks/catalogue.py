"""All exercises by name, in the order of the course."""

from __future__ import annotations

import vit_course.checks.misconceptions.attention
import vit_course.checks.misconceptions.block
import vit_course.checks.misconceptions.patches
import vit_course.checks.misconceptions.positions
import vit_course.checks.misconceptions.start
import vit_course.checks.misconceptions.vit  # noqa: F401  # importing a module of mistakes adds them to its exercises
from vit_course.checks.exercise import Exercise
from vit_course.checks.lessons import attention, block, patches, positions, start, vit

EXERCISES: dict[str, Exercise] = {
    each.name: each
    for lesson in (start, patches, positions, attention, block, vit)
    for each in vars(lesson).values()
    if isinstance(each, Exercise)
}
