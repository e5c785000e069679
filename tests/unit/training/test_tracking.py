from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from vit_course.training import TrainingSettings, fit


def scalars(folder: Path) -> dict[str, list[int]]:
    """Name of each curve → the steps at which it has a value."""
    event_accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="reads what TensorBoard would show"
    )
    events = event_accumulator.EventAccumulator(str(folder))
    events.Reload()
    return {name: [event.step for event in events.Scalars(name)] for name in events.Tags()["scalars"]}


@pytest.mark.skipif(importlib.util.find_spec("accelerate") is None, reason="trackers are accelerate's")
def test_tensorboard_by_default_and_a_resumed_run_goes_on_in_it(tiny_model, random_dataset, tmp_path) -> None:
    dataset, settings = random_dataset(), TrainingSettings(epochs=2)
    for _ in range(2):
        fit(tiny_model(), dataset, dataset, settings, folder=tmp_path, resume=True)
    curves = scalars(tmp_path / "tensorboard")
    assert curves["validation_accuracy"] == curves["learning_rate"] == [1, 2]


def test_nothing_is_tracked_without_a_folder(tiny_model, random_dataset, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    fit(tiny_model(), random_dataset(), random_dataset(), TrainingSettings(epochs=1))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("accelerate", r'accelerate, which is missing: pip install "vit-course\[train\]"'),
        ("wandb", "pip install wandb"),
    ],
)
def test_what_is_missing_is_named(missing: str, words: str, tiny_model, random_dataset, tmp_path, monkeypatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "vit_course.training.tracking.find_spec", lambda name: None if name == missing else found("json")
    )
    with pytest.raises(ImportError, match=words):
        fit(
            tiny_model(),
            random_dataset(),
            random_dataset(),
            TrainingSettings(epochs=1),
            folder=tmp_path / "run",
            trackers=["wandb"],
        )


@pytest.mark.parametrize(("name", "words"), [("mlflow", "no tracker 'mlflow'"), ("tensorboard", "this run has none")])
def test_what_cannot_be_tracked_is_refused(name: str, words: str, tiny_model, random_dataset) -> None:
    with pytest.raises(ValueError, match=words):
        fit(tiny_model(), random_dataset(), random_dataset(), TrainingSettings(epochs=1), trackers=[name])
