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
# The model that you built is the one of 2020. Open the code of one from this year and you meet words that no lesson has
# named: drop path, LayerScale, registers, rotary positions, QK-norm. Each of them is a few lines. In this lesson you
# write them, put each into the ViT that you know, and decide by lesson 07's rule which of them a *small* model should
# have. At the end a model learns from images without a single label.
#
# **After this lesson you can**
# - read a modern ViT and say what each part of it is for;
# - leave branches out, scale them, and keep attention's scores small, each with its reason;
# - tell patches their place by turning queries and keys;
# - keep or throw out a change by what your own runs show;
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
# | a bug drawn for you | 5 | – |
#
# The experiment is 39 trainings, as long as those of lesson 07: start it before lunch, or switch on a GPU now.

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

from vit_course import MultiHeadSelfAttention, VisionTransformer, ViTConfig, check, hunt, own, predict, progress, reveal
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
# A block adds what its branches find: `x + attention(norm1(x))`, then `x + mlp(norm2(x))`. So a block may be absent: if
# a branch is zero, the stream goes on as it was. *Stochastic depth* (Huang et al. 2016, there for a whole batch at a
# time) uses that. While training, each image of the batch does without a branch now and then, at random. No block can
# rely on all the others being there, and an image is seen by another, shallower model in every epoch: that is
# augmentation of the model in the place of the image.
#
# In most libraries the part is called DropPath, and stands between a branch and the plus.
#
# **Predict first.** A branch is dropped with probability 0.25. In evaluation nothing is dropped. By how much would the
# sum of many branches differ between training and evaluation, if nothing made up for it?

# %%
predict("a-quarter-dropped", 25)  # in %, of what it is in training

# %% [markdown]
# <details><summary>Written down? Then look.</summary>
#
# In training a branch is worth three quarters of itself on average, in evaluation all of itself: the blocks behind it
# would get a third more than they have learned with. So what is kept is divided by 0.75 while training. Dropout, in
# lesson 04, does the same for the same reason.
#
# </details>
#
# ### Exercise: `DropPath` (10 minutes, 3 points)


# %% exercise="DropPath"
class DropPath(nn.Module):
    """Drop the branch of some images while training.

    probability: with which an image loses its branch, in [0, 1); anything else raises ValueError, with its value in
                 the text
    branch:      (batch, ...), of any number of axes and any floating point dtype
    returns:     the same shape and dtype. While training the branch of each image becomes zero with this probability,
                 all of it, and is divided by 1 - probability otherwise; each image has its own chance, drawn in every
                 call by torch's global generator. In evaluation mode the branch comes out as it went in.

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
# Numbers of one image are multiplied differently? The random tensor has more than one number for each image. All images
# of a batch lose their branch at once? It has too few. The mean has changed? Then what is kept is not divided, or by
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
# Most recipes drop more the deeper a block is: nothing in the first and `drop_path_rate` in the last one, along a
# straight line. Early blocks find what all the later ones need.

# %% [markdown]
# ## A branch that starts small
#
# At the start of a training every branch adds noise, and a deep model adds up the noise of all its blocks. LayerScale
# (Touvron et al. 2021) multiplies each branch by numbers that start near zero, one for each dimension, and lets them
# learn. So a deep model begins as a shallow one, and each block comes in as far as it has something to say.

# %% [markdown]
# ### Exercise: `LayerScale` (5 minutes, 2 points)


# %% exercise="LayerScale"
class LayerScale(nn.Module):
    """Multiply each dimension of a branch by a number that is learned.

    initial: with which all these numbers start
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
# No parameter is found? A tensor is one only as an `nn.Parameter`, kept as an attribute. The branch is not small?
# Something else than a product comes out.
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
# **Predict first.** Sixteen blocks, fresh, with and without a LayerScale of 0.1. How much larger is the stream behind
# the last block than in front of the first?

# %%
predict("sixteen-blocks", 16)  # times, without LayerScale


