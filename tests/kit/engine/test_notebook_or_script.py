"""A cell that runs before its exercise's: which cell to run, and when nothing is said."""

from __future__ import annotations

import contextlib
import io
from types import CodeType, SimpleNamespace

import pytest
from IPython.core.interactiveshell import InteractiveShell

from exercise_kit.engine import notebook_or_script
from exercise_kit.engine.course import course
from exercise_kit.engine.notebook_or_script import explain_missing_name, explain_outdated_answer


def explain_missing_name_in(code: str | CodeType) -> str:
    with pytest.raises(NameError) as caught:
        exec(code, {})
    return explain_missing_name(caught.value.name, caught.tb)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ('print("patchify", patchify)', "Run the cell that begins with `def patchify`, then this one again."),
        ("PatchEmbedding(3, 4, 8)", "Run the cell that begins with `class PatchEmbedding`"),
        ("keep('patchify')", "`keep` is not imported yet. Run the cells from the top"),
    ],
)
def test_a_name_of_the_course_says_which_cell(code: str, said: str) -> None:
    assert said in explain_missing_name_in(code)
    assert said in explain_missing_name_in(
        compile(code, "cell", "exec").replace(co_name="<cell line: 1>")
    )  # as IPython 7 has it


def explain_after_cells(*cells: str, name: str = "patchify") -> str:
    """Return what a check says after these cells, the last of which is its own."""
    shell = InteractiveShell()
    try:
        shell.history_manager.input_hist_raw = ["", *cells]
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(notebook_or_script, "find_ipython_shell", lambda: shell)
            return explain_outdated_answer(course().exercises[name])
    finally:
        shell.history_manager.end_session()


RIGHT, CHECK = "def patchify(images, patch_size):\n    return images", 'check("patchify", patchify)'


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        ((RIGHT, RIGHT + ")"), 2),
        ((RIGHT, "%matplotlib inline\n!ls\n\n" + RIGHT + ")"), 5),
        ((RIGHT, RIGHT + ")", "print('def patchify(images')", "other = 'patchify'"), 2),
        ((RIGHT, RIGHT + "\0"), 2),
    ],
    ids=["once", "below magics", "with another cell after it", "a NUL"],
)
def test_a_syntax_error_in_the_last_cell_with_the_exercise_is_reported(cells: tuple[str, ...], line: int) -> None:
    assert explain_after_cells(*cells, CHECK).startswith(
        f"Line {line} of the last cell with `def patchify` has a syntax error"
    )


def test_a_class_is_called_a_class() -> None:
    words = explain_after_cells("class Mlp(nn.Module):\n    def forward(self", 'check("Mlp", Mlp)', name="Mlp")
    assert words.startswith("Line 2 of the last cell with `class Mlp` has a syntax error: this is about the `Mlp` from")


@pytest.mark.parametrize(
    "cells",
    [
        (),
        (RIGHT,),
        (RIGHT + ")", RIGHT),
        ("%matplotlib inline\nawait 1\n" + RIGHT,),
        ("# def patchify(\n(", "text = 'def patchify'("),
        ("def patchify_all(", "class patchify("),
    ],
    ids=["no cell", "none", "mended", "magics and await", "only its name in other text", "another name"],
)
def test_without_one_nothing_is_said(cells: tuple[str, ...]) -> None:
    assert explain_after_cells(*cells, CHECK) == ""


def test_a_check_in_its_exercises_own_cell_is_about_that_cell() -> None:
    assert explain_after_cells(RIGHT + ")", f"{RIGHT}\n{CHECK}") == ""


@pytest.mark.parametrize("shell", [None, SimpleNamespace(), SimpleNamespace(history_manager=None)])
def test_without_a_history_nothing_is_said(shell: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook_or_script, "find_ipython_shell", lambda: shell)
    assert explain_outdated_answer(course().exercises["patchify"]) == ""


@pytest.mark.parametrize("code", ["patchfiy", "def inside():\n    return patchify\ninside()"])
def test_of_any_other_name_nothing_is_said(code: str) -> None:
    assert explain_missing_name_in(code) == ""


STUB = "def patchify(images, patch_size):\n    raise NotImplementedError"
NAMED = RIGHT.replace("patchify", "patchfy")


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ([("a", STUB), ("a", RIGHT.replace(":", "")), ("b", CHECK)], "Line 1 of the last cell with `def patchify` has"),
        ([("a", RIGHT), ("a", NAMED), ("b", CHECK)], "defines `patchfy` now: this is about the `patchify` from before"),
        ([("a", STUB), ("a", NAMED), ("b", CHECK)], "defines `patchfy` now: this is about the `patchify` from before"),
        ([("a", RIGHT), ("c", NAMED), ("b", CHECK)], ""),
        ([("a", RIGHT), ("a", NAMED), ("c", RIGHT), ("b", CHECK)], ""),
        ([(None, RIGHT), (None, NAMED), ("b", CHECK)], ""),
    ],
    ids=["a stub, then no colon", "renamed", "a renamed stub", "in another cell", "moved", "no cell known"],
)
def test_check_compares_with_the_cell_as_it_ran_last(
    cells: list[tuple[str | None, str]], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = InteractiveShell()
    monkeypatch.setattr(notebook_or_script, "find_ipython_shell", lambda: shell)
    for name in ("_last_run", "_home_of"):
        monkeypatch.setattr(notebook_or_script, name, {})
    shell.events.register("pre_run_cell", notebook_or_script.remember_cell_source)
    try:
        shell.run_cell("from vit_course import check", store_history=True)
        with contextlib.redirect_stdout(io.StringIO()):
            for cell, source in cells:
                result = shell.run_cell(source, store_history=True, cell_id=cell)
        report = result.result
        assert says in (report.problem or report.older or ""), str(report)
        assert "not written yet" not in str(report.problem)
    finally:
        shell.history_manager.end_session()
