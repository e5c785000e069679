"""Where checks are called from: a notebook, whose cells run in any order, or a plain script.

A cell may run before its exercise's cell, or after one with a syntax error. Then Jupyter shows a sentence that says
which cell to run, and no traceback: IPython asks a handler about every exception. A NameError inside a function, or
about a name that is not the course's, is shown as usual. It stays an error, also for nbgrader. After a restart of the
kernel the handler comes back with the check's own cell, which imports ``check`` itself
(:mod:`exercise_kit.authoring.notebook`).

A cell that needs an exercise that is not written yet, or fails, says that it waits
(:mod:`exercise_kit.engine.waiting_cells`).

A script does not show the value of a line, so there a report is printed.
"""

from __future__ import annotations

import ast
import dis
import functools
import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from types import FrameType, TracebackType
from typing import Any, ParamSpec, TypeVar

from exercise_kit.engine.course import course
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.verdict import Report
from exercise_kit.engine.waiting_cells import CELL, clear_error_of_waiting_cell, write_waiting_line

_Error = TypeVar("_Error", bound=Exception)
_FIRST = 2  # inputs that IPython has while the first cell runs: an empty one, and that cell


def install_ipython_hooks() -> None:
    """Explain what is missing in a cell of this process's IPython, if there is one and nothing else handles errors."""
    shell = find_ipython_shell()
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((Exception,), _show_exception)
        shell.events.register("post_run_cell", clear_error_of_waiting_cell)
        shell.events.register("pre_run_cell", remember_cell_source)


@functools.cache
def print_how_work_is_kept() -> None:
    """On Colab, once: where a student's work goes when they leave."""
    if "google.colab" not in sys.modules:
        return
    print("Colab deletes its files when you leave. Keep this notebook: File > Save a copy in Drive.")
    if not os.path.isdir("/content/drive/MyDrive"):
        print("To keep what keep(...) writes, too, mount your Drive: Files at the left, then Mount Drive.")


def find_ipython_shell() -> Any:
    """This process's IPython; None where there is none."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def _show_exception(
    shell: Any, kind: type[Exception], error: Exception, trace: TracebackType, tb_offset: int | None = None
) -> None:
    """IPython's handler: a method of the shell, which prints what it has to say."""
    if line := write_waiting_line(error, trace):
        print(line)
        return
    words = explain_missing_name(error.name, trace) if isinstance(error, NameError) else ""
    if words:
        error._render_traceback_ = lambda: [words]  # type: ignore[attr-defined]  # IPython looks for it
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def hide_traceback(error: _Error) -> _Error:
    """The same exception, of which a notebook shows the message alone: no line of the traceback is the student's."""
    error._render_traceback_ = lambda: [str(error)]  # type: ignore[attr-defined]  # IPython looks for it
    return error


def explain_missing_name(name: str | None, trace: TracebackType | None) -> str:
    """Say which cell to run, where ``name`` is missing in a cell itself and is the course's; "" elsewhere."""
    while trace and trace.tb_next:
        trace = trace.tb_next
    if trace is None or name is None or not trace.tb_frame.f_code.co_name.startswith(CELL):
        return ""
    exercise = course().find_exercise_of(name)
    shell = find_ipython_shell()
    if exercise and shell is not None and len(shell.history_manager.input_hist_raw) <= _FIRST:
        where = "in JupyterLab by Run > Run All Above Selected Cell, on Colab by Runtime > Run before"
        return f"`{name}` is not defined: the kernel is new. Run the cells above from the top ({where}), then this one."
    if exercise:
        word = "class" if exercise.is_class else "def"
        return f"`{name}` is not defined yet. Run the cell that begins with `{word} {name}`, then this one again."
    if name in getattr(import_module(read_package_name()), "__all__", ()):
        return f"`{name}` is not imported yet. Run the cells from the top, from the setup on, then this one again."
    return ""


# cell → what stood in it when it ran last; name → the cell that defined it last
_last_run: dict[str, str] = {}
_home_of: dict[str, str] = {}
_DEFINED = re.compile(r"^(?:def|class)\s+(\w+)", re.MULTILINE)


def remember_cell_source(info: Any) -> None:
    """IPython's event before a cell runs: keep what the cell holds, where the front end tells cells apart."""
    cell, source = getattr(info, "cell_id", None), str(getattr(info, "raw_cell", ""))
    if cell:
        _last_run[cell] = source
        _home_of.update(dict.fromkeys(_DEFINED.findall(source), cell))


def _explain_renamed_definition(word: str, name: str) -> str:
    """A sentence where the cell that defined ``name`` defines another name now, so that ``name`` is an older one."""
    there = _DEFINED.findall(_last_run.get(_home_of.get(name, ""), name))
    if not there or name in there:
        return ""
    older = f"this is about the `{name}` from before. Is `{there[-1]}` yours? Call it `{name}`, and run that cell"
    return f"The cell with `{word} {name}` defines `{there[-1]}` now: {older}, then this one again."


def explain_outdated_answer(exercise: Exercise) -> str:
    """A sentence where the last cell that defines ``exercise`` changed nothing, or holds another name by now; else "".

    The first has a syntax error.
    """
    shell = find_ipython_shell()
    history = getattr(shell, "history_manager", None)
    word, name = "class" if exercise.is_class else "def", exercise.objects[0]
    if renamed := _explain_renamed_definition(word, name):
        return renamed
    defines = re.compile(rf"^{word}\s+{name}\b", re.MULTILINE)
    for source in reversed(history.input_hist_raw if history else []):  # the first one is the check's own cell
        if defines.search(source):
            line = _find_syntax_error_line(shell, source)
            older = f"this is about the `{name}` from before. Repair that cell, run it, then run this one again."
            return f"Line {line} of the last cell with `{word} {name}` has a syntax error: {older}" if line else ""
    return ""


def _find_syntax_error_line(shell: Any, source: str) -> int:
    """1 for the first line of a cell; 0 where it has no syntax error."""
    try:
        compile(shell.transform_cell(source), "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError) as error:  # of a NUL without a line, and in Python 3.11 a ValueError
        return getattr(error, "lineno", None) or source.partition("\0")[0].count("\n") + 1
    return 0


_Arguments = ParamSpec("_Arguments")


def print_in_script(check: Callable[_Arguments, Report]) -> Callable[_Arguments, Report]:
    """Decorate a check that returns a report: the report is printed where a script calls it and drops the result."""

    @functools.wraps(check)
    def check_and_print(*arguments: _Arguments.args, **options: _Arguments.kwargs) -> Report:
        report = check(*arguments, **options)
        caller = sys._getframe(1)
        if _is_in_script(caller) and _is_result_dropped(caller):
            print(report)
        return report

    return check_and_print


def _is_in_script(caller: FrameType) -> bool:
    """Say whether Python runs a file, and this is a line of it; a notebook's module has no file."""
    return caller.f_globals.get("__name__") == "__main__" and "__file__" in caller.f_globals


def _is_result_dropped(caller: FrameType) -> bool:
    """Say whether the caller does nothing with what the call that it is at gives."""
    following = (each.opname for each in dis.get_instructions(caller.f_code) if each.offset > caller.f_lasti)
    return next(following, "") == "POP_TOP"