# %%
def scaled(block, embed_dim, initial):
    """Put a LayerScale behind both branches of a block."""
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
# Attention has to look somewhere, as you saw in lesson 08: a head that finds nothing for a query still shares out
# weights that sum to 1. Large ViTs, trained for long, have found a way out: they pick patches that tell little, sky or
# a wall, and use *their* tokens as a place to keep what belongs to no place. Those tokens become ten times as long as
# others, and attention maps show bright spots where nothing is. Darcet et al. (2024) give the model what it is looking
# for: a few tokens more, learned, with no patch behind them. They call them *registers*.
#
# Has the trained model of this course such tokens? It is small. Look before you treat it.

# %% tags=["experiment"]
saved = trained_vit()
_, photos = load_dataset("cifar10", otherwise="shapes")
few = replace(photos.subset(slice(200)), mean=saved.mean, std=saved.std)
streams = []
handle = saved.model.norm.register_forward_pre_hook(lambda norm, inputs: streams.append(inputs[0]))
try:
    with torch.no_grad():
        saved.model(few.normalize(few.images))
finally:
    handle.remove()
lengths = streams[0][:, 1:].norm(dim=2).flatten()
print(f"patch tokens behind the last block: median length {lengths.median():.1f}, longest of all {lengths.max():.1f}")

# %% [markdown]
# In our run the longest of 12,800 tokens is not even twice as long as the median: no such tokens here. The paper finds
# them in large models, behind the middle blocks, and after much training. Registers are still part of many a ViT of
# today, so you write them.

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
# ## A place that turns
#
# Positions are added once, in front of the first block, and every block after it has to find them in a stream that it
# shares with everything else. What attention needs is simpler: how far is this key from this query? *Rotary* positions
# (Su et al. 2021) tell exactly that, in every block, with no parameter. They turn queries and keys by an angle that
# grows with the place. A dot product depends on the angle *between* two vectors: turn both, and what is left is the
# difference of two places.
#
# In two dimensions: a point (a, b), turned by the angle t around zero, becomes
#
# $$(a \cos t - b \sin t, \quad a \sin t + b \cos t)$$
#
# A query has more than two numbers, so it is cut into pairs, and each pair turns at its own speed, as the waves of
# lesson 02 do: fast ones tell neighbors apart, slow ones near from far. An image has rows and columns: the first half
# of the pairs turns with the row and the second half with the column (Heo et al. 2024). The class token and registers
# are at no place, so nobody turns them. Neither is the *value* turned: it is what is said, not where.
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
# Nothing. Both are turned by the same angle more, and the angle between them stays. The dot product knows "two rows
# further down, same column", wherever that is in the image.
#
# </details>
#
# ### Exercise: `rotary_2d` (25 minutes, 4 points)


