"""What the released lessons say."""

import json
import shutil
from collections import ChainMap
from pathlib import Path

import pytest

from exercise_kit.nbgrader.class_folder import new_class
from exercise_kit.submission.released import (
    Lessons,
    ReleasedError,
    find_current_class,
    find_unclaimed_class,
    parse_checked_object_names,
    parse_exercise_and_file_name,
    remember_class,
)
from tests.outline import POINTS

ROOT = Path(__file__).parents[3]


def test_every_lesson_tells_its_exercises_points_and_objects(lessons):
    assert lessons.names == tuple(sorted(path.stem for path in (ROOT / "solutions").glob("*.py")))
    exercises = {each.name: each for lesson in lessons for each in lesson.exercises}
    assert {each.name: each.points for each in exercises.values()} == {**ChainMap(*POINTS.values())}
    assert exercises["split_heads"].objects == ("split_heads", "merge_heads")
    assert exercises["fix_vit"].objects == ("FixedViT",)
    assert lessons.find_by_exercise("Mlp").name == "04_block"
    assert lessons.find_by_exercise("nothing") is None
    assert (exercises["vit_cifar"].file, exercises["vit_cifar"].points) == ("vit_cifar.safetensors", 8)
    for lesson in lessons:
        written = {each.name for each in lesson.exercises if not each.file}
        assert set(lesson.model_answers) == written


def test_checked_objects_and_a_file_are_read_off_the_check_cell():
    objects, file = 'check("a", b, c, points=3)', 'check("a", "b.safetensors", points=3)'
    assert (parse_checked_object_names(objects), parse_exercise_and_file_name(objects)) == (("b", "c"), None)
    assert (parse_checked_object_names(file), parse_exercise_and_file_name(file)) == ((), ("a", "b.safetensors"))
    for other in ('check("a", "../b.safetensors")', 'check("a", "/etc/passwd")', 'check("a", "")', "check(", "x = 1"):
        assert parse_exercise_and_file_name(other) is None


def test_a_class_tells_the_lesson_as_nbgrader_would_release_it(tmp_path, lessons):
    folder = new_class(tmp_path / "class", ROOT).path
    source = folder / "source" / "01_patchify" / "01_patchify.ipynb"
    made = Lessons(folder, ROOT).get("01_patchify")
    built = lessons.get("01_patchify")
    assert made.exercises == built.exercises
    assert [cell.source for cell in made.cells] == [cell.source for cell in built.cells]
    assert (
        made.find_cells_by_role("check")["check-patchify"].checksum
        == built.find_cells_by_role("check")["check-patchify"].checksum
    )
    release = folder / "release" / "01_patchify" / "01_patchify.ipynb"
    release.parent.mkdir(parents=True)
    notebook = json.loads((ROOT / "notebooks" / "01_patchify.ipynb").read_bytes())
    mark = next(cell["metadata"]["nbgrader"] for cell in notebook["cells"] if "points" in str(cell["metadata"]))
    mark["points"] = 80
    release.write_text(json.dumps(notebook))
    assert Lessons(folder, ROOT).get("01_patchify").exercises[0].points == 80
    assert Lessons(folder, ROOT).get("01_patchify").digest != built.digest
    shutil.copy(source, release)
    release.write_text("{")
    with pytest.raises(ReleasedError, match="release the lesson again"):
        Lessons(folder, ROOT).get("01_patchify")


def test_the_class_is_that_of_the_working_folder_and_never_one_that_was_handed_in(tmp_path, monkeypatch):
    folder = tmp_path / "class"
    inside = folder / "submitted" / "eve" / "01_patchify"
    for own in (folder, folder / "source", inside, inside.parent, folder / "autograded" / "eve"):
        own.mkdir(parents=True, exist_ok=True)
        monkeypatch.chdir(own)
        if own.name != "source":
            (own / "nbgrader_config.py").touch()
        assert find_current_class() == folder
    monkeypatch.chdir(tmp_path)
    assert find_current_class() is None


def test_a_working_folder_that_is_gone_is_no_class(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert find_current_class() is None


def test_a_working_folder_in_which_the_work_lies_beside_the_configuration_is_a_student_s(tmp_path, monkeypatch):
    (tmp_path / "source" / "01_patchify").mkdir(parents=True)
    (tmp_path / "nbgrader_config.py").touch()
    (tmp_path / "hw.ipynb").touch()
    monkeypatch.chdir(tmp_path / "source")
    assert find_current_class([tmp_path / "source" / "01_patchify"]) == tmp_path
    for given in ("../hw.ipynb", "..", tmp_path / "hw.ipynb"):
        assert find_current_class([Path(given)]) is None
    (tmp_path / "submitted").mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert find_current_class([tmp_path]) is None, "a student can hand in such a folder, too"
    assert find_unclaimed_class([tmp_path]) == tmp_path
    assert find_unclaimed_class([tmp_path / "submitted"]) is None
    remember_class(tmp_path)
    assert find_current_class([tmp_path]) == tmp_path
    assert find_current_class([tmp_path / "hw.ipynb"]) is None
    assert find_unclaimed_class([tmp_path]) is None


def test_a_link_does_not_lead_around_what_lies_beside_the_configuration(tmp_path, monkeypatch):
    folder = tmp_path / "inbox" / "eve"
    folder.mkdir(parents=True)
    (folder / "nbgrader_config.py").touch()
    (tmp_path / "home").symlink_to(tmp_path / "inbox")
    monkeypatch.chdir(tmp_path / "home" / "eve")
    assert find_current_class([tmp_path / "home" / "eve" / "hw.ipynb"]) is None
    assert find_current_class([tmp_path / "home" / "eve"]) is None


def test_an_account_without_a_home_remembers_nothing_and_grades(tmp_path, monkeypatch):
    def raise_no_home():
        raise RuntimeError("Could not determine home directory.")

    (tmp_path / "nbgrader_config.py").touch()
    (tmp_path / "submitted").mkdir()
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(Path, "home", raise_no_home)
    monkeypatch.chdir(tmp_path)
    remember_class(tmp_path)
    assert find_current_class([tmp_path]) is None
    assert find_current_class([tmp_path / "submitted"]) == tmp_path
