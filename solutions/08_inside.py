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
# The model says *star*, and it is right. But did it look at the star? It may have looked at the corner, or at nothing
# in particular. In this lesson you draw where its heads look, follow attention through all layers, measure how far it
# reaches, and then test what such pictures are worth.
#
# **After this lesson you can**
# - see where every head of every block looks, and follow attention through the whole model with rollout;
# - measure whether heads look near or far, and say so when the textbook's answer does not come out;
# - read from any PyTorch model what its forward does not return, and leave no trace;
# - test whether an attention map means anything.
#
# | exercise | minutes | points |
# |---|---|---|
# | `attention_rollout` | 12 | 3 |
# | `mean_attention_distance` | 13 | 3 |
# | `predict_with_attention` | 15 | 4 |
# | two written questions | 12 | 2 + 2 |
# | a bug drawn for you | 5 | – |

# %%
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F

from vit_course import (
    PRESETS,
    VisionTransformer,
    ViTConfig,
    check,
    hunt,
    initialise,
    own,
    predict,
    progress,
    record,
    reveal,
)
from vit_course.data import Augmentation, load_dataset, photo, shapes, train_validation_split
from vit_course.data.decoding import own_picture
from vit_course.plots import show_images, show_position_similarity
from vit_course.plots_attention import (
    plot_attention_distance,
    save_every_head,
    show_every_head,
    show_filters,
    show_lit,
    show_maps,
)
from vit_course.trained import trained_vit
from vit_course.training import TrainingSettings, fit, load_model

MyViT, load_torchvision = own("VisionTransformer", "load_torchvision")  # yours of lesson 05, or the course's

# %% [markdown]
# ## A model to look into
#
# An untrained model has learned nothing, so we need one with a little training. Ten kinds of drawings will do: they are
# learned in a minute, and we know for certain where in the picture the answer is.


# %%
def new_model(config):
    """A model of your class, with weights that start as those of the first ViT did."""
    model = MyViT(config)
    if not isinstance(model, VisionTransformer):  # the course's own model has done this already
        model.config = config
        initialise(model)
    return model


torch.manual_seed(0)
config = ViTConfig(image_size=32, patch_size=4, embed_dim=64, depth=3, num_heads=4, mlp_ratio=2.0)
model = new_model(config)
train, pictures = train_validation_split(shapes(7000), 1000)
classes = pictures.classes
show_images(pictures.images[:8], titles=[classes[label] for label in pictures.labels[:8]])

# %% [markdown]
# Your own model of lesson 07, or the one that comes with the course, has its turn at the end: then you know what to
# look for, and have something to compare it with. First we train the small one. **It takes a minute or so on one
# core**, and the cell says how long it was. There is one more wait in this lesson, for a download of 330 MB that you
# may skip.

# %% tags=["experiment"]
torch.set_num_threads(1)  # enough for so small a model, and safer on a busy machine
print("6,000 drawings, six times over:")
shifted = Augmentation(max_shift=2)
settings = TrainingSettings(6, 64, learning_rate=2e-3, muon_learning_rate=0.02, augmentation=shifted)
history = fit(model, train, pictures, settings, progress=False)
print(f"{sum(history.seconds):.0f} seconds of training")
print(f"right on {history.validation_accuracy[-1]:.1%} of 1,000 drawings that it has not seen")

# %% [markdown]
# ## Every head of every block
#
# `record(model, images)` runs a model and gives every stage on the way by name, the attention of each block among them.
# Four heads in three blocks make twelve tables of 65 × 65 weights for one picture. Row 0 of each is the class token's:
# how it distributes its attention over itself and 64 patches. Without the first entry that row *is* a little picture, 8
# × 8.


# %%
def look(images, somebody=None):
    """Logits, and the weights of every block: (batch, num_heads, tokens, tokens) each."""
    with torch.no_grad():
        somebody = (somebody or model).eval()
        stages = record(somebody, pictures.normalize(images))
    return stages["logits"], [stages[f"blocks.{number}.attention.weights"] for number in range(config.depth)]


def class_token_maps(layer):
    """(batch, num_heads, rows, columns): what the class token gives to each patch."""
    return layer[:, :, 0, 1:].unflatten(-1, config.grid_size)


print([tuple(layer.shape) for layer in look(pictures.images[:2])[1]])

# %% [markdown]
# **Predict first.** Where does the class token look in block 0, before it knows anything about this picture: at
# everything alike, at the shape, or at the background? Will four heads of one block look at the same place? Sketch a
# star, and shade what you expect.

# %%
number = 23
image = pictures.images[number]
logits, weights = look(image[None])
print(f"a {classes[pictures.labels[number]]}; the model says: {classes[logits.argmax()]}")
show_every_head(image, [class_token_maps(layer)[0] for layer in weights])

