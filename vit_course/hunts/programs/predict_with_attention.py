"""Hooks as they are used to look into a model that was not built to be asked."""

import torch


def suspect_predict(model, image):
    """Class probabilities, and the attention map of the class token in the last block."""
    inputs = {}
    attention = model.blocks[-1].attention
    # bug "first blocks attention": attention = model.blocks[0].attention
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    # bug "asked in training mode":
    handle = attention.register_forward_pre_hook(lambda module, args: inputs.update(x=args[0]))
    try:
        with torch.no_grad():
            logits = model(image.unsqueeze(0))
            _, attn = attention(inputs["x"], return_weights=True)
    finally:
        handle.remove()
        # bug "hook left behind":
        for module, mode in modes:
            module.training = mode
            # bug "left in evaluation mode": pass
            # bug "always put into training mode": module.training = True
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
    probabilities = logits.softmax(dim=-1).squeeze(0)
    # bug "softmax over the batch": probabilities = logits.softmax(dim=0).squeeze(0)
    # bug "softmax forgotten": probabilities = logits.squeeze(0)
    return probabilities, attn_map.reshape(rows, columns)
    # bug "map column by column": return probabilities, attn_map.reshape(columns, rows).T
