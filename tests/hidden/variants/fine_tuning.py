"""Right variants of lesson 09: another head, features, a linear probe, two learning rates."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from vit_course.fine_tuning import extract_features, fine_tuning_groups, linear_probe, replace_head


def by_loading_the_old_weights(model, num_classes):
    other = copy.deepcopy(model)
    in_features = other.head.weight.shape[1]
    other.head = nn.Linear(in_features, num_classes).to(model.head.weight)
    other.head.reset_parameters()
    return other


def with_the_head_set_aside(model, num_classes):
    old = model.head
    model.head = nn.Identity()
    try:
        other = copy.deepcopy(model)
    finally:
        model.head = old
    other.head = nn.Linear(old.in_features, num_classes, dtype=old.weight.dtype, device=old.weight.device)
    return other


def by_an_identity_for_the_head(model, loader, device):
    modes = [(part, part.training) for part in model.modules()]
    head, model.head = model.head, nn.Identity()
    model.eval()
    features, labels = [], []
    try:
        with torch.inference_mode():
            for images, some in loader:
                features.append(model(images.to(device)).to("cpu"))
                labels.append(some.to("cpu"))
    finally:
        model.head = head
        for part, mode in modes:
            part.training = mode
    return torch.cat(features).clone(), torch.cat(labels)


def by_a_forward_hook(model, loader, device):
    asleep = [part for part in model.modules() if not part.training]
    awake = [part for part in model.modules() if part.training]
    kept, labels = {}, []
    with model.head.register_forward_hook(lambda head, given, result: kept.update({len(kept): given[0].detach()})):
        try:
            with torch.no_grad():
                model.eval()
                for images, some in loader:
                    model(images.to(device))
                    labels += some.tolist()
        finally:
            for part in awake:
                part.training = True
            for part in asleep:
                part.training = False
    return [torch.cat([kept[number].cpu() for number in sorted(kept)]), torch.tensor(labels)]


def on_the_norm(model, loader, device):
    states = {name: part.training for name, part in model.named_modules()}
    model.eval()
    rows, labels = [], []

    def hear(norm, given, result):
        rows.append(result[:, 0].detach().cpu())

    handle = model.norm.register_forward_hook(hear)
    try:
        for images, some in loader:
            with torch.no_grad():
                model(images.to(device))
            labels.append(some.cpu())
    finally:
        handle.remove()
        for name, part in model.named_modules():
            part.training = states[name]
    return torch.vstack(rows), torch.hstack(labels)


def by_newton_like_steps_in_float64(features, labels, num_classes, weight_decay=1e-3):
    dim = features.shape[1]
    x = features.detach().double()
    center, scale = x.mean(0), x.std(0) + 1e-6
    standard = (x - center) / scale
    weight = x.new_zeros(num_classes, dim, requires_grad=True)
    bias = x.new_zeros(num_classes, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=400, history_size=30, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(standard @ weight.T + bias, labels)
        loss = loss + weight_decay / 2 * ((weight / scale) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    layer = nn.Linear(dim, num_classes, device=x.device)
    with torch.no_grad():
        layer.weight.copy_(weight / scale)
        layer.bias.copy_(bias - (weight / scale) @ center)
    return layer.to(features.dtype)


def by_lbfgs_called_often(features, labels, num_classes, weight_decay=1e-3):
    torch.manual_seed(0)
    probe = nn.Linear(features.shape[-1], num_classes).to(features)
    optimizer = torch.optim.LBFGS(probe.parameters(), lr=1, max_iter=40, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad(set_to_none=True)
        log_probabilities = F.log_softmax(probe(features), dim=1)
        loss = F.nll_loss(log_probabilities, labels) + 0.5 * weight_decay * probe.weight.pow(2).sum()
        loss.backward()
        return loss

    for _ in range(12):
        optimizer.step(closure)
    return probe


def by_names(model, backbone_lr, head_lr):
    head, backbone = [], []
    for name, parameter in model.named_parameters():
        (head if name.startswith("head.") else backbone).append(parameter)
    return [{"params": backbone, "lr": backbone_lr}, {"params": head, "lr": head_lr}]


def by_comprehensions(model, backbone_lr, head_lr):
    names = {f"head.{name}" for name, _ in model.head.named_parameters()}
    return (
        {"lr": backbone_lr, "params": [each for name, each in model.named_parameters() if name not in names]},
        {"lr": head_lr, "params": tuple(model.head.parameters())},
    )


RIGHT = {
    "replace_head": [replace_head, by_loading_the_old_weights, with_the_head_set_aside],
    "extract_features": [extract_features, by_an_identity_for_the_head, by_a_forward_hook, on_the_norm],
    "linear_probe": [linear_probe, by_newton_like_steps_in_float64, by_lbfgs_called_often],
    "fine_tuning_groups": [fine_tuning_groups, by_names, by_comprehensions],
}
