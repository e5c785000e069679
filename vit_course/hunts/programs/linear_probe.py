"""A classifier on frozen features, fitted by L-BFGS."""

import torch
import torch.nn.functional as F
from torch import nn


def suspect_probe(features, labels, num_classes, weight_decay=1e-3):
    """The linear layer with the lowest cross-entropy plus half the weight decay times its squared weights."""
    layer = nn.Linear(features.shape[1], num_classes, device=features.device, dtype=features.dtype)
    # bug "no bias": layer = nn.Linear(features.shape[1], num_classes, False, features.device, features.dtype)
    # bug "always float32": features = features.float()
    # bug "always float32": layer = nn.Linear(features.shape[1], num_classes, device=features.device)
    optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=300, line_search_fn="strong_wolfe")

    def objective():
        optimizer.zero_grad()
        logits = layer(features)
        # bug "softmax before the loss": logits = layer(features).softmax(dim=1)
        loss = F.cross_entropy(logits, labels)
        # bug "a sum over the images": loss = F.cross_entropy(logits, labels, reduction="sum")
        penalty = layer.weight.square().sum()
        # bug "the norm and not its square": penalty = layer.weight.norm()
        # bug "the bias decayed too": penalty = layer.weight.square().sum() + layer.bias.square().sum()
        loss = loss + weight_decay / 2 * penalty
        # bug "no weight decay":
        # bug "decay without the half": loss = loss + weight_decay * penalty
        # bug "a decay written down": loss = loss + 1e-3 / 2 * penalty
        loss.backward()
        return loss

    optimizer.step(objective)
    # bug "never trained": objective()
    return layer
    # bug "guesses for a layer": return layer(features).argmax(dim=1)
