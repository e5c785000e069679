"""benchmarks/fair_bet.py: a run that was stopped goes on, and the kept one is whole."""

import json
from dataclasses import asdict

import fair_bet
import pytest
from arms import Log
from broken_vit import CLASSICS, RIGHT
from fair_bet import RATES, Row, known, rows_of, save, table

from vit_course.training import TrainingSettings


def test_a_row_takes_the_rate_that_was_best_on_validation_images():
    assert Row(RIGHT, {"0.001": 0.5, "0.002": 0.53, "0.004": 0.52}).rate == 0.002
    assert Row(RIGHT, {"0.001": 0.5, "0.002": 0.5}).rate == 0.001, "the smaller of two that are as good"


def test_a_run_that_was_stopped_goes_on(tmp_path):
    names = [RIGHT, "Mlp: no activation"]
    log = Log(tmp_path / "fair_bet.json", known(TrainingSettings(6)))
    rows = rows_of(log, names)
    rows[0].tried["0.001"] = 0.5
    save(log, rows)
    assert rows_of(Log(log.path, known(TrainingSettings(6))), names) == rows
    with pytest.raises(SystemExit, match="another settings"):
        Log(log.path, known(TrainingSettings(7)))


def test_the_table_has_an_interval_for_each_model_but_the_right_one():
    rows = [Row(RIGHT, {"0.002": 0.5}, [0.5, 0.51, 0.52]), Row("wrong", {"0.004": 0.5}, [0.49, 0.49, 0.49])]
    lines = table(rows).splitlines()
    assert "51.0%" in lines[1]
    assert lines[2].endswith("-2.0 ± 2.5")


def test_the_kept_run_is_whole():
    result = json.loads(fair_bet.RESULTS.read_text())
    assert result["rates"] == list(RATES)
    rows = rows_of(Log(fair_bet.RESULTS, {"benchmark": "fair_bet"}), [RIGHT, *CLASSICS])
    assert [row.name for row in rows] == [RIGHT, *CLASSICS]
    assert all(set(asdict(row)["tried"]) == set(map(str, RATES)) for row in rows)
    assert all(len(row.accuracies) == len(fair_bet.SEEDS) for row in rows)
