"""Right answers in other styles: what no check may refuse."""

import torch
import torch.nn.functional as F
from torch import nn

from vit_course import patches as reference
from vit_course.exercises.l01_patchify.patchify.variants import patchify_by_unfold_twice


class EmbeddingWithHelpers(nn.Module):
    """Extra attributes and helper methods are nobody's business."""

    def __init__(self, in_channels, patch_size, embed_dim):
        super().__init__()
        self.size = patch_size
        self.note = "a helper"
        self.projection = nn.Linear(in_channels * patch_size * patch_size, embed_dim)

    def cut_patches(self, images):
        return patchify_by_unfold_twice(images, self.size)

    def forward(self, images):
        return self.projection(self.cut_patches(images))


class EmbeddingByConvolution(nn.Module):
    """A Linear's parameters, used as a convolution."""

    def __init__(self, in_channels, patch_size, embed_dim):
        super().__init__()
        self.shape = (embed_dim, in_channels, patch_size, patch_size)
        self.projection = nn.Linear(in_channels * patch_size**2, embed_dim)

    def forward(self, images):
        kernels = self.projection.weight.view(self.shape)
        return F.conv2d(images, kernels, self.projection.bias, stride=self.shape[-1]).flatten(2).mT


class EmbeddingImageByImage(EmbeddingWithHelpers):
    """A loop over the batch."""

    def forward(self, images):
        return torch.stack([self.projection(patches) for patches in self.cut_patches(images)])


RIGHT = {
    "PatchEmbedding": [reference.PatchEmbedding, EmbeddingWithHelpers, EmbeddingByConvolution, EmbeddingImageByImage]
}
