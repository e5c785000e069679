"""Nothing of a submitted notebook but its cells' text reaches nbgrader's pages, and a deleted cell comes back."""

from __future__ import annotations

import logging
import re

import nbformat
import pytest
from nbconvert.filters import markdown2html_mistune
from nbgrader.nbgraderformat import MetadataValidator
from nbgrader.utils import compute_checksum

from exercise_kit.nbgrader.cleaning import PLACE, CleanCells, RestoreCells, TameMarkdown, sanitize_markdown
from tests.html import Page
from tests.kit.nbgrader.conftest import CHECK, EXERCISE


def make_code_cell(source, mark=None, **metadata):
    if mark is not None:
        metadata["nbgrader"] = mark
    return nbformat.v4.new_code_cell(source, metadata=metadata)


def clean_cells(resources, *cells, **metadata):
    notebook = nbformat.from_dict({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells})
    cleaned, _ = CleanCells().preprocess(notebook, resources)
    nbformat.validate(cleaned)
    MetadataValidator().validate_nb(cleaned)
    return cleaned


@pytest.mark.parametrize(
    "mark",
    [
        {"grade_id": "check-double", "schema_version": 99},
        {"grade_id": "check-double", "schema_version": 0, "points": "many"},
        {"grade_id": "check-double", "schema_version": 3, "points": 1000, "grade": False, "solution": True},
    ],
)
def test_a_forged_mark_becomes_the_gradebook_s(nbgrader_resources, mark):
    cleaned = clean_cells(nbgrader_resources, make_code_cell("1", mark))
    (cell,) = cleaned.cells
    found = cell.metadata.nbgrader
    assert (found.points, found.grade, found.solution, found.schema_version) == (2, True, False, 3)


@pytest.mark.parametrize("mark", [{}, [], "x", {"grade_id": None}, {"grade_id": "<script>"}, {"grade_id": ["double"]}])
def test_a_mark_that_was_never_released_is_dropped(nbgrader_resources, mark):
    cell = clean_cells(nbgrader_resources, make_code_cell("1", mark)).cells[0]
    assert dict(cell.metadata) == {PLACE: 0}


def test_of_two_cells_with_one_mark_the_last_keeps_it(nbgrader_resources):
    mark = {"grade_id": "double", "schema_version": 3}
    first, second = clean_cells(nbgrader_resources, make_code_cell("first", mark), make_code_cell("second", mark)).cells
    assert "nbgrader" not in first.metadata
    assert second.metadata.nbgrader.grade_id == "double"


def test_a_cell_of_another_type_keeps_no_mark(nbgrader_resources):
    cell = nbformat.v4.new_markdown_cell("1", metadata={"nbgrader": {"grade_id": "double"}})
    assert "nbgrader" not in clean_cells(nbgrader_resources, cell).cells[0].metadata


def test_outputs_tags_titles_and_widgets_go(nbgrader_resources):
    shown = nbformat.v4.new_output("display_data", {"text/html": "<script>1</script>"})
    cell = make_code_cell("1", tags=['"><script>'])
    cell.outputs = [shown]
    cleaned = clean_cells(nbgrader_resources, cell, title="<script>", widgets={"state": {}})
    assert cleaned.metadata == {PLACE: 0}
    assert "<script>" not in nbformat.writes(cleaned)


def test_ids_that_are_missing_odd_or_taken_become_new_ones(nbgrader_resources):
    cells = [make_code_cell("a"), make_code_cell("b"), make_code_cell("c")]
    cells[0].id, cells[1].id, cells[2].id = "<script>", "ok", "x" * 99
    assert [cell.id for cell in clean_cells(nbgrader_resources, *cells).cells] == ["cell-0", "ok", "cell-2"]


