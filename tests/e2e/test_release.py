"""What students get: a release holds no answer and no hidden check, loses nobody's work, and is enough to learn."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import zipfile
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from typer.testing import CliRunner

from exercise_kit.authoring import release as releasing
from exercise_kit.authoring.build import SOURCES
from exercise_kit.authoring.lesson import Role, read_lesson
from exercise_kit.authoring.lint import split_solution_regions
from exercise_kit.authoring.release import MARKER, ReleaseError, as_zip, release
from exercise_kit.engine.release_settings import ReleaseSettings, Route
from tests.bare_python import isolate_environment, make_bare_python
from tests.e2e.submissions import read_mark
from vit_course.cli import app

ROOT = Path(__file__).parents[2]
LESSON = "00_start"


@pytest.fixture(scope="module")
def built_release(tmp_path_factory):
    return release(tmp_path_factory.mktemp("release") / "for students", ROOT)


@pytest.fixture
def release_again(built_release, monkeypatch):
    """Releases the same course, with the wheel that is built."""
    wheel = next(built_release.path.glob("*.whl"))
    monkeypatch.setattr(releasing, "build_wheel", lambda root, folder, settings: wheel)
    return lambda directory: release(directory, ROOT)


def iterate_texts(folder):
    """Every text of a release by its name, those in the wheel too; of a notebook, all that its cells say."""
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as wheel:
                for name in wheel.namelist():
                    if Path(name).suffix not in (".safetensors", ".png", ".packed"):
                        yield name, wheel.read(name).decode()
        elif path.suffix == ".ipynb":
            yield path.name, "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
        else:
            yield path.name, path.read_text(encoding="utf-8")


def list_answers():
    """The lines of the exercises' answers, and the texts of questions' model answers, that stand nowhere else."""
    code, prose, given = set(), set(), set()
    for path in sorted((ROOT / SOURCES).glob("*.py")):
        for cell in read_lesson(ROOT, path).cells:
            split = split_solution_regions(cell.source)
            given.update(line.strip() for line in split.outside)
            if cell.role in (Role.EXERCISE, Role.QUESTION):
                lines = {line.strip() for line in split.inside if len(line.strip()) > 20}
                (code if cell.role is Role.EXERCISE else prose).update(lines)
    return code - given, prose - given


def read_functions(text):
    """Every function and class of a module, written anew, so that comments and spaces make no difference."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {ast.unparse(node) for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)}


