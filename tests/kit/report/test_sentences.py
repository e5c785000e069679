"""The command: a page is written whole or not at all, and every refusal is a sentence."""

import json
import os
import stat

import pytest
import typer
from typer.testing import CliRunner

from exercise_kit.cli.commands import report
from tests.kit.report.conftest import exercise, make_failed

app = typer.Typer()
app.command()(report)


def run(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.fixture
def graded(class_folder):
    class_folder.keep(class_folder.hand_in("ann"), exercise("patchify", make_failed(misconception="column order")))
    return class_folder.folder


def test_a_report_lands_in_the_class_folder(graded):
    done = run(graded)
    assert done.exit_code == 0
    assert "1 student handed in 1 notebook for 1 lesson; all are graded." in done.output
    assert f"The report: {graded / 'report.html'}" in done.output
    assert "column order" in (graded / "report.html").read_text("utf-8")
    assert not list(graded.glob(".*.part"))


def test_names_go_to_a_page_of_their_own(graded, tmp_path):
    names = tmp_path / "names.html"
    done = run(graded, "--out", tmp_path / "page.html", "--names", names, "--lesson", "01_patchify")
    assert done.exit_code == 0
    assert ">ann<" in names.read_text("utf-8")
    assert ">ann<" not in (tmp_path / "page.html").read_text("utf-8")
    assert stat.S_IMODE(names.stat().st_mode) == 0o600
    assert not (graded / "report.html").exists()


def test_what_is_refused(graded, tmp_path):
    grades = tmp_path / "grades.json"
    grades.write_text(json.dumps({"version": 1, "submissions": []}))
    for arguments, words in (
        ([tmp_path / "nowhere"], "there is no"),
        ([tmp_path], "is no class folder"),
        ([graded, "--lesson", "nine"], "there is no lesson 'nine'"),
        ([graded, "--out", tmp_path], "is a folder; name a file"),
        ([graded, "--out", tmp_path / "a", "--names", tmp_path / "a"], "would be the lecture's page"),
        ([graded, "--out", tmp_path / "no" / "page.html"], "cannot use"),
        ([grades, "--out", grades], "would take the place of"),
    ):
        done = run(*arguments)
        assert (done.exit_code, words in done.output) == (1, True), done.output


def test_nothing_half_written_is_left(graded, monkeypatch):
    (graded / "report.html").write_text("an earlier one")
    monkeypatch.setattr(os, "replace", _fails)
    done = run(graded)
    assert (done.exit_code, "No space left" in done.output) == (1, True)
    assert (graded / "report.html").read_text() == "an earlier one"
    assert not list(graded.glob(".*.part"))


def _fails(*_):
    raise OSError(28, "No space left on device")


def test_published_results_alone(tmp_path):
    grades = tmp_path / "grades.json"
    grades.write_text(json.dumps({"version": 1, "submissions": []}))
    assert run(grades).exit_code == 0
    assert "Nobody has handed in" in (tmp_path / "report.html").read_text("utf-8")
