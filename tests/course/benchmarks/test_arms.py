"""benchmarks/arms.py: a run that was stopped goes on, under the same conditions alone, and nothing is lost."""

import json

import pytest
from arms import Log, conditions, rounded, row

KNOWN = {"torch": "2", "arms": {"plain": {"rate": 0.002}, "slow": {"rate": 0.001}}}
RUNS = {"plain": {"0": {"loss": 1.5}}, "slow": {"0": {"loss": 1.6}}}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "log.json"
    path.write_text(json.dumps(KNOWN | {"date": "today", "results": RUNS}))
    return path


def test_arms_described_as_before_keep_their_runs(path):
    arms = {"plain": {"rate": 0.002}, "slow": {"rate": 0.0005}, "new": {"rate": 0.004}}
    found = Log(path, KNOWN | {"arms": arms}, arms).found
    assert found["results"] == {"plain": RUNS["plain"], "slow": {}, "new": {}}
    assert (found["arms"], found["date"]) == (arms, "today")


def test_an_option_that_came_later_and_is_off_changes_no_arm(path):
    arms = {"plain": {"rate": 0.002, "erase": 0.0}, "slow": {"rate": 0.001, "erase": 0.25}}
    assert Log(path, KNOWN | {"arms": arms}, arms).found["results"] == {"plain": RUNS["plain"], "slow": {}}


def test_results_under_other_conditions_are_not_lost(path):
    before = path.read_text()
    with pytest.raises(SystemExit, match="another torch: give another --output"):
        Log(path, KNOWN | {"torch": "3"}, RUNS)
    assert path.read_text() == before


def test_a_log_that_tells_no_arms_is_kept_whole(path):
    path.write_text(json.dumps({"torch": "2", "results": RUNS}))
    assert Log(path, {"torch": "2"}, [*RUNS, "new"]).found["results"] == RUNS | {"new": {}}


def test_what_is_found_is_measured_once_and_written_at_once(tmp_path, capsys):
    log = Log(tmp_path / "new" / "log.json", conditions("some"))
    assert log.measure("photos", "0", by=lambda: {"loss": [2.0, 1.23456789]}) == {"loss": [2.0, 1.2346]}
    assert capsys.readouterr().out == "photos, 0: {'loss': 1.2346}\n"
    again = Log(log.path, conditions("some"))
    assert again.measure("photos", "0", by=lambda: pytest.fail("measured again")) == {"loss": [2.0, 1.2346]}


def test_what_is_missing_is_measured_in_other_processes(path):
    log = Log(path, KNOWN, RUNS)
    places = {("results", name, str(seed)): (seed, 2) for name in RUNS for seed in (0, 4)}
    log.measure_all(places, pow, workers=1)
    assert log.found["results"] == {name: runs | {"4": 16} for name, runs in RUNS.items()}
    assert json.loads(path.read_text())["results"] == log.found["results"]


def test_numbers_are_rounded_and_whole_ones_are_not():
    assert rounded({"each": (0.123456, 123456), "way": "probe"}) == {"each": [0.12346, 123456], "way": "probe"}


def test_a_row_has_an_interval_where_there_are_seeds_to_compare():
    assert row("norms", [50.0, 51.0, 52.0], [49.0, 50.0, 51.0], width=8) == "norms    50.0   51.0   52.0    +1.0 ± 0.0"
    assert "±" not in row("norms", [50.0], [49.0])
