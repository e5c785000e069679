"""benchmarks/fair_bet.py: its interval, and that a run which was stopped goes on."""

import fair_bet
import pytest
from broken_vit import RIGHT
from fair_bet import Row, conditions, load, paired_interval, save, table

from vit_course.training import TrainingSettings


@pytest.fixture(autouse=True)
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(fair_bet, "RESULTS", tmp_path / "fair_bet.json")


def test_an_interval_is_that_of_paired_differences():
    """By hand: differences of 1, 2 and 3 have a mean of 2 and a deviation of 1; 4.303 / sqrt(3) = 2.484."""
    gap, half = paired_interval([11.0, 22.0, 33.0], [10.0, 20.0, 30.0])
    assert (gap, round(half, 3)) == (2, 2.484)


def test_a_row_takes_the_rate_that_was_best_on_validation_images():
    assert Row(RIGHT, {"0.001": 0.5, "0.002": 0.53, "0.004": 0.52}).rate == 0.002
    assert Row(RIGHT, {"0.001": 0.5, "0.002": 0.5}).rate == 0.001, "the smaller of two that are as good"


def test_a_run_that_was_stopped_goes_on():
    known = conditions(TrainingSettings(6))
    rows = load(known, [RIGHT, "Mlp: no activation"])
    rows[0].tried["0.001"] = 0.5
    save(known, rows)
    assert load(known, [RIGHT, "Mlp: no activation"]) == rows
    with pytest.raises(ValueError, match="another settings"):
        load(conditions(TrainingSettings(7)), [RIGHT])


def test_the_table_has_an_interval_for_each_model_but_the_right_one():
    rows = [Row(RIGHT, {"0.002": 0.5}, [0.5, 0.51, 0.52]), Row("wrong", {"0.004": 0.5}, [0.49, 0.49, 0.49])]
    lines = table(rows).splitlines()
    assert "51.0%" in lines[1]
    assert lines[2].endswith("-2.0 ± 2.5")