@pytest.mark.parametrize(
    ("attached", "kept"),
    [
        ({"a.png": {"image/png": "AAAA", "text/html": "<script>"}}, {"a.png": {"image/png": "AAAA"}}),
        ({"b.svg": {"image/svg+xml": "<svg onload=1>"}, "../c.png": {"image/png": "AAAA"}}, {}),
        ({"a.png": "x", "b.png": {"image/png": 7}, "c.png": {"image/png": "\ud800"}}, {}),
        ({"a.png": {"image/png": '"><script>'}}, {}),
    ],
)
def test_only_pictures_stay_attached(nbgrader_resources, attached, kept):
    cell = nbformat.v4.new_markdown_cell("![a](attachment:a.png)")
    cell["attachments"] = attached
    assert clean_cells(nbgrader_resources, cell).cells[0].get("attachments", {}) == kept


@pytest.mark.parametrize(
    "live",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<svg onload=alert(1)>",
        "<iframe src='https://example.org'></iframe>",
        "<a href='jav&#x61;script:alert(1)'>x</a>",
        "[x](jav&#x61;script:alert(1))",
        "[x]: javascript:alert(1)\n\n[x]",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "<style>*{display:none}</style>",
        "<form action='https://example.org'><input></form>",
        "![x](https://example.org/pixel.png)",
        r"$\href{javascript:alert(1)}{x}$",
        "<div style='position:fixed' id='x' class='y'>cover</div>",
        "![x](attachment:missing.png)",
        "<script>1</script> ![x](attachment:missing.png)",
        "</div>\n\n![x](attachment:missing.png)",
        "> " * 3000 + "deep",
        "`" * 9_000,
        "a\n=\n" * 20_000,
        "[" * 100_000,
    ],
)
def test_markdown_shows_and_does_nothing(live):
    html = sanitize_markdown(f"before\n\n{live}\n\nafter")
    page = Page(html)
    assert "<pre>before" in html or "after" in markdown2html_mistune(html), "the page's own markdown step breaks on it"
    assert not {*page.tags} & {"script", "svg", "iframe", "style", "form", "input"}
    assert all(name in ("href", "alt") for _, name, _ in page.attributes)
    assert all(value.startswith(("http", "mailto:")) for value in page.find_attribute_values("href"))
    assert "\\href" not in page.text.replace(live, "")
    assert "before" in page.text


@pytest.mark.parametrize(
    "live",
    [
        r"$\def\frac#1#2{Full marks}$",
        r"$\newcommand{\x}{Full marks}$",
        r"$$\let\sum\relax$$",
        r"\begin{equation}\href{https://example.org}{x}\end{equation}",
        r"$\require{html}\class{x}{y}\style{a}{b}\cssId{c}{d}\unicode{65}$",
        r"$\le&#116;\sum x$",
        r"<b>\le&#116;\sum x</b> $\le<!-- -->t\sum x$",
        r"$&#92;href{https://example.org}{x}$",
        r"$\hr&#101;f{https://example.org}{x}$",
        r"$\HREF{a}{b} \mmlToken{mi}[href=x]{a}$",
    ],
)
def test_no_command_of_mathematics_is_left_that_does_more_than_show(live):
    text = Page(sanitize_markdown(f"before {live} after")).text
    commands = set(re.findall(r"\\([A-Za-z]+)", text))
    assert commands <= {"frac", "sum", "begin", "end", "le"}, text


def test_mathematics_stays_as_it_was_typed():
    typed = (
        r"$\frac{\partial L}{\partial w_{ij}} \leq \left\lVert \mathbf{x} \right\rVert_2 \, \text{for } d \to \infty$"
    )
    assert Page(sanitize_markdown(typed)).text == typed
    assert r"print('\newline')" in Page(sanitize_markdown("```python\nprint('\\newline')\n```")).text


def test_what_students_write_stays():
    answer = "1. *First*, $a < b$ and `x<y`:\n\n```python\nif a:\n\n    b\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    html = sanitize_markdown(answer)
    for part in ("<ol>", "<em>First</em>", "$a &lt; b$", "<code>x&lt;y</code>", "<table>", "<pre>"):
        assert part in html
    assert "\n\n" not in html, "a blank line ends a block of HTML in markdown"


