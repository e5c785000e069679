"""The progress bar, on a terminal and in a log; the clock is a made-up one."""

from __future__ import annotations

import io
import os
import re
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from exercise_kit import progress_bar as module
from exercise_kit.authoring import build
from exercise_kit.cli import commands
from exercise_kit.cli import simulate as command
from exercise_kit.engine.probes import silence
from exercise_kit.progress_bar import SECONDS, Count, open_unsilenced_console, print_progress_lines, progress_bar
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]


def make_log_console() -> Console:
    return Console(file=io.StringIO(), force_terminal=False, width=20)


def test_a_log_gets_a_plain_line_every_ten_seconds_whether_or_not_a_step_is_done():
    count, console = Count("grading", 110), make_log_console()
    waits: list[float] = []

    def advance_and_wait(seconds: float) -> bool:
        for _ in range({0: 3, 2: 9}.get(len(waits), 0)):
            count.advance()
        waits.append(seconds)
        return len(waits) > 3

    print_progress_lines(console, count, advance_and_wait, clock=lambda: 1000.0 + sum(waits))
    assert console.file.getvalue().splitlines() == [
        "grading: 3 of 110 after 0:10",
        "grading: 3 of 110 after 0:20",
        "grading: 12 of 110 after 0:30, about 3:38 left",
    ]


def test_the_time_to_the_end_is_told_while_there_is_one():
    """The first step has waited for what is started once: it says nothing of the others."""
    count, steps_at = Count("grading", 300), {20: 0, 30: 1, 40: 1, 50: 298}
    lines = []
    for seconds, steps in steps_at.items():
        for _ in range(steps):
            count.advance()
        lines.append(count.line(seconds))
    assert lines == [
        "grading: 0 of 300 after 0:20",
        "grading: 1 of 300 after 0:30",
        "grading: 2 of 300 after 0:40, about 49:40 left",
        "grading: 300 of 300 after 0:50",
    ]
    assert Count("grading", 9).line(3700) == "grading: 0 of 9 after 1:01:40"
    assert Count("making the class", None).line(70) == "making the class: after 1:10"


def test_short_work_leaves_nothing_in_a_log_and_no_thread():
    console = make_log_console()
    with progress_bar(console, "grading", 2) as advance:
        advance()
    assert console.file.getvalue() == ""
    assert "progress bar" not in {each.name for each in threading.enumerate()}


def test_what_silences_the_process_does_not_silence_it(capfd):
    with open_unsilenced_console(Console(stderr=True)) as console, silence():
        console.print("grading: 1 of 2 after 0:10")
    assert capfd.readouterr().err == "grading: 1 of 2 after 0:10\n"


def test_a_closed_pipe_stops_the_lines_and_not_the_work():
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as pipe, suppress(BrokenPipeError), open_unsilenced_console(Console(file=pipe)) as console:
        waits: list[float] = []
        print_progress_lines(console, Count("grading", 2), lambda seconds: bool(waits.append(seconds)))
        assert waits == [SECONDS]
        console.file.write("what is left in its buffer")


def test_work_that_breaks_off_leaves_no_thread():
    with pytest.raises(ZeroDivisionError), progress_bar(make_log_console(), "grading", 2):
        raise ZeroDivisionError
    assert "progress bar" not in {each.name for each in threading.enumerate()}


@pytest.mark.parametrize(("total", "shown"), [(3, "2/3"), (None, "grading")])
def test_a_terminal_gets_a_bar_that_is_gone_afterward(total, shown):
    console = Console(file=io.StringIO(), force_terminal=True, width=80, legacy_windows=False, _environ={})
    with progress_bar(console, "grading", total) as advance:
        advance()
        advance()
    text = console.file.getvalue()
    assert shown in text
    assert text.endswith("\x1b[2K"), "the line is erased"


@pytest.fixture
def frequent_lines(monkeypatch, tmp_path):
    """A line every 0.02 seconds, and a folder to make things in; with what waits for one more line."""
    monkeypatch.setattr(module, "SECONDS", 0.02)
    lines, line = [], Count.line
    monkeypatch.setattr(Count, "line", lambda *given: lines.append(line(*given)) or lines[-1])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)

    def one_more():
        before = len(lines)
        wait_until(lambda: len(lines) > before)

    return tmp_path / "made", one_more


def test_simulate_counts_the_notebooks_that_it_writes(frequent_lines, monkeypatch, capfd):
    made, one_more = frequent_lines

    def work_slowly(path, root, students, seed, lessons, advance):
        for _ in range(students):
            advance()
            one_more()
        return SimpleNamespace(path=path, students=students, lessons=lessons, kinds={})

    monkeypatch.setattr("exercise_kit.simulate.simulate.simulate", work_slowly)
    command.simulate(made, students=2, lesson=["00_start"], root=ROOT)
    lines = capfd.readouterr().err.splitlines()
    assert any(re.fullmatch(r"writing: 1 of 2 after .+", line) for line in lines)
    assert all(re.fullmatch(r"writing: [0-2] of 2 after [\d:]+(, about [\d:]+ left)?", line) for line in lines)


def test_new_class_says_what_it_does(frequent_lines, monkeypatch, capfd):
    made, one_more = frequent_lines

    def work_slowly(*_, **__):
        one_more()
        return SimpleNamespace(path=made, lessons=["00_start"], stale=())

    monkeypatch.setattr("exercise_kit.nbgrader.class_folder.new_class", work_slowly)
    monkeypatch.setattr(build, "build", work_slowly)
    commands.new_class(made, root=ROOT)
    said = {line.partition(":")[0] for line in capfd.readouterr().err.splitlines()}
    assert said == {"making the class", "comparing the lessons with their sources"}
