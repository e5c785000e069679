"""All attacks by kind, and how one is handed in."""

from __future__ import annotations

import tomllib
from pathlib import Path

import nbformat

from tests.e2e.attacks import honest, oracles, sources, training_fixtures, weights
from tests.e2e.attacks.attack import RIGHT, WRONG, Attack
from tests.e2e.submissions import mark

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"


def read_table(kind: str) -> list[Attack]:
    """Read a table of attacks: ``before`` names what stands above an ``answer``, a right or wrong one or ``shared``."""
    table = tomllib.loads((Path(__file__).parent / f"{kind}.toml").read_text("utf-8"))
    texts = {"right": RIGHT, "wrong": WRONG} | table.pop("shared", {})
    attacks = []
    for name, words in table.items():
        parts = [*(texts[each] for each in words.pop("before", ())), words.pop("answer", "")]
        flags = tuple(words.pop("flags", ()))
        attacks.append(Attack(name, answer="\n".join(filter(None, parts)), flags=flags, **words))
    return attacks


TABLES = ("forgeries", "reading", "escapes", "protocol", "resources", "leftovers")
KINDS: dict[str, list[Attack]] = {kind: read_table(kind) for kind in TABLES} | {
    "weights": weights.ATTACKS,
    "sources": sources.ATTACKS,
    "honest": honest.ATTACKS,
    "oracles": oracles.ATTACKS,
    "training fixtures": training_fixtures.ATTACKS,
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
    path = folder / "submitted" / student / attack.lesson / f"{attack.lesson}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)
    return path
