"""What the lessons' builder, nbgrader's configuration and the grader must agree on."""

from __future__ import annotations

import ast
import re

CODE_STUB = "# TODO: your code here\nraise NotImplementedError"
TEXT_STUB = "*Your answer here.*"
BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
RUBRIC = "**Rubric.**"  # opens what only graders read in a question's solution region
EXPERIMENT_TAG = "experiment"
STILL = "still-"  # how the class of the element begins that holds the still picture of a figure with controls
NBGRADER_SCHEMA = 3
SETUP_GRADE_ID = "setup"
MOST_BYTES, MOST_BYTES_BESIDE = 48 << 20, 64 << 10  # of a result that is handed in as a file, and of its facts
STUBS = "stubs.json"  # beside a course's exercises: exercise → the text of its empty cell, which the builder writes


def make_check_grade_id(exercise: str) -> str:
    """The grade id of the cell that checks an exercise; the exercise's own cell carries its bare name."""
    return f"check-{exercise}"


_MARK = re.compile(r"""\.exercise\(\s*["']([^"']+)["']""")


def find_marked_exercises(content: bytes) -> set[str]:
    """The exercises that a check file names in marks: ``@pytest.mark.exercise("one_hot", points=2)``.

    Args:
        content: of the file, which need not be Python without an error.
    """
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return set(_MARK.findall(content.decode("utf-8", "replace")))
    named: set[str] = set()
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "exercise":
            named |= {str(part.value) for part in call.args if isinstance(part, ast.Constant)}
    return named
