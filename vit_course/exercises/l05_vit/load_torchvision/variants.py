"""Right answers in other styles: what no check may refuse."""

import re

import torch
from torch import nn

from vit_course import pretrained


def load_by_regular_expressions(model, state_dict):
    rules = [
        (r"^conv_proj\.", "patch_embedding.projection."),
        (r"^encoder\.pos_embedding$", "positions"),
        (r"^encoder\.layers\.encoder_layer_(\d+)\.", r"blocks.\1."),
        (r"\.ln_([12])\.", r".norm\1."),
        (r"\.self_attention\.in_proj_", ".attention.qkv."),
        (r"\.self_attention\.out_proj\.", ".attention.projection."),
        (r"\.mlp\.0\.", ".mlp.fc1."),
        (r"\.mlp\.3\.", ".mlp.fc2."),
        (r"^encoder\.ln\.", "norm."),
        (r"^heads\.head\.", "head."),
    ]
    renamed = {}
    for name, tensor in state_dict.items():
        for pattern, ours in rules:
            name = re.sub(pattern, ours, name)
        renamed[name] = tensor.flatten(1) if tensor.ndim == 4 else tensor
    try:
        model.load_state_dict(renamed)
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    return model


def load_by_copying_parts(model, state_dict):
    left = dict(state_dict)

    def copy_into_parameter(parameter, name):
        if name not in left:
            raise ValueError(f"{name} is missing")
        tensor = left.pop(name)
        if tensor.numel() != parameter.numel():
            raise ValueError(f"{name} is {tuple(tensor.shape)}, wanted {tuple(parameter.shape)}")
        with torch.no_grad():
            parameter.copy_(tensor.reshape(parameter.shape))

    def copy_weight_and_bias(layer, name):
        copy_into_parameter(layer.weight, f"{name}.weight")
        copy_into_parameter(layer.bias, f"{name}.bias")

    copy_into_parameter(model.class_token, "class_token")
    copy_into_parameter(model.positions, "encoder.pos_embedding")
    copy_weight_and_bias(model.patch_embedding.projection, "conv_proj")
    for number, block in enumerate(model.blocks):
        theirs = f"encoder.layers.encoder_layer_{number}"
        copy_weight_and_bias(block.norm1, f"{theirs}.ln_1")
        copy_into_parameter(block.attention.qkv.weight, f"{theirs}.self_attention.in_proj_weight")
        copy_into_parameter(block.attention.qkv.bias, f"{theirs}.self_attention.in_proj_bias")
        copy_weight_and_bias(block.attention.projection, f"{theirs}.self_attention.out_proj")
        copy_weight_and_bias(block.norm2, f"{theirs}.ln_2")
        copy_weight_and_bias(block.mlp.fc1, f"{theirs}.mlp.0")
        copy_weight_and_bias(block.mlp.fc2, f"{theirs}.mlp.3")
    copy_weight_and_bias(model.norm, "encoder.ln")
    copy_weight_and_bias(model.head, "heads.head")
    if left:
        raise ValueError(f"left over: {', '.join(left)}")
    return model


def load_by_assignment(model, state_dict):
    """New parameters in place of the old ones, names translated from ours to theirs."""
    swaps = {
        "blocks.": "encoder.layers.encoder_layer_",
        "norm1": "ln_1",
        "norm2": "ln_2",
        "attention.qkv.": "self_attention.in_proj_",
        "attention.projection": "self_attention.out_proj",
        "mlp.fc1": "mlp.0",
        "mlp.fc2": "mlp.3",
        "patch_embedding.projection": "conv_proj",
        "positions": "encoder.pos_embedding",
    }
    pairs = {}
    for name, _ in model.named_parameters():
        theirs = re.sub(r"^head", "heads.head", re.sub(r"^norm\.", "encoder.ln.", name))
        for old, new in swaps.items():
            theirs = theirs.replace(old, new)
        pairs[name] = theirs
    for theirs in set(pairs.values()) ^ set(state_dict):
        raise ValueError(f"{theirs} has no partner")
    for name, theirs in pairs.items():
        home, _, last = name.rpartition(".")
        old, new = model.get_parameter(name), state_dict[theirs].detach().clone()
        if old.numel() != new.numel():
            raise ValueError(f"{theirs} does not fit")
        setattr(model.get_submodule(home), last, nn.Parameter(new.reshape(old.shape)))
    return model


RIGHT = {
    "load_torchvision": [
        pretrained.load_torchvision,
        load_by_regular_expressions,
        load_by_copying_parts,
        load_by_assignment,
    ]
}