# %% [markdown]
# The brighter, the more attention; each map is scaled to its own maximum. Most heads look at the shape from the first
# block on. They differ: in the last block three heads look at one tip of the star each. Now and then a head looks at
# the background only. Change `number` a few times. Is "the head for tips" the same on every picture, or did you see a
# pattern because you wanted one?

# %% [markdown]
# The next cell saves each of these pictures in a folder, for a report.

# %% tags=["experiment"]
files = save_every_head(image, [class_token_maps(layer)[0] for layer in weights], "heads")
print(f"{len(files)} pictures in {files[0].parent}/, the first is {files[0].name}")

# %% [markdown]
# ## All layers at once
#
# Which of the twelve maps is *the* answer? None. In the last block the class token looks at tokens that have themselves
# collected from others for two blocks; the token of patch 9 holds a good deal of patch 20 by now. To know what reached
# the class token we have to follow attention through all blocks. That is called **rollout** (Abnar and Zuidema 2020).
#
# ![Rollout in small numbers: to the mean attention of each of two blocks the identity is added, the sum is halved, and
# the two results are multiplied, the later block on the left.](../figures/rollout.svg)

# %% [markdown]
# Two things happen in a block. Attention adds a mixture of tokens, and the residual stream carries the token itself on.
# Rollout counts both alike: half and half. In the picture the last block gives patch A no weight at all, and still a
# quarter of the class token is A. Find the two paths on which it came.

# %% [markdown]
# ### Exercise: `attention_rollout` (12 minutes, 3 points)