# %% exercise="rotary_2d"
def rotary_2d(query, key, grid_size):
    """Turn queries and keys by the place of their patch.

    query:     (..., tokens, head_dim); the patches are the last of the tokens, row by row
    key:       of the same shape
    grid_size: (rows, columns) of the patches
    returns:   (query, key), turned, of their shape and dtype. What stands in front of the patches stays as it is.

    head_dim is cut into two halves: the first is turned by the row, the second by the column, both counted from 0.
    In each half, numbers 2i and 2i + 1 are a pair (a, b). It becomes (a cos t - b sin t, a sin t + b cos t), with
    t = place / 100 ** (i / pairs), where pairs = head_dim // 4 is the number of pairs of a half.

    >>> query = torch.tensor([[1.0, 0.0, 1.0, 0.0]]).repeat(4, 1)  # four patches: a pair for rows, one for columns
    >>> turned, _ = rotary_2d(query, query, (2, 2))
    >>> [round(number, 2) for number in turned[1].tolist()]  # row 0, column 1: the second pair, by 1 radian
    [1.0, 0.0, 0.54, 0.84]

    Raise ValueError, with the number in its text, where head_dim is not divisible by 4, and where there are fewer
    tokens than patches. Compute angles in float64, and take their cosines to the dtype of the query at the end.
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
# Tokens have another length than before? Then nothing was turned: look for the minus, and whether both terms use the
# same angle. Dot products depend on the place? Query and key are not turned by the same rule. All is right but the
# numbers? Look at the pairs: neighbors, or numbers half a half apart?
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# Make a table of angles first, with a row for each token and a column for each pair. What stands in the rows of the
# class token? Which two numbers of a patch do its angles come from?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# sizes that do not fit: ValueError
# speeds: one for each pair of a half
# angles of a patch: its row times the speeds, then its column times the speeds
# in front of them rows of zeros, one for each token that is no patch
# for query and key: every second number from 0 is a, from 1 is b; both turned; woven together again
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
# Here is what it does to attention. One and the same query stands in the middle of a grid, one and the same key
# everywhere. Without positions all dot products would be equal.

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
# A query like its keys looks at its neighbors first, without having learned anything, and the cross says that rows and
# columns are told apart. Other queries and keys make other patterns ("two to the right"), and every block can have its
# own.

# %% [markdown]
# ## Scores that stay small
#
# In a long training with a high learning rate, queries and keys may grow. Scores grow with both, the softmax becomes a
# choice of one key, its gradient vanishes, and the loss jumps or stops falling. The authors of a ViT with 22 billion
# parameters saw that happen, and put a LayerNorm on queries and keys (Dehghani et al. 2023): *QK-norm*. It goes over
# the numbers of one head, behind `split_heads`, and all heads share its weight and bias.

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
# A norm complains of the shape? It is made for head_dim numbers: apply it behind `split_heads`. The output is right
# with small tokens and wrong with large ones? One of the two is not normalized.
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
# **Predict first.** Multiply the rows of `qkv` that make queries and keys by 1, 3, 10. How large is the largest weight
# of a query, on average, with and without QK-norm?

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
# Without norms the weights become a choice of one. With them the size of `qkv` does not matter.
#
# **One more norm.** Many models of today have RMSNorm in the place of LayerNorm (Zhang and Sennrich 2019): it divides
# by the root mean square, and neither subtracts a mean nor has a bias. Torch has it as `nn.RMSNorm`; it goes into the
# experiment below.
#
# **And a kernel.** `F.scaled_dot_product_attention`, which you may call since lesson 04, computes what you wrote in
# lesson 03, block by block, and never stores the weights (Dao et al. 2022). How much that saves depends on the number
# of tokens:


# %% tags=["experiment"]
def written_out(query, key, value):
    """Attention of lesson 03."""
    weights = (query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])).softmax(dim=-1)
    return weights @ value


def seconds_of(attend, *tensors, repeats=5):
    """The quickest of so many calls."""
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
        slow, fast = seconds_of(written_out, *tensors), seconds_of(F.scaled_dot_product_attention, *tensors)
        stored = 4 * 8 * tokens**2 * 4 / 1e6
        print(f"{tokens:5} tokens: {slow / fast:4.1f} times as fast, and {stored:5.1f} MB of weights not stored")

# %% [markdown]
# ## Is any of it worth it?
#
# Six changes, each with a paper that shows a gain. Those models were large, and trained for weeks. Yours is small, and
# trained for a minute. What is a change worth *here*? The rule is lesson 07's: the same images, the same order, three
# seeds, differences with an interval.

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
    """One way to train. It reads BUDGET here and now: run this cell again after changing that."""

    change: str = ""
    config: ViTConfig = BASE
    learning_rate: float = 2e-3
    num_train: int = BUDGET.num_train
    epochs: int = BUDGET.epochs


# %% [markdown]
# A change is made to a finished model: parts are replaced or wrapped. What is replaced keeps its first weights, so that
# two arms begin alike as far as they can.


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
    """Lesson 03's attention with queries and keys that are turned."""

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
    """Train as in lesson 07; per cent of the validation images right at the end."""
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
# **Predict first, in the answer cell.** First each change where nothing asks for it. Which of the six helps, which does
# harm, and of which will you see nothing?

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
# Then three of them at home, where the trouble is that they were made for: a learning rate that is five times too high,
# four times as many blocks, two thousand images seen thirty times.

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
# Give both tables. For each change: do your runs show that it helps, that it harms, or nothing? Which would you put
# into the model that you train for an afternoon on a laptop, and what would have to be different for you to decide
# otherwise?
#
# ### BEGIN SOLUTION
# Our runs. Where nothing asks for it, the plain model has 46.9, 45.1 and 46.0 %, and against it registers make −0.4 ±
# 3.2, LayerScale +0.3 ± 3.2, DropPath −1.5 ± 3.7, QK-norm +1.1 ± 3.1 and RMSNorm +0.0 ± 3.1: five intervals with 0
# inside. Rotary positions in the place of learned ones make −1.9 ± 1.5: worse, though not by much. (A guess, and no
# result: sixteen patches are few enough to learn a table for them, and with rotary positions alone no token ever says
# where it is, only scores do. To test it, give the model both.)
#
# At home it is another picture. At five times the learning rate the plain model falls to 35.7, 36.7 and 39.0 %, and
# QK-norm brings back +5.7 ± 3.0. Sixteen blocks alone have 40.3, 38.0 and 40.0 %, which is *worse* than four blocks;
# with LayerScale they gain +10.4 ± 3.4 and are better than the four. With few images, 33.3, 35.1 and 35.2 %, DropPath
# makes +0.6 ± 3.3: nothing that three seeds show.
#
# So for an afternoon on a laptop we would keep four blocks plain, or take sixteen with LayerScale if there is time for
# them, and learned positions. QK-norm costs next to nothing and insures against a rate that is too high. Registers and
# DropPath wait for a larger model and a longer training. A table like this one says what a change is worth *here*.
#
# **Rubric.** One point: prediction, both tables, and for each of the nine differences whether its interval holds 0. One
# point: a choice that follows from the tables, and what would change it: more blocks, a higher rate, few images, a
# longer training.
# ### END SOLUTION

