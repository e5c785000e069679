"""Right answers in other styles: what no check may refuse."""

from functools import reduce

import torch
import torch.nn.functional as F

from vit_course import interpret as reference


def rollout_in_the_paper_s_words(weights):
    if len(weights) == 0:
        raise ValueError("no layers")
    result = None
    for layer in weights:
        mean = layer.mean(1)
        step = 0.5 * mean + 0.5 * torch.eye(mean.shape[-1]).to(mean)
        step = step / step.sum(-1, keepdim=True)
        result = step if result is None else torch.bmm(step, result)
    return result


def rollout_by_stack_and_einsum(weights):
    if not weights:
        raise ValueError("attention_rollout needs at least one layer")
    means = torch.stack(list(weights)).mean(2)
    rollout = torch.eye(means.shape[-1]).to(means).expand_as(means[0])
    for mean in means:
        rollout = (torch.einsum("bij,bjk->bik", mean, rollout) + rollout) / 2
    return rollout


def rollout_by_a_chain(weights):
    if len(weights) == 0:
        raise ValueError("no layers")
    itself = torch.eye(weights[0].shape[-1], dtype=weights[0].dtype, device=weights[0].device)
    steps = [F.normalize(layer.mean(1) + itself, p=1.0, dim=-1) for layer in weights]
    return reduce(lambda below, step: step @ below, steps)


def rollout_image_by_image(weights):
    if len(weights) == 0:
        raise ValueError("no layers")
    batch, num_heads, tokens, _ = weights[0].shape
    tables = []
    for image in range(batch):
        table = torch.eye(tokens).to(weights[0])
        for layer in reversed(weights):
            step = sum(layer[image, head] for head in range(num_heads)) / num_heads
            step = step.clone()
            step.diagonal().add_(1)
            table = table @ (step / 2)
        tables.append(table)
    return torch.stack(tables)


RIGHT = {
    "attention_rollout": [
        reference.attention_rollout,
        rollout_in_the_paper_s_words,
        rollout_by_stack_and_einsum,
        rollout_by_a_chain,
        rollout_image_by_image,
    ]
}
