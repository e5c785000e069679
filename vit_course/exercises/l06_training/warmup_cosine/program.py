"""The schedule as training scripts have it: a ramp, then half a cosine."""

import math

import torch  # noqa: F401  # bugs use it


def warmup_cosine(step: int, warmup_steps: int, total_steps: int) -> float:
    """The factor of the learning rate at a step: a linear warm-up, then a cosine decay to zero."""
    if step < warmup_steps:
        # bug "the warm up overshoots": if step <= warmup_steps:
        # bug "no warm up": if step < 0:
        # bug "warm up times cosine": if step < 0:
        # bug "divided by no warm up": if (step + 1) / warmup_steps <= 1:
        factor = float(step + 1) / warmup_steps
        # bug "the first update wasted": factor = step / warmup_steps
        # bug "the warm up never arrives": factor = (step + 1) / (warmup_steps + 1)
        # bug "whole numbers in the warm up": factor = (step + 1) // warmup_steps
    else:
        start, decay_steps = warmup_steps, total_steps - warmup_steps
        # bug "no warm up": start, decay_steps = 0, total_steps
        # bug "warm up times cosine": start, decay_steps = 0, total_steps
        # bug "a cosine over all steps": start, decay_steps = warmup_steps, total_steps
        # bug "a cosine that began with the warm up": start, decay_steps = 0, total_steps
        # bug "the last update wasted": start, decay_steps = warmup_steps, total_steps - warmup_steps - 1
        # bug "the warm up taken off twice": start, decay_steps = warmup_steps, total_steps - 2 * warmup_steps
        progress = (step - start) / max(decay_steps, 1)
        # bug "whole numbers in the descent": progress = (step - start) // max(decay_steps, 1)
        # bug "the descent a step ahead": progress = min(step - start + 1, decay_steps) / max(decay_steps, 1)
        # bug "the last update wasted": progress = min(step - start, decay_steps) / max(decay_steps, 1)
        # bug "divided by no descent": progress = (step - start) / decay_steps
        factor = 0.5 + 0.5 * math.cos(math.pi * progress)
        # bug "a quarter of a wave": factor = math.cos(0.5 * math.pi * progress)
        # bug "a whole wave": factor = 0.5 + 0.5 * math.cos(2 * math.pi * progress)
        # bug "a cosine below zero": factor = math.cos(math.pi * progress)
        # bug "a cosine upside down": factor = 0.5 - 0.5 * math.cos(math.pi * progress)
        # bug "a line down": factor = 1 - progress
        # bug "degrees": factor = 0.5 + 0.5 * math.cos(180 * progress)
        # bug "warm up times cosine": ramp = min((step + 1) / max(warmup_steps, 1), 1)
        # bug "warm up times cosine": factor = ramp * (0.5 + 0.5 * math.cos(math.pi * progress))
    return factor
    # bug "a tensor for a number": return torch.tensor(factor)
