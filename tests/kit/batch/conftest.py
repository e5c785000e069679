"""Where the tests of many submissions grade."""

import shutil
from pathlib import Path

import pytest

from exercise_kit.batch.locations import Place

HIDDEN = Path(__file__).parents[2] / "hidden"
OWN = {"patchify": ("patchify", "fix_patchify"), "unpatchify": ("unpatchify",)}


@pytest.fixture
def grading_place(tmp_path):
    """With a teacher's own functions, which a test may change, beside the hidden checks of the course."""
    checks = tmp_path / "hidden"
    shutil.copytree(HIDDEN, checks, ignore=shutil.ignore_patterns("__pycache__"))
    for name, exercises in OWN.items():
        marks = "".join(f'@pytest.mark.exercise("{each}", points=1)\n' for each in exercises)
        text = f'import pytest\n\n\n{marks}def test_mine(student):\n    """It has a name."""\n    assert student.name\n'
        (checks / f"test_{name}.py").write_text(text)
    return Place(None, checks, b"secret", tmp_path / "results")
