# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 10 · The ViT of today
#
# The model that you built is the one of 2020. Open the code of a current one and you meet words that no lesson has
# explained: drop path, LayerScale, registers, rotary positions, QK-norm. Each of them is a few lines. In this lesson
# you write them, put each into the ViT that you know, and use the rule of lesson 07 to decide which of them a *small*
# model should have. At the end a model learns from images without a single label.
#
# **After this lesson you can**
# - find these parts in the code of a current ViT and say what each is for;
# - drop and scale the branches of a block, and keep attention scores bounded;
# - encode the positions of patches by rotating queries and keys;
# - decide from your own runs whether to keep a change;
# - hide three quarters of an image and train a model to fill them in.
#
# | exercise | minutes | points |
# |---|---|---|
# | `DropPath` | 10 | 3 |
# | `LayerScale` | 5 | 2 |
# | `add_registers` | 5 | 2 |
# | `rotary_2d` | 25 | 4 |
# | `QKNormAttention` | 10 | 3 |
# | a written question on an experiment | 20 | 2 |
# | `random_masking` | 15 | 4 |
# | a bug hunt (a seed chooses the bug) | 5 | – |
#
# The experiment trains 39 models. On one CPU core that took us 74 minutes: plan it over lunch, or switch on a GPU now.
# The masked autoencoder at the end takes three minutes more.

# %%
import itertools
import math
import os
import time
from dataclasses import dataclass, replace
from statistics import mean, stdev

import torch
import torch.nn.functional as F
from torch import nn

from vit_course import (
    MultiHeadSelfAttention,
    VisionTransformer,
    ViTConfig,
    check,
    hunt,
    own,
    predict,
    progress,
    record,
    reveal,
)
from vit_course.data import Batches, load_dataset, split_indices
from vit_course.plots import new_figure, show_images
from vit_course.trained import trained_vit

device = "cuda" if torch.cuda.is_available() else "cpu"
patchify, unpatchify, PatchEmbedding = own("patchify", "unpatchify", "PatchEmbedding")
split_heads, merge_heads, EncoderBlock = own("split_heads", "merge_heads", "EncoderBlock")
train_one_epoch, evaluate = own("train_one_epoch", "evaluate")
warmup_cosine, parameter_groups = own("warmup_cosine", "parameter_groups")

# %% [markdown]
# ## A branch left out
#
# A block adds what its branches find: `x + attention(norm1(x))`, then `x + mlp(norm2(x))`. So a block can be skipped:
# if a branch is zero, the stream passes on unchanged. *Stochastic depth* uses this (Huang et al. 2016, who skipped a
# layer for a whole batch). During training each image skips some branches, chosen at random. No block can then rely on
# all the others, and in every epoch an image passes through a different, shallower model: this augments the model
# instead of the image.
#
# In most libraries this part is called DropPath. It stands between the end of a branch and the addition.
#
# **Predict first.** A branch is dropped with probability 0.25. In evaluation nothing is dropped. If nothing corrected
# for it, by how many per cent would the sum of many branches be larger in evaluation than in training?

# %%
predict("a-quarter-dropped", 25)  # % larger in evaluation

# %% [markdown]
# <details><summary>Written down? Then look.</summary>
#
# In training a branch contributes three quarters of its value on average, in evaluation all of it. The blocks after it
# would receive a third more than in training. So during training, what is kept is divided by 0.75. Dropout, in lesson
# 04, does the same for the same reason.
#
# </details>
#
# ### Exercise: `DropPath` (10 minutes, 3 points)


# %% exercise="DropPath"
class DropPath(nn.Module):
    """Drop the branch of some images while training.

    probability: the probability that an image loses its branch, in [0, 1). Raise ValueError for anything else, with
                 the value in the text
    branch:      (batch, ...), of any number of axes and any floating point dtype
    returns:     a tensor of the same shape and dtype. While training the branch of each image becomes zero with this
                 probability, all of it, and is divided by 1 - probability otherwise. This is drawn for each image, anew
                 in every call, from torch's global generator. In evaluation mode the branch comes out as it went in.

    >>> drop_path = DropPath(0.5)
    >>> branch = torch.ones(1000, 2, 3)
    >>> sorted(set(drop_path(branch).flatten().tolist()))
    [0.0, 2.0]
    >>> torch.equal(drop_path.eval()(branch), branch)
    True

    Allowed: everything in torch. About 9 lines.
    """

    def __init__(self, probability):
        super().__init__()
        ### BEGIN SOLUTION
        if not 0 <= probability < 1:
            raise ValueError(f"probability must be in [0, 1), not {probability}")
        self.probability = probability
        ### END SOLUTION

    def forward(self, branch):
        ### BEGIN SOLUTION
        if not self.training:
            return branch
        survival = 1 - self.probability
        sizes = (len(branch),) + (1,) * (branch.ndim - 1)
        is_kept = torch.rand(sizes, device=branch.device) < survival
        return branch * is_kept / survival
        ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# Numbers of one image are multiplied differently? The random tensor has more than one number per image. All images of a
# batch lose their branch at once? It has a single number. The mean has changed? Then what is kept is not divided, or by
# the other probability.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# Which shape must a mask have to be multiplied with a tensor of shape (batch, tokens, embed_dim), and with one of shape
# (batch, channels, height, width), if it holds one number for each image? How many ones are in that shape?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# not training: the branch
# one random number for each image, in a tensor of as many axes as the branch has
# True where it is below the probability of being kept
# branch times that, divided by the probability of being kept
# ```
#
# </details>

# %% check="DropPath" points=3
check("DropPath", DropPath)

# %%
branches = torch.ones(100_000, 1)
kept = DropPath(0.25).train()(branches) > 0
reveal("a-quarter-dropped", 100 * (1 / kept.float().mean() - 1), within=2)

