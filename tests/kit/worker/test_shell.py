"""A notebook's cells run as in a notebook, and what they show is kept within limits."""

from __future__ import annotations

import base64

import pytest

from exercise_kit.sandbox.limits import Limits


def test_the_last_value_is_shown(harness):
    run = harness.cell("print('one')\n1\n2 + 3")
    assert run.index == 3
    assert run.seconds > 0
    assert run.error is None
    assert run.outputs == (
        {"output_type": "stream", "name": "stdout", "text": "one\n"},
        {"output_type": "execute_result", "data": {"text/plain": "5"}, "metadata": {}, "execution_count": None},
    )


def test_a_traceback_names_the_cells_lines_alone(harness):
    harness.cell("import torch\ndef soft(x):\n    return torch.softmax(x, 7)")
    (output,) = harness.cell("y = torch.ones(2)\nsoft(y)").outputs
    assert output["traceback"][:2] == [
        "  cell 5, line 2:  soft(y)",
        "  cell 4, line 3, in soft:  return torch.softmax(x, 7)",
    ]
    assert output["traceback"][-1].startswith("IndexError: Dimension out of range")
    assert not any("/" in line or "\x1b" in line for line in output["traceback"])


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("1 +", "SyntaxError"),
        ("if True:\nx = 1", "IndentationError"),
        ("raise SystemExit(3)", "SystemExit"),
        ("import sys; sys.exit()", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise BaseException", "BaseException"),
        ("next(iter(()))", "StopIteration"),
        ("def f(): f()\nf()", "RecursionError"),
        ("class E(Exception):\n    def __str__(self): raise SystemExit\nraise E", "E"),
        ("x = bytearray(1 << 45)", "MemoryError"),
    ],
)
def test_any_exception_is_an_error_of_the_cell(harness, source, kind):
    assert harness.cell(source).error[0] == kind
    assert harness.text("'alive'") == "'alive'\n"


def test_a_recursion_is_reported_shortly(harness):
    assert len(harness.text("def f():\n    f()\nf()").splitlines()) < 6


@pytest.mark.parametrize(
    "source",
    [
        "%matplotlib inline",
        "%config InlineBackend.figure_format = 'retina'",
        "%load_ext autoreload",
        "exit()",
        "quit()",
    ],
)
def test_what_sets_up_a_notebook_does_no_harm(harness, source):
    assert harness.cell(f"{source}\nx = 5").error is None
    assert harness.text("x") == "5\n"


@pytest.mark.parametrize(
    "source",
    [
        "!pip install einops",
        "%pip install einops",
        "x = !ls",
        "%%bash\nls",
        "%%script true\nls",
        "%tensorboard --logdir runs",
        "%autoreload 2",
        "get_ipython().system('ls')",
        "get_ipython().getoutput('ls')",
        "get_ipython().run_line_magic('sx', 'ls')",
        "%debug",
    ],
)
def test_what_reaches_beyond_python_is_not_run_and_said_so(harness, source):
    assert "is not run while grading" in harness.text(source)
    assert harness.cell(source).error is None


def test_magics_that_stay_within_python_work(harness):
    assert "Wall time" in harness.text("%%time\ny = 4")
    assert harness.text("y") == "4\n"
    assert "per loop" in harness.text("%timeit -n 2 -r 1 sum(range(9))")
    assert harness.text("%%capture kept\nprint(1)") == ""
    assert harness.text("get_ipython().run_line_magic('who_ls', '')").startswith("[")


def test_nobody_answers_questions(harness):
    assert "nobody answers input()" in harness.text("input('name?')")
    assert harness.text("breakpoint()\n3") == "[breakpoint() does not stop while grading]\n3\n"
    assert harness.text("import pdb; pdb.set_trace()\n3").endswith("3\n")
    assert harness.text("import sys; sys.stdin.read()") == "''\n"


def test_await_works_at_the_top(harness):
    assert harness.text("async def f(): return 3\nawait f()").endswith("3\n")


