"""IPython's shell as a notebook's cells know it, with the parts taken out that reach beyond Python and that run cells.

Magics and ``get_ipython()`` work or do nothing with a note; a cell keeps what it defined before its error.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.formatters import DisplayFormatter
from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import CapturedIO
from traitlets import Type
from traitlets.config import Config

from . import outputs
from .outputs import CellOutputBuffer, OutputLimits

_NOT_RUN = (
    *("pip", "conda", "mamba", "micromamba", "uv", "sx", "system", "edit", "debug", "pdb", "load_ext", "reload_ext"),
    *("bash", "sh", "script", "perl", "ruby", "python", "python2", "python3", "pypy", "cmd", "notebook", "history"),
    *("matplotlib", "pylab", "gui", "recall", "rerun", "save", "logstart", "store", "run", "macro"),
)
_OVER_A_CELL = ("time", "capture", "prun")
_SILENT = ("matplotlib", "pylab", "gui", "pdb", "load_ext", "reload_ext")


class _Publisher(DisplayPublisher):
    def publish(self, data: Any, metadata: Any = None, source: Any = None, **_: Any) -> None:
        _find_output_buffer(self).show(data, result=False)

    def clear_output(self, wait: bool = False) -> None:
        _find_output_buffer(self).clear()


class _DisplayHook(DisplayHook):
    def quiet(self) -> bool:
        shell: Any = self.shell
        return bool(self.semicolon_at_end_of_expression(shell.source))

    def start_displayhook(self) -> None:
        pass

    def write_output_prompt(self) -> None:
        pass

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        _find_output_buffer(self).show(format_dict, result=True)

    def finish_displayhook(self) -> None:
        pass


def _find_output_buffer(part: Any) -> CellOutputBuffer:
    output_buffer: CellOutputBuffer = part.shell.output_buffer
    return output_buffer


class GradingShell(InteractiveShell):
    """A shell whose cells show what they show to ``output_buffer``."""

    displayhook_class = Type(_DisplayHook)
    display_pub_class = Type(_Publisher)
    output_buffer: CellOutputBuffer
    source = ""

    at_end: list[Callable[[], None]]

    def begin_cell(self, source: str) -> None:
        """A cell begins, of which this is the text."""
        self.source, self.at_end = source, []
        self.output_buffer.begin_cell()

    def end_cell(self) -> None:
        """The cell is over: do what its first line has put off."""
        for each in self.at_end:
            each()

    def print_note_on_omission(self, text: str) -> None:
        """Tell the reader of the feedback what was not done."""
        self.output_buffer.print("stdout", f"[{text}]\n")

    def init_history(self) -> None:
        """No history, and so no database and no thread."""
        self.history_manager = HistoryManager(shell=self, parent=self, enabled=False)

    @contextlib.contextmanager
    def _tee(self, channel: str) -> Iterator[None]:
        """No copy of all that is printed, which IPython would keep without limit."""
        yield

    def init_virtualenv(self) -> None:
        """The worker's path is set already."""

    def system(self, cmd: str) -> None:
        """Shell commands are not run."""
        self.print_note_on_omission(f"`!{cmd.strip()[:60]}` is not run while grading")

    system_raw = system_piped = system

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> Any:
        """Shell commands are not run; their output is empty."""
        self.system(cmd)
        return [] if split else ""

    def run_line_magic(self, magic_name: str, line: str, _stack_depth: int = 1) -> Any:
        """Run a magic that stays within Python; of any other leave a note."""
        if magic_name in _OVER_A_CELL and not (line and magic_name != "capture"):
            self._begin_cell_magic(magic_name, line)
            return None
        if magic_name in _NOT_RUN or self.find_line_magic(magic_name) is None:
            if magic_name not in _SILENT:
                self.print_note_on_omission(f"`%{magic_name}` is not run while grading")
            return None
        return super().run_line_magic(magic_name, line, _stack_depth + 1)

    def _begin_cell_magic(self, magic_name: str, line: str) -> None:
        """Begin what a ``%%time`` or ``%%capture kept`` does to the cell, whose other lines run as any cell's do."""
        buffer, started = self.output_buffer, time.monotonic()

        def bind_captured_output() -> None:
            printed = {"stdout": io.StringIO(), "stderr": io.StringIO()}
            for each in buffer.outputs:
                if each["output_type"] == "stream":
                    printed[each["name"]].write(each["text"])
            buffer.outputs = [each for each in buffer.outputs if each["output_type"] == "error"]
            names = [word for word in line.split() if word.isidentifier()]
            self.user_ns |= {name: CapturedIO(printed["stdout"], printed["stderr"]) for name in names}

        def print_wall_time() -> None:
            buffer.print("stdout", f"Wall time: {time.monotonic() - started:.3g} s\n")

        if magic_name != "prun":
            self.at_end.append(bind_captured_output if magic_name == "capture" else print_wall_time)

    def run_cell_magic(self, magic_name: str, line: str, cell: str) -> Any:
        """Run a magic that stays within Python; of any other leave a note."""
        if magic_name in _NOT_RUN or self.find_cell_magic(magic_name) is None:
            self.print_note_on_omission(f"`%%{magic_name}` is not run while grading")
            return None
        return super().run_cell_magic(magic_name, line, cell)

    def ask_exit(self) -> None:
        """``exit`` and ``quit`` end nothing here."""

    def showtraceback(self, *_: Any, **options: Any) -> None:
        """Note the error that is being handled, with the cell's own lines."""
        error = sys.exc_info()[1]
        if error is not None:
            self.output_buffer.add_error(*outputs.describe_error_for_feedback(error))

    def showsyntaxerror(self, *_: Any, **options: Any) -> None:
        """Note the error that is being handled."""
        self.showtraceback()


def make_shell() -> GradingShell:
    """The one shell of this process, in which nothing has run yet."""
    config = Config()
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.autoindent = False
    config.HistoryManager.enabled = False
    shell = GradingShell.instance(config=config)
    shell.output_buffer = CellOutputBuffer(OutputLimits(10_000, 200_000, 12, 1 << 20))
    formatter = DisplayFormatter(parent=shell, active_types=["text/plain", "image/png"])
    shell.display_formatter = formatter
    formatter.formatters["image/png"].for_type_by_name(
        "matplotlib.figure", "Figure", lambda figure: outputs.draw_png(figure, shell.output_buffer)
    )
    shell.builtin_trap.__enter__()  # get_ipython() is there in cells and in what they define
    outputs.redirect_pyplot_show(shell)
    _disable_input_and_debugger(shell)
    return shell


def _disable_input_and_debugger(shell: GradingShell) -> None:
    """Nobody answers a question or steps through a debugger here."""

    def refuse_input(prompt: object = "", *_: object) -> str:
        raise EOFError("nobody answers input() while grading")

    def ignore_breakpoint(*_: object, **__: object) -> None:
        shell.print_note_on_omission("breakpoint() does not stop while grading")

    builtins.input = refuse_input
    sys.breakpointhook = ignore_breakpoint
    _stops: dict[str, Callable[..., None]] = {
        "set_trace": ignore_breakpoint,
        "post_mortem": ignore_breakpoint,
        "pm": ignore_breakpoint,
    }
    import pdb

    for name, function in _stops.items():
        setattr(pdb, name, function)