# %% [markdown]
# In most recipes the probability grows linearly with depth, from 0 in the first block to `drop_path_rate` in the last.
# The reason: all later blocks need what the early ones find.

# %% [markdown]
# ## A branch that starts small
#
# At the start of training the branches have learned nothing, and a deep model adds up the random output of all of them.
# LayerScale (Touvron et al. 2021) multiplies each branch by numbers that start near zero, one for each dimension, and
# lets them learn. So a deep model starts out almost like the identity, and the contribution of each block grows where
# training finds that useful.

# %% [markdown]
# ### Exercise: `LayerScale` (5 minutes, 2 points)


# %% exercise="LayerScale"
class LayerScale(nn.Module):
    """Multiply each dimension of a branch by a number that is learned.

    initial: the value at which all these numbers start
    branch:  (..., embed_dim)
    returns: the same shape

    Its one parameter is `gamma`, of shape (embed_dim,).

    >>> scale = LayerScale(embed_dim=4, initial=0.5)
    >>> scale(torch.ones(2, 3, 4))[0, 0].tolist()
    [0.5, 0.5, 0.5, 0.5]

    Allowed: everything in torch. About 2 lines.
    """

    def __init__(self, embed_dim, initial):
        super().__init__()
        ### BEGIN SOLUTION
        self.gamma = nn.Parameter(initial * torch.ones(embed_dim))
        ### END SOLUTION

    def forward(self, branch):
        ### BEGIN SOLUTION
        return branch * self.gamma
        ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# No parameter is found? A tensor becomes a parameter only as an `nn.Parameter` stored as an attribute. The branch is
# not small? Then you do not return the product.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# To which axis of (batch, tokens, embed_dim) does a tensor of shape (embed_dim,) belong when torch multiplies the two?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# in __init__: a parameter of embed_dim numbers, all of them initial
# in forward: their product
# ```
#
# </details>

# %% check="LayerScale" points=2
check("LayerScale", LayerScale)

# %% [markdown]
# **Predict first.** Take sixteen fresh blocks, with and without a LayerScale of 0.1. By what factor does the stream
# grow from the input of the first block to the output of the last?

# %%
predict("sixteen-blocks", 16)  # times, without LayerScale


# %%
def scaled(block, embed_dim, initial):
    """Put a LayerScale at the end of both branches of a block."""
    block.attention = nn.Sequential(block.attention, LayerScale(embed_dim, initial))
    block.mlp = nn.Sequential(block.mlp, LayerScale(embed_dim, initial))
    return block


growth = {}
for initial in (None, 0.1, 1e-4):
    torch.manual_seed(0)
    model = VisionTransformer(ViTConfig(patch_size=8, embed_dim=64, depth=16, num_heads=4))
    blocks = model.blocks if initial is None else [scaled(each, 64, initial) for each in model.blocks]
    stream = start = torch.randn(8, 17, 64)
    with torch.no_grad():
        for block in blocks:
            stream = block(stream)
    growth[initial] = stream.std() / start.std()
    print(f"{f'LayerScale from {initial}' if initial else 'no LayerScale':22} {growth[initial]:.2f} times")
reveal("sixteen-blocks", growth[None], within=0.5)

# %% [markdown]
# ## Tokens without a place
#
# Some large ViTs, trained for a long time, have a few tokens that are about ten times as long as the others. They lie
# on patches with little information of their own, such as sky or a wall, and attention maps show bright spots there.
# Darcet et al. (2024) found that these tokens say little about their own patch, and more than others about the whole
# image: it seems that the model stores information in them. So they give it what it lacks, a few extra learned tokens
# that belong to no patch, and call them *registers*.
#
# Does the course's trained model have such tokens? It is small, so measure before you add registers to it.

# %% tags=["experiment"]
saved = trained_vit()
_, photos = load_dataset("cifar10", otherwise="shapes")
few = replace(photos.subset(slice(200)), mean=saved.mean, std=saved.std)
with torch.no_grad():
    stages = record(saved.model, few.normalize(few.images))
for number in range(saved.config.depth):
    lengths = stages[f"blocks.{number}.output"][:, 1:].norm(dim=2)  # of patch tokens, without the class token
    print(f"after block {number}: median length {lengths.median():.1f}, longest of all {lengths.max():.1f}")

# %% [markdown]
# In our run the longest of 12,800 tokens is about twice as long as the median, after every block: no such tokens here.
# The paper finds them in large models, from the middle blocks on, and only after long training. Many current ViTs have
# registers, so you write them here.

# %% [markdown]
# ### Exercise: `add_registers` (5 minutes, 2 points)


# %% exercise="add_registers"
def add_registers(tokens, registers):
    """Put registers between the class token and the patches.

    tokens:    (batch, 1 + num_patches, embed_dim): the class token first, all positions added
    registers: (1, num_registers, embed_dim), the same for every image
    returns:   (batch, 1 + num_registers + num_patches, embed_dim): class token, registers, patches

    >>> tokens = torch.tensor([[[1.0], [2.0], [3.0]]])  # a class token and two patches
    >>> add_registers(tokens, torch.tensor([[[8.0], [9.0]]])).flatten().tolist()
    [1.0, 8.0, 9.0, 2.0, 3.0]

    Allowed: everything in torch. About 1 line.
    """
    ### BEGIN SOLUTION
    return torch.cat([tokens[:, :1], registers.expand(len(tokens), -1, -1), tokens[:, 1:]], dim=1)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# "Sizes of tensors must match"? The registers are there for one image, and the batch has more. The head reads a
