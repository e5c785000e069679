"""The setup cell in IPython: the course installed, in a clone, missing, in a file; old Python or torch; Colab."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from exercise_kit.authoring.addresses import read_addresses
from exercise_kit.authoring.notebook import make_setup_cell_source
from tests.bare_python import isolate_environment, make_bare_python
from tests.waiting import GIVE_UP

ROOT = Path(__file__).parents[3]
ADDRESS = "https://github.com/someone/some_course"
RUN = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.colors = "NoColor"
prelude, cell = json.loads(sys.stdin.read())
exec(prelude)
result = shell.run_cell(cell)
print(json.dumps({"done": result.success, "check": str(shell.user_ns.get("check"))}))
"""
# as on a machine where the course is not installed
FORGET = """
from pathlib import Path
sys.meta_path = [finder for finder in sys.meta_path if "editable" not in repr(finder)]
sys.path = [entry for entry in sys.path if not Path(entry, "vit_course").is_dir()]
sys.modules = {name: module for name, module in sys.modules.items() if not name.startswith("vit_course")}
"""
INSTALLING = "Installing the course's package. This may take half a minute."
ON_COLAB = "import types\nsys.modules['google.colab'] = types.ModuleType('google.colab')\n"
NO_INSTALLER = """
import subprocess
def run(*command, **settings):
    raise AssertionError(f"something is installed: {command}")
subprocess.run = run
"""


def run_setup_cell(folder, prelude="", python=sys.executable):
    """Return what the cell prints, how it ended, and what it prints to stderr."""
    finished = subprocess.run(
        [python, "-W", "ignore", "-c", RUN],
        input=json.dumps([prelude, make_setup_cell_source(ADDRESS)]),
        cwd=folder,
        env=isolate_environment(dict(os.environ)) | {"IPYTHONDIR": str(folder / ".ipython")},
        capture_output=True,
        text=True,
        check=True,
        timeout=GIVE_UP,
    )
    *shown, outcome = finished.stdout.strip().splitlines()
    return "\n".join(shown).strip(), json.loads(outcome), finished.stderr


def write_wheel(folder, name="vit_course-0.9.0-py3-none-any.whl", says="from the file"):
    """A wheel of the course that needs a package which is nowhere."""
    metadata = "Metadata-Version: 2.1\nName: vit-course\nVersion: 0.9.0\nRequires-Dist: nowhere-to-be-found>=1\n"
    with zipfile.ZipFile(folder / name, "w") as wheel:
        wheel.writestr("vit_course/__init__.py", f"borrow = check = reset = {says!r}\n")
        wheel.writestr("vit_course-0.9.0.dist-info/METADATA", metadata)
        wheel.writestr(
            "vit_course-0.9.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("vit_course-0.9.0.dist-info/RECORD", "")
    return folder / name


@pytest.fixture(scope="module")
def bare_interpreter(tmp_path_factory):
    return make_bare_python(tmp_path_factory.mktemp("bare") / "env")


def test_where_the_course_is_installed_the_cell_is_silent(tmp_path):
    shown, outcome, errors = run_setup_cell(tmp_path, NO_INSTALLER)
    assert (shown, errors) == ("", "")
    assert outcome["done"]
    assert "check" in outcome["check"]


def test_in_a_clone_the_package_is_found_one_folder_up(tmp_path):
    package, notebooks = tmp_path / "vit_course", tmp_path / "notebooks"
    package.mkdir()
    notebooks.mkdir()
    (package / "__init__.py").write_text("borrow = check = reset = 'from the clone'\n", encoding="utf-8")
    shown, outcome, errors = run_setup_cell(notebooks, FORGET + NO_INSTALLER)
    assert (shown, errors) == ("", "")
    assert outcome == {"done": True, "check": "from the clone"}


@pytest.mark.parametrize(
    ("content", "said", "end"),
    [
        (None, "vit-course", "beside this notebook and run this cell again."),
        (b"half a download", "vit_course-0.9.0-py3-none-any.whl", ""),
    ],
    ids=["no network", "a file that cannot be installed"],
)
def test_what_cannot_be_installed_is_named_and_without_a_network_what_to_do(
    tmp_path, bare_interpreter, content, said, end
):
    if content:
        (tmp_path / "vit_course-0.9.0-py3-none-any.whl").write_bytes(content)
    shown, outcome, errors = run_setup_cell(tmp_path, python=bare_interpreter)
    installing, _, shown = shown.partition("\n")
    assert installing == INSTALLING
    assert said in shown
    assert shown.endswith(end)
    assert "Traceback" not in shown
    assert not outcome["done"]
    assert errors == ""


@pytest.mark.parametrize("place", [".", ".."], ids=["beside the notebook", "one folder up"])
def test_a_file_of_the_course_is_found_and_installed_without_a_network(tmp_path, place):
    folder = tmp_path / "my notebooks"
    folder.mkdir()
    old, new = write_wheel(folder / place, "vit_course-0.10.0-py3-none-any.whl"), write_wheel(folder / place)
    old.write_bytes(b"older, and no wheel")
    os.utime(old, (0, 0))
    shown, outcome, errors = run_setup_cell(folder, python=make_bare_python(tmp_path / "env"))
    assert (shown, errors) == (INSTALLING, "")
    assert outcome == {"done": True, "check": "from the file"}
    assert new.is_file()


def test_on_colab_it_tells_how_work_is_kept(tmp_path):
    shown, outcome, errors = run_setup_cell(tmp_path, ON_COLAB)
    assert [line.partition(":")[0] for line in shown.splitlines()] == [
        "Colab deletes its files when you leave. Keep this notebook",
        "To keep what keep(...) writes, too, mount your Drive",
    ]
    assert outcome["done"]
    assert errors == ""


def test_with_a_drive_that_is_mounted_nothing_is_asked_for(tmp_path):
    mounted = "import os\nisdir = os.path.isdir\nos.path.isdir = lambda path: 'MyDrive' in str(path) or isdir(path)\n"
    shown, _, _ = run_setup_cell(tmp_path, ON_COLAB + mounted)
    assert shown == "Colab deletes its files when you leave. Keep this notebook: File > Save a copy in Drive."


@pytest.mark.parametrize(
    ("prelude", "begin", "also"),
    [
        (
            f"{NO_INSTALLER}sys.version_info = (3, 10, 4)\n",
            "vit_course needs Python 3.11 or newer; this is Python 3.10.",
            "On Colab choose Runtime > Change runtime type",
        ),
        ("import torch\ntorch.__version__ = '2.8.0'\n", "vit_course needs PyTorch 2.9 or newer; this is 2.8.0.", ""),
    ],
    ids=["Python", "torch"],
)
def test_an_old_version_is_reported_in_words(tmp_path, prelude, begin, also):
    shown, outcome, errors = run_setup_cell(tmp_path, prelude)
    assert shown.startswith(begin)
    assert also in shown
    assert "Traceback" not in shown
    assert not outcome["done"]
    assert errors == ""


def test_the_cell_is_short_and_asks_for_nothing_but_the_course():
    source = make_setup_cell_source(read_addresses(ROOT).repository)
    assert len(source.splitlines()) <= 16
    assert max(map(len, source.splitlines())) <= 88
    assert source.startswith("# @title Setup")  # what Colab shows in the place of a form's code
    assert not [word for word in ("torch", "--upgrade") if word in source]
