"""Where a job is done: in a process of its own, which may die."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from exercise_kit.batch.job import MEMORY, initialize_job_process, read_private_memory_bytes
from exercise_kit.batch.result_cache import read_file_stats
from exercise_kit.engine.class_exercises import find_class_files

# seconds: of the job's own processor time (a worker's has its own limit), and by the clock, for a judge that hangs; the
# judge stops a submission long before
CPU_LIMIT, TIMEOUT_SECONDS = 240.0, 1800.0
_SAFE_PATH, _starting = "PYTHONSAFEPATH", threading.Lock()
_POLL_SECONDS = 1.0  # between two looks at what a job has used


class JobProcess:
    """One process that grades one submission after another; when it dies, a new one takes its place."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None
        self._pid = 0
        self._checks: tuple[object, ...] = ()
        self._stopped = False

    def call(self, checks: Path, class_dir: Path | None, function: Callable[..., Any], *arguments: object) -> Any:
        """Call a function there; it may import ``checks`` and the exercises of ``class_dir``.

        Raises:
            BrokenExecutor: the process died.
            TimeoutError: it was killed, because it did not end.
            CancelledError: it was stopped.
            Exception: whatever the function raises.
        """
        try:
            value = _wait_for_result(
                self._get_process_with_current_checks(checks, class_dir).submit(function, *arguments), self._pid
            )
        except (BrokenExecutor, TimeoutError):
            self._kill_process()
            raise
        if read_private_memory_bytes(self._pid) > MEMORY * 3 // 4:  # another one should take over
            self._kill_process()
        return value

    def stop(self) -> None:
        """End it at once, whatever it is at; it does nothing any more."""
        self._stopped = True
        self._kill_process()

    def close(self) -> None:
        """End it when it has finished its job."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _get_process_with_current_checks(self, checks_folder: Path, class_dir: Path | None) -> ProcessPoolExecutor:
        """The process; a new one where checks or exercises have changed: a process keeps what it has imported."""
        checks = (checks_folder, read_file_stats(checks_folder), find_class_files(class_dir))
        with self._lock:
            if self._stopped:
                raise CancelledError
            if self._checks != checks:
                self.close()
                self._checks = checks
            if self._pool is None:
                with _remove_working_folder_from_path():
                    self._pool = ProcessPoolExecutor(
                        1, mp_context=get_context("spawn"), initializer=initialize_job_process
                    )
                    starting = self._pool.submit(os.getpid)
                self._pid = starting.result()
            return self._pool

    def _kill_process(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _remove_working_folder_from_path() -> Iterator[None]:
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


def _wait_for_result(future: Future[Any], process: int) -> Any:
    """Wait for a job in that process; TimeoutError when it has used up its time."""
    work, end = _read_processor_seconds(process) + CPU_LIMIT, time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() <= end and _read_processor_seconds(process) <= work:
        wait([future], min(_POLL_SECONDS, max(0.0, end - time.monotonic())))
        if future.done():  # one that a stopped pool has canceled too, of which wait() never learns
            return future.result()
    raise TimeoutError


def _read_processor_seconds(process: int) -> float:
    """User and system time of a process and its threads, without its children's; 0 where nobody tells."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text("ascii", "replace")
        return sum(map(int, stat.rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return 0.0
