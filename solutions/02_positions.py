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
# # 02 · Every word gets its place
#
# "Dog bites man" and "man bites dog" have the same words in another order. Does attention, which reads our sentence
# of patches, notice the difference? In this lesson you give each word its place, in three ways, and you add one token
# that belongs to no patch.
#
# **After this lesson you can**
# - show that attention does not see order, and give it order by positions;
# - write the sinusoidal table, and say what its dot products mean;
# - say what goes wrong when the patches of a picture are counted in one line, and mend it;
# - say why the ViT learns its positions, and what training makes of them;
# - put the class token and the positions together in the right order;
# - fit a model's positions to images of another size.
#
# <!-- table: tasks -->

# %%
import torch
import torch.nn.functional as F

from vit_course import check, hunt, keep, own, predict, progress, reveal
from vit_course.data import photo
from vit_course.plots import BLUE, GRAY, INK, ORANGE, new_figure
from vit_course.plots import show_images, show_matrix, show_patches
from vit_course.plots import show_position_similarity

# yours of lesson 01, or ours
PatchEmbedding, patchify, unpatchify = own("PatchEmbedding", "patchify", "unpatchify")

torch.manual_seed(2)
picture = F.interpolate(photo()[None].float() / 255, size=(288, 240), mode="area")
show_images(picture, titles=["the photo, in order"])

# %% [markdown]
# The output says whose parts you are using: yours of lesson 01, if they still pass their checks, or those of the
# course.
#
# ## Does attention see order?
#
# In lesson 03 you write attention. For now we borrow PyTorch's: each token is compared with all tokens by dot
# products, and receives a weighted mean of them. It reads 30 patches of the photo, once in order and once shuffled.

# %%
embedding = PatchEmbedding(in_channels=3, patch_size=48, embed_dim=32)
with torch.no_grad():
    # (1, 30, 32), made larger so that attention can tell them apart
    tokens = 5 * embedding(picture)
order = torch.randperm(30)
shuffled = tokens[:, order]
show_patches(patchify(picture, 48)[0, order], grid_size=(6, 5))

# %% [markdown]
# **Predict first.** Attention gives one vector for each token. Compared with those for the photo, will those for the
# shuffled patches be (a) different, (b) the same, in the shuffled order, or (c) the same, in the old order?

# %%
predict("shuffled-patches", "b", choices=("a", "b", "c"))


# %%
def read(tokens):
    # compares tokens with tokens, averages tokens
    return F.scaled_dot_product_attention(tokens, tokens, tokens)


moved = torch.allclose(read(shuffled), read(tokens)[:, order], atol=1e-5)
print("moved along with their tokens:", moved)
stayed = torch.allclose(read(shuffled), read(tokens), atol=1e-5)
reveal("shuffled-patches", "c" if stayed else "b" if moved else "a")
summaries = torch.cat([read(tokens).mean(dim=1), read(shuffled).mean(dim=1)])
show_matrix(
    summaries[:, :12], "photo, shuffled", "dimension of the mean over all tokens"
)

# %% [markdown]
# This is *permutation equivariance*: shuffle what goes in, and what comes out is shuffled in the same way, and
# otherwise unchanged. So the mean over all tokens is the same for both, and attention reads a *bag of words*.
#
# <details><summary>Why?</summary>
#
# The tokens are the rows of a matrix X, and a shuffle multiplies X by a matrix P that has a single 1 in each row and
# in each column. Attention computes A X, and the weights in A come from the dot products X Xᵀ, row by row. For the
# shuffled tokens the dot products are P X Xᵀ Pᵀ: the same numbers, rows and columns reordered. So the weights are
# reordered alike, to P A Pᵀ, and the result is P A Pᵀ P X = P A X, because Pᵀ P = I. Lesson 03 adds Linears to
# attention. They treat every token alike, so the equation stays true.
#
# </details>

# %% [markdown]
# ## A clock with many hands
#
# Give every position a vector of its own, as long as a token, and *add* it to the token that stands there. Its
# numbers should be about 1 in size, and change smoothly from place to place. A clock does this: its hands move at
# different speeds, and never jump. Take `embed_dim / 2` hands, i = 0, 1, 2, ... Each starts at twelve and turns
# clockwise:
#
# $$\text{angle}(\text{position}, i) = \frac{\text{position}}{10000^{\,2i/\text{embed\_dim}}}$$
#
# The tip of a hand of length 1 is at x = sin(angle), y = cos(angle): two numbers for each hand (Vaswani et al. 2017,
# section 3.5).
#
# ![A heat map of the sinusoidal position table, and three of its columns as waves of growing
# length.](../figures/positions_sine.svg)

