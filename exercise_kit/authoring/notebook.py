"""From a lesson to its notebooks: the one with answers, which is nbgrader's source, and the student's.

Below the title the builder adds the Colab badge and the setup cell. The badge is our own drawing and lies inside the
notebook, so that opening one makes no request to anybody; ``python -m exercise_kit.authoring.notebook`` draws it anew.

A lesson's figures lie inside, too: as a PNG in a `data:` address at the end of the cell, to which Markdown's own syntax
refers; JupyterLab and nbconvert show that (tried), and Colab and VS Code should, as they read Markdown's references and
`data:` addresses (not tried). Colab shows neither cell attachments (googlecolab/colabtools issue 3836) nor
SVG in a `data:` address (issue 2092). So a lesson names `../figures/name.svg`, and what goes in is the
`figures/name.png` beside it, drawn by the same script.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Polygon
from nbformat import NotebookNode
from nbgrader.preprocessors import (
    CheckCellMetadata,
    ClearHiddenTests,
    ClearMarkScheme,
    ClearOutput,
    ClearSolutions,
    ComputeChecksums,
    LockCells,
)

from exercise_kit.authoring.addresses import Addresses
from exercise_kit.authoring.lesson import Cell, Lesson, Role
from exercise_kit.authoring.predictions import ClearPredictions
from exercise_kit.conventions import CODE_STUB, NBGRADER_SCHEMA, SETUP_GRADE_ID, TEXT_STUB, make_check_grade_id
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.palette import INK, ORANGE, WHITE

FILE = Path(__file__).with_name("colab_badge.png")
ALT = "Open this notebook in Colab"
WIDTH, HEIGHT, DOTS_PER_INCH = 142, 28, 96


def draw_colab_badge() -> Figure:
    """The badge: an arrow head and three words on a dark, rounded card."""
    size = (WIDTH / DOTS_PER_INCH, HEIGHT / DOTS_PER_INCH)
    figure = Figure(figsize=size, dpi=DOTS_PER_INCH, facecolor="none")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(0, HEIGHT))
    axes.axis("off")
    rounded = "round,pad=0,rounding_size=5"
    axes.add_patch(FancyBboxPatch((0, 0), WIDTH, HEIGHT, boxstyle=rounded, facecolor=INK, linewidth=0))
    axes.add_patch(Polygon([(13, 7), (13, HEIGHT - 7), (26, HEIGHT / 2)], facecolor=ORANGE, linewidth=0))
    axes.text(36, HEIGHT / 2, "Open in Colab", color=WHITE, size=9.5, va="center_baseline", weight="bold")
    return figure


if __name__ == "__main__":
    draw_colab_badge().savefig(FILE, metadata={"Software": None})


# what the package can say itself, once it is there, it says: on versions that are too old, and on Colab's files
SETUP = '''\
# @title Setup: run this cell first. It finds the course's package, or installs it.
import glob, importlib.util, os, shutil, subprocess, sys
Stop = type("Stop", (Exception,), {{"_render_traceback_": lambda e: [str(e)]}})
sys.path.append(os.path.abspath(".."))  # where a clone of the course has its package
if importlib.util.find_spec("{package}") is None:
    print("Installing the course's package. This may take half a minute.", flush=True)
    found = ["{distribution} @ git+{repository}"]
    for place in "/content/drive/MyDrive", "..", ".":  # a file nearby is used instead
        found += sorted(glob.glob(place + "/{package}-*.whl"), key=os.path.getmtime)
    os.environ.update(UV_PYTHON=sys.executable, GIT_TERMINAL_PROMPT="0")
    pip = ["uv", "pip"] if shutil.which("uv") else [sys.executable, "-m", "pip"]
    if all((ran := subprocess.run([*pip, "install", "-q", *more, found[-1]], text=True,
            capture_output=True)).returncode for more in ([], ["--no-deps"])):
        raise Stop(f"{{found[-1]}}: {{ran.stderr[-400:]}}\\nNo network? "
                   "Put {package}-….whl beside this notebook and run this cell again.")
from {package} import borrow, check, reset\
'''  # fmt: skip


def make_colab_badge_markdown(addresses: Addresses, lesson: str) -> str:
    """Markdown of a button that opens the student's notebook in Colab; its picture is inside."""
    page = addresses.make_colab_address(f"notebooks/{lesson}.ipynb")
    return f"[![{ALT}][badge]]({page})\n\n[badge]: {make_data_url(FILE)}"


