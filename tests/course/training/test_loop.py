from __future__ import annotations

import pytest
from torch import nn

from vit_course.data import Batches
from vit_course.training import evaluate


class TestEvaluate:
    def test_the_mode_is_put_back_after_an_error(self, random_dataset) -> None:
        model = nn.Linear(3, 10).train()
        with pytest.raises(RuntimeError):
            evaluate(model, Batches(random_dataset(), 50), "cpu")
        assert model.training

    def test_a_loader_without_images_is_refused(self) -> None:
        with pytest.raises(ValueError, match="no images"):
            evaluate(nn.Flatten(), [], "cpu")
