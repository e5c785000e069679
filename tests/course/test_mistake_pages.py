"""The site's pages about known mistakes: one for each, found from the lists, and none with an answer."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from pathlib import Path

import pytest

from exercise_kit.authoring.mistake_pages import make_anchor, map_redirects, render_pages
from exercise_kit.engine.library import iterate_exercises_with_own_mistakes
from tests.answers import find_known_mistake
from vit_course.exercises.catalog import EXERCISES
from vit_course.staff.references import REFERENCE

ROOT = Path(__file__).parents[2]
EXERCISE_NAMES = [each.name for each in iterate_exercises_with_own_mistakes()]


@pytest.fixture(scope="module")
def mistake_pages() -> dict[str, str]:
    return render_pages()


def _find_links(text: str) -> set[str]:
    return set(re.findall(r"\]\(/([\w/-]+)\.md\)", text))


def test_every_mistake_has_a_page_of_its_own_that_the_lists_lead_to(mistake_pages: dict[str, str]) -> None:
    known = [wrong.page for exercise in iterate_exercises_with_own_mistakes() for wrong in exercise.misconceptions]
    assert len(known) == len({each.lower() for each in known}), "two pages with one address"
    assert set(known) <= set(mistake_pages)
    by_exercise = {
        page for each in _find_links(mistake_pages["mistakes/by_exercise"]) for page in _find_links(mistake_pages[each])
    }
    by_symptom = {
        page for each in _find_links(mistake_pages["mistakes/by_symptom"]) for page in _find_links(mistake_pages[each])
    }
    assert (
        set(known) == {each for each in by_exercise if each in known} == {each for each in by_symptom if each in known}
    )


def test_addresses_need_no_quoting(mistake_pages: dict[str, str]) -> None:
    assert [each for each in mistake_pages if not re.fullmatch(r"[\w/-]+", each, re.ASCII)] == []


def test_links_lead_to_pages_and_to_headings_of_lessons(mistake_pages: dict[str, str]) -> None:
    there = {*mistake_pages, "mistakes/index"}
    headings = {
        stem: {make_anchor(each.removeprefix("# ").lstrip("# ")) for each in re.findall(r"^# #+ .*$", source, re.M)}
        for stem, source in ((path.stem, path.read_text("utf-8")) for path in (ROOT / "solutions").glob("*.py"))
    }
    for page, text in mistake_pages.items():
        assert _find_links(text) <= there, page
        for lesson, heading in re.findall(r"\]\(/lessons/(\w+)\.ipynb(?:#([\w-]+))?\)", text):
            assert lesson in headings, page
            assert not heading or heading in headings[lesson], (page, heading)


@pytest.mark.parametrize("name", EXERCISE_NAMES)
def test_no_page_has_a_line_of_an_answer(name: str, mistake_pages: dict[str, str]) -> None:
    answers = [inspect.getsource(each) for each in REFERENCE[name]]
    answers += [
        inspect.getsource(each) for wrong in EXERCISES[name].misconceptions for each in _remove_lambdas(wrong.objects)
    ]
    lines = {line for source in answers for line in _list_assignments_and_returns(source)}
    for wrong in EXERCISES[name].misconceptions:
        text = mistake_pages[wrong.page]
        code = [line.strip() for block in re.findall(r"```python\n(.*?)```", text, re.S) for line in block.splitlines()]
        assert [line for line in code if line] == [code[0], code[-1]]
        assert code[0].startswith("from vit_course import check")
        assert code[-1].startswith(f'check("{name}", ')
        assert [line for line in lines if line in text] == []


def _remove_lambdas(objects: tuple[object, ...]) -> list[object]:
    named = (each for each in objects if inspect.isfunction(each) or inspect.isclass(each))
    return [each for each in named if each.__name__ != "<lambda>"]


def _list_assignments_and_returns(source: str) -> list[str]:
    """The statements of a source that say more than a name or a keyword."""
    tree = ast.parse(textwrap.dedent(source))
    bodies = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.Return | ast.AugAssign)]
    return [each for each in bodies if len(each) > 15]


def test_a_page_says_what_it_is_asks_its_question_and_shows_training(mistake_pages: dict[str, str]) -> None:
    page = mistake_pages["mistakes/patchify/column-order"]
    wrong = find_known_mistake("patchify", "column order")
    assert "# `patchify`: column order" in page
    assert wrong.cause.explanation in page
    assert f"> {wrong.cause.question}" in page
    assert f"{wrong.effect.accuracy:.1%}" in page
    assert "(/lessons/01_patchify.ipynb#two-kinds-of-axes)" in page
    description = re.search(r'description: "(.*)"\n', page)[1]
    assert description.startswith(wrong.cause.explanation)
    assert str(wrong.effect.kind) in description


def test_no_published_page_is_lost() -> None:
    map_redirects((ROOT / "docs" / "site" / "published.txt").read_text(encoding="utf-8"))
