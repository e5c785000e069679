from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from vit_course.training import TrainingSettings, fit
from vit_course.training.progress import TrackerError


def read_scalar_steps(folder: Path) -> dict[str, list[int]]:
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
    curves = read_scalar_steps(tmp_path / "tensorboard")
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
        "vit_course.training.progress.find_spec", lambda name: None if name == missing else found("json")
    )
    dataset, settings = random_dataset(), TrainingSettings(epochs=1)
    with pytest.raises(ImportError, match=words):
        fit(tiny_model(), dataset, dataset, settings, folder=tmp_path / "run", trackers=["wandb"])


@pytest.mark.parametrize(("name", "words"), [("mlflow", "no tracker 'mlflow'"), ("tensorboard", "this run has none")])
def test_what_cannot_be_tracked_is_refused(name: str, words: str, tiny_model, random_dataset) -> None:
    with pytest.raises(ValueError, match=words):
        fit(tiny_model(), random_dataset(), random_dataset(), TrainingSettings(epochs=1), trackers=[name])


class TestWeightsAndBiases:
    """By a package of its name that records its calls, since the real one wants an account."""

    @pytest.fixture
    def logged(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
        pytest.importorskip("accelerate", reason="trackers are accelerate's")
        (tmp_path / "packages" / "wandb").mkdir(parents=True)
        (tmp_path / "packages" / "wandb" / "__init__.py").write_text(WANDB)
        (tmp_path / "packages" / "wandb" / "errors.py").write_text("class Error(Exception): pass")
        monkeypatch.syspath_prepend(tmp_path / "packages")
        for name in ("wandb", "wandb.errors"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        yield importlib.import_module("wandb").calls
        for name in ("wandb", "wandb.errors"):
            sys.modules.pop(name, None)

    def test_it_gets_the_run_and_a_row_an_epoch(self, logged: list[Any], tiny_model, random_dataset) -> None:
        settings = TrainingSettings(epochs=2)
        history = fit(tiny_model(), random_dataset(), random_dataset(), settings, trackers=["wandb"])
        (_, project), (_, description), *rows, end = logged
        assert project == "vit_course"
        assert description["settings"]["epochs"] == 2
        assert [(row["validation_loss"], step) for _, row, step in rows] == [
            (history.validation_loss[0], 1),
            (history.validation_loss[1], 2),
        ]
        assert end == ("finish",)

    @pytest.mark.parametrize("error", ["wandb.errors.Error", "ConnectionError"])
    def test_when_it_does_not_start_it_is_reported(
        self, error: str, logged: list[Any], tiny_model, random_dataset, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("wandb.fails", error)
        with pytest.raises(TrackerError, match=r"does not start: No API key configured\. Log in by `wandb login`, or"):
            fit(tiny_model(), random_dataset(), random_dataset(), TrainingSettings(epochs=1), trackers=["wandb"])
        assert logged == []


WANDB = """
import wandb.errors

calls, fails = [], None


class Run:
    def log(self, row, step):
        calls.append(("log", row, step))

    def finish(self):
        calls.append(("finish",))


class config:
    def update(values, allow_val_change):
        calls.append(("config", values))


def init(project):
    if fails is not None:
        raise eval(fails)("No API key\\nconfigured")
    calls.append(("init", project))
    return Run()
"""
