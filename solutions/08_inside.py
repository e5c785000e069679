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
# # 08 · A look inside
#
# The model says *star*, and it is right. But did it look at the star? Here you draw where its heads look, and test
# what such pictures are worth.
#
# **After this lesson you can**
# - see where every head of every block looks, and follow attention through the whole model with rollout;
# - measure whether heads look near or far, and report what you find even when it differs from the textbook;
# - use hooks to read intermediate results from any PyTorch model, and leave the model as it was;
# - test whether an attention map means anything.
#
# <!-- table: tasks -->

# %%
import itertools
import os
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F

from vit_course import VisionTransformer, ViTConfig, initialise
from vit_course import check, hunt, own, predict, progress, record, reveal
from vit_course.data import Augmentation, cats, load_dataset, own_picture, photo
from vit_course.data import shapes, train_validation_split
from vit_course.plots import draw_matrix, new_figure, show_images
from vit_course.plots import show_position_similarity
from vit_course.plots_attention import plot_attention_distance, save_every_head
from vit_course.plots_attention import show_every_head, show_filters, show_lit
from vit_course.plots_attention import show_maps
from vit_course.trained import trained_vit
from vit_course.training import TrainingSettings, bar, fit, load_model

MyViT = own("VisionTransformer")  # yours of lesson 05, or the course's

# %% [markdown]
# ## A model to look into
#
# Drawings of ten shapes are enough: a small model learns them in a minute, and we know for certain which part of each
# picture decides its class.


# %%
def new_model(config):
    """A model of your class, with weights initialized as in the first ViT."""
    model = MyViT(config)
    # the course's own model has done this already
    if not isinstance(model, VisionTransformer):
        model.config = config
        initialise(model)
    return model


torch.manual_seed(0)
config = ViTConfig(
    image_size=32, patch_size=4, embed_dim=64, depth=3, num_heads=4, mlp_ratio=2.0
)
model = new_model(config)
# for later: what training makes of them
first_filters = model.patch_embedding.projection.weight.detach().clone()
train, pictures = train_validation_split(shapes(7000), 1000)
classes = pictures.classes
show_images(
    pictures.images[:8], titles=[classes[label] for label in pictures.labels[:8]]
)

# %% [markdown]
# **The training takes about a minute on one core, six or seven on a busy machine.** At the end you look into your
# own model of lesson 07.

# %% tags=["experiment"]
torch.set_num_threads(1)  # enough for so small a model, and safer on a busy machine
# a rehearsal: everything runs, little is learned
epochs = 1 if os.environ.get("VIT_COURSE_BUDGET") == "small" else 6
print(f"{epochs} epochs of 6,000 drawings:")
shifted = Augmentation(max_shift=2)
# batches of 64; Muon (lesson 07) trains the blocks' matrices, AdamW the rest
settings = TrainingSettings(
    epochs, 64, learning_rate=2e-3, muon_learning_rate=0.02, augmentation=shifted
)
history = fit(model, train, pictures, settings)
print(f"{sum(history.seconds):.0f} seconds of training")
print(
    f"right on {history.validation_accuracy[-1]:.1%} "
    "of 1,000 drawings that it has not seen"
)

# %% [markdown]
# ## Every head of every block
#
# `record(model, images)` runs a model and returns its intermediate results by name, the attention weights of each
# block among them. Four heads in three blocks make twelve tables of 65 × 65 weights for one picture. Row 0 of each is
# the class token's: how it distributes its attention over itself and 64 patches. Without the first entry that row
# *is* a little picture, 8 × 8.


# %%
def look(images, somebody=None):
    """Logits, and every block's weights: (batch, num_heads, tokens, tokens) each."""
    with torch.no_grad():
        somebody = (somebody or model).eval()
        stages = record(somebody, pictures.normalize(images))
    return stages["logits"], [
        stages[f"blocks.{number}.attention.weights"] for number in range(config.depth)
    ]


def class_token_maps(layer):
    """(batch, num_heads, rows, columns): what the class token gives to each patch."""
    return layer[:, :, 0, 1:].unflatten(-1, config.grid_size)


print([tuple(layer.shape) for layer in look(pictures.images[:2])[1]])

# %% [markdown]
# In block 0 the class token knows nothing about this picture yet. Where do you expect it to look: everywhere equally,
# at the shape, or at the background?

# %%
number = 23
image = pictures.images[number]
logits, weights = look(image[None])
print(
    f"a {classes[pictures.labels[number]]}; the model says: {classes[logits.argmax()]}"
)
for block, layer in enumerate(weights):
    kept = ", ".join(f"{share:.0%}" for share in layer[0, :, 0, 0])
    # a number for each head
    print(f"block {block}: the class token gives itself {kept}")
show_every_head(image, [class_token_maps(layer)[0] for layer in weights])

# %% [markdown]
# Brighter means more attention; each map is scaled to its own maximum. Change `number` a few times. If you have given
# a head a name, does it fit the next picture, or did you see a pattern because you wanted one? The next cell saves
# the pictures in a folder, for a report.

# %% tags=["experiment"]
files = save_every_head(
    image, [class_token_maps(layer)[0] for layer in weights], "heads"
)
print(f"{len(files)} pictures in {files[0].parent}/, the first is {files[0].name}")

# %% [markdown]
# ## All layers at once
#
# Which of the twelve maps is *the* answer? None. By the last block, the token of patch 9 may hold a good deal of
# patch 20. Following attention through all blocks is called **rollout** (Abnar and Zuidema 2020).
#
# ![Rollout in small numbers: to the mean attention of each of two blocks the identity is added, the sum is halved,
# and the two results are multiplied, the later block on the left.](../figures/rollout.svg)
#
# Attention adds a mixture of tokens, and the residual connection passes the token itself on. Rollout gives both the
# same weight, one half each. In the figure, the class token gives patch A no weight in the last block, and still a
# quarter of it comes from A in the end. Find the two paths by which it got there.
#
# ### Exercise: `attention_rollout`


