"""Right answers in other styles: what no check may refuse."""

import torch
import torch.nn.functional as F
from torch import nn

from vit_course.fine_tuning import linear_probe


def by_newton_like_steps_in_float64(features, labels, num_classes, weight_decay=1e-3):
    dim = features.shape[1]
    x = features.detach().double()
    center, scale = x.mean(0), x.std(0) + 1e-6
    standard = (x - center) / scale
    weight = x.new_zeros(num_classes, dim, requires_grad=True)
    bias = x.new_zeros(num_classes, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=400, history_size=30, line_search_fn="strong_wolfe")

    def compute_loss_and_gradients():
        optimizer.zero_grad()
        loss = F.cross_entropy(standard @ weight.T + bias, labels)
        loss = loss + weight_decay / 2 * ((weight / scale) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(compute_loss_and_gradients)
    layer = nn.Linear(dim, num_classes, device=x.device)
    with torch.no_grad():
        layer.weight.copy_(weight / scale)
        layer.bias.copy_(bias - (weight / scale) @ center)
    return layer.to(features.dtype)


def by_lbfgs_called_often(features, labels, num_classes, weight_decay=1e-3):
    torch.manual_seed(0)
    probe = nn.Linear(features.shape[-1], num_classes).to(features)
    optimizer = torch.optim.LBFGS(probe.parameters(), lr=1, max_iter=40, line_search_fn="strong_wolfe")

    def compute_loss_and_gradients():
        optimizer.zero_grad(set_to_none=True)
        log_probabilities = F.log_softmax(probe(features), dim=1)
        loss = F.nll_loss(log_probabilities, labels) + 0.5 * weight_decay * probe.weight.pow(2).sum()
        loss.backward()
        return loss

    for _ in range(12):
        optimizer.step(compute_loss_and_gradients)
    return probe


RIGHT = {"linear_probe": [linear_probe, by_newton_like_steps_in_float64, by_lbfgs_called_often]}