# %% [markdown]
# ### Exercise: `sinusoidal_positions`


# %% exercise="sinusoidal_positions"
def sinusoidal_positions(num_positions, embed_dim):
    """The table of clock hands: one row for each position, sines and cosines
    alternating.

    Hand i has the angle position / 10000 ** (2 * i / embed_dim). Its sine stands in
    column 2 * i, its cosine in column 2 * i + 1. Positions are counted from 0.

    returns: (num_positions, embed_dim), float32; a new tensor in every call

    Raise ValueError, naming embed_dim, when it is odd:
    ValueError("embed_dim 7 is odd").

    By hand: with embed_dim 4 there are two hands, which turn by 1 and by 0.01 radians
    per step. So row 1 holds sin 1, cos 1, sin 0.01, cos 0.01.

    >>> sinusoidal_positions(2, 4)[0].tolist()
    [0.0, 1.0, 0.0, 1.0]
    >>> [round(number, 2) for number in sinusoidal_positions(2, 4)[1].tolist()]
    [0.84, 0.54, 0.01, 1.0]

    Allowed: anything in torch. Without a loop it takes about 7 lines.
    """
    ### BEGIN SOLUTION
    if embed_dim % 2:
        raise ValueError(f"embed_dim {embed_dim} is odd")
    position = torch.arange(num_positions)[:, None]  # (num_positions, 1)
    speed = 10000 ** (-torch.arange(0, embed_dim, 2) / embed_dim)  # (embed_dim / 2,)
    angles = position * speed  # (num_positions, embed_dim / 2)
    # (num_positions, embed_dim / 2, 2)
    waves = torch.stack([angles.sin(), angles.cos()], dim=-1)
    return waves.flatten(1)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# Print the row of position 0. Is it 0, 1, 0, 1? If it is 0, 0, ..., 1, 1, you have all the right numbers in the wrong
# columns. If it has other numbers in it, look at the angle of position 0.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# Which two shapes must positions and speeds have, so that their product has one entry for each pair of position and
# hand? (In lesson 00 a shape of (4, 1) was stretched to 4 rows of 6.) And where could a new last axis of length 2 help?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# refuse an odd embed_dim
# positions as a column; speeds, one for each hand, as a row
# angles = positions times speeds
# stack sines and cosines along a new last axis, then merge it with the axis of the hands
# ```
#
# </details>

# %% check="sinusoidal_positions" points=6
check("sinusoidal_positions", sinusoidal_positions)

# %% [markdown]
# Now look at your clock. With `embed_dim = 6` it has three hands for seconds, minutes and hours; their speeds are 1,
# 0.046 and 0.002 radians per step. Near which hour is the minute hand (hand 1) at position 30?


# %%
def show_clocks(table, positions):
    figure = new_figure(1.7 * len(positions), 1.9)
    rim = torch.linspace(0, 2 * torch.pi, 60)
    for axes, position in zip(
        figure.subplots(1, len(positions)), positions, strict=True
    ):
        axes.plot(1.1 * rim.sin(), 1.1 * rim.cos(), color=GRAY, linewidth=0.8)
        for hand, (x, y) in enumerate(table[position].unflatten(0, (-1, 2)).tolist()):
            length = 1 - 0.25 * hand
            color, width = (ORANGE, BLUE, INK)[hand], 1.5 * (1 + hand)
            axes.plot([0, length * x], [0, length * y], color=color, linewidth=width)
        axes.set_title(f"position {position}", fontsize=9)
        axes.set(aspect="equal", xlim=(-1.2, 1.2), ylim=(-1.2, 1.2))
        axes.axis("off")
    return figure


show_clocks(sinusoidal_positions(400, 6), positions=(0, 1, 2, 10, 30, 300))

# %% [markdown]
# From position 0 to 1 you see only the thinnest hand move. At 30 the minute hand is close to three o'clock. At 300 it
# is there again, and hand 0 is almost where it was: only the hour hand tells the two positions apart.
#
# Attention compares tokens by dot products. So what does the *dot product* of two positions say? Here it is for each
# of 64 positions with each.

