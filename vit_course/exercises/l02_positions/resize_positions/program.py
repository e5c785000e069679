"""Position embeddings for another image size, as DeiT and timm resize them."""

import torch
import torch.nn.functional as F


def resize_positions(positions: torch.Tensor, old_grid: tuple[int, int], new_grid: tuple[int, int]) -> torch.Tensor:
    """Interpolate position embeddings, to fine-tune at another resolution."""
    rows, columns = old_grid
    # bug "old rows and columns swapped": columns, rows = old_grid
    # bug "square grid assumed": rows = columns = int((positions.shape[1] - 1) ** 0.5)
    cls_pos, patch_pos = positions[:, :1], positions[:, 1:]
    # bug "zeros for the class token": cls_pos, patch_pos = torch.zeros_like(positions[:, :1]), positions[:, 1:]
    # bug "class token taken for a patch": cls_pos, patch_pos = positions[:, :0], positions
    # bug "positions cut from their gradient": cls_pos, patch_pos = positions[:, :1].detach(), positions[:, 1:].detach()
    D = positions.shape[2]
    if old_grid[0] * old_grid[1] != positions.shape[1] - 1:
        # bug "rows never counted": if D < 0:
        raise ValueError(f"{positions.shape[1]} position embeddings for 1 + {old_grid[0]} * {old_grid[1]} tokens")
    patch_pos = patch_pos.reshape(1, rows, columns, D).permute(0, 3, 1, 2)
    # bug "as many patches taken for the same grid": patch_pos = patch_pos.reshape(1, rows, columns, D).permute(0, 3, 1, 2)
    # bug "as many patches taken for the same grid": if old_grid[0] * old_grid[1] == new_grid[0] * new_grid[1]:
    # bug "as many patches taken for the same grid":     return positions
    # bug "copied without gradient at the same grid": patch_pos = patch_pos.reshape(1, rows, columns, D).permute(0, 3, 1, 2)
    # bug "copied without gradient at the same grid": if old_grid == new_grid:
    # bug "copied without gradient at the same grid":     return positions.detach().clone()
    # bug "reshaped into a picture": patch_pos = patch_pos.reshape(1, D, rows, columns)
    # bug "reshaped both ways": patch_pos = patch_pos.reshape(1, D, rows, columns)
    # bug "dimensions left last": patch_pos = patch_pos.reshape(1, rows, columns, D)
    # bug "stretched as a line": patch_pos = patch_pos.transpose(1, 2)
    patch_pos = F.interpolate(patch_pos, size=new_grid, mode="bicubic", align_corners=False)
    # bug "bilinear for bicubic": patch_pos = F.interpolate(patch_pos, size=new_grid, mode="bilinear")
    # bug "nearest neighbor": patch_pos = F.interpolate(patch_pos, size=new_grid)
    # bug "corners aligned": patch_pos = F.interpolate(patch_pos, size=new_grid, mode="bicubic", align_corners=True)
    # bug "smoothed before shrinking": patch_pos = F.interpolate(patch_pos, new_grid, mode="bicubic", antialias=True)
    # bug "grid sampled row first": patch_pos = F.interpolate(patch_pos, size=new_grid[::-1], mode="bicubic").mT
    # bug "new rows and columns swapped": patch_pos = F.interpolate(patch_pos, size=new_grid[::-1], mode="bicubic")
    # bug "stretched as a line": patch_pos = F.interpolate(patch_pos, new_grid[0] * new_grid[1], mode="linear")[..., None]
    # bug "scale factor with an offset": scale = (new_grid[0] + 0.1) / rows, (new_grid[1] + 0.1) / columns
    # bug "scale factor with an offset": patch_pos = F.interpolate(patch_pos, scale_factor=scale, mode="bicubic")
    # bug "scale factor for the size": scale = new_grid[0] / rows, new_grid[1] / columns
    # bug "scale factor for the size": patch_pos = F.interpolate(patch_pos, scale_factor=scale, mode="bicubic")
    patch_pos = patch_pos.permute(0, 2, 3, 1).reshape(1, -1, D)
    # bug "reshaped into a table": patch_pos = patch_pos.reshape(1, -1, D)
    # bug "reshaped both ways": patch_pos = patch_pos.reshape(1, -1, D)
    # bug "dimensions left last": patch_pos = patch_pos.reshape(1, -1, D)
    # bug "new grid read column by column": patch_pos = patch_pos.permute(0, 3, 2, 1).reshape(1, -1, D)
    return torch.cat((cls_pos, patch_pos), dim=1)
    # bug "class token put back last": return torch.cat((patch_pos, cls_pos), dim=1)
    # bug "class token lost": return patch_pos
    # bug "positions as float32": return torch.cat((cls_pos, patch_pos), dim=1).float()
    # bug "table made on the cpu": table = torch.zeros(1, 1 + patch_pos.shape[1], D, dtype=positions.dtype)
    # bug "table made on the cpu": table[:] = torch.cat((cls_pos, patch_pos), dim=1)
    # bug "table made on the cpu": return table
