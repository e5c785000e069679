"""Right answers in other styles: what no check may refuse."""

import math

import numpy as np
import torch

from vit_course import positions as reference


def _refuse_indivisible_length(embed_dim, divisor):
    if embed_dim % divisor:
        raise ValueError(f"embed_dim must be divisible by {divisor}, got {embed_dim}")


def sinusoids_by_loops(num_positions, embed_dim):
    _refuse_indivisible_length(embed_dim, 2)
    table = torch.zeros(num_positions, embed_dim)
    for position in range(num_positions):
        for i in range(embed_dim // 2):
            angle = position / 10000 ** (2 * i / embed_dim)
            table[position, 2 * i] = math.sin(angle)
            table[position, 2 * i + 1] = math.cos(angle)
    return table


def sinusoids_by_exp_and_log(num_positions, embed_dim):
    _refuse_indivisible_length(embed_dim, 2)
    position = torch.arange(num_positions).unsqueeze(1)
    turn = torch.exp(torch.arange(0, embed_dim, 2) * (-math.log(10000.0) / embed_dim))
    table = torch.zeros(num_positions, embed_dim)
    table[:, 0::2] = torch.sin(position * turn)
    table[:, 1::2] = torch.cos(position * turn)
    return table


def sinusoids_by_numpy(num_positions, embed_dim):
    _refuse_indivisible_length(embed_dim, 2)
    dimensions = np.arange(embed_dim)
    angles = np.arange(num_positions)[:, None] / np.power(10000, 2 * (dimensions // 2) / embed_dim)
    angles[:, 0::2] = np.sin(angles[:, 0::2])
    angles[:, 1::2] = np.cos(angles[:, 1::2])
    return torch.from_numpy(angles).float()


def sinusoids_by_a_shifted_sine(num_positions, embed_dim):
    _refuse_indivisible_length(embed_dim, 2)
    dimension = torch.arange(embed_dim)
    angles = torch.arange(num_positions)[:, None] / 10000 ** ((dimension - dimension % 2) / embed_dim)
    return torch.sin(angles + dimension % 2 * math.pi / 2)


def sinusoids_by_where(num_positions, embed_dim):
    _refuse_indivisible_length(embed_dim, 2)
    dimension = torch.arange(embed_dim)
    angles = torch.arange(num_positions)[:, None] / 10000 ** (2 * (dimension // 2) / embed_dim)
    return torch.where(dimension % 2 == 0, angles.sin(), angles.cos())


RIGHT = {
    "sinusoidal_positions": [
        reference.sinusoidal_positions,
        sinusoids_by_loops,
        sinusoids_by_exp_and_log,
        sinusoids_by_numpy,
        sinusoids_by_a_shifted_sine,
        sinusoids_by_where,
    ]
}
