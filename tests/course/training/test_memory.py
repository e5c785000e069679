from __future__ import annotations

from unittest.mock import Mock

import pytest
import torch
from torch import Tensor, nn

from vit_course.training import OutOfMemoryError, TrainingSettings, fit
from vit_course.training.hardware import explain_out_of_memory


class MemoryHungry(nn.Module):
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
    model = MemoryHungry(largest)
    with pytest.raises(
        OutOfMemoryError, match=f"with 40 images a step; {fitting} fit: take batches of {fitting}, or fewer"
    ) as raised:
        fit(model, random_dataset(50), random_dataset(50), TrainingSettings(batch_size=40))
    assert raised.value.batch_size == fitting
    assert all(parameter.grad is None for parameter in model.parameters())


def test_it_says_so_when_not_even_one_image_fits(random_dataset) -> None:
    with pytest.raises(OutOfMemoryError, match="with 40 images a step, and with one") as raised:
        fit(MemoryHungry(0), random_dataset(50), random_dataset(50), TrainingSettings(batch_size=40))
    assert raised.value.batch_size is None


def test_a_run_keeps_its_whole_epochs(random_dataset, tmp_path) -> None:
    model, settings = MemoryHungry(40), TrainingSettings(epochs=2, batch_size=40)

    def enlarge_largest_batch(module: MemoryHungry, *_: object) -> None:
        if not module.training:  # the first epoch is being measured
            module.largest = 10

    model.register_forward_hook(enlarge_largest_batch)
    with pytest.raises(OutOfMemoryError, match="10 fit"):
        fit(model, random_dataset(50), random_dataset(50), settings, folder=tmp_path, trackers=())
    assert (tmp_path / "last.safetensors").is_file()
    rows = (tmp_path / "metrics.jsonl").read_text()
    history = fit(MemoryHungry(40), random_dataset(50), random_dataset(50), settings, folder=tmp_path, resume=True)
    assert len(history.seconds) == 2
    assert (tmp_path / "metrics.jsonl").read_text().startswith(rows)  # with its seconds: it was not trained again


TOO_FULL = [torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), RuntimeError("out of memory")]


@pytest.mark.parametrize("error", TOO_FULL, ids=["allocating", "opening the device"])
@pytest.mark.parametrize("what", ["vit_course.data.image_dataset.Batches.__init__", "torch.nn.Module.to"])
def test_no_room_before_the_first_step_is_reported(
    what: str, error: Exception, random_dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = MemoryHungry(50)
    monkeypatch.setattr(what, Mock(side_effect=error))
    with pytest.raises(OutOfMemoryError, match="cpu is out of memory before the first step: other programs") as raised:
        fit(model, random_dataset(50), random_dataset(50), TrainingSettings())
    assert raised.value.batch_size is None


def test_another_error_of_the_device_is_left_as_it_is() -> None:
    with pytest.raises(RuntimeError, match="no kernel image"), explain_out_of_memory(torch.device("cpu")):
        raise RuntimeError("CUDA error: no kernel image is available")
