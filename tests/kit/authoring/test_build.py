from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

from exercise_kit.authoring.build import BuildReport, build
from exercise_kit.authoring.lesson import AuthoringError
from exercise_kit.authoring.notebook import CHECK_IMPORT

from .conftest import GOOD

SOLUTION, STUDENT = Path("solutions/01_double.ipynb"), Path("notebooks/01_double.ipynb")


def read_built_notebook(repository, path):
    return nbformat.read(repository.root / path, as_version=nbformat.NO_CONVERT)


def index_cells_by_grade_id(notebook):
    marked = (cell for cell in notebook.cells if "nbgrader" in cell.metadata)
    return {cell.metadata.nbgrader.grade_id: cell for cell in marked}


def read_all_files(repository):
    files = [path for path in repository.root.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in files}


def test_building_writes_both_notebooks_once(repository):
    assert build(repository.root) == BuildReport(written=(SOLUTION, STUDENT))
    before = read_all_files(repository)
    assert build(repository.root) == BuildReport(unchanged=(SOLUTION, STUDENT))
    assert read_all_files(repository) == before


def test_checking_lists_what_is_stale_and_writes_nothing(repository):
    before = read_all_files(repository)
    report = build(repository.root, check=True)
    assert report == BuildReport(stale=(SOLUTION, STUDENT))
    assert not report.fresh
    assert read_all_files(repository) == before
    build(repository.root)
    assert build(repository.root, check=True).fresh
    repository.write(GOOD.replace("secret_factor = 2", "secret_factor = 3"))
    assert build(repository.root, check=True) == BuildReport(stale=(SOLUTION,), unchanged=(STUDENT,))


def test_a_notebook_without_a_source_is_listed_and_left(repository):
    build(repository.root)
    orphan = repository.root / "notebooks" / "09_gone.ipynb"
    orphan.write_text("{}", encoding="utf-8")
    report = build(repository.root)
    assert report.orphaned == (Path("notebooks/09_gone.ipynb"),)
    assert not report.fresh
    assert orphan.exists()


def test_of_one_bad_lesson_all_problems_are_reported_at_once_and_nothing_is_written(repository):
    bad = GOOD.replace('"double"', '"triple"').replace("points=3", "points=0").replace("dot.svg", "line.svg")
    repository.write(bad, "02_triple")
    place = r"solutions/02_triple\.py:\d+ \(cell 5\): points=0 is not"
    with pytest.raises(AuthoringError, match=place) as caught:
        build(repository.root)
    assert len(caught.value.problems) == len(str(caught.value).splitlines()) == 2
    assert not list(repository.root.rglob("*.ipynb"))


def test_an_exercise_name_in_two_lessons_is_refused(repository):
    repository.write(GOOD, "02_again")
    with pytest.raises(AuthoringError, match=r"02_again\.py.*'double' is also in solutions/01_double\.py; rename one"):
        build(repository.root)


def test_markers_that_leave_broken_code_to_the_student_are_refused(repository):
    repository.write(
        GOOD.replace("    ### BEGIN SOLUTION\n", "    if number:\n        ### BEGIN SOLUTION\n    ### END SOLUTION\n")
    )
    with pytest.raises(AuthoringError, match="an empty solution region"):
        build(repository.root)
    inside_brackets = "    return (\n        ### BEGIN SOLUTION\n        number * 2\n        ### END SOLUTION\n    )\n"
    start, end = GOOD.index("    ### BEGIN"), GOOD.index("# %% check")
    repository.write(GOOD[:start] + inside_brackets + "\n" + GOOD[end:])
    with pytest.raises(AuthoringError, match="without its answer the exercise is not valid Python"):
        build(repository.root)


def test_no_lessons_is_an_error(repository):
    (repository.root / "solutions" / "01_double.py").unlink()
    with pytest.raises(AuthoringError, match="no lesson here"):
        build(repository.root)


