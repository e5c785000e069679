"""The route through a course: its table, the minutes, what stands in lessons and README, and what is refused."""

from __future__ import annotations

import json

import pytest

from exercise_kit.authoring.build import build
from exercise_kit.authoring.lesson import AuthoringError, read_lesson
from exercise_kit.authoring.minutes import (
    CODE_CHARACTERS_A_MINUTE,
    WORDS_A_MINUTE,
    count_visible_words,
    estimate_minutes,
)
from exercise_kit.authoring.route import LessonRoute, Task, read_route
from exercise_kit.engine.course_named import read_package_name

from .conftest import GOOD

ROUTE = """
[01_double]
core = true
double = { minutes = 10, difficulty = 2, importance = 5 }
why-two = { minutes = 5, difficulty = 1, importance = 3, skip = true }
"a walk around the block" = { minutes = 3, difficulty = 1, importance = 1, skip = true }
"""


@pytest.fixture
def repository_with_route(repository):
    """The small repository with a route, an outline and a place for the hours."""
    folder = repository.root / read_package_name() / "exercises"
    folder.mkdir(parents=True)
    (folder / "route.toml").write_text(ROUTE, encoding="utf-8")
    (repository.root / "README.md").write_text("<!-- table: hours -->\n\n<!-- end of table -->\n", encoding="utf-8")
    return repository


def build_and_read_title(routed, text=GOOD):
    routed.write(text, "01_double")
    build(routed.root)
    cells = json.loads((routed.root / "notebooks" / "01_double.ipynb").read_bytes())["cells"]
    return "".join(cells[0]["source"]), ["".join(each["source"]) for each in cells]


def test_a_lesson_gets_its_table_from_the_route(repository_with_route):
    title, _ = build_and_read_title(repository_with_route)
    assert "| `double` | 10 | 3 | 2 | 5 |" in title
    assert "| written question: why-two (may be skipped) | 5 | 1.5 | 1 | 3 |" in title
    assert "| a walk around the block (may be skipped) | 3 | – | 1 | 1 |" in title
    assert "18 for the tasks" in title


def test_the_table_comes_where_the_source_has_its_mark(repository_with_route):
    title, _ = build_and_read_title(
        repository_with_route, GOOD.replace("# What a number", "# <!-- table: tasks -->\n#\n# What a number")
    )
    assert "<!--" not in title
    assert title.index("| `double` | 10 |") < title.index("What a number does")


@pytest.mark.parametrize(
    ("heading", "facts"),
    [
        ("### Exercise: `double`", "10 minutes · 3 points · difficulty 2 of 5 · importance 5 of 5"),
        (
            "## A walk around the block",
            "3 minutes · no points · difficulty 1 of 5 · importance 1 of 5 · may be skipped",
        ),
        ("## What `double` does", ""),
    ],
)
def test_what_the_route_says_of_a_task_stands_below_its_heading(repository_with_route, heading, facts):
    _, cells = build_and_read_title(
        repository_with_route, GOOD.replace("# ![A dot, alone]", f"# {heading}\n#\n# ![A dot, alone]")
    )
    found = next(each for each in cells if each.startswith(heading))
    assert found.startswith(f"{heading}\n\n*{facts}*\n\n![" if facts else f"{heading}\n\n![")


def test_minutes_that_are_no_longer_true_are_stale(repository_with_route):
    build_and_read_title(repository_with_route)
    assert build(repository_with_route.root, check=True).fresh
    longer = GOOD.replace("What a number does", "word " * 3 * WORDS_A_MINUTE + "What a number does")
    repository_with_route.write(longer, "01_double")
    stale = {path.name for path in build(repository_with_route.root, check=True).stale}
    assert {"01_double.ipynb", "outline.json", "README.md"} <= stale


def write_and_read_lesson(repository, text):
    return read_lesson(repository.root, repository.write(text, "01_double"))


