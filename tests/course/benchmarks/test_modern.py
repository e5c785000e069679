"""benchmarks/modern.py: an arm that is described as before keeps its runs, and one that is new or changed begins."""

import json

import pytest
from lesson_cifar import earlier

KNOWN = {"torch": "2", "arms": {"plain": {"rate": 0.002}, "slow": {"rate": 0.001}}}
RUNS = {"plain": {"0": {"loss": 1.5}}, "slow": {"0": {"loss": 1.6}}}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "log.json"
    path.write_text(json.dumps(KNOWN | {"date": "today", "results": RUNS}))
    return path


def test_arms_described_as_before_keep_their_runs(path):
    arms = {"plain": {"rate": 0.002}, "slow": {"rate": 0.0005}, "new": {"rate": 0.004}}
    found = earlier(path, KNOWN | {"arms": arms}, arms)
    assert found["results"] == {"plain": RUNS["plain"], "slow": {}, "new": {}}
    assert (found["arms"], found["date"]) == (arms, "today")


def test_nothing_is_kept_under_other_conditions(path):
    assert earlier(path, KNOWN | {"torch": "3"}, RUNS)["results"] == {"plain": {}, "slow": {}}


def test_a_log_that_tells_no_arms_is_kept_whole(path):
    path.write_text(json.dumps({"torch": "2", "results": RUNS}))
    assert earlier(path, {"torch": "2"}, [*RUNS, "new"])["results"] == RUNS | {"new": {}}