def test_rich_values_come_as_plain_text_alone(harness):
    shown = harness.cell(
        "class R:\n    def _repr_html_(self): return '<script>1</script>'\n    def __repr__(self): return 'R'\nR()"
    )
    assert [output["data"] for output in shown.outputs] == [{"text/plain": "R"}]
    assert (
        harness.text("from IPython.display import HTML\ndisplay(HTML('<b>'))") == "<IPython.core.display.HTML object>\n"
    )


def list_pictures(run):
    return [output["data"].get("image/png") for output in run.outputs if "data" in output]


def test_figures_are_shown_where_a_notebook_shows_them(harness):
    run = harness.cell("import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()\nprint(1)\nplt.plot([2, 1]);")
    assert [output["output_type"] for output in run.outputs] == ["display_data", "stream", "display_data"]
    assert all(base64.b64decode(run.outputs[place]["data"]["image/png"])[1:4] == b"PNG" for place in (0, 2))
    assert len(list_pictures(harness.cell("from matplotlib.figure import Figure\nFigure()"))) == 1
    assert list_pictures(harness.cell("from PIL import Image\nImage.new('RGB', (2, 2))")) != [None]


def test_no_more_pictures_than_the_limit(harness):
    source = "from matplotlib.figure import Figure\nfor _ in range(20): display(Figure(figsize=(1, 1)))"
    kept = list_pictures(harness.cell(source))
    assert len([each for each in kept if each]) == Limits().pictures
    assert "left out" in harness.text("Figure()")


def test_a_picture_is_a_picture(harness):
    shown = harness.cell("class P:\n    def _repr_png_(self): return b'<script>'\nP()").outputs
    assert [list(output["data"]) for output in shown] == [["text/plain"]]


def test_output_is_cut_with_a_note(harness):
    text = harness.text("print('x' * 100_000)\nprint('more')")
    assert len(text) < Limits().cell_chars + 200
    assert text.endswith("(the rest of the output is left out)\n")
    for _ in range(30):
        harness.cell("print('x' * 100_000)")
    assert harness.text("print('x')") == ""


def test_a_progress_bar_leaves_its_last_state(harness):
    (output,) = harness.cell("import sys\nfor n in range(5): print(f'\\r{n}/5', end='', file=sys.stderr)").outputs
    assert output == {"output_type": "stream", "name": "stderr", "text": "4/5"}


def test_clear_output_clears(harness):
    assert harness.text("from IPython.display import clear_output\nprint(1)\nclear_output()\nprint(2)") == "2\n"


def test_prints_outside_cells_are_forgotten(harness):
    worker = harness.with_cell("def f(): print('x' * 10**6)")
    assert worker.request("call", name="f", inputs=())["result"] is None
    assert harness.text("1") == "1\n"


def test_a_loader_goes_without_workers(harness):
    harness.cell(
        "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\ndata = TensorDataset(torch.arange(4))"
    )
    loader = "DataLoader(data, 2, num_workers=2, persistent_workers=True, prefetch_factor=4)"
    text = harness.text(f"for _ in range(2):\n    print([batch[0].tolist() for batch in {loader}])")
    assert text == "[DataLoader loads without workers while grading]\n" + "[[0, 1], [2, 3]]\n" * 2


def test_a_cell_sees_its_lesson(harness):
    assert harness.text("from vit_course.patches import patchify\npatchify.__name__") == "'patchify'\n"
    assert "holds this lesson's answers" in harness.text("from vit_course import split_heads\nsplit_heads(1, 2)")
    shown = harness.text("from vit_course import check\ncheck('attention', None, points=3)")
    assert shown == "graded by the judge; its verdict is in the feedback\n"
    assert "ModuleNotFoundError" in harness.text("import exercise_kit.engine.library")
    assert "ModuleNotFoundError" in harness.text("import exercise_kit.judge")


@pytest.mark.parametrize(
    "source",
    [
        "import matplotlib.pyplot as plt\nplt.title('$\\\\frac$')",
        "import matplotlib.pyplot as plt\nplt.figure(figsize=(1000, 1000))",
        "for n in range(1200): display(n)",
        "import sys\nfor n in range(1200): print(n); print(n, file=sys.stderr)",
    ],
)
def test_a_cell_that_cannot_be_shown_still_counts(harness, source):
    harness.cell(f"x = 5\n{source}")
    assert harness.text("x") == "5\n"
