"""IPython's own syntax as Python, and that no line keeps the judge busy."""

import ast

import pytest

from exercise_kit.submission.slice import has_magics, replace_magics_with_calls


@pytest.mark.parametrize(
    ("source", "python"),
    [
        ("%matplotlib inline", "get_ipython().run_line_magic('matplotlib', 'inline')"),
        ("!pip install it", "get_ipython().system('pip install it')"),
        ("if yes:\n    !ls -l 'a'", "if yes:\n    get_ipython().system(\"ls -l 'a'\")"),
        ("here = %pwd", "here = get_ipython().run_line_magic('pwd', '')"),
        ("files = !ls", "files = get_ipython().getoutput('ls')"),
        ("patchify?", "get_ipython().run_line_magic('pinfo', 'patchify')"),
        ("??patchify", "get_ipython().run_line_magic('pinfo', 'patchify')"),
        ("!pip install \\\n  it\nx = 1", "get_ipython().system('pip install    it')\nx = 1"),
        ("%%bash\nls", "get_ipython().run_cell_magic('bash', '', 'ls')"),
        ("%%time\ndef f():\n    pass", "get_ipython().run_line_magic('time', '')\ndef f():\n    pass"),
        ("  x = 1\n  %pwd", "x = 1\nget_ipython().run_line_magic('pwd', '')"),
        (">>> def f():\n...     pass", "def f():\n    pass"),
        ("y = x == '!' or x % 2", "y = x == '!' or x % 2"),
        ("", ""),
    ],
)
def test_each_line_becomes_what_ipython_makes_of_it(source, python):
    assert ast.dump(ast.parse(replace_magics_with_calls(source))) == ast.dump(ast.parse(python))


def test_whether_a_cell_holds_any():
    assert has_magics("x = 1\n%pwd")
    assert not has_magics("x = 1 % 2\n# really?")


@pytest.mark.parametrize(
    "source",
    [
        "%x\n" + "a" * 40_000 + " ?",
        "a*" * 20_000 + "(?",
        "%time 1\n" * 5000,
        "!a\\\n" * 12_000,
        "!" * 40_000,
        "=%\n" * 9000,
    ],
    ids=["question", "stars", "magics", "backslashes", "bangs", "assignments"],
)
def test_a_cell_made_to_keep_its_reader_busy_is_read_line_by_line(source):
    assert len(replace_magics_with_calls(source)) < 60 * len(source)
