"""The command: a page is written whole or not at all, and every refusal is a sentence."""

import json
import os
import stat

import pytest
import typer
from typer.testing import CliRunner

from exercise_kit.cli.commands import report
from tests.kit.report.conftest import make_exercise_result, make_failed_check

app = typer.Typer()
app.command()(report)


def run_report(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.fixture
def graded_class(class_folder):
    class_folder.keep(
        class_folder.hand_in("ann"), make_exercise_result("patchify", make_failed_check(misconception="column order"))
    )
    return class_folder.folder


def test_a_report_lands_in_the_class_folder(graded_class):
    done = run_report(graded_class)
    assert done.exit_code == 0
    assert "1 student handed in 1 notebook for 1 lesson; all are graded." in done.output
    assert f"The report: {graded_class / 'report.html'}" in done.output
    assert "column order" in (graded_class / "report.html").read_text("utf-8")
    assert not list(graded_class.glob(".*.part"))


def test_names_go_to_a_page_of_their_own(graded_class, tmp_path):
    names = tmp_path / "names.html"
    done = run_report(graded_class, "--out", tmp_path / "page.html", "--names", names, "--lesson", "01_patchify")
    assert done.exit_code == 0
    assert ">ann<" in names.read_text("utf-8")
    assert ">ann<" not in (tmp_path / "page.html").read_text("utf-8")
    assert stat.S_IMODE(names.stat().st_mode) == 0o600
    assert not (graded_class / "report.html").exists()


def test_what_is_refused(graded_class, tmp_path):
    grades = tmp_path / "grades.json"
    grades.write_text(json.dumps({"version": 1, "submissions": []}))
    for arguments, words in (
        ([tmp_path / "nowhere"], "there is no"),
        ([tmp_path], "is no class folder: it has no nbgrader_config.py"),
        ([graded_class, "--lesson", "nine"], "there is no lesson 'nine'; there are: 00_start"),
        ([graded_class, "--out", tmp_path], "is a folder; name a file"),
        ([graded_class, "--out", tmp_path / "a", "--names", tmp_path / "a"], "would be the lecture's page"),
        ([graded_class, "--out", tmp_path / "no" / "page.html"], "cannot use"),
        ([grades, "--out", grades], "would take the place of"),
    ):
        done = run_report(*arguments)
        assert (done.exit_code, words in done.output) == (1, True), done.output


def test_nothing_half_written_is_left(graded_class, monkeypatch):
    (graded_class / "report.html").write_text("an earlier one")
    monkeypatch.setattr(os, "replace", raise_disk_full)
    done = run_report(graded_class)
    assert (done.exit_code, "No space left" in done.output) == (1, True)
    assert (graded_class / "report.html").read_text() == "an earlier one"
    assert not list(graded_class.glob(".*.part"))


def raise_disk_full(*_):
    raise OSError(28, "No space left on device")


def test_published_results_alone(tmp_path):
    grades = tmp_path / "grades.json"
    grades.write_text(json.dumps({"version": 1, "submissions": []}))
    assert run_report(grades).exit_code == 0
    assert "Nobody has handed in" in (tmp_path / "report.html").read_text("utf-8")
