from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vit_course.config import ViTConfig
from vit_course.data import ImageDataset, digits, train_validation_split
from vit_course.optimizers import build_optimizers, warmup_cosine
from vit_course.training import (
    TrainingDivergedError,
    TrainingSettings,
    batches,
    evaluate,
    fit,
    random_shift,
)
from vit_course.vit import VisionTransformer

TINY = ViTConfig(image_size=8, patch_size=4, in_channels=1, embed_dim=24, depth=2, num_heads=3)


def random_dataset(count: int = 50, num_classes: int = 10) -> ImageDataset:
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (count, 1, 8, 8), generator=generator, dtype=torch.uint8)
    labels = torch.randint(0, num_classes, (count,), generator=generator)
    return ImageDataset(images, labels, tuple("0123456789"[:num_classes]), "random")


def tiny_model(seed: int = 0, dropout: float = 0.0) -> VisionTransformer:
    torch.manual_seed(seed)
    return VisionTransformer(replace(TINY, mlp_dropout=dropout))


class TestFit:
    @pytest.mark.parametrize("muon", [None, 0.02])
    def test_a_small_vit_learns_to_read_digits(self, muon: float | None) -> None:
        pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
        train, validation = train_validation_split(digits(), 300)
        settings = TrainingSettings(epochs=6, batch_size=64, learning_rate=4e-3, muon_learning_rate=muon)
        model = tiny_model()
        history = fit(model, train, validation, settings)
        assert history.validation_accuracy[-1] > 0.85  # chance is 0.1
        assert history.train_loss[-1] < 0.5 * history.train_loss[0]
        assert evaluate(model, validation) == (history.validation_loss[-1], history.validation_accuracy[-1])

    def test_the_same_seed_gives_the_same_weights(self) -> None:
        dataset = random_dataset()
        settings = TrainingSettings(epochs=2, batch_size=16, max_shift=1, seed=3)
        weights = []
        for seed_outside in (1, 2):
            model = tiny_model(dropout=0.3)
            torch.manual_seed(seed_outside)
            fit(model, dataset, dataset, settings)
            weights.append(model.head.weight)
        assert torch.equal(*weights)

    def test_torchs_own_generator_is_left_alone(self) -> None:
        state = torch.get_rng_state()
        model = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.LazyLinear(10))
        model(torch.zeros(1, 1, 8, 8))
        torch.set_rng_state(state)
        fit(model, random_dataset(), random_dataset(), TrainingSettings(epochs=1))
        assert torch.equal(torch.get_rng_state(), state)

    def test_validation_is_normalised_like_training(self) -> None:
        train = random_dataset()
        darker = replace(train, images=train.images // 4, mean=(), std=())
        model = tiny_model()
        history = fit(model, train, darker, TrainingSettings(epochs=1))
        assert history.validation_loss[0] == evaluate(model, darker.with_statistics_of(train))[0]

    def test_history_counts_a_ragged_last_batch_by_its_size(self) -> None:
        dataset = random_dataset(50)
        frozen = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
        before = evaluate(frozen, dataset)
        history = fit(frozen, dataset, dataset, TrainingSettings(epochs=1, batch_size=48, learning_rate=1e-12))
        assert history.train_loss[0] == pytest.approx(before[0], rel=1e-5)
        assert history.train_accuracy[0] == before[1]

    def test_a_loss_that_is_nan_stops_it(self) -> None:
        model = tiny_model()
        with torch.no_grad():
            model.head.bias.fill_(math.nan)
        with pytest.raises(TrainingDivergedError, match=r"loss is nan at step 1 of 8: try a smaller learning rate"):
            fit(model, random_dataset(), random_dataset(), TrainingSettings(epochs=2, batch_size=16))

    def test_no_bar_in_a_pipe_and_none_on_stderr(self, capfd: pytest.CaptureFixture[str]) -> None:
        fit(tiny_model(), random_dataset(), random_dataset(), TrainingSettings(epochs=1))
        assert capfd.readouterr() == ("", "")

    def test_the_bar_tells_throughput_loss_and_accuracy(self, capsys: pytest.CaptureFixture[str]) -> None:
        fit(tiny_model(), random_dataset(), random_dataset(), TrainingSettings(epochs=2), progress=True)
        captured = capsys.readouterr()
        assert captured.err == ""
        for word in ("epoch 2/2", "100/100", "images/s", "validation loss", "accuracy"):
            assert word in captured.out


class TestEvaluate:
    def test_it_is_the_mean_over_images_not_over_batches(self) -> None:
        dataset, model = random_dataset(50), nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
        logits = model(dataset.normalize(dataset.images))
        loss, accuracy = evaluate(model, dataset, batch_size=48)
        assert loss == pytest.approx(F.cross_entropy(logits, dataset.labels).item(), rel=1e-5)
        assert accuracy == pytest.approx((logits.argmax(1) == dataset.labels).double().mean().item())

    @pytest.mark.parametrize("training", [True, False])
    def test_dropout_is_off_and_the_mode_is_put_back(self, training: bool) -> None:
        model = nn.Sequential(nn.Flatten(), nn.Dropout(0.9), nn.Linear(64, 10)).train(training)
        dataset = random_dataset()
        assert evaluate(model, dataset) == evaluate(model, dataset)
        assert model.training is training

    def test_it_leaves_no_gradient(self) -> None:
        model = tiny_model()
        evaluate(model, random_dataset())
        assert all(parameter.grad is None for parameter in model.parameters())


class TestBatches:
    def test_an_epoch_holds_every_image_once(self) -> None:
        dataset = replace(random_dataset(50), labels=torch.arange(50), classes=tuple(map(str, range(50))))
        parts = list(batches(dataset, TrainingSettings(batch_size=16), torch.Generator()))
        assert [len(labels) for _, labels in parts] == [16, 16, 16, 2]
        labels = torch.cat([labels for _, labels in parts])
        assert sorted(labels.tolist()) == list(range(50))
        assert torch.equal(torch.cat([images for images, _ in parts]), dataset.normalize(dataset.images[labels]))

    def test_two_epochs_differ(self) -> None:
        generator = torch.Generator().manual_seed(0)
        first, second = (next(batches(random_dataset(), TrainingSettings(), generator))[0] for _ in range(2))
        assert not torch.equal(first, second)


class TestRandomShift:
    images = torch.arange(40 * 2 * 6 * 9, dtype=torch.float64).reshape(40, 2, 6, 9)

    def test_each_image_moves_as_a_whole_by_its_own_step(self) -> None:
        shifted = random_shift(self.images, 2, torch.Generator().manual_seed(0))
        padded = F.pad(self.images, (2, 2, 2, 2), mode="replicate")
        steps = []
        for before, after in zip(padded, shifted, strict=True):
            candidates = [(d, r) for d in range(5) for r in range(5)]
            steps += [s for s in candidates if torch.equal(before[:, s[0] : s[0] + 6, s[1] : s[1] + 9], after)]
        assert len(steps) == 40
        assert len(set(steps)) > 10  # 40 draws out of 25
        assert {down for down, _ in steps} == {right for _, right in steps} == set(range(5))

    def test_it_keeps_dtype_and_input(self) -> None:
        images = self.images.to(torch.uint8)
        before = images.clone()
        assert random_shift(images, 3, torch.Generator()).dtype == torch.uint8
        assert torch.equal(images, before)


class TestOptimizers:
    def test_matrices_of_blocks_go_to_muon_and_only_matrices_decay(self) -> None:
        model = tiny_model()
        names = {parameter: name for name, parameter in model.named_parameters()}
        adamw, muon = build_optimizers(model, TrainingSettings(muon_learning_rate=0.02, weight_decay=0.1))
        decayed, plain = ({names[p] for p in group["params"]} for group in adamw.param_groups)
        inner = {names[p] for p in muon.param_groups[0]["params"]}
        assert decayed == {"patch_embedding.projection.weight", "head.weight"}
        assert {"class_token", "positions", "norm.weight", "blocks.0.norm1.weight", "head.bias"} <= plain
        assert inner == {
            f"blocks.{number}.{part}.weight"
            for number in range(2)
            for part in ("attention.qkv", "attention.projection", "mlp.fc1", "mlp.fc2")
        }
        assert decayed | plain | inner == set(names.values())
        assert [group["weight_decay"] for group in adamw.param_groups] == [0.1, 0.0]

    def test_without_a_rate_for_muon_adamw_takes_all(self) -> None:
        (adamw,) = build_optimizers(tiny_model(), TrainingSettings())
        assert sum(len(group["params"]) for group in adamw.param_groups) == len(list(tiny_model().parameters()))

    def test_the_rate_rises_in_a_line_and_falls_in_a_cosine(self) -> None:
        factors = [warmup_cosine(step, 4, 12) for step in range(13)]
        assert factors[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
        assert factors[8] == pytest.approx(0.5)
        assert factors[12] == pytest.approx(0.0)
        assert warmup_cosine(0, 0, 1) == 1.0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", 0),
        ("batch_size", 0),
        ("learning_rate", 0.0),
        ("muon_learning_rate", -1.0),
        ("warmup", 1.0),
        ("label_smoothing", -0.1),
        ("weight_decay", -0.1),
        ("max_shift", -1),
    ],
)
def test_settings_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must .*{value}"):
        TrainingSettings(**{name: value})
