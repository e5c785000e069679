"""A cell that runs before its exercise's: which cell to run, and when nothing is said."""

from __future__ import annotations

from types import CodeType

import pytest

from exercise_kit.engine.cells_not_run import sentence


def words_for(code: str | CodeType) -> str:
    with pytest.raises(NameError) as caught:
        exec(code, {})
    return sentence(caught.value.name, caught.tb)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ('print("patchify", patchify)', "Run the cell that begins with `def patchify`, then this one again."),
        ("PatchEmbedding(3, 4, 8)", "Run the cell that begins with `class PatchEmbedding`"),
        ("keep('patchify')", "`keep` is not imported yet. Run the cells from the top"),
    ],
)
def test_a_name_of_the_course_says_which_cell(code: str, said: str) -> None:
    assert said in words_for(code)
    assert said in words_for(compile(code, "cell", "exec").replace(co_name="<cell line: 1>"))  # as IPython 7 has it


@pytest.mark.parametrize("code", ["patchfiy", "def inside():\n    return patchify\ninside()"])
def test_of_any_other_name_nothing_is_said(code: str) -> None:
    assert words_for(code) == ""
