"""All attacks by kind, and how one is handed in."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat

from tests.e2e.attacks import sources
from tests.e2e.attacks.attack import RIGHT, WRONG, Attack
from tests.e2e.submissions import read_mark
from tests.outline import POINTS

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"


def _read_toml(kind: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / f"{kind}.toml").read_text("utf-8"))


TEXTS: dict[str, str] = {
    "right": RIGHT,
    "wrong": WRONG,
    "good": "import torch\n" + RIGHT.replace("def patchify", "def good"),
    **_read_toml("shared"),
}


def _join_lines(above: list[str], own: str | None, below: Sequence[str] = ()) -> str:
    return "\n".join([*above, *([] if own is None else [own]), *below])


def read_attacks(kind: str, computed: Mapping[str, dict[str, Any]] = {}) -> list[Attack]:
    """Read a table of attacks, and below it what is computed in its form."""
    return make_attacks(_read_toml(kind) | computed)


def make_attacks(table: dict[str, Any]) -> list[Attack]:
    """Attacks from a table.

    ``before`` and ``after`` name what stands above and below an ``answer``: a right or wrong one, or what is shared by
    the table or by all; ``before_first`` names what stands above the ``first`` cell; ``honest`` is a share of the
    exercise's points. What is ``usual`` holds of each attack that says nothing else.
    """
    table = dict(table)
    texts = TEXTS | table.pop("shared", {})
    usual = table.pop("usual", {})
    attacks = []
    for name, own in table.items():
        words = usual | own
        above, below = ([texts[each] for each in words.pop(part, ())] for part in ("before", "after"))
        words["answer"] = _join_lines(above, words.get("answer"), below)
        words["first"] = _join_lines([texts[each] for each in words.pop("before_first", ())], words.get("first"))
        attack = Attack(name, **words | {"flags": tuple(words.get("flags", ()))})
        attacks.append(replace(attack, honest=attack.honest * POINTS[attack.lesson][attack.exercise]))
    return attacks


TABLES = (
    *("forgeries", "reading", "escapes", "protocol", "resources", "leftovers"),
    *("weights", "oracles", "training_fixtures", "honest"),
)
KINDS: dict[str, list[Attack]] = {kind.replace("_", " "): read_attacks(kind) for kind in TABLES} | {
    "sources": make_attacks(sources.TABLE)
}
ATTACKS: list[Attack] = [attack for attacks in KINDS.values() for attack in attacks]


def read_released_notebook(lesson: str) -> nbformat.NotebookNode:
    """The notebook that students get."""
    return nbformat.read(NOTEBOOKS / f"{lesson}.ipynb", as_version=4)


def hand_in(folder: Path, student: str, attack: Attack) -> Path:
    """Put an attack's notebook into a class folder's `submitted/` tree."""
    notebook = read_released_notebook(attack.lesson)
    for cell in notebook.cells:
        grade_id = read_mark(cell).get("grade_id")
        if grade_id == attack.exercise:
            cell.source = attack.answer
        if grade_id == f"check-{attack.exercise}" and attack.check is not None:
            cell.source = attack.check
    if attack.first:
        notebook.cells.insert(1, nbformat.v4.new_code_cell(attack.first))  # below the title
    if attack.then:
        notebook.cells.append(nbformat.v4.new_code_cell(attack.then))
    path = folder / "submitted" / student / attack.lesson / f"{attack.lesson}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)
    return path
