"""Weights of torchvision's ViT, looked up by the names that our parameters have there."""

import re  # noqa: F401  # bugs use it

import torch
from torch import nn

THEIR_NAMES = {
    "patch_embedding.projection.": "conv_proj.",
    "positions": "encoder.pos_embedding",
    "blocks.": "encoder.layers.encoder_layer_",
    "norm1.": "ln_1.",
    # bug "norms swapped": "norm1.": "ln_2.",
    "norm2.": "ln_2.",
    # bug "norms swapped": "norm2.": "ln_1.",
    "attention.qkv.": "self_attention.in_proj_",
    "attention.projection.": "self_attention.out_proj.",
    "mlp.fc1.": "mlp.0.",
    "mlp.fc2.": "mlp.3.",
    "norm.": "encoder.ln.",
    "head.": "heads.head.",
}


def load_torchvision(model: nn.Module, state_dict: dict[str, torch.Tensor]) -> nn.Module:
    """Fill a model with the weights of torchvision's."""
    source = dict(state_dict)
    # bug "state dict renamed in place": source = state_dict
    new: dict[str, torch.Tensor] = {}
    for name, parameter in model.named_parameters():
        theirs = name
        for our_part, their_part in THEIR_NAMES.items():
            theirs = theirs.replace(our_part, their_part)
        if theirs not in source:
            raise ValueError(f"{theirs} is missing")
            # bug "error of torch passed on": raise RuntimeError(f"{theirs} is missing")
            # bug "error without a name": raise ValueError("the weights do not fit")
            # bug "what does not fit is skipped": continue
        tensor = source.pop(theirs)
        if tensor.numel() != parameter.numel():
            raise ValueError(f"{theirs} has the shape {tuple(tensor.shape)}, and {name} {tuple(parameter.shape)}")
            # bug "error of torch passed on": raise RuntimeError(f"{theirs} has the shape {tuple(tensor.shape)}")
            # bug "error without a name": raise ValueError("the weights do not fit")
            # bug "what does not fit is skipped": continue
        rows = tensor.flatten(1) if tensor.dim() == 4 else tensor
        # bug "kernels unrolled channels last": rows = tensor.movedim(1, -1).flatten(1) if tensor.dim() == 4 else tensor
        # bug "kernels on their side": rows = tensor.mT.flatten(1) if tensor.dim() == 4 else tensor
        new[name] = rows
        # bug "keys before queries": if "qkv" in name:
        # bug "keys before queries":     query, key, value = rows.chunk(3)
        # bug "keys before queries":     rows = torch.cat((key, query, value))
        # bug "keys before queries": new[name] = rows
        # bug "rows sorted by head": if "qkv" in name:
        # bug "rows sorted by head":     rows = rows.unflatten(0, (3, 2, -1)).transpose(0, 1).flatten(0, 2)
        # bug "rows sorted by head": new[name] = rows
    left_over = sorted(source)
    # bug "head left out": left_over = sorted(source)
    # bug "head left out": new |= {name: each for name, each in model.named_parameters() if name.startswith("head.")}
    if left_over:
        raise ValueError(f"no place for {', '.join(left_over)}")
        # bug "error of torch passed on": raise RuntimeError(f"no place for {', '.join(left_over)}")
        # bug "error without a name": raise ValueError("the weights do not fit")
        # bug "what does not fit is skipped": pass
        # bug "left over tensors unnoticed": pass
    with torch.no_grad():
        # bug "class row of the positions dropped": own = model.get_parameter("positions").detach()
        # bug "class row of the positions dropped": new["positions"] = torch.cat((own[:, :1], new["positions"][:, 1:]), 1)
        # bug "class row of the positions dropped": with torch.no_grad():
        for name, parameter in model.named_parameters():
            # bug "what does not fit is skipped": for name, parameter in model.named_parameters():
            # bug "what does not fit is skipped":     if name not in new:
            # bug "what does not fit is skipped":         continue
            # bug "class token left out": for name, parameter in model.named_parameters():
            # bug "class token left out":     if name == "class_token":
            # bug "class token left out":         continue
            parameter.copy_(new[name])
            # bug "block 1 mistaken for 10 and 11": parameter.copy_(new[re.sub(r"^blocks\.1[01]\.", "blocks.1.", name)])
            # bug "blocks sorted as words": words = sorted(map(str, range(len(model.blocks))))
            # bug "blocks sorted as words": other = re.sub(r"(?<=blocks\.)\d+", lambda found: words[int(found[0])], name)
            # bug "blocks sorted as words": parameter.copy_(new[other])
            # bug "weights shared not copied": parameter.data = new[name].view(parameter.shape)
            # bug "state dict renamed in place": parameter.copy_(new[name])
            # bug "state dict renamed in place": state_dict[name] = new[name]
    return model
    # bug "the list of keys returned": return model.load_state_dict(new)
    # bug "nothing returned":
