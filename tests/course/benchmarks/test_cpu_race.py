"""benchmarks/cpu_race.py: the interval beside each quoted difference."""

from __future__ import annotations

from cpu_race import compare_with_recipe


def test_the_interval_is_that_of_the_pooled_deviation() -> None:
    def make_runs(*accuracies: float) -> list[dict[str, object]]:
        return [{"racer": "", "cpu_seconds": [10.0], "validation_accuracy": [0.1, each]} for each in accuracies]

    rows = compare_with_recipe(
        {"recipe": make_runs(0.70, 0.72), "wide": make_runs(0.75, 0.77), "deep": make_runs(0.6), "adamw": []}
    )
    # three squares of 0.01 a side with two degrees of freedom: a deviation of 0.01414, t(0.975, 2) = 4.303
    halves = [0.0608, 0.0608, 0.0745]
    assert [(row["difference"], row["half_interval"]) for row in rows] == list(
        zip([0, 0.05, -0.11], halves, strict=True)
    )
