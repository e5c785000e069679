from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from vit_course.training import OutOfMemoryError, TrainingSettings, fit


class Hungry(nn.Module):
    """A classifier that runs out of memory with more than so many images while it trains."""

    def __init__(self, largest: int) -> None:
        super().__init__()
        self.largest = largest
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))

    def forward(self, images: Tensor) -> Tensor:
        if self.training and len(images) > self.largest:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return self.layers(images)


@pytest.mark.parametrize(("largest", "fitting"), [(30, 20), (12, 10), (1, 1)])
def test_it_says_which_batch_size_would_fit(largest: int, fitting: int, random_dataset) -> None:
    model = Hungry(largest)
    with pytest.raises(
        OutOfMemoryError, match=f"with 40 images a step; {fitting} fit: set batch_size={fitting}"
    ) as told:
        fit(model, random_dataset(50), random_dataset(50), TrainingSettings(batch_size=40))
    assert told.value.batch_size == fitting
    assert all(parameter.grad is None for parameter in model.parameters())


def test_it_says_so_when_not_even_one_image_fits(random_dataset) -> None:
    with pytest.raises(OutOfMemoryError, match="with 40 images a step, and with one") as told:
        fit(Hungry(0), random_dataset(50), random_dataset(50), TrainingSettings(batch_size=40))
    assert told.value.batch_size is None
