"""Known mistakes of lesson 01. Each starts from torch's ``F.unfold`` or from a plain reshape and goes wrong."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.exercise import InTraining
from vit_course.exercises.checks.patches import (
    patches_of,
    patchify,
    unpatchify,
)

TOKEN = "01_patchify, What a token is"
ORDER = "01_patchify, Two kinds of axes"
INVERSE = "01_patchify, And back again"


@patchify.misconception("What do 16 pixels that are neighbours in memory look like in the picture?", TOKEN)
def strips_not_squares(images: Tensor, patch_size: int) -> Tensor:
    """A plain reshape cuts pixels in memory order, so a token is a thin strip and not a square."""
    batch, _, height, width = images.shape
    return images.reshape(batch, height // patch_size * (width // patch_size), -1)


@patchify.misconception("Which grid axis varies fastest in your reshape?", ORDER)
def column_order(images: Tensor, patch_size: int) -> Tensor:
    """The tokens run down the columns of the grid, so the second token is the patch below the first."""
    columns_first = patches_of(images.transpose(2, 3), patch_size)
    inside = columns_first.unflatten(2, (images.shape[1], patch_size, patch_size))
    return inside.transpose(3, 4).flatten(2)


@patchify.misconception("After your permute, which axis stands last?", ORDER)
def channels_last_inside_a_token(images: Tensor, patch_size: int) -> Tensor:
    """Red, green and blue of one pixel stand side by side, where the whole red patch should come first."""
    return patches_of(images, patch_size).unflatten(2, (images.shape[1], -1)).transpose(2, 3).flatten(2)


@patchify.misconception("Which of the two pixel axes of a patch comes first in your permute?", ORDER)
def pixel_rows_and_columns_swapped(images: Tensor, patch_size: int) -> Tensor:
    """Each patch lies on its side: its pixels are read column by column."""
    inside = patches_of(images, patch_size).unflatten(2, (images.shape[1], patch_size, patch_size))
    return inside.transpose(3, 4).flatten(2)


@patchify.misconception("Did height and width trade places before you cut?", ORDER)
def the_whole_image_transposed(images: Tensor, patch_size: int) -> Tensor:
    """Height and width are swapped everywhere: tokens run down the columns, and so do the pixels inside."""
    return patches_of(images.transpose(2, 3), patch_size)


@patchify.misconception("Which axis should a token lie along: the last one, or the one before?", TOKEN)
def tokens_on_the_last_axis(images: Tensor, patch_size: int) -> Tensor:
    """The tokens are right, but the last two axes are the wrong way round."""
    return patches_of(images, patch_size).transpose(1, 2)


@patchify.misconception("How many patches fit across, and how many down?", ORDER)
def grid_from_one_side(images: Tensor, patch_size: int) -> Tensor:
    """The number of patches down is used across too, which only square images forgive."""
    batch, channels, height, _ = images.shape
    side = height // patch_size
    return patches_of(images.reshape(batch, channels, side * patch_size, side * patch_size), patch_size)


@patchify.misconception("Is patch_size counted in pixels or in patches?", TOKEN)
def number_of_patches_for_patch_size(images: Tensor, patch_size: int) -> Tensor:
    """The image is cut into patch_size patches a side, where each patch should have patch_size pixels a side."""
    kernel = images.shape[2] // patch_size, images.shape[3] // patch_size
    return F.unfold(images.double(), kernel, stride=kernel).transpose(1, 2).to(images.dtype)


@patchify.misconception("How far apart do two neighbouring patches start?", TOKEN)
def overlapping_patches(images: Tensor, patch_size: int) -> Tensor:
    """The window moves by less than a patch, so patches overlap and there are too many of them."""
    step = max(patch_size // 2, 1)
    return F.unfold(images.double(), patch_size, stride=step).transpose(1, 2).to(images.dtype)


@patchify.misconception("What happens to the pixels that are left over at the edge?", TOKEN)
def remainder_dropped_in_silence(images: Tensor, patch_size: int) -> Tensor:
    """Where patch_size does not divide a side, the rest of the image vanishes without a word."""
    return patches_of(images, patch_size)


@patchify.misconception("Where could the number of channels come from?", TOKEN)
def three_channels_hard_coded(images: Tensor, patch_size: int) -> Tensor:
    """The number of channels is written into the code as 3."""
    batch, _, height, width = images.shape
    return patches_of(images.reshape(batch, 3, height, width), patch_size)


@patchify.misconception("Which dtype does your new tensor get, and which had the images?", TOKEN)
def float32_whatever_the_input(images: Tensor, patch_size: int) -> Tensor:
    """The tokens are filled into a new float32 tensor, whatever the dtype of the images."""
    return patches_of(images, patch_size).float()


@patchify.misconception("Is the tensor that you write into yours, or the caller's?", TOKEN)
def input_changed_in_place(images: Tensor, patch_size: int) -> Tensor:
    """The images are written to on the way, so the caller's picture is spoilt."""
    tokens = patches_of(images, patch_size)
    images.zero_()
    return tokens


