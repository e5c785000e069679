"""A trained model's answers to a set of images."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from vit_course.data import Batches, ImageDataset

BATCH = 500


def predict(model: nn.Module, dataset: ImageDataset, device: torch.device) -> Tensor:
    """Logits (num_images, num_classes) float32 on the CPU, without dropout; the model's mode is put back after."""
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            batches = Batches(dataset, BATCH, device=device)
            return torch.cat([model(images).float().cpu() for images, _ in batches])
    finally:
        model.train(was_training)


def load_weights(path: Path, model: nn.Module) -> None:
    """Put the weights of a file that `vit_course.training.fit` wrote into a model of the same recipe."""
    from safetensors.torch import load_file

    model.load_state_dict(load_file(path))