# register? Then the class token is no longer at index 0.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# How did the class token of lesson 02 get into every image of the batch, as one parameter?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# along the axis of tokens: the first token, the registers expanded to the batch, all other tokens
# ```
#
# </details>

# %% check="add_registers" points=2
check("add_registers", add_registers)

# %% [markdown]
# ## Positions as rotations
#
# Positions are added once, in front of the first block, and every block after it has to find them in a stream that it
# shares with everything else. What attention needs is simpler: how far is this key from this query? *Rotary* positions
# (Su et al. 2021) provide exactly that, in every block and without parameters. They rotate queries and keys by an angle
# that is proportional to the position. A dot product depends on the angle *between* two vectors: rotate both, and what
# is left is the difference of the two positions.
#
# In two dimensions, a point (a, b) that is rotated by the angle t around zero becomes
#
# $$(a \cos t - b \sin t, \quad a \sin t + b \cos t)$$
#
# A query has more than two numbers, so it is cut into pairs, and each pair rotates at its own speed, like the waves of
# lesson 02. Fast pairs distinguish neighbors, slow pairs distinguish near from far. An image has rows and columns: the
# first half of the pairs rotates with the row and the second half with the column (Heo et al. 2024). The class token
# and registers have no position, so they are not rotated. *Values* are not rotated either: they carry content, and not
# position.
#
# ![A pair of numbers as an arrow at five places of a row: each place turns it further, and a slow pair turns
# less.](../figures/rotary.svg)
#
# **Predict first.** A query in row 2, column 3 and a key in row 4, column 3. Both move one column to the right. What
# happens to their dot product?

# %%
predict("one-column-further", "nothing", choices=("it grows", "it shrinks", "nothing"))

# %% [markdown]
# <details><summary>Written down? Then look.</summary>
#
# Nothing. Both are rotated further by the same angle, so the angle between them stays the same. The dot product knows
# "two rows further down, same column", wherever that is in the image.
#
# </details>
#
# ### Exercise: `rotary_2d` (25 minutes, 4 points)


# %% exercise="rotary_2d"
def rotary_2d(query, key, grid_size):
    """Rotate queries and keys by the position of their patch.

    query:     (..., tokens, head_dim); the patches are the last of the tokens, row by row
    key:       of the same shape
    grid_size: (rows, columns) of the patches
    returns:   (query, key), rotated, of their shape and dtype. Tokens before the patches stay unchanged.

    head_dim is cut into two halves: the first rotates by the row, the second by the column, both counted from 0.
    In each half, numbers 2i and 2i + 1 are a pair (a, b). It becomes (a cos t - b sin t, a sin t + b cos t), with
    t = place / 100 ** (i / pairs), where pairs = head_dim // 4 is the number of pairs of a half.

    >>> query = torch.tensor([[1.0, 0.0, 1.0, 0.0]]).repeat(4, 1)  # four patches: a pair for rows, one for columns
    >>> turned, _ = rotary_2d(query, query, (2, 2))
    >>> [round(number, 2) for number in turned[1].tolist()]  # row 0, column 1: the second pair, by 1 radian
    [1.0, 0.0, 0.54, 0.84]

    Raise ValueError if head_dim is not divisible by 4, naming head_dim, or if there are fewer tokens than patches,
    naming the number of tokens.
    Compute angles in float64, and convert cosines and sines to the query's dtype at the end.
    Allowed: everything in torch. About 18 lines.
    """
    ### BEGIN SOLUTION
    tokens, head_dim = query.shape[-2:]
    rows, columns = grid_size
    if head_dim % 4:
        raise ValueError(f"head_dim {head_dim} is not divisible by 4")
    if tokens < rows * columns:
        raise ValueError(f"{tokens} tokens are fewer than the {rows * columns} patches of the grid")
    pairs = head_dim // 4
    speeds = 100.0 ** (-torch.arange(pairs, dtype=torch.float64, device=query.device) / pairs)
    patch = torch.arange(rows * columns, device=query.device)
    row, column = patch // columns, patch % columns
    angles = torch.cat([torch.outer(row, speeds), torch.outer(column, speeds)], dim=1)
    angles = torch.cat([angles.new_zeros(tokens - rows * columns, 2 * pairs), angles])
    cos, sin = angles.cos().to(query.dtype), angles.sin().to(query.dtype)
    a, b = query[..., ::2], query[..., 1::2]
    turned_query = torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)
    a, b = key[..., ::2], key[..., 1::2]
    turned_key = torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)
    return turned_query, turned_key
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# Has the length of a token changed? Then what you computed is no rotation: look for the minus, and whether both terms
# use the same angle. Dot products depend on the place? Query and key are not rotated by the same rule. Lengths and dot
# products behave, but the values differ? Check your pairs: (0, 1), (2, 3), ..., not (0, n/2), (1, n/2 + 1), ...
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# Make a table of angles first, with a row for each token and a column for each pair. What are the angles in the class
# token's row? Which two numbers of a patch determine its angles?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# sizes that do not fit: ValueError
# speeds: one for each pair of a half
# angles of a patch: its row times the speeds, then its column times the speeds
# before them rows of zeros, one for each token that is no patch
# for query and key: every second number from 0 is a, from 1 is b; rotate both; interleave them again
# ```
#
# `torch.stack([..., ...], dim=-1).flatten(-2)` weaves two tensors.
#
# </details>

# %% check="rotary_2d" points=4
check("rotary_2d", rotary_2d)

# %%
torch.manual_seed(1)
one_query, one_key = rotary_2d(torch.randn(8).expand(25, 8), torch.randn(8).expand(25, 8), (5, 5))
before, after = one_query[13] @ one_key[23], one_query[14] @ one_key[24]  # rows 2 and 4, columns 3 and then 4
same = torch.isclose(before, after, atol=1e-4)
reveal("one-column-further", "nothing" if same else "it grows" if after > before else "it shrinks")

