"""benchmarks/timing.py: ratios are of one round, and everyone has a turn in each."""

import pytest
import torch
from timing import Stopwatch, gemm_rate, in_turns, machine, ratios


def test_every_round_gives_everyone_a_reading():
    calls = []
    works = {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}
    seconds = in_turns(works, rounds=4, stopwatch=Stopwatch("cpu", seconds=1e-5))
    assert {name: len(each) for name, each in seconds.items()} == {"a": 4, "b": 4}
    assert set(calls) == {"a", "b"}


def test_a_ratio_is_taken_round_by_round():
    seconds = {"ours": [1.0, 10.0, 2.0], "theirs": [2.0, 20.0, 4.0]}
    assert ratios(seconds, "ours") == {"theirs": {"median": 2.0, "low": 2.0, "high": 2.0}}


def test_one_round_has_no_spread():
    assert ratios({"ours": [2.0], "theirs": [1.0]}, "ours")["theirs"] == {"median": 0.5, "low": 0.5, "high": 0.5}


def test_a_reading_is_of_one_repeat():
    stopwatch = Stopwatch("cpu")
    ticks = iter([10.0, 16.0])
    stopwatch.clock = lambda: next(ticks)
    assert stopwatch.read(lambda: None, repeats=3) == 2.0


@pytest.mark.filterwarnings("ignore")
def test_the_peak_is_a_rate(monkeypatch):
    monkeypatch.setattr(torch, "randn", lambda *size, device: torch.ones(8, 8))
    assert gemm_rate("cpu", torch.float32, Stopwatch("cpu", seconds=1e-5)) > 0


def test_the_machine_is_described():
    assert {"date", "device", "cores", "threads", "torch"} <= machine("cpu").keys()