@pytest.mark.parametrize("text", [None, "not toml [", "[project]\nname = 'x'\n"])
def test_the_address_must_stand_in_pyproject(repository, text):
    path = repository.root / "pyproject.toml"
    path.unlink() if text is None else path.write_text(text, encoding="utf-8")
    with pytest.raises(AuthoringError, match=r"^pyproject\.toml: cannot read the repository's address"):
        build(repository.root)


def test_a_failing_write_leaves_the_old_notebook_whole(repository, monkeypatch):
    build(repository.root)
    before = read_all_files(repository)
    repository.write(GOOD.replace("secret_factor = 2", "secret_factor = 3"))
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        build(repository.root)
    after = read_all_files(repository)
    del before[repository.root / "solutions" / "01_double.py"], after[repository.root / "solutions" / "01_double.py"]
    assert after == before


def test_notebooks_carry_no_version(repository):
    build(repository.root)
    for path in (SOLUTION, STUDENT):
        notebook = read_built_notebook(repository, path)
        assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
        assert notebook.metadata.kernelspec.name == "python3"
        assert "version" not in json.dumps(notebook.metadata)
        assert (repository.root / path).read_bytes().endswith(b"}\n")


def test_cell_ids_come_from_lesson_role_and_name(repository):
    build(repository.root)
    for path in (SOLUTION, STUDENT):
        assert [cell.id for cell in read_built_notebook(repository, path).cells] == [
            "01_double-text-01",
            "01_double-badge",
            "01_double-setup",
            "01_double-code-02",
            "01_double-text-03",
            "01_double-exercise-double",
            "01_double-check-double",
            "01_double-question-why-two",
            "01_double-code-07",
        ]


def test_a_long_name_still_gives_a_valid_id(repository):
    repository.write(GOOD.replace("double", "double_" * 10 + "x"))
    build(repository.root)
    ids = [cell.id for cell in read_built_notebook(repository, STUDENT).cells]
    assert max(map(len, ids)) == 64
    assert len(set(ids)) == len(ids)


def test_nbgrader_s_marks_are_locked_where_they_say_so_and_no_marked_cell_can_be_deleted(repository):
    build(repository.root)
    marks = {}
    for name, cell in index_cells_by_grade_id(read_built_notebook(repository, STUDENT)).items():
        mark = cell.metadata.nbgrader
        assert mark.schema_version == 3
        assert mark.checksum
        assert (cell.metadata.get("editable", True), cell.metadata.deletable) == (not mark.locked, False)
        marks[name] = (cell.cell_type, mark.grade, mark.solution, mark.locked, mark.get("points"))
    assert marks == {
        "setup": ("code", False, False, True, None),
        "double": ("code", False, True, False, None),
        "check-double": ("code", True, False, True, 3),
        "why-two": ("markdown", True, True, False, 1.5),
    }


def test_the_solution_keeps_its_markers_and_the_student_gets_stubs(repository):
    build(repository.root)
    solution, student = (
        index_cells_by_grade_id(read_built_notebook(repository, SOLUTION)),
        index_cells_by_grade_id(read_built_notebook(repository, STUDENT)),
    )
    assert "### BEGIN SOLUTION\n    secret_factor = 2" in solution["double"].source
    assert student["double"].source == (
        'def double(number):\n    """Twice the number."""\n    # TODO: your code here\n    raise NotImplementedError'
    )
    assert student["why-two"].source == "Why two?\n\n*Your answer here.*"
    imported = CHECK_IMPORT.format(package="vit_course")
    check = f'{imported}\n\ncheck("double", double, points=3)'
    assert student["check-double"].source == solution["check-double"].source == check


def test_experiments_keep_their_tag(repository):
    build(repository.root)
    assert read_built_notebook(repository, STUDENT).cells[-1].metadata.tags == ["experiment"]


def test_the_badge_opens_the_student_s_notebook_and_holds_its_picture(repository):
    build(repository.root)
    badge = read_built_notebook(repository, STUDENT).cells[1].source
    page = "https://colab.research.google.com/github/someone/some_course/blob/main/notebooks/01_double.ipynb"
    assert badge.startswith(f"[![Open this notebook in Colab][badge]]({page})\n\n[badge]: data:image/png;base64,")
