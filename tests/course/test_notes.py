"""Side notes: every one is linked from a lesson, and every link leads to one; their code is Python.

Some of it runs below the cells of its lesson, and finds what the note says.
"""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from typing import Any

import pytest
import torch

from tests.course.test_quoted_numbers import ROOT, read_lesson_text, read_note

sys.path.insert(0, str(ROOT / "benchmarks"))
from short_lessons import play_lesson, run_note

NOTES = ROOT / "docs" / "site" / "notes"
NAMES = sorted(path.stem for path in NOTES.glob("*.md") if path.stem != "index")
LESSONS = sorted(path.stem for path in (ROOT / "solutions").glob("*.py"))
LINK = re.compile(r"\]\(/notes/(\w+)\.html\)")


def test_every_note_is_linked_from_a_lesson_and_every_link_leads_to_a_note():
    linked = {name for lesson in LESSONS for name in LINK.findall(read_lesson_text(lesson))}
    assert linked == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_note_begins_with_its_title_and_says_whose_it_is(name):
    title, *rest = (NOTES / f"{name}.md").read_text("utf-8").split("\n")
    assert title.startswith("# ")
    assert "side note to lesson" in " ".join(rest).lower()


@pytest.mark.parametrize("name", NAMES)
def test_the_code_of_a_note_is_python(name):
    for block in re.findall(r"^```python\n(.*?)^```", (NOTES / f"{name}.md").read_text("utf-8"), re.DOTALL | re.M):
        assert ast.parse(block).body


LAST_CELLS = {"01": "by_convolution = ", "02": "explore_positions(tables", "03": "theirs = nn.MultiheadAttention"}


@cache
def _run_lesson_cells(number: str) -> dict[str, Any]:
    (name,) = (each for each in LESSONS if each.startswith(number))
    return play_lesson(name, LAST_CELLS[number], 0)[0]


def run_note_below_lesson(number: str, name: str) -> dict[str, Any]:
    """The names that a note's code leaves, below the cells of its lesson."""
    assert f"lesson {number}" in read_note(name)
    names = dict(_run_lesson_cells(number))
    run_note(name, names)
    return names


def test_the_directions_keep_what_is_said():
    names = run_note_below_lesson("01", "directions")
    assert names["left"].item() == pytest.approx(1 / 4, abs=0.03)
    assert names["shares"]["48 random"] == pytest.approx(1 / 16, abs=0.01)


def test_addresses_say_where_a_number_stood(capsys):
    run_note_below_lesson("01", "addresses")
    printed = capsys.readouterr().out.strip()
    assert printed == "[1002, 1003, 1012, 1013, 1102, 1103, 1112, 1113]"
    assert printed.strip("[]") in read_note("addresses")


def test_one_matrix_looks_five_to_the_left_from_row_five_on():
    looked_at = run_note_below_lesson("02", "positions")["weights"].argmax(dim=1)
    assert torch.equal(looked_at[5:], torch.arange(59))
    assert set(looked_at[:5].tolist()) <= {0, 1, 2}


def test_libraries_resize_differently(capsys):
    run_note_below_lesson("02", "resizing")
    shares = [int(share) for share in re.findall(r"by (\d+)%", capsys.readouterr().out)]
    assert len(shares) == 2
    assert min(shares) > 1


def test_heads_are_views_of_the_same_numbers():
    assert 99 in run_note_below_lesson("03", "attention")["x"][0, 4]


def test_heads_set_by_hand_find_their_places():
    names = run_note_below_lesson("03", "heads_by_hand")
    assert (names["table"] @ names["mirror"] - names["opposite"]).abs().max() < 1e-5
    hue, around, mirrored = (names["weights"][0, head].argmax(dim=1).reshape(24, 20) for head in range(3))
    assert (around == torch.arange(480).reshape(24, 20)).float().mean() > 0.95
    assert (mirrored == torch.arange(480).reshape(24, 20).flip(1)).float().mean() > 0.8
    assert not torch.equal(hue, around)
