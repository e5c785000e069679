"""The versions that pyproject.toml allows for grading: both ends were tried, and the higher is constraints.txt."""

import json

import pytest
from bounds import RESULTS, ROOT, read_pinned_versions, read_requirements

TRIED = json.loads(RESULTS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", read_requirements())
def test_the_bounds_are_those_that_were_tried(name):
    operators = {each.operator: each.version for each in read_requirements()[name].specifier}
    assert operators.keys() == {">=", "<"}, "what begins somewhere ends somewhere"
    assert TRIED["lowest"]["versions"][name] in (operators[">="], f"{operators['>=']}.0"), "make bounds"
    assert TRIED["highest"]["versions"][name] == read_pinned_versions()[name], "make bounds"
    assert read_requirements()[name].specifier.contains(read_pinned_versions()[name])


def test_the_guide_for_a_student_s_machine_ends_where_nbgrader_s_bound_does():
    (end,) = (each.version for each in read_requirements()["nbgrader"].specifier if each.operator == "<")
    assert f'pip install "nbgrader<{end}"' in (ROOT / "docs" / "instructors" / "validate.md").read_text("utf-8")


def test_both_ends_grade_alike():
    low, high = ({name: TRIED[end][name] for name in ("grade", "nbgrader")} for end in ("lowest", "highest"))
    assert low == high
    assert high["grade"] == high["nbgrader"]["ada"] == 26
    assert set(high["nbgrader"]) == {"ada", "ben", "cleo", "dan"}
