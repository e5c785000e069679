"""Which files are handed in, whose they are, and for what."""

import errno
import os
from pathlib import Path

import pytest

from exercise_kit.submission.find import describe_stray_files, find, find_apparent_class
from exercise_kit.submission.notebook_file import Unreachable
from exercise_kit.submission.parse import explain_rejection
from tests.kit.conftest import make_chain_of_folders

LESSONS = ("01_patchify", "02_positions")


def write_empty_notebooks(*paths):
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")


def list_found(*paths):
    return [(str(each.path.name), each.student, each.assignment, bool(each.problem)) for each in find(paths, LESSONS)]


@pytest.mark.parametrize("root", ["submitted", "handed in"])
def test_a_tree_tells_student_and_assignment(tmp_path, root):
    tree = tmp_path / root
    write_empty_notebooks(
        tree / "ada" / "01_patchify" / "01_patchify.ipynb",
        tree / "ada" / "01_patchify" / "timestamp.txt",
        tree / "ada" / "01_patchify" / "scratch.ipynb",
        tree / "ada" / "01_patchify" / ".ipynb_checkpoints" / "01_patchify.ipynb",
        tree / "ada" / "02_positions" / "02_positions (1).ipynb",
        tree / "ben" / "01_patchify" / "picture.png",
        tree / "cleo" / "01_patchify" / "Untitled.ipynb",
        tree / "dan" / "notes.txt",
    )
    assert list_found(tree) == [
        ("01_patchify.ipynb", "ada", "01_patchify", False),
        ("02_positions (1).ipynb", "ada", "02_positions", False),
        ("01_patchify", "ben", "01_patchify", True),
        ("Untitled.ipynb", "cleo", "01_patchify", False),
        ("dan", "dan", None, True),
    ]
    assert "named Untitled.ipynb" in find([tree], LESSONS)[3].note


@pytest.mark.parametrize(
    ("names", "file", "words"),
    [
        (["work/01_patchify.ipynb", "notes.txt"], "work/01_patchify.ipynb", "one folder deeper, in work"),
        (["01_patchify/a.ipynb", "__MACOSX/._a.ipynb"], "01_patchify/a.ipynb", "in 01_patchify; its file is named a"),
        (["01_patchify.ipynb", "old/01_patchify.ipynb"], "01_patchify.ipynb", None),
        (["a/01_patchify.ipynb", "b/01_patchify.ipynb"], ".", "no notebook itself, and a and b in it do; leave"),
        (["a/b/01_patchify.ipynb"], ".", "the folder holds no notebook"),
    ],
)
def test_an_unpacked_archive_s_own_folder_is_looked_into(tmp_path, names, file, words):
    folder = tmp_path / "submitted" / "ada" / "01_patchify"
    write_empty_notebooks(*(folder / name for name in names))
    (only,) = find([tmp_path / "submitted"], LESSONS)
    assert (only.path, only.student, only.assignment) == (folder / file, "ada", "01_patchify")
    assert bool(only.problem) == (file == ".")
    assert (only.problem or only.note) == words or words in (only.problem or only.note)


def test_parts_of_a_tree_and_the_class_itself_tell_the_same(tmp_path):
    (tmp_path / "nbgrader_config.py").touch()
    notebook = tmp_path / "submitted" / "ada" / "01_patchify" / "01_patchify.ipynb"
    write_empty_notebooks(notebook)
    whole = [("01_patchify.ipynb", "ada", "01_patchify", False)]
    for part in (tmp_path, *list(notebook.parents)[:3], notebook):
        assert list_found(part) == whole, part
        assert find_apparent_class(part) == tmp_path
        ((path, flags),) = [(each.path, each.flags) for each in find([part], LESSONS, tmp_path)]
        assert (path, flags) == (notebook, ())


def test_loose_files_are_found_in_order_and_once(tmp_path):
    write_empty_notebooks(tmp_path / "b.ipynb", tmp_path / "a" / "z.py", tmp_path / "c.txt", tmp_path / ".hidden.ipynb")
    write_empty_notebooks(tmp_path / "vit_course" / "__init__.py", tmp_path / "vit_course" / "attention.py")
    assert list_found(tmp_path) == [("b.ipynb", None, None, False), ("z.py", None, None, False)]
    assert list_found(tmp_path / "a" / "z.py", tmp_path)[0][0] == "z.py"
    assert len(list_found(tmp_path, tmp_path, tmp_path / "b.ipynb")) == 2


