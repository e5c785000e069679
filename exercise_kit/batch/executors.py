"""Where a job is done: in a process of this machine, or on a cluster."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from exercise_kit.batch.job import Done, Task, do, process_id, start_process
from exercise_kit.batch.result_cache import stamp
from exercise_kit.engine.class_exercises import files_of

if TYPE_CHECKING:
    from distributed import Client


# seconds: of the job's own processor time (a worker's has its own limit), and by the clock, for a judge that hangs; the
# judge stops a submission long before
CPU_LIMIT, TIMEOUT_SECONDS = 240.0, 1800.0
_SAFE_PATH, _starting = "PYTHONSAFEPATH", threading.Lock()
_LOOK = 1.0  # seconds between two looks at what a job has used


class JobProcess:
    """One process that grades one submission after another; when it dies, a new one takes its place."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None
        self._pid = 0
        self._checks: tuple[object, ...] = ()
        self._stopped = False

    def do(self, task: Task) -> Done:
        """Grade a submission.

        Raises:
            BrokenExecutor: the process died.
            TimeoutError: it was killed, because it did not end.
            CancelledError: it was stopped.
        """
        try:
            done = _in_time(self._running(task).submit(do, task), self._pid)
        except (BrokenExecutor, TimeoutError):
            self._kill()
            raise
        if done.exhausted:
            self._kill()
        return done

    def stop(self) -> None:
        """End it at once, whatever it is at; it does nothing any more."""
        self._stopped = True
        self._kill()

    def close(self) -> None:
        """End it when it has finished its job."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _running(self, task: Task) -> ProcessPoolExecutor:
        """The process; a new one where the hidden checks have changed, for whoever imported them keeps the old."""
        checks = (task.place.checks, stamp(task.place.checks), files_of(task.place.class_dir))
        with self._lock:
            if self._stopped:
                raise CancelledError
            if self._checks != checks:
                self.close()
                self._checks = checks
            if self._pool is None:
                with _safe_path():
                    self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=start_process)
                    starting = self._pool.submit(process_id)
                self._pid = starting.result()
            return self._pool

    def _kill(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Processes that start meanwhile import nothing from the working folder, which may be what a student handed in."""
    with _starting:
        before = os.environ.get(_SAFE_PATH)
        os.environ[_SAFE_PATH] = "1"
        try:
            yield
        finally:
            os.environ.pop(_SAFE_PATH)
            if before is not None:
                os.environ[_SAFE_PATH] = before


def _in_time(future: Future[Done], process: int) -> Done:
    """What a job in that process gives; TimeoutError when it has used up its time."""
    work, end = _processor_seconds(process) + CPU_LIMIT, time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() <= end and _processor_seconds(process) <= work:
        wait([future], min(_LOOK, max(0.0, end - time.monotonic())))
        if future.done():  # one that a stopped pool has canceled too, of which wait() never learns
            return future.result()
    raise TimeoutError


def _processor_seconds(process: int) -> float:
    """User and system time of a process and its threads, without its children's; 0 where nobody tells."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text("ascii", "replace")
        return sum(map(int, stat.rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return 0.0


class ClusterWorker:
    """A worker of a dask cluster, whichever is free."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def do(self, task: Task) -> Done:
        """Grade a submission; raises whatever the cluster does when a worker is lost."""
        return self._executor.submit(do, task).result(TIMEOUT_SECONDS)

    def stop(self) -> None:
        """Nothing to stop here: the cluster drops what nobody waits for."""

    def close(self) -> None:
        """Nothing to close here: the connection is the grader's."""


def client_at(address: str) -> Client:
    """A connection to a dask scheduler.

    Raises:
        OSError: there is none at the address.
    """
    from distributed import Client

    return Client(address, timeout=10)