# %% exercise="attention_rollout"
def attention_rollout(weights):
    """How much of each output token comes from each input token, if attention and
    residuals did nothing but mix them.

    In each layer: take the mean over the heads, add the identity for the residual
    connection, and divide each row by its sum. Multiply the tables of all layers so
    that each layer mixes what the layers before it have mixed. As in lesson 03, rows
    are queries, so row i of the result says what output token i is made of.

    weights: a list with a tensor for each layer, first layer first: (batch,
             num_heads, tokens, tokens); do not change them
    returns: (batch, tokens, tokens), rows sum to 1, of the same dtype and on the same
             device

    By hand: one head, two tokens. In layer 0 both look at token 1; in layer 1 each
    looks at token 0. Layer 0 becomes [[0.5, 0.5], [0, 1]], layer 1 becomes [[1, 0],
    [0.5, 0.5]], and together:

    >>> first, second = (torch.tensor([[0.0, 1.0], [0.0, 1.0]]),
    ...                  torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    >>> attention_rollout([first[None, None], second[None, None]])
    tensor([[[0.5000, 0.5000],
             [0.2500, 0.7500]]])

    Raise ValueError when the list is empty. Allowed: everything. About 9 lines.
    """
    ### BEGIN SOLUTION
    if len(weights) == 0:
        raise ValueError("attention_rollout needs at least one layer")
    rollout = None
    for layer in weights:
        mean = layer.mean(dim=1)  # (batch, tokens, tokens)
        mixed = mean + torch.eye(mean.shape[-1], dtype=mean.dtype, device=mean.device)
        mixed = mixed / mixed.sum(dim=-1, keepdim=True)
        rollout = mixed if rollout is None else mixed @ rollout
    return rollout
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# Rows that sum to 2, 4 or 8? Something doubles in each layer. All right for one layer and wrong for two? Then look at
# the product: the order of the factors matters. Wrong dtype? Find the line that makes a float32 on the way.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# After layer 0 you know what each token is made of, one row for each token. Layer 1 mixes *those rows*. Suppose that in
# layer 1 token 0 takes 0.3 of token 4. Which table holds the 0.3, and from which table do you take row 4?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# no layers: ValueError
# start with the identity: nothing is mixed yet
# for each layer, first to last:
#     mean over the heads; add the identity; divide every row by its sum
#     result = this layer's table @ result
# ```
#
# </details>

# %% check="attention_rollout" points=3
check("attention_rollout", attention_rollout)

# %% [markdown]
# **Predict first.** Row 0 of the rollout says what the class token is made of. We compute it after one, two and all
# three blocks. As we add blocks, does the light gather on a few patches, or does it spread?

# %%
predict("rollout", "it gathers", choices=("it gathers", "it spreads"))

# %%
maps = {}
for depth in range(1, config.depth + 1):
    rollout = attention_rollout(weights[:depth])
    maps[f"rollout, {depth} block{'s' if depth > 1 else ''}"] = rollout[
        0, 0, 1:
    ].reshape(config.grid_size)
brightest = [(seen / seen.sum()).max() for seen in maps.values()]
reveal("rollout", "it spreads" if brightest[-1] < brightest[0] else "it gathers")
maps["last block alone"] = class_token_maps(weights[-1])[0].mean(dim=0)
show_maps(image, maps)

# %% [markdown]
# <details><summary>Our run</summary>
#
# It spreads: the brightest patch has a smaller share of the light, which covers the whole shape. (The soft edges come
# from the plotting: the map has only 8 × 8 values.) Part of this is to be expected: row 0 of the product is a
# weighted mean of the rows of many tokens, and these look at different patches. It need not happen: a last block that
# looks at one patch only would gather the light there.
#
# </details>
#
# Rollout leaves a good deal out: values, MLPs, and the fact that one head may matter more than another. And it counts
# attention and the token itself as one half each. Compare lengths: is what attention adds to a token about as long as
# the token, longer, or shorter?


# %%
def attention_shares(images):
    """For each block, attention's share in the length of class token and patches."""
    with torch.no_grad():
        stages = record(model.eval(), pictures.normalize(images))
    token, shares = stages["embedding"], []
    for block in range(config.depth):
        added = stages[f"blocks.{block}.attention"].norm(dim=-1)  # (images, tokens)
        share = added / (added + token.norm(dim=-1))
        shares.append((share[:, 0].mean().item(), share[:, 1:].mean().item()))
        token = stages[f"blocks.{block}.output"]
    return shares


for block, (of_class, of_patches) in enumerate(attention_shares(pictures.images[:200])):
    print(
        f"block {block}: attention's share is {of_class:.0%} for the class token, "
        f"{of_patches:.0%} for the patches"
    )

# %% [markdown]
# Rollout takes 50 % for all. In our three runs attention's share is 95 to 97 % for the class token in block 0, which
# begins as a very short vector. In the later blocks the shares are 36 to 45 % (`benchmarks/results/inside.json`,
# heads). Lengths are a crude measure; Kobayashi et al. (2020) measure the length of what each token really
# contributes. So rollout is a useful way to combine maps, not an exact account of what the model computes.

# %% [markdown]
# ## How far do heads look?
#
# In a layer of 3 × 3 convolutions each place sees itself and its eight neighbors. A head may look anywhere. Does it?
# The first ViT paper measured, for each query patch, the distance to all patches, averaged with the attention
# weights.
#
# ![A query patch on a grid of 4 by 6 patches looks at three patches; each weight times the distance in pixels, added
# up, gives 20.8 pixels.](../figures/attention_distance.svg)
#
# They found near and far heads side by side in the first blocks, and mostly far ones in the deep blocks (Dosovitskiy
# et al. 2021, figure 7). This is often summed up as *from local to global*.
#
# **Predict first.** A head that looks at all patches equally has a mean distance, too. How large will it be on our
# pictures, which are 32 pixels wide and high?

