"""Right answers in other styles: what no check may refuse."""

import einops
import torch

from vit_course import attention as reference


def _refuse_indivisible_embed_dim(embed_dim, num_heads):
    if embed_dim % num_heads != 0:
        raise ValueError(f"embed_dim={embed_dim} cannot be cut in num_heads={num_heads} equal parts")


def split_by_chunks(x, num_heads):
    _refuse_indivisible_embed_dim(x.shape[-1], num_heads)
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


def merge_by_cat(x):
    return torch.cat([x[:, head] for head in range(x.shape[1])], dim=-1)


def split_by_einops(x, num_heads):
    _refuse_indivisible_embed_dim(x.shape[-1], num_heads)
    return einops.rearrange(x, "b n (h d) -> b h n d", h=num_heads)


def merge_by_einops(x):
    return einops.rearrange(x, "b h n d -> b n (h d)")


def split_by_unflatten(x, num_heads):
    _refuse_indivisible_embed_dim(x.shape[-1], num_heads)
    return x.unflatten(-1, (num_heads, -1)).permute(0, 2, 1, 3).contiguous()


def merge_by_view(x):
    batch, num_heads, tokens, head_dim = x.shape
    return x.transpose(1, 2).contiguous().view(batch, tokens, num_heads * head_dim)


def split_by_loops(x, num_heads):
    _refuse_indivisible_embed_dim(x.shape[-1], num_heads)
    head_dim = x.shape[-1] // num_heads
    heads = x.new_empty(len(x), num_heads, x.shape[1], head_dim)
    for head in range(num_heads):
        heads[:, head] = x[:, :, head * head_dim : (head + 1) * head_dim]
    return heads


RIGHT = {
    "split_heads": [
        (reference.split_heads, reference.merge_heads),
        (split_by_chunks, merge_by_cat),
        (split_by_einops, merge_by_einops),
        (split_by_unflatten, merge_by_view),
        (split_by_loops, merge_by_cat),
    ]
}
