"""What the builder writes between marks: counts, tables, addresses; and what it says of an old one."""

from __future__ import annotations

import pytest

from exercise_kit.authoring.build import build
from exercise_kit.authoring.lesson import AuthoringError
from exercise_kit.engine.course import course

from .conftest import ADDRESS, GOOD

PAGE = """\
We know <!-- count: exercises -->7<!-- end --> exercises,
in <!-- at: colab/notebooks/01_double.ipynb -->[here](old)<!-- end -->
and <!-- at: site/guides/ -->[there](https://example.org)<!-- end -->.
"""
SITE = "https://example.org/course/"


@pytest.fixture
def page_with_marks(repository):
    project = f'[project]\nurls = {{ Repository = "{ADDRESS}/", Homepage = "{SITE}" }}\n'
    (repository.root / "pyproject.toml").write_text(project, encoding="utf-8")
    repository.write(GOOD.replace("What a number does", "What [a number](/notes/two.html) does"))
    (repository.root / "docs").mkdir()
    path = repository.root / "docs" / "page.md"
    path.write_text(PAGE, encoding="utf-8")
    return path


def test_marks_are_filled_and_the_addresses_are_those_of_one_line(repository, page_with_marks):
    build(repository.root)
    text = page_with_marks.read_text(encoding="utf-8")
    assert f"exercises -->{len(course().exercises)}<!-- end --> exercises" in text
    assert (
        "[here](https://colab.research.google.com/github/someone/some_course/blob/main/notebooks/01_double.ipynb)"
        in text
    )
    assert f"[there]({SITE}guides/)" in text
    assert f"[a number]({SITE}notes/two.html)" in (repository.root / "notebooks/01_double.ipynb").read_text("utf-8")


def test_an_old_count_is_told_and_an_old_address_is_stale(repository, page_with_marks):
    build(repository.root)
    right = page_with_marks.read_text(encoding="utf-8")
    page_with_marks.write_text(right.replace("<!-- end --> exercises", "9<!-- end --> exercises"), encoding="utf-8")
    report = build(repository.root, check=True)
    assert (report.fresh, [path.name for path in report.counts]) == (True, ["page.md"])
    page_with_marks.write_text(right.replace(SITE, "https://example.org/old/"), encoding="utf-8")
    report = build(repository.root, check=True)
    assert (report.counts, [path.name for path in report.stale]) == ((), ["page.md"])
    assert build(repository.root, check=True, pages=False).fresh


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "So <!-- count: excercises --><!-- end -->.",
            r"docs.page\.md: nothing to quote is called 'excercises'; there is",
        ),
        ("So\n<!-- count: exercises --><!-- end -->.", r"docs.page\.md:2: this mark begins a line"),
    ],
)
def test_a_mark_that_cannot_be_filled_is_named_with_its_page(repository, page_with_marks, text, message):
    page_with_marks.write_text(text, encoding="utf-8")
    with pytest.raises(AuthoringError, match=message):
        build(repository.root)