# %%
predict("all-patches-alike", 16)  # pixels

# %% [markdown]
# ### Exercise: `mean_attention_distance`


# %% exercise="mean_attention_distance"
def mean_attention_distance(weights, grid_size, patch_size):
    """How far each head of one layer looks, in pixels: the mean over images and query
    patches.

    For one query patch: the sum over all patches of weight times distance. Distances
    are Euclidean (a straight line) between the centers of two patches. The patches come
    row by row, as patchify cuts them.

    weights:    (batch, num_heads, tokens, tokens), rows are queries and sum to 1; do
                not change them. There are rows * columns tokens, or one more: then a
                class token comes first. It has no place in the picture, so leave it
                out, both as a query and as a key, and then divide each row by its sum
                so that it sums to 1 again.
    grid_size:  (rows, columns) of patches
    patch_size: side of a patch in pixels
    returns:    (num_heads,), of the dtype of the weights and on their device

    By hand: one row of two patches, 16 pixels each. The first gives half of its
    attention to the other, which is 0.5 * 16 = 8 pixels; the second looks at itself,
    which is 0. Their mean is 4.

    >>> mean_attention_distance(torch.tensor([[[[0.5, 0.5], [0.0, 1.0]]]]), (1, 2), 16)
    tensor([4.])

    If the number of tokens is neither rows * columns nor one more, raise ValueError,
    and name the numbers of tokens, rows and columns in its text. Allowed: everything;
    torch.cdist may help. About 14 lines.
    """
    ### BEGIN SOLUTION
    rows, columns = grid_size
    tokens, num_patches = weights.shape[-1], rows * columns
    if tokens not in (num_patches, num_patches + 1):
        raise ValueError(
            f"{tokens} tokens are neither {rows} x {columns} patches nor one more"
        )
    among_patches = weights[..., -num_patches:, -num_patches:]
    among_patches = among_patches / among_patches.sum(dim=-1, keepdim=True)
    patches = torch.arange(num_patches, device=weights.device)
    centers = patch_size * torch.stack(
        [patches // columns, patches % columns], dim=1
    ).to(weights.dtype)
    distances = torch.cdist(centers, centers)  # (num_patches, num_patches), in pixels
    return (among_patches * distances).sum(dim=-1).mean(dim=(0, 2))  # (num_heads,)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# Right for neighbors in the same row or column, wrong on a diagonal? Then check your distance formula. Right without a
# class token and too short with one? Once the class token is left out, the rows no longer sum to 1. One number for each
# image? Count what your mean runs over.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# Patch 7 on a grid with 5 columns: in which row does it stand, and in which column? Which two operators of Python tell
# you, and do they need `rows` or `columns`?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# as many tokens as patches, or one more? else ValueError
# keep the last rows * columns tokens on both token axes; rows back to a sum of 1
# row and column of every patch; table of distances between all pairs, in pixels
# weights times distances: sum over the keys, mean over queries and images
# ```
#
# </details>

# %% check="mean_attention_distance" points=3
check("mean_attention_distance", mean_attention_distance)

# %% [markdown]
# Now we measure the trained model and a fresh one, with random weights. The dashed line shows a head that looks at
# all patches equally.
#
# A small distance alone does not prove that a head looks at neighbors. If every query looked at the patch in the
# middle of the picture, the distance would be only 12.4 pixels, although nobody looks near. So the measurement needs
# a control: in each picture every query gets the *same* attention, the average over all queries. The further a head
# lies *below* its control, the more local it is.


# %%
def averaged(layer):
    """The control: attention among patches, every query with the average's weights."""
    patches = layer[..., -config.num_patches :, -config.num_patches :]
    return patches.mean(dim=2, keepdim=True).expand_as(patches)


def show_distances(images, trained, fresh):
    """How far heads look: trained, fresh, and the trained model's control."""
    sizes, count = (config.grid_size, config.patch_size), config.num_patches
    layers = {"trained": look(images, trained)[1]}
    layers["its control"] = [averaged(each) for each in layers["trained"]]
    layers["fresh"] = look(images, fresh)[1]
    distances = {
        name: [mean_attention_distance(each, *sizes) for each in group]
        for name, group in layers.items()
    }
    blocks = zip(distances["trained"], distances["its control"], strict=True)
    for block, pairs in enumerate(blocks):
        heads = zip(*pairs, strict=True)
        heads = [f"{head:.1f} (control {same:.1f})" for head, same in heads]
        print(f"block {block}: {', '.join(heads)}")
    even = torch.full((1, 1, count, count), 1 / count)
    everywhere = mean_attention_distance(even, *sizes)
    return plot_attention_distance(distances, everywhere.item())


torch.manual_seed(1)
fresh = new_model(config)
count = config.num_patches
uniform = torch.full((1, 1, count, count), 1 / count)
everywhere = mean_attention_distance(uniform, config.grid_size, config.patch_size)
reveal("all-patches-alike", everywhere.item(), within=2)
show_distances(pictures.images[:200], model, fresh)

# %% [markdown]
# In our three runs no head of any block is local: no head looks more than 1.7 pixels nearer than its own control; 31
# of 36 are within one pixel of it. Equal attention to the neighbors alone would be about 4.7 pixels. If a head lies
# below the line, it is mostly because all queries look at the same thing. We do not find *from local to global* here,
# and an honest report says so.
#
# What is different from the paper? Nearly everything: depth, grid, data, the length of the training.

# %% [markdown] question="local-or-global" points=2
# ### Question: why so far?
#
# Choose **one** thing about our small model (its data, its depth, its grid, the length of its training, the start of
# its positions, ...) that you think keeps its heads from looking near. Write down why you think so, and an experiment
# that could prove you wrong. What do you change, what do you keep, what do you measure, how many seeds, and which
# result would make you give the idea up?
#
# ### BEGIN SOLUTION
# For instance the data. One shape stands on an empty ground, so a patch learns little from its neighbors and much from
# other parts of the shape; in photos, texture and edges make neighboring patches informative. Experiment: the same
# model, settings and number of steps, once on the drawings and once on CIFAR-10 (or on drawings with a small pattern
# that decides the class), three seeds each; measure on 200 held-out pictures how far the heads of block 0 lie below
# their controls. If those on CIFAR-10 lie no further below than those on drawings, within the spread of the seeds, the
# idea is wrong.
#
# **Rubric.** 1 point: one difference, with a mechanism by which it could act on the distance (not only "it is
# smaller"). 1 point: a fair experiment: one thing changed, the rest kept, the distance measured, two seeds or more, and
# a result named that would refute the idea.
# ### END SOLUTION

# %% [markdown]
# Have you written your idea down? [A side note](/notes/near_and_far.html) has
# three more models to set beside it: torchvision's ViT-B/16, one trained for 40 minutes on photos, and ours,
# whose positions start with standard deviation 0.5.

# %% [markdown]
# ## What the first layers have learned
#
# Two tables of weights can be looked at directly. First the positions. They began as noise, and the model never gets
# the row and column of a patch. Each small map belongs to one patch, and shows how similar its position is to all the
# others. Will a patch in the middle and one in the corner have the same map?

# %%
show_position_similarity(model.positions.detach(), config.grid_size)

# %% [markdown]
# After six epochs, the positions of neighboring patches are similar. All positions along the border are similar to
# one another, too: to know whether a patch is *inside* may help more than to know its row. Then the model has learned
# a property of our drawings, which mostly lie in the middle.

# %% [markdown]
# Now the filters. Each of the 64 numbers of a token says how well its patch matches one learned pattern of 4 × 4
# pixels. Here are the principal components of these patterns, the strongest first.

# %% tags=["experiment"]
from vit_course.interpret import patch_filters

trained_filters = model.patch_embedding.projection.weight.detach()
cosine = F.cosine_similarity(first_filters.flatten(), trained_filters.flatten(), dim=0)
print(f"cosine of the filters before and after training: {cosine:.2f}")
filters, shares = patch_filters(trained_filters, config.in_channels, count=14)
show_filters(filters, titles=[f"{share:.0%}" for share in shares], columns=7)

# %% [markdown]
# Noise, for the most part; in the paper's models this picture shows waves and edges. The printed cosine says how
# little six epochs have turned our filters. They did not need to change: a random projection from 48 numbers to 64
# keeps everything that is in a patch. A first layer that looks untrained does not prove that a model is bad.

# %% [markdown]
# ## Reading what forward does not return
#
# So far `record` did the work. How does it read the weights? `forward` takes images and gives logits, in *your*
# `VisionTransformer` and in most models that you will use at work, whose code you cannot edit.
#
# PyTorch has an answer: a **hook**. You register a function with any module inside the model, and PyTorch calls it
# each time that this module runs. Registering gives you a handle; with it you remove the hook again.

# %%
print("without changing a line of the model:")
handles = [
    block.register_forward_hook(
        lambda module, inputs, output: print(
            f"  {type(module).__name__}: {output.norm(dim=-1).mean():.1f}"
        )
    )
    for block in model.blocks
]
try:
    model(pictures.normalize(pictures.images[:2]))
finally:  # a hook that is not removed runs in every later call
    for handle in handles:
        handle.remove()

# %% [markdown]
# There is one line for each block: the mean length of its tokens. PyTorch has two kinds of hooks around a forward.
# `register_forward_hook` calls you with (module, inputs, output) once the module is done; `register_forward_pre_hook`
# with (module, inputs) before it begins. `inputs` is a tuple of the positional arguments. If your function returns
# something, it takes the place of the output or of the input. To listen only, return nothing.
#
# A block calls its attention without `return_weights=True`, so no output holds the weights. But you can keep the
# input of the attention, and then call the attention again yourself: `attention(x, return_weights=True)`, as you
# built it in lesson 03. If your hook function itself calls the module that it is hooked to, what happens?
#
# <details><summary>Write down your answer, then open this.</summary>
#
# The hook is called again, which calls the module, which calls the hook ... Python allows only so many calls inside
# one another, and then there is a `RecursionError`. So keep the input, remove the hook, and call the module
# afterward.
#
# </details>

# %% [markdown]
# ## From a row of weights to a map
#
# Now you write a function that gets the class token's map from a model of yours, without `record`, and leaves the
# model as it was. The model may be in the middle of its training: switch to evaluation mode while you look, and
# afterward put each module back into its own mode. No gradient should be kept and no hook left behind, even after an
# error.
#
# ### Exercise: `predict_with_attention`


# %% exercise="predict_with_attention"
def predict_with_attention(model, image):
    """What a model says about one image, and where its class token looked in the last
    block.

    model:   a VisionTransformer as you built it in lesson 05, in training or in
             evaluation mode. It has patch_embedding (with a patch_size), class_token,
             positions, blocks, norm, head; each block has norm1, attention, norm2, mlp.
             model(images) takes images and nothing else, and block.attention(x,
             return_weights=True) gives (output, weights).
    image:   (channels, height, width), normalized already
    returns: probabilities (num_classes,), and a map (rows, columns): the class token's
             attention to the patches in the last block, the mean over the heads,
             divided by its sum; both of the dtype and on the device of the model

    Ask in evaluation mode and without gradients. Afterward, and after an error too, the
    model is as it was: each module in its own mode again, no hook left, nothing frozen.
    Listening with a hook is one way; walking through the parts by hand is another.

    >>> small = ViTConfig(image_size=(8, 12), patch_size=4, embed_dim=6, depth=2,
    ...                   num_heads=2, num_classes=5)
    >>> probabilities, seen = predict_with_attention(
    ...     VisionTransformer(small), torch.zeros(3, 8, 12))
    >>> tuple(probabilities.shape), tuple(seen.shape)  # 2 rows and 3 columns of patches
    ((5,), (2, 3))
    >>> round(probabilities.sum().item(), 4), round(seen.sum().item(), 4)
    (1.0, 1.0)

    Allowed: everything. About 20 lines.
    """
    ### BEGIN SOLUTION
    attention = model.blocks[-1].attention
    heard = []
    handle = attention.register_forward_pre_hook(
        lambda module, inputs: heard.append(inputs[0])
    )
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            logits = model(image[None])  # (1, num_classes)
            handle.remove()
            # (1, num_heads, tokens, tokens)
            _, weights = attention(heard[0], return_weights=True)
    finally:  # after an error, too
        handle.remove()
        for module, mode in modes.items():
            module.training = mode
    size = model.patch_embedding.patch_size
    seen = weights[0, :, 0, 1:].mean(dim=0)  # (num_patches,)
    seen = (seen / seen.sum()).reshape(image.shape[1] // size, image.shape[2] // size)
    return logits[0].softmax(dim=0), seen
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# "RecursionError"? Your hook calls the module that it belongs to. A map that sums to 0.98? The class token's own share
# is missing, since it is not on the map: divide by the sum. Right in evaluation mode only? Then dropout was on when you
# asked. One axis too many? You gave the model a batch of one.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# Write down four things that you change: the modes, a hook, whether torch records gradients, and an axis of the image.
# Where in your code is each of them undone, also when the model raises an error?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# an empty list; a pre-hook on the last block's attention appends the input to it
# remember the mode of every module
# try, in evaluation mode and without gradients:
#     logits of a batch of one; remove the hook
#     call the attention again with the stored input, and ask for the weights this time
# finally: remove the hook, if it is still there; every module gets its own mode back
# weights: image 0, all heads, row 0, without column 0; mean over heads; divide by the
#     sum; into rows and columns
# softmax of the logits
# ```
#
# </details>

# %% check="predict_with_attention" points=4
check("predict_with_attention", predict_with_attention)

# %%
chosen, titles, maps = [23, 24, 29, 44, 49, 55], [], []
for image in pictures.images[chosen]:
    probabilities, seen = predict_with_attention(
        model, pictures.normalize(image[None])[0]
    )
    titles.append(f"{classes[probabilities.argmax()]}, {probabilities.max():.0%}")
    maps.append(seen)
show_lit(pictures.images[chosen], torch.stack(maps), titles)

# %% [markdown]
# Would you have recognized the shape from the lit patches alone? This is only the last block; the blocks before it
# have already collected information.

# %% [markdown]
# ## A bug hunt, where a seed chooses the bug
#
# Much can go wrong here: a mode, a hook, a row, a sum. The seed chooses one of the course's known mistakes.

# %%
SEED = 7  # any whole number: your own, or the one that your instructor gave you
suspect = hunt("predict_with_attention", SEED)
suspect

# %% [markdown]
# Will you see the bug on the map, in the probabilities, or only in the model afterward? The next cell uses it on
# three drawings, with the model in training mode.

# %% tags=["raises-exception"]
model.train()
three = pictures.normalize(pictures.images[chosen[:3]])
told = [suspect(model, image) for image in three]
# private: torch has no public list of hooks
listeners = model.blocks[-1].attention._forward_pre_hooks
print("still training:", model.training, " hooks left:", len(listeners))
for shares, seen in told:
    print(f"sums: {shares.sum().item():.3f}, {seen.sum().item():.3f}")
listeners.clear()
both = torch.stack([seen for _, seen in told] + maps[:3])
show_lit(pictures.images[chosen[:3] * 2], both, ["the suspect's"] * 3 + ["yours"] * 3)

# %% [markdown]
# Same maps, sums of 1, and nothing left behind? Then try a picture that is wider than tall, or a model with dropout.
# Repair a copy, and check it.

# %%
mended = None  # paste the program above, fix it, and put its name in place of None
suspect.check(mended)

# %% [markdown]
# <details><summary>A hint, whatever the bug</summary>
#
# Four things are changed and have to be undone: the modes, a hook, the recording of gradients, an axis. Find the line
# that undoes each. For the map, say for every index which axis it picks from (heads, queries, keys), and which remain.
#
# </details>
# <details><summary>Given up?</summary>
#
# Let the check name it, and read the lines again with that name in mind: `suspect.check(suspect.program)`.
#
# </details>
#
# More: `hunt("attention_rollout", SEED)` puts a bug into the other function of this lesson.

# %% [markdown]
# ## A picture of your own
#
# Put the path of a picture of yours into `path`: a photo, a scan, a doodle. It is turned upright, put on white where
# it is transparent, cut to its middle square and shrunk to the model's size. Without one, the photo of Grace Hopper
# is used.
#
# **Predict first.** Our model knows ten shapes and no people. How sure will it be of its first answer?

# %%
predict("how-sure", 30)  # in %, of its first answer


# %%
def shrunk(picture):
    """(1, 3, height, width) uint8: all that the model gets to see of a picture."""
    return F.interpolate(
        picture[None].float(), size=(config.height, config.width), mode="area"
    ).to(torch.uint8)


path = ""  # such as "my_drawing.png"
mine = own_picture(path, otherwise=photo())  # (3, side, side) uint8
probabilities, seen = predict_with_attention(model, pictures.normalize(shrunk(mine))[0])
for share, index in zip(*probabilities.topk(3), strict=True):
    print(f"{share:6.1%}  {classes[index]}")
reveal("how-sure", 100 * probabilities.max(), within=10)
show_maps(mine, {"where it looked": seen})

# %% [markdown]
# A model cannot say "that is no shape at all": its ten probabilities sum to 1, and nothing in its training taught it
# to spread them evenly when no class fits. You get a map even when the question makes no sense.

# %% [markdown]
# ## Does the map mean anything?
#
# Now we test maps: if the model needs what it looks at, then covering those patches must cost accuracy, and covering
# other patches must cost little. We paint 8 of the 64 patches over with the picture's mean color (Samek et al. 2017,
# Petsiuk et al. 2018).
#
# The test has a trap: the model has never seen painted pictures, and may fail merely because something is painted
# over. So random patches come first. They show what eight painted patches cost when no map has chosen them.


# %%
def covered(images, order):
    """Copies of the images, in which the first patches in `order` have the mean color.

    An eighth of all patches is covered. order: (batch, num_patches).
    """
    chosen = torch.zeros(order.shape).scatter_(1, order[:, : order.shape[1] // 8], 1.0)
    mask = F.interpolate(
        chosen.reshape(-1, 1, *config.grid_size), scale_factor=config.patch_size
    ).bool()
    mean_color = images.float().mean(dim=(2, 3), keepdim=True)
    return torch.where(mask, mean_color, images.float()).to(torch.uint8)


# %%
def right(images):
    """The accuracy on the first images of `pictures`, which may be covered in part."""
    answers = look(images)[0].argmax(dim=1)
    return (answers == pictures.labels[: len(images)]).float().mean().item()


def cover_anything(images, times=10):
    """Accuracy with nothing covered, and with a random eighth, so many times."""
    generator = torch.Generator().manual_seed(0)
    orders = torch.rand(
        times, len(images), config.num_patches, generator=generator
    ).argsort(dim=2)
    each = torch.tensor([right(covered(images, order)) for order in orders])
    print(f"nothing covered   {right(images):.1%} right")
    print(
        f"random patches    {each.mean():.1%} right, "
        f"from {each.min():.1%} to {each.max():.1%} in {times} choices"
    )


images = pictures.images[:500]
cover_anything(images)

# %% [markdown]
# Now three maps: that of the last block, rollout, and the rollout of the *fresh* model, which has never learned
# anything. For a good map the accuracy is low when its most looked-at patches are covered, and high when its least
# looked-at patches are.
#
# **Predict first.** What share is right when the last block's most looked-at patches are covered?


# %%
# in % right, when the last block's most looked-at patches are covered
predict("what-it-looks-at-most", 50)


# %%
def cover_by_maps(images, seen, number):
    """Accuracy without the patches that a map (batch, num_patches) names most, least.

    Shows one image so covered.
    """
    hidden = {"": images[number]}
    print(f"{'covered by':12}{'most':>6}{'least':>7}")
    for name, shares in seen.items():
        most = covered(images, shares.argsort(dim=1, descending=True))
        least = covered(images, shares.argsort(dim=1))
        print(f"{name:12}{right(most):6.1%}{right(least):7.1%}")
        hidden |= {f"{name}:\nmost": most[number], f"{name}:\nleast": least[number]}
    return show_images(torch.stack([*hidden.values()]), titles=[*hidden])


_, weights = look(images)
seen = {
    # (batch, num_patches)
    "last block": class_token_maps(weights[-1]).mean(dim=1).flatten(1),
    "rollout": attention_rollout(weights)[:, 0, 1:],
    "fresh model": attention_rollout(look(images, fresh)[1])[:, 0, 1:],
}
most = covered(images, seen["last block"].argsort(dim=1, descending=True))
reveal("what-it-looks-at-most", 100 * right(most), within=10)
cover_by_maps(images, seen, number=23)

# %% [markdown]
# Read the table slowly, and compare the second column with the random patches. Is the last block's map worse than
# random there? And the untrained model's: is it bad?
#
# <details><summary>Our three runs</summary>
#
# (`benchmarks/results/inside.json`.) With the patches covered that the last block looks at *least*, 82.0, 86.8 and
# 71.4 % were right; with random ones covered, 87.3, 88.6 and 88.1 %. In the first and the third run that is clearly
# **worse** than random. A likely reason: the class token had collected from these patches in earlier blocks, and the
# last block had no need to look again.
#
# Rollout includes the earlier blocks. In each of our runs it was the best of the three in both columns: lowest in the
# first (27.6, 31.0 and 24.6 %), highest in the second (93.8, 95.0 and 93.8 %).
#
# The untrained model's map is not bad at all! With what it names most covered, 51.6, 61.2 and 60.8 % were right, far
# fewer than with random patches covered. Probably it finds the shape because the shape differs from the background,
# and random weights respond to that, too.
#
# </details>
#
# A map that lies on the object does not prove that the model has learned anything. Adebayo et al. (2018) replaced
# trained weights by random ones, and the maps of one popular method hardly changed.
#
# A *gradient map* needs no attention at all: how steeply does the logit of the winning class change with each pixel?


# %%
def gradient_map(images):
    """(batch, num_patches): mean size of the winning logit's gradient in each patch."""
    pixels = pictures.normalize(images).requires_grad_()
    (gradient,) = torch.autograd.grad(model.eval()(pixels).amax(dim=1).sum(), pixels)
    return F.avg_pool2d(gradient.abs().sum(dim=1), config.patch_size).flatten(1)


cover_by_maps(images, {"gradient": gradient_map(images)}, number=23)

# %% [markdown]
# <details><summary>Our three runs</summary>
#
# Its first column lies between the fresh model's map and rollout: with what it names most covered, 39.8, 47.8 and
# 40.2 % are right. In the second column the gradient is as good as rollout.
#
# </details>
#
# Covering changes the picture. We can also change the *model*: take one head out, and see what the others can do
# without it. That is called **ablation**. *Zero* ablation puts zeros in the place of what the head gives, which later
# layers may never have seen. *Mean* ablation puts in the head's mean over all pictures and tokens: then only what
# *differs* is lost. Which of the twelve heads will the model miss most? Look at their maps again before you choose.


# %%
def right_without(block, head, images, mean):
    """Accuracy when a head's part of what the projection reads is its mean, or zero."""
    part = slice(head * config.head_dim, (head + 1) * config.head_dim)

    def silence(module, inputs):
        heads = inputs[0].clone()
        heads[..., part] = heads[..., part].mean(dim=(0, 1)) if mean else 0
        return (heads,)  # what a pre-hook returns replaces the input

    handle = model.blocks[block].attention.projection.register_forward_pre_hook(silence)
    try:
        return right(images)
    finally:
        handle.remove()


print(f"all heads: {right(images):.1%} right")
sizes = (2, config.depth, config.num_heads)  # zeros and mean, blocks, heads
left = torch.zeros(sizes)
for mean, block, head in bar(list(itertools.product(*map(range, sizes))), "heads"):
    left[mean, block, head] = 100 * right_without(block, head, images, mean)
figure, limits = new_figure(7, 2.8), (left.min().item(), left.max().item())
panels = zip(figure.subplots(1, 2), left.round(), ("zeros", "its mean"), strict=True)
for axes, table, by in panels:
    draw_matrix(
        axes, table, "block", "head", f"{by} for a head: % right", limits=limits
    )
figure

# %% [markdown]
# Was it the head that you chose? A head with a striking map may be one that the model can do without, and a head with
# a dull map may be needed. An ablation shows how much the model misses this head when all others stay as they are.
# Two heads that can replace each other look useless one by one.
#
# <details><summary>Our three runs</summary>
#
# With means, the model missed each head of block 0 more than any head of the last block in each of our three runs,
# with zeros in two of them. One reason may be that every later block works with what the early heads have written.
# Yet it is the last block whose maps are usually shown. (One accuracy on 500 drawings has a standard error of one
# point at 94 % and of two at 75 %.)
#
# Neither way is always the gentler one. The mean cost less than zeros in 11 of the 12 of the last block, but more in
# 10 of the 12 of block 0. One mean for the class token and all patches may fit none of them.
#
# </details>

# %% [markdown] question="does-it-explain" points=2
# ### Question: does it explain?
#
# A friend shows you an attention map with light on the tips of a star, and says: "You see, it knows that it is a star
# *because* it counts the tips." Which part of this claim can the map alone support? Which part does the covering test
# add? And what would still have to be shown for the *because*, and for the *counts*? Name one measurement for it.
#
# ### BEGIN SOLUTION
# The map alone supports that the class token's last look went to the tips: where, not why, and not that the answer
# depends on it. The covering test adds that the answer depends on the patches with the most attention (for this model
# and these pictures): it is an intervention, and it has to be compared with other patches and an untrained model.
# Neither shows *how* they are used. For "counts" one would have to vary the number of tips and nothing else (stars with
# four, five, six tips, same size and color) and see whether the answer, or something inside the model from which the
# number can be read, follows the number; or cover one tip at a time. Covering has a trap of its own: the model has
# never seen pictures with gray patches, so part of the drop in accuracy may come from that.
#
# **Rubric.** 1 point: the map shows where, the covering test shows dependence; neither shows how. 1 point: a
# measurement in which the claimed cause is varied while the rest is kept.
# ### END SOLUTION

# %% [markdown]
# ## Your own model
#
# **Here the core of the lesson ends.** The rest makes the same measurements on a model of photos. From here on the
# names `model`, `config`, `classes`, `pictures` and `fresh` stand for something else: to go back to the drawings, run
# the notebook from the top.
#
# Put `vit_cifar.safetensors`, your model of lesson 07, beside this notebook. Without it the ViT that comes with the
# course takes its place: it was trained on CIFAR-10 too, in 41 minutes on two busy cores. (The cell downloads
# CIFAR-10, 170 MB, if lesson 06 has not.)
#
# Write down what you expect:
#
# 1. Will its heads look at the object itself, as they did with drawings, or at its surroundings?
# 2. Will a head of its first block look clearly nearer than its control?
# 3. Positions: will those of the border be similar again, or do you expect rows and columns?
# 4. Filters: noise again, or something that you can name?
# 5. Covering: which map will find the patches that it needs, and will the fresh model's do nearly as well?

# %% tags=["experiment"]
mine_of_07 = Path("vit_cifar.safetensors")
saved = load_model(mine_of_07) if mine_of_07.is_file() else trained_vit()
print(
    "from here on the model is",
    "yours" if mine_of_07.is_file() else "the one that comes with the course",
)
model, config, classes = saved.model, saved.config, saved.classes
_, pictures = load_dataset(saved.dataset_name, otherwise="shapes")
if pictures.classes != classes and "cat" in classes:
    print("No photos are here. Cut-outs of the cat of lesson 00 take their place.")
    print("They are all one cat: no number below holds for other photos.")
    pictures = cats(classes)
pictures = replace(pictures, mean=saved.mean, std=saved.std)
torch.manual_seed(1)
fresh = VisionTransformer(config)


# %% tags=["experiment"]
def taken(layer):
    """The class token's attention, or a mean of all: (batch, heads, rows, columns)."""
    asking = layer[:, :, :1] if config.pooling == "class_token" else layer
    return (
        asking[..., -config.num_patches :].mean(dim=2).unflatten(-1, config.grid_size)
    )


image = pictures.images[number]
logits, weights = look(image[None])
print(f"the model says: {classes[logits.argmax()]}")
show_every_head(image, [taken(layer)[0] for layer in weights])

# %% tags=["experiment"]
# your picture from above; or put another path here
mine = own_picture(path, otherwise=photo())
logits, weights = look(shrunk(mine))
for share, index in zip(*logits[0].softmax(dim=0).topk(3), strict=True):
    print(f"{share:6.1%}  {classes[index]}")
show_maps(mine, {"where it looked": taken(weights[-1])[0].mean(dim=0)})

# %% [markdown]
# That is one query in one block. Choose another patch, block or head, then go from raw attention to your rollout.
# Will a patch of the background look at the object in block 0? And in the last block?

# %% tags=["experiment"]
from vit_course.explore import explore_attention

explore_attention(mine, weights, config.grid_size, attention_rollout)

# %% tags=["experiment"]
show_distances(pictures.images[:100], model, fresh)

# %% tags=["experiment"]
figure = None
if model.positions is not None:  # a model without positions has nothing to show here
    figure = show_position_similarity(model.positions.detach(), config.grid_size)
figure

# %% tags=["experiment"]
filters, shares = patch_filters(
    model.patch_embedding.projection.weight.detach(), config.in_channels, count=14
)
show_filters(filters, titles=[f"{share:.0%}" for share in shares], columns=7)

# %% tags=["experiment"]
figure = None
if pictures.classes != classes:
    print(
        "Left out: no pictures of these classes are here, so nothing is right or wrong."
    )
else:
    images = pictures.images[:200]
    cover_anything(images)
    _, weights = look(images)
    seen = {
        "last block": taken(weights[-1]).mean(dim=1).flatten(1),  # (batch, num_patches)
        "rollout": taken(attention_rollout(weights)[:, None]).flatten(1),
        "fresh model": taken(
            attention_rollout(look(images, fresh)[1])[:, None]
        ).flatten(1),
        "gradient": gradient_map(images),
    }
    figure = cover_by_maps(images, seen, number)
figure

# %% [markdown]
# <details><summary>Write down all five, then open this.</summary>
#
# Our run was with the course's model, on a photo of an animal; your files may have the photos in another order. Most
# heads look at parts of it. Positions are like those of their neighbors and, near the left and right edge, like those
# of their mirror images. Heads of block 0 look 0.6 to 1.5 pixels nearer than their controls, so hardly. Every head of
# block 1 does, by two to five pixels. In block 2 it is 0 to 2, and in the last block at most a fifth. So the most
# local block is the second, and only from there on is it *from local to global*. One filter is nearly plain green, and
# others are edges: light beside dark, or blue above orange. They are in no line of our code; training has made them.
#
# Covering costs far less than with drawings. One accuracy on 200 images has a standard error of 3 points, so we drew
# 200 photos three times. The means (`benchmarks/results/inside.json`):
#
# | covered, % right | most looked at | least looked at |
# |---|---|---|
# | by the last block | 66.5 | 78.7 |
# | by rollout | 66.5 | 79.3 |
# | by the fresh model's rollout | 73.3 | 78.3 |
# | by the gradient | 69.5 | 79.7 |
#
# Nothing covered gives 81.7 %, random patches 76.7 %. A useful map has a gap between its two columns. The gap is 12.8
# ± 5.0 points for rollout, 12.2 ± 5.0 for the last block, and 10.2 ± 4.9 for the gradient, which uses no attention at
# all. Which of the three is best, these photos cannot say. The fresh model's map has 5.0 ± 4.8: nobody has trained it,
# so perhaps it finds what stands out, whatever the task. The gaps of rollout and of the last block are larger, by 7.8 ±
# 6.9 and 7.2 ± 7.0; for the gradient (5.2 ± 6.9) we cannot tell. (The ± counts all columns as measured on different
# photos. They come from the same 600, so the gaps are more precise than that (lesson 07). In the three draws one by
# one, the gradient's gap is 11.0, 5.5 and 14.0 points: one draw of 200 shows a gap, and cannot rank the maps.)
#
# </details>
#
# Where the two models differ, data, size and training have all changed together: you have found a question, and not
# yet its answer. One more look is in a side note: [*where* does the answer
# arise?](/notes/where_the_answer_arises.html)

# %% [markdown]
# ## A harder one, without points
#
# An attention weight says how much of a patch was mixed in, not whether that mattered for the class. Multiply each
# weight by the gradient of the class's logit with respect to it, set what is negative to zero, and take the mean over
# heads: that is the table $A$ of a layer. Start with $R = I$, and go through the layers with $R \leftarrow R + A R$
# (Chefer et al. 2021). `record(model, images)` outside of `no_grad` gives weights in the graph, and
# `torch.autograd.grad(logits[0, label], weights)` the gradients. Is this map better than rollout in the covering
# experiment?

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. Why is the identity added in every layer of a rollout, and not once?</summary>
#
# Every block has a residual connection of its own, so in each of them the token itself is passed on beside what
# attention adds.
#
# </details>
# <details><summary>2. A head gives each patch the weight 1/64. What is its distance: 0, or the maximum?</summary>
#
# Neither. It is the mean distance between two patches of the grid, 16.55 pixels, about half the side of the picture:
# our dashed line. A head that prefers far patches lies above it: equal weights on the patches of the rim give 18.97. A
# head that looks at patch 36 alone, right beside the middle, lies below, at 12.4. The most is 31.43, where every patch
# looks at the corner that is farthest from it.
#
# </details>
# <details><summary>3. Your hook works, and the second call of your function records two inputs. What
# happened?</summary>
#
# The first call did not remove its hook. Now there are two, and after the next call three.
#
# </details>
# <details><summary>4. You run the same model twice on one picture and get two different maps. What do you check
# first?</summary>
#
# The mode: dropout is on.
#
# </details>
# <details><summary>5. A paper shows attention maps that lie neatly on the objects. What would you ask its authors for?
# </summary>
#
# The same maps of the untrained model, and what happens to the answer when those patches, or others, are covered.
#
# </details>
#
# ## Your own pictures
#
# `vit-course recipes` lists ways to train; or adapt a trained model to your pictures, in `09_fine_tuning`. What you
# wrote here works on the result, with one change. Most of our own recipes, `cpu-coffee` among them, have no class
# token. Rollout and distance run as they are. For the maps, use `taken` above, and in `predict_with_attention`
# replace row 0 by the mean over all rows:
#
# ```python
# seen = weights[0].mean(dim=(0, 1))  # over heads and queries
# seen = seen[-rows * columns :]  # (num_patches,)
# ```
#
# **Further reading.** Raghu et al. 2021, *Do Vision Transformers See Like Convolutional Neural Networks?* Jain and
# Wallace 2019, *Attention is not Explanation*, and Wiegreffe and Pinter 2019, *Attention is not not Explanation*.
# Darcet et al. 2024, *Vision Transformers Need Registers*: bright patches that say little about their own place.

# %%
progress()
