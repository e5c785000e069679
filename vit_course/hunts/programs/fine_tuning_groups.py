"""Two learning rates in one optimizer."""


def suspect_groups(model, backbone_lr, head_lr):
    """Two groups for an optimizer of torch: the backbone, then the head."""
    backbone, head = [], []
    for name, parameter in model.named_parameters():
        # bug "frozen parameters left out": for name, parameter in model.named_parameters():
        # bug "frozen parameters left out":     if not parameter.requires_grad:
        # bug "frozen parameters left out":         continue
        in_head = name.startswith("head.")
        # bug "every name with head in it": in_head = "head" in name
        (head if in_head else backbone).append(parameter)
        # bug "the backbone frozen": (head if in_head else backbone).append(parameter.requires_grad_(in_head))
        # bug "copies of the parameters": (head if in_head else backbone).append(parameter.detach().clone())
        # bug "class token and positions forgotten": if "." in name:
        # bug "class token and positions forgotten":     (head if in_head else backbone).append(parameter)
        # bug "the head in both groups": backbone.append(parameter)
        # bug "the head in both groups": if in_head:
        # bug "the head in both groups":     head.append(parameter)
    groups = [{"params": backbone, "lr": backbone_lr}, {"params": head, "lr": head_lr}]
    # bug "rates swapped": groups = [{"params": backbone, "lr": head_lr}, {"params": head, "lr": backbone_lr}]
    # bug "one rate for all": groups = [{"params": backbone, "lr": backbone_lr}, {"params": head, "lr": backbone_lr}]
    return groups
    # bug "the head first": return groups[::-1]
    # bug "generators for lists": return [{**group, "params": iter(group["params"])} for group in groups]
