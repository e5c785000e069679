"""The generator of mutants, slip by slip, on sources of a line or two."""

import ast

import pytest

from tests.proof.mutations import iterate_mutations, list_names


def list_mutated(source):
    """Every source that a slip makes of one."""
    (definition,) = ast.parse(source).body
    return [ast.unparse(changed) for _, changed in iterate_mutations(definition)]


def list_mutated_statements(source):
    """The same for a statement of a function, without its first line."""
    lines = [each.partition("\n    ")[2] for each in list_mutated(f"def f():\n    {source}")]
    return [each.replace("\n    ", "\n") for each in lines]


@pytest.mark.parametrize(
    ("source", "slip"),
    [
        ("return a @ b", "return b @ a"),
        ("return a // b", "return a % b"),
        ("a += b", "a -= b"),
        ("return not a", "return a"),
        ("return a < b", "return a >= b"),
        ("return a < b <= c", "return a < b > c"),
        ("return a is None", "return a is not None"),
        ("return 0.5", "return 1.0"),
        ("return {1: a, 2: b}", "return {1: b, 2: a}"),
        ("with a:\n        b()", "b()"),
        ("try:\n        a()\n    finally:\n        b()", "try:\n    a()\nfinally:\n    pass"),
    ],
)
def test_a_slip_that_no_list_of_equivalents_has_is_made(source, slip):
    """One that a list has, and that is made no more, fails test_mutants."""
    assert slip in list_mutated_statements(source)


def test_a_decorator_is_dropped_but_for_those_that_make_a_class_what_it_is():
    assert list_mutated("@cache\ndef f():\n    return a") == ["def f():\n    return a"]
    assert list_mutated("@property\ndef f():\n    return a") == []


def test_names_are_those_that_it_uses_when_it_runs():
    (definition,) = ast.parse("def f(a: Typed) -> Typed:\n    return helper(BASE, a)").body
    assert list_names(definition) == ["helper", "BASE", "a"]
