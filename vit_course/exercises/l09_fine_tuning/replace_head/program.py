"""A model for other classes, as recipes for fine-tuning make it."""

import copy
from typing import Any

from torch import nn


def replace_head(model: Any, num_classes: int) -> Any:
    """A copy of a model with a new head."""
    other = copy.deepcopy(model)
    # bug "the shared object changed": other = model
    # bug "a shallow copy": other = copy.copy(model)
    # bug "parameters shared": other = copy.deepcopy(model, {id(each): each for each in model.parameters()})
    # bug "the backbone frozen": other = copy.deepcopy(model).requires_grad_(False)
    # bug "everything thawed": other = copy.deepcopy(model).requires_grad_(True)
    # bug "the model put into evaluation": other = copy.deepcopy(model.eval())
    # bug "the backbone started anew": other = copy.deepcopy(model)
    # bug "the backbone started anew": for part in other.modules():
    # bug "the backbone started anew":     if isinstance(part, nn.Linear | nn.LayerNorm):
    # bug "the backbone started anew":         part.reset_parameters()
    old = other.head
    width, like = old.in_features, {"dtype": old.weight.dtype, "device": old.weight.device}
    # bug "always float32": width, like = old.in_features, {"device": old.weight.device}
    other.head = nn.Linear(width, num_classes, **like)
    # bug "no bias": other.head = nn.Linear(width, num_classes, bias=False, **like)
    # bug "under another name": other.new_head = nn.Linear(width, num_classes, **like)
    # bug "only the number changed": other.head.out_features = num_classes
    # bug "a head on the old head": other.head = nn.Sequential(old, nn.Linear(old.out_features, num_classes, **like))
    return other
    # bug "old rows kept": rows = min(num_classes, old.out_features)
    # bug "old rows kept": other.head.weight.data[:rows] = old.weight.data[:rows]
    # bug "old rows kept": return other
    # bug "a head of zeros": for parameter in other.head.parameters():
    # bug "a head of zeros":     nn.init.zeros_(parameter)
    # bug "a head of zeros": return other
    # bug "frozen as the old head": other.head.requires_grad_(old.weight.requires_grad)
    # bug "frozen as the old head": return other
    # bug "the head alone": return other.head
