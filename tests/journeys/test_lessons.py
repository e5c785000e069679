"""The plain road of students, and of an instructor with a folder of files: every lesson and every exercise, each time.

What is asked here of each lesson is not sampled, and nothing here knows of more than one mistake of an exercise.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest

from exercise_kit.conventions import BEGIN_SOLUTION, END_SOLUTION, make_check_grade_id
from exercise_kit.simulate.answer_pool import LessonPools
from exercise_kit.simulate.modules import load_right_variants
from exercise_kit.submission.released import Lessons
from tests.journeys.kernels import (
    LAST_CELL,
    execute_notebooks,
    find_errors,
    install_on_students_machine,
    list_output_lines,
    read_points_shown,
)
from tests.journeys.roads import (
    NOTHING_DONE,
    ROOT,
    WEIGHTS,
    fail_with_lines,
    iterate_wrong_points,
    run_python,
    write_data_folder,
    write_weights_file,
)
from tests.outline import OUTLINE, POINTS
from vit_course.exercises.catalog import EXERCISES

# of the course's own calls those that help a student along, and are silent while their answers are graded
SILENT_FOR_THE_JUDGE = re.compile(r"^(check|keep|borrow|reset|predict|reveal|progress|hunt)\(", re.MULTILINE)
LESSON_OF = {exercise: lesson for lesson in OUTLINE for exercise in POINTS[lesson]}
# at the head of an answer that is handed in alone, as the lessons' own cells have them
IMPORTS = """
import copy
import math
import random
from dataclasses import replace
import numpy
import torch
import torch.nn.functional as F
from torch import nn
from vit_course import *
"""


@pytest.fixture(scope="module")
def executed_notebooks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, nbformat.NotebookNode]:
    """Each solution as it was run by a student who installed the wheel, the exercises' doctests below it."""
    site, folder = install_on_students_machine(tmp_path_factory.mktemp("wheel")), tmp_path_factory.mktemp("kernels")
    notebooks = {}
    for lesson in OUTLINE:
        notebook = nbformat.read(ROOT / "solutions" / f"{lesson}.ipynb", as_version=4)
        objects = [each for name in POINTS[lesson] if not EXERCISES[name].file for each in EXERCISES[name].objects]
        notebook.cells.append(nbformat.v4.new_code_cell(LAST_CELL.format(objects=objects)))
        notebooks[lesson] = notebook
    execute_notebooks(notebooks, site, folder)
    return notebooks


def test_in_a_kernel_with_the_wheel_alone_every_check_passes(
    executed_notebooks: dict[str, nbformat.NotebookNode],
) -> None:
    fail_with_lines(_find_wrong_in_kernels(executed_notebooks))


def _find_wrong_in_kernels(executed: dict[str, nbformat.NotebookNode]) -> Iterator[str]:
    for lesson, notebook in executed.items():
        worth = {
            make_check_grade_id(name): points for name, points in POINTS[lesson].items() if not EXERCISES[name].file
        }
        for cell in notebook.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id")
            if name in worth and (shown := read_points_shown(cell)) != worth[name]:
                yield f"the wheel in a kernel: {lesson}: {name}: {shown:g} points, not {worth[name]:g}"
        yield from (
            f"the wheel in a kernel: {lesson}: a cell raised {error}" for error in find_errors(notebook).values()
        )
        if find_errors(notebook):
            continue
        where, examples = ast.literal_eval(notebook.cells[-1].outputs[-1].data["text/plain"])
        if Path(where).is_relative_to(ROOT):
            yield f"the wheel in a kernel: {lesson}: it imported the course from {where}"
        for name, (failed, attempted) in examples.items():
            if failed or not attempted:
                yield f"the wheel in a kernel: {lesson}: {name}: {failed} of {attempted} worked examples are wrong"


@dataclass(frozen=True)
class Graded:
    """What one command graded: path → its entry in the JSON; and ``runs``, path → what each cell showed."""

    entries: Mapping[Path, Mapping[str, Any]]
    runs: Mapping[Path, Mapping[int, list[Mapping[str, Any]]]]
    said: str


