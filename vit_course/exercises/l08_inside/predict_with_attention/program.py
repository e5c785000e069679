"""Hooks as they are used to look into a model that was not built to be asked."""

from typing import Any

import torch


def predict_with_attention(model: Any, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Class probabilities, and the attention map of the class token in the last block."""
    inputs: dict[str, torch.Tensor] = {}
    # bug "parameters frozen": inputs = {}
    # bug "parameters frozen": model.requires_grad_(False)
    attention = model.blocks[-1].attention
    # bug "first blocks attention": attention = model.blocks[0].attention
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    # bug "asked in training mode":
    handle = attention.register_forward_pre_hook(lambda module, args: inputs.update(x=args[0]))
    try:
        # bug "not undone after an error": if attention:
        with torch.no_grad():
            # bug "gradient kept": with torch.enable_grad():
            # bug "gradients off for good": torch.set_grad_enabled(False)
            # bug "gradients off for good": with torch.no_grad():
            logits = model(image.unsqueeze(0))
            # bug "image taken to the cpu": logits = model(image.cpu().unsqueeze(0))
            _, attn = attention(inputs["x"], return_weights=True)
    finally:
        # bug "not undone after an error": if attention:
        handle.remove()
        # bug "hook left behind":
        for module, mode in modes:
            module.training = mode
            # bug "left in evaluation mode": pass
            # bug "always put into training mode": module.training = True
            # bug "one mode for all modules": module.training = modes[0][1]
    attn = attn[0].mean(dim=0)
    # bug "first head only": attn = attn[0, 0]
    # bug "strongest head only": attn = attn[0].max(dim=0).values
    attn_map = attn[0, 1:]
    # bug "column in place of the row": attn_map = attn[1:, 0]
    # bug "class token on the map": attn_map = attn[0, :-1]
    # bug "mean over all queries": attn_map = attn.mean(dim=0)[1:]
    attn_map = attn_map / attn_map.sum()
    # bug "share of the class token lost":
    # bug "divided by the largest": attn_map = attn_map / attn_map.max()
    # bug "softmax of the map": attn_map = attn_map.softmax(dim=0)
    patch_size = model.patch_embedding.patch_size
    rows, columns = image.shape[1] // patch_size, image.shape[2] // patch_size
    # bug "rows and columns swapped": columns, rows = image.shape[1] // patch_size, image.shape[2] // patch_size
    attn_map = attn_map.reshape(rows, columns)
    # bug "map column by column": attn_map = attn_map.reshape(columns, rows).T
    probabilities = logits.softmax(dim=-1).squeeze(0)
    # bug "softmax over the batch": probabilities = logits.softmax(dim=0).squeeze(0)
    # bug "softmax forgotten": probabilities = logits.squeeze(0)
    return probabilities, attn_map
    # bug "map before probabilities": return attn_map, probabilities
    # bug "batch axis left": return probabilities[None], attn_map[None]
