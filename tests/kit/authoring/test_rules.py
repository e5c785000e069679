"""Each rule, broken in an otherwise good lesson, is reported at the line where it is broken."""

from __future__ import annotations

import pytest

from exercise_kit.authoring.lesson import read_lesson
from exercise_kit.authoring.lint import find_problems

from .conftest import GOOD

EXERCISE = '# %% exercise="double"'
CHECK_HEADER = '# %% check="double" points=3'
CHECK = f'{CHECK_HEADER}\ncheck("double", double)\n'
QUESTION_HEADER = '# %% question="why-two" points=1.5'
BEGIN, END = "    ### BEGIN SOLUTION\n", "    ### END SOLUTION\n"
BODY = "    secret_factor = 2\n    return secret_factor * number\n"
FIGURE = "![A dot, alone](../figures/dot.svg)"

# what is replaced, by what, the text that stands in the reported line afterward, the message
BROKEN = {
    "no title": ("# # Doubling", "# Doubling", "# %% [markdown]", "starts with the title"),
    "second exercise of a name": (
        CHECK,
        f"{EXERCISE}\n{BEGIN.strip()}\n1\n{END.strip()}\n\n{CHECK}",
        EXERCISE,
        "is taken",
    ),
    "question named as the exercise": (
        QUESTION_HEADER,
        '# %% question="double" points=1',
        '# %% question="double"',
        "is taken",
    ),
    "exercise named setup": (EXERCISE, '# %% exercise="setup"', '# %% exercise="setup"', "'setup' is taken"),
    "second check": (CHECK, CHECK + "\n" + CHECK, CHECK_HEADER, "a second check of 'double'; the first is cell 5"),
    "check without exercise": (EXERCISE, '# %% exercise="triple"', CHECK_HEADER, "no exercise of that name above it"),
    "exercise without check": (CHECK, "", EXERCISE, "exercise 'double' has no check"),
    "no end marker": (END, "", BEGIN.strip(), "BEGIN SOLUTION without an END SOLUTION"),
    "no begin marker": (BEGIN, "", END.strip(), "END SOLUTION without a BEGIN SOLUTION"),
    "nested markers": (BODY, BODY + BEGIN, BEGIN.strip(), "inside a region that has not ended"),
    "empty region": (BODY, "", END.strip(), "an empty solution region"),
    "no region": (BEGIN + BODY + END, BODY, EXERCISE, "has no solution region"),
    "marker amid text": (BEGIN, "    ### BEGIN SOLUTION here\n", "BEGIN SOLUTION here", "on a line of its own"),
    "region in a plain cell": (
        "numbers = [1, 2, 3]",
        "### BEGIN SOLUTION\nnumbers = [1, 2, 3]\n### END SOLUTION",
        "# %%",
        "outside an exercise or question",
    ),
    "question without rubric": ("**Rubric.** ", "", QUESTION_HEADER, "no '**Rubric.**'"),
    "missing figure": ("dot.svg", "line.svg", "line.svg", "line.svg is missing from figures/"),
    "figure without words": ("![A dot, alone]", "![]", "dot.svg", "has no alternative text"),
    "figure elsewhere": ("../figures/dot.svg", "https://example.org/dot.svg", "example.org", "is not a figure of ours"),
    "figure in HTML": (FIGURE, '<img src="../figures/dot.svg">', "<img", "in prose; write ![what it shows]"),
    "link to a file": (FIGURE, "[next](02_next.ipynb)", "02_next", "a link to the file 02_next.ipynb"),
    "no points": (" points=3", "", '# %% check="double"', "has no points"),
    "points not a number": ("points=3", 'points="three"', "three", "points='three' is not a positive number"),
    "no positive points": ("points=3", "points=0", "points=0", "points=0 is not a positive number"),
    "true points": ("points=3", "points=true", "points=true", "points=True is not a positive number"),
    "points on an exercise": (EXERCISE, EXERCISE + " points=3", EXERCISE, "points stand on a check or a question"),
    "unreadable header": ("points=3", "points=three", "points=three", "cannot read"),
    "misspelled role": (EXERCISE, '# %% excercise="double"', '# %% excercise="double"', "unknown 'excercise'"),
    "two roles": (CHECK_HEADER, CHECK_HEADER + ' question="q"', CHECK_HEADER, "this one has check and question"),
    "no name": (QUESTION_HEADER, '# %% question="why two" points=1', "why two", "is no name"),
    "unknown tag": ('tags=["experiment"]', 'tags=["experimental"]', "experimental", "unknown tag experimental"),
    "tagged check": (CHECK_HEADER, CHECK_HEADER + ' tags=["experiment"]', CHECK_HEADER, "a skipped check would earn"),
    "another check": ('check("double", double)', 'check("triple", double)', CHECK_HEADER, 'check("double", ...)'),
    "points in the call": ("double)\n\n", "double, points=3)\n\n", CHECK_HEADER, "without points"),
    "check with more lines": (CHECK, CHECK + "print(1)\n", CHECK_HEADER, "a check cell is one line"),
    "check of nothing": ('check("double", double)', 'check("double")', CHECK_HEADER, "a check cell is one line"),
    "not Python": ("numbers = [1, 2, 3]", "numbers = [1, 2", "numbers = [1, 2", "not valid Python"),
    "magic": ("numbers = [1, 2, 3]", "numbers = 1\n# %matplotlib inline", "# %matplotlib", "uses no magics"),
    "empty cell": ("numbers = [1, 2, 3]\n", "", "# %%", "an empty cell"),
}


@pytest.mark.parametrize(("old", "new", "line", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_rule_is_reported_where_it_is_broken(repository, old, new, line, message):
    assert old in GOOD
    path = repository.write(GOOD.replace(old, new, 1))
    problems = find_problems(read_lesson(repository.root, path), repository.root)
    found = [problem for problem in problems if message in problem.message]
    assert found, [str(problem) for problem in problems]
    lines = path.read_text(encoding="utf-8").splitlines()
    assert any(line in lines[problem.line - 1] for problem in found), [str(problem) for problem in found]
    assert str(found[0]).startswith(f"solutions/01_double.py:{found[0].line} (cell {found[0].cell}): ")


def test_a_file_name_that_is_no_lesson_s_is_reported(repository):
    path = repository.write(name="Doubling")
    (problem,) = find_problems(read_lesson(repository.root, path), repository.root)
    assert str(problem) == "solutions/Doubling.py: a lesson's file is named NN_topic.py, two digits and lower case"