@pytest.fixture(scope="module")
def submission_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The solutions, the lessons as they were released, and one right and one wrong answer to each exercise."""
    folder = tmp_path_factory.mktemp("grade") / "downloads"
    for road, source in (("solved", "solutions"), ("untouched", "notebooks")):
        for lesson in OUTLINE:
            home = folder / road / lesson
            home.mkdir(parents=True)
            shutil.copy(ROOT / source / f"{lesson}.ipynb", home)
    write_weights_file(folder / "solved" / LESSON_OF["vit_cifar"])
    for name, (right, wrong) in _iterate_answers():
        for road, source in (("right", right), ("wrong", wrong)):
            home = folder / road / name
            home.mkdir(parents=True)
            (home / f"{LESSON_OF[name]}.py").write_text(IMPORTS + source, encoding="utf-8")
    for road in ("right", "wrong"):  # a file is asked for, so a notebook lies beside it
        home = folder / road / "vit_cifar"
        home.mkdir(parents=True)
        shutil.copy(ROOT / "notebooks" / f"{LESSON_OF['vit_cifar']}.ipynb", home)
        write_weights_file(home)
    wrong_file, _ = EXERCISES["vit_cifar"].misconceptions[0].objects[0]()
    (home / WEIGHTS).write_bytes(wrong_file)
    return folder


def _iterate_answers() -> Iterator[tuple[str, tuple[str, str]]]:
    """Exercise → the source of a right answer in other words than the model's, and of a known mistake."""
    variants = load_right_variants()
    for lesson in Lessons(None, ROOT):
        models = {name: _remove_solution_marks(source) for name, source in lesson.model_answers.items()}
        for name, pool in LessonPools(lesson, models, variants).pools.items():
            if pool.exercise.file:
                continue
            wrong = next(filter(None, map(pool.answer_with_mistake, pool.misconceptions)))
            yield name, tuple(pool.make_self_contained(each).source or "" for each in (pool.right[-1], wrong))


def _remove_solution_marks(source: str) -> str:
    return "\n".join(line for line in source.split("\n") if line.strip() not in (BEGIN_SOLUTION, END_SOLUTION))


@pytest.fixture(scope="module")
def graded_submissions(submission_folder: Path) -> Graded:
    paths = sorted(each for each in submission_folder.glob("*/*/*") if each.suffix in (".ipynb", ".py"))
    command: list[object] = [
        "-m",
        "vit_course",
        "grade",
        *paths,
        "--jobs",
        2,
        "--json",
        submission_folder.parent / "out.json",
    ]
    done = run_python(command, submission_folder, write_data_folder(submission_folder.parent / "data"))
    assert done.returncode in (0, 1), done.stderr  # 1: of somebody there is something to say
    entries = json.loads((submission_folder.parent / "out.json").read_text("utf-8"))["submissions"]
    kept = (
        json.loads(each.read_bytes())["result"] for each in (submission_folder.parent / "cache").rglob("results/*.json")
    )
    runs = {Path(each["path"]): {run["index"]: run["outputs"] for run in each["runs"]} for each in kept}
    return Graded({Path(each["path"]): each for each in entries}, runs, done.stderr)


