"""Every clause of every statement is asked by a check, or is no demand: ``clauses.toml`` says which.

A statement is what a student reads before writing: the docstrings of the exercise's cell (a class's or function's own,
in their order), and the markdown of its section, from the last ``##`` heading above the cell on, where tables and
conventions stand. Of the docstrings every word has to be quoted, so that nobody adds a demand without its check; of the
section only what asks for something that the docstrings do not say. A docstring's ``>>>`` example is asked by the check
``test_its_own_example_comes_out``. The file that vit_cifar hands in has a section alone.
"""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import jupytext
import pytest

from tests.our_hidden_checks import hidden_checks
from vit_course.exercises.catalog import EXERCISES
from vit_course.exercises.forbidden_calls import RULES

ROOT = Path(__file__).parents[2]
CLAUSES = tomllib.loads(Path(__file__).with_name("clauses.toml").read_text("utf-8"))
EXAMPLE, FORBIDDEN = "test_its_own_example_comes_out", "forbidden_calls"
EXAMPLE_IS_NOT_ASKED = {"load_torchvision": "it needs torchvision, which all its checks do without"}
EACH = pytest.mark.parametrize("exercise", EXERCISES)


@cache
def read_statements():
    """Exercise → its docstrings, and the markdown of its section."""
    found = {}
    for path in sorted((ROOT / "solutions").glob("*.py")):
        section = []
        for cell in jupytext.read(path).cells:
            if cell.cell_type == "markdown":
                section = [cell.source] if re.match(r"## ", cell.source) else [*section, cell.source]
            elif name := cell.metadata.get("exercise"):
                found[name] = find_docstrings(cell.source), "\n\n".join(section)
            elif (name := cell.metadata.get("check")) in EXERCISES and name not in found:
                found[name] = [], "\n\n".join(section)
    return found


def find_docstrings(source):
    """The docstrings of the classes and functions of a cell, in their order."""
    nodes = [each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.ClassDef | ast.FunctionDef)]
    texts = (ast.get_docstring(each) for each in sorted(nodes, key=lambda each: each.lineno))
    return [each for each in texts if each]


def join_lines(text):
    return " ".join(text.split())


def remove_examples(docstring):
    """A docstring without its examples, in one line."""
    paragraphs = re.split(r"\n\s*\n", docstring)
    return join_lines(" ".join(each for each in paragraphs if not each.lstrip().startswith(">>>")))


def list_quotes(exercise):
    """Everything that the table quotes of a statement, clauses first."""
    table = CLAUSES[exercise]
    return [*(each["clause"] for each in table["asks"]), *table["no_demand"]]


def find_unquoted_words(prose, quotes):
    """The words of a text that no quote has; a word belongs to the longest quote around it."""
    for quote in sorted(quotes, key=len, reverse=True):
        prose = prose.replace(join_lines(quote), " … ")
    return [each.strip() for each in prose.split("…") if re.search(r"\w", each)]


def test_every_exercise_has_a_table():
    assert CLAUSES.keys() == EXERCISES.keys() == read_statements().keys()


@EACH
def test_every_quote_stands_in_the_statement(exercise):
    docstrings, section = read_statements()[exercise]
    text = join_lines(" … ".join([*map(remove_examples, docstrings), section]))
    strangers = [each for each in list_quotes(exercise) if join_lines(each) not in text]
    assert not strangers, f"the statement of {exercise} does not say: {strangers}"


@EACH
def test_every_check_that_a_clause_names_exists(exercise):
    hidden = {each.name for each in hidden_checks().exercises()[exercise]}
    graded = hidden | ({FORBIDDEN} if exercise in RULES else set())
    known = graded | {each.name for each in EXERCISES[exercise].checks}
    for each in CLAUSES[exercise]["asks"]:
        assert known.issuperset(each["checks"]), f"{exercise}: {each}"
        assert graded.intersection(each["checks"]), f"{exercise}: grading does not ask {each['clause']!r}"


@EACH
def test_every_word_of_a_docstring_is_asked_or_is_no_demand(exercise):
    quotes = list_quotes(exercise)
    rest = [
        each
        for docstring in read_statements()[exercise][0]
        for each in find_unquoted_words(remove_examples(docstring), quotes)
    ]
    assert not rest, f"clauses.toml has no word on this of {exercise}'s statement: {rest}"


@EACH
def test_every_example_is_asked(exercise):
    has_example = any(">>>" in each for each in read_statements()[exercise][0])
    is_asked = EXAMPLE in {each.name for each in hidden_checks().exercises()[exercise]}
    assert is_asked == (has_example and exercise not in EXAMPLE_IS_NOT_ASKED)


@EACH
def test_a_forbidden_call_is_a_clause(exercise):
    """What an answer may not call is said in its statement."""
    named = any(FORBIDDEN in each["checks"] for each in CLAUSES[exercise]["asks"])
    assert named == (exercise in RULES)
