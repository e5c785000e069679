"""The command line: what it prints, and how it says no."""

import json

import pytest
from typer.testing import CliRunner

from vit_course.cli import app

runner = CliRunner()


def test_misconceptions_as_json_hold_every_field():
    result = runner.invoke(app, ["misconceptions", "--json", "-"])
    assert result.exit_code == 0
    entries = json.loads(result.stdout)
    assert {"exercise", "lesson", "name", "explanation", "question", "section"} == set(entries[0])
    assert ("patchify", "column order") in {(entry["exercise"], entry["name"]) for entry in entries}


def test_misconceptions_are_written_to_a_file(tmp_path):
    target = tmp_path / "mistakes.json"
    assert runner.invoke(app, ["misconceptions", "--json", str(target)]).exit_code == 0
    assert json.loads(target.read_text())


def test_misconceptions_as_a_table():
    result = runner.invoke(app, ["misconceptions"])
    assert "column order" in result.stdout


def test_new_class_refuses_a_folder_in_use(tmp_path):
    (tmp_path / "grades.csv").write_text("precious")
    result = runner.invoke(app, ["new-class", str(tmp_path)])
    assert result.exit_code == 1
    assert "not empty" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["grades.csv"]


def test_build_elsewhere_says_what_is_missing(tmp_path):
    result = runner.invoke(app, ["build", "--root", str(tmp_path)])
    assert result.exit_code == 1
    assert "Traceback" not in result.stderr
    assert str(tmp_path) in result.stderr.replace("\n", "")


def test_demo_does_not_clear_a_folder_of_somebody_else(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    result = runner.invoke(app, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "--out" in result.stderr
    assert (tmp_path / "thesis.tex").read_text() == "precious"


@pytest.mark.parametrize("arguments", [["nonsense"], ["new-class"], ["build", "--nonsense"]])
def test_wrong_usage_exits_with_2(arguments):
    assert runner.invoke(app, arguments).exit_code == 2
