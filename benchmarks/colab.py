"""Every lesson's solution as Colab would run it: its Python, torch and old IPython, alone in an empty folder.

    python benchmarks/colab.py                        # or make colab; the first time it fetches several gigabytes
    python benchmarks/colab.py --data DIR             # a folder with cifar10.npz, in place of what Colab would download
    python benchmarks/colab.py --lesson 03_attention  # this one alone; no results are written

uv makes the environment of constraints-colab.txt. The wheel lies beside the notebook and the setup cell installs it,
once by pip and once by uv, and whatever was there before has to be there as it was. Trainings have their small budget
(VIT_COURSE_BUDGET); an experiment that takes more than five minutes even so (two, on an idle machine) is left out and
named. Prints a table, writes results/colab.json, and ends with all that was wrong.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from nbclient import NotebookClient
from PIL import Image
from rich.console import Console
from rich.table import Table
from timing import describe_machine

from exercise_kit.authoring.release import ReleaseError, build_wheel
from exercise_kit.conventions import EXPERIMENT_TAG, SETUP_GRADE_ID
from exercise_kit.engine.rendering import REPORT_MIME
from exercise_kit.engine.verdict import Part
from exercise_kit.submission.released import parse_exercise_and_file_name
from vit_course.interactive import WIDGET_VIEW

ROOT = Path(__file__).parents[1]
PINS, RESULTS = ROOT / "constraints-colab.txt", Path(__file__).parent / "results" / "colab.json"
PYTHON = "3.13"
SECONDS = 300  # for one cell
# a cell with such a line has to show a picture, one with such a text shows words in its place
DRAWS = re.compile(r"^(?:plt\.show|show_\w+|plot_\w+|explore_\w+|draw)\(", re.MULTILINE)
MOVES = re.compile(r"^explore_\w+\(", re.MULTILINE)  # has to show controls
IN_HTML = re.compile(r"data:image/png;base64,([A-Za-z0-9+/=]+)")
FIGURE_AS_TEXT = re.compile(r"<[\w.]*(?:Figure|Axes|PIL)\b")
console = Console(highlight=False, width=110)


@dataclass
class Outcome:
    """What became of a lesson: seconds, how many code cells ran, what they showed, and what was wrong."""

    seconds: float = 0.0
    cells: int = 0
    pictures: int = 0
    controls: int = 0
    reports: int = 0
    mistakes_named: int = 0
    left_out: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_colab_versions() -> dict[str, str]:
    """Colab's versions by the names of the packages."""
    lines = PINS.read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def compute_dependencies_digest() -> str:
    """A digest of what a run on Colab depends on beside our own code: our dependencies, and Colab's packages."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    facts = [project["requires-python"], sorted(project["dependencies"]), read_colab_versions()]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def run_uv(*arguments: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run uv; where it fails and that is not expected, its words end this script."""
    program = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        sys.exit("uv is not here; make install sets it up")
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    if check and done.returncode:
        sys.exit(f"uv {' '.join(map(str, arguments[:3]))} failed:\n{done.stderr}")
    return done


def find_python() -> str:
    """A Python like Colab's: one that is here, or that uv fetches; else this one, said aloud."""
    found = [*Path.home().glob(f".pyenv/versions/{PYTHON}.*/bin/python"), PYTHON]
    for place in found:
        if not run_uv("python", "find", place, check=False).returncode:
            return str(place)
    if not run_uv("python", "install", PYTHON, check=False).returncode:
        return PYTHON
    console.print(
        f"Python {PYTHON} cannot be had here: this is {sys.version.split()[0]}, and not Colab's.", style="bold"
    )
    return sys.executable


def make_environment(folder: Path) -> Path:
    """Colab's packages in a new environment; its Python. A version that cannot be had is replaced, said aloud."""
    run_uv("venv", "--quiet", "--python", find_python(), folder)
    python = folder / "bin" / "python"
    install = ("pip", "install", "--quiet", "--python", python)
    wanted = {name: f"{name}=={version}" for name, version in read_colab_versions().items()}
    if run_uv(*install, *wanted.values(), check=False).returncode:
        for name, pin in wanted.items():
            if run_uv(*install, "--dry-run", "--no-deps", "--only-binary", ":all:", pin, check=False).returncode:
                console.print(f"{pin} cannot be had for this Python: the nearest version is taken.", style="bold")
                wanted[name] = name
        run_uv(*install, *wanted.values())
    return python


def list_packages(python: Path) -> dict[str, str]:
    """The packages of an environment: name → version."""
    listed = json.loads(run_uv("pip", "list", "--format", "json", "--python", python).stdout)
    return {each["name"]: each["version"] for each in listed}


