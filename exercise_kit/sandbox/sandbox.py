"""Workers from the judge's side: Sandbox makes them, out of one warm process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from exercise_kit.sandbox.cell_runs import CellRun
from exercise_kit.sandbox.endings import GraderFailed, WorkerLost
from exercise_kit.sandbox.limits import Limits
from exercise_kit.sandbox.one_worker import Worker
from exercise_kit.sandbox.warm_process import WarmProcess, WarmProcessLost

__all__ = ["CellRun", "GraderFailed", "Limits", "Sandbox", "WarmProcessLost", "Worker", "WorkerLost"]

_ATTEMPTS_AT_FORK = 2


class Sandbox:
    """Owns one warm process, which is started at first use at the latest, and again when it is gone.

    Args:
        limits: what each worker may use.
        confined: put walls round it; without, a submission can do whatever its user can.
        views: the packages that workers may see, one each; another one named later starts the warm process anew.
        device: where workers compute, as "cuda:0"; what is sent to them and what comes back lies on the CPU.
        warm: a warm process that was started for these limits, walls, views and device; the sandbox owns it now.

    Attributes: ``is_weaker``, that a worker was made without namespaces, which this machine refuses.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        confined: bool = True,
        views: Sequence[Path] = (),
        device: str = "cpu",
        warm: WarmProcess | None = None,
    ) -> None:
        self._device = device
        self.limits = limits or Limits()
        self._confined = confined
        self._views = list(warm.views if warm else views)
        self._warm = warm
        self.is_weaker = False

    @property
    def walls(self) -> tuple[str, ...]:
        """The names of the walls that there are; none when it is not confined."""
        return self._started().walls

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the warm process and its worker."""
        if self._warm is not None:
            self._warm.close()
            self._warm = None

    def worker(self, view: Path | None = None) -> Worker:
        """A new worker; the one before it is ended.

        Args:
            view: the folder that holds the package as the submission's lesson sees it.

        Raises:
            WarmProcessLost: no warm process can be started, or its walls cannot be put up.
        """
        if view is not None and view not in self._views:
            self._views.append(view)
            self.close()
        for attempt in range(_ATTEMPTS_AT_FORK):
            try:
                return Worker(self._started(), self.limits, view)
            except WarmProcessLost:
                self.close()
                if attempt == _ATTEMPTS_AT_FORK - 1:
                    raise
        raise AssertionError("unreachable")

    def start(self) -> None:
        """Begin to start the warm process, for which the first worker will wait."""
        if self._warm is None:
            self._warm = WarmProcess(self.limits, self._views, confined=self._confined, device=self._device)

    def _started(self) -> WarmProcess:
        if self._warm is not None and self._warm.is_lost:
            self.close()
        self.start()
        assert self._warm is not None, "it was started above"
        walls = self._warm.walls  # waits for it
        self.is_weaker = self._confined and "namespaces" not in walls
        return self._warm
