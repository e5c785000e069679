"""Position embeddings for another image size, as DeiT and timm resize them."""

import torch
import torch.nn.functional as F


def suspect_resize_positions(positions, old_grid, new_grid):
    """Interpolate position embeddings, to fine-tune at another resolution."""
    rows, columns = old_grid
    # bug "old rows and columns swapped": columns, rows = old_grid
    cls_pos, patch_pos = positions[:, :1], positions[:, 1:]
    # bug "zeros for the class token": cls_pos, patch_pos = torch.zeros_like(positions[:, :1]), positions[:, 1:]
    N, D = patch_pos.shape[1:]
    if rows * columns != N:
        raise ValueError(f"{1 + N} position embeddings for 1 + {rows} * {columns} tokens")
    patch_pos = patch_pos.reshape(1, rows, columns, D).permute(0, 3, 1, 2)
    # bug "reshaped into a picture": patch_pos = patch_pos.reshape(1, D, rows, columns)
    patch_pos = F.interpolate(patch_pos, size=new_grid, mode="bicubic", align_corners=False)
    # bug "bilinear for bicubic": patch_pos = F.interpolate(patch_pos, size=new_grid, mode="bilinear")
    # bug "nearest neighbor": patch_pos = F.interpolate(patch_pos, size=new_grid)
    # bug "corners aligned": patch_pos = F.interpolate(patch_pos, size=new_grid, mode="bicubic", align_corners=True)
    # bug "smoothed before shrinking": patch_pos = F.interpolate(patch_pos, new_grid, mode="bicubic", antialias=True)
    # bug "new rows and columns swapped": patch_pos = F.interpolate(patch_pos, size=new_grid[::-1], mode="bicubic")
    patch_pos = patch_pos.permute(0, 2, 3, 1).reshape(1, -1, D)
    # bug "reshaped into a table": patch_pos = patch_pos.reshape(1, -1, D)
    # bug "new grid read column by column": patch_pos = patch_pos.permute(0, 3, 2, 1).reshape(1, -1, D)
    return torch.cat((cls_pos, patch_pos), dim=1)
    # bug "class token put back last": return torch.cat((patch_pos, cls_pos), dim=1)
    # bug "class token lost": return patch_pos
