from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vit_course.data import Batches
from vit_course.training import evaluate, train_one_epoch


class TestEvaluate:
    def test_it_is_the_mean_over_images_not_over_batches(self, random_dataset) -> None:
        dataset, model = random_dataset(50), nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
        logits = model(dataset.normalize(dataset.images))
        loss, accuracy = evaluate(model, Batches(dataset, 48), "cpu")
        assert loss == pytest.approx(F.cross_entropy(logits, dataset.labels).item(), rel=1e-5)
        assert accuracy == pytest.approx((logits.argmax(1) == dataset.labels).double().mean().item())

    @pytest.mark.parametrize("training", [True, False])
    def test_dropout_is_off_and_the_mode_is_put_back(self, training: bool, random_dataset) -> None:
        model = nn.Sequential(nn.Flatten(), nn.Dropout(0.9), nn.Linear(64, 10)).train(training)
        loader = Batches(random_dataset(), 50)
        assert evaluate(model, loader, "cpu") == evaluate(model, loader, "cpu")
        assert model.training is training

    def test_the_mode_is_put_back_after_an_error(self, random_dataset) -> None:
        model = nn.Linear(3, 10).train()
        with pytest.raises(RuntimeError):
            evaluate(model, Batches(random_dataset(), 50), "cpu")
        assert model.training

    def test_it_leaves_no_gradient(self, tiny_model, random_dataset) -> None:
        model = tiny_model()
        evaluate(model, Batches(random_dataset(), 50), "cpu")
        assert all(parameter.grad is None for parameter in model.parameters())

    def test_a_loader_without_images_is_refused(self) -> None:
        with pytest.raises(ValueError, match="no images"):
            evaluate(nn.Flatten(), [], "cpu")

    def test_fewer_than_five_classes(self, random_dataset) -> None:
        dataset = random_dataset(20, num_classes=3)
        loss, _ = evaluate(nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), Batches(dataset, 7), "cpu")
        assert math.isfinite(loss)


class TestTrainOneEpoch:
    def test_the_loss_is_the_mean_over_images_before_each_update(self, random_dataset) -> None:
        dataset, model = random_dataset(50), nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
        before, _ = evaluate(model, Batches(dataset, 50), "cpu")
        standing_still = torch.optim.SGD(model.parameters(), lr=0.0)
        loss = train_one_epoch(model, Batches(dataset, 48), standing_still, "cpu")
        assert loss == pytest.approx(before, rel=1e-5)

    def test_it_learns_in_training_mode(self, random_dataset) -> None:
        dataset = random_dataset(50)
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10)).eval()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        losses = [train_one_epoch(model, Batches(dataset, 16), optimizer, "cpu") for _ in range(5)]
        assert losses[-1] < 0.7 * losses[0]
        assert model.training