def make_setup_cell_source(repository: str) -> str:
    """The setup cell's code."""
    name = read_package_name()
    return SETUP.format(package=name, distribution=name.replace("_", "-"), repository=repository)


# Colab shows the title of a form, and Jupyter a bar to open, in the place of the code
FOLDED = {"cellView": "form", "jupyter": {"source_hidden": True}}
# no versions: they would differ from machine to machine
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"}
LONGEST_CELL_ID = 64
NBFORMAT, NBFORMAT_MINOR = 4, 5
# after a restart of the kernel this line brings back what explains a NameError in the check below it
CHECK_IMPORT = "from {package} import check  # it fails? First run the cells above, from the top"


def build_solution_notebook(lesson: Lesson, root: Path, addresses: Addresses) -> NotebookNode:
    """The notebook with answers, solution markers kept: what nbgrader calls the source version.

    Args:
        lesson: a lesson without problems.
        root: the repository's root, where the figures are.
        addresses: of the course.
    """
    locked = {"nbgrader": _make_nbgrader_metadata(SETUP_GRADE_ID, locked=True), **FOLDED}
    opening = [
        _make_cell_node(
            "markdown", _make_cell_id(lesson, "badge"), make_colab_badge_markdown(addresses, lesson.name), {}
        ),
        _make_cell_node("code", _make_cell_id(lesson, "setup"), make_setup_cell_source(addresses.repository), locked),
    ]
    title, *others = (_make_notebook_cell(lesson, cell, root) for cell in lesson.cells)
    notebook: NotebookNode = nbformat.from_dict(
        {
            "cells": [title, *opening, *others],
            "metadata": {"kernelspec": KERNEL, "language_info": LANGUAGE},
            "nbformat": NBFORMAT,
            "nbformat_minor": NBFORMAT_MINOR,
        }
    )
    return notebook


def build_student_notebook(solution: NotebookNode) -> NotebookNode:
    """Make of the notebook with answers what `nbgrader generate_assignment` makes in a class, without its gradebook."""
    steps = [
        LockCells(),
        ClearPredictions(),
        ClearSolutions(code_stub={"python": CODE_STUB}, text_stub=TEXT_STUB),
        ClearOutput(),
        CheckCellMetadata(),
        ClearHiddenTests(),
        ClearMarkScheme(),
        ComputeChecksums(),
        CheckCellMetadata(),
    ]
    notebook = copy.deepcopy(solution)
    resources: dict[str, Any] = {}
    for step in steps:
        notebook, resources = step(notebook, resources)
    return notebook


def encode_notebook(notebook: NotebookNode) -> bytes:
    """The notebook as a file: the same bytes for the same notebook, valid against nbformat's schema."""
    nbformat.validate(notebook)
    text: str = nbformat.writes(notebook)
    return (text.rstrip("\n") + "\n").encode("utf-8")


def _make_notebook_cell(lesson: Lesson, cell: Cell, root: Path) -> dict[str, Any]:
    metadata: dict[str, Any] = {"tags": list(cell.tags)} if cell.tags else {}
    source, points = cell.source, cell.points
    match cell.role:
        case Role.EXERCISE:
            metadata["nbgrader"] = _make_nbgrader_metadata(cell.name, solution=True)
        case Role.CHECK:
            grade_id = make_check_grade_id(cell.name)
            metadata["nbgrader"] = _make_nbgrader_metadata(grade_id, grade=True, locked=True, points=points)
            imported = CHECK_IMPORT.format(package=read_package_name())
            source = f"{imported}\n\n{source.removesuffix(')')}, points={points:g})"
        case Role.QUESTION:
            metadata["nbgrader"] = _make_nbgrader_metadata(cell.name, grade=True, solution=True, points=points)
    if cell.is_markdown:
        source = inline_figures(source, root / lesson.path.parent)
    label = cell.name or f"{cell.number:02d}"
    kind = "markdown" if cell.is_markdown else "code"
    return _make_cell_node(kind, _make_cell_id(lesson, f"{cell.role.value}-{label}"), source, metadata)


def _make_cell_node(kind: str, cell_id: str, source: str, metadata: dict[str, Any]) -> dict[str, Any]:
    run: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "id": cell_id, "source": source, "metadata": metadata, **run}


