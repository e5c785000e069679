"""A figure with controls: a widget where widgets run, and the same figure, still, everywhere else.

Only ipywidgets' core widgets are used, those that versions 7 and 8 have in common, so that nothing has to be enabled on
Colab. The notebook keeps the still figure in an output of its own; a widget that is alive hides it.
"""

from __future__ import annotations

import base64
import html
import io
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
DOTS_PER_INCH = 100
TO_MOVE = "To move the controls of this figure, run the cell in JupyterLab, Jupyter Notebook or Colab."


@dataclass(frozen=True)
class Control:
    """One setting of a figure.

    Attributes:
        name: of the setting.
        label: what stands beside the control.
        options: a range makes a slider over whole numbers; a tuple of numbers a slider over these; a mapping from
            names to values a list to choose from.
        start: the value at first.
        only_with: (name, value) of another setting: the control rests unless that one has this value.
    """

    name: str
    label: str
    options: range | tuple[float, ...] | Mapping[str, Any]
    start: Any
    only_with: tuple[str, Any] | None = None

    def __post_init__(self) -> None:
        values = self.options.values() if isinstance(self.options, Mapping) else self.options
        if self.start not in values:
            raise ValueError(f"{self.label} cannot be {self.start!r}; there are {', '.join(map(str, values))}")


class Interactive:
    """A figure and the controls that change it; it shows itself in a notebook.

    Args:
        figure: drawn on by `update`.
        controls: in the order in which they stand.
        update: takes every setting by its name, changes the figure, and returns a sentence that says what is seen.
        description: what the figure shows whatever its settings, for those who do not see it.

    Attributes:
        figure: as `update` left it.
        sentence: what `update` said last, or what went wrong in it.
        settings: name → value, as they are.
    """

    def __init__(
        self, figure: Figure, controls: tuple[Control, ...], update: Callable[..., str], description: str
    ) -> None:
        self.figure, self.description, self.sentence = figure, description, ""
        self.settings = {control.name: control.start for control in controls}
        self._controls, self._update = controls, update
        self._listeners: list[Callable[[], None]] = []
        self.move()

    def move(self, **settings: Any) -> None:
        """Change settings, the figure and the sentence; an error in `update` becomes the sentence.

        Raises:
            ValueError: for a setting that the figure does not have.
        """
        if unknown := settings.keys() - self.settings.keys():
            raise ValueError(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(self.settings)}")
        self.settings |= settings
        self._is_drawn = False
        try:
            self.sentence = self._update(**self.settings)
            self._is_drawn = True
        except NotImplementedError:
            self.sentence = "Nothing to see yet: your function is not written. Write it, and run this cell again."
        except Exception as error:  # a student's function may raise anything, and a widget would swallow it
            self.sentence = f"This did not work. {type(error).__name__}: {error}"
        for listener in self._listeners:
            listener()

    def __repr__(self) -> str:
        return self.sentence

    def _repr_png_(self) -> bytes:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from PIL import Image

        canvas, buffer = FigureCanvasAgg(self.figure), io.BytesIO()
        self.figure.set_dpi(DOTS_PER_INCH)
        canvas.draw()  # savefig would draw twice, and find the layout anew
        self.figure.set_layout_engine("none")
        Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3]).save(buffer, format="png", compress_level=3)
        return buffer.getvalue()

    def picture_html(self) -> str:
        """The figure as an HTML image with its description; "" where there is only a sentence."""
        if not self._is_drawn:
            return ""
        width, height = (round(inches * DOTS_PER_INCH) for inches in self.figure.get_size_inches())
        return (
            f'<img alt="{html.escape(self.description)}" width="{width}" height="{height}" '
            f'style="max-width: 100%; height: auto" src="data:image/png;base64,{_encode_base64(self._repr_png_())}">'
        )

    def _ipython_display_(self) -> None:
        from IPython.core.getipython import get_ipython
        from IPython.display import display

        if getattr(get_ipython(), "kernel", None) is None:  # a terminal, or a submission that is being graded
            picture = {"image/png": self._repr_png_()} if self._is_drawn else {}
            display({**picture, "text/plain": self.sentence}, raw=True)
            return
        from exercise_kit.conventions import STILL  # which no view of the judge holds

        mark = f"{STILL}{uuid.uuid4().hex}"
        still = f'<div class="{mark}"><p>{html.escape(self.sentence)}</p>{self.picture_html()}</div>'
        display({"text/html": still, "text/plain": self.sentence}, raw=True)
        try:
            model_id = self.widget(f"<style>.{mark} {{ display: none }}</style>").model_id
        except ImportError:
            print("Its controls need ipywidgets: pip install ipywidgets, then restart the kernel.")
            return
        view = {"version_major": 2, "version_minor": 0, "model_id": model_id}
        display({WIDGET_VIEW: view, "text/plain": TO_MOVE}, raw=True)

    def widget(self, style: str = "") -> Any:
        """The controls, the sentence and the figure as one ipywidgets box.

        Args:
            style: an HTML element that comes with the figure.

        Raises:
            ImportError: ipywidgets is not installed.
        """
        import ipywidgets

        sentence, picture = ipywidgets.HTML(), ipywidgets.HTML()
        controls, boxes = {}, []
        for control in self._controls:
            controls[control.name], box = _make_widget(control)
            boxes.append(box)

        def update_picture_and_controls() -> None:
            picture.value = style + self.picture_html()
            sentence.value = f'<p role="status" style="line-height: 1.4">{html.escape(self.sentence)}</p>'
            for control in self._controls:
                if control.only_with:
                    name, value = control.only_with
                    controls[control.name].disabled = self.settings[name] != value

        for name, each in controls.items():
            each.value = self.settings[name]
            each.observe(lambda change, name=name: self.move(**{name: change["new"]}), "value")
        self._listeners.append(update_picture_and_controls)
        update_picture_and_controls()
        row = ipywidgets.Box(boxes, layout=ipywidgets.Layout(flex_flow="row wrap"))
        return ipywidgets.VBox([row, sentence, picture])


def _make_widget(control: Control) -> tuple[Any, Any]:
    """A labeled input, which screen readers name, and a box with it and, where values are in order, a slider."""
    import ipywidgets

    sizes, slider = ipywidgets.Layout(width="150px"), None
    labeled: Any
    if isinstance(control.options, range):
        low, high, step = control.options[0], control.options[-1], control.options.step
        labeled = ipywidgets.BoundedIntText(min=low, max=high, step=step)
        slider = ipywidgets.IntSlider(min=low, max=high, step=step, readout=False, layout=sizes)
    elif isinstance(control.options, tuple):
        options = [(f"{value:g}", value) for value in control.options]
        labeled = ipywidgets.Dropdown(options=options)
        slider = ipywidgets.SelectionSlider(options=options, readout=False, layout=sizes)
    else:
        labeled = ipywidgets.Dropdown(options=list(control.options.items()))
    labeled.value = control.start
    labeled.description, labeled.style.description_width = control.label, "105px"
    labeled.layout.width = "180px" if slider else "330px"
    for each in (labeled, slider):
        if each is not None and each.has_trait("tooltip"):  # version 8 shows "null" without one
            each.tooltip = control.label
    if slider is None:
        return labeled, labeled
    for name in ("value", "disabled"):
        ipywidgets.link((labeled, name), (slider, name))
    return labeled, ipywidgets.HBox([labeled, slider])


def _encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
