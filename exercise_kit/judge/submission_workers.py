"""The workers of one submission: its cells are run in the first, and in another one where that is lost.

A cell that ends a worker is left out of the next, for what the submission does elsewhere may be right. What an exercise
forbids is not there in the worker that runs its answer; the cells, which may use it, have run elsewhere before.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from exercise_kit.judge.result import CellOutputs, Findings, LogEntry, LogKind
from exercise_kit.quoting import make_one_line, quote_first_line
from exercise_kit.sandbox.limits import WorkerLost
from exercise_kit.sandbox.request_clock import BACKSTOP
from exercise_kit.sandbox.sandbox import Sandbox, Worker
from exercise_kit.submission.flags import STOPPED, TIMEOUT
from exercise_kit.submission.submission import CellSource, ExerciseAnswer, Submission

MOST_WORKERS = 4


class WorkerUnavailable(Exception):
    """The submission has used up its workers or its time; the message is a clause about it."""


class SubmissionWorkers:
    """Makes a submission's workers, one at a time, and keeps what its cells showed and raised.

    Args:
        submission: what was handed in.
        sandbox: makes the workers.
        view: the package as the submission's lesson sees it.
        findings: where what goes wrong is written down.
    """

    def __init__(self, submission: Submission, sandbox: Sandbox, view: Path | None, findings: Findings) -> None:
        self._submission, self._sandbox, self._view, self._findings = submission, sandbox, view, findings
        self._backstop = time.monotonic() + BACKSTOP * sandbox.limits.total_seconds
        self._spent = 0.0  # by the workers that are gone
        self._worker: Worker | None = None
        self._made = 0
        self._withheld, self._have_run = "", False
        self._left_out: dict[int, str] = {}
        self._raised: dict[int, tuple[str, str]] = {}  # the exception's class, and its words, quoted
        self._ended: dict[int, int] = {}  # at which statement
        self._incomplete: set[int] = set()  # where something is withheld
        self._outputs: dict[int, CellOutputs] = {}

    @property
    def outputs(self) -> tuple[CellOutputs, ...]:
        """What the cells showed, in the notebook's order."""
        return tuple(self._outputs[index] for index in sorted(self._outputs))

    @property
    def is_alive(self) -> bool:
        """Whether there is a worker to go on with."""
        return self._worker is not None and not self._worker.lost

    @property
    def is_out_of_time(self) -> bool:
        """Whether the submission has used up the time that all its workers have together."""
        spent = self._spent + (self._worker.spent if self._worker else 0.0)
        return spent >= self._sandbox.limits.total_seconds or time.monotonic() >= self._backstop

    def ready(self, withheld: str = "") -> Worker:
        """A worker in which the cells have run.

        Args:
            withheld: what cannot be computed there, as :meth:`Sandbox.worker` has it. The cells have run, and have
                shown what they show, in another worker before.

        Raises:
            WorkerUnavailable: none may be made any more.
            GraderFailed: the grader's own code failed while the cells ran.
            WarmProcessLost: none can be made.
        """
        if withheld and not self._have_run:
            self.ready()
        if withheld != self._withheld and self.is_alive:
            self.close()
            self._made -= 1
        self._withheld = withheld
        if self.is_out_of_time:
            self._findings.flag(TIMEOUT)
            raise WorkerUnavailable(f"took longer than {self._sandbox.limits.total_seconds:g} seconds in all")
        while self._worker is None or self._worker.lost or self._worker.failure:
            self.close()
            if self._made == MOST_WORKERS:
                raise WorkerUnavailable(f"has brought {MOST_WORKERS} processes to an end")
            self._made += 1
            source = "\n".join(each.source for each in self._submission.cells)
            self._worker = self._sandbox.worker(self._view, source, withheld)
            if withheld:
                self._run_cells_withheld(self._worker)
            else:
                self._run_cells(self._worker)
                self._have_run = True
        return self._worker

    def replace_after_failure(self) -> Worker:
        """A fresh worker after the grader's own failure, which does not count against the submission."""
        self._made -= 1
        return self.ready(self._withheld)

    @contextmanager
    def with_model_parts(self, answer: ExerciseAnswer, withheld: str) -> Iterator[Worker]:
        """A separate worker, in which an answer calls the model solutions of its parts.

        Before the answer's cell they replace what it looks up while it runs; at the end, what it looks up when called.
        """
        self.close()
        cells, ended = self._list_cells(), self._ended if withheld else None
        before = [each for each in cells if answer.cell is None or each.index < answer.cell]
        model = "\n\n".join(part.source for part in answer.parts)
        with self._sandbox.worker(self._view, withheld=withheld) as worker:
            try:
                for some in (before, cells[len(before) :]):
                    list(worker.run(some, ended))
                    worker.define_without_source(model)
                yield worker
            finally:
                self._spent += worker.spent

    def record_loss(self, lost: WorkerLost, exercise: str = "") -> None:
        """Flag how a worker was lost, by what it ran: a cell, or the answer to ``exercise``."""
        flag = TIMEOUT if lost.kind in ("time", "cpu") else STOPPED
        if lost.cell is not None:
            exercise = self._find_exercise(lost.cell)
        what = f"{exercise}: its code" if lost.cell is None else self._describe_cell_in_words(lost.cell)
        self._findings.flag(flag, exercise, f"{what} {lost.words}")

    def describe_cell_failure(self, cell: int | None) -> tuple[str, str]:
        """Say what became of a cell, as the end of a sentence, and the exception's words."""
        if cell in self._left_out:
            return f": the cell {self._left_out[cell]}", ""
        if cell not in self._raised:
            used = "what is forbidden is not there where this is graded, and its cell uses it to define them"
            return (f": {used}" if cell in self._incomplete else ""), ""
        name, words = self._raised[cell]
        return f": the cell raised {name}", f" {words}" if words else ""

    def close(self) -> None:
        """End the worker that there is, and log what it tried."""
        if self._worker is None:
            return
        if attempts := self._worker.attempts:
            self._findings.flag(STOPPED)
            self._findings.log.append(
                LogEntry(LogKind.ATTEMPTS, f"the submission tried: {', '.join(map(make_one_line, attempts))}")
            )
        self._worker.close()
        self._spent += self._worker.spent
        self._worker = None

    @property
    def cells_run(self) -> tuple[list[CellSource], Collection[int]]:
        """The cells that run in a worker, and the indexes of those that broke off, or passed something over."""
        return self._list_cells(), self._raised.keys() | self._incomplete

    def _list_cells(self) -> list[CellSource]:
        return [each for each in self._submission.cells if each.index not in self._left_out]

    def _run_cells_withheld(self, worker: Worker) -> None:
        """Run the cells where something is withheld; what they show and raise there says nothing."""
        try:
            for run in worker.run(self._list_cells(), self._ended):
                if run.error or run.passed:
                    self._incomplete.add(run.index)
                if run.error and run.stopped:
                    self._record_cell_error(run.index, run.error, True)
        except WorkerLost as lost:
            self.record_loss(lost)
            if lost.cell is not None:
                self._left_out[lost.cell] = lost.words
        self._spent -= worker.spent  # it has been counted: they have run before

    def _run_cells(self, worker: Worker) -> None:
        """Run the cells but those that have ended a worker before; the one that ends this one is left out next."""
        try:
            for run in worker.run(self._list_cells()):
                self._outputs.setdefault(run.index, CellOutputs(run.index, run.outputs))
                if run.error:
                    self._ended.setdefault(run.index, run.at)
                    self._record_cell_error(run.index, run.error, run.stopped)
        except WorkerLost as lost:
            self.record_loss(lost)
            if lost.cell is None:
                return
            self._left_out[lost.cell] = lost.words
            self._findings.reasons.append(f"{self._describe_cell_in_words(lost.cell)} {lost.words}, and was left out")
            note = {"output_type": "stream", "name": "stderr", "text": f"This cell {lost.words}.\n"}
            self._outputs[lost.cell] = CellOutputs(lost.cell, (note,))

    def _record_cell_error(self, index: int, error: tuple[str, str], stopped: bool) -> None:
        """An answer whose cell breaks off may be half of one; other cells may break off as they like, but in time."""
        if index in self._raised:
            return
        self._raised[index] = quote_first_line(error[0]).strip("`"), quote_first_line(error[1])
        reasons = self._findings.reasons
        if stopped:
            reasons.append(f"{self._describe_cell_in_words(index)} took too long, and was stopped")
            self._findings.flag(TIMEOUT, self._find_exercise(index), reasons[-1])
        elif self._find_exercise(index):
            raised = " ".join(filter(None, self._raised[index]))
            reasons.append(f"{self._describe_cell_in_words(index)} raised {raised} when it ran")

    def _describe_cell_in_words(self, index: int) -> str:
        """The cell of one_hot; cell 7, where it holds no answer."""
        name = self._find_exercise(index)
        return f"the cell of {name}" if name else f"cell {index + 1}"

    def _find_exercise(self, cell: int) -> str:
        """The exercise that a cell answers; empty where it answers none."""
        return next((each.name for each in self._submission.exercises if each.cell == cell), "")
