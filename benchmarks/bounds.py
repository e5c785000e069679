"""Both ends of the versions that pyproject.toml allows for grading: do they grade?

    python benchmarks/bounds.py    # or make bounds; some minutes

uv makes an environment of the lowest versions, and one of constraints.txt; what a student needs, PyTorch above all, is
in both as constraints.txt has it. Each grades a notebook by `vit-course grade`, and a class of four by nbgrader, from
the release to the feedback. Writes results/bounds.json, with which a test compares the bounds.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from colab import ROOT, list_packages, run_uv
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from rich.console import Console

PINS, RESULTS = ROOT / "constraints.txt", Path(__file__).parent / "results" / "bounds.json"
# run in the environment that is tried, in a new folder; says who got how many points
GRADE = """
import json, subprocess, sys
from pathlib import Path
from exercise_kit.nbgrader.class_folder import new_class
from exercise_kit.nbgrader.demo_class import grade_demo_class
from vit_course.demo import LESSON, make_students

if __name__ == "__main__":
    root = Path(sys.argv[1])
    notebook = root / "solutions" / f"{LESSON}.ipynb"
    command = [sys.executable, "-m", "vit_course", "grade", str(notebook), "--json", "results.json"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (alone,) = json.loads(Path("results.json").read_text())["submissions"]
    folder = new_class(Path("class"), root).path
    graded = grade_demo_class(folder, LESSON, make_students, lambda words: print(words, file=sys.stderr))
    pages = {each.student: each.score for each in graded if each.feedback.exists()}
    print(json.dumps({"grade": alone["score"], "nbgrader": pages}))
"""


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read_requirements() -> dict[str, Requirement]:
    """Return what the extra for grading asks for on every Python, by name."""
    found = map(Requirement, PROJECT["optional-dependencies"]["grading"])
    return {canonicalize_name(each.name): each for each in found if each.marker is None}


def read_pinned_versions() -> dict[str, str]:
    """The versions of constraints.txt, by name."""
    lines = (each for each in PINS.read_text(encoding="utf-8").splitlines() if not each.startswith("#"))
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}


def list_uv_options(lowest: bool, home: Path) -> list[object]:
    """Return what uv is told for one end."""
    if not lowest:
        return ["--constraint", PINS]
    others, names = home / "others.txt", [canonicalize_name(Requirement(each).name) for each in PROJECT["dependencies"]]
    others.write_text("".join(f"{name}=={read_pinned_versions()[name]}\n" for name in names))
    return ["--resolution", "lowest-direct", "--constraint", others]


def grade_in_environment(lowest: bool) -> dict[str, Any]:
    """Make one environment and grade in it: the versions, and the points of the notebook and of the class."""
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        python = home / "env" / "bin" / "python"
        run_uv("venv", "--quiet", "--python", sys.executable, home / "env")
        run_uv(
            "pip",
            "install",
            "--quiet",
            "--python",
            python,
            *list_uv_options(lowest, home),
            "--editable",
            f"{ROOT}[grading]",
        )
        (home / "grade_in_it.py").write_text(GRADE)
        done = subprocess.run(
            [python, "grade_in_it.py", ROOT], cwd=home, stdout=subprocess.PIPE, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"the {'lowest' if lowest else 'highest'} versions grade nothing")
        versions = {canonicalize_name(name): version for name, version in list_packages(python).items()}
    return {
        "versions": {name: versions[name] for name in read_requirements()},
        **json.loads(done.stdout.splitlines()[-1]),
    }


def main() -> None:
    results = {end: grade_in_environment(end == "lowest") for end in ("lowest", "highest")}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    Console().print_json(data=results)


if __name__ == "__main__":
    main()
