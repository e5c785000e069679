"""A cell that runs before its exercise's cell: Jupyter shows a sentence on which one to run, and no traceback.

IPython asks a handler about every NameError. One that is not about a name of the course is shown as ever, and so is one
inside a function. It stays an error, also for nbgrader. After a restart of the kernel nothing of ours is there to do
this until the setup cell has run: so a check's cell says the same in a comment, which the traceback shows
(:mod:`exercise_kit.authoring.notebook`).
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import TracebackType
from typing import Any

from exercise_kit.engine.course import course, package

_CELL = ("<module>", "<cell line")  # what IPython 9 and 7 call the code of a cell


def install() -> None:
    """Ask to be asked by the IPython of this process, where there is one and nobody else is asked."""
    shell = _shell()
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((NameError,), _show)


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def _show(
    shell: Any, kind: type[NameError], error: NameError, trace: TracebackType, tb_offset: int | None = None
) -> None:
    """IPython's handler: a method of the shell, which prints what it has to say."""
    words = sentence(error.name, trace)
    if words:
        error._render_traceback_ = lambda: [words]  # type: ignore[attr-defined]  # IPython looks for it
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def sentence(name: str | None, trace: TracebackType | None) -> str:
    """Which cell to run, where ``name`` is missing in a cell itself and is the course's; "" elsewhere."""
    while trace and trace.tb_next:
        trace = trace.tb_next
    if trace is None or name is None or not trace.tb_frame.f_code.co_name.startswith(_CELL):
        return ""
    exercise = next((each for each in course().exercises.values() if name in each.objects), None)
    if exercise:
        word = "class" if exercise.is_class else "def"
        return f"`{name}` is not defined yet. Run the cell that begins with `{word} {name}`, then this one again."
    if name in getattr(import_module(package()), "__all__", ()):
        return f"`{name}` is not imported yet. Run the cells from the top, from the setup on, then this one again."
    return ""
