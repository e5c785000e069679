"""The progress of a long piece of work: a bar on a terminal, a plain line every ten seconds in a log."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

SECONDS = 10.0


@contextmanager
def progress_bar(console: Console, label: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Show the progress of the work in the block; work of less than ten seconds leaves no line in a log.

    Args:
        console: where it is shown: stderr, so that stdout stays for what was asked for.
        label: what is done, as "grading".
        total: how many steps there are; None: nobody counts them.

    Yields:
        What to call after each step, in any thread.
    """
    with open_unsilenced_console(console) as shown:
        if shown.is_terminal:
            counted: tuple[ProgressColumn, ...] = (MofNCompleteColumn(),) if total is not None else ()
            to_the_end = (TextColumn("left:"), TimeRemainingColumn()) if total is not None else ()
            columns = TextColumn("{task.description}"), BarColumn(), *counted, TimeElapsedColumn(), *to_the_end
            with Progress(*columns, console=shown, transient=True) as bar:
                task = bar.add_task(label, total=total)
                yield lambda: bar.advance(task)
            return
        count, done = Count(label, total), threading.Event()
        thread = threading.Thread(
            target=print_progress_lines, args=(shown, count, done.wait), name="progress bar", daemon=True
        )
        thread.start()
        try:
            yield count.advance
        finally:
            done.set()
            thread.join()


@contextmanager
def open_unsilenced_console(console: Console) -> Iterator[Console]:
    """The same console on a descriptor of its own: a check that runs meanwhile takes the process's stderr away."""
    try:
        descriptor = os.dup(console.file.fileno())
    except (OSError, ValueError, AttributeError):  # nothing of the operating system is behind it
        yield console
        return
    file = os.fdopen(descriptor, "w", encoding=console.encoding, errors="replace")
    try:
        yield Console(file=file)
    finally:
        with suppress(OSError):  # nobody reads it any more, or its disk is full
            file.close()


class Count:
    """How many steps are done; see :func:`progress_bar`."""

    def __init__(self, doing: str, total: int | None) -> None:
        self._doing, self._total = doing, total
        self._done, self._lock = 0, threading.Lock()
        self._from: tuple[float, int] | None = None  # seconds and steps from which on the speed is reckoned

    def advance(self) -> None:
        """One more step is done."""
        with self._lock:
            self._done += 1

    def line(self, seconds: float) -> str:
        """ "grading: 12 of 110 after 1:20, about 10:53 left"; without the last until steps follow the first ones, with
        which goes what takes its time but once.
        """
        if self._total is None:
            return f"{self._doing}: after {_format_clock(seconds)}"
        if self._from is None and self._done:
            self._from = seconds, self._done
        began, before = self._from or (seconds, self._done)
        steps = self._done - before
        left = (seconds - began) / steps * (self._total - self._done) if steps else 0.0
        rest = f", about {_format_clock(left)} left" if round(left) else ""
        return f"{self._doing}: {self._done} of {self._total} after {_format_clock(seconds)}{rest}"


def _format_clock(seconds: float) -> str:
    """ "1:20", "2:03:40"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def print_progress_lines(
    console: Console, count: Count, wait: Callable[[float], bool], clock: Callable[[], float] = time.monotonic
) -> None:
    """Print a line every ten seconds until the work is done.

    Args:
        console: where to.
        count: of the steps.
        wait: waits so many seconds, less when the work is done; gives whether it is.
        clock: tells the time, in seconds.
    """
    began = clock()
    while not wait(SECONDS):
        try:
            console.file.write(f"{count.line(clock() - began)}\n")
            console.file.flush()
        except OSError:  # nobody reads it any more, or its disk is full: the work goes on
            return