def test_minutes_are_words_and_code_and_tasks(repository):
    words, lines = "# word\n" * 5 * WORDS_A_MINUTE, "x += 1\n" * 2 * (CODE_CHARACTERS_A_MINUTE // 4)
    text = f"# %% [markdown]\n# # Title\n#\n{words}\n# %%\n{lines}"
    route = LessonRoute(core=True, tasks={"a first walk": Task(7, 1, 1), "a second": Task(4, 1, 1, skip=True)})
    found = estimate_minutes(write_and_read_lesson(repository, text), route)
    assert (found.reading, found.core_reading, found.tasks, found.core_tasks) == (7, 7, 11, 7)
    assert (found.total, found.core) == (18, 14)


def test_a_section_whose_tasks_may_be_skipped_is_no_reading_of_the_core(repository):
    more = "\n# %% [markdown]\n# ## More\n#\n" + "# word\n" * 2 * WORDS_A_MINUTE
    asked = GOOD[GOOD.index("# %% exercise") :]
    text = f"# %% [markdown]\n# # Title\n{more}\n{asked}"
    skipped = {"double": Task(1, 1, 1, skip=True), "why-two": Task(1, 1, 1, skip=True)}
    found = estimate_minutes(write_and_read_lesson(repository, text), LessonRoute(core=True, tasks=skipped))
    assert (found.reading - found.core_reading) >= 2
    kept = {**skipped, "double": Task(1, 1, 1)}
    found = estimate_minutes(write_and_read_lesson(repository, text), LessonRoute(core=True, tasks=kept))
    assert found.core_reading == found.reading


def test_a_lesson_outside_the_core_takes_none_of_its_minutes(repository):
    found = estimate_minutes(
        write_and_read_lesson(repository, GOOD), LessonRoute(core=False, tasks={"double": Task(9, 1, 1)})
    )
    assert found.core == 0
    assert found.total >= 9


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("one two", 2),
        ("one\n<details><summary>Hint</summary>\n\nfolded words\n\n</details>\ntwo", 2),
        ("one ![a picture of\na dot](../figures/dot.svg) two", 2),
        ("one\n| a | table |\n|---|---|\ntwo · –", 2),
        ("one two?\n### BEGIN SOLUTION\nan answer\n### END SOLUTION", 2),
    ],
    ids=["words", "folded", "picture", "table", "answer"],
)
def test_only_visible_words_count(text, count):
    assert count_visible_words(text) == count


@pytest.mark.parametrize(
    "entry",
    [
        "double = 10",
        "double = { minutes = 10 }",
        "double = { minutes = 0, difficulty = 2, importance = 5 }",
        "double = { minutes = 10, difficulty = 6, importance = 5 }",
        "double = { minutes = 10, difficulty = 2, importance = 5, color = 3 }",
    ],
)
def test_an_entry_that_is_wrong_is_refused_with_its_place(repository_with_route, entry):
    (repository_with_route.root / read_package_name() / "exercises" / "route.toml").write_text(
        f"[01_double]\n{entry}\n", encoding="utf-8"
    )
    with pytest.raises(AuthoringError, match=r"route\.toml: \[01_double\] double: write \{ minutes"):
        read_route(repository_with_route.root)


def test_an_exercise_that_the_route_lacks_is_refused(repository_with_route):
    text = ROUTE.replace("double = {", "triple = {")
    (repository_with_route.root / read_package_name() / "exercises" / "route.toml").write_text(text, encoding="utf-8")
    repository_with_route.write(GOOD, "01_double")
    with pytest.raises(AuthoringError, match=r"'double' has no entry in .*route\.toml"):
        build(repository_with_route.root)


def test_a_course_without_a_route_keeps_its_own_tables(repository):
    title, cells = build_and_read_title(repository, GOOD.replace("# What a", "# | exercise | minutes |\n#\n# What a"))
    assert "| exercise | minutes |" in title
    assert not any("importance" in each for each in cells)