def _make_nbgrader_metadata(
    grade_id: str,
    *,
    grade: bool = False,
    solution: bool = False,
    locked: bool = False,
    points: float | None = None,
) -> dict[str, Any]:
    worth = {} if points is None else {"points": points}
    flags = {"grade": grade, "solution": solution, "locked": locked, "task": False}
    return {"schema_version": NBGRADER_SCHEMA, "grade_id": grade_id, **flags, **worth}


def _make_cell_id(lesson: Lesson, label: str) -> str:
    full = f"{lesson.name}-{label}"
    if len(full) <= LONGEST_CELL_ID:
        return full
    digest = hashlib.sha256(full.encode("utf-8")).hexdigest()[:8]
    return f"{full[: LONGEST_CELL_ID - len(digest) - 1]}-{digest}"


PICTURE = re.compile(r"!\[(?P<alt>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<target>[^)\s]+)\)", re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\[\]]*\]\((?P<target>[^)\s]+)[^)]*\)")
HTML_PICTURE = re.compile(r"<(?:img|svg|iframe|video|object|embed)\b", re.IGNORECASE)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
MEDIA_TYPES = {".png": "image/png", ".jpg": "image/jpeg"}


class LineError(ValueError):
    """A line of a cell is wrong; `line` counts the cell's lines from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class FigureError(LineError):
    """A picture or link that fails in a notebook opened alone."""


@dataclass(frozen=True)
class FigureInText:
    """A picture in a Markdown cell: its alternative text, the file to inline, and its place in the text."""

    alt: str
    file: Path
    start: int
    end: int


def find_figures(source: str, folder: Path) -> Iterator[FigureInText]:
    """The pictures of a Markdown cell.

    Args:
        source: the cell's text.
        folder: the folder of the lesson's source, from which targets are counted.

    Raises:
        FigureError: a picture without alternative text, outside `../figures/`, or whose file is missing.
    """
    for match in PICTURE.finditer(source):
        alt, target = " ".join(match["alt"].split()), match["target"]
        line = _find_line_number(source, match)
        if not alt:
            raise FigureError(f"{target} has no alternative text; say in the brackets what it shows", line)
        if not re.fullmatch(r"\.\./figures/[\w-]+\.(svg|png|jpg)", target):
            raise FigureError(f"{target} is not a figure of ours; refer to ../figures/name.svg", line)
        named = folder / target
        file = named.with_suffix(".png") if named.suffix == ".svg" else named
        for needed in (named, file):
            if not needed.is_file():
                message = f"{needed.name} is missing from figures/; draw it with its script there"
                raise FigureError(message, line)
        yield FigureInText(alt, file, match.start(), match.end())


def inline_figures(source: str, folder: Path) -> str:
    """The cell's text with a reference in the place of every picture, and the pictures' data behind the text.

    Who opens the cell to edit it sees text first. The syntax is plain Markdown's, which every notebook page reads.
    """
    parts, done = [], 0
    data: dict[str, str] = {}
    for figure in find_figures(source, folder):
        label = figure.file.stem
        data[label] = f"[{label}]: {make_data_url(figure.file)}"
        parts += [source[done : figure.start], f"![{figure.alt}][{label}]"]
        done = figure.end
    text = "".join([*parts, source[done:]])
    return "\n\n".join([text, *data.values()])


def make_data_url(file: Path) -> str:
    """A picture file as a `data:` address."""
    content = base64.b64encode(file.read_bytes()).decode("ascii")
    return f"data:{MEDIA_TYPES[file.suffix]};base64,{content}"


def refuse_unreachable_links(source: str) -> None:
    """Raise FigureError where a Markdown cell shows or links what a notebook opened alone does not have."""
    source = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), source)
    for link in LINK.finditer(source):
        if not link["target"].startswith(("https://", "http://", "#", "mailto:")):
            message = f"a link to the file {link['target']}, which a notebook on Colab lacks; name it in words"
            raise FigureError(message, _find_line_number(source, link))
    if picture := HTML_PICTURE.search(source):
        message = f"{picture[0]}...> in prose; write ![what it shows](../figures/name.svg)"
        raise FigureError(message, _find_line_number(source, picture))


def _find_line_number(source: str, match: re.Match[str]) -> int:
    return 1 + source.count("\n", 0, match.start())
