"""Which course the operator has named, and the package that holds it; nothing is imported to know it."""

from __future__ import annotations

import os

# where the course stands; an operator who keeps another one names it, as "their_package.course:COURSE"
VARIABLE, DEFAULT = "VIT_COURSE_COURSE", "vit_course.course:COURSE"


def read_course_location() -> str:
    """Read where the course of this process stands."""
    return os.environ.get(VARIABLE, DEFAULT)


def read_package_name() -> str:
    """The package that holds the course and that its students import, by its name."""
    return read_course_location().partition(":")[0].partition(".")[0]
