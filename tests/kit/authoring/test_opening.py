"""The setup cell, run in IPython: the course installed, in a clone, missing; Python or torch too old."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from exercise_kit.authoring.notebook import FILE, HEIGHT, WIDTH, setup_source

ADDRESS = "https://github.com/someone/some_course"
RUN = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.colors = "NoColor"
asked = []
shell.register_magic_function(asked.append, "line", "pip")
prelude, cell = json.loads(sys.stdin.read())
exec(prelude)
result = shell.run_cell(cell)
print(json.dumps({"done": result.success, "asked": asked, "check": str(shell.user_ns.get("check"))}))
"""
# as on a machine where the course is not installed
FORGET = """
from pathlib import Path
sys.meta_path = [finder for finder in sys.meta_path if "editable" not in repr(finder)]
sys.path = [entry for entry in sys.path if not Path(entry, "vit_course").is_dir()]
sys.modules = {name: module for name, module in sys.modules.items() if not name.startswith("vit_course")}
"""


def run_setup(folder, prelude=""):
    """What the cell prints, how it ended, and what it prints to stderr."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["IPYTHONDIR"] = str(folder)
    finished = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN],
        input=json.dumps([prelude, setup_source(ADDRESS)]),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    *shown, outcome = finished.stdout.strip().splitlines()
    return "\n".join(shown).strip(), json.loads(outcome), finished.stderr


def test_where_the_course_is_installed_the_cell_is_silent(tmp_path):
    shown, outcome, errors = run_setup(tmp_path)
    assert (shown, errors) == ("", "")
    assert outcome["done"]
    assert outcome["asked"] == []
    assert "check" in outcome["check"]


def test_in_a_clone_the_package_is_found_one_folder_up(tmp_path):
    package, notebooks = tmp_path / "vit_course", tmp_path / "notebooks"
    package.mkdir()
    notebooks.mkdir()
    (package / "__init__.py").write_text("check = 'from the clone'\n", encoding="utf-8")
    shown, outcome, errors = run_setup(notebooks, FORGET)
    assert (shown, errors) == ("", "")
    assert outcome == {"done": True, "asked": [], "check": "from the clone"}


def test_where_it_is_missing_pip_is_evaluated_once_and_a_failure_is_one_sentence(tmp_path):
    shown, outcome, errors = run_setup(tmp_path, FORGET)
    assert outcome["asked"] == [f'install --quiet "vit-course @ git+{ADDRESS}"']
    assert shown == "The course's package is not ready: No module named 'vit_course'"
    assert not outcome["done"]
    assert errors == ""


def test_an_old_python_is_reported_in_words_before_anything_is_installed(tmp_path):
    prelude = FORGET + "sys.version_info = (3, 10, 4)\nsys.version = '3.10.4 (main)'\n"
    shown, outcome, errors = run_setup(tmp_path, prelude)
    assert shown == (
        "This course needs Python 3.11 or newer, and this is 3.10.4. "
        "On Colab: Runtime > Change runtime type. Elsewhere: Kernel > Change Kernel."
    )
    assert outcome["asked"] == []
    assert errors == ""


def test_an_old_torch_is_reported_in_words(tmp_path):
    shown, outcome, errors = run_setup(tmp_path, "import torch\ntorch.__version__ = '2.8.0'\n")
    assert shown.startswith("The course's package is not ready: vit_course needs PyTorch 2.9 or newer; this is 2.8.0.")
    assert "Traceback" not in shown
    assert not outcome["done"]
    assert errors == ""


def test_the_cell_is_short():
    source = setup_source(ADDRESS)
    assert len([line for line in source.splitlines() if line.strip()]) <= 18
    assert max(map(len, source.splitlines())) <= 110


def test_the_badge_is_a_picture_of_its_stated_size():
    content = FILE.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert (int.from_bytes(content[16:20]), int.from_bytes(content[20:24])) == (WIDTH, HEIGHT)


@pytest.mark.parametrize("word", ["colab", "torch"])
def test_nothing_but_the_course_is_installed(word):
    installs = [line for line in setup_source(ADDRESS).splitlines() if "%pip" in line]
    assert len(installs) == 1
    assert word not in installs[0]
