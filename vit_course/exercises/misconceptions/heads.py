"""Known mistakes of lesson 03 in cutting tokens into heads and joining them again."""

from __future__ import annotations

import torch
from torch import Tensor

from vit_course.exercises.checks.heads import heads_of, merged, split_heads

HEADS = "03_attention, Heads are views"


def _split(x: Tensor, num_heads: int) -> Tensor:
    """A right split_heads, for the exercise's other half."""
    if x.shape[-1] % num_heads:
        raise ValueError(f"{x.shape[-1]} numbers cannot be shared by {num_heads} heads")
    return heads_of(x, num_heads)


@split_heads.misconception("Which number follows which in memory, and whose is it?", HEADS, after=(merged,))
def reshaped_where_transposed(x: Tensor, num_heads: int) -> Tensor:
    """One reshape makes the right shape, but it deals out whole tokens to the heads and not parts of each token."""
    batch, tokens, embed_dim = x.shape
    _split(x, num_heads)
    return x.reshape(batch, num_heads, tokens, embed_dim // num_heads)


@split_heads.misconception("When you cut embed_dim in two axes, which of them varies faster?", HEADS, after=(merged,))
def every_other_number_to_a_head(x: Tensor, num_heads: int) -> Tensor:
    """The numbers of a token are dealt out like cards, so a head gets every num_heads-th of them."""
    head_dim = _split(x, num_heads).shape[-1]
    return torch.stack([x[..., head::num_heads] for head in range(num_heads)], dim=1)[..., :head_dim]


@split_heads.misconception("Which axis should come right after the batch?", HEADS, after=(merged,))
def heads_left_behind_the_tokens(x: Tensor, num_heads: int) -> Tensor:
    """The result is left as (batch, tokens, num_heads, head_dim), so its last two axes are the heads of one token."""
    return torch.stack(_split(x, num_heads).unbind(1), dim=2)


@split_heads.misconception("Does num_heads count the heads, or the numbers in one head?", HEADS, after=(merged,))
def number_of_heads_for_head_dim(x: Tensor, num_heads: int) -> Tensor:
    """num_heads is taken for head_dim, so the two sizes trade places."""
    return _split(x, x.shape[-1] // num_heads if x.shape[-1] % num_heads == 0 else num_heads)


@split_heads.misconception("Which axis of the result still belongs to the image?", HEADS, after=(merged,))
def heads_before_the_batch(x: Tensor, num_heads: int) -> Tensor:
    """The heads are put in front of the batch and the shape is mended by a reshape, so images get mixed up."""
    split = _split(x, num_heads)
    return torch.cat(list(split.unbind(1))).reshape(split.shape)


@split_heads.misconception("What happens to the numbers that no head gets?", HEADS, after=(merged,))
def leftover_numbers_dropped(x: Tensor, num_heads: int) -> Tensor:
    """Where num_heads does not divide embed_dim, the last numbers of every token vanish without a word."""
    head_dim = x.shape[-1] // num_heads
    return heads_of(x[..., : num_heads * head_dim], num_heads)


@split_heads.misconception("Whose pieces lie next to each other in memory at that moment?", HEADS, before=(_split,))
def merged_without_transpose(x: Tensor) -> Tensor:
    """The heads are reshaped away while the tokens still stand behind them, so each token gets pieces of others."""
    batch, num_heads, tokens, head_dim = x.shape
    return x.reshape(batch, tokens, num_heads * head_dim)


@split_heads.misconception("Which of the last two axes should vary faster when you join them?", HEADS, before=(_split,))
def pieces_shuffled_together(x: Tensor) -> Tensor:
    """The heads' numbers are interleaved: first of head 0, first of head 1, and so on."""
    return torch.stack(x.unbind(1), dim=-1).flatten(2)


@split_heads.misconception("What is left of a head when it is added to the others?", HEADS, before=(_split,))
def heads_added_up(x: Tensor) -> Tensor:
    """The heads are summed, so a token shrinks to head_dim numbers."""
    return x.sum(dim=1)


@split_heads.misconception("What does squeeze do to a batch of one?", HEADS, after=(merged,))
def batch_of_one_squeezed_away(x: Tensor, num_heads: int) -> Tensor:
    """A squeeze takes the axis of the batch away when there is one image in it."""
    return _split(x, num_heads).squeeze(0)


@split_heads.misconception("Which line takes a tensor out of the graph?", HEADS, after=(merged,))
def pieces_out_of_the_graph(x: Tensor, num_heads: int) -> Tensor:
    """The pieces are detached, so nothing before the heads ever learns."""
    return _split(x, num_heads).detach()


@split_heads.misconception("Which dtype does your new tensor get, and which had the heads?", HEADS, before=(_split,))
def merged_in_float32(x: Tensor) -> Tensor:
    """The pieces are filled into a new float32 tensor, whatever the dtype of the heads."""
    return merged(x).float()
