"""The class token in front, as most repositories write it."""

import torch


def suspect_add_class_token(tokens, class_token, positions):
    """Prepend the [CLS] token and add the position embeddings."""
    B, N = tokens.shape[:2]
    if positions.shape[1] != N + 1:
        raise ValueError(f"{positions.shape[1]} position embeddings for 1 + {N} tokens")
    cls_tokens = class_token.expand(B, -1, -1)
    # bug "class token not expanded": cls_tokens = class_token
    # bug "a class token of zeros": cls_tokens = torch.zeros_like(tokens[:, :1])
    # bug "class token cut from its gradient": cls_tokens = class_token.data.expand(B, -1, -1)
    x = torch.cat((cls_tokens, tokens), dim=1)
    # bug "class token last": x = torch.cat((tokens, cls_tokens), dim=1)
    # bug "positions before the class token": x = torch.cat((cls_tokens, tokens + positions[:, 1:]), dim=1)
    x = x + positions
    # bug "positions before the class token":
    # bug "positions forgotten":
    # bug "one position for all": x = x + positions[:, :1]
    # bug "positions multiplied": x = x * positions
    return x
