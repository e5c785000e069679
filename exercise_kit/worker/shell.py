"""IPython's shell as a notebook's cells know it, with the parts taken out that reach beyond Python.

Magics and ``get_ipython()`` work or do nothing with a note; a cell keeps what it defined before its error.
"""

from __future__ import annotations

import builtins
import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.formatters import DisplayFormatter
from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

from . import outputs
from .limits import CellTimeout, time_limit
from .outputs import CellOutputBuffer, OutputLimits, Stream

_NOT_RUN = (
    *("pip", "conda", "mamba", "micromamba", "uv", "sx", "system", "edit", "debug", "pdb", "load_ext", "reload_ext"),
    *("bash", "sh", "script", "perl", "ruby", "python", "python2", "python3", "pypy", "cmd", "notebook", "history"),
    *("matplotlib", "pylab", "gui", "recall", "rerun", "save", "logstart", "store", "run", "macro"),
)
_SILENT = ("matplotlib", "pylab", "gui", "pdb", "load_ext", "reload_ext")


class _Compiler(CachingCompiler):
    """The third cell's code is in the file ``<cell 3>``."""

    cell = 0

    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str:
        return outputs.name_of_cell(self.cell)


class _Publisher(DisplayPublisher):
    def publish(self, data: Any, metadata: Any = None, source: Any = None, **_: Any) -> None:
        _output_buffer(self).show(data, result=False)

    def clear_output(self, wait: bool = False) -> None:
        _output_buffer(self).clear()


class _DisplayHook(DisplayHook):
    def quiet(self) -> bool:
        shell: Any = self.shell
        return bool(self.semicolon_at_end_of_expression(shell.source))

    def start_displayhook(self) -> None:
        pass

    def write_output_prompt(self) -> None:
        pass

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        _output_buffer(self).show(format_dict, result=True)

    def finish_displayhook(self) -> None:
        pass


def _output_buffer(part: Any) -> CellOutputBuffer:
    output_buffer: CellOutputBuffer = part.shell.output_buffer
    return output_buffer


class GradingShell(InteractiveShell):
    """A shell whose cells show what they show to ``output_buffer``."""

    compiler_class = Type(_Compiler)
    displayhook_class = Type(_DisplayHook)
    display_pub_class = Type(_Publisher)
    output_buffer: CellOutputBuffer
    source = ""

    def run(self, index: int, source: str, limit: float) -> dict[str, Any]:
        """Run one cell, for ``limit`` seconds at most: {"outputs": [...], "seconds": ...}."""
        self.compile.cell = index  # type: ignore[attr-defined]
        self.source = source
        self.output_buffer.begin()
        streams = Stream(self.output_buffer, "stdout"), Stream(self.output_buffer, "stderr")
        before, started = (sys.stdout, sys.stderr), time.monotonic()
        sys.stdout, sys.stderr = streams
        for stream in streams:
            stream.listening = True
        try:
            with time_limit(limit):
                self.run_cell(source, store_history=False)
                outputs.show_all(self.output_buffer)
        except (
            CellTimeout,
            Exception,
        ) as error:  # a figure that cannot be drawn; the end came while IPython was at work
            self.output_buffer.fail(*outputs.for_feedback(error))
        finally:
            for stream in streams:
                stream.listening = False
            sys.stdout, sys.stderr = before
        return {"outputs": self.output_buffer.outputs, "seconds": time.monotonic() - started}

    def note(self, text: str) -> None:
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
        self.note(f"`!{cmd.strip()[:60]}` is not run while grading")

    system_raw = system_piped = system

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> Any:
        """Shell commands are not run; their output is empty."""
        self.system(cmd)
        return [] if split else ""

    def run_line_magic(self, magic_name: str, line: str, _stack_depth: int = 1) -> Any:
        """Run a magic that stays within Python; of any other leave a note."""
        if magic_name in _NOT_RUN or self.find_line_magic(magic_name) is None:
            if magic_name not in _SILENT:
                self.note(f"`%{magic_name}` is not run while grading")
            return None
        return super().run_line_magic(magic_name, line, _stack_depth + 1)

    def run_cell_magic(self, magic_name: str, line: str, cell: str) -> Any:
        """Run a magic that stays within Python; of any other leave a note."""
        if magic_name in _NOT_RUN or self.find_cell_magic(magic_name) is None:
            self.note(f"`%%{magic_name}` is not run while grading")
            return None
        return super().run_cell_magic(magic_name, line, cell)

    def ask_exit(self) -> None:
        """``exit`` and ``quit`` end nothing here."""

    def showtraceback(self, *_: Any, **options: Any) -> None:
        """Note the error that is being handled, with the cell's own lines."""
        error = sys.exc_info()[1]
        if error is not None:
            self.output_buffer.fail(*outputs.for_feedback(error))

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
        "matplotlib.figure", "Figure", lambda figure: outputs.png(figure, shell.output_buffer)
    )
    outputs.take_over(shell)
    _take_over_input(shell)
    return shell


def _take_over_input(shell: GradingShell) -> None:
    """Nobody answers a question or steps through a debugger here."""

    def no_input(prompt: object = "", *_: object) -> str:
        raise EOFError("nobody answers input() while grading")

    def stop(*_: object, **__: object) -> None:
        shell.note("breakpoint() does not stop while grading")

    builtins.input = no_input
    sys.breakpointhook = stop
    _stops: dict[str, Callable[..., None]] = {"set_trace": stop, "post_mortem": stop, "pm": stop}
    import pdb

    for name, function in _stops.items():
        setattr(pdb, name, function)
