"""Mixup of a batch, by a generator of NumPy."""

import numpy as np
import torch
import torch.nn.functional as F


def mixup(
    images: torch.Tensor, labels: torch.Tensor, num_classes: int, alpha: float, generator: np.random.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Images blended in pairs by one share from Beta(alpha, alpha), and one-hot targets blended likewise."""
    if alpha <= 0:
        # bug "alpha not tested": if alpha != alpha:
        raise ValueError(f"alpha has to be above 0, and is {alpha}")
    share = generator.beta(alpha, alpha)
    # bug "uniform share": share = generator.random()
    # bug "always half and half": share = 0.5
    # bug "beta of alpha and one": share = generator.beta(alpha, 1)
    # bug "the larger share kept": share = max(share := generator.beta(alpha, alpha), 1 - share)
    # bug "share by the global generator": share = torch.distributions.Beta(alpha, alpha).sample().item()
    # bug "a generator of its own": generator = np.random.default_rng(0)
    # bug "a generator of its own": share = generator.beta(alpha, alpha)
    # bug "a share for each image": share = torch.from_numpy(generator.beta(alpha, alpha, size=len(images)))
    # bug "a share for each image": share = share.to(images)[:, None]
    partners = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    # bug "the neighbor for a partner": partners = torch.arange(len(images), device=images.device).roll(1)
    # bug "the batch backward": partners = torch.arange(len(images), device=images.device).flip(0)
    # bug "partners put back": partners = torch.from_numpy(generator.integers(len(images), size=len(images)))
    # bug "one partner for all": partners = torch.full((len(images),), int(generator.integers(len(images))))
    # bug "partners by the global generator": partners = torch.randperm(len(images))
    one_hot = F.one_hot(labels, num_classes).to(images)
    # bug "targets of another dtype": one_hot = F.one_hot(labels, num_classes).to(images.device, torch.float64)
    # bug "targets made on the cpu": one_hot = torch.eye(num_classes, dtype=images.dtype)[labels]
    mixed = share * images + (1 - share) * images[partners]
    # bug "added and not blended": mixed = images + share * images[partners]
    # bug "blended in place": mixed = images.copy_(share * images + (1 - share) * images[partners])
    # bug "a share for each image": weight = share[..., None, None]
    # bug "a share for each image": mixed = weight * images + (1 - weight) * images[partners]
    targets = share * one_hot + (1 - share) * one_hot[partners]
    # bug "added and not blended": targets = one_hot + share * one_hot[partners]
    # bug "labels left hard": targets = one_hot
    # bug "partners drawn twice": partners = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    # bug "partners drawn twice": targets = share * one_hot + (1 - share) * one_hot[partners]
    # bug "shares swapped for labels": targets = (1 - share) * one_hot + share * one_hot[partners]
    return mixed, targets
    # bug "two labels and a share": return mixed, labels, labels[partners], share