# %%
table = sinusoidal_positions(64, 32)
show_matrix(
    table @ table.T / 16,
    "position",
    "position",
    title="dot products of positions, 1 on the diagonal",
)

# %% [markdown]
# Stripes along the diagonal: two positions that are five apart have the same dot product wherever they are. Only the
# closest neighbors stand out clearly; farther away different distances can give the same value. Nor can a dot product
# alone tell left from right. But attention multiplies by learned weights first, and *one* fixed matrix means "look
# five to the left" at every position. A [side note](/notes/positions.html)
# finds it.

# %% [markdown] question="why-sine-and-cosine" points=2
# ### Question: why both?
#
# Each hand stores a sine *and* a cosine. What would be lost if the table held sines only? Say something about one
# hand alone, and something about the stripes above. (cos a · cos b + sin a · sin b = cos(a − b) may help.)
#
# ### BEGIN SOLUTION
# With its sine alone a hand is ambiguous: two hands, one above and one below the middle, reach equally far to the
# right, so they have the same sine (sin a = sin(π − a)). Sine and cosine together give the tip of the hand, and each
# angle has its own tip.
#
# The dot product of two positions is, hand by hand, sin a · sin b + cos a · cos b = cos(a − b). It depends only on the
# difference of the angles, so only on the distance between the positions. With sines only, sin a · sin b would be left,
# which depends on where the two are: the stripes would be gone, and the rows of the table would not even have the same
# length.
#
# **Rubric.** 1 point: a sine alone does not tell the angle (two angles share it). 1 point: with both, the dot product
# depends on the distance alone, with the reason; without the cosine it does not.
# ### END SOLUTION

# %% [markdown]
# ## Images are not sentences
#
# A sentence has one direction, a picture has two. Take 6 rows of 8 patches, counted row by row: patch 10 stands in
# row 1, patch 11 to its right, and patch 18 just below it. Your table knows only these numbers; we call it the *1-D
# table*. By *similar* we mean the *cosine similarity*: the dot product divided by both lengths, 1 for the same
# direction. **Predict first:** is the position of patch 10 more similar to that of patch 18, or to that of patch 15
# at the right end of the same row?

# %%
predict("nearer-to-patch-10", "patch 18", choices=("patch 18", "patch 15"))

# %%
line = sinusoidal_positions(48, 64)
similar = {
    patch: F.cosine_similarity(line[10], line[patch], dim=0).item()
    for patch in (18, 15, 11)
}
for patch, similarity in similar.items():
    print(f"similarity of patches 10 and {patch}: {similarity:.2f}")
reveal("nearer-to-patch-10", "patch 18" if similar[18] > similar[15] else "patch 15")
show_position_similarity(line, grid_size=(6, 8))

# %% [markdown]
# Each small map belongs to one patch and shows which patches have a similar position. The bright spots lie *in a
# row*. And the last patch of a row has a bright neighbor at the start of the next row: to this table a picture is one
# long line.
#
# ![On a grid of patches, a 1-D position table finds only the left and right neighbors alike, a 2-D table those above
# and below too.](../figures/positions_2d.svg)
#
# The remedy is two clocks. The first half of the dimensions shows the row, the second half the column.

# %% [markdown]
# ### Exercise: `sinusoidal_positions_2d`


