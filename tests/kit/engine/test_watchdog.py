"""Nothing hangs and nothing is silent: answers that do not end, that catch everything, that are slow or interrupted."""

from __future__ import annotations

import contextlib
import io
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from torch import Tensor

from exercise_kit.engine import check, run, watchdog
from exercise_kit.engine.verdict import Report, Verdict
from exercise_kit.engine.watchdog import InterruptedCheck, Patience, Watchdog
from tests.waiting import wait_until
from vit_course.patches import patchify

# a run without coverage has these
pytestmark = pytest.mark.skipif(
    sys.gettrace() is not None, reason="the watchdog stops an answer by Python's trace function, which coverage holds"
)


class Clock:
    """What the watchdog takes for the time: it goes on when an answer says so, on any machine."""

    now, looks = 0.0, 0

    def monotonic(self) -> float:
        self.looks += threading.current_thread().name == "check's watchdog"
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds

    def is_looked_at(self) -> None:
        """Come back when the watchdog has seen what time it is now."""
        enough = self.looks + 2
        wait_until(lambda: self.looks >= enough)


CLOCK = Clock()


@pytest.fixture(autouse=True)
def clock_of_the_watchdog(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The time is :class:`Clock`'s; signal handler and tracing have to be as before."""
    monkeypatch.setattr(watchdog, "time", SimpleNamespace(monotonic=CLOCK.monotonic))
    # a shell starts what runs in its background with SIGINT ignored, and then no interrupt would ever end an answer
    outside = signal.signal(signal.SIGINT, signal.default_int_handler)
    before = signal.default_int_handler, sys.gettrace()
    yield
    after = signal.signal(signal.SIGINT, outside), sys.gettrace()
    assert after == before


def endless(images: Tensor, patch_size: int) -> Tensor:
    CLOCK.pass_by(100)
    while True:
        pass


def asleep(images: Tensor, patch_size: int) -> Tensor:
    CLOCK.pass_by(100)
    time.sleep(100)
    return images


def catches_exceptions(images: Tensor, patch_size: int) -> Tensor:
    while True:
        with contextlib.suppress(Exception):
            CLOCK.pass_by(100)
            time.sleep(100)


def catches_everything(images: Tensor, patch_size: int) -> Tensor:
    while True:
        try:  # as students write it
            CLOCK.pass_by(100)
            time.sleep(100)
        except:  # noqa: E722
            pass


def right_once_it_was_stopped(images: Tensor, patch_size: int) -> Tensor:
    with contextlib.suppress(BaseException):
        CLOCK.pass_by(100)
        time.sleep(100)
    return patchify(images, patch_size)


def endless_for_four(images: Tensor, patch_size: int) -> Tensor:
    return endless(images, patch_size) if len(images) == 4 else patchify(images, patch_size)


def list_seen_failures(report: Report) -> list[str]:
    return [each.seen for each in report.results if each.verdict == Verdict.FAIL]


@pytest.mark.parametrize("answer", [endless, asleep, catches_exceptions, catches_everything, right_once_it_was_stopped])
def test_an_answer_that_does_not_end_is_stopped_once(answer: Callable[..., Tensor]) -> None:
    report = check("patchify", answer, points=8)
    assert list_seen_failures(report) == ["patchify did not come back within 10 seconds"]
    assert report.score == 0
    assert report.results[0].expected == "an answer in less than a second"
    assert "11 checks wait until this one passes" in str(report)


def test_an_answer_that_does_not_end_is_stopped_where_a_thread_cannot_be_signalled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(signal, "pthread_kill")  # as on Windows
    assert list_seen_failures(check("patchify", endless)) == ["patchify did not come back within 10 seconds"]


def test_what_was_decided_before_keeps_its_points() -> None:
    report = check("patchify", endless_for_four, points=8)
    assert list_seen_failures(report) == ["patchify did not come back within 10 seconds"]
    assert 0 < (report.score or 0) < 8
    assert sum(each.verdict == Verdict.PASS for each in report.results) == 3


def test_calls_that_are_slow_one_by_one_end_together() -> None:
    def slow(images: Tensor, patch_size: int) -> Tensor:
        CLOCK.pass_by(9)
        return patchify(images, patch_size)

    assert list_seen_failures(check("patchify", slow)) == [
        "patchify took more than the 60 seconds that all its checks have together"
    ]


def test_the_time_of_known_mistakes_is_not_the_answers() -> None:
    with Watchdog("patchify", (), (), Patience(total=0.0)) as watchdog:
        watchdog.paused = True
        with watchdog.call():
            CLOCK.pass_by(1)
        assert watchdog.expired is None


def test_it_says_once_on_stdout_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    check("patchify", endless_for_four)
    assert out.getvalue().count("patchify has been running for 100 s, now at “Images that are taller than wide") == 1
    assert err.getvalue() == ""


def test_what_torch_imports_late_is_not_the_answers_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_late.py").write_text(
        f"from {__name__} import CLOCK\nCLOCK.pass_by(100)\nCLOCK.is_looked_at()"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def imports(images: Tensor, patch_size: int) -> Tensor:
        import_module("imported_late")
        return patchify(images, patch_size)

    assert check("patchify", imports).passed


@pytest.mark.parametrize("answer", [endless, asleep, catches_everything])
def test_the_students_interrupt_ends_it_in_a_sentence(
    answer: Callable[..., Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = Patience(call=math.inf, total=math.inf)
    monkeypatch.setattr(run, "Watchdog", partial(Watchdog, patience=patience))

    def interrupt(images: Tensor, patch_size: int) -> Tensor:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        return answer(images, patch_size)

    with pytest.raises(InterruptedCheck, match=r"You interrupted the check of patchify, at “Every patch") as caught:
        check("patchify", interrupt)
    assert caught.value._render_traceback_() == [str(caught.value)]
    assert check("patchify", patchify).passed


def test_an_interrupt_in_our_own_code_waits_for_its_end() -> None:
    done: list[str] = []

    def interrupt_with_cleanup() -> None:
        with Watchdog("patchify", (__file__,), ()) as watchdog, watchdog.call():
            signal.raise_signal(signal.SIGINT)
            done.append("cleaned up")

    with pytest.raises(InterruptedCheck):
        interrupt_with_cleanup()
    assert done == ["cleaned up"]


def test_a_thread_that_is_not_the_main_one_is_reported_when_the_call_ends() -> None:
    reports: list[Report] = []

    def slow(images: Tensor, patch_size: int) -> Tensor:
        CLOCK.pass_by(100)
        return patchify(images, patch_size)

    thread = threading.Thread(target=lambda: reports.append(check("patchify", slow)))
    thread.start()
    thread.join()
    assert list_seen_failures(reports[0]) == ["patchify did not come back within 10 seconds"]
