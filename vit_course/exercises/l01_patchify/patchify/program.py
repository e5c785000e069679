"""Patches by two sliding windows, one down and one across."""

import torch


def patchify(images: torch.Tensor, patch_size: int) -> torch.Tensor:
    """(B, C, H, W) -> (B, N, C * P * P), patches in raster order."""
    B, C, H, W = images.shape
    P = patch_size
    if H % P or W % P:
        # bug "remainder dropped in silence":
        raise ValueError(f"an image of {H} x {W} cannot be cut into patches of {P} x {P}")
        # bug "remainder dropped in silence":
    patches = images.unfold(2, P, P).unfold(3, P, P)  # (B, C, H // P, W // P, P, P)
    # bug "overlapping patches": patches = images.unfold(2, P, max(P // 2, 1)).unfold(3, P, max(P // 2, 1))
    # bug "number of patches for patch size": patches = images.unfold(2, H // P, H // P).unfold(3, W // P, W // P)
    # bug "grid from one side": patches = images.reshape(B, C, H // P * P, H // P * P).unfold(2, P, P).unfold(3, P, P)
    # bug "width before height": patches = images.reshape(B, C, W // P, P, H // P, P).transpose(3, 4)
    # bug "three channels hard coded": patches = images.reshape(B, 3, H, W).unfold(2, P, P).unfold(3, P, P)
    # bug "pixels from all over the image": patches = images.reshape(B, C, P, H // P, P, W // P)
    # bug "patch size counted as patches": patches = images.reshape(B, C, P, H // P, P, W // P)
    # bug "pixels cut from their gradient": patches = images.detach().unfold(2, P, P).unfold(3, P, P)
    patches = patches.permute(0, 2, 3, 1, 4, 5)
    # bug "column order": patches = patches.permute(0, 3, 2, 1, 4, 5)
    # bug "channels last inside a token": patches = patches.permute(0, 2, 3, 4, 5, 1)
    # bug "pixel rows and columns swapped": patches = patches.permute(0, 2, 3, 1, 5, 4)
    # bug "the whole image transposed": patches = patches.permute(0, 3, 2, 1, 5, 4)
    # bug "windows left behind the channels":
    # bug "batch and tokens mixed": patches = patches.permute(2, 3, 0, 1, 4, 5)
    # bug "pixels from all over the image": patches = patches.permute(0, 3, 5, 1, 2, 4)
    # bug "patch size counted as patches": patches = patches.permute(0, 2, 4, 1, 3, 5)
    return patches.reshape(B, -1, C * P * P)
    # bug "strips not squares": return images.reshape(B, -1, C * P * P)
    # bug "unfolded and reshaped": return torch.nn.functional.unfold(images, P, stride=P).reshape(B, -1, C * P * P)
    # bug "tokens on the last axis": return patches.reshape(B, -1, C * P * P).transpose(1, 2)
    # bug "number of patches for patch size": return patches.flatten(3).flatten(1, 2)
    # bug "float32 whatever the input": return patches.reshape(B, -1, C * P * P).float()
    # bug "batch of one squeezed": return patches.reshape(B, -1, C * P * P).squeeze()
    # bug "input changed in place": tokens = patches.reshape(B, -1, C * P * P).clone()
    # bug "input changed in place": images.zero_()
    # bug "input changed in place": return tokens
    # bug "tokens made on the cpu": tokens = torch.zeros(B, H // P * (W // P), C * P * P, dtype=images.dtype)
    # bug "tokens made on the cpu": tokens[:] = patches.reshape(B, -1, C * P * P)
    # bug "tokens made on the cpu": return tokens
