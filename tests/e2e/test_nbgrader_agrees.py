"""`nbgrader autograde` and `vit-course grade` read one folder alike, whatever became of a notebook."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from exercise_kit.nbgrader.class_folder import new_class
from exercise_kit.nbgrader.demo_class import model_answers, write_submissions
from tests.e2e.test_nbgrader import LESSON, PATCHIFY_BY_COLUMNS, ROOT, nbgrader
from vit_course.cli import app

Notebook = dict[str, Any]


def mark(cell: dict[str, Any]) -> dict[str, Any]:
    return cell["metadata"].get("nbgrader", {})


def place_of(notebook: Notebook, name: str) -> int:
    return next(place for place, cell in enumerate(notebook["cells"]) if mark(cell).get("grade_id") == name)


def code(source: str, **metadata: Any) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": None, "metadata": metadata, "outputs": [], "source": source}


def without_metadata(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["metadata"] = {}


def without_ids(notebook: Notebook) -> None:
    notebook["nbformat_minor"] = 4
    for cell in notebook["cells"]:
        del cell["id"]


def stripped(notebook: Notebook) -> None:
    without_metadata(notebook)
    without_ids(notebook)


def from_colab(notebook: Notebook) -> None:
    without_ids(notebook)
    notebook["nbformat_minor"] = 0
    notebook["metadata"] = {"colab": {"provenance": [], "toc_visible": True}, "accelerator": "GPU"}
    for number, cell in enumerate(notebook["cells"]):
        cell["metadata"] |= {"id": f"aBcD{number}", "colab": {"base_uri": "https://localhost:8080/"}}
        cell["source"] = cell["source"].splitlines(keepends=True)


def in_one_cell(notebook: Notebook) -> None:
    answers = [
        cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code" and mark(cell).get("solution")
    ]
    imports = "import torch\nfrom torch import nn\nimport torch.nn.functional as F"
    notebook["cells"] = [code("\n\n".join([imports, *answers]))]


def split(notebook: Notebook) -> None:
    """Each answer stands in a cell of its own below the exercise's, which is as it was released or lost its mark."""
    for name in ("patchify", "unpatchify", "conv_from_linear"):
        place = place_of(notebook, name)
        notebook["cells"].insert(place + 1, code(notebook["cells"][place]["source"]))
        notebook["cells"][place]["source"] = "# I try it below\nside = 3"


def doubled(notebook: Notebook) -> None:
    place = place_of(notebook, "unpatchify")
    first = copy.deepcopy(notebook["cells"][place])
    first["source"] = "def unpatchify(patches, patch_size, image_size):\n    return patches"
    for name in ("conv_from_linear", "check-conv_from_linear"):
        notebook["cells"].append(copy.deepcopy(notebook["cells"][place_of(notebook, name)]))
    notebook["cells"].insert(place, first)


def with_outputs(notebook: Notebook) -> None:
    picture = {"image/png": "A" * (55 << 20), "application/vnd.plotly.v1+json": {"data": [{"x": [0.5] * 10_000}]}}
    shown = {"output_type": "display_data", "metadata": {}, "data": picture}
    notebook["cells"][place_of(notebook, "patchify") + 3]["outputs"] = [shown]
    notebook["metadata"]["widgets"] = {"state": {str(number): {} for number in range(1000)}}


def crlf(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].replace("\n", "\r\n")


def swollen(notebook: Notebook) -> None:
    notebook["metadata"]["x"] = [{}] * 400_000


def nested(notebook: Notebook) -> None:
    notebook["metadata"]["x"] = json.loads("[" * 500 + "]" * 500)


def giant(notebook: Notebook) -> None:
    notebook["cells"][0]["source"] = "x" * (40 << 20)


def many_cells(notebook: Notebook) -> None:
    notebook["cells"] += [code("")] * 3000


def nothing(notebook: Notebook) -> None:
    """The notebook as it was saved."""


@dataclass(frozen=True)
class Kind:
    """What became of a notebook: a change of its content, its encoding, its file's name, and a word of the reason."""

    change: Callable[[Notebook], None] = nothing
    encoding: str = "utf-8"
    name: str = f"{LESSON}.ipynb"
    reason: str | None = None


NO_METADATA = "no nbgrader metadata"
HONEST = {
    "as-saved": Kind(),
    "without-metadata": Kind(without_metadata, reason=NO_METADATA),
    "without-ids": Kind(without_ids),
    "stripped": Kind(stripped, reason=NO_METADATA),
    "bom": Kind(encoding="utf-8-sig"),
    "utf-16": Kind(encoding="utf-16", reason="UTF-16"),
    "utf-16-le": Kind(encoding="utf-16-le", reason="UTF-16"),
    "utf-16-be": Kind(encoding="utf-16-be", reason="UTF-16"),
    "renamed": Kind(name="My homework (final).ipynb", reason="its file is named My homework"),
    "second-download": Kind(name=f"{LESSON} (1).ipynb"),
    "colab": Kind(from_colab),
    "crlf": Kind(crlf),
    "split": Kind(split),
    "with-60-MB-of-outputs": Kind(with_outputs),
    "all-at-once": Kind(stripped, "utf-16", "Untitled.ipynb", NO_METADATA),
}
OTHERWISE_GRADED = {
    "in-one-cell": Kind(in_one_cell, reason=NO_METADATA),
    "doubled": Kind(doubled, reason="2 answers for unpatchify"),
}
UNGRADABLE = {
    "swollen": Kind(swollen, reason="more pieces of data"),
    "nested": Kind(nested, reason="nested deeper"),
    "giant": Kind(giant, reason="more than 32 MB beside its outputs"),
    "many-cells": Kind(many_cells, reason="more than 2000 cells"),
    "half-a-file": Kind(reason="not JSON"),
}
KINDS = HONEST | OTHERWISE_GRADED | UNGRADABLE


