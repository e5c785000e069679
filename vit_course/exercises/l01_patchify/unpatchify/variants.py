"""Right answers in other styles: what no check may refuse."""

import einops
import torch.nn.functional as F

from vit_course import patches as reference


def unpatchify_by_loops(patches, patch_size, image_size):
    height, width = image_size
    channels = patches.shape[2] // patch_size**2
    images = patches.new_empty(len(patches), channels, height, width)
    columns = width // patch_size
    for token in range(patches.shape[1]):
        row, column = token // columns * patch_size, token % columns * patch_size
        square = patches[:, token].reshape(-1, channels, patch_size, patch_size)
        images[:, :, row : row + patch_size, column : column + patch_size] = square
    return images


def unpatchify_by_einops(patches, patch_size, image_size):
    rows = image_size[0] // patch_size
    return einops.rearrange(
        patches, "b (h w) (c p q) -> b c (h p) (w q)", h=rows, p=patch_size, q=patch_size
    ).contiguous()


def unpatchify_by_fold(patches, patch_size, image_size):
    columns = patches.double().transpose(1, 2)
    return F.fold(columns, image_size, patch_size, stride=patch_size).to(patches.dtype)


RIGHT = {"unpatchify": [reference.unpatchify, unpatchify_by_loops, unpatchify_by_einops, unpatchify_by_fold]}
