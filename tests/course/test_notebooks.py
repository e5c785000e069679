"""The built notebooks: fresh, whole when opened alone, and without an answer; tests/journeys runs them."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from matplotlib.image import imread

from exercise_kit.authoring.build import SOURCES, STUDENT_FOLDER, build
from exercise_kit.authoring.lesson import Lesson, Role, read_lesson
from exercise_kit.authoring.lint import split_solution_regions
from exercise_kit.authoring.notebook import make_setup_cell_source
from vit_course import explore, plots, plots_attention, plots_training
from vit_course.course import COURSE
from vit_course.exercises.catalog import EXERCISES

ROOT = Path(__file__).parents[2]
LESSONS = sorted(path.stem for path in (ROOT / SOURCES).glob("*.py"))
PICTURE_ADDRESS = re.compile(r"!\[[^\]]*\]\(([^)\s]*)|<(?:img|iframe|video|source)[^>]*\bsrc=[\"']?([^\"'\s>]*)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
LINK_ADDRESS = re.compile(r"(?<!!)\[[^\[\]]*\]\(([^)\s]+)")

every_lesson = pytest.mark.parametrize("name", LESSONS)
both_notebooks = pytest.mark.parametrize("folder", [SOURCES, STUDENT_FOLDER], ids=["solution", "student"])


def read_lesson_source(name: str) -> Lesson:
    return read_lesson(ROOT, ROOT / SOURCES / f"{name}.py")


def read_notebook(folder: Path, name: str) -> nbformat.NotebookNode:
    return nbformat.read(ROOT / folder / f"{name}.ipynb", as_version=nbformat.NO_CONVERT)


def iterate_texts(node: Any) -> Iterator[str]:
    """Every text anywhere in a notebook: sources, metadata, attachments, outputs."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield key
            yield from iterate_texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from iterate_texts(value)
    elif isinstance(node, str):
        yield node


def test_the_built_notebooks_are_fresh():
    report = build(ROOT, check=True)
    assert report.fresh, f"run 'vit-course build': stale {report.stale}, without a source {report.orphaned}"


@every_lesson
def test_no_line_of_an_answer_is_in_the_student_s_notebook(name):
    answers: set[str] = set()
    given = {line.strip() for line in make_setup_cell_source("").split("\n")}
    for cell in read_lesson_source(name).cells:
        split = split_solution_regions(cell.source)
        answers.update(line.strip() for line in split.inside)
        given.update(line.strip() for line in split.outside)
    answers = {line for line in answers - given if line}
    assert answers
    shown = {line.strip() for text in iterate_texts(read_notebook(STUDENT_FOLDER, name)) for line in text.split("\n")}
    assert answers & shown == set()


@every_lesson
def test_no_long_line_of_an_answer_is_hidden_in_other_text(name):
    """A hint or a figure's metadata could hold a whole line of the answer amid other words."""
    lesson = read_lesson_source(name)
    answers = {
        line.strip()
        for cell in lesson.list_cells_of_role(Role.EXERCISE)
        for line in split_solution_regions(cell.source).inside
    }
    code = "\n".join(cell.source for cell in lesson.cells if cell.role is Role.CODE)
    reporting = [line for line in answers if len(line) > 30 and line not in code and not line.startswith("raise ")]
    text = "\n".join(iterate_texts(read_notebook(STUDENT_FOLDER, name)))
    assert [line for line in reporting if line in text] == []


def iterate_needed_packages(tree: ast.AST) -> Iterator[str]:
    """Yield what is imported where nothing catches that it is missing."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module).partition(".")[0]
        elif not isinstance(node, ast.Try) or "except ModuleNotFoundError" not in ast.unparse(node):
            yield from iterate_needed_packages(node)


@every_lesson
def test_a_lesson_needs_no_package_but_torch_and_what_comes_with_it(name):
    """The course's file, installed without a network, brings no other: on Colab torchinfo alone is missing then."""
    code = [cell.source for cell in read_lesson_source(name).cells if not cell.is_markdown]
    needed = {package for source in code for package in iterate_needed_packages(ast.parse(source))}
    assert needed - sys.stdlib_module_names <= {"torch", "torchvision", "numpy", "matplotlib", "vit_course"}