def make_kernel_environment(python: Path, home: Path, data: Path | None, with_uv: bool) -> dict[str, str]:
    """Return what a kernel of Colab's finds in its environment: its programs and settings, and none of ours."""
    spec = home / "kernels" / "colab"
    spec.mkdir(parents=True, exist_ok=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "Colab", "language": "python"}))
    os.environ["JUPYTER_PATH"] = str(home)  # where nbclient looks for the kernel
    ours = str(Path(sys.executable).parent)
    paths = [each for each in os.environ["PATH"].split(os.pathsep) if each != ours and not Path(each, "uv").exists()]
    if with_uv and (program := shutil.which("uv", path=f"{ours}{os.pathsep}{os.environ['PATH']}")):
        (home / "bin").mkdir(exist_ok=True)
        if not (home / "bin" / "uv").exists():
            (home / "bin" / "uv").symlink_to(program)
        paths.insert(0, str(home / "bin"))
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    settings = {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}  # else the debugger's warnings run through the table
    settings |= {"VIT_COURSE_BUDGET": "small", "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    settings |= {"VIT_COURSE_DATA": str(data)} if data else {}
    return kept | settings | {"PATH": os.pathsep.join(paths), "IPYTHONDIR": str(home / "ipython")}


def run_setup(wheel: Path, lesson: str, environment: Mapping[str, str]) -> tuple[float, list[str]]:
    """Run a lesson's setup cell with the wheel beside it: seconds, and what was wrong."""
    notebook = nbformat.read(ROOT / "notebooks" / f"{lesson}.ipynb", as_version=4)
    index, cell = next(
        (index, cell)
        for index, cell in enumerate(notebook.cells)
        if cell.metadata.get("nbgrader", {}).get("grade_id") == SETUP_GRADE_ID
    )
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(wheel, folder)
        client = _make_notebook_client(notebook, folder)
        with client.setup_kernel(env=dict(environment)):
            started = time.perf_counter()
            client.execute_cell(cell, index)
            seconds = time.perf_counter() - started
    return seconds, [f"setup: {_shorten_output(output)}" for output in cell.outputs if output.get("name") != "stdout"]


def run_lesson(lesson: str, environment: Mapping[str, str]) -> Outcome:
    """Run a lesson's solution from top to bottom, alone in an empty folder, and look at all that it shows."""
    notebook = nbformat.read(ROOT / "solutions" / f"{lesson}.ipynb", as_version=4)
    outcome, started = Outcome(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        client = _make_notebook_client(notebook, folder)
        with client.setup_kernel(env=dict(environment)):
            for index, cell in enumerate(notebook.cells):
                if cell.cell_type == "code":
                    began = time.perf_counter()
                    client.execute_cell(cell, index)
                    outcome.cells += 1
                    check_cell_outputs(cell, outcome, time.perf_counter() - began >= SECONDS)
    outcome.seconds = round(time.perf_counter() - started, 1)
    return outcome


def _make_notebook_client(notebook: nbformat.NotebookNode, folder: str) -> NotebookClient:
    resources = {"metadata": {"path": folder}}
    options: dict[str, Any] = {"timeout": SECONDS, "interrupt_on_timeout": True, "allow_errors": True}
    return NotebookClient(notebook, kernel_name="colab", resources=resources, **options)


def check_cell_outputs(cell: nbformat.NotebookNode, outcome: Outcome, stopped: bool = False) -> None:
    """Count what a cell that has run shows, and note what it does not show and should.

    Args:
        cell: with its outputs.
        outcome: of its lesson.
        stopped: it took too long and was interrupted; an experiment may, and those that need it fail then.
    """
    failed = next((output for output in cell.outputs if output.output_type == "error"), None)
    if EXPERIMENT_TAG in cell.metadata.get("tags", []) and (stopped or (failed and outcome.left_out)):
        outcome.left_out.append(cell.id)
        return
    problems = [f"{failed.ename}: {failed.evalue}"] if failed else []
    problems += ["stopped: it took too long"] if stopped else []
    if not problems:
        problems = [*_check_pictures(cell, outcome), *_check_reports(cell, outcome)]
        errors = [output.text for output in cell.outputs if output.get("name") == "stderr"]
        problems += [f"on stderr: {' '.join(text.split())[:200]}" for text in errors]
    outcome.problems += [f"{cell.id}: {problem}" for problem in problems]


def _check_pictures(cell: nbformat.NotebookNode, outcome: Outcome) -> list[str]:
    shown = [output.data for output in cell.outputs if "data" in output]
    found = [data["image/png"] for data in shown if "image/png" in data]
    found += [picture for data in shown for picture in IN_HTML.findall(data.get("text/html", ""))]
    pictures = [base64.b64decode(each) for each in found]
    controls = sum(WIDGET_VIEW in data for data in shown)
    outcome.controls += controls
    outcome.pictures += len(pictures)
    problems = ["a blank picture" for picture in pictures if is_blank(picture)]
    texts = [data["text/plain"] for data in shown if "image/png" not in data and "text/plain" in data]
    problems += [f"words in place of a picture: {text[:60]}" for text in texts if FIGURE_AS_TEXT.match(text)]
    if DRAWS.search(cell.source) and not pictures:
        problems.append("no picture, and it draws one")
    if MOVES.search(cell.source) and not controls:
        problems.append("no controls, and it has some")
    return problems


def is_blank(picture: bytes) -> bool:
    """Say whether a PNG has nothing on it but its ground."""
    with Image.open(io.BytesIO(picture)) as image:
        pixels = np.asarray(image.convert("RGB"))
    return bool((pixels == pixels[0, 0]).all())


def _check_reports(cell: nbformat.NotebookNode, outcome: Outcome) -> list[str]:
    problems = []
    reports = [output.data for output in cell.outputs if REPORT_MIME in output.get("data", {})]
    for data in reports:
        html = data.get("text/html", "")
        outcome.reports += 1
        outcome.mistakes_named += Part.CAUSE in html
        if "<section" not in html:
            problems.append("a report without HTML")
    if cell.source.split("\n")[-1].startswith("check(") and not reports:
        problems.append("a check without a report")
    if cell.metadata.get("nbgrader", {}).get("grade") and not parse_exercise_and_file_name(cell.source):
        worth = float(cell.metadata.nbgrader.points)
        if [float(data["text/plain"]) for data in reports] != [worth]:
            problems.append(f"earns {[data['text/plain'] for data in reports]} of {worth:g} points")
    return problems


def _shorten_output(output: nbformat.NotebookNode) -> str:
    return " ".join(str(output.get("text") or output.get("evalue") or output.get("data")).split())[:300]


def compare_packages(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return what an installation added, and what it replaced or removed."""
    added = {name: version for name, version in after.items() if name not in before}
    replaced = [
        f"{name} {version} → {after.get(name)}" for name, version in before.items() if after.get(name) != version
    ]
    return added, replaced


def run_on_colab_versions(lessons: Sequence[str], data: Path | None) -> dict[str, Any]:
    """Make the environment, install the wheel in it in both ways, run the lessons: all results."""
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        wheel = build_wheel(ROOT, home)
        python = make_environment(home / "env")
        before = list_packages(python)
        setup: dict[str, Any] = {}
        problems = []
        for installer in ("pip", "uv"):
            environment = make_kernel_environment(python, home, data, installer == "uv")
            run_uv("pip", "uninstall", "--quiet", "--python", python, "vit-course", "torchinfo", check=False)
            seconds, wrong = run_setup(wheel, lessons[0], environment)
            added, replaced = compare_packages(before, list_packages(python))
            problems += [f"{installer}: {each}" for each in (*wrong, *(f"replaced {each}" for each in replaced))]
            setup[installer] = {"seconds": round(seconds, 1), "installed": added}
            console.print(f"setup by {installer}: {seconds:.1f} s; installed: {', '.join(added)}")
        outcomes = {}
        for lesson in lessons:
            outcomes[lesson] = run_lesson(lesson, environment)
            console.print(
                f"{lesson}: {outcomes[lesson].seconds:.0f} s", *outcomes[lesson].problems, sep="\n  ", markup=False
            )
        _, replaced = compare_packages(before, list_packages(python))
        problems += [f"the lessons replaced {each}" for each in replaced]
        version = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
    versions = {"python": version} | {name: before[name] for name in sorted(before) if name in SHOWN}
    return {
        "machine": describe_machine("cpu")
        | {"torch": before["torch"], "data": "cifar10.npz" if data else "what the lessons bring along"},
        "dependencies": compute_dependencies_digest(),
        "versions": versions,
        "beside_colab": sorted(set(before) - {name.lower().replace("_", "-") for name in read_colab_versions()}),
        "setup": setup,
        "lessons": {lesson: asdict(outcome) for lesson, outcome in outcomes.items()},
        "problems": problems,
    }


SHOWN = (
    "torch",
    "torchvision",
    "numpy",
    "matplotlib",
    "pillow",
    "ipython",
    "ipykernel",
    "ipywidgets",
    "matplotlib-inline",
)


def make_results_table(results: Mapping[str, Any]) -> Table:
    """A row for each lesson."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    columns = (
        "lesson",
        "seconds",
        "cells",
        "pictures",
        "controls",
        "reports",
        "mistakes named",
        "left out",
        "problems",
    )
    for column in columns:
        table.add_column(column, justify="left" if column == "lesson" else "right", no_wrap=column == "lesson")
    for lesson, row in results["lessons"].items():
        counts = [row[each] for each in ("cells", "pictures", "controls", "reports", "mistakes_named")]
        counts += [len(row["left_out"]), len(row["problems"])]
        table.add_row(lesson, f"{row['seconds']:.0f}", *map(str, counts))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    lessons = sorted(path.stem for path in (ROOT / "solutions").glob("*.ipynb"))
    parser.add_argument("--lesson", choices=lessons, help="this one alone, without writing results")
    parser.add_argument("--data", type=Path, help="a folder that holds cifar10.npz")
    options = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    try:
        results = run_on_colab_versions(
            [options.lesson] if options.lesson else lessons, options.data and options.data.resolve()
        )
    except ReleaseError as error:
        sys.exit(str(error))
    console.print(make_results_table(results))
    if not options.lesson:
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    problems = [*results["problems"]]
    problems += [each for row in results["lessons"].values() for each in row["problems"]]
    for problem in problems:
        console.print(problem, markup=False)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
