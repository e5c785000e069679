from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from vit_course.training import CheckpointError, RunFolderError, TrainingSettings, fit, load_model
from vit_course.training.updates import Updates

SETTINGS = TrainingSettings(epochs=2, batch_size=16, learning_rate=4e-3)


@pytest.fixture
def run_folder(tiny_model, random_dataset, tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    fit(tiny_model(), random_dataset(), random_dataset(), SETTINGS, folder=folder, trackers=())
    return folder


def resume_training(folder: Path, tiny_model, random_dataset, settings: TrainingSettings = SETTINGS, **changes: object):
    model = tiny_model(**changes)
    return model, fit(model, random_dataset(), random_dataset(), settings, folder=folder, resume=True, trackers=())


def train_until_interrupted(folder: Path, tiny_model, random_dataset, settings: TrainingSettings, monkeypatch) -> None:
    """Train for one epoch, and be stopped by Ctrl-C in the second."""
    whole = Updates.differentiate_and_update

    def apply_until_interrupted(self: Updates, loss: torch.Tensor) -> None:
        if self.steps == 6:
            raise KeyboardInterrupt
        whole(self, loss)

    with monkeypatch.context() as patch:
        patch.setattr(Updates, "differentiate_and_update", apply_until_interrupted)
        history = fit(tiny_model(), random_dataset(), random_dataset(), settings, folder=folder, trackers=())
    assert (history.ending, len(history.seconds)) == ("interrupted", 1)


class TestFiles:
    def test_they_say_what_the_run_is_and_how_it_went(self, run_folder: Path) -> None:
        assert {each.name for each in run_folder.iterdir()} == {
            "config.json",
            "metrics.jsonl",
            "best.safetensors",
            "last.safetensors",
        }
        config = json.loads((run_folder / "config.json").read_text())
        assert config["model"]["embed_dim"] == 24
        assert config["settings"]["batch_size"] == 16
        assert config["data"]["train_images"] == 50
        rows = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
        assert [row["epoch"] for row in rows] == [1, 2]
        assert {"train_loss", "validation_loss", "validation_accuracy", "validation_top5", "seconds"} <= set(rows[0])

    def test_best_is_a_weights_file_of_the_lowest_validation_loss(self, tiny_model, random_dataset, tmp_path) -> None:
        settings = replace(SETTINGS, epochs=25, learning_rate=0.02, patience=3, schedule="constant")
        model, dataset = tiny_model(), random_dataset()
        other = replace(dataset, labels=dataset.labels.flip(0))
        history = fit(model, dataset, other, settings, folder=tmp_path / "run", trackers=())
        assert history.ending == "stopped early"
        best = load_model(tmp_path / "run" / "best.safetensors").model
        assert all(torch.equal(*pair) for pair in zip(best.parameters(), model.parameters(), strict=True))

    def test_a_model_of_no_config_is_kept_too(self, random_dataset, tmp_path) -> None:
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        fit(model, random_dataset(), random_dataset(), SETTINGS, folder=tmp_path / "run", trackers=())
        assert torch.equal(load_file(tmp_path / "run" / "best.safetensors")["1.weight"], model[1].weight)
        with pytest.raises(CheckpointError, match="has no ViTConfig"):
            load_model(tmp_path / "run" / "best.safetensors")


class TestGoingOn:
    def test_a_finished_run_is_what_it_was(self, run_folder: Path, tiny_model, random_dataset) -> None:
        before = (run_folder / "metrics.jsonl").read_bytes()
        model, history = resume_training(run_folder, tiny_model, random_dataset)
        assert (history.ending, len(history.seconds)) == ("finished", 2)
        assert (run_folder / "metrics.jsonl").read_bytes() == before
        last = load_file(run_folder / "last.safetensors")
        assert torch.equal(model.head.weight, last["model.head.weight"])

    def test_an_early_stop_is_not_gone_over(self, tiny_model, random_dataset, tmp_path) -> None:
        settings = replace(SETTINGS, epochs=25, learning_rate=0.02, patience=1, schedule="constant")
        folder = tmp_path / "deep" / "new"  # where there is none yet, resume begins
        _, first = resume_training(folder, tiny_model, random_dataset, settings)
        assert first.ending == "stopped early"
        assert resume_training(folder, tiny_model, random_dataset, settings)[1] == first

    @pytest.mark.parametrize("begun_compiled", [True, False])
    def test_another_device_may_compile_or_not(
        self, begun_compiled: bool, tiny_model, random_dataset, tmp_path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        compilation = torch.compile
        monkeypatch.setattr(torch, "compile", lambda model, dynamic: compilation(model, backend="eager"))
        train_until_interrupted(
            tmp_path, tiny_model, random_dataset, replace(SETTINGS, compile=begun_compiled), monkeypatch
        )
        settings = replace(SETTINGS, compile=not begun_compiled)
        model, history = resume_training(tmp_path, tiny_model, random_dataset, settings)
        whole = tiny_model()
        assert history.validation_loss == fit(whole, random_dataset(), random_dataset(), SETTINGS).validation_loss
        assert torch.equal(model.head.weight, whole.head.weight)

    @pytest.mark.parametrize(("begun_in", "goes_on_in"), [("bf16", "fp16"), ("fp16", "fp32")])
    def test_another_device_may_scale_its_gradients_or_not(
        self, begun_in: str, goes_on_in: str, tiny_model, random_dataset, tmp_path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What "auto" becomes is the device's, and only in float16 the gradients have a scale."""
        chosen = [begun_in, goes_on_in]
        monkeypatch.setattr("vit_course.training.trainer.choose_precision", lambda *_: chosen.pop(0))
        settings = replace(SETTINGS, precision="auto")
        train_until_interrupted(tmp_path, tiny_model, random_dataset, settings, monkeypatch)
        model, history = resume_training(tmp_path, tiny_model, random_dataset, settings)
        assert (history.ending, len(history.seconds)) == ("finished", 2)
        assert model.head.weight.isfinite().all()

    def test_half_a_line_of_metrics_is_mended(self, run_folder: Path, tiny_model, random_dataset) -> None:
        whole = (run_folder / "metrics.jsonl").read_bytes()
        (run_folder / "metrics.jsonl").write_bytes(whole + b'{"epoch": 3, "train_lo')
        resume_training(run_folder, tiny_model, random_dataset)
        assert (run_folder / "metrics.jsonl").read_bytes() == whole


class TestRefusals:
    def test_a_run_that_exists(self, run_folder: Path, tiny_model, random_dataset) -> None:
        before = {each.name: each.read_bytes() for each in run_folder.iterdir()}
        with pytest.raises(RunFolderError, match="exists: go on with it by resume, or choose another folder"):
            fit(tiny_model(), random_dataset(), random_dataset(), SETTINGS, folder=run_folder)
        assert {each.name: each.read_bytes() for each in run_folder.iterdir()} == before

    @pytest.mark.parametrize(
        ("file", "settings", "model", "words"),
        [
            ("config.json", SETTINGS, {}, "is a file; a run needs a folder"),
            ("", replace(SETTINGS, batch_size=8), {}, "begun with settings batch_size = 16, not 8"),
            ("", SETTINGS, {"embed_dim": 36}, "begun with model embed_dim = 24, not 36"),
        ],
        ids=["a file", "other settings", "another model"],
    )
    def test_what_does_not_go_on(self, file, settings, model, words, run_folder, tiny_model, random_dataset) -> None:
        with pytest.raises(RunFolderError, match=words):
            resume_training(run_folder / file, tiny_model, random_dataset, settings, **model)

    @pytest.mark.parametrize("name", ["last.safetensors", "best.safetensors"])
    def test_a_checkpoint_cut_short(self, name: str, run_folder: Path, tiny_model, random_dataset) -> None:
        (run_folder / name).write_bytes((run_folder / name).read_bytes()[:-100])
        with pytest.raises(CheckpointError, match=f"{name} was cut short"):
            resume_training(run_folder, tiny_model, random_dataset)

    @pytest.mark.parametrize(
        ("damage", "words"),
        [
            (lambda run: (run / "best.safetensors").unlink(), r"no checkpoint .*best\.safetensors"),
            (lambda run: shutil.copy(run / "best.safetensors", run / "last.safetensors"), "is no state of a run"),
            (lambda run: rewrite_checkpoint(run, {}, state_version=2), "of version 2, and this vit_course reads 1"),
        ],
        ids=["gone", "weights in the place of the state", "another version"],
    )
    def test_a_checkpoint_of_another_kind(
        self, damage, words: str, run_folder: Path, tiny_model, random_dataset
    ) -> None:
        damage(run_folder)
        with pytest.raises(CheckpointError, match=words):
            resume_training(run_folder, tiny_model, random_dataset)

    @pytest.mark.parametrize(
        "name", ["model.head.weight", "optimizer.0.3.exp_avg", "optimizer.0.0.step", "optimizer.0.99.exp_avg"]
    )
    def test_a_tensor_of_another_shape(self, name: str, run_folder: Path, tiny_model, random_dataset) -> None:
        rewrite_checkpoint(run_folder, {name: torch.zeros(7, 7)})
        with pytest.raises(CheckpointError, match="does not fit this model"):
            resume_training(run_folder, tiny_model, random_dataset)


def rewrite_checkpoint(folder: Path, tensors: dict[str, torch.Tensor], **header: object) -> None:
    """Change some tensors of a run's state, or fields of its header."""
    path = folder / "last.safetensors"
    with safe_open(path, "pt") as file:
        known = json.loads(file.metadata()["vit_course_run"]) | header
    save_file(load_file(path) | tensors, path, {"vit_course_run": json.dumps(known)})