# %% [markdown]
# Here is what it does to attention. We put one query in the middle of a grid and the same vector as key everywhere.
# Without positions all dot products would be equal.

# %%
torch.manual_seed(1)
size, head_dim = 15, 32
same = torch.randn(head_dim).expand(size * size, head_dim)
turned_query, turned_key = rotary_2d(same, same, (size, size))
middle = size * size // 2
scores = (turned_query[middle] @ turned_key.T / math.sqrt(head_dim)).reshape(size, size)
figure = new_figure(3.2, 2.8)
axes = figure.subplots()
figure.colorbar(axes.imshow(scores, cmap="viridis"), label="score")
axes.set(xlabel="column of the key", ylabel="row of the key")
figure

# %% [markdown]
# When query and keys are equal, nearby keys get the highest scores, without any learning. The cross shows that rows and
# columns are encoded separately. Other queries and keys give other patterns ("two to the right"), and every block can
# learn its own.

# %% [markdown]
# ## Scores that stay bounded
#
# In a long training with a high learning rate, queries and keys may grow. Then scores grow, the softmax puts all weight
# on one key, its gradient vanishes, and the loss jumps or stops falling. The authors of a ViT with 22 billion
# parameters saw that happen, and put a LayerNorm on queries and keys (Dehghani et al. 2023, after Henry et al. 2020):
# *QK-norm*. It goes over the numbers of one head, after `split_heads`. In this course all heads share its weight and
# bias.

# %% [markdown]
# ### Exercise: `QKNormAttention` (10 minutes, 3 points)


# %% exercise="QKNormAttention"
class QKNormAttention(nn.Module):
    """Multi-head self-attention with normalized queries and keys.

    x:       (batch, tokens, embed_dim)
    returns: the same shape

    Its parts: qkv (nn.Linear to 3 · embed_dim: queries, keys, values, in this order) and projection (nn.Linear), as in
    lesson 03; query_norm and key_norm, each an nn.LayerNorm over head_dim = embed_dim / num_heads.

    >>> attention = QKNormAttention(embed_dim=12, num_heads=3)
    >>> tuple(attention(torch.zeros(2, 5, 12)).shape), tuple(attention.query_norm.weight.shape)
    ((2, 5, 12), (4,))

    Raise ValueError, with both numbers in its text, where num_heads does not divide embed_dim.
    Allowed: split_heads, merge_heads, F.scaled_dot_product_attention, everything else in torch. About 11 lines.
    """

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        ### BEGIN SOLUTION
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim {embed_dim} is not divisible by num_heads {num_heads}")
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.query_norm = nn.LayerNorm(embed_dim // num_heads)
        self.key_norm = nn.LayerNorm(embed_dim // num_heads)
        self.projection = nn.Linear(embed_dim, embed_dim)
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        query, key, value = (split_heads(part, self.num_heads) for part in self.qkv(x).chunk(3, dim=-1))
        heads = F.scaled_dot_product_attention(self.query_norm(query), self.key_norm(key), value)
        return self.projection(merge_heads(heads))
        ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# A norm complains of the shape? It is made for head_dim numbers: apply it after `split_heads`. The output is right with
# small tokens and wrong with large ones? Either the queries or the keys are not normalized.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# Scores are made of two of the three. Which ones? And what would a norm take away from the third?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# qkv, cut into three, each split into heads
# query through its norm, key through its norm
# attention; heads merged; projection
# ```
#
# </details>

# %% check="QKNormAttention" points=3
check("QKNormAttention", QKNormAttention)

# %% [markdown]
# **Predict first.** Multiply the rows of `qkv` that make queries and keys by 10. How large is the largest attention
# weight of a query, on average, with and without QK-norm? There are 65 tokens.

# %%
predict("ten-times", 0.5)  # the largest weight without QK-norm, times 10


# %%
def largest_weight(attention, x, norms):
    """Mean over queries of their largest attention weight."""
    query, key, _ = (split_heads(part, attention.num_heads) for part in attention.qkv(x).chunk(3, dim=-1))
    if norms:
        query, key = attention.query_norm(query), attention.key_norm(key)
    weights = (query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])).softmax(dim=-1)
    return weights.amax(dim=-1).mean().item()


x = torch.randn(16, 65, 64)
for factor in (1, 3, 10):
    torch.manual_seed(0)
    attention = QKNormAttention(64, 4).requires_grad_(False)
    attention.qkv.weight[:128] *= factor
    without, with_norms = largest_weight(attention, x, norms=False), largest_weight(attention, x, norms=True)
    print(f"queries and keys times {factor:2}: largest weight {without:.2f} without, {with_norms:.2f} with QK-norm")
reveal("ten-times", without, within=0.1)

# %% [markdown]
# Without norms the weights concentrate on one key. With them, the scale of `qkv` drops out: for fresh norms no score
# can exceed √head_dim = 4. This limits the scores; it does not make them small: at factor 1 the weights with QK-norm
# are *sharper* than those without. (The norms have weights of their own, and those can still grow.)
#
# **One more norm.** Many current models have RMSNorm instead of LayerNorm (Zhang and Sennrich 2019): it divides by the
# root mean square, and neither subtracts a mean nor has a bias. Torch has it as `nn.RMSNorm`; it goes into the
# experiment below.
#
# **And a kernel.** `F.scaled_dot_product_attention`, which you may call since lesson 04, computes what you wrote in
# lesson 03. Where torch has a fused kernel for the case, it works piece by piece and never stores all weights (Dao et
# al. 2022). How much that saves depends on the number of tokens: you will see little at the 65 tokens of our small
# models, and more at a thousand.


