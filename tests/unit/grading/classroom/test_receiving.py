"""What happens to a submission's folder before nbgrader reads it."""

from __future__ import annotations

import os

import pytest

from vit_course.grading.classroom.receiving import receive

LESSON = "01_double"


def hand_in(folder, *names):
    paths = [folder / "submitted" / "ada" / LESSON / name for name in names]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)
    return [str(path) for path in paths]


@pytest.mark.parametrize("name", ["01_double (1).ipynb", "01_double-Copy1.ipynb", "ada 01_double.ipynb"])
def test_a_renamed_notebook_gets_its_lesson_s_name_back(tmp_path, name):
    notebooks = hand_in(tmp_path, name)
    receive(notebooks, assignment="*", student="*")
    (folder,) = (tmp_path / "submitted" / "ada").iterdir()
    assert [path.name for path in folder.iterdir()] == ["01_double.ipynb"]
    assert notebooks == [str(folder / "01_double.ipynb")]
    assert (folder / "01_double.ipynb").read_text() == name


@pytest.mark.parametrize(
    "names",
    [["01_double.ipynb"], ["02_triple.ipynb"], ["01_double.ipynb", "01_double (1).ipynb"], ["a.ipynb", "b.ipynb"]],
)
def test_any_other_name_is_left_and_nbgrader_asks_for_the_lesson_s(tmp_path, names):
    notebooks = hand_in(tmp_path, *names)
    receive(notebooks, assignment="*", student="*")
    assert notebooks == [str(tmp_path / "submitted" / "ada" / LESSON / "01_double.ipynb")]
    assert sorted(path.name for path in tmp_path.rglob("*.ipynb")) == sorted(names)


def test_a_link_is_removed_and_what_it_led_to_stays(tmp_path):
    secret = tmp_path / "source.txt"
    secret.write_text("the answers")
    notebooks = hand_in(tmp_path, "01_double.ipynb")
    folder = tmp_path / "submitted" / "ada" / LESSON
    (folder / "deep").mkdir()
    (folder / "deep" / "notes.txt").symlink_to(secret)
    (folder / "all").symlink_to(tmp_path)
    receive(notebooks)
    assert sorted(path.name for path in folder.rglob("*")) == ["01_double.ipynb", "deep"]
    assert secret.read_text() == "the answers"
    assert len(notebooks) == 1


def test_a_notebook_that_is_a_link_stays_for_the_reader_to_refuse(tmp_path):
    (own,) = hand_in(tmp_path, "01_double.ipynb")
    theirs = tmp_path / "submitted" / "eve" / LESSON / "01_double.ipynb"
    theirs.parent.mkdir(parents=True)
    theirs.symlink_to(own)
    notebooks = [str(theirs)]
    receive(notebooks)
    assert notebooks == [str(theirs)]
    assert theirs.is_symlink()


def test_a_folder_without_notebooks_is_left(tmp_path):
    notebooks: list[str] = []
    receive(notebooks)
    assert notebooks == []


def test_pipes_go_since_nbgrader_would_copy_them(tmp_path):
    (own,) = hand_in(tmp_path, "01_double.ipynb")
    folder = tmp_path / "submitted" / "ada" / LESSON
    for name in ("pipe.ipynb", "pipe.txt"):
        os.mkfifo(folder / name)
    (folder / "folder.ipynb").mkdir()
    notebooks = [own, str(folder / "pipe.ipynb"), str(folder / "folder.ipynb")]
    receive(notebooks)
    assert notebooks == [own]
    assert sorted(path.name for path in folder.iterdir()) == ["01_double.ipynb", "folder.ipynb", "pipe.ipynb"]
