"""What a grading found in its place: by it points that a person gave are to be looked at again only for other work.

nbgrader asks a person to look again at all points by hand whenever a submission is graded, also when nothing changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.utils import is_solution

from exercise_kit.nbgrader.grader_notes import Noted, read_notes
from exercise_kit.submission.released import read_cell_source


@dataclass(frozen=True)
class Earlier:
    """A student's page, and the gradebook, as they were before a grading.

    Attributes:
        notes: of the page.
        texts: of its cells with a mark, by their grade ids.
        points: grade id → the automatic points (None: there were none), and whether formgrader listed the cell.
    """

    notes: Noted = field(default_factory=Noted)
    texts: Mapping[str, str] = field(default_factory=dict)
    points: Mapping[str, tuple[float | None, bool]] = field(default_factory=dict)

    def needs_manual_grading(self, cell: NotebookNode, automatic: float | None, submission: str) -> bool:
        """Say whether formgrader is to list points by hand: as before where the work is the same, else always.

        Args:
            cell: that is graded; of a written answer its text counts, of a check all that was handed in.
            automatic: its points now.
            submission: the digest of what was handed in now; "": not known.
        """
        mark = cell.metadata["nbgrader"]
        name = mark["grade_id"]
        before, listed = self.points.get(name, (None, True))
        same = self.texts.get(name) == cell.source
        if not is_solution(cell):
            same = automatic == before and bool(submission) and submission == self.notes.submission
        return listed or not same or self.notes.points.get(name) != float(mark["points"])


def read_earlier_grading(page: Path, gradebook: Gradebook, lesson: str, student: str) -> Earlier:
    """Return what is there before a grading; of a page that is not complete nothing."""
    notes = read_notes(page)
    with suppress(OSError, ValueError, KeyError, TypeError, MissingEntry):
        cells = json.loads(page.read_bytes())["cells"] if notes.finished else ()
        marked = ((cell["metadata"].get("nbgrader", {}).get("grade_id"), cell) for cell in cells)
        texts = {str(name): read_cell_source(cell) for name, cell in marked if name}
        grades = gradebook.find_submission_notebook(lesson, lesson, student).grades
        return Earlier(notes, texts, {each.name: (each.auto_score, each.needs_manual_grade) for each in grades})
    return Earlier()
