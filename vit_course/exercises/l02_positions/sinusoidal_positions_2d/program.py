"""The table of a grid, with the angles of all patches made at once, in float64 until the end."""

import torch


def sinusoidal_positions_2d(grid_size: tuple[int, int], embed_dim: int) -> torch.Tensor:
    """(rows * columns, embed_dim), the row of each patch in the first half and its column in the second."""
    if embed_dim % 4:
        # bug "refused for its half": if embed_dim // 2 % 2:
        raise ValueError(f"embed_dim {embed_dim} is not divisible by 4")
        # bug "refused for its half": raise ValueError(f"embed_dim {embed_dim // 2} is odd")
    rows, columns = grid_size
    # bug "columns taken for rows": columns, rows = grid_size
    # bug "square grid assumed": rows, columns = grid_size[0], grid_size[0]
    patch = torch.arange(rows * columns)
    row = patch // columns
    # bug "patches column by column": row = patch % rows
    # bug "rows counted like columns": row = patch % rows
    # bug "patches counted like words": row = patch
    column = patch % columns
    # bug "patches column by column": column = patch // rows
    # bug "columns counted like rows": column = patch // rows
    length = embed_dim // 2
    # bug "row and column added": length = embed_dim
    # bug "patches counted like words": length = embed_dim
    hands = torch.arange(length // 2, dtype=torch.float64)
    speeds = 10_000.0 ** (-2 * hands / length)
    # bug "half of a longer table": speeds = 10_000.0 ** (-2 * hands / embed_dim)
    angles = torch.stack([torch.outer(row, speeds), torch.outer(column, speeds)])
    codes = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(2)
    # bug "sines first cosines last": codes = torch.cat([angles.sin(), angles.cos()], dim=-1)
    table = torch.cat([codes[0], codes[1]], dim=-1)
    # bug "column in the first half": table = torch.cat([codes[1], codes[0]], dim=-1)
    # bug "row and column added": table = codes[0] + codes[1]
    # bug "row and column interleaved": table = torch.stack([codes[0], codes[1]], dim=-1).flatten(1)
    # bug "patches counted like words": table = codes[0]
    return table.float()
    # bug "table in float64": return table
