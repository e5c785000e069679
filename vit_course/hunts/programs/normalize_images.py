"""Normalization as torchvision does it: on a copy, and in place there."""

import torch


def suspect_normalize(images, mean, std):
    """Normalize images (B, C, H, W) with one mean and one standard deviation per channel."""
    mean = torch.as_tensor(mean, dtype=images.dtype, device=images.device)
    std = torch.as_tensor(std, dtype=images.dtype, device=images.device)
    # bug "divided by the variance": std = torch.as_tensor(std, dtype=images.dtype, device=images.device) ** 2
    if len(mean) != images.shape[1]:
        raise ValueError(f"{len(mean)} means for {images.shape[1]} channels")
    images = images.clone()
    # bug "images changed in place":
    # bug "divided by 255 once more": images = images / 255
    mean, std = mean.view(-1, 1, 1), std.view(-1, 1, 1)
    # bug "a mean for every row": mean, std = mean.view(-1, 1), std.view(-1, 1)
    # bug "first channel for all": mean, std = mean[0], std[0]
    # bug "statistics of all pixels": mean, std = images.mean(), images.std()
    return images.sub_(mean).div_(std)
    # bug "divided before subtracting": return images.div_(std).sub_(mean)
    # bug "only the mean divided": return images.sub_(mean.div(std))
    # bug "multiplied by std": return images.sub_(mean).mul_(std)
