"""Numbers that lesson 06 and README.md quote are those of the logs that they name."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from benchmarks.readme_tables import README, with_tables
from exercise_kit.authoring.lesson import read_lesson

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
CELLS = read_lesson(ROOT, ROOT / "solutions" / "06_cifar.py").cells
LESSON = " ".join(word for cell in CELLS for word in cell.source.split())


def log(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / name).read_text())


def percent(shares: list[float]) -> list[str]:
    return [f"{100 * share:.1f}" for share in shares]


@pytest.mark.parametrize("arm", log("lesson_cifar.json")["arms"])
def test_every_arm_of_the_experiments_is_quoted_from_its_runs(arm):
    runs = log("lesson_cifar.json")["results"][arm].values()
    assert " and ".join(percent([run["validation_accuracy"][-1] for run in runs])) in LESSON


def test_overfitting_is_reported_as_it_was():
    run = log("lesson_cifar.json")["results"]["few images"]["0"]
    losses, accuracies = run["validation_loss"], run["validation_accuracy"]
    best = losses.index(min(losses))
    told = f"after epoch {best + 1} ({losses[best]:.2f}), and {losses[-1]:.2f} after epoch {len(losses)}"
    assert told in LESSON
    assert " to ".join(percent([accuracies[best], accuracies[-1]])) in LESSON


def classics(name: str) -> dict[str, list[float]]:
    """The accuracies of the right model and of eight broken ones, in per cent."""
    return {row["name"]: [100 * each for each in row["accuracies"]] for row in log(name)["rows"]}


def against_the_right(models: dict[str, list[float]], broken: str) -> tuple[float, float]:
    """The gap of two means, above 0 where the broken model is better; and the spreads of both added up."""
    arms = models["right"], models[broken]
    return mean(arms[1]) - mean(arms[0]), sum(max(arm) - min(arm) for arm in arms)


def test_the_table_of_broken_models_is_that_of_its_benchmark():
    rows = classics("broken_vit_classics.json").values()
    quoted = [f"| {', '.join(f'{each:.1f}' for each in row)} | {mean(row):.1f} |" for row in rows]
    assert [line for line in quoted if line not in LESSON] == []


def test_what_is_said_of_the_table_follows_from_it():
    models = classics("broken_vit_classics.json")
    compared = {name: against_the_right(models, name) for name in models if name != "right"}
    aloud = [gap for gap, spreads in compared.values() if abs(gap) > 2 * spreads]
    assert (len(compared), len(aloud), sum(gap < 0 for gap in aloud)) == (8, 5, 3)
    gap, spreads = compared["MultiHeadSelfAttention: softmax down the queries"]
    assert f"softmax over the queries ({-gap:.1f} against spreads of {spreads:.1f}) are noise" in LESSON
    gap, spreads = against_the_right(
        classics("broken_vit_first.json"), "MultiHeadSelfAttention: softmax down the queries"
    )
    assert f"by a hair: {-gap:.2f} against {2 * spreads:.2f}" in LESSON


def test_the_count_of_broken_models_is_that_of_its_benchmark():
    rows = {row["name"]: row["accuracies"] for row in log("broken_vit_all.json")["rows"]}
    right = mean(rows.pop("right"))
    gaps = [mean(each) - right if None not in each else -right for each in rows.values()]
    beside, above, below = (
        sum(abs(gap) <= 0.02 for gap in gaps),
        sum(gap > 0.02 for gap in gaps),
        sum(gap < -0.02 for gap in gaps),
    )
    assert (len(rows), beside, above, below) == (114, 85, 5, 24)
    for number in (len(rows), beside, below):
        assert f"{number} " in LESSON
    readme = " ".join(README.read_text(encoding="utf-8").split())
    assert f"of {len(rows)} broken ViTs, {beside} end within two points of the right one, and five above" in readme


def test_the_tables_of_the_readme_are_those_of_the_logs():
    """Write them anew with: python benchmarks/readme_tables.py"""
    text = README.read_text(encoding="utf-8")
    assert with_tables(text) == text