@patchify.misconception("Which axis of the result still belongs to the batch?", ORDER)
def batch_and_tokens_mixed(images: Tensor, patch_size: int) -> Tensor:
    """The token axis is moved in front of the batch before the reshape, so images get each other's patches."""
    tokens = patches_of(images, patch_size)
    return tokens.transpose(0, 1).reshape(tokens.shape)


def _six_axes(images: Tensor, patch_size: int) -> Tensor:
    """(batch, channels, patch_size, rows, patch_size, columns), with height and width split the wrong way round."""
    batch, channels, height, width = images.shape
    for side in (height, width):
        if side % patch_size:
            raise ValueError(f"{side} is not divisible by {patch_size}")
    return images.reshape(batch, channels, patch_size, height // patch_size, patch_size, width // patch_size)


@patchify.misconception(
    "When you split an axis in two, which part tells neighbours apart: the first, or the last?", ORDER
)
def pixels_from_all_over_the_image(images: Tensor, patch_size: int) -> Tensor:
    """Height and width are split the wrong way round, so a token gathers pixels that lie far apart."""
    return _six_axes(images, patch_size).permute(0, 3, 5, 1, 2, 4).flatten(3).flatten(1, 2)


@patchify.misconception("How long is each of the six axes after your split, and which of them count patches?", ORDER)
def patch_size_counted_as_patches(images: Tensor, patch_size: int) -> Tensor:
    """Height and width are split into patch_size parts each, and the last reshape hides that by cutting them anew."""
    batch, channels, _, _ = images.shape
    return _six_axes(images, patch_size).permute(0, 2, 4, 1, 3, 5).reshape(batch, -1, channels * patch_size**2)


def on_the_cpu(tensor: Tensor) -> Tensor:
    """The same numbers in a new tensor, which nobody has told where to lie."""
    made = torch.zeros(tensor.shape, dtype=tensor.dtype)
    made[:] = tensor
    return made


@patchify.misconception("On which device does your new tensor lie, and on which the images?", TOKEN, InTraining.UNSEEN)
def tokens_made_on_the_cpu(images: Tensor, patch_size: int) -> Tensor:
    """The tokens are filled into a new tensor on the CPU, wherever the images are."""
    return on_the_cpu(patches_of(images, patch_size))


@patchify.misconception("Does the tensor that you give back still know the images?", TOKEN, InTraining.UNSEEN)
def pixels_cut_from_their_gradient(images: Tensor, patch_size: int) -> Tensor:
    """The pixels are copied as bare numbers, so no gradient finds its way back to the images."""
    return patches_of(images.detach(), patch_size)


@patchify.misconception("How many axes has a batch of one image?", TOKEN, InTraining.UNSEEN)
def batch_of_one_squeezed(images: Tensor, patch_size: int) -> Tensor:
    """Axes of length 1 are squeezed away, so a batch of one image is a batch no more."""
    return patches_of(images, patch_size).squeeze()


@unpatchify.misconception("Does a row of pixels stand in one patch, or in several?", INVERSE)
def patches_poured_in_memory_order(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """A plain reshape pours each patch into the next free pixels, so squares become strips."""
    height, width = image_size
    return patches.reshape(len(patches), -1, height, width)


@unpatchify.misconception("Is the second token the neighbour to the right, or the one below?", INVERSE)
def patches_placed_column_by_column(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """The patches are laid down the columns of the grid."""
    rows, columns = image_size[0] // patch_size, image_size[1] // patch_size
    reordered = patches.unflatten(1, (columns, rows)).transpose(1, 2).flatten(1, 2)
    return images_of(reordered, patch_size, image_size)


@unpatchify.misconception("In which order does a token hold channel, row and column?", INVERSE)
def channels_read_last(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """A token is read as row, column, channel, where it holds channel, row, column."""
    reordered = patches.unflatten(2, (patch_size**2, -1)).transpose(2, 3).flatten(2)
    return images_of(reordered, patch_size, image_size)


@unpatchify.misconception("Which of the two pixel axes comes first inside a token?", INVERSE)
def patches_laid_on_their_side(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """The pixels of each patch are read column by column."""
    inside = patches.unflatten(2, (-1, patch_size, patch_size)).transpose(3, 4).flatten(2)
    return images_of(inside, patch_size, image_size)


@unpatchify.misconception("What is first in image_size?", INVERSE)
def width_taken_for_height(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """image_size is read as (width, height)."""
    return images_of(patches, patch_size, (image_size[1], image_size[0]))


@unpatchify.misconception("How do you know the grid when the image is not square?", INVERSE)
def square_grid_assumed(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """The grid is taken to be square, with as many rows as columns."""
    side = int(patches.shape[1] ** 0.5)
    return images_of(patches, patch_size, (side * patch_size, patches.shape[1] // side * patch_size))


def _opened(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """(batch, rows, columns, channels, patch_size, patch_size)."""
    grid = image_size[0] // patch_size, image_size[1] // patch_size
    return patches.unflatten(2, (-1, patch_size, patch_size)).unflatten(1, grid)


@unpatchify.misconception("Which two axes make up the height, and do they stand side by side?", INVERSE)
def grid_apart_from_its_pixels(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """Rows and columns of the grid are joined first and those of the pixels last, so each patch becomes a strip."""
    return _opened(patches, patch_size, image_size).permute(0, 3, 1, 2, 4, 5).reshape(len(patches), -1, *image_size)


@unpatchify.misconception("Which permutation undoes a permutation?", INVERSE)
def permuted_as_in_patchify(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """The axes are permuted as patchify does it, where its inverse is needed."""
    return _opened(patches, patch_size, image_size).permute(0, 2, 4, 1, 3, 5).reshape(len(patches), -1, *image_size)


@unpatchify.misconception("How many pixels has a square of 3 x 3?", INVERSE)
def patch_size_doubled(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """A patch is taken to have patch_size * 2 pixels, which only a patch_size of 2 forgives."""
    channels = patches.shape[2] // (patch_size * 2)
    rows, columns = image_size[0] // patch_size, image_size[1] // patch_size
    patches.reshape(len(patches), rows, columns, channels, patch_size, patch_size)  # raises where that is wrong
    return images_of(patches, patch_size, image_size)


@unpatchify.misconception("Which dtype does your new tensor get, and which had the patches?", INVERSE)
def pixels_as_float32(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """The pixels are filled into a new float32 tensor, whatever the dtype of the patches."""
    return images_of(patches, patch_size, image_size).float()


@unpatchify.misconception("On which device does your new tensor lie, and on which the patches?", INVERSE)
def pixels_made_on_the_cpu(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """The pixels are filled into a new tensor on the CPU, wherever the patches are."""
    return on_the_cpu(images_of(patches, patch_size, image_size))


@unpatchify.misconception("Does the tensor that you give back still know the patches?", INVERSE)
def patches_cut_from_their_gradient(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """The patches are copied as bare numbers, so no gradient finds its way back to them."""
    return images_of(patches.detach(), patch_size, image_size)


@unpatchify.misconception("How many axes has a batch of one image?", INVERSE)
def single_image_squeezed(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """Axes of length 1 are squeezed away, so a batch of one image is a batch no more."""
    return images_of(patches, patch_size, image_size).squeeze()


def images_of(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """The oracle of unpatchify, by torch's ``F.fold``."""
    columns = patches.double().transpose(1, 2)
    return F.fold(columns, image_size, patch_size, stride=patch_size).to(patches.dtype)
