"""A classifier on frozen features, fitted by L-BFGS."""

import torch
import torch.nn.functional as F
from torch import nn


def linear_probe(
    features: torch.Tensor, labels: torch.Tensor, num_classes: int, weight_decay: float = 1e-3
) -> nn.Linear:
    """The linear layer with the lowest cross-entropy plus half the weight decay times its squared weights."""
    inputs = features
    # bug "always float32": inputs = features.float()
    # bug "standardized and forgotten": inputs = (features - features.mean(dim=0)) / features.std(dim=0)
    # bug "centered in place for the fit": features -= features.mean(dim=0)
    # bug "centered in place for the fit": inputs = features
    layer = nn.Linear(features.shape[1], num_classes, device=features.device, dtype=features.dtype)
    # bug "classes counted from the labels": found = int(labels.max()) + 1
    # bug "classes counted from the labels": layer = nn.Linear(features.shape[1], found).to(features)
    # bug "no bias": layer = nn.Linear(features.shape[1], num_classes, False, features.device, features.dtype)
    # bug "always float32": layer = nn.Linear(features.shape[1], num_classes, device=features.device)
    # bug "layer on the cpu": layer = nn.Linear(features.shape[1], num_classes, dtype=features.dtype)
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)
        # bug "never trained": pass
    optimizer: torch.optim.Optimizer
    optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=300, line_search_fn="strong_wolfe")
    # bug "three steps only": optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=3, line_search_fn="strong_wolfe")
    # bug "steps of one size": optimizer = torch.optim.SGD(layer.parameters(), lr=min(0.4, 1 / weight_decay))
    # bug "the decay of adamw": groups = [{"params": [layer.weight]}, {"params": [layer.bias], "weight_decay": 0.0}]
    # bug "the decay of adamw": optimizer = torch.optim.AdamW(groups, lr=0.05, weight_decay=weight_decay)

    def objective() -> float:
        optimizer.zero_grad()
        logits = layer(inputs)
        # bug "softmax before the loss": logits = layer(inputs).softmax(dim=1)
        loss = F.cross_entropy(logits, labels)
        # bug "a sum over the images": loss = F.cross_entropy(logits, labels, reduction="sum")
        # bug "least squares": loss = F.mse_loss(logits, F.one_hot(labels, num_classes).to(logits.dtype))
        penalty = layer.weight.square().sum()
        # bug "the norm and not its square": penalty = layer.weight.norm()
        # bug "the bias decayed too": penalty = layer.weight.square().sum() + layer.bias.square().sum()
        loss = loss + weight_decay / 2 * penalty
        # bug "no weight decay":
        # bug "the decay of adamw":
        # bug "decay without the half": loss = loss + weight_decay * penalty
        # bug "a decay written down": loss = loss + 1e-3 / 2 * penalty
        loss.backward()
        return loss.item()

    optimizer.step(objective)
    # bug "never trained":
    # bug "steps of one size": for _ in range(400):
    # bug "steps of one size":     optimizer.step(objective)
    # bug "the decay of adamw": for _ in range(300):
    # bug "the decay of adamw":     optimizer.step(objective)
    # bug "means of the classes": means = torch.stack([features[labels == each].mean(dim=0) for each in range(num_classes)])
    # bug "means of the classes": layer.weight.data, layer.bias.data = 2 * means, -means.square().sum(dim=1)
    return layer
    # bug "guesses for a layer": return layer(features).argmax(dim=1)
    # bug "centered in place": features -= features.mean(dim=0)
    # bug "centered in place": return layer
