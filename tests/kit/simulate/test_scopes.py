"""Names from outside of a definition are distinguished from its own."""

import ast

import pytest

from exercise_kit.simulate.scopes import rename_outer_names


def find_and_rename_outer_names(source):
    """The names that a definition looks up outside, and the definition with each of them in capitals."""
    seen = []

    def rename_to_upper(name):
        seen.append(name)
        return name.upper()

    node = rename_outer_names(ast.parse(source).body[0], rename_to_upper)
    return set(seen), ast.unparse(node)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f(x): return g(x)", {"f", "g"}),
        ("def f(x, n=size): return x + n", {"f", "size"}),
        ("def f(weights): weights = weights(weights); return weights", {"f"}),
        ("def f(x): return [g(y) for y in x]", {"f", "g"}),
        ("def f(x): return lambda y: g(x, y)", {"f", "g"}),
        ("def f(x):\n def g(y): return h(y)\n return g(x)", {"f", "h"}),
        ("def f(x):\n import math\n return math.pi", {"f"}),
        ("def f(x):\n try: pass\n except E as e: return e", {"f", "E"}),
        ("def f(x):\n for a, b in x: c = a\n with o() as d: return b, c, d", {"f", "o"}),
        ("@mark(1)\ndef f(x): return x", {"f", "mark"}),
        (
            "class C(Base, metaclass=Meta):\n size = g\n def size_of(self): return size",
            {"C", "Base", "Meta", "g", "size"},
        ),
        ("class C:\n def g(self): return g()", {"C", "g"}),
        ("LIMIT = 2 * OTHER", {"LIMIT", "OTHER"}),
    ],
)
def test_only_names_from_outside_are_renamed(source, names):
    assert find_and_rename_outer_names(source)[0] == names


def test_a_local_name_keeps_its_meaning():
    _, changed = find_and_rename_outer_names("def f(g):\n    def h(x=g): return g(x, k)\n    return h")
    assert changed == "def F(g):\n\n    def h(x=g):\n        return g(x, K)\n    return h"


def test_an_attribute_of_a_module_can_be_one_name():
    tree = ast.parse("def f(F, x): return F.a(x)\ndef g(x): return F.a(x) + F.b(x)")
    new = [
        rename_outer_names(each, lambda name: name.replace(".", "_"), lambda dotted: dotted == "F.a")
        for each in tree.body
    ]
    assert ast.unparse(new[0]).endswith("return F.a(x)")
    assert ast.unparse(new[1]).endswith("return F_a(x) + F.b(x)")
