"""Two learning rates in one optimizer."""

from typing import Any

from torch import nn


def fine_tuning_groups(model: nn.Module, backbone_lr: float, head_lr: float) -> list[dict[str, Any]]:
    """Two groups for an optimizer of torch: the backbone, then the head."""
    backbone: list[nn.Parameter] = []
    head: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        # bug "frozen parameters left out": for name, parameter in model.named_parameters():
        # bug "frozen parameters left out":     if not parameter.requires_grad:
        # bug "frozen parameters left out":         continue
        in_head = name.startswith("head.")
        # bug "every name with head in it": in_head = "head" in name
        # bug "names that begin with head": in_head = name.startswith("head")
        # bug "any part called head": in_head = "head" in name.split(".")
        # bug "weight and bias alone": in_head = name in ("head.weight", "head.bias")
        # bug "the last part of the model": in_head = parameter is list(model.parameters())[-1]
        # bug "the last two parameters": in_head = any(parameter is each for each in list(model.parameters())[-2:])
        (head if in_head else backbone).append(parameter)
        # bug "the backbone frozen": (head if in_head else backbone).append(parameter.requires_grad_(in_head))
        # bug "copies of the parameters": (head if in_head else backbone).append(parameter.detach().clone())
        # bug "class token and positions forgotten": if "." in name:
        # bug "class token and positions forgotten":     (head if in_head else backbone).append(parameter)
        # bug "the blocks alone": if in_head or name.startswith("blocks."):
        # bug "the blocks alone":     (head if in_head else backbone).append(parameter)
        # bug "the head in both groups": backbone.append(parameter)
        # bug "the head in both groups": if in_head:
        # bug "the head in both groups":     head.append(parameter)
    rates = backbone_lr, head_lr
    # bug "rates swapped": rates = head_lr, backbone_lr
    # bug "one rate for all": rates = backbone_lr, backbone_lr
    groups = [{"params": params, "lr": lr} for params, lr in zip((backbone, head), rates, strict=True)]
    # bug "the rate under another key": pairs = zip((backbone, head), rates, strict=True)
    # bug "the rate under another key": groups = [{"params": params, "learning_rate": lr} for params, lr in pairs]
    return groups
    # bug "the head taken out": model.head = nn.Identity()
    # bug "the head taken out": return groups
    # bug "the head first": return groups[::-1]
    # bug "generators for lists": return [{**group, "params": (each for each in group["params"])} for group in groups]
    # bug "one dict for both": return {"backbone": groups[0], "head": groups[1]}
