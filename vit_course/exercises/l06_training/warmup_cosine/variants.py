"""Right answers in other styles: what no check may refuse."""

import math

import numpy as np
import torch

from vit_course.training import warmup_cosine


def in_the_lesson(step, warmup_steps, total_steps):
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    if total_steps == warmup_steps:
        return 1.0
    progress = (step - warmup_steps) / (total_steps - warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * progress))


def by_a_squared_cosine(step, warmup_steps, total_steps):
    if warmup_steps and step < warmup_steps:
        return min(1, (step + 1) / warmup_steps)
    remaining = max(total_steps - warmup_steps, 1)
    return math.cos(math.pi / 2 * min((step - warmup_steps) / remaining, 1)) ** 2


def by_numpy(step, warmup_steps, total_steps):
    if step >= warmup_steps:
        share = np.divide(step - warmup_steps, max(1, total_steps - warmup_steps))
        return (1 + np.cos(np.pi * share)) / 2
    return np.linspace(1 / warmup_steps, 1, warmup_steps)[step]


def by_tensors(step, warmup_steps, total_steps):
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    progress = torch.tensor((step - warmup_steps) / max(1, total_steps - warmup_steps), dtype=torch.float64)
    return (0.5 * (1 + torch.cos(torch.pi * progress))).item()


def by_a_list(step, warmup_steps, total_steps):
    rising = [(number + 1) / warmup_steps for number in range(warmup_steps)]
    span = total_steps - warmup_steps
    falling = [(1 + math.cos(number / span * math.pi)) / 2 for number in range(span)]
    return [*rising, *falling, 0][step]


RIGHT = {"warmup_cosine": [warmup_cosine, in_the_lesson, by_a_squared_cosine, by_numpy, by_tensors, by_a_list]}
