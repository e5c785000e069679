"""docs/diagnose_on_colab.ipynb: cells without outputs that diagnose a model, whose slip is named."""

from __future__ import annotations

from pathlib import Path

import nbformat

NOTEBOOK = Path(__file__).parents[2] / "docs" / "diagnose_on_colab.ipynb"


def test_its_cells_run_and_name_the_slip():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    cells = {cell.id: cell for cell in notebook.cells if cell.cell_type == "code"}
    assert all(not cell.outputs and cell.execution_count is None for cell in cells.values())
    space: dict[str, object] = {}
    for name in ("model", "diagnose", "step"):
        exec(compile(cells[name].source, name, "exec"), space)
    report = space["report"]
    assert [each.mistake for each in report.of("wrong")] == [("MultiHeadSelfAttention", "softmax down the queries")]
