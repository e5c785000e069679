"""Right answers in other styles: what no check may refuse."""

import copy

from torch import nn

from vit_course.fine_tuning import replace_head


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


RIGHT = {"replace_head": [replace_head, by_loading_the_old_weights, with_the_head_set_aside]}
