"""Right answers in other styles: what no check may refuse."""

import einops
import numpy as np
import torch
import torch.nn.functional as F
from torchvision.transforms.v2.functional import normalize


def _refuse_wrong_number_of_means(images, mean):
    if len(mean) != images.shape[1]:
        raise ValueError(f"the images have {images.shape[1]} channels, but there are {len(mean)} means")


def normalize_images(images, mean, std):
    channels = images.shape[1]
    mean, std = (torch.as_tensor(each, dtype=images.dtype, device=images.device) for each in (mean, std))
    if len(mean) != channels:
        raise ValueError(f"images have {channels} channels but mean has {len(mean)} values")
    return (images - mean.reshape(-1, 1, 1)) / std.reshape(-1, 1, 1)


def with_float32_statistics(images, mean, std):
    _refuse_wrong_number_of_means(images, mean)
    mean, std = (torch.as_tensor(each, device=images.device) for each in (mean, std))
    return ((images - mean[:, None, None]) / std[:, None, None]).to(images.dtype)


def by_loops(images, mean, std):
    _refuse_wrong_number_of_means(images, mean)
    result = torch.zeros_like(images)
    for channel in range(images.shape[1]):
        result[:, channel] = (images[:, channel] - mean[channel]) / std[channel]
    return result


def by_stacking(images, mean, std):
    _refuse_wrong_number_of_means(images, mean)
    return torch.stack([(c - m) / s for c, m, s in zip(images.unbind(1), mean, std, strict=True)], dim=1)


def by_channels_last(images, mean, std):
    _refuse_wrong_number_of_means(images, mean)
    mean, std = (torch.as_tensor(each, device=images.device) for each in (mean, std))
    return ((images.movedim(1, -1) - mean) / std).movedim(-1, 1).type_as(images)


def by_einops(images, mean, std):
    _refuse_wrong_number_of_means(images, mean)
    mean, std = (torch.as_tensor(each).to(images) for each in (mean, std))
    mean, std = (einops.rearrange(each, "c -> 1 c 1 1") for each in (mean, std))
    return (images - mean) / std


def by_batch_norm(images, mean, std):
    _refuse_wrong_number_of_means(images, mean)
    mean, std = (torch.as_tensor(each, dtype=images.dtype, device=images.device) for each in (mean, std))
    return F.batch_norm(images, mean, std**2, eps=1e-30)  # torch 2.11 refuses 0


def by_torchvision(images, mean, std):
    _refuse_wrong_number_of_means(images, mean)
    mean, std = (torch.as_tensor(each).tolist() for each in (mean, std))
    return normalize(images, mean, std)


def by_numpy(images, mean, std):
    _refuse_wrong_number_of_means(images, mean)
    pixels = images.numpy(force=True)
    mean, std = (np.asarray(each, dtype=pixels.dtype)[:, None, None] for each in (mean, std))
    return torch.from_numpy((pixels - mean) / std).to(images.device)


def by_one_multiply_and_one_add(images, mean, std):
    _refuse_wrong_number_of_means(images, mean)
    mean, std = (torch.as_tensor(each, dtype=images.dtype, device=images.device) for each in (mean, std))
    return torch.addcmul((-mean / std).view(-1, 1, 1), images, (1 / std).view(-1, 1, 1))


RIGHT = {
    "normalize_images": [
        normalize_images,
        with_float32_statistics,
        by_loops,
        by_stacking,
        by_channels_last,
        by_einops,
        by_batch_norm,
        by_torchvision,
        by_numpy,
        by_one_multiply_and_one_add,
    ]
}