def test_links_and_archives_are_reported_and_not_followed(tmp_path):
    outside = tmp_path / "outside"
    write_empty_notebooks(outside / "01_patchify.ipynb")
    tree = tmp_path / "submitted"
    write_empty_notebooks(tree / "ada" / "01_patchify" / "work.zip")
    (tree / "ben" / "01_patchify").mkdir(parents=True)
    (tree / "ben" / "01_patchify" / "01_patchify.ipynb").symlink_to(outside / "01_patchify.ipynb")
    (tree / "cleo").symlink_to(outside)
    (tree / "dan").mkdir()
    (tree / "dan" / "01_patchify").symlink_to(outside)
    problems = {each.student: each.problem for each in find([tree], LESSONS)}
    assert "archive" in problems["ada"]
    assert all("link" in problems[name] for name in ("ben", "cleo", "dan"))


CLASS_FILES = (
    "nbgrader_config.py",
    "hidden/test_patchify.py",
    "conftest.py",
    ".vit_course/secret",
    "tests/hidden/a.py",
)


@pytest.mark.parametrize("file", CLASS_FILES)
@pytest.mark.parametrize("place", ["submitted/eve/01_patchify", "submitted/eve", "downloads/eve"])
def test_what_only_an_instructor_has_is_flagged_where_a_student_hands_it_in(tmp_path, place, file):
    class_dir = tmp_path / "class"
    write_empty_notebooks(
        class_dir / "nbgrader_config.py", class_dir / "hidden" / "test_a.py", class_dir / ".vit_course" / "secret"
    )
    honest = class_dir / "submitted" / "ada" / "01_patchify" / "01_patchify.ipynb"
    own = class_dir / place / ("" if "01" in place else "01_patchify") / "01_patchify.ipynb"
    write_empty_notebooks(honest, own, class_dir / place / file)
    entries = [own.parents[2], own.parents[1], own.parent, own]
    for entry in entries[:1] if "downloads" in place else entries:
        flags = {each.path: each.flags for each in find([entry], LESSONS, class_dir)}
        assert flags[own] == ("check-files",), entry
        assert flags.get(honest, ()) == ()


def test_what_lies_beside_a_loose_notebook_or_above_it_is_flagged_as_far_as_it_was_named(tmp_path):
    own = tmp_path / "downloads" / "eve" / "work" / "a.ipynb"
    write_empty_notebooks(own, tmp_path / "downloads" / "eve" / "nbgrader_config.py")
    flags = [find([entry], LESSONS)[0].flags for entry in (own, own.parent, own.parents[1], own.parents[2])]
    assert flags == [(), (), ("check-files",), ("check-files",)]
    assert [find_apparent_class(entry) for entry in (own, own.parents[1])] == [None, None]


def test_the_operator_s_own_files_flag_nobody(tmp_path):
    notebooks = [tmp_path / "a.ipynb", tmp_path / "late" / "b.ipynb"]
    write_empty_notebooks(*notebooks, *(tmp_path / file for file in CLASS_FILES))
    assert [each.flags for each in find(notebooks, LESSONS, tmp_path)] == [(), ()]
    assert [each.flags for each in find(notebooks, LESSONS)] == [("check-files",), ()]


def test_what_is_not_there_is_reported(tmp_path):
    assert "no such file" in find([tmp_path / "nothing.ipynb"], LESSONS)[0].problem


@pytest.mark.parametrize("name", ["with spaces 😀.ipynb", "new\nline.ipynb", "half\udcff.ipynb"])
def test_any_name_is_found(tmp_path, name):
    with open(os.fsencode(tmp_path) + b"/" + os.fsencode(name), "w") as file:
        file.write("{}")
    assert [each.path.name for each in find([tmp_path], LESSONS)] == [name]


