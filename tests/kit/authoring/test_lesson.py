from __future__ import annotations

import pytest

from exercise_kit.authoring.lesson import AuthoringError, Role, read_lesson

from .conftest import GOOD


def read_lesson_text(repository, text, name="01_double"):
    return read_lesson(repository.root, repository.write(text, name))


@pytest.mark.parametrize(
    "header", ['# %% question="why-two" points=1.5', '# %% [markdown] question="why-two" points=1.5']
)
@pytest.mark.parametrize("marker", ["# ### {} SOLUTION", "### {} SOLUTION"])
def test_a_question_reads_alike_however_it_is_commented(repository, header, marker):
    text = GOOD.replace('# %% question="why-two" points=1.5', header)
    for word in ("BEGIN", "END"):
        text = text.replace(f"# ### {word} SOLUTION", marker.format(word))
    question = read_lesson_text(repository, text).list_cells_of_role(Role.QUESTION)[0]
    assert question.source == (
        "Why two?\n\n### BEGIN SOLUTION\nA pair has two.\n\n**Rubric.** 1.5 points for the pair.\n### END SOLUTION"
    )


def test_a_comment_that_looks_like_a_magic_stays_a_comment(repository):
    cell = read_lesson_text(
        repository, GOOD.replace("numbers = [1, 2, 3]", "# Why?\n# cat it\nnumbers = [1, 2, 3]")
    ).cells[1]
    assert cell.source == "# Why?\n# cat it\nnumbers = [1, 2, 3]"


def test_a_yaml_header_of_jupytext_is_no_cell(repository):
    header = "# ---\n# jupyter:\n#   jupytext: {}\n# ---\n\n"
    lesson = read_lesson_text(repository, header + GOOD)
    assert [cell.number for cell in lesson.cells] == list(range(1, 8))
    assert lesson.cells[0].line == 6


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "# ---\n# jupyter:\n#   kernelspec:\n#     name: python3\n# ---\n\n{}",
            "jupytext cannot read the file's header: 'display_name' is a required",
        ),
        ("import os\n\n{}", r"^solutions/01_double\.py:1: text before the first '# %%' header"),
        ("{}\n# %% [raw]\n# text\n", r"01_double\.py:\d+ \(cell 8\): a raw cell"),
        ("print('hello')\n", "no '# %%' header"),
    ],
    ids=["a wrong YAML header", "text before the first header", "a raw cell", "no cells"],
)
def test_what_is_no_lesson_is_refused_with_its_place(repository, text, words):
    with pytest.raises(AuthoringError, match=words):
        read_lesson_text(repository, text.format(GOOD))


def test_a_file_that_is_not_utf8_is_refused(repository):
    path = repository.write()
    path.write_bytes(path.read_bytes() + b"# \xff\n")
    with pytest.raises(AuthoringError, match="not UTF-8 text"):
        read_lesson(repository.root, path)
