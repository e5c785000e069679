"""All attacks by kind, and how one is handed in."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import nbformat

from tests.e2e.attacks import honest, sources
from tests.e2e.attacks.attack import FORGE, RIGHT, WRONG, Attack
from tests.e2e.submissions import mark
from tests.outline import POINTS

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"


def read_table(kind: str) -> list[Attack]:
    """Read a table of attacks.

    ``before`` names what stands above an ``answer``, as a right or wrong one, or what is ``shared``; ``before_first``
    names what stands above the ``first`` cell; ``honest`` is a share of the exercise's points.
    """
    table = tomllib.loads((Path(__file__).parent / f"{kind}.toml").read_text("utf-8"))
    texts = {"right": RIGHT, "wrong": WRONG, "forge": FORGE} | table.pop("shared", {})
    attacks = []
    for name, words in table.items():
        for part, above in (("answer", "before"), ("first", "before_first")):
            parts = [*(texts[each] for each in words.pop(above, ())), words.pop(part, "")]
            words[part] = "\n".join(filter(None, parts))
        attack = Attack(name, **words | {"flags": tuple(words.get("flags", ()))})
        attacks.append(replace(attack, honest=attack.honest * POINTS[attack.lesson][attack.exercise]))
    return attacks


TABLES = (
    *("forgeries", "reading", "escapes", "protocol", "resources", "leftovers"),
    *("weights", "oracles", "training_fixtures"),
)
KINDS: dict[str, list[Attack]] = {kind.replace("_", " "): read_table(kind) for kind in TABLES} | {
    "sources": sources.ATTACKS,
    "honest": honest.ATTACKS,
}
ATTACKS: list[Attack] = [attack for attacks in KINDS.values() for attack in attacks]


def read_released(lesson: str) -> nbformat.NotebookNode:
    """The notebook that students get."""
    return nbformat.read(NOTEBOOKS / f"{lesson}.ipynb", as_version=4)


def hand_in(folder: Path, student: str, attack: Attack) -> Path:
    """Put an attack's notebook into a class folder's `submitted/` tree."""
    notebook = read_released(attack.lesson)
    for cell in notebook.cells:
        grade_id = mark(cell).get("grade_id")
        if grade_id == attack.exercise:
            cell.source = attack.answer
        if grade_id == f"check-{attack.exercise}" and attack.check is not None:
            cell.source = attack.check
    if attack.first:
        notebook.cells.insert(0, nbformat.v4.new_code_cell(attack.first))
    if attack.then:
        notebook.cells.append(nbformat.v4.new_code_cell(attack.then))
    path = folder / "submitted" / student / attack.lesson / f"{attack.lesson}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)
    return path