def test_it_holds_what_its_readme_says_and_nothing_else(built_release):
    names = sorted(
        path.relative_to(built_release.path).as_posix() for path in built_release.path.rglob("*") if path.is_file()
    )
    notebooks = [f"notebooks/{path.name}" for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    wheel = next(built_release.path.glob("*.whl")).name
    beside = [each for each in names if each.startswith(("docs/", "benchmarks/results/", "figures/"))]
    files = [MARKER, "AGENTS.md", "LICENSE", "README.md", "cheat_sheet.html", wheel, *notebooks, *beside]
    assert names == sorted(files)
    readme, agents = ((built_release.path / name).read_text(encoding="utf-8") for name in ("README.md", "AGENTS.md"))
    assert all(f"`{name}`" in readme for name in ("AGENTS.md", "LICENSE", "cheat_sheet.html", "notebooks/", wheel))
    assert "no solutions here, no hidden checks" in readme
    assert all('`borrow("NAME")` gives you the course\'s version' in each for each in (readme, agents))
    assert "$" not in readme + agents


def test_its_wheel_holds_the_two_packages_with_packed_programs_and_no_test(built_release):
    with zipfile.ZipFile(next(built_release.path.glob("*.whl"))) as wheel:
        paths = [Path(name) for name in wheel.namelist()]
    assert {path.parts[0].split("-")[0] for path in paths} == {"vit_course", "exercise_kit"}
    places = {"hidden", "solutions", "staff", "tests", "graded.py"}
    assert not [path for path in paths if path.suffix == ".ipynb" or places & set(path.parts)]
    assert not [path for path in paths if re.search(r"(^|_)tests?(_|\.)", path.name) and path.suffix == ".py"]
    plain = ("program.py", "variants.py")  # of an exercise
    assert not [path for path in paths if path.name in plain and path.parts[0] == "vit_course"]
    assert [path for path in paths if path.match("exercise_kit/templates/*")]
    programs = list(ROOT.glob("vit_course/exercises/*/*/program.py"))
    assert [path.name for path in paths].count("program.packed") == len(programs)


def test_it_holds_what_its_notebooks_and_notes_point_to(built_release):
    names = {path.relative_to(built_release.path).as_posix() for path in built_release.path.rglob("*")}
    text = "\n".join(path.read_text("utf-8") for path in (built_release.path / "notebooks").glob("*.ipynb"))
    results = set(re.findall(r"benchmarks/results/[\w/]+\.json", text))
    notes = {f"docs/site/notes/{each}.md" for each in re.findall(r"/notes/([\w-]+)\.html", text)}
    assert len(results) > 5
    assert len(notes) > 20
    assert results | notes <= names
    for note in map(built_release.path.joinpath, notes):
        links = re.findall(r"\]\((\.[^)\s#]+)", note.read_text("utf-8"))
        assert [link for link in links if not (note.parent / link).exists()] == []


def test_no_answer_is_in_the_notebooks_and_pages(built_release):
    code, prose = list_answers()
    assert len(code) > 200
    assert len(prose) > 50
    for name, text in iterate_texts(built_release.path):
        if name.endswith((".ipynb", ".md")):
            assert not (code | prose) & {line.strip() for line in text.split("\n")}, name
            assert "BEGIN SOLUTION" not in text, name
            assert "**Rubric.**" not in text, name


@pytest.mark.proof
def test_no_model_answer_hidden_check_or_right_variant_is_in_the_wheel(built_release):
    _, prose = list_answers()
    course = ROOT / "vit_course"
    hidden = {
        function
        for path in [*(course / "exercises").rglob("graded.py"), *(course / "staff").glob("*.py")]
        for function in read_functions(path.read_text(encoding="utf-8"))
        if function.count("\n") > 1
    }
    assert len(hidden) > 50
    for name, text in iterate_texts(built_release.path):
        assert not prose & {line.strip() for line in text.split("\n")}, name
        if name.endswith(".py"):
            assert not hidden & read_functions(text), name


@pytest.mark.proof
def test_a_lesson_runs_from_it_in_an_empty_folder_with_nothing_else(built_release, tmp_path, monkeypatch):
    python = make_bare_python(tmp_path / "env")
    spec = tmp_path / "kernels" / "students"
    spec.mkdir(parents=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "bare", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    folder = tmp_path / "empty"
    folder.mkdir()
    for name in (next(built_release.path.glob("*.whl")).name, f"notebooks/{LESSON}.ipynb"):
        (folder / Path(name).name).write_bytes((built_release.path / name).read_bytes())
    notebook = nbformat.read(folder / f"{LESSON}.ipynb", as_version=4)
    solution = nbformat.read(ROOT / "solutions" / f"{LESSON}.ipynb", as_version=4)
    written = {cell.id: cell.source for cell in solution.cells}
    for cell in notebook.cells:
        if read_mark(cell).get("solution") and cell.cell_type == "code":
            cell.source = written[cell.id]
    notebook.cells.append(nbformat.v4.new_code_cell("import vit_course\nvit_course.__file__"))
    client = NotebookClient(notebook, kernel_name="students", resources={"metadata": {"path": str(folder)}})
    client.execute(env=isolate_environment(dict(os.environ)))
    graded = [cell for cell in notebook.cells if cell.cell_type == "code" and "points" in read_mark(cell)]
    earned = [float(cell.outputs[0].data["text/plain"]) for cell in graded]
    assert earned == [cell.metadata.nbgrader.points for cell in graded]
    assert earned
    assert str(tmp_path / "env") in notebook.cells[-1].outputs[0].data["text/plain"]


def test_a_folder_in_use_is_refused_and_left_alone(tmp_path):
    mine = tmp_path / "thesis.txt"
    mine.write_text("mine", encoding="utf-8")
    done = CliRunner().invoke(app, ["release", str(tmp_path)])
    assert done.exit_code == 1
    assert "is not empty and no earlier release; name a new folder" in done.output
    assert "Traceback" not in done.output
    with pytest.raises(ReleaseError, match="is not a folder"):
        release(mine, ROOT)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    assert mine.read_text(encoding="utf-8") == "mine"


def test_a_release_made_again_loses_nothing_of_anyones(tmp_path, release_again):
    first = release_again(tmp_path / "out")
    assert release_again(first.path) == first
    marker = first.path / MARKER
    digests = json.loads(marker.read_text(encoding="utf-8"))
    of_old, changed = first.path / "old.txt", first.path / "gone but changed.txt"
    of_old.write_text("released once", encoding="utf-8")
    changed.write_text("released once, then changed", encoding="utf-8")
    digests |= {
        "old.txt": hashlib.sha256(b"released once").hexdigest(),
        changed.name: "0" * 64,
        "../outside.txt": "0" * 64,
    }
    marker.write_text(json.dumps(digests), encoding="utf-8")
    (tmp_path / "outside.txt").write_text("", encoding="utf-8")
    (first.path / "my_vit.py").write_text("mine", encoding="utf-8")
    notebook = first.path / "notebooks" / f"{LESSON}.ipynb"
    released = notebook.read_bytes()
    notebook.write_text("worked in", encoding="utf-8")
    second = release_again(first.path)
    assert [path.name for path in second.put_aside] == [f"{LESSON}.before.ipynb"]
    assert second.put_aside[0].read_text(encoding="utf-8") == "worked in"
    assert notebook.read_bytes() == released
    assert (first.path / "my_vit.py").read_text(encoding="utf-8") == "mine"
    assert not of_old.exists()
    assert changed.exists()
    assert (tmp_path / "outside.txt").exists()
    notebook.write_text("worked in once more", encoding="utf-8")
    assert [path.name for path in release_again(first.path).put_aside] == [f"{LESSON}.before-1.ipynb"]


def test_one_file_of_it_has_the_same_bytes_each_time_and_replaces_nothing_else(tmp_path, release_again):
    made = release_again(tmp_path / "out")
    first = as_zip(made).read_bytes()
    assert as_zip(made).read_bytes() == first
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert {name.split("/")[0] for name in archive.namelist()} == {"out"}
        assert len(archive.namelist()) == len(made.files)
    (tmp_path / "out.zip").write_bytes(b"somebody's")
    with pytest.raises(ReleaseError, match="is no zip of a release"):
        as_zip(made)


def test_a_release_of_the_core_holds_its_lessons_and_its_settings(tmp_path):
    made = release(tmp_path / "core", ROOT, ReleaseSettings(Route.CORE, borrow=False))
    names = {path.stem for path in made.path.glob("notebooks/*.ipynb")}
    assert names == {"00_start", "01_patchify", "02_positions", "03_attention", "04_block", "05_vit", "07_experiments"}
    with zipfile.ZipFile(next(made.path.glob("*.whl"))) as wheel:
        assert json.loads(wheel.read("vit_course/exercises/release.json")) == {"route": "core", "borrow": False}
    assert "`borrow` is switched off in this release" in (made.path / "README.md").read_text(encoding="utf-8")
    assert "06_training" not in (made.path / "README.md").read_text(encoding="utf-8")
