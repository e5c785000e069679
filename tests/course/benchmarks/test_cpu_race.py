from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from vit_course.data import shapes


@pytest.fixture
def cpu_race(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    import cpu_race

    images = shapes(60)
    monkeypatch.setattr(cpu_race, "load_images", lambda name, data: (images, images))
    monkeypatch.setattr(cpu_race, "RESULTS", tmp_path / "cpu_race")
    small = {
        name: replace(
            racer,
            config=replace(cpu_race.RECIPE.config_for(images), embed_dim=24, depth=1),
            settings=replace(racer.settings, epochs=1),
        )
        for name, racer in cpu_race.RACERS.items()
    }
    monkeypatch.setattr(cpu_race, "RACERS", small)
    return cpu_race


def test_a_race_ends_with_logs_and_a_table(cpu_race, tmp_path: Path, monkeypatch, capsys) -> None:
    for options in (["recipe", "float32"], ["--table"]):
        monkeypatch.setattr(sys, "argv", ["cpu_race.py", *options])
        cpu_race.main()
    assert len(list((tmp_path / "cpu_race").iterdir())) == 4
    recipe, other = json.loads((tmp_path / "cpu_race.json").read_text())
    assert (recipe["seeds"], recipe["epochs"], recipe["difference"]) == (2, 1, 0)
    assert (other["seeds"], other["epochs"]) == (2, 1)
    assert "float32 in the place of bfloat16" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "words"),
    [("recip", "there is no racer recip; there are recipe, before, equal"), ("--table", "a table takes runs of")],
)
def test_what_cannot_be_done_is_refused(cpu_race, monkeypatch, capsys, option: str, words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["cpu_race.py", option])
    with pytest.raises(SystemExit):
        cpu_race.main()
    assert words in capsys.readouterr().err


def test_the_interval_is_that_of_the_pooled_deviation(cpu_race) -> None:
    def runs(*accuracies: float) -> list[dict[str, object]]:
        return [{"racer": "", "cpu_seconds": [10.0], "validation_accuracy": [0.1, each]} for each in accuracies]

    rows = cpu_race.compare({"recipe": runs(0.70, 0.72), "wide": runs(0.75, 0.77), "deep": runs(0.6), "adamw": []})
    # three squares of 0.01 a side with two degrees of freedom: a deviation of 0.01414, t(0.975, 2) = 4.303
    halves = [0.0608, 0.0608, 0.0745]
    assert [(row["difference"], row["half_interval"]) for row in rows] == list(
        zip([0, 0.05, -0.11], halves, strict=True)
    )