# %% [markdown]
# Here is our log of both tables, as differences with their intervals. Look at it when you have written your answer:
# most of what a paper adds to a large model leaves a small one as it is, and what was made for a trouble helps where
# the trouble is.
#
# ![Nine changes to a small ViT, each with the points of accuracy that it gains and a 95 %
# interval.](../figures/modern_changes.svg)

# %% [markdown]
# ## Learning without labels
#
# Labels are what costs most. A *masked autoencoder* (He et al. 2022) does without: hide three quarters of the patches,
# let the encoder read the rest, and train a small decoder to fill in the pixels of the hidden ones. Who can do that
# must know something about pictures. Later the decoder is thrown away, and the encoder is fine-tuned as in lesson 09.
#
# The trick is what is *not* done. Hidden patches are not set to zero, they are left out: the encoder gets a quarter of
# the tokens, so it is four times as fast, and a ViT does not mind, since attention takes any number of tokens. Each
# token carries its position, so it still knows where it belongs.
#
# **Predict first.** Why three quarters? What could a model do that hides only one patch in ten?

# %% [markdown]
# <details><summary>Written down? Then look.</summary>
#
# A single missing patch can be painted from its neighbors: continue the edges, mix the colors. Nothing has to be
# understood for that. With three quarters gone, most patches have no neighbor, and what helps is to know what kind of
# thing this is. (Texts are denser: there 15 % is enough.)
#
# </details>
#
# ### Exercise: `random_masking` (15 minutes, 4 points)


