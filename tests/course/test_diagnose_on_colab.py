"""docs/diagnose_on_colab.ipynb: cells without outputs that diagnose a model, whose slip is named."""

from __future__ import annotations

from pathlib import Path

import nbformat

NOTEBOOK = Path(__file__).parents[2] / "docs" / "diagnose_on_colab.ipynb"


def test_its_cells_run_and_name_the_slip():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in cells)
    assert {"setup", "model", "diagnose", "step"} <= {cell.id for cell in cells}
    space: dict[str, object] = {}
    for cell in cells:  # where the course is there, nothing is installed and no network is needed
        exec(compile(cell.source, cell.id, "exec"), space)
    report = space["report"]
    assert [each.mistake for each in report.of("wrong")] == [("MultiHeadSelfAttention", "softmax down the queries")]
