"""The table column by column, as the Annotated Transformer fills it, in float64 until the end."""

import torch


def sinusoidal_positions(num_positions: int, embed_dim: int) -> torch.Tensor:
    """(num_positions, embed_dim), sines in the even columns and cosines in the odd ones."""
    if embed_dim % 2:
        # bug "odd length rounded up": if embed_dim < 0:
        # bug "odd length accepted": if embed_dim < 0:
        # bug "odd length left to torch": if embed_dim < 0:
        raise ValueError(f"embed_dim {embed_dim} is odd")
    half = embed_dim // 2
    # bug "odd length rounded up": half = (embed_dim + 1) // 2
    # bug "odd length accepted": half = (embed_dim + 1) // 2
    # bug "odd length left to torch": half = (embed_dim + 1) // 2
    hands = torch.arange(half, dtype=torch.float64)
    exponents = 2 * hands / embed_dim
    # bug "exponent half as large": exponents = hands / embed_dim
    # bug "exponent twice as large": exponents = 4 * hands / embed_dim
    # bug "exponent rounded to zero": exponents = 2 * hands // embed_dim
    # bug "exponent over half minus one": exponents = hands / max(half - 1, 1)
    cosine_exponents = exponents
    # bug "a frequency for every dimension": exponents, cosine_exponents = exponents, exponents + 1 / embed_dim
    # bug "column taken for hand": exponents, cosine_exponents = 2 * exponents, 2 * exponents + 2 / embed_dim
    positions = torch.arange(num_positions, dtype=torch.float64)[:, None]
    # bug "counted from 1": positions = torch.arange(1, num_positions + 1, dtype=torch.float64)[:, None]
    # bug "position missing from the angle": positions = torch.ones(num_positions, 1, dtype=torch.float64)
    base = torch.tensor(10_000.0, dtype=torch.float64)
    # bug "base e for 10000": base = torch.tensor(1.0, dtype=torch.float64).exp()
    # bug "multiplied where divided": base = torch.tensor(1 / 10_000, dtype=torch.float64)
    angles, cosine_angles = positions / base**exponents, positions / base**cosine_exponents
    sines, cosines = angles.sin(), cosine_angles.cos()
    # bug "sine and cosine swapped": sines, cosines = angles.cos(), cosine_angles.sin()
    # bug "sines only": sines, cosines = angles.sin(), cosine_angles.sin()
    table = torch.zeros(num_positions, embed_dim, dtype=torch.float64)
    # bug "odd length rounded up": table = torch.zeros(num_positions, 2 * half, dtype=torch.float64)
    table[:, 0::2] = sines
    # bug "halves concatenated": table[:, :half] = sines
    table[:, 1::2] = cosines
    # bug "halves concatenated": table[:, half:] = cosines
    # bug "odd length accepted": table[:, 1::2] = cosines[:, : embed_dim // 2]
    return table.float()
    # bug "table in float64": return table
    # bug "table on its side": return table.float().T
    # bug "a batch axis in front": return table.float()[None]
