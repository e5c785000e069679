"""How long checks took, as the last run of benchmarks/check_latency.py wrote down; nothing is timed here."""

import json

import pytest
from check_latency import ANSWERS, RESULTS, list_timed_exercises


@pytest.fixture(scope="module")
def results():
    return json.loads(RESULTS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("answer", ANSWERS)
def test_nobody_waits_longer_than_we_want_for_a_right_answer_or_a_mistake(results, answer):
    found, wanted, peer = results[answer], results["wanted"], results["import_torch"]
    assert found["first_slowest"][0] < wanted["first"] * peer
    assert found["warm_95"][0] < wanted["warm_95"] * peer


@pytest.mark.parametrize("answer", ANSWERS)
def test_every_exercise_was_timed(results, answer):
    assert set(results[answer]["warm"]) == set(list_timed_exercises()), "benchmarks/check_latency.py"
