"""The clock beside a check in a student's own process: it says what takes long, and stops what does not end.

A thread watches the time. At the limit it raises SIGINT, as the interrupt button of a notebook does, and the handler
that is installed during the check ends the student's code with an exception that `except Exception` does not catch. In
the course's own code, and in torch called by it, nothing is raised: there the next call of the student's code ends
instead. On Windows `signal.raise_signal` wakes a sleeping main thread, elsewhere `pthread_kill` does. C code cannot be
stopped before it returns to Python. While the judge grades, other clocks count.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, TextIO

# as in grading, see exercise_kit.sandbox.limits
CALL_SECONDS, TOTAL_SECONDS = 10.0, 60.0
_DEBUGGERS = ("bdb", "pdb", "pydevd", "IPython.core.debugger")
_TICK = 0.05
_MOST_KNOCKS = 6
_STUCK = (
    "it works outside of Python, or a bare `except:` catches everything. Restart the kernel (Kernel > Restart), and "
    "run the cells from the top."
)


@dataclass(frozen=True)
class Patience:
    """Seconds of a student's code: after which it is said that it runs, that one call may take, and all together."""

    notice: float = 3.0
    call: float = CALL_SECONDS
    total: float = TOTAL_SECONDS
    again: float = 0.5  # until code that goes on all the same is reported once more


class TimeIsUpError(BaseException):
    """Raised in a student's code when its time is over; the message is a clause about it."""


