"""The run under Colab's packages: of today's dependencies, nothing upgraded there, and what is missing is seen."""

import base64
import io
import json
import re
import tomllib
from pathlib import Path

import nbformat
import pytest
from colab import (
    PINS,
    REPORT_MIME,
    RESULTS,
    SHOWN,
    Outcome,
    check_cell_outputs,
    compute_dependencies_digest,
    read_colab_versions,
)
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from PIL import Image

ROOT = Path(__file__).parents[3]
# what no package of Colab's gives, so that the setup cell installs it
MISSING = {"torchinfo"}


@pytest.fixture(scope="module")
def results():
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def test_the_last_run_was_with_today_s_dependencies(results):
    assert results["dependencies"] == compute_dependencies_digest(), (
        "dependencies have changed since the last run: make colab"
    )


def test_the_last_run_found_nothing_wrong_in_any_lesson(results):
    assert set(results["lessons"]) == {path.stem for path in (ROOT / "solutions").glob("*.py")}, "make colab"
    assert results["problems"] == []
    assert [row["problems"] for row in results["lessons"].values() if row["problems"]] == []
    assert all(row["reports"] and row["pictures"] for row in results["lessons"].values())


def test_the_last_run_was_under_colab_s_versions_and_added_only_what_was_missing(results):
    assert {name: results["versions"][name] for name in SHOWN} == {name: read_colab_versions()[name] for name in SHOWN}
    for each in results["setup"].values():
        assert set(each["installed"]) == {*MISSING, "vit-course"}


def test_no_dependency_of_a_student_s_asks_for_more_than_colab_has():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    theirs = {canonicalize_name(name): version for name, version in read_colab_versions().items()}
    required = [Requirement(each) for each in project["dependencies"]]
    assert {canonicalize_name(each.name) for each in required} - theirs.keys() == MISSING
    refused = [each for each in required if each.name in theirs and not each.specifier.contains(theirs[each.name])]
    assert refused == []


def test_colab_s_packages_are_named_by_name_and_version_only():
    lines = [line for line in PINS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.+!]+", line)] == []


def make_striped_png(*colors):
    """A PNG with a stripe of each color."""
    image, stream = Image.new("RGB", (len(colors), 4)), io.BytesIO()
    for column, color in enumerate(colors):
        image.paste(color, (column, 0, column + 1, 4))
    image.save(stream, "PNG")
    return stream.getvalue()


def make_executed_cell(source, *outputs, **metadata):
    """A cell that has shown these outputs."""
    cell = nbformat.v4.new_code_cell(source, metadata=metadata)
    cell.outputs = [nbformat.v4.new_output(**each) for each in outputs]
    return cell


def make_display_output(**data):
    return {"output_type": "display_data", "data": {name.replace("_", "/"): value for name, value in data.items()}}


GOOD = base64.b64encode(make_striped_png("white", "black")).decode()
BLANK = base64.b64encode(make_striped_png("white", "white")).decode()
REPORT = {"text/plain": "2.0", "text/html": "<section>Likely cause</section>", REPORT_MIME: {}}
GRADED = {"nbgrader": {"grade": True, "points": 2}}
WRONG = [
    (make_executed_cell("plt.show()"), "no picture, and it draws one"),
    (
        make_executed_cell("show_images(photo())", make_display_output(text_plain="<Figure size 640x480 with 1 Axes>")),
        "words in place of a picture",
    ),
    (make_executed_cell("draw(curves)", make_display_output(image_png=BLANK)), "a blank picture"),
    (
        make_executed_cell("explore_patches(photo())", make_display_output(image_png=GOOD)),
        "no controls, and it has some",
    ),
    (make_executed_cell('check("scale", scale)'), "a check without a report"),
    (
        make_executed_cell("check(1)", {"output_type": "display_data", "data": {**REPORT, "text/html": ""}}),
        "a report without HTML",
    ),
    (
        make_executed_cell(
            "check(1)", {"output_type": "display_data", "data": {**REPORT, "text/plain": "1.0"}}, **GRADED
        ),
        "earns",
    ),
    (make_executed_cell("1", {"output_type": "stream", "name": "stderr", "text": "a warning"}), "on stderr: a warning"),
    (
        make_executed_cell("1", {"output_type": "error", "ename": "TypeError", "evalue": "no", "traceback": []}),
        "TypeError: no",
    ),
]


@pytest.mark.parametrize(("cell", "problem"), WRONG, ids=[each[1] for each in WRONG])
def test_what_a_cell_does_not_show_is_a_problem(cell, problem):
    outcome = Outcome()
    check_cell_outputs(cell, outcome)
    assert [each for each in outcome.problems if problem in each]


def test_what_a_cell_shows_is_counted():
    outcome = Outcome()
    check_cell_outputs(make_executed_cell("show_images(photo())", make_display_output(image_png=GOOD)), outcome)
    check_cell_outputs(
        make_executed_cell("1", make_display_output(text_html=f'<img src="data:image/png;base64,{GOOD}">')), outcome
    )
    check_cell_outputs(
        make_executed_cell("check(1)", {"output_type": "display_data", "data": REPORT}, **GRADED), outcome
    )
    assert (outcome.pictures, outcome.reports, outcome.mistakes_named, outcome.problems) == (2, 1, 1, [])
