"""A student's kernel: predictions, checks and progress on their way through a lesson, and what nbgrader leaves out."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from exercise_kit.progress.log import FILE, SWITCH
from tests.outline import POINTS
from tests.waiting import GIVE_UP

PATCHIFY = POINTS["01_patchify"]["patchify"]
CELLS = (
    "from vit_course import check, patchify, predict, progress, reveal",
    'predict("tokens", ...)\npredict("tokens", 300)\npredict("order", "rows", choices=("rows", "columns"))',
    'reveal("tokens", 270, within=10)\nreveal("order", "rows")\n3',
    "predict('tokens', 270)",
    f'check("patchify", lambda images, patch_size: patchify(images.transpose(2, 3), patch_size), points={PATCHIFY})',
    f'check("patchify", patchify, points={PATCHIFY})',
    "progress()",
)


def test_a_student_sees_guess_beside_result_and_the_lesson_s_sum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    NotebookClient(notebook, timeout=GIVE_UP, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [cell.outputs for cell in notebook.cells]
    assert not [each for cell in outputs for each in cell if each.get("name") == "stderr"]
    assert "put a number" in outputs[1][0]["text"]
    assert outputs[2][0]["data"]["text/plain"] == "You said 300, it is 270: 30 too high."
    assert 'aria-label="Your prediction"' in outputs[2][0]["data"]["text/html"]
    assert outputs[2][-1]["data"]["text/plain"] == "3"  # the cell's own value is still its value
    assert "your first guess stays: 300" in outputs[3][0]["text"]
    assert outputs[5][0]["data"]["text/plain"] == str(float(PATCHIFY))  # what nbgrader reads
    (shown,) = outputs[6]
    assert "Next: unpatchify, here." in shown["data"]["text/plain"]
    assert "Predictions: 1 of 2 right, 1 of 2 in this lesson." in shown["data"]["text/html"]
    kinds = [json.loads(line)["kind"] for line in (tmp_path / FILE).read_text().splitlines()]
    assert kinds == ["guess", "guess", "result", "result", "check", "check"]
