"""What a request may take: a busy machine makes nobody late, and neither sleep nor work goes on for ever."""

import contextlib

import pytest

from exercise_kit.sandbox import request_clock, warm_process
from exercise_kit.sandbox.limits import Limits, WorkerLost
from exercise_kit.sandbox.request_clock import BACKSTOP, RequestClock
from exercise_kit.submission.submission import CellSource
from exercise_kit.worker.wire import Late
from tests.kit.conftest import limit_sandbox


class Machine:
    """A clock, and a share of the time in which worker and judge stand in line."""

    def __init__(self, busy=0.0):
        self.now = self.waited = 100.0
        self.busy = busy

    def monotonic(self):
        return self.now

    def until_late(self, clock):
        began = self.now
        with contextlib.suppress(Late):
            while True:
                passed = max(0.0, clock.deadline - self.now) + 1e-6
                self.now += passed
                self.waited += self.busy * passed
                clock.extend_deadline()
        return self.now - began


@pytest.mark.parametrize(("busy", "factor"), [(0.0, 1.0), (0.5, 2.0), (0.75, 4.0), (1.0, BACKSTOP)])
def test_who_stands_in_line_has_longer(monkeypatch, busy, factor):
    machine = Machine(busy)
    monkeypatch.setattr(request_clock.time, "monotonic", machine.monotonic)
    took = machine.until_late(RequestClock(10.0, lambda: machine.waited))
    assert took == pytest.approx(10.0 * factor, rel=0.1)


def test_a_cell_is_interrupted_first(monkeypatch):
    machine, expired = Machine(), []
    monkeypatch.setattr(request_clock.time, "monotonic", machine.monotonic)
    limit = RequestClock(10.0, lambda: machine.waited, lambda: expired.append(machine.now - 100.0), grace=2.0)
    assert machine.until_late(limit) == pytest.approx(12.0, abs=0.1)
    assert expired == [pytest.approx(10.0, abs=0.1)]
    assert limit.interrupted


def test_the_judge_s_own_work_does_not_count(monkeypatch):
    machine = Machine()
    monkeypatch.setattr(request_clock.time, "monotonic", machine.monotonic)
    limit = RequestClock(10.0, lambda: machine.waited)
    machine.now += 30.0
    limit.exclude_seconds(30.0)
    assert machine.until_late(limit) == pytest.approx(10.0, abs=0.1)


WORK = "import time\nbegan = time.monotonic()\nwhile time.monotonic() - began < 1.2: pass\n"
SHORT = Limits(cell_seconds=0.3, call_seconds=0.3, total_seconds=3.0)


def test_a_busy_machine_stops_nobody(warm_sandbox, monkeypatch):
    began = request_clock.time.monotonic()
    monkeypatch.setattr(
        warm_process.WarmProcess, "ask_queued_seconds", lambda *_: request_clock.time.monotonic() - began
    )
    with limit_sandbox(warm_sandbox, SHORT) as sandbox, sandbox.worker() as worker:
        (run,) = worker.run([CellSource(0, f"{WORK}def f():\n    began = 0\n    {WORK.splitlines()[2]}\n    return 7")])
        assert (run.error, run.stopped) == (None, False)
        assert worker.request("call", name="f", inputs=())["result"] == 7


@pytest.mark.parametrize("does", ["while True: pass", "time.sleep(1000)"], ids=["works", "sleeps"])
def test_work_and_sleep_end(warm_sandbox, does):
    with limit_sandbox(warm_sandbox, SHORT) as sandbox, sandbox.worker() as worker:
        runs = list(worker.run([CellSource(0, f"import time\n{does}"), CellSource(1, f"def f():\n    {does}")]))
        assert [run.stopped for run in runs] == [True, False]
        with pytest.raises(WorkerLost) as caught:
            worker.request("call", name="f", inputs=())
        assert caught.value.kind == "time"


def test_the_kernel_tells_how_long_a_worker_waited(warm_sandbox):
    with limit_sandbox(warm_sandbox, SHORT) as sandbox, sandbox.worker() as worker:
        assert worker._warm.ask_queued_seconds(worker._child) >= 0
        assert worker._warm.ask_queued_seconds(worker._child + 1) == 0
        assert request_clock.read_queued_seconds() >= 0
