"""The sandbox from the judge's side: it makes workers, and each is one submission's process, never trusted.

Whatever a worker does, the judge gets either a well-formed reply or :class:`WorkerLost`, and in time. Where the
judge's own code fails meanwhile, that is :class:`GraderFailed`, and says nothing about the submission.
"""

from __future__ import annotations

import base64
import contextlib
import marshal
import socket
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from exercise_kit.engine.call_rules import FREE, Rule
from exercise_kit.engine.course import course
from exercise_kit.sandbox.callbacks import CallbackBudget, CallbackService
from exercise_kit.sandbox.cell_outputs import CellRun, count_output_characters, validate_outputs
from exercise_kit.sandbox.limits import (
    GraderFailed,
    Limits,
    WorkerLost,
    is_out_of_memory,
    make_exit_loss,
    make_protocol_loss,
    make_timeout_loss,
)
from exercise_kit.sandbox.request_clock import RequestClock, read_queued_seconds
from exercise_kit.sandbox.warm_process import WarmProcess, WarmProcessLost
from exercise_kit.submission.flags import NOT_SANDBOXED, WEAKER_SANDBOX
from exercise_kit.submission.slice import convert_to_python, parse
from exercise_kit.submission.submission import CellSource
from exercise_kit.worker.preload import find_used_packages
from exercise_kit.worker.values import Packer, Unpacker
from exercise_kit.worker.wire import Caps, Closed, Late, Wire, WireError

_PATIENCE = 1.0  # seconds that a child which hung up has to end, so that its exit status is known
_GRACE = 1.0  # seconds that a cell has to end after it was interrupted
_HEADER_BYTES = 2 << 20
_LONGEST_TEXT = 1 << 20
_LENT = "<cell of the judge>"  # as a student's own cells are called
_ALL = 1 << 30  # statements of a cell
_MOST_NAMES, _LONGEST_NAME = {"attempts": 20, "called": 4000, "answered": 4000}, 400
_SOCKET_BYTES = 1 << 22  # so that a large tensor goes over in few turns
_SO_SNDBUFFORCE = 32  # for root, beyond the system's limit


