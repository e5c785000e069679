"""A step on a GPU that is not there: torch's fake tensors know their device and hold no numbers.

They refuse what a GPU refuses, two tensors on two devices. The backward pass needs a driver, so gradients are given.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

from vit_course.config import ViTConfig
from vit_course.data import Augmentation, Batches, ImageDataset, shapes
from vit_course.training import TrainingSettings
from vit_course.training.loop import Tally
from vit_course.training.updates import Updates
from vit_course.vit import VisionTransformer

GPU = torch.device("cuda", 0)
AUGMENTATION = Augmentation(max_shift=2, flip=True, erase=3)
SETTINGS = TrainingSettings(muon_learning_rate=0.02, ema_decay=0.9, gradient_clip=1.0)


@pytest.fixture
def dataset() -> ImageDataset:
    return shapes(24, image_size=16)


def move_to_gpu(dataset: ImageDataset) -> ImageDataset:
    """The data set as `ImageDataset.to` leaves it, but for looking at labels, which hold no numbers here."""
    there = object.__new__(ImageDataset)
    there.__dict__.update(dataset.__dict__, images=dataset.images.to(GPU), labels=dataset.labels.to(GPU))
    return there


@pytest.fixture
def _parameters_are_replaced() -> Iterator[None]:
    """A module moves its parameters by replacing them: a real one cannot become a fake one in place."""
    before = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    yield
    torch.__future__.set_overwrite_module_params_on_conversion(before)


@pytest.mark.usefixtures("_parameters_are_replaced")
@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")  # by deepcopy, for the average
@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
@pytest.mark.parametrize("pooling", ["class_token", "mean"])
def test_every_tensor_of_a_step_is_on_the_gpu(dataset: ImageDataset, positions: str, pooling: str) -> None:
    real = VisionTransformer(ViTConfig(16, 4, embed_dim=16, depth=2, num_heads=2, positions=positions, pooling=pooling))
    with FakeTensorMode(allow_non_fake_inputs=True):
        model = real.to(GPU)
        updates, tally = Updates(model, SETTINGS, 10, GPU, "fp32"), Tally(GPU)
        for images, labels in Batches(move_to_gpu(dataset), 16, AUGMENTATION, shuffle=True):
            logits = model(images)
            tally.add(F.cross_entropy(logits, labels, reduction="sum"), logits, labels)
            for parameter in model.parameters():
                parameter.grad = torch.empty_like(parameter)
            updates.begin_step()
            updates.clip_and_update()
        assert images.device == labels.device == tally.sums.device == GPU
        assert {tensor.device for tensor in updates.collect_state_tensors().values()} == {GPU}


def test_two_devices_are_refused(dataset: ImageDataset) -> None:
    """What the test above rests on."""
    with FakeTensorMode(allow_non_fake_inputs=True), pytest.raises(RuntimeError, match="device"):
        move_to_gpu(dataset).images + dataset.images
