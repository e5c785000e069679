from __future__ import annotations

from typing import Any

import pytest
from nbgrader.api import Gradebook

LESSON = "01_double"
# what nbgrader notes of a released lesson: an exercise and the cell that checks it
EXERCISE = {"name": "double", "cell_type": "code", "source": "raise NotImplementedError", "locked": False}
CHECK = {"name": "check-double", "cell_type": "code", "source": 'check("double", double)', "locked": True}


@pytest.fixture(scope="session")
def nbgrader_resources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What nbgrader hands to a preprocessor, with a gradebook of the lesson."""
    address = f"sqlite:///{tmp_path_factory.mktemp('class')}/gradebook.db"
    with Gradebook(address) as gradebook:
        gradebook.add_assignment(LESSON)
        gradebook.add_notebook(LESSON, LESSON)
        gradebook.add_solution_cell("double", LESSON, LESSON)
        gradebook.add_grade_cell("check-double", LESSON, LESSON, max_score=2, cell_type="code")
        for cell in (EXERCISE, CHECK):
            gradebook.add_source_cell(notebook=LESSON, assignment=LESSON, **cell)
    return {"nbgrader": {"notebook": LESSON, "assignment": LESSON, "student": "eve", "db_url": address}}
