"""Side notes: every one is linked from a lesson, every link leads to one, and their code is Python."""

from __future__ import annotations

import ast
import re

import pytest

from tests.course.test_quoted_numbers import ROOT, read_lesson_text

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
