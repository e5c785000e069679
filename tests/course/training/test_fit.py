from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from vit_course.data import Augmentation, Batches, digits, train_validation_split
from vit_course.training import TrainingDivergedError, TrainingSettings, evaluate, fit, load_model


def spoil_step(model: nn.Module, number: int) -> nn.Module:
    """The model, whose loss is NaN in this step of its training, counted from 1."""
    steps = itertools.count(1)
    model.register_forward_hook(
        lambda module, inputs, logits: logits * math.nan if module.training and next(steps) == number else logits
    )
    return model


class TestLearning:
    @pytest.mark.parametrize("muon", [None, 0.02])
    def test_a_small_vit_learns_to_read_digits(self, muon: float | None, tiny_model) -> None:
        pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
        train, validation = train_validation_split(digits(), 300)
        settings = TrainingSettings(epochs=6, batch_size=64, learning_rate=4e-3, muon_learning_rate=muon)
        model = tiny_model()
        history = fit(model, train, validation, settings)
        assert history.validation_accuracy[-1] > 0.85  # chance is 0.1
        assert history.validation_top5[-1] > 0.95
        assert history.train_loss[-1] < 0.5 * history.train_loss[0]
        assert history.ending == "finished"
        loss, accuracy = evaluate(model, Batches(validation, 300), "cpu")
        assert (loss, accuracy) == (pytest.approx(history.validation_loss[-1]), history.validation_accuracy[-1])

    def test_bfloat16(self, tiny_model, random_dataset) -> None:
        seen = []
        model = tiny_model()
        model.head.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
        fit(model, random_dataset(), random_dataset(), TrainingSettings(epochs=1, precision="bf16"))
        assert set(seen) == {torch.bfloat16}
        assert model.head.weight.dtype == torch.float32

    def test_frozen_parameters_stay(self, tiny_model, random_dataset) -> None:
        model = tiny_model()
        model.blocks[0].attention.projection.weight.requires_grad_(False)
        before = model.blocks[0].attention.projection.weight.clone()
        fit(model, random_dataset(), random_dataset(), TrainingSettings(epochs=1, muon_learning_rate=0.02))
        assert torch.equal(model.blocks[0].attention.projection.weight, before)

    def test_a_constant_rate_stays_up(self, tiny_model, random_dataset) -> None:
        settings = TrainingSettings(epochs=3, batch_size=16, learning_rate=0.01, schedule="constant")
        history = fit(tiny_model(), random_dataset(), random_dataset(), settings)
        assert history.learning_rate == [0.01] * 3
        falling = fit(tiny_model(), random_dataset(), random_dataset(), replace(settings, schedule="cosine"))
        assert falling.learning_rate[-1] < 0.001


class TestTheSame:
    def test_seed_gives_the_same_weights(self, tiny_model, random_dataset) -> None:
        settings = TrainingSettings(epochs=2, batch_size=16, augmentation=Augmentation(max_shift=1), seed=3)
        weights = []
        for seed_outside in (1, 2):
            model = tiny_model(mlp_dropout=0.3)
            torch.manual_seed(seed_outside)
            fit(model, random_dataset(), random_dataset(), settings)
            weights.append(model.head.weight)
        assert torch.equal(*weights)

    def test_other_seeds_give_other_weights(self, tiny_model, random_dataset) -> None:
        weights = []
        for seed in (1, 2):
            model = tiny_model()
            fit(model, random_dataset(), random_dataset(), TrainingSettings(epochs=1, batch_size=16, seed=seed))
            weights.append(model.head.weight)
        assert not torch.equal(*weights)


