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
        ("return a + b", "return a - b"),
        ("return a + b", "return a"),
        ("return a + b", "return b"),
        ("return a / b", "return a * b"),
        ("return a - b", "return b - a"),
        ("return a @ b", "return b @ a"),
        ("return a // b", "return a % b"),
        ("a += b", "a -= b"),
        ("return -a", "return a"),
        ("return not a", "return a"),
        ("return a < b", "return a <= b"),
        ("return a < b", "return a >= b"),
        ("return a < b <= c", "return a < b > c"),
        ("return a == b", "return a != b"),
        ("return a is None", "return a is not None"),
        ("return a in b", "return a not in b"),
        ("return a and b", "return a or b"),
        ("return a and b", "return b"),
        ("return a if b else c", "return c"),
        ("return [a for a in b if c]", "return [a for a in b]"),
        ("return 3", "return 4"),
        ("return 3", "return 2"),
        ("return 0.5", "return 1.0"),
        ("return True", "return False"),
        ("return a == 'mean'", "return a == 'meanx'"),
        ("return a.float(b)", "return a"),
        ("return f(a, b)", "return f(b, a)"),
        ("return f(a, b)", "return f(a)"),
        ("return f(a, b)", "return a"),
        ("return f(a, dim=b)", "return f(a)"),
        ("return (a, b)", "return (b, a)"),
        ("return {1: a, 2: b}", "return {1: b, 2: a}"),
        ("return a[1:]", "return a[:]"),
        ("return a[b]", "return a"),
        ("a = b", "pass"),
        ("f(a)", "pass"),
        ("if a:\n        b()", "pass"),
        ("if a:\n        b()", "b()"),
        ("with a:\n        b()", "b()"),
        ("try:\n        a()\n    finally:\n        b()", "try:\n    a()\nfinally:\n    pass"),
    ],
)
def test_a_slip_is_made(source, slip):
    assert slip in list_mutated_statements(source)


def test_nothing_equals_its_source_or_another():
    source = "def f(a, b=0.0):\n    if a - a < 0:\n        a += a\n    return (a, a, f(a), a + a)"
    made = list_mutated(source)
    assert ast.unparse(ast.parse(source)) not in made
    assert len(set(made)) == len(made)
    assert not [each for each in made if "b=0.0 " in each]


@pytest.mark.parametrize(
    "source",
    [
        '"""What it does."""\n    return a',
        "a: list[1]\n    return a",
        "raise ValueError(f'{a + 1} is not 2')",
        "return f'{a + 1}'",
        "return None",
        "return ...",
    ],
)
def test_words_and_types_are_left_alone(source):
    assert list_mutated_statements(source) == []


def test_a_decorator_is_dropped_but_for_those_that_make_a_class_what_it_is():
    assert list_mutated("@cache\ndef f():\n    return a") == ["def f():\n    return a"]
    assert list_mutated("@property\ndef f():\n    return a") == []


def test_a_constant_of_a_module_slips_too():
    assert list_mutated("BASE = 10") == ["BASE = 11", "BASE = 9"]
    (definition,) = ast.parse("BASE: int = 10").body
    assert [name for name, _ in iterate_mutations(definition)] == [
        "BASE: BASE: int = 10: 10 -> 11",
        "BASE: BASE: int = 10: 10 -> 9",
    ]


def test_a_name_tells_where_what_and_which():
    (definition,) = ast.parse("class C:\n    def f(self):\n        return 1 + 1").body
    names = [name for name, _ in iterate_mutations(definition)]
    assert names[0] == "C.f: return 1 + 1: 1 + 1 -> Add to Sub"
    assert {"C.f: return 1 + 1: 1 -> 2", "C.f: return 1 + 1: 1 -> 2 (2)"} <= set(names)


def test_names_are_those_that_it_uses_when_it_runs():
    (definition,) = ast.parse("def f(a: Typed) -> Typed:\n    return helper(BASE, a)").body
    assert list_names(definition) == ["helper", "BASE", "a"]
