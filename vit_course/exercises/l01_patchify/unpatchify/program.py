"""Patches back into images: each token opened, grid and pixels brought together, everything joined."""

import torch


def unpatchify(patches: torch.Tensor, patch_size: int, image_size: tuple[int, int]) -> torch.Tensor:
    """(B, N, C * P * P) -> (B, C, H, W)."""
    B, N = patches.shape[:2]
    H, W = image_size
    # bug "width taken for height": W, H = image_size
    P = patch_size
    rows, columns = H // P, N // (H // P)
    # bug "square grid assumed": rows, columns = int(N**0.5), N // int(N**0.5)
    # bug "square grid assumed": H, W = rows * P, columns * P
    x = patches.reshape(B, rows, columns, -1, P, P)
    # bug "patches overwritten": x = patches.reshape(B, rows, columns, -1, P, P).clone()
    # bug "patches overwritten": patches.zero_()
    # bug "patches cut from their gradient": x = patches.detach().reshape(B, rows, columns, -1, P, P)
    # bug "patch size doubled": x = patches.reshape(B, rows, columns, patches.shape[2] // (P * 2), P, P)
    # bug "channels read last": x = patches.reshape(B, rows, columns, P, P, -1).permute(0, 1, 2, 5, 3, 4)
    # bug "patches placed column by column": x = patches.reshape(B, columns, rows, -1, P, P).transpose(1, 2)
    x = x.permute(0, 3, 1, 4, 2, 5)
    # bug "patches laid on their side": x = x.permute(0, 3, 1, 5, 2, 4)
    # bug "grid apart from its pixels": x = x.permute(0, 3, 1, 2, 4, 5)
    # bug "permuted as in patchify": x = x.permute(0, 2, 4, 1, 3, 5)
    return x.reshape(B, -1, H, W)
    # bug "patches poured in memory order": return patches.reshape(B, -1, H, W)
    # bug "pixels as float32": return x.reshape(B, -1, H, W).float()
    # bug "single image squeezed": return x.reshape(B, -1, H, W).squeeze()
    # bug "pixels made on the cpu": images = torch.zeros(B, patches.shape[2] // P**2, H, W, dtype=patches.dtype)
    # bug "pixels made on the cpu": images[:] = x.reshape(B, -1, H, W)
    # bug "pixels made on the cpu": return images