# %% exercise="sinusoidal_positions_2d"
def sinusoidal_positions_2d(grid_size, embed_dim):
    """A table for a grid of patches: half of the dimensions for the row, half for the
    column.

    The first embed_dim / 2 dimensions are sinusoidal_positions of the patch's row, the
    others those of its column. Patches come row by row, in the order of patchify.

    grid_size: (rows, columns)
    returns:   (rows * columns, embed_dim), float32; a new tensor in every call

    Each half needs pairs of sine and cosine. So raise ValueError, naming embed_dim,
    when 4 does not divide it: ValueError("embed_dim 6 is not divisible by 4").

    By hand: on a grid of 2 rows and 3 columns, patch 4 stands in row 1 and column 1,
    and patch 2 in row 0 and column 2.

    >>> [round(number, 2) for number in sinusoidal_positions_2d((2, 3), 8)[4].tolist()]
    [0.84, 0.54, 0.01, 1.0, 0.84, 0.54, 0.01, 1.0]
    >>> [round(number, 2) for number in sinusoidal_positions_2d((2, 3), 8)[2].tolist()]
    [0.0, 1.0, 0.0, 1.0, 0.91, -0.42, 0.02, 1.0]

    Allowed: anything in torch, and your own sinusoidal_positions. About 6 lines.
    """
    ### BEGIN SOLUTION
    if embed_dim % 4:
        raise ValueError(f"embed_dim {embed_dim} is not divisible by 4")
    rows, columns = grid_size
    of_row = sinusoidal_positions(rows, embed_dim // 2)[:, None].expand(-1, columns, -1)
    of_column = sinusoidal_positions(columns, embed_dim // 2)[None].expand(rows, -1, -1)
    # (rows * columns, embed_dim)
    return torch.cat([of_row, of_column], dim=-1).flatten(0, 1)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# Does the check say that patch 1 "tells row 1"? Then your table runs down the columns. Write the pairs (row, column)
# of the first few patches of a 2 × 3 grid on paper, and print the same from your code.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# The table of the rows has the shape (rows, embed_dim / 2). In the finished table each line of it is repeated `columns`
# times before the next line comes, and the table of the columns is repeated as a whole, `rows` times. Where do you put
# a new axis into each of the two, so that both can be expanded to (rows, columns, embed_dim / 2)?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# refuse an embed_dim that 4 does not divide
# the table of the rows, the same for each column; the table of the columns, the same for
#     each row
# put them side by side along the dimensions: (rows, columns, embed_dim)
# merge rows and columns into one axis
# ```
#
# </details>

# %% check="sinusoidal_positions_2d" points=5
check("sinusoidal_positions_2d", sinusoidal_positions_2d)

# %%
show_position_similarity(sinusoidal_positions_2d((6, 8), 64), grid_size=(6, 8))

# %% [markdown]
# Now each patch is similar to its neighbors on all four sides. Each map is a blob with four arms, because the
# similarity of the rows and that of the columns are added.

# %% [markdown]
# ## Positions that are learned
#
# The first ViT uses neither table. Its positions are *parameters*: a row of random numbers for each place, which
# training changes as it changes all other weights. A sentence can be of any length, and a formula gives every place a
# row. A ViT is usually trained on images of one size, so it needs a fixed number of rows, and the data can decide
# what is in them.
#
# Nothing in this list says that patch 18 lies below patch 10. What does training write into it? Here is a ViT that
# was trained on 45,000 small photos of 8 × 8 patches. **Predict first:** how similar are the positions of two patches
# side by side, on average? (Cosine similarity, from −1 to 1. Before the training it was 0, up to chance.)

# %%
predict("learned-neighbors", 0.8)

# %%
from vit_course.explore import explore_positions
from vit_course.trained import trained_vit

# (64, 96), without the class token's row
learned = F.normalize(trained_vit().model.positions.detach()[0, 1:], dim=1)
# row and column of one patch, row and column of another
similarity = (learned @ learned.T).reshape(8, 8, 8, 8)
for steps in (4, 2, 1):
    # both in one row, `steps` columns apart
    in_row = similarity.diagonal(0, 0, 2).diagonal(steps, 0, 1).mean()
    in_column = similarity.diagonal(0, 1, 3).diagonal(steps, 0, 1).mean()
    print(f"{steps} apart: in a row {in_row:+.2f}, in a column {in_column:+.2f}")
reveal("learned-neighbors", in_row, within=0.1)

# %% [markdown]
# Neighbors have become more similar than patches two or four steps apart, in a row and in a column: the list has
# learned that there are rows *and* columns. A likely reason is that neighboring patches often show parts of the same
# thing.
#
# Now compare column with column, for two patches of the same row. Half of the time this model saw a photo mirrored.
# Can you see that in its positions?

# %%
show_matrix(
    similarity.diagonal(0, 0, 2).mean(dim=-1),
    "column",
    "column",
    title="similarity within a row",
)

# %% [markdown]
# Two bright lines cross. The diagonal shows that near columns are similar. The other is clear near the corners, where
# it joins columns 0 and 7, and 1 and 6: pairs that a mirror exchanges. To this model the left edge is more like the
# right edge (0.34) than like the column beside it (0.18). The mirrored photos are the likely source.
#
# Compare all three tables, patch by patch; for example the corner in row 7, column 0.

# %%
tables = {
    "1-D": sinusoidal_positions(64, 96),
    "2-D": sinusoidal_positions_2d((8, 8), 96),
}
tables["learned"] = trained_vit().model.positions
explore_positions(tables, grid_size=(8, 8))

# %% [markdown]
# For this corner the 1-D table finds two places equally near: the patch to the right, and the last patch of the row
# above. The 2-D table finds the patches to the right and above. The learned table finds the *other* lower corner
# (0.32) and the patches above it (0.35) and beside it (0.30) first, as the mirror makes us expect. Its own neighbors
# come later: to the right (0.19) and above (0.14). Does the kind of positions matter, and why are they *added*? See
# [the side note](/notes/positions.html).

# %% [markdown]
# ## A token that belongs to no patch
#
# ![For each of two images the class token is put in front of the four tokens, and five positions are added to the
# five.](../figures/class_token.svg)
#
# From which token should a ViT read its *one* answer for a whole picture? The first ViT adds a token that stands for
# no patch: the *class token*. It starts as a parameter, the same for every picture. So all that it knows of a picture
# it has to collect from the patches, layer by layer. (Another way is to take the mean over all patches. Lesson 07
# compares the two.)
#
# Three steps, in this order: **expand, concatenate, add**.

# %% [markdown]
# ### Exercise: `add_class_token`


# %% exercise="add_class_token"
def add_class_token(tokens, class_token, positions):
    """Put the class token in front of every image's tokens, then add the positions.

    tokens:      (batch, tokens, embed_dim); do not change them
    class_token: (1, 1, embed_dim), one for all images
    positions:   (1, 1 + tokens, embed_dim); row 0 is the class token's
    returns:     (batch, 1 + tokens, embed_dim), dtype and device of tokens

    Raise ValueError, naming the number of rows, when positions does not have 1 + tokens
    rows: ValueError("positions has 4 rows, but there are 1 + 4 tokens").

    By hand: an image with the tokens 1 and 2, a class token 9, and the positions 10,
    20, 30.

    >>> tokens, class_token = torch.tensor([[[1.0], [2.0]]]), torch.tensor([[[9.0]]])
    >>> add_class_token(tokens, class_token,
    ...                 torch.tensor([[[10.0], [20.0], [30.0]]])).tolist()
    [[[19.0], [21.0], [32.0]]]

    Allowed: anything in torch; gradients must still reach all three. About 8 lines.
    """
    ### BEGIN SOLUTION
    batch, num_patches, embed_dim = tokens.shape
    if positions.shape[1] != 1 + num_patches:
        raise ValueError(
            f"positions has {positions.shape[1]} rows, "
            f"but there are 1 + {num_patches} tokens"
        )
    first = class_token.expand(batch, 1, embed_dim)  # a view: no number is copied
    # (batch, 1 + tokens, embed_dim)
    return torch.cat([first, tokens], dim=1) + positions
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# "Sizes of tensors must match except in dimension 1"? `torch.cat` does not broadcast. There is one class token, and a
# whole batch of images.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# For 8 images, which shape does the class token need before it can stand beside tokens of (8, 30, 32)? And why must you
# check the number of positions yourself? Try `positions` with a single row: torch does not complain.
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# refuse positions with a wrong number of rows
# expand the class token to (batch, 1, embed_dim)
# concatenate class token and tokens along the token axis
# add positions
# ```
#
# </details>

# %% check="add_class_token" points=4
check("add_class_token", add_class_token)

# %% [markdown]
# Back to the experiment that started this lesson: the photo and the shuffled photo, now with a class token in front
# and your 2-D positions. The positions stay in their order, and only the patches are shuffled. **Predict first:**
# does attention give the class token the same vector for both?

# %%
predict("with-positions", "the same", choices=("the same", "something else"))

# %%
class_token = torch.randn(1, 1, 32)
# (1, 31, 32)
positions = torch.cat([torch.zeros(1, 32), sinusoidal_positions_2d((6, 5), 32)])[None]
changes = []
for places in (torch.zeros(1, 31, 32), positions):
    photo_read = read(add_class_token(tokens, class_token, places))[0, 0]
    shuffled_read = read(add_class_token(shuffled, class_token, places))[0, 0]
    changes.append((shuffled_read - photo_read).abs())
reveal("with-positions", "the same" if changes[1].max() < 1e-5 else "something else")
title = "class token: photo against shuffled photo, absolute difference"
show_matrix(
    torch.stack(changes)[:, :12], "positions: without, with", "dimension", title
)

# %% [markdown]
# Row 0 is without positions, row 1 with them: now a model *can* tell "dog bites man" from "man bites dog". Whether it
# makes use of this is another question, which lesson 07 measures.
#
# The trained model from above contains more than attention: *norms* and *MLPs*, which you build in lesson 04. Both do
# the same to each token, wherever it stands. We set the patches' rows of its positions to 0. Can it still tell the
# photo from the shuffled photo?

# %%
vit, mixed = trained_vit(), torch.randperm(64)
tiny = F.interpolate(picture[:, :, :240], size=(32, 32), mode="area")
mean, std = (torch.tensor(each).reshape(3, 1, 1) for each in (vit.mean, vit.std))
tiny = (tiny - mean) / std
# the photo, and its patches shuffled
both = torch.cat([tiny, unpatchify(patchify(tiny, 4)[:, mixed], 4, (32, 32))])
with torch.no_grad():
    answers = {"with its positions": vit.model(both)}  # (2, 10)
    vit.model.positions[:, 1:] = 0
    answers["without"] = vit.model(both)
for name, (of_photo, of_shuffled) in answers.items():
    gap = (of_photo - of_shuffled).abs().max().item()
    print(f"{name}: the scores of the two differ by up to {gap:.2g}")

# %% [markdown]
# Without positions the difference is rounding. The whole model is as blind to order as attention is.

# %% [markdown]
# ## The same picture, more patches
#
# ![Positions of a 4 by 4 grid are resampled to 6 by 6, dimension by dimension, while the class token's row is carried
# over unchanged.](../figures/resize_positions.svg)
#
# A ViT is often trained on small images, which have few tokens and are cheap, and then used on larger ones. The
# patches keep their size, so there are more of them. With patches of 16 × 16 pixels, a model for images of 224 × 224
# has 1 + 14 · 14 = 197 positions. For 384 × 384 it needs 1 + 24 · 24 = 577.
#
# A learned list has no row for a new place. But neighboring patches have somewhat similar positions. So each
# dimension, laid out on the grid, is like a small, noisy picture, which can be enlarged (Dosovitskiy et al. 2021,
# section 3.2).
#
# ### Exercise: `resize_positions`


# %% exercise="resize_positions"
def resize_positions(positions, old_grid, new_grid):
    """Fit learned positions to another grid of patches.

    Each dimension of the patches' rows is a picture of old_grid; resample it to
    new_grid with F.interpolate: mode "bicubic", align_corners=False, antialias=False.
    The class token's row has no place on the grid and is copied unchanged.

    positions: (1, 1 + rows * columns, embed_dim); row 0 is the class token's; do not
               change them
    old_grid:  (rows, columns) of the patches that positions was learned for
    new_grid:  (rows, columns) wanted
    returns:   (1, 1 + new rows * new columns, embed_dim), same dtype and device;
               gradients flow through it

    Raise ValueError, naming the number of rows of positions, when it does not fit
    old_grid: ValueError("positions has 10 rows, not 1 + 2 * 4").

    By hand: the class token's row holds 9, the upper two patches 0, the lower two 8.
    Both columns are equal, so a third column between them looks the same.

    >>> positions = torch.tensor([[[9.0], [0.0], [0.0], [8.0], [8.0]]])
    >>> resize_positions(positions, (2, 2), (2, 3)).flatten().round(decimals=3).tolist()
    [9.0, 0.0, 0.0, 0.0, 8.0, 8.0, 8.0]

    Allowed: anything in torch. About 12 lines.
    """
    ### BEGIN SOLUTION
    rows, columns = old_grid
    if positions.shape[1] != 1 + rows * columns:
        raise ValueError(
            f"positions has {positions.shape[1]} rows, not 1 + {rows} * {columns}"
        )
    first, patches = positions[:, :1], positions[:, 1:]
    # (1, embed_dim, rows, columns)
    pictures = patches.transpose(1, 2).unflatten(2, (rows, columns))
    pictures = F.interpolate(
        pictures, size=new_grid, mode="bicubic", align_corners=False, antialias=False
    )
    # (1, new rows * new columns, embed_dim)
    patches = pictures.flatten(2).transpose(1, 2)
    return torch.cat([first, patches], dim=1)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# Right shape, wrong numbers, and "the same grid" passes? Then your first and last steps cancel, but the tensor between
# them is not a picture. Look at one dimension after your first reshape: is it smooth?
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# F.interpolate wants (batch, channels, height, width). Which axis of `positions` takes the place of the channels? Where
# does it stand, and can a reshape move it? (You know the answer from lesson 01.)
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# refuse positions that do not fit old_grid
# set the class token's row aside
# bring the dimensions in front of the patches; split the patches into rows and columns
# interpolate
# undo both steps, the last one first; put the class token's row back in front
# ```
#
# </details>

# %% check="resize_positions" points=5
check("resize_positions", resize_positions)

# %% [markdown]
# Let us resize your 2-D table from a grid of 6 × 8 to 9 × 12, as if it had been learned. The last map shows a
# tempting shortcut: stretch the 48 rows of the table to 108, as one long line.

# %%
grid = sinusoidal_positions_2d((6, 8), 64)
learned = torch.cat([torch.zeros(1, 64), grid])[None]  # (1, 1 + 48, 64)
resized = resize_positions(learned, old_grid=(6, 8), new_grid=(9, 12))
line = F.interpolate(grid.T[None], size=108, mode="linear")[0].T  # (108, 64)


def similarity_map(table, grid_size, row, column):
    products = F.cosine_similarity(table, table[row * grid_size[1] + column], dim=-1)
    picture = products.clamp(0, 1).square().reshape(1, 1, *grid_size)
    # every patch a square, all maps of one size
    return F.interpolate(picture, size=(108, 144))


maps = [
    similarity_map(sinusoidal_positions(48, 64), (6, 8), 2, 3),
    similarity_map(grid, (6, 8), 2, 3),
]
maps += [
    similarity_map(resized[0, 1:], (9, 12), 3, 5),
    similarity_map(line, (9, 12), 3, 5),
]
show_images(
    torch.cat(maps),
    titles=["1-D table", "2-D table", "2-D table, resized", "stretched as a line"],
    columns=4,
)

# %% [markdown]
# Each map shows how similar the positions are to that of one patch, from black to white. After resizing, the map of
# the 2-D table looks the same, with more squares. In the stretched line each old row of 8 fills 18 places, one and a
# half new rows.
#
# Libraries [do not agree](/notes/resizing.html) on the details of resizing.
# When you compare a model with a published number, resize as its authors did. All ways only guess at places that
# training never saw: after resizing, a ViT is usually fine-tuned at the new size.

# %% [markdown]
# ## Bug hunt: the test that passes
#
# Imagine that you find this function in a repository that many have copied. Its author tested it: from a grid to the
# same grid, every number comes back. But the function is wrong.


# %%
def resize_from_the_internet(positions, old_grid, new_grid):
    embed_dim = positions.shape[2]
    pictures = positions[:, 1:].reshape(1, embed_dim, *old_grid)
    pictures = F.interpolate(pictures, size=new_grid, mode="bicubic")
    return torch.cat([positions[:, :1], pictures.reshape(1, -1, embed_dim)], dim=1)


print(
    "the author's test:",
    torch.equal(resize_from_the_internet(learned, (6, 8), (6, 8)), learned),
)

# %% [markdown]
# Write the test that the author did not write: choose a `new_grid` for which the function gives other positions than
# yours.

# %%
new_grid = (6, 8)  # the author's choice; make a better one
theirs, yours = (
    resize(learned, (6, 8), new_grid)
    for resize in (resize_from_the_internet, resize_positions)
)
print("your test catches it:", not torch.allclose(theirs, yours, atol=1e-5))
show_position_similarity(theirs, new_grid)

# %% [markdown]
# A check can judge other people's code, too.

# %%
check("resize_positions", resize_from_the_internet)

# %% [markdown]
# Two reshapes lack their transposes: (patches, embed_dim) is cut as if the dimensions came first. The second reshape
# undoes the first as long as the grid stays the same, and the author tested nothing else. A good test looks where
# right and wrong *differ*. Almost any other grid will do, for example (9, 12): the maps no longer show a blob around
# each patch, but dots and stripes that repeat.
#
# A model with such positions loads, runs, and answers. If it is worse on larger pictures, it is easy to blame the
# pictures.

# %% [markdown]
# ## A second bug hunt, with a random bug
#
# Here is `add_class_token` by another author, with a bug from our library. The seed chooses the bug. Read the program
# slowly: the class token, its place in front, the positions, the gradients. Which of them is treated wrongly?

# %%
SEED = 1  # any whole number: your own, or the one that your instructor gave you
suspect = hunt("add_class_token", SEED)
suspect

# %% [markdown]
# Now look at the symptoms, on the example of the docstring: the tokens 1 and 2, a class token 9, and the positions 10,
# 20, 30. The right answer is [19, 21, 32]. For two images of 30 tokens, the right shape is (2, 31, 32).

# %% tags=["raises-exception"]
two_tokens = torch.tensor([[[1.0], [2.0]]])
three_positions = torch.tensor([[[10.0], [20.0], [30.0]]])
print(
    "for one image:",
    suspect(two_tokens, torch.tensor([[[9.0]]]), three_positions).flatten().tolist(),
)
result = suspect(tokens.expand(2, -1, -1), class_token, positions)
print("for two images, the shape:", tuple(result.shape))

# %% [markdown]
# Numbers that look right prove little: one of these bugs changes no number, but the class token never learns. Copy
# the program, repair it, and let the check decide.

# %%
mended = None  # paste the program above, fix it, and put its name in place of None
suspect.check(mended)

# %% [markdown]
# <details><summary>A hint that helps with every bug</summary>
#
# Follow the six numbers of the example with a pencil through every line. Then check the class token: does the program
# use the tensor that it was given, for every image, and can a gradient flow back into that tensor?
#
# </details>
# <details><summary>Given up?</summary>
#
# Let the check name it, and read the lines again with that name in mind: `suspect.check(suspect.program)`.
#
# </details>
#
# For more, `hunt("resize_positions", SEED)` puts a bug into `resize_positions`. Some of these change every number only
# a little, and the maps look right.

# %% [markdown]
# ## Keep what you wrote

# %%
keep(
    "sinusoidal_positions",
    "sinusoidal_positions_2d",
    "add_class_token",
    "resize_positions",
)

# %% [markdown]
# And the ViT of lesson 00 again, with what you have kept:

# %% tags=["experiment"]
from vit_course.whole_vit import learn_drawings, your_vit

learn_drawings(your_vit())

# %% [markdown]
# ## A harder one, without points
#
# For every distance k there is *one* matrix that turns row p of the table into row p + k, for all p. Find it by hand:
# what do sine and cosine of a sum have to do with those of its parts? (The matrix of least squares above is no help: in
# 64 rows the slow hands hardly move, so other matrices fit as well, up to rounding.) Build it, 16 × 16, for k = 3. With
# `table = sinusoidal_positions(300, 16).double()`, compare `table[:-3] @ matrix.T` with `table[3:]`: they differ by
# less than 0.00001. Your matrix only rotates pairs of numbers. Why does it follow that the dot product of two rows
# depends on their distance alone? In lesson 10 you use such rotations inside attention.

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. A ViT without positions takes the mean over its tokens. Which scores does it give to a shuffled
# photo?</summary>
#
# The same as to the photo, up to rounding. Every layer treats all tokens alike, and a mean does not depend on their
# order.
#
# </details>
# <details><summary>2. <code>embed_dim</code> is 64. How many hands has the 1-D clock? How many hands of the 2-D table
# stand for the row?</summary>
#
# 32 hands in the 1-D table. In the 2-D table 32 dimensions are left for the row: 16 hands.
#
# </details>
# <details><summary>3. For one image, a friend writes <code>torch.cat([class_token, tokens + positions], dim=1)</code>,
# with a position for each patch. Is that wrong?</summary>
#
# No. The class token's position is only ever added to the class token, so the class token can simply learn the sum of
# both. If you load published weights with 1 + tokens rows (most have them), add row 0 to the class token first.
#
# </details>
# <details><summary>4. Why can a ViT have learned positions, when a Transformer for sentences had a formula? And what
# did training write into ours?</summary>
#
# Its images all have one size, so it needs a fixed number of rows, and the data can decide what is in them. Training
# made neighbors similar, along rows and along columns, and it made mirror images similar.
#
# </details>
# <details><summary>5. Why is the class token's row left alone when positions are resized?</summary>
#
# It has no place in the picture, so it has no neighbors to be mixed with.
#
# </details>
#
# ---
#
# **Next lesson:** `03_attention`, in which the tokens exchange what they know.
#
# **Further reading.** Vaswani et al. 2017, *Attention Is All You Need*, section 3.5: the sinusoidal table. Dosovitskiy
# et al. 2021, *An Image is Worth 16x16 Words*, appendix D.4: what learned positions look like, and how little the
# choice mattered there. Su et al. 2021, *RoFormer*: positions as rotations of query and key, which many models of today
# use, and which you build in lesson 10.

# %%
progress()
