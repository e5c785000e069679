"""nbgrader's *Validate* button and `nbgrader validate`: the words of ``check``, and no cell that no check needs.

nbgrader runs the whole notebook, trainings too, stops a cell after 30 seconds, and says of whatever has not all its
points "Partial credit; passed some but not all of the tests". Here the answers and checks run, and the cells whose
names they use; and a check is quoted.
"""

from __future__ import annotations

import sys
from typing import Any

import nbgrader.apps.validateapp
from nbformat import NotebookNode
from nbgrader.preprocessors import CheckCellMetadata, ClearOutput, Execute
from nbgrader.validator import Validator
from traitlets import Integer, List

from exercise_kit.conventions import EXPERIMENT_TAG
from exercise_kit.engine.rendering import REPORT_MIME
from exercise_kit.submission.slice import Runnable, select_required_cells

_HANDLERS = "nbgrader.server_extensions.validate_assignment.handlers"


class RunForChecks(Execute):
    """nbgrader's step that runs a notebook, for its checks alone."""

    timeout = Integer(120, help="Seconds for a cell.").tag(config=True)
    iopub_timeout = Integer(60, help="Seconds for a cell's output to arrive; a busy hub is slow.").tag(config=True)
    _wanted: frozenset[int] = frozenset()

    def preprocess(self, notebook: NotebookNode, *more: Any, **options: Any) -> tuple[NotebookNode, dict[str, Any]]:
        """Run it in place."""
        self._wanted = find_check_cells(notebook)
        ran: tuple[NotebookNode, dict[str, Any]] = super().preprocess(notebook, *more, **options)
        return ran

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Run a cell, or pass it over."""
        if index not in self._wanted:
            return cell, resources
        ran: tuple[NotebookNode, dict[str, Any]] = super().preprocess_cell(cell, resources, index)
        return ran


def find_check_cells(notebook: NotebookNode) -> frozenset[int]:
    """The indices of the cells to run: those with a mark of nbgrader's, and those whose names these use."""
    cells = [
        Runnable(index, cell.source, bool(cell.metadata.get("nbgrader", {}).get("grade_id")))
        for index, cell in enumerate(notebook.cells)
        if cell.cell_type == "code" and EXPERIMENT_TAG not in cell.metadata.get("tags", ())
    ]
    return frozenset(each.index for each in select_required_cells(cells))


class QuotingValidator(Validator):
    """nbgrader's validator, which quotes a check."""

    width = Integer(120, help="Columns of a line; a longer one is cut.").tag(config=True)
    preprocessors = List([CheckCellMetadata, ClearOutput, RunForChecks])

    def _extract_error(self, cell: NotebookNode) -> str:
        for output in cell.get("outputs", ()):
            if report := output.get("data", {}).get(REPORT_MIME):
                return str(report["text"])
        return str(super()._extract_error(cell))


def install_validate() -> None:
    """Make nbgrader's command, and the server behind JupyterLab's button, use this validator."""
    nbgrader.apps.validateapp.Validator = QuotingValidator
    handlers: Any = sys.modules.get(_HANDLERS)
    if handlers:
        handlers.Validator = QuotingValidator
