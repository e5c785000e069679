"""Matplotlib's figures, shown where a notebook would show them."""

from __future__ import annotations

import io
import sys
from typing import Any

from .outputs import Gathered

_DOTS_PER_INCH = 72


def png(figure: Any, gathered: Gathered) -> bytes | None:
    """The figure as a PNG picture; None when no more are kept, so that it is not drawn for nothing."""
    if not gathered.takes_a_picture():
        return b""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=_DOTS_PER_INCH, bbox_inches="tight")
    return stream.getvalue()


def show_all(gathered: Gathered) -> None:
    """Show and close what pyplot has open, as a notebook does at the end of a cell."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None or not pyplot.get_fignums():
        return
    try:
        for number in pyplot.get_fignums():
            _show(pyplot.figure(number), gathered)
    finally:
        pyplot.close("all")


def take_over(shell: Any) -> None:
    """Make ``plt.show()`` and ``figure.show()`` show in the cell's output."""
    try:
        import matplotlib.pyplot as pyplot
        from matplotlib.figure import Figure
    except ImportError:
        return

    def show(*_: object, **__: object) -> None:
        show_all(shell.gathered)

    pyplot.show = show
    Figure.show = lambda figure, warn=True: _show(figure, shell.gathered)  # type: ignore[method-assign,assignment]


def _show(figure: Any, gathered: Gathered) -> None:
    gathered.show({"text/plain": "<Figure>", "image/png": png(figure, gathered)}, result=False)
