"""Figures with controls: a control moves what it names, and without widgets the still figure is there."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import nbgrader
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter

from vit_course import plots
from vit_course.interactive import WIDGET_VIEW, Control, Interactive

MOVED = """
from vit_course.explore import explore_softmax
figure = explore_softmax()
figure
"""
WITHOUT_IPYWIDGETS = "import sys\nsys.modules['ipywidgets'] = None\nfigure"
FORMGRADER = Path(nbgrader.__file__).parent / "server_extensions" / "formgrader"
GRADED = {"assignment": "1", "notebook": "1", "score": 0, "max_score": 0, "late_penalty": 0}
PICTURE = re.compile(r'<img alt="([^"]+)"[^>]* src="data:image/png;base64,([^"]+)">')


def make_bar_figure(by: Any = None) -> Interactive:
    """A figure of a bar that is as high as a number says; `by` a choice that rests unless the number is 3."""
    figure = plots.new_figure(2, 1)
    axes = figure.subplots()
    (bar,) = axes.bar([0], [0.0])
    axes.set_ylim(0, 20)

    def draw_bar(number: int, by: float, word: Any) -> str:
        bar.set_height(number * by)
        if number == 9:
            raise NotImplementedError
        return f"{word}: {10 // (number - 4)} < {number * by:g}"

    controls = (
        Control("number", "how many", range(1, 10, 2), 3),
        Control("by", "times", (0.5, 2.0), 0.5, ("number", 3)),
        Control("word", "word", {"one": 1, "nothing": None}, None),
    )
    return Interactive(figure, controls, draw_bar, 'a bar & "more"')


def split_widget(box: Any) -> tuple[list[Any], Any, Any]:
    """The labeled controls, the sentence and the picture of a widget."""
    row, sentence, picture = box.children
    return [getattr(each, "children", [each])[0] for each in row.children], sentence, picture


def find_slider(box: Any, number: int) -> Any:
    return box.children[0].children[number].children[1]


def test_a_control_changes_the_setting_that_it_names_the_picture_and_the_sentence():
    figure = make_bar_figure()
    (number, by, word), sentence, picture = split_widget(figure.widget())
    before = picture.value
    assert "None: -10 &lt; 1.5" in sentence.value
    number.value = 5
    assert figure.settings == {"number": 5, "by": 0.5, "word": None}
    assert "None: 10 &lt; 2.5" in sentence.value
    assert picture.value != before
    by.value, word.value = 2.0, 1
    assert figure.settings == {"number": 5, "by": 2.0, "word": 1}
    assert "1: 10 &lt; 10" in sentence.value


def test_a_control_has_its_label_its_start_and_its_limits():
    (number, by, word), _, _ = split_widget(make_bar_figure().widget())
    assert [each.description for each in (number, by, word)] == ["how many", "times", "word"]
    assert (number.value, number.min, number.max, number.step) == (3, 1, 9, 2)
    assert (by.value, [label for label, _ in by.options]) == (0.5, ["0.5", "2"])
    assert (word.value, [label for label, _ in word.options]) == (None, ["one", "nothing"])


def test_a_slider_and_its_labelled_input_are_one_setting():
    figure = make_bar_figure()
    box = figure.widget()
    (number, by, _), sentence, _ = split_widget(box)
    find_slider(box, 0).value = 5
    assert (number.value, figure.settings["number"]) == (5, 5)
    by.value = 2.0
    assert find_slider(box, 1).value == 2.0
    assert "None: 10 &lt; 10" in sentence.value
    assert find_slider(box, 1).disabled, "the number is no longer 3"


def test_a_control_rests_where_it_would_change_nothing():
    (number, by, _), _, _ = split_widget(make_bar_figure().widget())
    assert not by.disabled
    number.value = 1
    assert by.disabled
    number.value = 3
    assert not by.disabled


def test_the_sentence_is_announced_and_the_picture_described():
    _, sentence, picture = split_widget(make_bar_figure().widget())
    assert 'role="status"' in sentence.value
    ((alternative, data),) = PICTURE.findall(picture.value)
    assert alternative == "a bar &amp; &quot;more&quot;"
    assert base64.b64decode(data).startswith(b"\x89PNG")


def test_two_widgets_of_one_figure_show_the_same():
    figure = make_bar_figure()
    (number, _, _), _, _ = split_widget(figure.widget())
    _, sentence, _ = split_widget(figure.widget())
    number.value = 7
    assert ": 3 &lt; 3.5" in sentence.value


def test_an_error_becomes_the_sentence_and_the_next_move_works():
    figure = make_bar_figure()
    figure.move(number=4)
    assert figure.sentence.startswith("This did not work. ZeroDivisionError: ")
    assert figure.picture_html() == ""  # no empty axes above a sentence
    figure.move(number=9)
    assert "not written" in figure.sentence
    figure.move(number=5)
    assert figure.sentence == "None: 10 < 2.5"


def test_a_setting_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="there is no speed; there are number, by, word"):
        make_bar_figure().move(speed=1)
    with pytest.raises(ValueError, match="times cannot be 3; there are 1, 2"):
        Control("by", "times", (1, 2), 3)


def test_nothing_is_drawn_with_the_layout_of_another_setting():
    figure, other = make_bar_figure(), make_bar_figure()
    figure._repr_png_()
    figure.move(number=7)
    other.move(number=7)
    assert figure._repr_png_() == other._repr_png_()


@pytest.fixture(scope="module")
def executed_notebook(tmp_path_factory: pytest.TempPathFactory) -> nbformat.NotebookNode:
    """Return what a real kernel made of a figure, with ipywidgets and without."""
    made = nbformat.v4.new_notebook()
    made.cells = [nbformat.v4.new_code_cell(source) for source in (MOVED, WITHOUT_IPYWIDGETS)]
    NotebookClient(made, resources={"metadata": {"path": str(tmp_path_factory.mktemp("empty"))}}).execute()
    return made


@pytest.mark.proof
def test_the_still_figure_is_in_the_notebook_beside_the_widget(executed_notebook):
    still, widget = executed_notebook.cells[0].outputs
    assert "head_dim 64" in still.data["text/plain"]
    assert "head_dim 64" in still.data["text/html"]
    assert len(PICTURE.findall(still.data["text/html"])) == 1
    assert widget.data[WIDGET_VIEW]["model_id"]
    assert "run the cell" in widget.data["text/plain"]


def test_a_widget_that_shows_hides_the_still_figure(executed_notebook):
    (mark,) = re.findall(r'<div class="(still-\w+)">', executed_notebook.cells[0].outputs[0].data["text/html"])
    state = executed_notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"].state
    values = [each.state.get("value", "") for each in state.values()]
    assert [f"<style>.{mark} {{ display: none }}</style>" in str(value) for value in values].count(True) == 1


def test_without_ipywidgets_there_is_the_figure_and_what_to_install(executed_notebook):
    said = {output.output_type: output for output in executed_notebook.cells[1].outputs}
    assert len(PICTURE.findall(said["display_data"].data["text/html"])) == 1
    assert "pip install ipywidgets" in said["stream"].text
    assert said["stream"].name == "stdout"
    assert set(said) == {"display_data", "stream"}


@pytest.mark.parametrize("template", ["lab", "classic", "feedback"])  # the last is nbgrader's
@pytest.mark.parametrize("with_state", [True, False])
def test_a_page_made_of_the_notebook_shows_the_figure(executed_notebook, with_state, template):
    copied = nbformat.from_dict(executed_notebook)
    copied.cells = copied.cells[:1]
    if not with_state:
        del copied.metadata["widgets"]
    bootstrap = FORMGRADER / "static" / "node_modules" / "bootstrap" / "dist" / "css"
    folders = {"extra_template_basedirs": [str(FORMGRADER / "templates")], "extra_template_paths": [str(bootstrap)]}
    page, _ = HTMLExporter(template_name=template, **folders).from_notebook_node(copied, {"nbgrader": GRADED})
    outside_scripts = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert outside_scripts.count('src="data:image/png;base64,') == 1
    assert "Bars: the scores of 16 keys" in outside_scripts
    assert "display: none }</style>" not in outside_scripts.partition('<div class="still-')[2]


@pytest.mark.proof
def test_a_shell_without_a_kernel_as_graders_have_gets_a_picture_and_the_sentence(tmp_path: Path):
    source = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "from IPython.utils.capture import capture_output\n"
        "shell = InteractiveShell.instance()\n"
        "with capture_output() as shown:\n"
        "    shell.run_cell('import vit_course.explore as e; e.explore_softmax()')\n"
        "print([(list(each.data), each.data['image/png'][1:4]) for each in shown.outputs])"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout == "[(['image/png', 'text/plain'], b'PNG')]\n"


def test_ipywidgets_is_imported_when_a_figure_is_shown_and_not_before(tmp_path: Path):
    source = (
        "import sys, vit_course.explore as e; e.explore_softmax().move(head_dim=4); print('ipywidgets' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout == "False\n"