@pytest.mark.parametrize("number", [errno.EACCES, errno.ESTALE, errno.EIO, errno.EHOSTUNREACH, errno.ENXIO])
@pytest.mark.parametrize("lost", [".", "ada", "ada/01_patchify"])
def test_a_folder_that_cannot_be_reached_is_no_fault_of_its_student(tmp_path, monkeypatch, number, lost):
    submitted = tmp_path / "submitted"
    write_empty_notebooks(*(submitted / student / "01_patchify" / "01_patchify.ipynb" for student in ("ada", "ben")))
    scandir = os.scandir

    def fail_to_scan(folder):
        if Path(folder) == submitted / lost:
            raise OSError(number, os.strerror(number))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", fail_to_scan)
    here, *others = find([submitted], LESSONS)
    assert (here.path, here.unreachable) == (submitted / lost, True)
    assert f"the folder cannot be reached ({os.strerror(number)})" in here.problem
    assert [(each.student, each.problem) for each in others] == ([] if lost == "." else [("ben", None)])
    with pytest.raises(Unreachable, match="cannot be reached"):
        explain_rejection(here, None)


def test_a_link_to_itself_stops_nobody(tmp_path):
    write_empty_notebooks(tmp_path / "submitted" / "ada" / "01_patchify" / "01_patchify.ipynb")
    for folder in ("submitted", "submitted/ada", "submitted/ada/01_patchify"):
        (tmp_path / folder / "loop").symlink_to("loop")
    loop = ("loop", "loop", None, True)
    assert list_found(tmp_path / "submitted") == [("01_patchify.ipynb", "ada", "01_patchify", False), loop]


@pytest.mark.parametrize(("name", "depth"), [("d", 100), ("d" * 180, 40)], ids=["many folders", "long names"])
def test_a_chain_of_folders_stops_nobody_else(tmp_path, name, depth):
    write_empty_notebooks(tmp_path / "bob" / "work.ipynb")
    make_chain_of_folders(tmp_path / "alice", name, depth)
    found = find([tmp_path], LESSONS)
    assert [each.path.name for each in found if each.problem is None] == ["work.ipynb"]
    (refused,) = [each for each in found if each.problem]
    assert "its folders are more than 16 deep" in refused.problem


def test_one_student_s_empty_folder_hides_no_other_s_work(tmp_path):
    (tmp_path / "alice" / "01_patchify").mkdir(parents=True)
    write_empty_notebooks(*(tmp_path / name for name in ("bob/work.ipynb", "bob/other.ipynb", "hw.ipynb")))
    found = find([tmp_path], LESSONS)
    assert {each.path.name for each in found if each.problem is None} == {"work.ipynb", "other.ipynb", "hw.ipynb"}


def test_work_under_another_s_name_is_flagged(tmp_path):
    work = tmp_path / "alice" / "submitted" / "bob" / "01_patchify" / "01_patchify.ipynb"
    write_empty_notebooks(work, tmp_path / "alice" / "nbgrader_config.py")
    for given in (tmp_path / "alice", work):
        (each,) = find([given], LESSONS)
        assert each.flags == ("check-files",)
    (each,) = find([tmp_path / "alice"], LESSONS, tmp_path / "alice")
    assert each.flags == ()


def test_what_lies_among_the_students_and_is_no_student_s_is_named(tmp_path):
    submitted = tmp_path / "submitted"
    lessons = [f"{student}/01_patchify/01_patchify.ipynb" for student in ("ada", "..hidden")]
    others = (".bob/answer.py", ".ipynb_checkpoints/x.ipynb", ".DS_Store", ".empty/README")
    write_empty_notebooks(*(submitted / name for name in (*lessons, *others)))
    (submitted / "gone").symlink_to("nowhere")
    named = {each.path.name: each.problem for each in find([submitted], ["01_patchify"])}
    assert named.pop("01_patchify.ipynb") is None
    assert set(named) == {"..hidden", ".bob", "gone"}
    assert "begins with a dot" in named["..hidden"]
    assert "symbolic link" in named["gone"]


def test_files_beside_the_students_are_said(tmp_path):
    submitted = tmp_path / "submitted"
    write_empty_notebooks(submitted / "ada" / "01_patchify" / "01_patchify.ipynb")
    assert describe_stray_files(submitted) is None
    write_empty_notebooks(submitted / "notes\x1b[2J.txt")
    assert describe_stray_files(submitted) == "in submitted/ nobody has looked at notes [2J.txt, which is no student's"
    for number in range(12):
        write_empty_notebooks(submitted / f"x{number:02}.md")
    said = describe_stray_files(submitted)
    assert "x08.md and 3 more, which are no student's" in said
    assert describe_stray_files(submitted / "nowhere") is None