def iterate_entries_of_road(road: str, graded: Graded) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The name of the folder, lesson and entry of each of a road."""
    for path, entry in graded.entries.items():
        if path.parts[-3] == road:
            yield path.parts[-2], path.stem, entry


def test_each_solution_earns_every_point(graded_submissions: Graded) -> None:
    entries = list(iterate_entries_of_road("solved", graded_submissions))
    assert len(entries) == len(OUTLINE)
    fail_with_lines(
        line
        for _, lesson, entry in entries
        for line in (*iterate_wrong_points("grade, a solution", entry, POINTS[lesson]), *iterate_failed_claims(entry))
    )


def iterate_failed_claims(entry: Mapping[str, Any]) -> Iterator[str]:
    """A line for each claim that fails, with or without points."""
    for exercise in entry["exercises"]:
        for each in exercise["checks"]:
            if each["verdict"] == "fail":
                yield f"grade, a solution: {exercise['name']}: {each['name']}: {each['message']}"


def test_each_lesson_as_released_earns_nothing_and_is_not_written_yet(graded_submissions: Graded) -> None:
    entries = list(iterate_entries_of_road("untouched", graded_submissions))
    assert len(entries) == len(OUTLINE)
    road = "grade, as released"
    fail_with_lines(
        line
        for _, lesson, entry in entries
        for line in (
            *iterate_wrong_points(road, entry, dict.fromkeys(POINTS[lesson], 0.0)),
            *iterate_other_than_unwritten(road, entry),
        )
    )


def iterate_other_than_unwritten(road: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """A line for each exercise of which anything else is said than that it is not written yet."""
    for each in entry["exercises"]:
        if each["reason"] not in NOTHING_DONE:
            yield f"{road}: {entry['assignment']}: {each['name']}: {each['reason']}, not {NOTHING_DONE}"


def test_a_right_answer_to_each_exercise_earns_all_of_its_points(graded_submissions: Graded) -> None:
    entries = list(iterate_entries_of_road("right", graded_submissions))
    assert len(entries) == len(LESSON_OF)
    fail_with_lines(
        line
        for name, lesson, entry in entries
        for line in iterate_wrong_points("grade, a right .py", entry, {name: POINTS[lesson][name]})
    )


def test_a_known_mistake_in_each_exercise_does_not_and_has_its_name(graded_submissions: Graded) -> None:
    entries = list(iterate_entries_of_road("wrong", graded_submissions))
    assert len(entries) == len(LESSON_OF)
    fail_with_lines(line for name, _, entry in entries for line in _find_unnamed(name, entry))


def _find_unnamed(name: str, entry: Mapping[str, Any]) -> Iterator[str]:
    found = [each for each in entry["exercises"] if each["name"] == name]
    if not found or found[0]["score"] >= found[0]["max_score"] or not found[0]["misconception"]:
        said = f"{found[0]['score']:g} points, named {found[0]['misconception']}" if found else entry["reason"]
        yield f"grade, a wrong .py: {entry['assignment']}: {name}: {said}"


def test_each_cell_shows_the_judge_what_it_shows_in_a_kernel(
    graded_submissions: Graded, executed_notebooks: dict[str, nbformat.NotebookNode]
) -> None:
    """Lesson by lesson: what the judge hides takes no cell of the lesson down, and changes nothing that one says."""
    # one result is kept of equal notebooks: it is that of the lesson's model answers, where these were handed in
    solutions = (
        path for path in graded_submissions.runs if path.parent.name == "solutions" or path.parts[-3] == "solved"
    )
    runs = {path.stem: graded_submissions.runs[path] for path in solutions}
    assert runs.keys() == OUTLINE.keys()
    fail_with_lines(_find_differing_outputs(runs, executed_notebooks))


def _find_differing_outputs(
    runs: Mapping[str, Mapping[int, list[Mapping[str, Any]]]], executed: Mapping[str, nbformat.NotebookNode]
) -> Iterator[str]:
    for lesson, cells in runs.items():
        for index, outputs in cells.items():
            cell = executed[lesson].cells[index]
            by_judge, in_kernel = list_output_lines(outputs), list_output_lines(cell.outputs)
            if index == min(cells):  # of the first cell there runs what answers need
                in_kernel = [line for line in in_kernel if line in by_judge]
            if by_judge != in_kernel and not SILENT_FOR_THE_JUDGE.search(cell.source):
                first = cell.source.partition("\n")[0]
                yield f"grade, a solution: {lesson}: the cell {first!r} shows {by_judge}, and in a kernel {in_kernel}"