# %% tags=["experiment"]
def written_out(query, key, value):
    """Attention of lesson 03."""
    weights = (query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])).softmax(dim=-1)
    return weights @ value


def seconds_of(attend, *tensors, repeats=5):
    """Seconds of the fastest of `repeats` calls."""
    best = math.inf
    for _ in range(repeats):
        started = time.perf_counter()
        attend(*tensors)
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - started)
    return best


with torch.no_grad():
    for tokens in (65, 257, 1025):
        tensors = torch.randn(3, 4, 8, tokens, 32, device=device)  # four images, eight heads
        ours, fused = seconds_of(written_out, *tensors), seconds_of(F.scaled_dot_product_attention, *tensors)
        stored = 4 * 8 * tokens**2 * 4 / 1e6
        print(f"{tokens:5} tokens: speed-up {ours / fused:4.1f}, {stored:5.1f} MB of weights not stored")

# %% [markdown]
# ## Is any of it worth it?
#
# Six changes, each with a paper behind it. Most were made for larger models and longer training, and not all of them
# for accuracy: RMSNorm saves time, registers clean up attention maps. Our model is small, and trained for a minute.
# What is a change worth *here*? The rule is lesson 07's: the same images, the same order, three seeds, differences with
# an interval.

# %%
BASE = ViTConfig(patch_size=8, embed_dim=64, depth=4, num_heads=4, position_std=0.5)  # lesson 07's


@dataclass(frozen=True)
class Budget:
    num_train: int = 10_000
    num_few: int = 2_000  # for the arms that learn from few images
    num_validation: int = 5_000
    epochs: int = 6
    epochs_few: int = 30
    seeds: tuple = (0, 1, 2)
    masked_steps: int = 1_500  # of the masked autoencoder at the end


BUDGET = Budget()
if os.environ.get("VIT_COURSE_BUDGET") == "small":  # a rehearsal: everything runs, nothing is learned
    BUDGET = Budget(
        num_train=200, num_few=100, num_validation=200, epochs=1, epochs_few=1, seeds=(0, 1), masked_steps=5
    )


@dataclass(frozen=True)
class Arm:
    """One way to train. Its defaults are read from BUDGET when this cell runs: run it again if you change that."""

    change: str = ""
    config: ViTConfig = BASE
    learning_rate: float = 2e-3
    num_train: int = BUDGET.num_train
    epochs: int = BUDGET.epochs


# %% [markdown]
# A change is made to a finished model: parts are replaced or wrapped. A part that replaces another takes over its
# initial weights, so that two arms start as equal as possible. (Registers may start at 0.02, although lesson 07 found
# positions of 0.02 as good as absent. A position is *added* to a large token and drowns in it; a register is a token of
# its own, and the first norm of a block brings it to full size.)


# %%
class WithRegisters(nn.Module):
    """Blocks that see registers between the class token and the patches."""

    def __init__(self, blocks, embed_dim, num_registers=4):
        super().__init__()
        self.blocks = blocks
        self.registers = nn.Parameter(0.02 * torch.randn(1, num_registers, embed_dim))

    def forward(self, tokens):
        return self.blocks(add_registers(tokens, self.registers))


class RotaryAttention(MultiHeadSelfAttention):
    """Lesson 03's attention with rotated queries and keys."""

    def __init__(self, config):
        super().__init__(config.embed_dim, config.num_heads)
        self.grid_size = config.grid_size

    def forward(self, x):
        query, key, value = (split_heads(part, self.num_heads) for part in self.qkv(x).chunk(3, dim=-1))
        query, key = rotary_2d(query, key, self.grid_size)
        return self.projection(merge_heads(F.scaled_dot_product_attention(query, key, value)))


def with_weights_of(old, new):
    """The new attention, with the first weights of the old one."""
    new.load_state_dict(old.state_dict(), strict=False)
    return new


def build(arm):
    """A fresh model with the arm's change."""
    config = arm.config
    model, dim = VisionTransformer(config), config.embed_dim
    for number, block in enumerate(model.blocks):
        if arm.change == "QK-norm":
            block.attention = with_weights_of(block.attention, QKNormAttention(dim, config.num_heads))
        if arm.change == "rotary":
            block.attention = with_weights_of(block.attention, RotaryAttention(config))
        if arm.change == "RMSNorm":
            block.norm1, block.norm2 = nn.RMSNorm(dim, eps=1e-6), nn.RMSNorm(dim, eps=1e-6)
        if arm.change == "LayerScale":
            scaled(block, dim, initial=0.1)
        if arm.change == "DropPath":
            probability = 0.2 * number / (config.depth - 1)
            block.attention = nn.Sequential(block.attention, DropPath(probability))
            block.mlp = nn.Sequential(block.mlp, DropPath(probability))
    if arm.change == "RMSNorm":
        model.norm = nn.RMSNorm(dim, eps=1e-6)
    if arm.change == "registers":
        model.blocks = WithRegisters(model.blocks, dim)
    return model


# %% tags=["experiment"]
full, _ = load_dataset("cifar10", otherwise="shapes")
num_validation = min(BUDGET.num_validation, len(full) // 5)
train_indices, validation_indices = split_indices(len(full), num_validation, seed=0)
train = replace(full.subset(train_indices), mean=(), std=())
validation = full.subset(validation_indices).with_statistics_of(train)
print(f"{len(train)} to learn from, {len(validation)} to choose by; trained on {device}")


# %%
def learn(model, images, arm, seed):
    """Train as in lesson 07; return the final validation accuracy in percent."""
    model = model.to(device)
    loader = Batches(images, 128, shuffle=True, seed=seed, device=device)
    optimizer = torch.optim.AdamW(parameter_groups(model, 0.05), lr=arm.learning_rate)
    steps, total_steps = itertools.count(), arm.epochs * len(loader)

    def before_update(*_):
        for group in optimizer.param_groups:
            group["lr"] = arm.learning_rate * warmup_cosine(next(steps), round(0.1 * total_steps), total_steps)

    optimizer.register_step_pre_hook(before_update)
    for _ in range(arm.epochs):
        train_one_epoch(model, loader, optimizer, device)
    return 100 * evaluate(model, Batches(validation, 500, device=device), device)[1]


STUDENT = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78}  # number of differences → 97.5 % quantile of Student's t
found = {}  # (arm, seed): what `learn` gave; `compare` trains nothing that is in here