def hand_in(path: Path, student: str) -> bytes:
    kind = KINDS[student]
    notebook = json.loads(path.read_bytes())
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    kind.change(notebook)
    text = json.dumps(notebook, ensure_ascii=False, indent=1)
    if student == "crlf":
        text = text.replace("\n", "\r\n")
    content = text.encode(kind.encoding)[: 5000 if student == "half-a-file" else None]
    path.unlink()
    path.with_name(kind.name).write_bytes(content)
    return content


@dataclass(frozen=True)
class BothGraders:
    """A class after both: nbgrader's log, the results of `vit-course grade` by student, and what was handed in."""

    folder: Path
    log: str
    results: dict[str, dict[str, Any]]
    handed_in: dict[str, bytes]

    def gradebook(self, student: str) -> dict[str, float | None]:
        with Gradebook(f"sqlite:///{self.folder}/gradebook.db") as gradebook:
            grades = gradebook.find_submission_notebook(LESSON, LESSON, student).grades
            return {grade.name.removeprefix("check-"): grade.auto_score for grade in grades}

    def logged(self, student: str) -> list[str]:
        """What the log says of a student, without nbgrader's own lines."""
        said = (line.partition("] ")[2] for line in self.log.splitlines() if "WARNING]" in line or "ERROR]" in line)
        return [line.removeprefix(f"{student}: ") for line in said if line.startswith(f"{student}: ")]


@pytest.fixture(scope="module")
def graders(tmp_path_factory: pytest.TempPathFactory) -> BothGraders:
    folder = new_class(tmp_path_factory.mktemp("readers") / "class", ROOT).path
    nbgrader(folder, "generate_assignment", LESSON)
    answers = model_answers(folder, LESSON) | {"patchify": PATCHIFY_BY_COLUMNS, "patches-or-pixels": QUESTION}
    written = write_submissions(folder, LESSON, dict.fromkeys(KINDS, answers))
    handed_in = {student: hand_in(path, student) for student, path in written.items()}
    log = nbgrader(folder, "autograde", LESSON)
    nbgrader(folder, "generate_feedback", LESSON)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = CliRunner().invoke(app, ["grade", "submitted", "--json", "all.json", "--jobs", "2"])
    assert done.exit_code == 1, done.output
    results = json.loads((folder / "all.json").read_text("utf-8"))["submissions"]
    return BothGraders(folder, log, {result["student"]: result for result in results}, handed_in)


QUESTION = "### Question: why not one token per pixel? (5 minutes, 2 points)\n\nBecause 50 176² is a lot."


@pytest.mark.parametrize("student", KINDS)
def test_both_graders_give_the_same_points(graders, student):
    result, grades = graders.results[student], graders.gradebook(student)
    judged = {each["name"]: each["score"] for each in result["exercises"]}
    kept = {name: grades[name] for name in judged}
    assert kept == pytest.approx(judged, abs=1e-3)
    assert (result["status"] == "graded") == bool(judged) == (student not in UNGRADABLE)
    if student in HONEST:
        assert grades == graders.gradebook("as-saved")


@pytest.mark.parametrize("student", KINDS)
def test_both_graders_give_the_same_reason_and_flags(graders, student):
    result, expected = graders.results[student], KINDS[student].reason
    reason = f"NOT GRADED: {result['reason']}" if student in UNGRADABLE else result["reason"]
    assert graders.logged(student) == [*filter(None, [reason, ", ".join(result["flags"])])]
    assert (expected is None) == (result["reason"] is None)
    assert expected is None or expected in result["reason"]


def test_no_traceback_is_shown_and_nobody_is_left_out(graders):
    assert "Traceback" not in graders.log
    assert "There was an error processing" not in graders.log
    assert {path.name for path in (graders.folder / "autograded").iterdir()} == set(KINDS)


@pytest.mark.parametrize("student", KINDS)
def test_what_was_handed_in_is_still_there(graders, student):
    folder = graders.folder / "submitted" / student / LESSON
    assert [path.read_bytes() for path in folder.iterdir()] == [graders.handed_in[student]]


@pytest.mark.parametrize("student", sorted(HONEST | OTHERWISE_GRADED))
def test_pages_show_every_answer_and_where_it_failed(graders, student):
    cells = json.loads((graders.folder / "autograded" / student / LESSON / f"{LESSON}.ipynb").read_text("utf-8"))[
        "cells"
    ]
    names = [mark(cell)["grade_id"] for cell in cells if mark(cell)]
    assert len(names) == len(set(names)), "every mark once"
    page = (graders.folder / "feedback" / student / LESSON / f"{LESSON}.html").read_text("utf-8")
    assert "This looks like <em>column order</em>" in page
    answer = "".join(next(cell["source"] for cell in cells if mark(cell).get("grade_id") == "patchify"))
    assert "permute(0, 4, 2, 1, 3, 5)" in answer
    question = "".join(next(cell["source"] for cell in cells if mark(cell).get("grade_id") == "patches-or-pixels"))
    assert ("50 176" in question) == (student != "in-one-cell")


@pytest.mark.parametrize("student", UNGRADABLE)
def test_what_cannot_be_graded_waits_for_a_person_and_its_page_says_why(graders, student):
    assert set(graders.gradebook(student).values()) == {None}
    with Gradebook(f"sqlite:///{graders.folder}/gradebook.db") as gradebook:
        assert gradebook.find_submission(LESSON, student).needs_manual_grade
    page = (graders.folder / "feedback" / student / LESSON / f"{LESSON}.html").read_text("utf-8")
    assert page.count("This notebook could not be graded: ") == 1
    assert KINDS[student].reason in page
    assert "No response." not in page
