"""Right answers in other styles: what no check may refuse."""

import einops
import torch
import torch.nn.functional as F

from vit_course import patches as reference


def _refuse_sizes_that_do_not_fit(images, patch_size):
    for side in images.shape[-2:]:
        if side % patch_size:
            raise ValueError(f"{side} pixels cannot be cut by patch_size {patch_size}")


def patchify_by_loops(images, patch_size):
    _refuse_sizes_that_do_not_fit(images, patch_size)
    batch, channels, height, width = images.shape
    tokens = images.new_zeros(batch, height // patch_size * (width // patch_size), channels * patch_size**2)
    for b in range(batch):
        token = 0
        for row in range(0, height, patch_size):
            for column in range(0, width, patch_size):
                patch = images[b, :, row : row + patch_size, column : column + patch_size]
                tokens[b, token] = patch.reshape(-1)
                token += 1
    return tokens


def patchify_by_unfold_twice(images, patch_size):
    _refuse_sizes_that_do_not_fit(images, patch_size)
    cut = images.unfold(2, patch_size, patch_size).unfold(3, patch_size, patch_size)
    return cut.permute(0, 2, 3, 1, 4, 5).flatten(1, 2).flatten(2)


def patchify_by_f_unfold(images, patch_size):
    _refuse_sizes_that_do_not_fit(images, patch_size)
    return F.unfold(images.double(), patch_size, stride=patch_size).transpose(1, 2).to(images.dtype)


def patchify_by_einops(images, patch_size):
    _refuse_sizes_that_do_not_fit(images, patch_size)
    return einops.rearrange(images, "b c (h p) (w q) -> b (h w) (c p q)", p=patch_size, q=patch_size)


def patchify_by_one_hot_convolution(images, patch_size):
    _refuse_sizes_that_do_not_fit(images, patch_size)
    channels = images.shape[1]
    length = channels * patch_size**2
    identity = torch.eye(length, dtype=torch.float64, device=images.device)
    kernels = identity.reshape(length, channels, patch_size, patch_size)
    tokens = F.conv2d(images.double(), kernels, stride=patch_size)
    return tokens.flatten(2).transpose(1, 2).to(images.dtype)


def patchify_by_splitting(images, patch_size):
    _refuse_sizes_that_do_not_fit(images, patch_size)
    strips = torch.stack(images.split(patch_size, dim=3), dim=1)
    squares = torch.stack(strips.split(patch_size, dim=3), dim=1)
    return squares.flatten(3).flatten(1, 2)


def patchify_by_places_in_memory(images, patch_size):
    _refuse_sizes_that_do_not_fit(images, patch_size)
    _, channels, height, width = images.shape
    places = torch.arange(channels * height * width, device=images.device).reshape(1, channels, height, width)
    rows = [part.flatten(1) for band in places.split(patch_size, 2) for part in band.split(patch_size, 3)]
    return images.flatten(1)[:, torch.cat(rows)]


_OTHERS = [
    patchify_by_loops,
    patchify_by_unfold_twice,
    patchify_by_f_unfold,
    patchify_by_einops,
    patchify_by_one_hot_convolution,
    patchify_by_splitting,
    patchify_by_places_in_memory,
]
RIGHT = {"patchify": [reference.patchify, *_OTHERS], "fix_patchify": _OTHERS}