def compare(arms):
    """Train every arm from every seed; print accuracies, and differences from the first arm with an interval."""
    baseline = None
    for name, arm in arms.items():
        for seed in BUDGET.seeds:
            if (arm, seed) not in found:
                torch.manual_seed(seed)
                found[arm, seed] = learn(build(arm), train.subset(slice(arm.num_train)), arm, seed)
        each = [found[arm, seed] for seed in BUDGET.seeds]
        line = f"{name:28} " + "  ".join(f"{accuracy:.1f}" for accuracy in each)
        if baseline:
            differences = [one - other for one, other in zip(each, baseline, strict=True)]
            half = STUDENT[len(differences)] * stdev(differences) / len(differences) ** 0.5
            line += f"   difference {mean(differences):+.1f} ± {half:.1f}"
        baseline = baseline or each
        print(line)


# %% [markdown]
# **Predict first, in the answer cell.** First we try each change in the plain setting, which has none of the problems
# that these changes were invented for. Choose the *two* of the six about which you are most certain: does each help,
# harm, or make no visible difference, and why?

# %% tags=["experiment"]
compare(
    {
        "plain": Arm(),
        "registers": Arm("registers"),
        "LayerScale": Arm("LayerScale"),
        "DropPath": Arm("DropPath"),
        "QK-norm": Arm("QK-norm"),
        "rotary positions": Arm("rotary", replace(BASE, positions="none")),
        "RMSNorm": Arm("RMSNorm"),
    }
)

# %% [markdown]
# Then we try three of them on the problem that they were made for: a learning rate five times as high, four times as
# many blocks, and two thousand images seen thirty times.

# %% tags=["experiment"]
FAST = Arm(learning_rate=1e-2)
compare({"high rate": FAST, "high rate, QK-norm": replace(FAST, change="QK-norm")})

# %% tags=["experiment"]
DEEP = Arm(config=replace(BASE, depth=16))
compare({"sixteen blocks": DEEP, "sixteen blocks, LayerScale": replace(DEEP, change="LayerScale")})

# %% tags=["experiment"]
SCARCE = Arm(num_train=BUDGET.num_few, epochs=BUDGET.epochs_few)
compare({"few images": SCARCE, "few images, DropPath": replace(SCARCE, change="DropPath")})

# %% [markdown] question="worth-it" points=2
# ### Question: what would you keep? (20 minutes, 2 points)
#
# *My prediction, before the run: …*
#
# Give both tables. For each change: do your runs show that it helps, show that it harms, or show neither? Which would
# you put into the model that you train for an afternoon on a laptop, and what would have to be different for you to
# decide otherwise?
#
# ### BEGIN SOLUTION
# Our runs. In the plain setting the model without changes has 46.9, 45.1 and 46.0 %. The differences from it are:
# registers −0.4 ± 3.2, LayerScale +0.3 ± 3.2, DropPath −1.5 ± 3.7, QK-norm +1.1 ± 3.1 and RMSNorm +0.0 ± 3.1, five
# intervals that contain 0. That does not show that these changes do nothing: a gain of three points might not have
# shown. Rotary instead of learned positions: −1.9 ± 1.5, a little worse. This is one of nine intervals, and if all nine
# changes did nothing, about one table in three would still show a difference by chance. (A guess, not a result: a table
# for sixteen patches is easy to learn; and with rotary positions alone, positions affect only the attention scores and
# never the tokens. To test this, give the model both.)
#
# On the problems that they were made for, the result is different. At five times the learning rate the plain model
# falls to 35.7, 36.7 and 39.0 %. QK-norm wins some of that back, +5.7 ± 3.0 points, and stays below the plain model at
# the normal rate (−3.1 ± 2.3). Sixteen blocks alone have 40.3, 38.0 and 40.0 %, which is *worse* than four blocks (−6.6
# ± 1.4); with LayerScale they gain +10.4 ± 3.4 and are better than the four (+3.8 ± 3.0). Depth is one possible cause;
# the learning rate, which was chosen for four blocks, is another, and a lower one might do what LayerScale does. With
# few images, 33.3, 35.1 and 35.2 %, DropPath gives +0.6 ± 3.3, so three seeds show no difference.
#
# So for an afternoon on a laptop we would keep learned positions and either four plain blocks or sixteen with
# LayerScale. These took nearly four times as long, and we have not tried what four blocks reach in that time. QK-norm
# costs next to nothing and softens a rate that is too high, though not all of it. Registers and DropPath wait for a
# larger model and a longer training. A table like this one says what a change is worth *here*.
#
# **Rubric.** One point: prediction, both tables, and for each of the nine differences whether its interval contains 0.
# One point: a choice that follows from the tables, and what would change it: more blocks, a higher rate, few images, a
# longer training.
# ### END SOLUTION

