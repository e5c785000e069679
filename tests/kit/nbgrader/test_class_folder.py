from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from nbgrader.converters import GenerateAssignment
from traitlets.config.loader import PyFileConfigLoader

from exercise_kit.authoring.predictions import ClearPredictions
from exercise_kit.conventions import CODE_STUB, TEXT_STUB
from exercise_kit.nbgrader.class_folder import ClassFolder, ClassFolderError, new_class


@pytest.fixture
def lessons(tmp_path):
    root = tmp_path / "the course"
    (root / "solutions").mkdir(parents=True)
    for name in ("00_start", "01_patchify"):
        (root / "solutions" / f"{name}.ipynb").write_text(f'{{"lesson": "{name}"}}', encoding="utf-8")
    (root / "solutions" / "00_start.py").write_text("# %%\n", encoding="utf-8")
    checks = root / "tests" / "hidden"
    (checks / "__pycache__").mkdir(parents=True)
    for name in ("conftest.py", "test_a.py", "__pycache__/test_a.pyc"):
        (checks / name).write_text(name, encoding="utf-8")
    return root


def list_files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def read_settings(path):
    return PyFileConfigLoader(path.name, str(path.parent)).load_config()


@pytest.mark.parametrize("name", ["class", "my class of 2025", "new/ones/within"])
def test_the_folder_holds_lessons_settings_and_a_readme(tmp_path, lessons, name):
    made = new_class(tmp_path / name, lessons)
    assert made == ClassFolder((tmp_path / name).resolve(), ("00_start", "01_patchify"))
    assert list_files(made.path) == [
        "README.md",
        "hidden/conftest.py",
        "hidden/test_a.py",
        "nbgrader_config.py",
        "source/00_start/00_start.ipynb",
        "source/01_patchify/01_patchify.ipynb",
    ]
    copied = (made.path / "source" / "01_patchify" / "01_patchify.ipynb").read_bytes()
    assert copied == (lessons / "solutions" / "01_patchify.ipynb").read_bytes()


def test_an_empty_folder_is_filled_and_stays_the_same_folder(tmp_path, lessons):
    folder = tmp_path / "class"
    folder.mkdir()
    before = folder.stat()[stat.ST_INO]
    new_class(folder, lessons)
    assert folder.stat()[stat.ST_INO] == before
    assert "README.md" in list_files(folder)


@pytest.mark.parametrize("there", [True, False], ids=["an empty folder", "a new folder"])
def test_a_class_is_its_owner_s_alone(tmp_path, lessons, there):
    mask = os.umask(0)
    try:
        if there:
            (tmp_path / "class").mkdir()
        folder = new_class(tmp_path / "class", lessons).path
    finally:
        os.umask(mask)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


@pytest.mark.parametrize(
    ("mine", "words"),
    [
        ("class", "class is not a folder; name a new one"),
        ("class/notes.txt", "class exists and is not empty; name a new folder"),
    ],
)
def test_a_place_in_use_is_refused_and_left(tmp_path, lessons, mine, words):
    (tmp_path / mine).parent.mkdir(exist_ok=True)
    (tmp_path / mine).write_text("mine", encoding="utf-8")
    before = list_files(tmp_path)
    with pytest.raises(ClassFolderError, match=words):
        new_class(tmp_path / "class", lessons)
    assert list_files(tmp_path) == before


def test_without_built_lessons_it_says_what_to_run(tmp_path):
    with pytest.raises(ClassFolderError, match=r"no built lesson in .*solutions; run 'vit-course build' there first"):
        new_class(tmp_path / "class", tmp_path)


@pytest.mark.parametrize("closed", ["solutions", "tests/hidden"])
def test_what_this_account_may_not_read_is_named_and_not_taken_for_empty(tmp_path, lessons, monkeypatch, closed):
    """Also by root, who may read everything."""
    listed = os.listdir

    def refuse(folder):
        if Path(folder) == lessons / closed:
            raise PermissionError(13, "Permission denied", str(folder))
        return listed(folder)

    monkeypatch.setattr("os.listdir", refuse)
    with pytest.raises(ClassFolderError, match=f"this account may not read .*{closed}; run the command as the account"):
        new_class(tmp_path / "class", lessons)
    assert not (tmp_path / "class").exists()


def test_a_failure_half_way_leaves_nothing(tmp_path, lessons, monkeypatch):
    def raise_disk_full(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.write_text", raise_disk_full)
    before = list_files(tmp_path)
    with pytest.raises(ClassFolderError, match=r"cannot make .*class: disk full"):
        new_class(tmp_path / "class", lessons)
    assert list_files(tmp_path) == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".class")]


def test_the_settings_read_twice_are_the_same(tmp_path, lessons):
    path = new_class(tmp_path / "a class", lessons).path / "nbgrader_config.py"
    settings = read_settings(path)
    assert settings == read_settings(path)
    assert settings.CourseDirectory.course_id == "vit_course"
    assert settings.CourseDirectory.root == str((tmp_path / "a class").resolve())
    assert settings.ClearSolutions.code_stub == {"python": CODE_STUB}
    assert settings.ClearSolutions.text_stub == TEXT_STUB


def test_a_release_is_made_by_nbgrader_s_own_steps_after_ours(tmp_path, lessons):
    settings = read_settings(new_class(tmp_path / "class", lessons).path / "nbgrader_config.py")
    ours, *others = (each.rsplit(".", 1)[1] for each in settings.GenerateAssignment.preprocessors)
    assert ours == ClearPredictions.__name__
    assert others == [each.__name__ for each in GenerateAssignment().preprocessors]


def test_the_readme_names_the_lessons_in_its_text_and_its_commands(tmp_path, lessons):
    text = (new_class(tmp_path / "class", lessons).path / "README.md").read_text(encoding="utf-8")
    assert "Lessons here: 00_start, 01_patchify." in text
    assert "    nbgrader autograde 00_start --student=STUDENT --force" in text
    assert "$" not in text
