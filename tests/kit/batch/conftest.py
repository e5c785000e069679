"""Where the tests of many submissions grade."""

import shutil
from pathlib import Path

import pytest

from exercise_kit.batch.locations import Place

HIDDEN = Path(__file__).parents[2] / "hidden"


@pytest.fixture
def place(tmp_path):
    """With hidden checks of its own, which a test may change."""
    checks = tmp_path / "hidden"
    shutil.copytree(HIDDEN, checks, ignore=shutil.ignore_patterns("__pycache__"))
    return Place(None, checks, b"secret", tmp_path / "results")
