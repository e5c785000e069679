"""Attacks by what is handed in beside, or in place of, a notebook: links, archives, giants, modules with our names."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Notebook = dict[str, Any]


@dataclass(frozen=True)
class FolderAttack:
    """A hostile folder.

    Attributes: ``name``, ``aim``, ``build`` (fills the student's folder; gets it and the released notebook with a
    wrong answer in it) and ``graded`` (whether the notebook in it can be graded at all; it deserves 0 points).
    """

    name: str
    aim: str
    build: Callable[[Path, Notebook], None]
    graded: bool


def _write_notebook(folder: Path, notebook: Notebook) -> Path:
    path = folder / "01_patchify.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def put_modules_beside(folder: Path, notebook: Notebook) -> None:
    _write_notebook(folder, notebook)
    cheat = (
        "def patches_of(*_): return 8.0\npatchify = check = patches_of\nimport os; os.system('touch /tmp/attacked')\n"
    )
    names = ("torch", "numpy", "sitecustomize", "usercustomize", "conftest", "pytest", "json", "vit_course", "worker")
    for name in names:
        (folder / f"{name}.py").write_text(cheat)
    package = folder / "vit_course"
    package.mkdir()
    for name in ("__init__", "patches", "checks", "grading"):
        (package / f"{name}.py").write_text(cheat)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p conftest\n")
    (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = '-p conftest'\n")
    (folder / "nbgrader_config.py").write_text("import os; os.system('touch /tmp/attacked')\n")


def add_own_hidden_checks(folder: Path, notebook: Notebook) -> None:
    _write_notebook(folder, notebook)
    for name in ("hidden", "tests/hidden", ".vit_course/results"):
        (folder / name).mkdir(parents=True)
    test = 'import pytest\n@pytest.mark.exercise("patchify", points=8)\ndef test_fine(student):\n    """Fine."""\n'
    (folder / "hidden" / "test_patchify.py").write_text(test)
    (folder / "tests" / "hidden" / "test_patchify.py").write_text(test)
    (folder / ".vit_course" / "secret").write_text("0" * 64)


def add_own_class(folder: Path, notebook: Notebook) -> None:
    _write_notebook(folder, notebook)
    plant_forged_class_files(folder)


def plant_forged_class_files(folder: Path) -> None:
    """A class folder's files: a configuration, checks that all pass, a secret, results."""
    (folder / "nbgrader_config.py").write_text("open('/tmp/attacked-config', 'w')\n")
    hidden, kept = folder / "hidden", folder / ".vit_course"
    for made in (hidden, kept / "results"):
        made.mkdir(parents=True)
    (hidden / "conftest.py").write_text("open('/tmp/attacked-conftest', 'w')\n")
    names = ("patchify", "unpatchify", "fix_patchify", "PatchEmbedding", "conv_from_linear")
    for name in names:
        mark = f'import pytest\n@pytest.mark.exercise("{name}", points=8)\n'
        (hidden / f"test_{name}.py").write_text(f'{mark}def test_fine(student):\n    """Fine."""\n')
    (kept / "secret").write_text("0" * 64)


def link_to_other_files(folder: Path, notebook: Notebook) -> None:
    _write_notebook(folder, notebook)
    root = folder.parents[2]
    (folder / "answers.txt").symlink_to(root / "source" / "01_patchify" / "01_patchify.ipynb")
    (folder / "grades.txt").symlink_to(root / "gradebook.db")
    (folder / "secret.txt").symlink_to(root / ".vit_course" / "secret")
    (folder / "everything").symlink_to(root)


def link_to_a_device(folder: Path, notebook: Notebook) -> None:
    (folder / "01_patchify.ipynb").symlink_to("/dev/zero")


def make_folder_named_notebook(folder: Path, notebook: Notebook) -> None:
    (folder / "01_patchify.ipynb").mkdir()


def write_zip_bomb(folder: Path, notebook: Notebook) -> None:
    with zipfile.ZipFile(folder / "01_patchify.ipynb", "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("../../../../attacked", "x")
        bundle.writestr("bomb", b"0" * (64 << 20))


def forge_metadata(folder: Path, notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if mark := cell["metadata"].get("nbgrader"):
            mark |= {"points": 1e9, "schema_version": 99, "locked": False, "grade": True}
            cell["metadata"] |= {"tags": ["experiment", '"><script>'], "manual_score": 8.0}
    notebook["metadata"] |= {
        "kernelspec": {"name": "bash", "display_name": "<script>", "language": "bash"},
        "widgets": {"application/vnd.jupyter.widget-state+json": {"state": "<script>"}},
        "vit_course": {"score": 8.0},
    }
    _write_notebook(folder, notebook)


def forge_outputs(folder: Path, notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            data = {"text/plain": "8.0", "text/html": "<script>document.title='attacked'</script>"}
            output = {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": data}
            cell["outputs"] = [output]
    _write_notebook(folder, notebook)


def add_scripts_to_markdown(folder: Path, notebook: Notebook) -> None:
    bad = "<script>document.title='attacked'</script><img src=x onerror=\"document.title='attacked'\">"
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown" and cell["metadata"].get("nbgrader", {}).get("solution"):
            cell["source"] = f"My answer {bad} [x](javascript:alert(1)) ![y](attachment:none.png)"
    notebook["cells"].append({"cell_type": "raw", "id": "raw", "metadata": {"format": "text/html"}, "source": bad})
    _write_notebook(folder, notebook)


FOLDER_ATTACKS = [
    FolderAttack(
        "modules beside", "modules called torch, conftest, vit_course lie beside it", put_modules_beside, True
    ),
    FolderAttack(
        "own hidden checks", "checks and a secret of the student's lie beside it", add_own_hidden_checks, True
    ),
    FolderAttack("own class", "the notebook lies in a class folder of the student's", add_own_class, True),
    FolderAttack("links", "links lead to the answers, the gradebook, the secret", link_to_other_files, True),
    FolderAttack("link to a device", "the notebook is a link to /dev/zero, which never ends", link_to_a_device, False),
    FolderAttack("folder named notebook", "the notebook is a folder", make_folder_named_notebook, False),
    FolderAttack("archive", "the notebook is a zip bomb with a path that climbs", write_zip_bomb, False),
    FolderAttack("forged metadata", "points, schema, kernel and widgets are forged", forge_metadata, True),
    FolderAttack("forged outputs", "every cell already shows full points and a script", forge_outputs, True),
    FolderAttack("live markdown", "the written answers hold scripts", add_scripts_to_markdown, True),
]