class Worker(contextlib.AbstractContextManager["Worker"]):
    """One submission's process; as a context manager it is ended at the end.

    Attributes:
        lost: how it was lost; None as long as it answers.
        failure: how the grader itself failed while it talked to this worker, and so ended it; None: it did not.
        spent: the seconds that its replies took.
    """

    def __init__(
        self,
        warm: WarmProcess,
        limits: Limits,
        view: Path | None,
        used: Sequence[str] | None = None,
        withheld: str = "",
    ) -> None:
        self._withheld: dict[str, Any] | None = FREE.list_withheld_functions()  # None: as in the request before
        self._called: dict[str, None] = {}
        self._answered: dict[str, None] = {}
        self._warm = warm
        self._limits = limits
        self._number = self._characters = self._pictures = 0
        self._budget = CallbackBudget()
        self._attempts: dict[str, None] = {}
        self.lost: WorkerLost | None = None
        self.failure: GraderFailed | None = None
        self._closed = False
        self._socket, theirs = _make_socket_pair()
        caps = Caps(_HEADER_BYTES, limits.reply_bytes)
        self._wire = Wire(self._socket.fileno(), caps, blocking=False)
        with theirs:
            self._child = warm.fork(theirs, view, limits, used, withheld)
        self._handshake()
        self.spent = 0.0

    def apply_rule(self, rule: Rule | None) -> None:
        """Have the functions refuse that a rule does not allow, from here on; what was noted is forgotten."""
        self._withheld = (rule or FREE).list_withheld_functions()
        self._called.clear()
        self._answered.clear()

    @property
    def called(self) -> tuple[str, ...]:
        """What the student's functions called and was refused, in order, by the names that a rule has for them."""
        return tuple(self._called)

    @property
    def answered(self) -> tuple[str, ...]:
        """Whose code has answered since then, as :meth:`worker.cells.Cells.find_code_objects` tells it."""
        return tuple(self._answered)

    @property
    def attempts(self) -> tuple[str, ...]:
        """What it tried that no submission has business with, as far as it was noticed."""
        return tuple(self._attempts)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, whatever it does."""
        self._end_worker_process(0.0)

    def run(self, cells: Sequence[CellSource], ended: Mapping[int, int] | None = None) -> Iterator[CellRun]:
        """Compile all cells, then run them in order, giving each when it has ended.

        Args:
            cells: in the notebook's order.
            ended: where they run again and something is withheld: the index of a cell that broke off by itself before
                → the statement at which it did. What is refused before that, or in another cell, is passed over.

        Raises:
            WorkerLost: a cell ended the process or took too long; ``cell`` is its index.
        """
        for cell in cells:
            with _blame_cell(cell):
                text = convert_to_python(cell.source)
                self.request("compile", index=cell.index, source=text or cell.source, readable=text is not None)
        for cell in cells:
            with _blame_cell(cell):
                run = self._run_cell(cell, None if ended is None else ended.get(cell.index, _ALL))
            yield run

    def define_without_source(self, source: str) -> None:
        """Define what code of the judge's defines, compiled here: no text of it is there.

        Raises:
            WorkerLost: there is no well-formed reply in time.
            GraderFailed: the grader's own code failed; the worker is ended.
        """
        if tree := parse(source):
            code = marshal.dumps(compile(tree, _LENT, "exec"))
            self.request("define_without_source", code=base64.b85encode(code).decode())

    def request(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Ask for one of the services of :mod:`exercise_kit.worker.requests`.

        Args:
            kind: "call", "build", "forward", ...
            fields: what that service takes, as Python values.

        Returns:
            its reply, as Python values; {"raised": ...} where the student's code raised.

        Raises:
            WorkerLost: there is no well-formed reply in time.
            GraderFailed: the grader's own code failed; the worker is ended.
        """
        seconds = self._limits.call_seconds
        left = self._limits.total_seconds - self.spent
        return self._request(kind, seconds, fields, RequestClock(min(seconds, left), self._count_queued_seconds))

    def _run_cell(self, cell: CellSource, until: int | None) -> CellRun:
        """Run one cell; one that is over its time is stopped from within, or it is the end of the worker."""
        limit, started = self._limits.cell_seconds, time.monotonic()
        fields = {"index": cell.index, "limit": limit, "until": until}
        left = self._limits.total_seconds - self.spent
        interrupt = self._interrupt if limit < left else None  # after the last second there is nothing to go on with
        clock = RequestClock(min(limit, left), self._count_queued_seconds, interrupt, _GRACE)
        reply = self._request("cell", limit, fields, clock)
        try:
            outputs = validate_outputs(reply.get("outputs"), self._limits)
        except OverflowError:
            raise self._record_loss(WorkerLost("output", "shows more than a cell may")) from None
        except ValueError as error:
            raise self._record_loss(make_protocol_loss(str(error))) from None
        except Exception as error:
            raise self.end_after_grader_failure(error) from error
        self._characters += sum(map(count_output_characters, outputs))
        self._pictures += sum("image/png" in output.get("data", {}) for output in outputs)
        if self._characters > 3 * self._limits.all_chars or self._pictures > self._limits.pictures:
            raise self._record_loss(WorkerLost("output", "shows more than its cells may"))
        seconds = time.monotonic() - started
        at, passed = reply.get("at"), reply.get("passed") is True
        return CellRun(cell.index, outputs, seconds, clock.interrupted, at if type(at) is int else 0, passed)

    def _request(self, kind: str, seconds: float, fields: Mapping[str, Any], clock: RequestClock) -> dict[str, Any]:
        if self.lost is not None:
            raise self.lost
        if self.failure is not None:
            raise self.failure
        if self._closed:
            raise WorkerLost("ended", "has been ended")
        try:
            return self._send_and_await_reply(kind, clock, fields)
        except Late:
            raise self._record_loss(make_timeout_loss(seconds)) from None
        except Closed:
            raise self._record_loss(make_exit_loss(*self._end_worker_process(_PATIENCE))) from None
        except WireError as error:
            raise self._record_loss(make_protocol_loss(str(error))) from None
        except Exception as error:
            raise self.end_after_grader_failure(error) from error
        finally:
            self.spent += clock.count_seconds()

    def _count_queued_seconds(self) -> float:
        """Return how long worker and judge have stood in line for a core; what is not known counts as no time."""
        try:
            return read_queued_seconds() + self._warm.ask_queued_seconds(self._child)
        except WarmProcessLost:
            return read_queued_seconds()

    def _interrupt(self) -> None:
        with contextlib.suppress(WarmProcessLost):
            self._warm.interrupt(self._child)

    def end_after_grader_failure(self, error: Exception) -> GraderFailed:
        """End the worker because the grader's own code has failed with ``error``; what to raise.

        Raises:
            MemoryError: it is the judge's memory that has run out.
        """
        if is_out_of_memory(error):
            self.close()
            raise MemoryError from error
        if self.failure is None:
            words = f"the grader failed while it talked to this submission ({type(error).__name__})"
            self.failure = GraderFailed(words, "".join(traceback.format_exception(error)))
            self.close()
        return self.failure

    def _send_and_await_reply(self, kind: str, clock: RequestClock, fields: Mapping[str, Any]) -> dict[str, Any]:
        self._wire.more_time = clock.extend_deadline
        if not self._wire.has_nothing_to_read():
            self._wire.receive(clock.deadline)  # where it is the worker's end that waits there, this raises Closed
            raise WireError("an answer that nobody asked for")
        packer = Packer(_LONGEST_TEXT, with_callables=True, records=course().records)
        self._number += 1
        request = packer.pack({"kind": kind, "withheld": self._withheld, **fields})
        self._withheld = None
        self._wire.send({"number": self._number, "request": request}, packer.tensors, clock.deadline)
        service = CallbackService(packer.callables, self._budget)
        while True:
            key, value = self._receive(clock.deadline)
            if key == "reply":
                return value
            started = time.monotonic()
            answer = Packer()
            packed = answer.pack(service.answer(value))
            clock.exclude_seconds(time.monotonic() - started)
            self._wire.send({"number": self._number, "answer": packed}, answer.tensors, clock.deadline)

    def _receive(self, deadline: float) -> tuple[str, dict[str, Any]]:
        body, tensors = self._wire.receive(deadline)
        keys = body.keys() - {"number", "noted"} if isinstance(body, dict) else set()
        if keys not in ({"reply"}, {"question"}) or body.get("number") != self._number:
            raise WireError("an answer to another question")
        key = keys.pop()
        value = Unpacker(tensors).unpack(body[key])
        if not isinstance(value, dict):
            raise WireError("a reply without its parts")
        noted = body.get("noted")
        kept = ("attempts", self._attempts), ("called", self._called), ("answered", self._answered)
        for names, found in kept:
            _add_noted_names(found, noted.get(names) if isinstance(noted, dict) else None, _MOST_NAMES[names])
        return key, value

    def _handshake(self) -> None:
        try:
            said, _ = self._wire.receive(time.monotonic() + self._limits.start_seconds)
        except (Late, Closed, WireError) as error:
            status, _ = self._end_worker_process(_PATIENCE)
            raise WarmProcessLost(f"a worker did not start: {type(error).__name__}, status {status}") from None
        if "failed" in said:  # by code of ours, before any of a student's
            self._end_worker_process(_PATIENCE)
            raise WarmProcessLost(f"a worker did not start: {said['failed']}")

    def _end_worker_process(self, patience: float) -> tuple[int | None, bool]:
        """End the process, which has ``patience`` seconds to do it; how it ended, and whether by itself."""
        if self._closed:
            return None, False
        self._closed = True
        self._socket.close()
        try:
            return self._warm.end_child(self._child, patience)
        except WarmProcessLost:
            return None, False

    def _record_loss(self, lost: WorkerLost) -> WorkerLost:
        """Remember how it was lost, and end it."""
        self.lost = lost
        self.close()
        return lost


