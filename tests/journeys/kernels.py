"""Lessons in a real kernel: a student's machine, on which the wheel is installed and nothing else of the course."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

from exercise_kit.authoring.release import build_wheel
from exercise_kit.conventions import EXPERIMENT_TAG
from tests.journeys.roads import ROOT
from tests.journeys.warm_kernel import start_warm_process
from tests.waiting import GIVE_UP

# stands for a machine like Colab: what is installed here for authors and instructors cannot be imported
STUDENTS_MACHINE = """
from importlib.machinery import PathFinder

MISSING = {"nbgrader", "jupyterlab", "jupytext", "nbclient", "nbconvert", "sklearn", "timm", "transformers", "einops"}
MISSING |= {"pytest", "playwright"}
find = PathFinder.find_spec

def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in MISSING else find(name, path, target)

PathFinder.find_spec = find_spec
"""
_ADDRESS, _NUMBER = re.compile(r"0x[0-9a-f]+"), re.compile(r"[-+]?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?")
# printed in a cell below the lesson's: where the course was imported from, and how the exercises' doctests went
LAST_CELL = """
import doctest
import vit_course

def run_examples(name):
    examples = doctest.DocTestParser().get_doctest(globals()[name].__doc__, dict(globals()), name, None, 0)
    return tuple(doctest.DocTestRunner(verbose=False).run(examples))[:2]

vit_course.__file__, {{name: run_examples(name) for name in {objects}}}
"""


def install_on_students_machine(folder: Path) -> Path:
    """Install the wheel of this clone in an empty folder, and give that."""
    with zipfile.ZipFile(build_wheel(ROOT, folder)) as wheel:
        wheel.extractall(folder / "site")
    (folder / "site" / "sitecustomize.py").write_text(STUDENTS_MACHINE)
    return folder / "site"


def execute_notebooks(notebooks: dict[str, nbformat.NotebookNode], site: Path, folder: Path) -> None:
    """Run each notebook from top to bottom, two at a time, each in an empty folder; their experiments are left out.

    Args:
        notebooks: by lesson; they get their outputs.
        site: what :func:`install_on_students_machine` gives.
        folder: in which those folders are made.
    """

    def execute_lesson(lesson: str) -> None:
        home = folder / lesson
        home.mkdir()
        client = NotebookClient(
            notebooks[lesson],
            kernel_manager_class=Manager,
            timeout=GIVE_UP,
            skip_cells_with_tag=EXPERIMENT_TAG,
            allow_errors=True,
            resources={"metadata": {"path": str(home)}},
        )
        client.execute(env={**environment, "XDG_DATA_HOME": str(home)})

    environment = {**os.environ, "PYTHONPATH": str(site)}
    with start_warm_process(folder, environment) as command, ThreadPoolExecutor(2) as both:

        class Manager(AsyncKernelManager):
            def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
                return [*command, self.connection_file]

        list(both.map(execute_lesson, reversed(notebooks)))  # the longest are among the last


def find_errors(notebook: nbformat.NotebookNode) -> dict[str, str]:
    """Id of each cell that raised → the exception, in one line."""
    return {
        cell.id: f"{output.ename}: {output.evalue}".splitlines()[0]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if output.output_type == "error"
    }


def list_output_lines(outputs: Sequence[Mapping[str, Any]]) -> list[str]:
    """List what a cell said, in order, line by line: what it printed, the text of its values, error, and that it drew.

    What no two runs have in common is left out: numbers, addresses, and progress on stderr.
    """
    said = ""
    for output in outputs:
        if output["output_type"] == "error":
            said += f"{output['ename']}: {output['evalue']}\n"
        elif output["output_type"] == "stream":
            said += output["text"] if output["name"] == "stdout" else ""
        else:
            data = output.get("data", {})
            said += f"{'a picture' if 'image/png' in data else data.get('text/plain', '')}\n"
    lines = _NUMBER.sub("#", _ADDRESS.sub("<at>", said)).splitlines()
    return [line.rstrip() for line in lines if line.strip()]


def read_points_shown(cell: nbformat.NotebookNode) -> float:
    """The points that nbgrader reads from a check cell; on stderr or with an error it would give none.

    On a busy machine a check says on stdout that it is still running.
    """
    outputs = [output for output in cell.outputs if output.get("name") != "stdout"]
    if [output.output_type for output in outputs] != ["execute_result"]:
        return 0.0
    return float(outputs[0].data["text/plain"])
