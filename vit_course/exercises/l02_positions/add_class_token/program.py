"""The class token in front, as most repositories write it."""

import torch


def add_class_token(tokens: torch.Tensor, class_token: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Prepend the [CLS] token and add the position embeddings."""
    B, N = tokens.shape[:2]
    if positions.shape[1] != N + 1:
        # bug "positions never counted": if positions.shape[1] < 1:
        # bug "surplus positions cut off": if positions.shape[1] < N + 1:
        raise ValueError(f"{positions.shape[1]} position embeddings for 1 + {N} tokens")
    cls_tokens = class_token.expand(B, -1, -1)
    # bug "class token not expanded": cls_tokens = class_token
    # bug "a class token of zeros": cls_tokens = torch.zeros_like(tokens[:, :1])
    # bug "class token cut from its gradient": cls_tokens = class_token.data.expand(B, -1, -1)
    # bug "class token for the first image only": cls_tokens = torch.zeros_like(tokens[:, :1])
    # bug "class token for the first image only": cls_tokens[:1] = class_token
    x = torch.cat((cls_tokens, tokens), dim=1)
    # bug "class token last": x = torch.cat((tokens, cls_tokens), dim=1)
    # bug "positions before the class token": x = torch.cat((cls_tokens, tokens + positions[:, 1:]), dim=1)
    # bug "positions one row off": x = torch.cat((cls_tokens, tokens + positions[:, :-1]), dim=1)
    # bug "class token added to the patches": x = tokens + class_token
    # bug "class token joined to the batch": x = torch.cat((class_token, tokens), dim=0)
    # bug "positions added too early": x = tokens
    # bug "tokens cut from their gradient": x = torch.cat((cls_tokens, tokens.detach()), dim=1)
    x = x + positions
    # bug "positions before the class token":
    # bug "positions one row off":
    # bug "class token added to the patches":
    # bug "class token joined to the batch":
    # bug "positions forgotten":
    # bug "one position for all": x = x + positions[:, :1]
    # bug "positions multiplied": x = x * positions
    # bug "positions concatenated": x = torch.cat((x, positions.expand(B, -1, -1)), dim=2)
    # bug "positions cut from their gradient": x = x + positions.detach()
    # bug "surplus positions cut off": x = x + positions[:, : N + 1]
    # bug "tokens changed in place": x = x + positions
    # bug "tokens changed in place": tokens.data += positions.data[:, 1:]
    return x
    # bug "tokens as float32": return x.float()
    # bug "batch of one squeezed": return x.squeeze()
    # bug "tensor made on the cpu": out = torch.zeros(x.shape, dtype=x.dtype)
    # bug "tensor made on the cpu": out[:] = x
    # bug "tensor made on the cpu": return out