@contextlib.contextmanager
def _blame_cell(cell: CellSource) -> Iterator[None]:
    """A worker that is lost inside was lost by this cell."""
    try:
        yield
    except WorkerLost as lost:
        lost.cell = cell.index
        raise


def _add_noted_names(names_noted: dict[str, None], names: Any, max_count: int) -> None:
    for name in names if isinstance(names, list) else ():
        if isinstance(name, str) and len(names_noted) < max_count:
            names_noted[name[:_LONGEST_NAME]] = None


def _make_socket_pair() -> tuple[socket.socket, socket.socket]:
    """Two ends of a line; the first, the judge's, does not block."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    for end in (ours, theirs):
        for option in (socket.SO_SNDBUF, _SO_SNDBUFFORCE):
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, option, _SOCKET_BYTES)
    return ours, theirs


_ATTEMPTS_AT_FORK = 2


class Sandbox(contextlib.AbstractContextManager["Sandbox"]):
    """Owns one warm process, which is started at first use at the latest, and again when it is gone.

    Args:
        limits: what each worker may use, and where; what is sent there and what comes back lies on the CPU.
        sandboxed: apply the sandbox policy; without, a submission can do whatever its user can.
        views: the packages that workers may see, one each; another one named later starts the warm process anew.
        warm: a warm process that was started for these limits, protections and views; the sandbox owns it now.

    Attributes: ``is_weaker``, that a worker was made without namespaces, which this machine refuses.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        sandboxed: bool = True,
        views: Sequence[Path] = (),
        warm: WarmProcess | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self._sandboxed = sandboxed
        self._views = list(warm.views if warm else views)
        self._warm = warm
        self.is_weaker = False

    @property
    def protections(self) -> tuple[str, ...]:
        """The names of the protections in force; none when it is not sandboxed."""
        return self._get_started_process().protections

    @property
    def flags(self) -> tuple[str, ...]:
        """The flag that says how much of a sandbox its workers have had, unless it was a whole one."""
        if not self._sandboxed:
            return (NOT_SANDBOXED,)
        return (WEAKER_SANDBOX,) if self.is_weaker else ()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the warm process and its worker."""
        if self._warm is not None:
            self._warm.close()
            self._warm = None

    def worker(self, view: Path | None = None, source: str | None = None, withheld: str = "") -> Worker:
        """A new worker; the one before it is ended.

        Args:
            view: the folder that holds the package as the submission's lesson sees it.
            source: the code that will run there, which decides what the first worker waits for; None: for everything.
            withheld: what cannot be computed there: a pattern in names, as :mod:`exercise_kit.worker.withheld` has it.

        Raises:
            WarmProcessLost: no warm process can be started, or the sandbox cannot be set up.
        """
        if view is not None and view not in self._views:
            self._views.append(view)
            self.close()
        for attempt in range(_ATTEMPTS_AT_FORK):
            try:
                used = None if source is None else find_used_packages(source)
                return Worker(self._get_started_process(), self.limits, view, used, withheld)
            except WarmProcessLost:
                self.close()
                if attempt == _ATTEMPTS_AT_FORK - 1:
                    raise
        raise AssertionError("unreachable")

    def start(self) -> None:
        """Begin to start the warm process, for which the first worker will wait."""
        if self._warm is None:
            self._warm = WarmProcess(self.limits, self._views, sandboxed=self._sandboxed)

    def _get_started_process(self) -> WarmProcess:
        if self._warm is not None and self._warm.is_lost:
            self.close()
        self.start()
        assert self._warm is not None, "it was started above"
        protections = self._warm.protections  # waits for it
        self.is_weaker = self._sandboxed and "namespaces" not in protections
        return self._warm
