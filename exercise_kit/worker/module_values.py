"""Modules as values: a Linear or Conv2d by its settings and weights, any other by its named parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from .real_types import find_class_attribute, is_a, read_attributes

_PART = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+")
_LARGEST = 1 << 20
_DEEPEST, _MOST_MODULES = 16, 4096
_CONVOLUTION = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode")
_LINEAR = ("in_features", "out_features")


class NamedParameters(nn.Module):
    """A model that holds parameters under given names, in Linears and LayerNorms, and computes nothing.

    Args:
        parameters: dotted name → tensor; a matrix called weight makes a Linear, a vector a LayerNorm.
        kind: the class of the module that they were read from.

    Raises:
        ValueError: a name that no parameter can have, or two names that exclude each other.
    """

    def __init__(self, parameters: Mapping[str, Tensor], kind: str = "") -> None:
        super().__init__()
        self.kind = kind
        self._modules_made = 0
        if _PART.fullmatch(kind) and not kind.isdigit():  # torch's own words name the class
            self.__class__ = type(kind, (NamedParameters,), {})
        for name, tensor in parameters.items():
            *path, last = name.split(".", _DEEPEST)
            parent = self._find_or_make_parent(path, tensor if last == "weight" else None)
            if _PART.fullmatch(last) is None or (hasattr(parent, last) and last not in parent._parameters):
                raise ValueError(f"no parameter can be called {name}")
            parent.register_parameter(last, _make_parameter(tensor))

    def _find_or_make_parent(self, path: list[str], weight: Tensor | None) -> nn.Module:
        parent: nn.Module = self
        for place, part in enumerate(path):
            if part not in parent._modules:
                if _PART.fullmatch(part) is None or hasattr(parent, part):
                    raise ValueError(f"no module can be called {part}")
                self._modules_made += 1
                if self._modules_made > _MOST_MODULES:
                    raise ValueError("a model of too many modules")
                below = path[place + 1] if place + 1 < len(path) else ""
                parent.add_module(part, nn.ModuleList() if below.isdigit() else _make_empty_layer(below, weight))
            parent = parent.get_submodule(part)
        return parent

    def __repr__(self) -> str:
        return "the model"


def _make_empty_layer(below: str, weight: Tensor | None) -> nn.Module:
    if below or weight is None or weight.ndim not in (1, 2) or weight.numel() == 0:
        return nn.Module()
    if weight.ndim == 1:
        return nn.LayerNorm(weight.shape[0], bias=False, device="meta")
    return nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")


def describe_layer(layer: nn.Module, weights: Mapping[str, Tensor]) -> dict[str, Any] | None:
    """Return what makes a Linear or Conv2d, with its kind under "layer"; None for any other module, or an odd one.

    Args:
        layer: the module.
        weights: its parameters by name.
    """
    names: tuple[str, ...]
    if _has_same_methods(layer, nn.Linear, "forward"):
        kind, names = "Linear", _LINEAR
    elif _has_same_methods(layer, nn.Conv2d, "forward", "_conv_forward"):
        kind, names = "Conv2d", _CONVOLUTION
    else:
        return None
    settings = {"layer": kind, **{name: read_attributes(layer).get(name) for name in names}}
    try:
        build_layer(settings, {name: each.new_empty(0, device="meta") for name, each in weights.items()})
    except (ValueError, TypeError, RuntimeError):
        return None
    return settings


def _has_same_methods(layer: nn.Module, kind: type[nn.Module], *methods: str) -> bool:
    """Say whether it is of that class, or of a subclass with the same methods."""
    return is_a(layer, kind) and all(
        find_class_attribute(type(layer), name) is find_class_attribute(kind, name) for name in methods
    )


def build_layer(settings: Mapping[str, Any], weights: Mapping[str, Tensor]) -> nn.Module:
    """The layer that ``describe_layer`` described, holding ``weights``; ValueError where that can be none."""
    kind, settings = settings["layer"], {name: each for name, each in settings.items() if name != "layer"}
    if kind == "Linear" and settings.keys() == set(_LINEAR) and all(map(_is_size, settings.values())):
        layer: nn.Module = nn.Linear(**settings, bias=False, device="meta")
    elif kind == "Conv2d" and settings.keys() == set(_CONVOLUTION) and _are_valid_convolution_settings(settings):
        pairs: dict[str, Any] = {
            name: tuple(each) if isinstance(each, list) else each for name, each in settings.items()
        }
        layer = nn.Conv2d(**pairs, bias=False, device="meta")
    else:
        raise ValueError(f"no layer is made by {settings}")
    if not {"weight"} <= weights.keys() <= {"weight", "bias"}:
        raise ValueError("a layer has a weight and perhaps a bias")
    for name, tensor in weights.items():
        layer.register_parameter(name, _make_parameter(tensor))
    return layer


def _are_valid_convolution_settings(settings: Mapping[str, Any]) -> bool:
    sizes = [settings["in_channels"], settings["out_channels"], settings["groups"]]
    pairs = [settings["kernel_size"], settings["stride"], settings["dilation"]]
    padding = settings["padding"]
    return (
        all(map(_is_size, sizes))
        and all(_is_pair(pair) and all(map(_is_size, pair)) for pair in pairs)
        and (padding in ("valid", "same") if isinstance(padding, str) else _is_pair(padding) and min(padding) >= 0)
        and settings["padding_mode"] in ("zeros", "reflect", "replicate", "circular")
    )


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 < value <= _LARGEST


def _is_pair(value: Any) -> bool:
    return type(value) in (tuple, list) and len(value) == 2 and all(type(each) is int for each in value)


def _make_parameter(tensor: Tensor) -> nn.Parameter:
    return nn.Parameter(tensor.detach(), requires_grad=tensor.requires_grad)


def list_named_parameters(module: nn.Module) -> dict[str, Tensor]:
    """Every parameter by its dotted name, a shared one under each of its names; no method of the module's is run.

    Raises:
        RecursionError: a module is a part of itself.
    """
    fields = read_attributes(module)
    found = {name: each for name, each in dict.items(fields["_parameters"]) if each is not None}
    for part, below in dict.items(fields["_modules"]):
        if below is not None:
            found |= {f"{part}.{name}": each for name, each in list_named_parameters(below).items()}
    return found


def can_hold_parameters(parameters: Mapping[str, Tensor]) -> bool:
    """Say whether :class:`NamedParameters` can hold these."""
    try:
        NamedParameters(parameters)
    except (ValueError, KeyError, TypeError, RuntimeError):
        return False
    return True
