"""Put back the cells that a student deleted, so that nbgrader grades the rest.

nbgrader 0.9 gives up a whole submission when one exercise's cell was deleted together with its check: its own repair
looks for marks that are no longer there.
"""

from __future__ import annotations

from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.api import Gradebook, Notebook, SourceCell
from nbgrader.preprocessors import NbGraderPreprocessor

from exercise_kit.nbgrader.cleaning import marks_of


class RestoreCells(NbGraderPreprocessor):
    """A step of `nbgrader autograde`, to run between `CleanCells` and `OverwriteCells`.

    A missing cell comes back as it was released, after the cell that it followed; where none is left, all come back.
    """

    def preprocess(self, notebook: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Repair a submission's notebook in place."""
        where = resources["nbgrader"]
        with Gradebook(where["db_url"]) as gradebook:
            released = gradebook.find_notebook(where["notebook"], where["assignment"])
            self._put_back(notebook, released)
        return notebook, resources

    def _put_back(self, notebook: NotebookNode, released: Notebook) -> None:
        marks = marks_of(released)
        place = 0
        for source in released.source_cells:
            names = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells]
            if source.name in names:
                place = names.index(source.name) + 1
            else:
                self.log.info("Cell '%s' was missing from the submission; it is put back", source.name)
                notebook.cells.insert(place, _as_released(source, marks[source.name]))
                place += 1


def _as_released(source: SourceCell, mark: dict[str, Any]) -> NotebookNode:
    make = new_code_cell if source.cell_type == "code" else new_markdown_cell
    cell: NotebookNode = make(source.source, metadata={"nbgrader": mark})
    return cell
