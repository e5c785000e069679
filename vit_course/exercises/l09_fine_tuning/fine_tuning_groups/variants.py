"""Right answers in other styles: what no check may refuse."""

from vit_course.fine_tuning import fine_tuning_groups


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


RIGHT = {"fine_tuning_groups": [fine_tuning_groups, by_names, by_comprehensions]}
