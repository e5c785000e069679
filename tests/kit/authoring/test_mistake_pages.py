"""Pages about known mistakes: their text is the library's, no path is ever lost, and other courses need none."""

from __future__ import annotations

import pytest

from exercise_kit.authoring.mistake_pages import (
    PagesError,
    add_new_pages_to_list,
    escape_markdown,
    make_anchor,
    map_redirects,
)
from exercise_kit.engine.course import course
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.run import check
from tests.answers import find_known_mistake

COLUMN = "patchify/column-order"


def test_a_published_page_stays_or_leads_elsewhere() -> None:
    assert map_redirects(f"# a comment\n\n{COLUMN}\n") == {}
    assert map_redirects(f"patchify/columns -> {COLUMN}\n{COLUMN}\n") == {"patchify/columns": COLUMN}


@pytest.mark.parametrize(
    ("published", "said"),
    [
        ("patchify/columns\n", "`patchify/columns -> EXERCISE/NEW-NAME`"),
        ("patchify/a -> patchify/b\n", "patchify/a -> patchify/b"),
        (f"{COLUMN} -> patchify/channels-last-inside-a-token\n", "lead"),
    ],
    ids=["lost", "leads nowhere", "both there and elsewhere"],
)
def test_a_page_that_would_be_lost_is_named_with_what_to_write(published: str, said: str) -> None:
    with pytest.raises(PagesError, match=said):
        map_redirects(published)


def test_new_pages_join_the_list_and_none_leaves_it() -> None:
    before = f"# on top\npatchify/columns -> {COLUMN}\n"
    after = add_new_pages_to_list(before)
    lines = after.splitlines()
    assert lines[0] == "# on top"
    assert f"patchify/columns -> {COLUMN}" in lines
    assert COLUMN in lines
    assert lines[1:] == sorted(set(lines[1:]))
    assert add_new_pages_to_list(after) == after


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("rows * columns", r"rows \* columns"),
        ("`a*b` and head_dim", r"`a*b` and head\_dim"),
        ("$5 <script> [x](y)", r"\$5 \<script\> \[x\](y)"),
        ("two\n  lines", "two lines"),
    ],
)
def test_words_stay_words(text: str, markdown: str) -> None:
    assert escape_markdown(text) == markdown


@pytest.mark.parametrize(
    ("heading", "expected"),
    [("Two kinds of axes", "two-kinds-of-axes"), ("Before or after?", "before-or-after"), ("A, B", "a-b")],
)
def test_anchors_are_those_of_github(heading: str, expected: str) -> None:
    assert make_anchor(heading) == expected


def strips(images: object, patch_size: int) -> object:
    """Stand for what somebody's own class has."""
    raise NotImplementedError


def test_a_mistake_that_is_not_the_course_s_own_has_no_page() -> None:
    exercise = Exercise("patchify", "01_patchify")
    exercise.misconception("Why?", "01_patchify, Order")(strips)
    assert exercise.misconceptions[0].page == ""


def test_check_leads_to_the_page_and_a_bug_hunt_to_that_of_its_exercise() -> None:
    wrong = find_known_mistake("patchify", "column order")
    address = f"{course().site}mistakes/patchify/column-order.html"
    for name in ("patchify", "fix_patchify"):
        report = check(name, *wrong.objects)
        assert report.map_pages_to_read() == {"column order": address}
