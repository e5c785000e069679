"""Which cells run for grading, and that the answers do not notice the others."""

import pytest

from exercise_kit.submission.slice import Runnable, is_empty, list_definitions, parse, select_required_cells


def slice_cells(*sources, students=(-1,)):
    cells = [Runnable(index, source, students=False) for index, source in enumerate(sources)]
    for place in students:
        cells[place] = Runnable(cells[place].index, cells[place].source, students=True)
    return [cell.index for cell in select_required_cells(cells)]


@pytest.mark.parametrize(
    ("cells", "chosen"),
    [
        (("import torch", "picture = 1", "show(picture)", "def f(): return torch.ones(1)"), [0, 3]),
        (("import math", "a = math.pi", "b = a", "c = 1", "def f(): return b"), [0, 1, 2, 4]),
        *(
            (("d = {}", change, "def f(): return d"), [0, 1, 2])
            for change in ("d['k'] = 1", "d.update(k=1)", "d.k = 2", "del d['k']", "d += 1", "for d in (1, 2): pass")
        ),
        (("import torch", "torch.manual_seed(1)", "def f(): return torch.ones(1)"), [0, 2]),
        (("x = 1", "y = 2", "z = 3", "def f(x):\n    y = x\n    return [z for z in y]"), [3]),
        (("size = 1", "base = object", "wrap = id", "@wrap\nclass A(base):\n    size = size"), [0, 1, 2, 3]),
        (("count = 0", "def f():\n    global count\n    count += 1"), [0, 1]),
        *(
            (("a = 1", f"{magic}\ndef f(): return 1"), [1])
            for magic in ("%matplotlib inline", "!pip install einops", "%pip install einops")
        ),
        (("a = 1", "def f(:"), [1]),
        (("a = 1", "%pwd\nx = (1\n!ls"), [0, 1]),
    ],
    ids=[
        *(
            "names nobody uses",
            "from cell to cell",
            "an item",
            "a method",
            "an attribute",
            "deleted",
            "added",
            "a loop",
        ),
        *("a call on a module changes no variable", "parameters and local names", "body, default and decorator"),
        *("a global statement", "a magic", "a shell's command", "an installation"),
        *("no Python runs for its error", "what only IPython can read may use anything"),
    ],
)
def test_the_cells_that_an_answer_needs(cells, chosen):
    assert slice_cells(*cells) == chosen


@pytest.mark.parametrize(
    "answer",
    [
        "def f(): return globals()['a']",
        "def f(): return eval('a')",
        "from __main__ import *",
        "import __main__",
        "def f(): return f.__globals__['a']",
        "%run other.py",
        "%%time\ng(a)",
        "%time g(a)",
        "ip = get_ipython()\nip.run_cell('a')",
        "def f():\n    import sys\n    return sys._getframe(1).f_globals['a']",
    ],
)
def test_code_that_looks_names_up_makes_all_cells_run(answer):
    assert slice_cells("a = 1", "b = 2", answer) == [0, 1, 2]


@pytest.mark.parametrize(
    "source",
    [
        "if True:\n    def f(): pass",
        "try:\n    import a\nexcept ImportError:\n    f = 1",
        "with open('a') as b:\n    for i in b:\n        class f: pass",
        "match 1:\n    case _:\n        f = 1",
        "(f := 1)",
        "while (f := 0): pass",
        "%%time\ndef f(): pass",
    ],
)
def test_definitions_under_other_statements_and_magics_count(source):
    assert "f" in list_definitions(parse(source))


def test_what_only_functions_and_classes_bind_is_defined_by_no_cell():
    assert list_definitions(parse("def g():\n    f = 1\nclass h:\n    def f(self): pass")) == {"g", "h"}


def test_what_a_cell_defines():
    tree = parse("import a\nfrom b import c\ndef d(): e = 1\nclass F: g = 1\nh, (i, j) = 1, (2, 3)\nk: int = 1\n%pwd")
    assert list_definitions(tree) == {"d", "F", "h", "i", "j", "k"}
    assert is_empty("# a\n\n   # b")
    assert not is_empty("x")


@pytest.mark.parametrize("lesson", ["00_start", "01_patchify", "02_positions", "03_attention", "04_block", "05_vit"])
def test_of_a_lesson_s_own_cells_the_pictures_are_left_out(work, lesson):
    mine = work(lesson, solved=True)
    submission = mine.read()
    chosen = {cell.index for cell in submission.cells}
    assert {mine.place(each.name) for each in submission.exercises} <= chosen
    left_out = [cell for index, cell in enumerate(mine.cells) if cell["cell_type"] == "code" and index not in chosen]
    assert len(left_out) > len(chosen)
    assert not [
        cell["id"]
        for cell in mine.cells
        if "show_" in str(cell["source"]) and mine.cells.index(cell) in chosen and "import" not in str(cell["source"])
    ]
