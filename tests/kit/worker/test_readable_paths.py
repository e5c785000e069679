"""What a worker may read holds Python and its packages, and no way to the course."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import torch

import vit_course
from exercise_kit.worker.readable_paths import list_listable_folders, list_package_folders, list_readable_paths


def test_packages_and_standard_library_are_there_entry_by_entry() -> None:
    paths = list_readable_paths()
    assert Path(torch.__file__).parent in paths
    assert Path(os.__file__) in paths
    assert not {*list_package_folders(), *list_listable_folders(), Path(sysconfig.get_path("purelib"))} & set(paths)


def test_the_course_other_vits_and_homes_are_not() -> None:
    paths = [path.resolve() for path in list_readable_paths()]
    forbidden = [Path(vit_course.__file__).parents[1], Path(vit_course.__file__).parent, Path.home()]
    for place in forbidden:
        assert not [path for path in paths if path == place or path in place.parents]
    names = {path.name.partition("-")[0] for path in paths}
    assert not names & {"vit_course", "timm", "transformers", "nbgrader", "pytest", "_pytest", "site-packages"}
    assert not [path for path in paths if path.suffix in (".pth", ".egg-link")]


def test_a_course_that_is_installed_is_not_readable():
    assert [path for path in list_readable_paths() if path.name == "numpy"]
    assert not [path for path in list_readable_paths(["numpy"]) if path.name.startswith("numpy")]
