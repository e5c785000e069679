"""Normalization as torchvision does it: on a copy, and in place there."""

from typing import Any

import torch


def normalize_images(images: torch.Tensor, mean: Any, std: Any) -> torch.Tensor:
    """Normalize images (B, C, H, W) with one mean and one standard deviation per channel."""
    if len(mean) != images.shape[1]:
        # bug "channels never counted": if not len(mean):
        raise ValueError(f"{len(mean)} means for {images.shape[1]} channels")
    mean = torch.as_tensor(mean, dtype=images.dtype, device=images.device)
    # bug "tensors taken for granted":
    # bug "lists indexed like tensors":
    # bug "statistics left on the cpu": mean = torch.as_tensor(mean, dtype=images.dtype)
    std = torch.as_tensor(std, dtype=images.dtype, device=images.device)
    # bug "statistics left on the cpu": std = torch.as_tensor(std, dtype=images.dtype)
    images = images.clone()
    # bug "images changed in place":
    # bug "divided by 255 once more": images = images / 255
    mean, std = mean.reshape(-1, 1, 1), std.reshape(-1, 1, 1)
    # bug "lists indexed like tensors": mean, std = mean[:, None, None], std[:, None, None]
    # bug "a mean for every column": mean, std = mean.reshape(-1), std.reshape(-1)
    # bug "a mean for every row": mean, std = mean.reshape(-1, 1), std.reshape(-1, 1)
    # bug "a mean for every image": mean, std = mean.reshape(-1, 1, 1, 1), std.reshape(-1, 1, 1, 1)
    # bug "three channels hard coded": mean, std = mean.reshape(1, 3, 1, 1), std.reshape(1, 3, 1, 1)
    # bug "first channel for all": mean, std = mean[0], std[0]
    # bug "statistics of all pixels": mean, std = images.mean(), images.std()
    # bug "statistics of this batch": mean = images.mean(dim=(0, 2, 3), keepdim=True)
    # bug "statistics of this batch": std = images.std(dim=(0, 2, 3), keepdim=True)
    images -= mean
    # bug "channels never counted": images = images - mean
    # bug "only three channels normalized": images[:, :3] -= mean[:3]
    # bug "divided before subtracting": images /= std
    # bug "only the mean divided": images -= mean / std
    # bug "mean forgotten":
    # bug "undone in place of done": images *= std
    images /= std
    # bug "only three channels normalized": images[:, :3] /= std[:3]
    # bug "divided before subtracting": images -= mean
    # bug "only the mean divided":
    # bug "std forgotten":
    # bug "multiplied by std": images *= std
    # bug "divided by the variance": images /= std**2
    # bug "undone in place of done": images += mean
    return images
    # bug "float32 whatever the input": return images.float()
    # bug "batch of one squeezed": return images.squeeze()
