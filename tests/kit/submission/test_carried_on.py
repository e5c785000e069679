"""A cell that goes on where one of its statements is refused."""

import inspect
import linecache

import pytest

from exercise_kit.submission.carried_on import carried_on

CELLS = {
    "a statement": "x = 1 / 0\ny = 2",
    "an expression": "1 / 0\ny = 2",
    "a loop": "for each in (0,):\n    1 / each\n    text = '''a\nb'''\ny = 2",
    "a text over lines": "x = '''a\nb'''.foo()\n\n# a word\ny = 2",
    "a context": "with open('/nowhere') as file:\n    pass\ny = 2",
    "a magic": "%time x = 1 / 0\n1 / 0\ny = 2",
    "a call before a definition": "assert f() == 1\ndef helper():\n    return 2\ny = helper()",
}


class Shell:
    def run_line_magic(self, *_):
        raise ValueError


@pytest.mark.parametrize("source", CELLS.values(), ids=CELLS)
def test_what_stands_behind_a_refusal_is_defined(source):
    names = {"get_ipython": Shell}
    exec(carried_on(source), names)
    assert names["y"] == 2


def test_definitions_keep_their_text_and_their_lines():
    source = "x = [\n    1 / 0,\n]\n\n\ndef f(a):\n    # a word\n    return a  # a + 1\nf(\n    2,\n)\n"
    names = {}
    text = carried_on(source)
    linecache.cache["<a test>"] = len(text), None, text.splitlines(keepends=True), "<a test>"
    exec(compile(text, "<a test>", "exec"), names)
    assert names["f"].__code__.co_firstlineno == 6
    assert inspect.getsource(names["f"]) == "def f(a):\n    # a word\n    return a  # a + 1\n"


@pytest.mark.parametrize("source", ["def f(:", "a = 1; b = 1 / 0; c = 2", "try:\n    import x\nexcept E:\n    pass"])
def test_what_cannot_be_taken_apart_stays(source):
    assert carried_on(source) == source


def test_a_definition_that_fails_ends_the_cell():
    with pytest.raises(ImportError):
        exec(carried_on("import nowhere_at_all\ny = 2"), {})