# %% [markdown]
# Here is our log of both tables, as differences with their intervals. Look at it when you have written your answer. In
# the plain setting one of six intervals does not contain 0: rotary positions *instead of* learned ones, −1.9 ± 1.5. Do
# not make much of it. With nine intervals in the two tables, about one time in three at least one would miss 0 by
# chance alone; and we have not tried rotary positions *beside* learned ones. Gains of up to three points might not have
# shown. On the problem that they were made for, the runs show a gain for QK-norm and for LayerScale, and nothing for
# DropPath. Sixteen blocks with LayerScale also took nearly four times as long as four blocks, and we have not given
# four blocks that time.
#
# ![Nine changes to a small ViT, each with the points of accuracy that it gains and a 95 %
# interval.](../figures/modern_changes.svg)

# %% [markdown]
# ## Learning without labels
#
# Labels are the expensive part. A *masked autoencoder* (He et al. 2022) needs none: hide three quarters of the patches,
# let the encoder read the rest, and train a small decoder to fill in the pixels of the hidden ones. A model that can do
# this must have learned something about pictures. Later the decoder is thrown away, and the encoder is fine-tuned as in
# lesson 09.
#
# The trick is what is *not* done. Hidden patches are not set to zero, they are left out. The encoder gets a quarter of
# the tokens, so its work shrinks to a quarter or less; and a ViT can do that, since attention works with any number of
# tokens. Each token carries its position, so it still knows where it belongs.
#
# **Predict first.** Why three quarters? What could a model do that hides only one patch in ten?

# %% [markdown]
# <details><summary>Written down? Then look.</summary>
#
# A single missing patch can be painted from its neighbors: continue the edges, mix the colors. Nothing has to be
# understood for that. With three quarters gone, a hidden patch has on average about one visible neighbor among the four
# beside it, and more than a third have none. Then it helps to know what kind of thing this is. (Texts are denser: there
# 15 % is enough.)
#
# </details>
#
# ### Exercise: `random_masking` (15 minutes, 4 points)


# %% exercise="random_masking"
def random_masking(tokens, mask_ratio, generator):
    """Hide patches of each image at random.

    tokens:     (batch, num_patches, embed_dim)
    mask_ratio: share of the patches to hide; round(mask_ratio * num_patches) of them are hidden in every image
    generator:  a torch.Generator on the CPU. Draw all random numbers from it: torch.rand and torch.randperm accept
                generator=generator.
    returns:    (visible, mask): (batch, kept, embed_dim), the tokens that are not hidden, in their order; and
                (batch, num_patches) of bool, True where a patch is hidden. Each image hides patches of its own. Both
                are on the device of the tokens.

    >>> tokens = torch.arange(8.0).reshape(1, 8, 1)  # eight patches of one number
    >>> visible, mask = random_masking(tokens, 0.75, torch.Generator().manual_seed(0))
    >>> tuple(visible.shape), mask.sum().item()
    ((1, 2, 1), 6)
    >>> torch.equal(visible, tokens[~mask].reshape(1, 2, 1))
    True

    Raise ValueError, with mask_ratio in its text, where no patch would be hidden, or none left.
    Allowed: everything in torch. About 8 lines.
    """
    ### BEGIN SOLUTION
    batch, num_patches, embed_dim = tokens.shape
    num_hidden = round(mask_ratio * num_patches)
    if not 0 < num_hidden < num_patches:
        raise ValueError(f"mask_ratio {mask_ratio} hides {num_hidden} of {num_patches} patches")
    order = torch.rand(batch, num_patches, generator=generator).argsort(dim=1)
    mask = (order < num_hidden).to(tokens.device)
    return tokens[~mask].reshape(batch, num_patches - num_hidden, embed_dim), mask
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# Images hide different numbers of patches? You tossed a coin for each patch; shuffle instead. All images hide the same
# patches? You drew one order for all. The visible tokens do not fit the mask? They are in the order that was drawn, not
# in the order of the patches.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# How do you get a random order for *each row* of a table in one call? (Sort random numbers.) Which numbers does each of
# these orders contain?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# how many are hidden; none or all: ValueError
# a random order of 0 ... num_patches - 1 for each image
# the mask is True where that number is among the first num_hidden
# the tokens where it is False, as (batch, kept, embed_dim)
# ```
#
# </details>

# %% check="random_masking" points=4
check("random_masking", random_masking)

# %% [markdown]
# The decoder needs a token for each patch again. For every hidden patch it gets the same learned vector plus that
# patch's position. With the mask this takes two lines: `full[~mask]` selects the places of the visible tokens, in the
# order in which `random_masking` returned them. The training below takes about three minutes on a CPU.


# %%
class MaskedAutoencoder(nn.Module):
    """A ViT's encoder that reads a quarter of the patches, and a decoder that paints the rest."""

    def __init__(self, patch_size=4, image_size=32, embed_dim=64):
        super().__init__()
        self.patch_size, self.grid = patch_size, image_size // patch_size
        self.embedding = PatchEmbedding(3, patch_size, embed_dim)
        self.positions = nn.Parameter(0.5 * torch.randn(1, self.grid**2, embed_dim))
        self.encoder = nn.Sequential(*(EncoderBlock(embed_dim, 4) for _ in range(3)), nn.LayerNorm(embed_dim))
        self.mask_token = nn.Parameter(torch.zeros(embed_dim))
        self.decoder_positions = nn.Parameter(0.5 * torch.randn(1, self.grid**2, embed_dim))
        self.decoder = nn.Sequential(EncoderBlock(embed_dim, 4), nn.LayerNorm(embed_dim))
        self.to_pixels = nn.Linear(embed_dim, 3 * patch_size**2)

    def forward(self, images, mask_ratio, generator):
        """The predicted patches (batch, num_patches, 3 · patch_size²), and the mask."""
        tokens = self.embedding(images) + self.positions
        visible, mask = random_masking(tokens, mask_ratio, generator)
        full = self.mask_token.expand(tokens.shape).clone()
        full[~mask] = self.encoder(visible).flatten(0, 1)
        return self.to_pixels(self.decoder(full + self.decoder_positions)), mask


