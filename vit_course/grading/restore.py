"""Put back what a student deleted, copied, split or renamed, so that nbgrader grades the rest.

nbgrader 0.9 gives up a whole submission when one exercise's cell was deleted together with its check, or when a
cell stands there twice (as after copying it): its own repairs look for marks that are no longer there. It also
leaves out a notebook whose file has another name than the lesson, as browsers give to a second download.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, Notebook, SourceCell
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets.log import get_logger

from vit_course.grading.conventions import NBGRADER_SCHEMA


def find_renamed(notebooks: list[str], **_: str) -> None:
    """Give a submission's only notebook its lesson's name back, where the name still holds it ("01_patchify (1)").

    Args:
        notebooks: the notebooks' paths, `.../STUDENT/LESSON/NAME.ipynb`; a renamed one is replaced in the list.
    """
    if len(notebooks) != 1:
        return
    found = Path(notebooks[0])
    lesson = found.parent.name
    if lesson in found.stem and found.stem != lesson:
        notebooks[0] = str(found.rename(found.with_stem(lesson)))
        get_logger().warning("'%s' is named %s.ipynb from now on", found, lesson)


class RestoreCells(NbGraderPreprocessor):
    """A step of `nbgrader autograde`, to run between `DeduplicateIds` and `OverwriteCells`.

    A copied cell loses its empty nbgrader mark; a missing cell comes back as it was released, after the cell that it
    followed.
    """

    def preprocess(self, notebook: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Repair a submission's notebook in place."""
        for cell in notebook.cells:
            if cell.metadata.get("nbgrader") == {}:
                del cell.metadata["nbgrader"]
        where = resources["nbgrader"]
        with Gradebook(where["db_url"]) as gradebook:
            released = gradebook.find_notebook(where["notebook"], where["assignment"])
            self._put_back(notebook, released)
        return notebook, resources

    def _put_back(self, notebook: NotebookNode, released: Notebook) -> None:
        marked = {cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells}
        if marked.isdisjoint(source.name for source in released.source_cells):
            raise ValueError(f"it has no cell of {released.name} with nbgrader's mark; was another notebook handed in?")
        place = 0
        for source in released.source_cells:
            names = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells]
            if source.name in names:
                place = names.index(source.name) + 1
            else:
                self.log.warning("Cell '%s' was missing from the submission; it is put back", source.name)
                notebook.cells.insert(place, _as_released(source, released))
                place += 1


def _as_released(source: SourceCell, released: Notebook) -> NotebookNode:
    points = {cell.name: cell.max_score for cell in released.grade_cells}
    mark = {
        "schema_version": NBGRADER_SCHEMA,
        "grade_id": source.name,
        "cell_type": source.cell_type,
        "checksum": source.checksum,
        "grade": source.name in points,
        "solution": source.name in {cell.name for cell in released.solution_cells},
        "locked": source.locked,
        "task": False,
    }
    if source.name in points:
        mark["points"] = points[source.name]
    cell = {
        "cell_type": source.cell_type,
        "id": uuid4().hex[:8],
        "metadata": {"nbgrader": mark},
        "source": source.source,
    }
    if source.cell_type == "code":
        cell |= {"execution_count": None, "outputs": []}
    node: NotebookNode = nbformat.from_dict(cell)
    return node