# %% exercise="attention_rollout"
def attention_rollout(weights):
    """How much of every input token there is in every output token, if attention alone mixed them.

    In each layer: take the mean over the heads, add the identity for the residual stream, and divide each row
    by its sum. Multiply the layers' tables so that later layers mix what earlier ones have mixed. Rows are the
    tokens that ask, as in lesson 03, so row i of the result says what output token i is made of.

    weights: a list with a tensor for each layer, first layer first: (batch, num_heads, tokens, tokens)
    returns: (batch, tokens, tokens), rows sum to 1, of the same dtype and on the same device

    By hand: one head, two tokens. In layer 0 both look at token 1; in layer 1 each looks at token 0.
    Layer 0 becomes [[0.5, 0.5], [0, 1]], layer 1 becomes [[1, 0], [0.5, 0.5]], and together:

    >>> first, second = torch.tensor([[0.0, 1.0], [0.0, 1.0]]), torch.tensor([[1.0, 0.0], [1.0, 0.0]])
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
# Rows that sum to 2, 4 or 8? Something doubles in each layer. All right for one layer and wrong for two? Then it is the
# product: the order of the factors matters. Wrong dtype? Find the line that makes a float32 on the way.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# After layer 0 you know what each token is made of, one row for each token. Layer 1 mixes *those*. If token 0 takes 0.3
# of token 4, of which table do you need row 4, and which of the two tables has the 0.3?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# no layers: ValueError
# begin with nothing mixed
# for each layer, first to last:
#     mean over the heads; the token itself on top; every row back to a sum of 1
#     this layer's table from the left onto what there is
# ```
#
# </details>

# %% check="attention_rollout" points=3
check("attention_rollout", attention_rollout)

# %% [markdown]
# **Predict first.** Row 0 of the rollout says what the class token is made of. We compute it after one block, after two
# and after all three. Does the light gather on a few patches with depth, or does it spread?

# %%
predict("rollout", "it gathers", choices=("it gathers", "it spreads"))

# %%
maps = {}
for depth in range(1, config.depth + 1):
    rollout = attention_rollout(weights[:depth])
    maps[f"rollout, {depth} block{'s' if depth > 1 else ''}"] = rollout[0, 0, 1:].reshape(config.grid_size)
brightest = [(seen / seen.sum()).max() for seen in maps.values()]
reveal("rollout", "it spreads" if brightest[-1] < brightest[0] else "it gathers")
maps["last block alone"] = class_token_maps(weights[-1])[0].mean(dim=0)
show_maps(image, maps)

# %% [markdown]
# It spreads, and covers the whole shape with a soft rim. The last block alone is patchy: it looks at three tips.
# Rollout includes the blocks before, and is smoother. It also leaves a good deal out: values, MLPs, and the fact that
# one head may matter more than another. It is a useful way to combine maps, not an exact account of what the model
# computes.

# %% [markdown]
# ## How far do heads look?
#
# A convolution sees its neighbors and nothing else. A head may look anywhere. Does it? The first ViT paper measured it:
# for every query patch, the mean of the distances to all patches, each counted by its weight.
#
# ![A query patch on a grid of 4 by 6 patches looks at three patches; each weight times the distance in pixels, added
# up, gives 20.8 pixels.](../figures/attention_distance.svg)

# %% [markdown]
# They found heads that look near and heads that look far side by side in the first blocks, and only far ones in the
# deep blocks (Dosovitskiy et al. 2021, figure 7). Many textbooks have since summed this up as *from local to global*.
#
# **Predict first.** In our small model, on pictures of 32 × 32 pixels: what is the distance of a head that looks at all
# patches alike? And which blocks will lie below that?

# %%
predict("all-patches-alike", 16)  # pixels

# %% [markdown]
# ### Exercise: `mean_attention_distance` (13 minutes, 3 points)


# %% exercise="mean_attention_distance"
def mean_attention_distance(weights, grid_size, patch_size):
    """How far each head of one layer looks, in pixels: the mean over images and query patches.

    Of one query patch: the sum over all patches of weight times distance. A distance runs between the centres
    of two patches, straight as the crow flies. The patches stand row by row, as patchify has cut them.

    weights:    (batch, num_heads, tokens, tokens), rows are queries and sum to 1. There are rows * columns
                tokens, or one more: then a class token stands in front. It is nowhere in the picture, so leave
                it out, both as a query and as a key, and divide each row by its sum to make it 1 again.
    grid_size:  (rows, columns) of patches
    patch_size: side of a patch in pixels
    returns:    (num_heads,), of the dtype of the weights and on their device

    By hand: one row of two patches, 16 pixels each. The first gives half of its attention to the other, which
    is 0.5 * 16 = 8 pixels; the second looks at itself, which is 0. Their mean is 4.

    >>> mean_attention_distance(torch.tensor([[[[0.5, 0.5], [0.0, 1.0]]]]), (1, 2), 16)
    tensor([4.])

    Raise ValueError, with the three numbers (of tokens, rows and columns) in its text, when there are neither
    as many tokens as patches nor one more. Allowed: everything; torch.cdist may come in handy. About 11 lines.
    """
    ### BEGIN SOLUTION
    rows, columns = grid_size
    tokens, num_patches = weights.shape[-1], rows * columns
    if tokens not in (num_patches, num_patches + 1):
        raise ValueError(f"{tokens} tokens are neither {rows} x {columns} patches nor one more")
    among_patches = weights[..., -num_patches:, -num_patches:]
    among_patches = among_patches / among_patches.sum(dim=-1, keepdim=True)
    patches = torch.arange(num_patches, device=weights.device)
    centres = patch_size * torch.stack([patches // columns, patches % columns], dim=1).to(weights.dtype)
    distances = torch.cdist(centres, centres)  # (num_patches, num_patches), in pixels
    return (among_patches * distances).sum(dim=-1).mean(dim=(0, 2))  # (num_heads,)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# Right on the neighbor and wrong at an angle? Then it is the way that you measure. Right without a class token and too
# short with one? Somebody's share went missing. One number for each image? Count what your mean runs over.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# Patch 7 on a grid with 5 columns: in which row does it stand, and in which column? Which two of Python's operators
# tell you, and do they need `rows` or `columns`?
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
# Two hundred pictures now, the trained model, and beside it a fresh one that has never seen a picture. The dashed line
# is the head that looks at all patches alike.

# %%
sizes = config.grid_size, config.patch_size
torch.manual_seed(1)
fresh = new_model(config)
distances = {}
for name, somebody in {"trained": model, "fresh": fresh}.items():
    _, weights = look(pictures.images[:200], somebody)
    distances[name] = [mean_attention_distance(layer, *sizes) for layer in weights]
count = config.num_patches
everywhere = mean_attention_distance(torch.full((1, 1, count, count), 1 / count), *sizes)
reveal("all-patches-alike", everywhere, within=2)
plot_attention_distance(distances, everywhere.item())

# %% [markdown]
# There are no local heads in this model, in no block. Trained or untrained, all of them stay within two pixels or so of
# the dashed line. So near and far patches get about the same attention. *From local to global* does not come out here,
# and then one has to say so.

# %% [markdown]
# What is different from the paper? Nearly everything: three blocks and not twelve or more, a grid of 8 × 8 and not 14 ×
# 14, six thousand drawings of one thing on an empty background and not millions of photos, and six epochs.
#
# With an internet connection the next cell measures torchvision's ViT-B/16 in the same way, on one photo. If lesson 05
# has not downloaded its weights already, 330 MB are downloaded first (on Colab in every new runtime). Without them
# nothing is drawn, and nothing later needs them.

# %% tags=["experiment"]
import torchvision

from vit_course.famous import vit_b_16

famous, is_real = vit_b_16()
figure = None
if is_real:
    big = load_torchvision(MyViT(PRESETS["vit_base_16"]), famous.state_dict()).eval()
    prepared = torchvision.models.ViT_B_16_Weights.IMAGENET1K_V1.transforms()(photo())[None]
    with torch.no_grad():
        stages = record(big, prepared)
    layers = [stages[f"blocks.{number}.attention.weights"] for number in range(12)]
    alike = mean_attention_distance(torch.full((1, 1, 196, 196), 1 / 196), (14, 14), 16).item()
    of_layers = [mean_attention_distance(layer, (14, 14), 16) for layer in layers]
    figure = plot_attention_distance({"ViT-B/16 on one photo": of_layers}, alike)
figure

# %% [markdown] question="local-or-global" points=2
# ### Question: why so far? (6 minutes, 2 points)
#
# Choose **one** difference between our small model and the paper's (its data, its depth, its grid, the length of its
# training, ...) that you think keeps our heads from looking near. Write down why you think so, and an experiment that
# could prove you wrong: what do you change, what do you keep, what do you measure, how many seeds, and which result
# would make you give the idea up?
#
# ### BEGIN SOLUTION
# For instance the data. One shape stands on an empty ground, so a patch learns little from its neighbors and much from
# other parts of the shape; in photos texture and edges make neighbors telling. Experiment: the same model, settings and
# number of steps, once on the drawings and once on CIFAR-10 (or on drawings with a small pattern that decides the
# class), three seeds each; measure the smallest mean distance of a head in block 0 on 200 held-out pictures. If the
# heads on CIFAR-10 lie as close to the dashed line as those on drawings, within the spread of the seeds, the idea is
# wrong.
#
# **Rubric.** 1 point: one difference, with a mechanism by which it could act on the distance (not only "it is
# smaller"). 1 point: a fair experiment: one thing changed, the rest kept, the distance measured, two seeds or more, and
# a result named that would refute the idea.
# ### END SOLUTION

# %% [markdown]
# Is your idea on paper? Then here is a model between ours and the paper's: the same grid, four blocks, 20 epochs of
# 45,000 photos of CIFAR-10. Above, which patches have reached the middle: for convolutions, and by rollout for this
# model. Below, how far its heads look.
#
# ![Maps by depth: through 3 by 3 convolutions the middle of a picture sees a square that grows by two pixels a layer;
# through attention it can see the whole picture from the first layer on.](../figures/receptive_growth.svg)

# %% [markdown]
# After four layers of 3 × 3 a convolution sees 9 × 9 pixels and no more. Attention may look everywhere, and here at
# least one head has learned to look nearer than the rest. One head of the second layer looks 12.2 pixels far, where a
# head that ignores distance comes to 16.55. That is nearer than any of ours, yet not local: equal attention to the
# eight neighbors would be 4.8. And the *first* layer has no near head.
#
# This does not settle your question. Photos, size, depth and 40 minutes of training all differ from ours at once, and
# it is one run of one seed.

# %% [markdown]
# ## What the first layers have learned
#
# Attention is not all that there is to see. Two tables of weights can be looked at directly. First the positions: they
# began as noise with a spread of 0.02, and the model was never given the row and the column of a patch.
#
# **Predict first.** Each small map below belongs to one patch, and shows how alike its position is to all the others.
# Will the map of a patch in the middle and of one in the corner look the same?

# %%
show_position_similarity(model.positions.detach(), config.grid_size)

# %% [markdown]
# After six epochs neighbors are similar, and something else has appeared: all positions of the rim are similar to one
# another. Some of our drawings reach it, but on average the shape is in the middle and the rim is background. So what
# helps most to know about a place is not its row or its column, but whether it is *inside*. The model has learned a
# property of our data set.

# %% [markdown]
# Then the filters. Each of the 64 numbers of a token says how well its patch matches one learned pattern of 4 × 4
# pixels. Here are the strongest directions among them, their principal components, and the share of all weight that
# each one holds.

# %% tags=["experiment"]
from vit_course.interpret import patch_filters

filters, shares = patch_filters(model.patch_embedding.projection.weight, config.in_channels, count=14)
show_filters(filters, titles=[f"{share:.0%}" for share in shares], columns=7)

# %% [markdown]
# Noise, for the most part. In the paper's models this picture shows waves and edges (figure 7). Ours began as noise and
# changed little in so short a training, and it did not need to change: a random projection to 64 numbers keeps nearly
# everything that is in a patch of 48 numbers. A first layer that looks untrained does not prove that a model is bad,
# and a neat one does not prove that it is good.

# %% [markdown]
# ## Reading what forward does not return
#
# So far `record` did the work. How does it? The model has no switch that makes it return more: its `forward` takes
# images and gives logits, as in *your* `VisionTransformer` of lesson 05 and in most models that you will use at work,
# where you cannot edit them.
#
# PyTorch has an answer: a **hook**. You register a function with any module inside the model, and each time that this
# module runs, your function is called with its input. Registering gives you a handle, which you need to remove the
# hook.

# %%
print("without changing a line of the model:")
handles = [
    block.register_forward_hook(
        lambda module, inputs, output: print(f"  {type(module).__name__}: {output.norm(dim=-1).mean():.1f}")
    )
    for block in model.blocks
]
try:
    model(pictures.normalize(pictures.images[:2]))
finally:  # a hook that stays would be called for ever
    for handle in handles:
        handle.remove()

# %% [markdown]
# One line for each block: the mean length of its tokens. In lesson 04 you saw it grow in untrained blocks. There are
# two kinds. `register_forward_hook` calls you with (module, inputs, output) once the module is done;
# `register_forward_pre_hook` with (module, inputs) before it begins. `inputs` is a tuple, always.
#
# Now for attention. When the block runs its attention it does not ask for the weights, so no output holds them. But
# with the same input you can call it again: `attention(x, return_weights=True)`, as you built it in lesson 03.
#
# **Predict first.** If your hook function itself calls the module that it is hooked to, what happens?
#
# <details><summary>Written down? Then look.</summary>
#
# The hook is called again, which calls the module, which calls the hook ... Python allows a thousand calls inside one
# another and each round takes about five: after some two hundred rounds there is a `RecursionError`. So keep the input,
# remove the hook, and call the module afterward.
#
# </details>

# %% [markdown]
# ## From a row of weights to a map
#
# Leave the model as you found it. It may be in the middle of its training: evaluation mode has to be switched on (or
# dropout changes the answer), and afterward each of its modules has to be in the mode in which it was. No gradient
# should be kept, no hook left behind, not even after an error.
#
# ### Exercise: `predict_with_attention` (15 minutes, 4 points)


# %% exercise="predict_with_attention"
def predict_with_attention(model, image):
    """What a model says about one image, and where its class token looked in the last block.

    model:   a VisionTransformer as you built it in lesson 05, in training or in evaluation mode. It has
             patch_embedding (with a patch_size), class_token, positions, blocks, norm, head; each block
             has norm1, attention, norm2, mlp. model(images) takes images and nothing else, and
             block.attention(x, return_weights=True) gives (output, weights).
    image:   (channels, height, width), normalised already
    returns: probabilities (num_classes,), and a map (rows, columns): the class token's attention to the
             patches in the last block, the mean over the heads, divided by its sum

    Ask in evaluation mode and without gradients. Afterwards the model is as it was: its mode put back, no
    hook left, nothing frozen. Listening with a hook is one way; walking through the parts by hand is another.

    >>> small = ViTConfig(image_size=(8, 12), patch_size=4, embed_dim=6, depth=2, num_heads=2, num_classes=5)
    >>> probabilities, seen = predict_with_attention(VisionTransformer(small), torch.zeros(3, 8, 12))
    >>> tuple(probabilities.shape), tuple(seen.shape)  # 2 rows and 3 columns of patches
    ((5,), (2, 3))
    >>> round(probabilities.sum().item(), 4), round(seen.sum().item(), 4)
    (1.0, 1.0)

    Allowed: everything. About 15 lines.
    """
    ### BEGIN SOLUTION
    attention = model.blocks[-1].attention
    heard = []
    handle = attention.register_forward_pre_hook(lambda module, inputs: heard.append(inputs[0]))
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            logits = model(image[None])  # (1, num_classes)
            handle.remove()
            _, weights = attention(heard[0], return_weights=True)  # (1, num_heads, tokens, tokens)
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
# "RecursionError"? Your hook calls what it is hooked to. A map that sums to 0.98? One token of the row is not on the
# map, and took its share along. Right in evaluation mode only? Then dropout was on when you asked. One axis too many?
# You gave the model a batch of one.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# Write down four things that you change: a mode, a hook, torch's gradients, and an axis of the image. Where in your
# code is each of them undone?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# a list to hear with; a pre-hook on the last block's attention puts its input there
# remember the mode; evaluation mode; no gradients:
#     logits of a batch of one; hook off; ask the attention again with what was heard
# the old mode back
# weights: image 0, all heads, row 0, without column 0; mean over heads; divide by the sum; into rows and columns
# softmax of the logits
# ```
#
# </details>

# %% check="predict_with_attention" points=4
check("predict_with_attention", predict_with_attention)

# %%
chosen, titles, maps = [23, 24, 29, 44, 49, 55], [], []
for image in pictures.images[chosen]:
    probabilities, seen = predict_with_attention(model, pictures.normalize(image[None])[0])
    titles.append(f"{classes[probabilities.argmax()]}, {probabilities.max():.0%}")
    maps.append(seen)
show_lit(pictures.images[chosen], torch.stack(maps), titles)

# %% [markdown]
# Would you have known the shape from the lit patches alone? An arm of the cross here, the bend of a crescent there.
# This is the last block: the others have contributed already. The covering test at the end of the lesson comes back to
# this.

# %% [markdown]
# ## Another bug, drawn for you (5 minutes)
#
# One last bug hunt, with many things that can go wrong: a mode, a hook, a row, a sum. A seed draws the bug from the
# library. **Predict first:** will you see it on the map, in the probabilities, or only in the model afterward?

# %%
SEED = 1  # any whole number: your own, or the one that your instructor gave you
suspect = hunt("predict_with_attention", SEED)
suspect

# %% [markdown]
# It is used on three drawings, with the model in training mode. `listeners.clear()` removes hooks that were left
# behind.

# %% tags=["raises-exception"]
model.train()
told = [suspect(model, pictures.normalize(each[None])[0]) for each in pictures.images[chosen[:3]]]
listeners = model.blocks[-1].attention._forward_pre_hooks
print("still training:", model.training, " hooks left:", len(listeners))
print("sums:", [(round(shares.sum().item(), 3), round(seen.sum().item(), 3)) for shares, seen in told])
listeners.clear()
both = torch.stack([seen for _, seen in told] + maps[:3])
show_lit(pictures.images[chosen[:3] * 2], both, ["the suspect's"] * 3 + ["yours"] * 3)

# %% [markdown]
# Same maps, sums of 1, and nothing left behind? Then try a picture that is wider than tall, or a model with dropout.
# Repair a copy, and check it.

# %%
mended = None  # paste the program above this line, mend it, and put its name in the place of None
suspect.check(mended)

# %% [markdown]
# <details><summary>A hint, whatever the bug</summary>
#
# Four things are changed and have to be undone: a mode, a hook, the gradients, an axis. Find the line that undoes each.
# For the map, say for every index which axis it picks from (heads, queries, keys), and what is left.
#
# </details>
# <details><summary>Given up?</summary>
#
# Let the library name it, and read the lines again with that name in mind: `suspect.check(suspect.program)`.
#
# </details>
#
# More: `hunt("attention_rollout", SEED)` puts a bug into the other function of this lesson.

# %% [markdown]
# ## A picture of your own
#
# Put the path of a picture of yours into `path`: a photo, a scan, a doodle, in any of the usual file formats. It is
# turned upright, put on white where it is transparent, cut to its middle square and shrunk to the model's size. Without
# one, the photo of Grace Hopper is used.
#
# **Predict first.** Our model knows ten shapes and no people. What will it call her, and how sure will it be?

# %%
predict("how-sure", 30)  # in %, of its first answer


# %%
def shrunk(picture):
    """(1, 3, height, width) uint8: all that the model gets to see of a picture."""
    return F.interpolate(picture[None].float(), size=(config.height, config.width), mode="area").to(torch.uint8)


path = ""  # such as "my_drawing.png"
mine = own_picture(path, otherwise=photo())  # (3, side, side) uint8
probabilities, seen = predict_with_attention(model, pictures.normalize(shrunk(mine))[0])
for share, index in zip(*probabilities.topk(3), strict=True):
    print(f"{share:6.1%}  {classes[index]}")
reveal("how-sure", 100 * probabilities.max(), within=10)
show_maps(mine, {"where it looked": seen})

# %% [markdown]
# A model cannot say "that is no shape at all": its ten probabilities sum to 1, whatever the image. So it names the best
# of ten bad answers, and sometimes with great confidence. There is a map for a question that makes no sense, just as
# for one that does.

# %% [markdown]
# ## Does the map mean anything?
#
# So far we have only looked at maps. Now we test them: if the model needs what it looks at, then covering those patches
# must cost accuracy, and covering what it does not look at must not. We paint 8 of the 64 patches over with the
# picture's mean color.


# %%
def covered(images, order):
    """The images with the first eighth of the patches of `order` (batch, num_patches) in their mean color."""
    chosen = torch.zeros(order.shape).scatter_(1, order[:, : order.shape[1] // 8], 1.0)
    mask = F.interpolate(chosen.reshape(-1, 1, *config.grid_size), scale_factor=config.patch_size).bool()
    mean_colour = images.float().mean(dim=(2, 3), keepdim=True)
    return torch.where(mask, mean_colour, images.float()).to(torch.uint8)


# %%
def right(images):
    """The accuracy on the first images of `pictures`, which may be covered in part."""
    return (look(images)[0].argmax(dim=1) == pictures.labels[: len(images)]).float().mean().item()


images = pictures.images[:500]
anywhere = torch.rand(500, config.num_patches, generator=torch.Generator().manual_seed(0)).argsort(dim=1)
print(f"nothing covered  {right(images):.0%} right")
print(f"any eighth       {right(covered(images, anywhere)):.0%} right")

# %% [markdown]
# Any eight patches cost a few in a hundred. Now for three maps: that of the last block, rollout, and the rollout of the
# *fresh* model, which has never learned anything.
#
# **Predict first, in writing.** For each map two numbers: what is left when the most looked-at patches are covered, and
# when the least looked-at are? Six numbers, please. A good map has a low one and a high one.

# %%
predict("what-it-looks-at-most", 50)  # in % right, when the last block's most looked-at patches are covered

# %%
_, weights = look(images)
seen = {
    "last block": class_token_maps(weights[-1]).mean(dim=1).flatten(1),  # (batch, num_patches)
    "rollout": attention_rollout(weights)[:, 0, 1:],
    "fresh model": attention_rollout(look(images, fresh)[1])[:, 0, 1:],
}
hidden = {"": images[23]}
print(f"{'covered by':12}{'most':>6}{'least':>7}")
for name, shares in seen.items():
    most, least = (covered(images, shares.argsort(dim=1, descending=way)) for way in (True, False))
    print(f"{name:12}{right(most):6.0%}{right(least):7.0%}")
    if name == "last block":
        reveal("what-it-looks-at-most", 100 * right(most), within=10)
    hidden |= {f"{name}:\nmost": most[23], f"{name}:\nleast": least[23]}
show_images(torch.stack([*hidden.values()]), titles=[*hidden])

# %% [markdown]
# Read the table slowly. Covering where the model looks costs a good deal of accuracy, so these maps do say something
# about the answer. But the last block's map misses something: its *least* looked-at patches cost more than eight
# patches chosen at random. Find them in the picture: they lie on the shape. The class token collected from them in
# earlier blocks (look at the heads again). Rollout, your first exercise, includes these blocks. It has both the lowest
# number and the highest.

# %% [markdown]
# And the untrained model? Its map is not bad at all! It finds the shape because the shape differs from the background,
# and random weights respond to that too. A map that lies on the object does not prove that the model has learned
# anything (Adebayo et al. 2018 found the same for other maps).

# %% [markdown] question="does-it-explain" points=2
# ### Question: does it explain? (6 minutes, 2 points)
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
# number can be read, follows the number; or cover one tip at a time. Covering has a trap of its own: a gray patch is a
# picture that the model has never seen, so part of the loss may be surprise.
#
# **Rubric.** 1 point: the map shows where, the covering test shows dependence; neither shows how. 1 point: a
# measurement in which the claimed cause is varied while the rest is kept.
# ### END SOLUTION

# %% [markdown]
# ## Your own model
#
# Ten kinds of drawings are an easy data set. `vit_cifar.safetensors`, your model of lesson 07, was trained on another.
# Put the file beside this notebook and run on. (On Colab files are deleted with their runtime: download it in 07, then
# upload it here with the folder symbol on the left.) Without it the ViT that comes with the course takes its place: it
# was trained on CIFAR-10 too, in 18 minutes.
#
# **Predict first, in writing**, each with a reason:
#
# 1. Will its heads look at the thing itself, as they did with drawings, or at what is around it?
# 2. Will a head of its first block look clearly nearer than the dashed line?
# 3. Positions: will those of the rim be similar again, or do you expect rows and columns?
# 4. Covering: which map will find the patches that it needs, and will the fresh model's do nearly as well?
#
# Your own picture is used again, after the heads. Try a thing that is among its ten classes, and then yourself.

# %% tags=["experiment"]
mine_of_07 = Path("vit_cifar.safetensors")
saved = load_model(mine_of_07) if mine_of_07.is_file() else trained_vit()
print("from here on the model is", "yours" if mine_of_07.is_file() else "the one that comes with the course")
model, config, classes = saved.model, saved.config, saved.classes
_, pictures = load_dataset(saved.dataset_name, otherwise="shapes")
pictures = replace(pictures, mean=saved.mean, std=saved.std)
torch.manual_seed(1)
fresh = VisionTransformer(config)


# %% tags=["experiment"]
def taken(layer):
    """(batch, num_heads, rows, columns): what the class token gives to each patch, or all tokens where none is."""
    asking = layer[:, :, :1] if config.pooling == "class_token" else layer
    return asking[..., -config.num_patches :].mean(dim=2).unflatten(-1, config.grid_size)


image = pictures.images[number]
logits, weights = look(image[None])
print(f"the model says: {classes[logits.argmax()]}")
show_every_head(image, [taken(layer)[0] for layer in weights])

# %% tags=["experiment"]
mine = own_picture(path, otherwise=photo())  # your picture from above; or put another path here
logits, weights = look(shrunk(mine))
for share, index in zip(*logits[0].softmax(dim=0).topk(3), strict=True):
    print(f"{share:6.1%}  {classes[index]}")
show_maps(mine, {"where it looked": taken(weights[-1])[0].mean(dim=0)})

# %% [markdown]
# That is one query in one block. Ask for any: choose a patch, a block and a head, then go from raw attention to your
# rollout. **Predict first:** a patch of the background asks. Will it look at the thing, in block 0, and in the last?

# %% tags=["experiment"]
from vit_course.explore import explore_attention

explore_attention(mine, weights, config.grid_size, attention_rollout)

# %% tags=["experiment"]
sizes, count, distances = (config.grid_size, config.patch_size), config.num_patches, {}
for name, somebody in {"trained": model, "fresh": fresh}.items():
    _, weights = look(pictures.images[:100], somebody)
    distances[name] = [mean_attention_distance(layer, *sizes) for layer in weights]
everywhere = mean_attention_distance(torch.full((1, 1, count, count), 1 / count), *sizes)
plot_attention_distance(distances, everywhere.item())

# %% tags=["experiment"]
figure = None
if model.positions is not None:  # a model without positions has nothing to show here
    figure = show_position_similarity(model.positions.detach(), config.grid_size)
figure

# %% tags=["experiment"]
if pictures.classes == classes:  # otherwise nobody can say what is right
    images = pictures.images[:200]
    anywhere = torch.rand(200, count, generator=torch.Generator().manual_seed(0)).argsort(dim=1)
    print(f"nothing covered {right(images):.0%} right, any eighth {right(covered(images, anywhere)):.0%}")
    _, weights = look(images)
    seen = {
        "last block": taken(weights[-1]).mean(dim=1).flatten(1),  # (batch, num_patches)
        "rollout": taken(attention_rollout(weights)[:, None]).flatten(1),
        "fresh model": taken(attention_rollout(look(images, fresh)[1])[:, None]).flatten(1),
    }
    for name, shares in seen.items():
        most, least = (covered(images, shares.argsort(dim=1, descending=way)) for way in (True, False))
        print(f"{name:12} most {right(most):4.0%}   least {right(least):4.0%}")

# %% [markdown]
# Compare with what you wrote, then with the drawings: the heads, the dashed line, the rim, the order of the three maps.
# In our run with the course's model most heads look at parts of the animal, those of the first block a little nearer
# than the dashed line; positions are like those of their neighbors. Covering costs far less than with drawings: 73 %
# are right with nothing covered, 65 % without the patches that rollout names and 73 % without those that it ignores. On
# 200 images chance alone is worth three or four points, so ignore small gaps. And where the two models differ, data,
# size and training have all changed together: you have found a question, and not yet its answer.

# %% [markdown]
# ## A harder one, without points
#
# A weight says how much of a patch was mixed in, and not whether that mattered for the class. Multiply each attention
# weight by the gradient of the class's logit with respect to it, drop what is negative, and take the mean over heads;
# then roll out as you did (Chefer et al. 2021). You need the weights in the graph: run the attention with
# `return_weights=True` and call `retain_grad()` on them. Put your map into the covering experiment above, beside the
# others. Is it better than they are? Is it better than what the fresh model's map is worth?

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. Why is the identity added in every layer of a rollout, and not once?</summary>
#
# Every block has a residual connection of its own, so in each of them the token itself is passed on beside what
# attention adds.
#
# </details>
# <details><summary>2. A head gives each patch the weight 1/64. What is its distance: 0, or as far as can be?</summary>
#
# Neither. It is the mean distance between two patches of the grid, 16.55 pixels, about half the side of the picture:
# our dashed line. A head that prefers far patches lies above it. One that gives all its weight evenly to the patches of
# the rim comes to 18.97; the most is 31.43, where every patch looks at the corner that is farthest from it.
#
# </details>
# <details><summary>3. Your hook works, and the second call of your function records two inputs. What
# happened?</summary>
#
# The first call did not remove its hook. Now there are two, and after the next call three.
#
# </details>
# <details><summary>4. You ask the same model twice and get two maps that differ. Where do you look first?</summary>
#
# At the mode: dropout is on.
#
# </details>
# <details><summary>5. A paper shows attention maps that lie neatly on the objects. What would you ask its authors for?
# </summary>
#
# The same maps of the untrained model, and what happens to the answer when those patches, or others, are covered.
#
# </details>
#
# ## What you can do now
#
# You can cut a picture into tokens, write attention and blocks, build a Vision Transformer that runs torchvision's
# weights, train it, and look into it, and you know how much such a look proves. Now take pictures of your own, with one
# folder for each class: `vit-course recipes` lists ways to train; or take a trained model to them: `09_fine_tuning`.
# What you wrote in this lesson works on the result, with one change. Most of our own recipes, `cpu-coffee` among them,
# have no class token: they pool by the mean of all tokens, so every token's attention counts. Rollout and distance run
# as they are. For the maps, use `taken` above, and in `predict_with_attention` replace row 0 by the mean over all rows:
#
# ```python
# seen = weights[0].mean(dim=(0, 1))[-rows * columns :]  # (num_patches,): over heads and queries
# ```
#
# **Further reading.** Abnar and Zuidema 2020, *Quantifying Attention Flow in Transformers*: rollout. Raghu et al. 2021,
# *Do Vision Transformers See Like Convolutional Neural Networks?*: near and far heads, and how much data they need.
# Jain and Wallace 2019, *Attention is not Explanation*, and Wiegreffe and Pinter 2019, *Attention is not not
# Explanation*: what a map can show. Darcet et al. 2024, *Vision Transformers Need Registers*: bright patches that mean
# nothing.

# %%
progress()
