"""What the lessons' builder and nbgrader's configuration must agree on."""

from __future__ import annotations

CODE_STUB = "# TODO: your code here\nraise NotImplementedError"
TEXT_STUB = "*Your answer here.*"
BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
RUBRIC = "**Rubric.**"  # opens what only graders read in a question's solution region
EXPERIMENT_TAG = "experiment"
NBGRADER_SCHEMA = 3
SETUP_GRADE_ID = "setup"


def check_grade_id(exercise: str) -> str:
    """The grade id of the cell that checks an exercise; the exercise's own cell carries its bare name."""
    return f"check-{exercise}"
