"""A notebook's cells run as in a notebook, and what they show is kept within limits."""

from __future__ import annotations

import base64

import pytest

from exercise_kit.sandbox.limits import Limits
from exercise_kit.submission.submission import CellSource


def test_the_last_value_is_shown(bench):
    run = bench.cell("print('one')\n1\n2 + 3")
    assert run.index == 3
    assert run.seconds > 0
    assert run.error is None
    assert run.outputs == (
        {"output_type": "stream", "name": "stdout", "text": "one\n"},
        {"output_type": "execute_result", "data": {"text/plain": "5"}, "metadata": {}, "execution_count": None},
    )


def test_an_error_keeps_what_the_cell_had_defined(bench):
    run = bench.cell("a = 1\nraise ValueError('no')\nb = 2")
    assert run.error == ("ValueError", "no")
    assert bench.text("print(a, 'b' in globals())") == "1 False\n"


def test_a_traceback_names_the_cells_lines_alone(bench):
    bench.cell("import torch\ndef soft(x):\n    return torch.softmax(x, 7)")
    (output,) = bench.cell("y = torch.ones(2)\nsoft(y)").outputs
    assert output["traceback"][:2] == [
        "  cell 4, line 2:  soft(y)",
        "  cell 3, line 3, in soft:  return torch.softmax(x, 7)",
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
def test_any_exception_is_an_error_of_the_cell(bench, source, kind):
    assert bench.cell(source).error[0] == kind
    assert bench.text("'alive'") == "'alive'\n"


def test_a_recursion_is_told_shortly(bench):
    assert len(bench.text("def f():\n    f()\nf()").splitlines()) < 6


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
def test_what_sets_up_a_notebook_does_no_harm(bench, source):
    assert bench.cell(f"{source}\nx = 5").error is None
    assert bench.text("x") == "5\n"


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
def test_what_reaches_beyond_python_is_not_run_and_said_so(bench, source):
    assert "is not run while grading" in bench.text(source)
    assert bench.cell(source).error is None


def test_magics_that_stay_within_python_work(bench):
    assert "Wall time" in bench.text("%%time\ny = 4")
    assert bench.text("y") == "4\n"
    assert "per loop" in bench.text("%timeit -n 2 -r 1 sum(range(9))")
    assert bench.text("%%capture kept\nprint(1)") == ""
    assert bench.text("get_ipython().run_line_magic('who_ls', '')").startswith("[")


def test_nobody_answers_questions(bench):
    assert "nobody answers input()" in bench.text("input('name?')")
    assert bench.text("breakpoint()\n3") == "[breakpoint() does not stop while grading]\n3\n"
    assert bench.text("import pdb; pdb.set_trace()\n3").endswith("3\n")
    assert bench.text("import sys; sys.stdin.read()") == "''\n"


def test_await_works_at_the_top(bench):
    assert bench.text("async def f(): return 3\nawait f()").endswith("3\n")


def test_rich_values_come_as_plain_text_alone(bench):
    shown = bench.cell(
        "class R:\n    def _repr_html_(self): return '<script>1</script>'\n    def __repr__(self): return 'R'\nR()"
    )
    assert [output["data"] for output in shown.outputs] == [{"text/plain": "R"}]
    assert (
        bench.text("from IPython.display import HTML\ndisplay(HTML('<b>'))") == "<IPython.core.display.HTML object>\n"
    )


def pictures(run):
    return [output["data"].get("image/png") for output in run.outputs if "data" in output]


def test_figures_are_shown_where_a_notebook_shows_them(bench):
    run = bench.cell("import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()\nprint(1)\nplt.plot([2, 1]);")
    assert [output["output_type"] for output in run.outputs] == ["display_data", "stream", "display_data"]
    assert all(base64.b64decode(run.outputs[place]["data"]["image/png"])[1:4] == b"PNG" for place in (0, 2))
    assert len(pictures(bench.cell("from matplotlib.figure import Figure\nFigure()"))) == 1
    assert pictures(bench.cell("from PIL import Image\nImage.new('RGB', (2, 2))")) != [None]


def test_no_more_pictures_than_the_limit(bench):
    source = "from matplotlib.figure import Figure\nfor _ in range(20): display(Figure(figsize=(1, 1)))"
    kept = pictures(bench.cell(source))
    assert len([each for each in kept if each]) == Limits().pictures
    assert "left out" in bench.text("Figure()")


def test_a_picture_is_a_picture(bench):
    shown = bench.cell("class P:\n    def _repr_png_(self): return b'<script>'\nP()").outputs
    assert [list(output["data"]) for output in shown] == [["text/plain"]]


def test_output_is_cut_with_a_note(bench):
    text = bench.text("print('x' * 100_000)\nprint('more')")
    assert len(text) < Limits().cell_chars + 200
    assert text.endswith("(the rest of the output is left out)\n")
    for _ in range(30):
        bench.cell("print('x' * 100_000)")
    assert bench.text("print('x')") == ""


def test_a_progress_bar_leaves_its_last_state(bench):
    (output,) = bench.cell("import sys\nfor n in range(5): print(f'\\r{n}/5', end='', file=sys.stderr)").outputs
    assert output == {"output_type": "stream", "name": "stderr", "text": "4/5"}


def test_clear_output_clears(bench):
    assert bench.text("from IPython.display import clear_output\nprint(1)\nclear_output()\nprint(2)") == "2\n"


def test_prints_outside_cells_are_forgotten(bench):
    worker = bench.with_cell("def f(): print('x' * 10**6)")
    assert worker.request("call", name="f", inputs=())["result"] is None
    assert bench.text("1") == "1\n"


def test_a_loader_goes_without_workers(bench):
    bench.cell(
        "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\ndata = TensorDataset(torch.arange(4))"
    )
    loader = "DataLoader(data, 2, num_workers=2, persistent_workers=True, prefetch_factor=4)"
    text = bench.text(f"for _ in range(2):\n    print([batch[0].tolist() for batch in {loader}])")
    assert text == "[DataLoader loads without workers while grading]\n" + "[[0, 1], [2, 3]]\n" * 2


def test_a_cell_sees_its_lesson(bench):
    assert bench.text("from vit_course.patches import patchify\npatchify.__name__") == "'patchify'\n"
    assert "holds this lesson's answers" in bench.text("import vit_course.attention")
    assert "graded by the judge" in bench.text("from vit_course import check\ncheck('attention', None)")
    assert "ModuleNotFoundError" in bench.text("import exercise_kit.engine.library")
    assert "ModuleNotFoundError" in bench.text("import exercise_kit.judge")


def test_cells_have_their_own_indexes(bench):
    cells = [CellSource(7, "def f(): 1 / 0"), CellSource(9, "f()")]
    *_, last = bench.worker.run(cells)
    assert last.outputs[0]["traceback"][:2] == ["  cell 9, line 1:  f()", "  cell 7, line 1, in f:  def f(): 1 / 0"]


@pytest.mark.parametrize(
    "source",
    [
        "import matplotlib.pyplot as plt\nplt.title('$\\\\frac$')",
        "import matplotlib.pyplot as plt\nplt.figure(figsize=(1000, 1000))",
        "for n in range(1200): display(n)",
        "import sys\nfor n in range(1200): print(n); print(n, file=sys.stderr)",
    ],
)
def test_a_cell_that_cannot_be_shown_still_counts(bench, source):
    bench.cell(f"x = 5\n{source}")
    assert bench.text("x") == "5\n"