class TestMeasuring:
    def test_validation_is_normalized_like_training(self, tiny_model, random_dataset) -> None:
        train = random_dataset()
        darker = replace(train, images=train.images // 4, mean=(), std=())
        model = tiny_model()
        history = fit(model, train, darker, TrainingSettings(epochs=1))
        loss, _ = evaluate(model, Batches(darker.with_statistics_of(train), 50), "cpu")
        assert history.validation_loss[0] == pytest.approx(loss)

    def test_a_ragged_last_batch_counts_by_its_size(self, random_dataset) -> None:
        dataset = random_dataset(50)
        frozen = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
        loss, accuracy = evaluate(frozen, Batches(dataset, 50), "cpu")
        history = fit(frozen, dataset, dataset, TrainingSettings(epochs=1, batch_size=48, learning_rate=1e-12))
        assert history.train_loss[0] == pytest.approx(loss, rel=1e-5)
        assert history.train_accuracy[0] == accuracy

    def test_the_average_of_weights_is_measured_and_kept(self, tiny_model, random_dataset) -> None:
        dataset, model = random_dataset(), tiny_model()
        plain = tiny_model()
        settings = TrainingSettings(epochs=2, batch_size=16, learning_rate=0.01)
        fit(plain, dataset, dataset, settings)
        history = fit(model, dataset, dataset, replace(settings, ema_decay=0.9))
        assert not torch.equal(model.head.weight, plain.head.weight)
        loss, _ = evaluate(model, Batches(dataset, 50), "cpu")
        assert history.validation_loss[-1] == pytest.approx(loss)


class TestStopping:
    def test_early_stopping_ends_with_the_best_weights(self, tiny_model, random_dataset) -> None:
        model, dataset = tiny_model(), random_dataset()
        settings = TrainingSettings(epochs=30, batch_size=16, learning_rate=0.02, patience=2, schedule="constant")
        other = replace(dataset, labels=dataset.labels.flip(0))  # there is nothing to learn about these
        history = fit(model, dataset, other, settings)
        assert history.ending == "stopped early"
        assert len(history.seconds) == history.best_epoch + 2 < 30
        loss, _ = evaluate(model, Batches(other, 50), "cpu")
        assert loss == pytest.approx(min(history.validation_loss))

    @pytest.mark.parametrize(("at", "read_every"), [(1, 1), (5, 1), (8, 1), (3, 3), (4, 3)])
    def test_a_loss_that_is_nan_stops_it_and_names_the_step(
        self, at: int, read_every: int, tiny_model, random_dataset, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("vit_course.training.trainer.choose_reading_interval", lambda device: read_every)
        model = spoil_step(tiny_model(), at)
        with pytest.raises(TrainingDivergedError, match=f"loss is nan at step {at} of 8: try a smaller learning rate"):
            fit(model, random_dataset(), random_dataset(), TrainingSettings(epochs=2, batch_size=16))

    def test_after_it_the_model_has_the_best_weights(self, tiny_model, random_dataset, tmp_path) -> None:
        model, settings = spoil_step(tiny_model(), 7), TrainingSettings(epochs=2, batch_size=16)
        with pytest.raises(TrainingDivergedError, match="left as it was after epoch 1"):
            fit(model, random_dataset(), random_dataset(), settings, folder=tmp_path, trackers=())
        assert all(parameter.isfinite().all() for parameter in model.parameters())
        assert torch.equal(load_model(tmp_path / "best.safetensors").model.head.weight, model.head.weight)

    def test_after_it_a_run_goes_on_from_the_last_whole_epoch(self, tiny_model, random_dataset, tmp_path) -> None:
        wild, settings = spoil_step(tiny_model(), 11), TrainingSettings(epochs=3, batch_size=16)
        with pytest.raises(TrainingDivergedError, match="step 11 of 12"):
            fit(wild, random_dataset(), random_dataset(), settings, folder=tmp_path / "run", trackers=())
        whole, resumed = tiny_model(), tiny_model()
        expected = fit(whole, random_dataset(), random_dataset(), settings)
        seen = []
        resumed.register_forward_hook(lambda module, inputs, out: seen.append(1) if module.training else None)
        found = fit(
            resumed, random_dataset(), random_dataset(), settings, folder=tmp_path / "run", resume=True, trackers=()
        )
        assert len(seen) == 4  # the steps of one epoch
        assert found.validation_loss == expected.validation_loss
        assert torch.equal(resumed.head.weight, whole.head.weight)

    def test_weights_that_went_wrong_in_the_last_step_are_no_checkpoint(
        self, tiny_model, random_dataset, tmp_path
    ) -> None:
        model = tiny_model()
        model.register_forward_hook(lambda module, inputs, out: out if module.training else out * math.nan)
        with pytest.raises(TrainingDivergedError, match="validation loss is nan after step 4"):
            fit(model, random_dataset(), random_dataset(), TrainingSettings(epochs=1, batch_size=16), folder=tmp_path)
        assert not list(tmp_path.glob("*.safetensors"))


class TestRefusals:
    def test_resume_needs_a_folder(self, tiny_model, random_dataset) -> None:
        with pytest.raises(ValueError, match="resume goes on with the run in a folder"):
            fit(tiny_model(), random_dataset(), random_dataset(), TrainingSettings(), resume=True)

    def test_cuda_where_there_is_none(self, tiny_model, random_dataset, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        with pytest.raises(ValueError, match="no CUDA device here"):
            fit(tiny_model(), random_dataset(), random_dataset(), TrainingSettings(device="cuda"))

    def test_more_classes_than_the_model_distinguishes(self, tiny_model, random_dataset) -> None:
        with pytest.raises(ValueError, match="the model has 7 classes, and random has 10"):
            fit(tiny_model(num_classes=7), random_dataset(), random_dataset(), TrainingSettings())