# %% exercise="random_masking"
def random_masking(tokens, mask_ratio, generator):
    """Hide patches of each image at random.

    tokens:     (batch, num_patches, embed_dim)
    mask_ratio: share of the patches to hide; round(mask_ratio * num_patches) of them are hidden in every image
    generator:  a torch.Generator on the CPU. Everything is drawn from it and from nothing else: torch.rand and
                torch.randperm take it as generator=generator.
    returns:    (visible, mask): (batch, kept, embed_dim), the tokens that are not hidden, in their order; and
                (batch, num_patches) of bool, True where a patch is hidden. Each image hides patches of its own.

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
# Images hide different numbers of patches? A coin was tossed for each of them; shuffle instead. All images hide the
# same ones? One order was drawn for all. What is left does not fit the mask? It came in the order that was drawn.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# How do you get a random order for *each row* of a table in one call? (Sort random numbers.) And which numbers does
# each of these orders hold, whatever was drawn?
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
# The decoder needs a token for each patch again. In the place of the hidden ones it gets one and the same learned
# vector, plus the position. With the mask that is two lines: `full[~mask]` are the places of the visible tokens, in the
# order in which `random_masking` gave them.


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
        """The patches as painted (batch, num_patches, 3 · patch_size²), and the mask."""
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
# The pixels are normalized, so a loss of 1 would be that of painting every hidden patch in the mean color. Here are
# eight validation images: as they are, what the encoder saw, and what the model painted.

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
# Blurred, and in the right places: where several pictures are possible, the squared error is lowest for their mean.
# Nobody told the model what a picture is of. He et al. train for 800 epochs on a million images, and reach with the
# fine-tuned encoder what a ViT of that size never had reached on these images alone.

# %% [markdown]
# ## A harder one, without points
#
# Take the encoder's tokens, averaged, as features, and fit `linear_probe` of lesson 09 on a thousand labeled images;
# compare with the tokens of an encoder that was never trained. How long do you have to train for a difference that an
# interval shows? Then change the mask ratio to 0.1 and look at both the loss and the probe: which of them tells you
# what the model has learned?

# %% [markdown]
# ## A bug drawn for you
#
# A seed draws a bug from the library of known mistakes, and puts it into a `rotary_2d` that you get to read.

# %%
SEED = 1  # any whole number: your own, or the one that your instructor gave you
suspect = hunt("rotary_2d", SEED)
suspect

# %% [markdown]
# Lengths, dot products of equal distance, a class token in front: find the experiment that shows it before you look for
# the line. Then repair a copy, and check it.

# %%
mended = None  # paste the program above this line, mend it, and put its name in the place of None
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
# evaluation mode, and measure on training images: that number is lower.
#
# </details>
# <details><summary>2. With rotary positions, does the order of patches still matter without any table?</summary>
#
# Yes: scores depend on the places that the rotation is given, in every block. Shuffle the patches and their scores
# change. (Shuffle the class token's registers and nothing changes.)
#
# </details>
# <details><summary>3. Why may the head still read token 0 when four registers have joined?</summary>
#
# They stand behind it. Whatever counts from the other end counts on: rotary positions take the *last* tokens for the
# patches, and maps of lesson 08 take the last columns.
#
# </details>
# <details><summary>4. LayerScale starts at 1e-4, and the loss hardly falls for a whole epoch. Broken?</summary>
#
# Perhaps not. Each block adds a ten-thousandth of its branch at first, and gamma has to grow before it counts. A deep
# model with many steps can afford that; for a short training start at 0.1, or leave it out.
#
# </details>
#
# **What you can do now:** you can read the code of a ViT of this year, you know what each part is for, and you ask of
# the next one what it is worth in *your* setting, with an interval.
#
# **Further reading.** Touvron et al. 2022, *DeiT III*: LayerScale and stochastic depth in a plain recipe. Siméoni et
# al. 2025, *DINOv3*: registers and rotary positions in a model without labels. Vryniotis 2021, *How to train
# state-of-the-art models using torchvision's latest primitives*: what each change to a ResNet was worth, one by one.

# %%
progress()
