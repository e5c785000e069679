"""Which files are handed in, whose they are, and for what."""

import os

import pytest

from vit_course.grading.submissions.finding import find

LESSONS = ("01_patchify", "02_positions")


def touch(*paths):
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")


def found(*paths):
    return [(str(each.path.name), each.student, each.assignment, bool(each.problem)) for each in find(paths, LESSONS)]


@pytest.mark.parametrize("root", ["submitted", "handed in"])
def test_a_tree_tells_student_and_assignment(tmp_path, root):
    tree = tmp_path / root
    touch(
        tree / "ada" / "01_patchify" / "01_patchify.ipynb",
        tree / "ada" / "01_patchify" / "timestamp.txt",
        tree / "ada" / "01_patchify" / "scratch.ipynb",
        tree / "ada" / "01_patchify" / ".ipynb_checkpoints" / "01_patchify.ipynb",
        tree / "ada" / "02_positions" / "02_positions (1).ipynb",
        tree / "ben" / "01_patchify" / "picture.png",
        tree / "cleo" / "01_patchify" / "Untitled.ipynb",
        tree / "dan" / "notes.txt",
    )
    assert found(tree) == [
        ("01_patchify.ipynb", "ada", "01_patchify", False),
        ("02_positions (1).ipynb", "ada", "02_positions", False),
        ("01_patchify", "ben", "01_patchify", True),
        ("Untitled.ipynb", "cleo", "01_patchify", False),
        ("dan", "dan", None, True),
    ]
    assert "named Untitled.ipynb" in find([tree], LESSONS)[3].note


def test_parts_of_a_tree_and_the_class_itself_tell_the_same(tmp_path):
    (tmp_path / "nbgrader_config.py").touch()
    notebook = tmp_path / "submitted" / "ada" / "01_patchify" / "01_patchify.ipynb"
    touch(notebook)
    whole = [("01_patchify.ipynb", "ada", "01_patchify", False)]
    for part in (tmp_path, *list(notebook.parents)[:3], notebook):
        assert found(part) == whole, part
        assert find([part], LESSONS)[0].class_dir == tmp_path


def test_loose_files_are_found_in_order_and_once(tmp_path):
    touch(tmp_path / "b.ipynb", tmp_path / "a" / "z.py", tmp_path / "c.txt", tmp_path / ".hidden.ipynb")
    touch(tmp_path / "vit_course" / "__init__.py", tmp_path / "vit_course" / "attention.py")
    assert found(tmp_path) == [("b.ipynb", None, None, False), ("z.py", None, None, False)]
    assert found(tmp_path / "a" / "z.py", tmp_path)[0][0] == "z.py"
    assert len(found(tmp_path, tmp_path, tmp_path / "b.ipynb")) == 2


def test_links_and_archives_are_told_and_not_followed(tmp_path):
    outside = tmp_path / "outside"
    touch(outside / "01_patchify.ipynb")
    tree = tmp_path / "submitted"
    touch(tree / "ada" / "01_patchify" / "work.zip")
    (tree / "ben" / "01_patchify").mkdir(parents=True)
    (tree / "ben" / "01_patchify" / "01_patchify.ipynb").symlink_to(outside / "01_patchify.ipynb")
    (tree / "cleo").symlink_to(outside)
    (tree / "dan").mkdir()
    (tree / "dan" / "01_patchify").symlink_to(outside)
    problems = {each.student: each.problem for each in find([tree], LESSONS)}
    assert "archive" in problems["ada"]
    assert all("link" in problems[name] for name in ("ben", "cleo", "dan"))


def test_what_is_not_there_is_told(tmp_path):
    assert "no such file" in find([tmp_path / "nothing.ipynb"], LESSONS)[0].problem


@pytest.mark.parametrize("name", ["with spaces 😀.ipynb", "new\nline.ipynb", "half\udcff.ipynb"])
def test_any_name_is_found(tmp_path, name):
    with open(os.fsencode(tmp_path) + b"/" + os.fsencode(name), "w") as file:
        file.write("{}")
    assert [each.path.name for each in find([tmp_path], LESSONS)] == [name]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_folder_without_permission_is_told(tmp_path):
    folder = tmp_path / "submitted" / "ada"
    folder.mkdir(parents=True)
    folder.chmod(0)
    try:
        assert "Permission denied" in find([tmp_path / "submitted"], LESSONS)[0].problem
    finally:
        folder.chmod(0o700)