def hidden_loss(painted, images, mask, patch_size):
    """Mean squared error on the hidden patches alone."""
    return (painted - patchify(images, patch_size))[mask].square().mean()


# %% tags=["experiment"]
torch.manual_seed(0)
painter = MaskedAutoencoder().to(device)
generator = torch.Generator().manual_seed(0)
loader = Batches(train.subset(slice(10_000)), 64, shuffle=True, seed=0, device=device)
optimizer = torch.optim.AdamW(painter.parameters(), lr=1e-3, weight_decay=0.05)
batches = itertools.chain.from_iterable(itertools.repeat(loader))
started, losses = time.perf_counter(), []
for step, (images, _) in enumerate(itertools.islice(batches, BUDGET.masked_steps)):  # labels are not looked at
    painted, mask = painter(images, 0.75, generator)
    loss = hidden_loss(painted, images, mask, 4)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if (step + 1) % 250 == 0:
        print(f"step {step + 1:5}: loss {mean(losses[-250:]):.3f}, after {time.perf_counter() - started:.0f} s")

# %% [markdown]
# The pixels are normalized, so painting every hidden patch in the data set's mean color gives a loss of about 1. Here
# are eight validation images: as they are, what the encoder saw, and what the model painted.

# %% tags=["experiment"]
pictures = validation.normalize(validation.images[:8]).to(device)
painter.eval()
with torch.no_grad():
    painted, mask = painter(pictures, 0.75, torch.Generator().manual_seed(1))
patches = patchify(pictures, 4)
seen = torch.where(mask[:, :, None], torch.zeros_like(patches), patches)
filled = torch.where(mask[:, :, None], painted, patches)
rows = torch.cat([pictures, *(unpatchify(each, 4, (32, 32)) for each in (seen, filled))]).cpu()
spread, center = (torch.tensor(each).view(-1, 1, 1) for each in (validation.std, validation.mean))
show_images((rows * spread + center).clamp(0, 1), columns=8)

# %% [markdown]
# The result is blurred, but colors and large shapes are in the right places. It is blurred because, to keep the squared
# error low, the model paints the mean of all pictures that would fit. The model never saw a label. Whether its encoder
# has learned something that helps with a task, this picture cannot tell: for that you need a probe or fine-tuning. He
# et al. did it at a larger scale. With 800 epochs on a million images, the fine-tuned ViT-L reaches 84.9 % on ImageNet,
# and the same model trained from scratch 82.5 %.

# %% [markdown]
# ## A harder one, without points
#
# Take the encoder's tokens, averaged, as features, and fit `linear_probe` of lesson 09 on a thousand labeled images;
# compare with the tokens of an encoder that was never trained. How long do you have to train for a difference that an
# interval shows? Then change the mask ratio to 0.1 and look at both the loss and the probe: which of them tells you
# what the model has learned?

# %% [markdown]
# ## A bug hunt
#
# The seed chooses one of the course's known mistakes and puts it into a `rotary_2d` that you get to read.

# %%
SEED = 1  # any whole number: your own, or the one that your instructor gave you
suspect = hunt("rotary_2d", SEED)
suspect

# %% [markdown]
# Check the lengths, the dot products at equal distances, and a class token in front. Find the experiment that shows the
# bug before you look for the line. Then repair a copy, and check it.

# %%
mended = None  # paste the program above this line, mend it, and put its name in place of None
suspect.check(mended)

# %% [markdown]
# <details><summary>Given up?</summary>
#
# Let the library name it, and read the lines again with that name in mind: `suspect.check(suspect.program)`.
#
# </details>
#
# More: `hunt("DropPath", SEED)` and `hunt("random_masking", SEED)`.

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. A model with DropPath has a training loss that is higher than its validation loss. A leak?
# </summary>
#
# No. The training loss is measured with branches missing, the validation loss with all of them. Put the model into
# evaluation mode, and measure on training images: that loss is usually lower.
#
# </details>
# <details><summary>2. With rotary positions, does the order of patches still matter without any table?</summary>
#
# Yes: in every block, scores depend on the positions by which queries and keys are rotated. Shuffle the patches and
# their scores change. (Shuffle the registers and nothing changes.)
#
# </details>
# <details><summary>3. Why may the head still read token 0 when four registers have joined?</summary>
#
# The registers come after it. Code that counts from the end still finds the patches: `rotary_2d` takes the *last*
# tokens, and so does `taken` of lesson 08. Code that takes everything after token 0 for patches breaks:
# `class_token_maps` and your `predict_with_attention` of lesson 08 do.
#
# </details>
# <details><summary>4. LayerScale starts at 1e-4, and the loss hardly falls for a whole epoch. Broken?</summary>
#
# Perhaps not. Each block adds a ten-thousandth of its branch at first, and gamma has to grow before it counts. A deep
# model with many steps can afford that; for a short training start at 0.1, or leave it out.
#
# </details>
#
# **What you can do now:** you can find these parts in the code of a current ViT, you know what each is for, and you can
# measure, with an interval, what the next new part is worth in *your* setting. Try the first: open timm's
# `vision_transformer.py` and look for `DropPath`, `LayerScale`, `reg_token` and `qk_norm`; rotary positions are in its
# `eva.py`.
#
# **Further reading.** Touvron et al. 2022, *DeiT III*: LayerScale and stochastic depth in a plain recipe. Siméoni et
# al. 2025, *DINOv3*: registers and rotary positions in a model without labels. Vryniotis 2021, *How to train
# state-of-the-art models using torchvision's latest primitives*: what each change to a ResNet was worth, one by one.

# %%
progress()