def test_a_very_long_answer_is_cut_and_says_so():
    assert "the answer has 60,000 characters" in sanitize_markdown("word " * 12_000)


@pytest.mark.parametrize("long", ["a\n=\n", "<a><div>", "\\\\[", "<script>"])
def test_what_would_keep_a_parser_busy_is_shown_as_it_was_typed(long):
    html = sanitize_markdown(long * (40_000 // len(long)))
    assert html.startswith("<div><pre>")
    assert Page(html).tags == ["div", "pre"]


def test_a_notebook_of_many_long_answers_is_parsed_up_to_a_limit():
    cells = [nbformat.v4.new_markdown_cell("*word* " * 1000) for _ in range(20)]
    tame, _ = TameMarkdown().preprocess(nbformat.v4.new_notebook(cells=cells), {})
    parsed = ["<em>" in cell.source for cell in tame.cells]
    assert parsed == [True] * 14 + [False] * 6


def test_a_pasted_picture_of_any_honest_size_is_shown():
    picture = f"data:image/png;base64,{'A' * 200_000}"
    assert picture in sanitize_markdown(f"My sketch: ![sketch]({picture})")


def test_an_unanswered_question_stays_as_nbgrader_knows_it():
    cell = nbformat.v4.new_markdown_cell("Why? <b>")
    cell.metadata.nbgrader = {"grade_id": "q", "points": 1, "grade": True, "solution": True, "locked": False}
    cell.metadata.nbgrader["checksum"] = compute_checksum(cell)
    same, _ = TameMarkdown().preprocess_cell(cell, {}, 0)
    assert same.source == "Why? <b>"
    cell.source = "Because <script>"
    other, _ = TameMarkdown().preprocess_cell(cell, {}, 0)
    assert "<script>" not in other.source


@pytest.mark.parametrize(
    "target", ["proof.html", "/formgrader", "//evil.example", "../a", "x/y.html", "data:text/html,x"]
)
def test_no_link_leads_to_the_instructor_s_own_server(target):
    assert sanitize_markdown(f"[here]({target})") == "<div><p><a>here</a></p></div>"
    assert "href" not in sanitize_markdown(f'<a href=" {target}">here</a>')


def test_links_to_other_places_stay():
    assert 'href="https://arxiv.org/abs/2010.11929"' in sanitize_markdown("[ViT](https://arxiv.org/abs/2010.11929)")
    assert 'href="#two"' in sanitize_markdown("[two](#two)")


def restore_cells(resources, *cells):
    # a logger of its own: an nbgrader application that another test starts keeps its own to itself
    mended, _ = RestoreCells(log=logging.getLogger("cells")).preprocess(
        nbformat.v4.new_notebook(cells=[*cells]), resources
    )
    return mended.cells


def test_a_deleted_check_comes_back_after_its_exercise(nbgrader_resources):
    answer = make_code_cell("double = 2 .__mul__", {"grade_id": "double"})
    mended = restore_cells(nbgrader_resources, make_code_cell("import torch"), answer, make_code_cell("double(3)"))
    assert [cell.source for cell in mended] == ["import torch", answer.source, CHECK["source"], "double(3)"]
    mark = mended[2].metadata.nbgrader
    assert (mark.grade_id, mark.grade, mark.points) == ("check-double", True, 2)


def test_where_no_mark_is_left_all_cells_come_back_and_one_line_says_so(nbgrader_resources, caplog):
    with caplog.at_level("INFO", "cells"):
        mended = restore_cells(nbgrader_resources, make_code_cell("x = 1"))
    assert [cell.source for cell in mended] == [EXERCISE["source"], CHECK["source"], "x = 1"]
    said = "put back, for the submission lacked them: 2 marked cells (double, check-double)"
    assert [each.getMessage() for each in caplog.records if "put back" in each.getMessage()] == [said]
