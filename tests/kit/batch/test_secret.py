"""The grader's secret and where things are kept."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from exercise_kit.batch.locations import PlaceError, find_place, read_or_create_secret
from exercise_kit.nbgrader.class_folder import new_class

ROOT = Path(__file__).parents[3]


def test_a_secret_is_made_once_for_its_owner_alone(tmp_path):
    path = tmp_path / "deep" / "secret"
    made = read_or_create_secret(path)
    assert len(made) == 64
    assert read_or_create_secret(path) == made
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]
    assert read_or_create_secret(tmp_path / "other") != made


def test_graders_that_start_at_once_share_it(tmp_path):
    with ThreadPoolExecutor(8) as threads:
        made = set(threads.map(read_or_create_secret, [tmp_path / "secret"] * 40))
    assert len(made) == 1


def test_half_a_secret_is_made_anew(tmp_path):
    (tmp_path / "secret").write_text("abc")
    made = read_or_create_secret(tmp_path / "secret")
    assert len(made) == 64
    assert read_or_create_secret(tmp_path / "secret") == made


def test_a_class_has_its_own_places(tmp_path):
    folder = new_class(tmp_path / "class", ROOT).path
    place = find_place(folder)
    assert place.checks == folder / "hidden"
    assert place.results == folder / ".vit_course" / "results"
    assert (folder / ".vit_course" / "secret").read_bytes() == place.secret
    shutil.rmtree(place.checks)
    assert find_place(folder).checks == ROOT / "tests" / "hidden"


def test_outside_a_class_the_user_s_folders_are_used(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = find_place(None)
    assert place.results == tmp_path / "cache" / "vit_course" / "results"
    assert (tmp_path / "config" / "vit_course" / "secret").read_bytes() == place.secret


def test_no_checks_and_no_room_for_a_secret_are_reported(tmp_path, monkeypatch):
    with pytest.raises(PlaceError, match="no hidden checks"):
        find_place(None, clone=tmp_path)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    with pytest.raises(PlaceError, match="cannot be kept"):
        find_place(None)


def test_hidden_checks_that_may_not_be_read_are_not_replaced_by_others(tmp_path, monkeypatch):
    (tmp_path / "hidden").mkdir()
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path / "hidden")
    with pytest.raises(PlaceError, match="hidden checks cannot be read"):
        find_place(tmp_path)
