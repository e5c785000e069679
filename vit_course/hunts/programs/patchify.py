"""Patches by two sliding windows, one down and one across."""


def suspect_patchify(images, patch_size):
    """(B, C, H, W) -> (B, N, C * P * P), patches in raster order."""
    B, C, H, W = images.shape
    P = patch_size
    if H % P or W % P:
        # bug "remainder dropped in silence":
        raise ValueError(f"an image of {H} x {W} cannot be cut into patches of {P} x {P}")
        # bug "remainder dropped in silence":
    patches = images.unfold(2, P, P).unfold(3, P, P)  # (B, C, H // P, W // P, P, P)
    # bug "overlapping patches": patches = images.unfold(2, P, P // 2).unfold(3, P, P // 2)
    patches = patches.permute(0, 2, 3, 1, 4, 5)
    # bug "channels last inside a token": patches = patches.permute(0, 2, 3, 4, 5, 1)
    # bug "pixel rows and columns swapped": patches = patches.permute(0, 2, 3, 1, 5, 4)
    # bug "the whole image transposed": patches = patches.permute(0, 3, 2, 1, 5, 4)
    # bug "batch and tokens mixed": patches = patches.permute(2, 3, 0, 1, 4, 5)
    return patches.reshape(B, -1, C * P * P)
    # bug "strips not squares": return images.reshape(B, -1, C * P * P)
    # bug "tokens on the last axis": return patches.reshape(B, -1, C * P * P).transpose(1, 2)
