"""How long a request may take: by the clock, less the time in which the machine was busy with others.

What a worker computes counts, and what it sleeps counts; the time that it stood in line for a core, as the kernel
counts that, does not, nor does the judge's own. So a busy machine makes nobody late. Source: the second number of
/proc/PID/schedstat, see sched-stats in the kernel's documentation.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from exercise_kit.worker.wire import Late

# by the clock alone: where the kernel counts no waiting, or threads stand in each other's way
BACKSTOP = 6.0
# most replies come earlier, and then it is not necessary to find out how long the worker has waited
_FIRST_LOOK = 0.25
_SHORTEST = 0.005


class RequestClock:
    """One request's time, from now on.

    Args:
        seconds: that the request may take.
        waited: seconds for which worker and judge have stood in line so far, since any moment.
        interrupt: stops the work from within when its time is over; it has ``grace`` seconds to end then.
        grace: see ``interrupt``.

    Attributes: ``interrupted``, whether that was done.
    """

    def __init__(
        self,
        seconds: float,
        waited: Callable[[], float],
        interrupt: Callable[[], None] | None = None,
        grace: float = 0.0,
    ) -> None:
        self._seconds = seconds
        self._queued = waited
        self._interrupt = interrupt
        self._grace = grace
        self._began = time.monotonic()
        self._queued_before: float | None = None
        self.deadline = self._began + min(seconds, _FIRST_LOOK)
        self.interrupted = False

    def count_seconds(self) -> float:
        """The seconds that count so far."""
        passed = time.monotonic() - self._began
        if self._queued_before is None:
            return passed
        return max(0.0, passed - (self._queued() - self._queued_before))

    def exclude_seconds(self, seconds: float) -> None:
        """Do not count so many seconds, which were the judge's own work."""
        self._began += seconds
        self.deadline += seconds

    def extend_deadline(self) -> float:
        """The next deadline, now that one has passed.

        Raises:
            Late: there is none.
        """
        if self._queued_before is None:
            self._queued_before = self._queued()
        left = min(self._seconds - self.count_seconds(), self._began + BACKSTOP * self._seconds - time.monotonic())
        if left <= 0:
            if self._interrupt is None or self.interrupted:
                raise Late
            self.interrupted = True
            self._interrupt()
            self._seconds += self._grace
            left = self._grace
        self.deadline = time.monotonic() + max(left, _SHORTEST)
        return self.deadline


def read_queued_seconds() -> float:
    """The seconds for which this thread has stood in line for a core; 0 where the kernel does not tell."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as schedstat:
            return int(schedstat.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0
