"""The command line: what it prints, and how it says no."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from exercise_kit.authoring.build import BuildReport
from exercise_kit.cli.commands import add_commands
from vit_course.cli import app

runner = CliRunner()


def test_misconceptions_are_a_table_or_json_on_stdout_or_in_a_file(tmp_path):
    """What each entry holds is tested with the library."""
    assert "column order" in runner.invoke(app, ["misconceptions"]).stdout
    result, target = runner.invoke(app, ["misconceptions", "--json", "-"]), tmp_path / "mistakes.json"
    assert runner.invoke(app, ["misconceptions", "--json", str(target)]).exit_code == result.exit_code == 0
    assert json.loads(target.read_text()) == json.loads(result.stdout) != []


@pytest.mark.parametrize(
    "command", [["build"], ["build", "--check"], ["new-class", "class"], ["demo", "--out", "demo"]]
)
def test_a_root_without_lessons_is_reported_before_anything_is_written(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    result = runner.invoke(app, [*command, "--root", str(tmp_path / "no clone")])
    assert result.exit_code == 1
    assert (
        result.stderr == f"there is no folder {tmp_path}/no clone/solutions; name a clone of the course with --root\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["misconceptions", "--json"], ["demo", "--out"], ["new-class"]])
def test_a_place_that_cannot_be_written_is_reported_in_one_line(tmp_path, command):
    (tmp_path / "file").write_text("mine")
    result = runner.invoke(app, [*command, str(tmp_path / "file" / "inside")])
    assert result.exit_code == 1
    assert not isinstance(result.exception, OSError)
    assert result.stderr.count("\n") == 1
    assert f"{tmp_path}/file" in result.stderr


def test_new_class_tells_stale_lessons_and_commands_that_can_be_copied(tmp_path, monkeypatch):
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / "01_a.ipynb").write_text("{}")
    stale = BuildReport(stale=(Path("solutions/01_a.ipynb"),))
    monkeypatch.setattr("exercise_kit.authoring.build.build", lambda root, check, pages: stale)
    folder = tmp_path / "a [new] class with a name that is longer than any line of a terminal, which would break it"
    result = runner.invoke(app, ["new-class", str(folder), "--root", str(tmp_path)])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "Older than their sources: solutions/01_a.ipynb" in lines
    assert lines[-2:] == [f"  cd {shlex.quote(str(folder))}", "  nbgrader generate_assignment 01_a"]


@pytest.mark.parametrize(("stale", "orphaned"), [(("solutions/01_a.ipynb",), ()), ((), ("notebooks/09_old.ipynb",))])
def test_build_says_what_to_do_about_what_it_found(tmp_path, monkeypatch, stale, orphaned):
    (tmp_path / "solutions").mkdir()
    report = BuildReport(stale=stale, orphaned=orphaned)
    monkeypatch.setattr("exercise_kit.authoring.build.build", lambda root, check: report)
    result = runner.invoke(app, ["build", "--check", "--root", str(tmp_path)])
    assert result.exit_code == 1
    assert ("Run: vit-course build" in result.stderr) is bool(stale)
    assert ("Remove them" in result.stderr) is bool(orphaned)


def test_a_missing_package_is_named_with_the_extra_that_brings_it():
    code = "import sys; sys.modules['nbgrader'] = None; from vit_course.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "build"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    install = 'pip install "vit-course[grading]"'
    assert done.stderr == f"This command needs nbgrader, which is not installed. Install it with: {install}\n"


def test_demo_does_not_clear_a_folder_of_somebody_else(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    result = runner.invoke(app, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "--out" in result.stderr
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("thesis.tex", "precious")]


@pytest.fixture
def class_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "handed in"
    folder.mkdir()
    for name in ("bad 😀.ipynb", "also bad.ipynb"):
        (folder / name).write_text("{")
    (folder / "notes.txt").write_text("nothing")
    return folder


def test_grade_tells_what_it_cannot_grade_and_exits_1(class_folder, monkeypatch):
    monkeypatch.setattr("exercise_kit.progress_bar.SECONDS", 3600.0)  # however long it takes on a busy machine
    result = runner.invoke(app, ["grade", str(class_folder), "--no-sandbox"])
    assert result.exit_code == 1
    assert result.stdout.count("rejected") == 2
    assert "0 of 2 graded" in result.stdout
    assert "Not sandboxed" in result.stdout
    assert "not-sandboxed" in result.stdout
    assert result.stderr == "", "no progress bar in a pipe"


@pytest.mark.parametrize("target", ["-", "results.json"])
def test_grade_writes_one_json_object(class_folder, target, monkeypatch):
    monkeypatch.chdir(class_folder.parent)
    result = runner.invoke(app, ["grade", "handed in", "no.ipynb", "--no-sandbox", "--json", target])
    assert result.exit_code == 1
    report = json.loads(result.stdout if target == "-" else Path(target).read_text(encoding="utf-8"))
    assert report["version"] == 1
    assert [entry["path"] for entry in report["submissions"]] == [
        "handed in/also bad.ipynb",
        "handed in/bad 😀.ipynb",
        "no.ipynb",
    ]
    assert result.stderr.count("rejected") == 3
    assert [path.name for path in Path().iterdir() if path.name.endswith(".part")] == []


@pytest.mark.parametrize("options", [["--exercise", "nothing"], ["--jobs", "0"], ["--what"]])
def test_grade_says_no_to_what_there_is_not(class_folder, options):
    result = runner.invoke(app, ["grade", str(class_folder), "--no-sandbox", *options])
    assert result.exit_code == 2


@pytest.mark.parametrize("target", ["", "."])
def test_grade_asks_for_a_file_where_json_cannot_be(class_folder, target):
    result = runner.invoke(app, ["grade", str(class_folder), "--no-sandbox", "--json", target])
    assert result.exit_code == 2
    assert "is no file" in result.stderr


def test_grade_without_anything_to_grade_says_so(tmp_path, class_folder):
    (tmp_path / "empty").mkdir()
    result = runner.invoke(app, ["grade", str(tmp_path / "empty"), "--no-sandbox", "--json", "-"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["submissions"] == []
    assert "nothing to grade" in result.stderr


def test_grade_refuses_without_protections_and_names_the_remedy(class_folder, monkeypatch):
    from exercise_kit.worker import capabilities

    remedies = {"landlock": "use Linux 5.13 or newer"}
    missing = capabilities.SandboxCapabilities(landlock=0, seccomp=False, namespaces=False, missing=remedies)
    monkeypatch.setattr(capabilities, "probe_capabilities", lambda: missing)
    result = runner.invoke(app, ["grade", str(class_folder)])
    assert result.exit_code == 1
    assert "use Linux 5.13 or newer" in result.stderr
    assert "--no-sandbox" in result.stderr
    assert result.stdout == ""


@pytest.mark.proof
def test_grade_tells_of_a_scheduler_that_is_not_there(class_folder):
    result = runner.invoke(app, ["grade", str(class_folder), "--scheduler", "tcp://127.0.0.1:9", "--no-sandbox"])
    assert result.exit_code == 1
    assert "no scheduler at tcp://127.0.0.1:9" in result.stderr


def test_grade_shows_the_table_where_json_cannot_be_written(class_folder, tmp_path):
    (tmp_path / "file").touch()
    target = tmp_path / "file" / "results.json"
    result = runner.invoke(app, ["grade", str(class_folder), "--no-sandbox", "--json", str(target)])
    assert result.exit_code == 1
    assert f"cannot write {target}" in result.stderr
    assert "0 of 2 graded" in result.stdout


def test_another_course_gets_the_commands_of_the_kit_and_no_others() -> None:
    other = typer.Typer()
    add_commands(other)
    names = list(typer.main.get_command(other).commands)
    made = ["build", "new-class", "new-exercise", "release", "grade", "doctor", "simulate", "report", "export"]
    assert names == [*made, "roster", "similarity", "misconceptions", "progress"]
    ours = list(typer.main.get_command(app).commands)
    assert ours == [*names, "train", "evaluate", "recipes", "diagnose", "demo"]
