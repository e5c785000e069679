"""Right answers to lesson 08, written in many ways."""

from contextlib import contextmanager
from functools import reduce
from itertools import product
from math import dist

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


def distance_by_cdist(weights, grid_size, patch_size):
    rows, columns = grid_size
    tokens = weights.size(-1)
    if tokens == rows * columns + 1:
        weights = weights[:, :, 1:, 1:]
        weights = weights / weights.sum(-1, keepdim=True)
    elif tokens != rows * columns:
        raise ValueError(f"{tokens} tokens, but a grid of {rows} x {columns}")
    y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    centers = patch_size * (torch.stack([y, x], -1).flatten(0, 1).to(weights) + 0.5)
    return torch.einsum("bhqk,qk->h", weights, torch.cdist(centers, centers)) / weights.shape[0] / weights.shape[2]


def distance_by_loops(weights, grid_size, patch_size):
    rows, columns = grid_size
    extra = weights.shape[-1] - rows * columns
    if extra not in (0, 1):
        raise ValueError(f"a grid of {rows} rows and {columns} columns does not have {weights.shape[-1]} tokens")
    places = list(product(range(rows), range(columns)))
    ruler = torch.tensor([[patch_size * dist(here, there) for there in places] for here in places]).to(weights)
    of_heads = []
    for head in range(weights.shape[1]):
        shares = weights[:, head, extra:, extra:].clone()
        shares /= shares.sum(2, keepdim=True)
        of_heads.append((shares * ruler).sum(2).mean())
    return torch.stack(of_heads)


def distance_by_broadcasting(weights, grid_size, patch_size):
    rows, columns = grid_size
    patches = rows * columns
    if weights.shape[-1] not in (patches, patches + 1):
        raise ValueError(f"{weights.shape[-1]} is neither {rows} * {columns} nor one more")
    among = weights[..., -patches:, -patches:]
    number = torch.arange(patches, device=weights.device)
    row, column = number // columns, number % columns
    squares = (row[:, None] - row[None]) ** 2 + (column[:, None] - column[None]) ** 2
    far = squares.to(among.dtype).sqrt() * patch_size
    return ((among * far).sum(-1) / among.sum(-1)).mean(-1).mean(0)


@contextmanager
def evaluating(model):
    """The model in evaluation mode, and each module in its own mode again, whatever happens."""
    training = {name for name, module in model.named_modules() if module.training}
    try:
        yield model.eval()
    finally:
        for name, module in model.named_modules():
            module.training = name in training


def predict_by_walking(model, image):
    with evaluating(model), torch.no_grad():
        x = model.patch_embedding(image.unsqueeze(0))
        x = torch.cat([model.class_token, x], dim=1) + model.positions
        for block in model.blocks[:-1]:
            x = block(x)
        last = model.blocks[-1]
        attended, weights = last.attention(last.norm1(x), return_weights=True)
        x = x + attended
        x = x + last.mlp(last.norm2(x))
        probabilities = torch.softmax(model.head(model.norm(x)[:, 0]), dim=-1).squeeze(0)
    row = weights[0, :, 0, 1:].mean(0)
    columns = image.shape[2] // model.patch_embedding.patch_size
    return probabilities, (row / row.sum()).reshape(-1, columns)


def predict_by_a_forward_hook(model, image):
    kept = {}

    def keep(module, inputs, output):
        kept["x"] = inputs[0]

    modes = [(module, module.training) for module in model.modules()]
    handle = model.blocks[-1].attention.register_forward_hook(keep)
    try:
        model.eval()
        with torch.inference_mode():
            logits = model(image[None])[0]
        handle.remove()
        with torch.no_grad():
            weights = model.blocks[-1].attention(kept["x"], return_weights=True)[1].clone()
    finally:
        handle.remove()
        for module, mode in modes:
            module.training = mode
    _, height, width = image.shape
    seen = weights.mean(1)[0, 0, 1:]
    columns = round((len(seen) * width / height) ** 0.5)
    return logits.softmax(-1).clone(), (seen / seen.sum()).view(len(seen) // columns, columns)


def predict_with_the_model_asked_twice(model, image):
    """The hook calls the attention itself, with a guard, and the shares come before the mean."""
    heard = []

    def listen(module, inputs):
        if not heard:
            heard.append(None)
            heard[0] = module(*inputs, return_weights=True)[1]

    with evaluating(model), torch.no_grad():
        handle = model.blocks[len(model.blocks) - 1].attention.register_forward_pre_hook(listen)
        with handle:  # which removes it at the end
            probabilities = model(torch.stack([image]))[0].softmax(0)
    size = model.patch_embedding.patch_size
    seen = heard[0][0, :, 0, 1:].sum(0)
    return probabilities, seen.reshape(image.shape[-2] // size, image.shape[-1] // size) / seen.sum()


RIGHT = {
    "attention_rollout": [
        reference.attention_rollout,
        rollout_in_the_paper_s_words,
        rollout_by_stack_and_einsum,
        rollout_by_a_chain,
        rollout_image_by_image,
    ],
    "mean_attention_distance": [
        reference.mean_attention_distance,
        distance_by_cdist,
        distance_by_loops,
        distance_by_broadcasting,
    ],
    "predict_with_attention": [
        reference.predict_with_attention,
        predict_by_walking,
        predict_by_a_forward_hook,
        predict_with_the_model_asked_twice,
    ],
}