def test_without_torchinfo_the_cell_with_its_table_says_so(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torchinfo", None)
    (cell,) = [
        cell for cell in read_lesson_source("05_vit").cells if "torchinfo" in cell.source and not cell.is_markdown
    ]
    exec(cell.source, {})
    assert capsys.readouterr().out.startswith("No table: torchinfo is missing. With a network, run `%pip install")


def list_figure_functions(lesson: Lesson) -> set[str]:
    """Return what gives a figure when it is called: functions of the course, and those that a lesson defines."""
    modules = (plots, plots_attention, plots_training, explore)
    made = {name for each in modules for name, function in inspect.getmembers(each, inspect.isfunction)
            if str(function.__annotations__.get("return")) in ("Figure", "Interactive")}  # fmt: skip
    code = (ast.walk(ast.parse(cell.source)) for cell in lesson.cells if not cell.is_markdown)
    for each in (each for nodes in code for each in nodes if isinstance(each, ast.FunctionDef)):
        if any(isinstance(node, ast.Return) and find_called_name(node.value) in made for node in ast.walk(each)):
            made.add(each.name)
    return made


def find_called_name(node: ast.AST | None) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


@every_lesson
def test_what_makes_a_figure_is_shown(name):
    """A notebook displays the last expression of a cell alone: a figure stands there, or under a name that does."""
    lesson = read_lesson_source(name)
    makers = list_figure_functions(lesson)
    for cell in (each for each in lesson.cells if not each.is_markdown):
        tree = ast.parse(cell.source)
        last = tree.body[-1].value if isinstance(tree.body[-1], ast.Expr) else None
        dropped = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and node.value is not last]
        assert [ast.unparse(each) for each in dropped if find_called_name(each) in makers] == []
        named = (node for node in tree.body if isinstance(node, ast.Assign) and find_called_name(node.value) in makers)
        assert {ast.unparse(each.targets[0]) for each in named} <= {ast.unparse(last) if last else ""}


@every_lesson
def test_what_trains_shows_how_long_it_will_take(name):
    """Each loop over epochs runs under a bar."""
    cells = [each for each in read_lesson_source(name).cells if not each.is_markdown and each.role is not Role.EXERCISE]
    for node in (node for cell in cells for node in ast.walk(ast.parse(cell.source))):
        if isinstance(node, ast.Call) and find_called_name(node) in ("fit", "learn_drawings"):
            assert "progress" not in {each.arg for each in node.keywords}
        text = ast.unparse(node) if isinstance(node, ast.For) else ""
        if "train_one_epoch(model, loader" in text:
            assert " in bar(" in text


@every_lesson
@both_notebooks
def test_a_notebook_opened_alone_lacks_no_file(name, folder):
    for cell in read_notebook(folder, name).cells:
        if cell.cell_type == "markdown":
            pictures = [address for found in PICTURE_ADDRESS.findall(cell.source) for address in found if address]
            assert [address[:60] for address in pictures if not address.startswith("data:image/")] == []
            named = set(re.findall(r"!\[[^\n]*?\]\[([\w-]+)\]", cell.source))
            assert named == set(re.findall(r"^\[([\w-]+)\]: data:image/", cell.source, re.MULTILINE))
            assert not cell.source.startswith("data:")
            links = LINK_ADDRESS.findall(CODE.sub("", cell.source))
            assert [link for link in links if not link.startswith(("https://", "#"))] == []


@every_lesson
def test_a_lesson_s_exercises_are_the_ones_that_check_knows(name):
    known = {exercise.name for exercise in EXERCISES.values() if exercise.lesson == name}
    assert {cell.name for cell in read_lesson_source(name).list_cells_of_role(Role.CHECK)} == known
    written = {each for each in known if not EXERCISES[each].file}
    assert {cell.name for cell in read_lesson_source(name).list_cells_of_role(Role.EXERCISE)} - (
        known - written
    ) == written


@every_lesson
def test_a_passed_check_offers_to_keep_where_the_lesson_does(name):
    keeps = re.search(r"^keep\(", (ROOT / "solutions" / f"{name}.py").read_text("utf-8"), re.MULTILINE)
    assert (name in COURSE.built_upon) == bool(keeps), "built_upon in vit_course/course.py: lessons that keep answers"


@every_lesson
def test_every_exercise_has_three_folded_hints_before_its_check(name):
    cells = read_lesson_source(name).cells
    places = {(cell.role, cell.name): number for number, cell in enumerate(cells)}
    for cell in read_lesson_source(name).list_cells_of_role(Role.EXERCISE):
        between = cells[places[Role.EXERCISE, cell.name] : places[Role.CHECK, cell.name]]
        hints = [number for each in between for number in re.findall(r"<summary>Hint (\d)", each.source)]
        assert hints == ["1", "2", "3"], cell.name


@pytest.mark.parametrize("path", sorted((ROOT / "figures").glob("*.png")), ids=lambda path: path.stem)
def test_a_figure_is_a_card_of_its_own_on_a_dark_page_too(path):
    """Ink stands on the figure's own light card, never on the page: only the card's round corners let it through."""
    opaque = imread(path)[..., 3] > 0.99
    assert opaque.mean() > 0.97
    rows, columns = opaque.shape
    assert opaque[rows // 20 : -rows // 20, columns // 20 : -columns // 20].all()
