"""Figures of matplotlib as SVG that belongs to the page: its colours follow the theme, its text is text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

BLUE, ORANGE, GREEN, VERMILION = "#0072b2", "#e69f00", "#009e73", "#d55e00"
SKY, PALE, INK, GREY, HAIR, CARD = "#56b4e9", "#cfe6f5", "#1b2733", "#6b7785", "#d9d6cd", "#fbfaf7"
_VARIABLES = {
    **{BLUE: "blue", ORANGE: "orange", GREEN: "green", VERMILION: "vermilion", SKY: "sky", PALE: "pale"},
    **{INK: "ink", GREY: "grey", HAIR: "hair", CARD: "card"},
}
WIDTH = 10.0  # inches, of 72 units each
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "hatch.linewidth": 1.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_ID = re.compile(r'(\bid="|href="#|url\(#)([^")]+)')


def figure(height: float, above: float = 0.0) -> Figure:
    """An empty figure, ``height`` inches high, of which some ``above`` are left free for legends."""
    layout = ConstrainedLayoutEngine(rect=(0, 0, 1, 1 - above / height))
    made = Figure(figsize=(WIDTH, height), layout=layout)
    FigureCanvasSVG(made)
    return made


@contextmanager
def drawing(name: str) -> Iterator[None]:
    """matplotlib's settings while a figure of that name is drawn; the same name gives the same bytes."""
    with mpl.rc_context({**_SETTINGS, "svg.hashsalt": name}):
        yield


def as_svg(made: Figure, name: str, alt: str) -> str:
    """An ``<svg>`` element.

    Args:
        made: the figure.
        name: of letters; it keeps this figure's ids apart from the others' of a page.
        alt: what those hear who do not see it.
    """
    written = io.StringIO()
    with drawing(name):
        made.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = written.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = _ID.sub(rf"\1{name}-\2", text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var(--{variable})")
    text = re.sub(r"'DejaVu Sans'(?:, [^;\"]*?sans-serif)?", "var(--sans)", text)
    box = re.search(r'viewBox="[^"]+"', text)
    assert box is not None, "matplotlib writes one"
    head = f'<svg {box[0]} role="img" aria-label="{escape(alt, quote=True)}" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return re.sub(r"<svg[^>]*", head, text, count=1)