class InterruptedCheck(KeyboardInterrupt):
    """The student has interrupted a check. Jupyter shows the sentence, and no traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class Watchdog:
    """Watches the time while a student's code is called; entered around all checks of one answer.

    Args:
        name: of what is checked, for sentences.
        ours: beginnings of the paths of files whose code is the course's or the kit's.
        libraries: beginnings of the paths of files whose code counts as its caller's.
        patience: how long each thing may take.

    Attributes:
        claim: of the check that runs.
        paused: while no code of the student's is called.
        expired: why that code was stopped, or None.
    """

    def __init__(
        self, name: str, ours: tuple[str, ...], libraries: tuple[str, ...], patience: Patience | None = None
    ) -> None:
        self._name = name
        self._ours, self._libraries = ours, libraries
        self._patience = patience or Patience()
        self._over = threading.Event()
        self._began: float | None = None
        self._spent = self._excused = 0.0
        self._caller = threading.get_ident()
        self._before: Any = None
        self._has_handler = False
        self._interrupted = False
        self._knocks = 0
        self._is_tracing = False
        self._shown = ""
        self._out: TextIO = sys.stdout
        self.claim = ""
        self.paused = False
        self.expired: str | None = None

    def __enter__(self) -> Watchdog:
        global _current
        self._outer, _current = _current, self
        if threading.current_thread() is threading.main_thread():
            with contextlib.suppress(ValueError):  # not in a subinterpreter
                self._before = signal.getsignal(signal.SIGINT)
                if self._before is not None:
                    signal.signal(signal.SIGINT, self._handle_sigint)
                    self._has_handler = True
        self._thread = threading.Thread(target=self._watch_from_thread, name="check's watchdog", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        global _current
        _current = self._outer
        self._over.set()
        self._thread.join()
        if self._is_tracing:
            sys.settrace(None)
        if self._has_handler:
            signal.signal(signal.SIGINT, self._before)
        if self._shown and _supports_carriage_return(self._out):
            self._print_text("\r" + " " * len(self._shown) + "\r")
        if self._interrupted or isinstance(error, KeyboardInterrupt):
            place = f", at “{self.claim}”" if self.claim else "."
            words = f"You interrupted the check of {self._name}{place} Nothing is decided: run the cell again any time."
            raise InterruptedCheck(words) from None

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """Around a call of the student's code.

        Raises:
            TimeIsUpError: it took too long, or another one did before.
            KeyboardInterrupt: the student has interrupted the check.
        """
        if self.paused and self._interrupted:
            raise KeyboardInterrupt
        if self.paused or self._began is not None:  # a call within a call
            yield
            return
        self._raise_pending_interrupt()
        self._excused = 0.0
        self._began = began = time.monotonic()
        try:
            yield
        finally:
            self._began = None
            call = time.monotonic() - began - self._excused
            self._spent += call
        self._note_if_expired(call)
        self._raise_pending_interrupt()

    def _raise_pending_interrupt(self) -> None:
        if self._interrupted:
            raise KeyboardInterrupt
        if self.expired:
            raise TimeIsUpError(self.expired)

    def _note_if_expired(self, call: float) -> None:
        """Note that a call, or all together, took too long."""
        if call >= self._patience.call:
            self.expired = f"did not come back within {self._patience.call:g} seconds"
        elif self._spent + (call if self._began else 0.0) >= self._patience.total:
            self.expired = f"took more than the {self._patience.total:g} seconds that all its checks have together"

    def _watch_from_thread(self) -> None:
        now, next_knock, knocks = time.monotonic(), 0.0, 0
        while not self._over.wait(_TICK):
            last, now = now, time.monotonic()
            began = self._began
            if began is None:
                continue
            if _is_importing(sys._current_frames().get(self._caller)):
                self._excused += now - max(last, began)
            call = now - began - self._excused
            if self._spent + call >= self._patience.notice and not self._shown:
                self._show_notice(self._spent + call)
            if not self.expired:
                self._note_if_expired(call)
            if (self.expired or self._interrupted) and self._has_handler and now >= next_knock:
                next_knock = now + self._patience.again
                _raise_sigint()
                knocks += 1
            if knocks == _MOST_KNOCKS:
                knocks += 1
                self._print_text(f"\n{self._name} cannot be stopped from here: {_STUCK}\n")

    def _show_notice(self, seconds: float) -> None:
        text = f"{self._name} has been running for {seconds:.0f} s, now at “{self.claim}”"
        self._shown = text
        self._print_text(text if _supports_carriage_return(self._out) else f"{text}\n")

    def _print_text(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._out.write(text)
            self._out.flush()

    def _handle_sigint(self, number: int, frame: FrameType | None) -> None:
        """SIGINT: from the thread that looks on, or from the student."""
        if not self.expired and not self._interrupted:
            if self._before is not signal.default_int_handler:
                if callable(self._before):
                    self._before(number, frame)
                return
            self._interrupted = True
        if self._began is None or _is_importing(frame) or not self._is_student_code(frame):
            return
        self._knocks += 1
        if self._knocks > 1 and (self._is_tracing or sys.gettrace() is None):
            self._raise_in_handlers(frame)
        self._raise_pending_interrupt()

    def _is_student_code(self, frame: FrameType | None) -> bool:
        """Say whether what runs is the student's, or a library's that it calls, unless somebody steps through it."""
        theirs: bool | None = None
        while frame:
            file, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__"))
            if module.startswith(_DEBUGGERS) and not self._interrupted:
                return False
            if theirs is None and (file.startswith(self._ours) or not file.startswith(self._libraries)):
                theirs = not file.startswith(self._ours)
            frame = frame.f_back
        return bool(theirs)

    def _raise_in_handlers(self, frame: FrameType | None) -> None:
        """Give what caught the exception before by a bare `except:` another one on the first line of its handler."""

        def trace(traced_frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
            if traced_frame.f_code.co_filename.startswith(self._ours):
                return None
            if event == "line":
                self._raise_pending_interrupt()
            return trace

        self._is_tracing = True
        sys.settrace(trace)
        while frame and not frame.f_code.co_filename.startswith(self._ours):
            frame.f_trace = trace
            frame = frame.f_back


def _is_importing(frame: FrameType | None) -> bool:
    """Say whether a module is being imported: torch does so late, it may take long, and it must not be broken off."""
    while frame:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


_current: Watchdog | None = None


def watch_call() -> contextlib.AbstractContextManager[None]:
    """Around a call of a student's code: the watchdog of the check that runs looks on, where there is one."""
    return _current.call() if _current else contextlib.nullcontext()


def set_claim_being_checked(claim: str) -> None:
    """From now on the check with that claim runs."""
    if _current:
        _current.claim = claim


@contextlib.contextmanager
def pause_watching() -> Iterator[None]:
    """While known mistakes are called in the student's place, their time does not count."""
    if _current:
        _current.paused = True
    try:
        yield
    finally:
        if _current:
            _current.paused = False


def _raise_sigint() -> None:
    """SIGINT to the main thread, so that it also wakes one that sleeps."""
    if hasattr(signal, "pthread_kill"):
        main = threading.main_thread().ident
        if main is not None:
            signal.pthread_kill(main, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)


def _supports_carriage_return(out: TextIO) -> bool:
    """Say whether a carriage return goes back to the begin of the line: in a terminal, and in Jupyter's cells."""
    with contextlib.suppress(Exception):
        return out.isatty() or type(out).__module__.startswith("ipykernel")
    return False
