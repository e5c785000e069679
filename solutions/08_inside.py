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
# - measure whether heads look near or far, and report what you find even when it differs from the textbook;
# - use hooks to read intermediate results from any PyTorch model, and leave the model as it was;
# - test whether an attention map means anything.
#
# | exercise | minutes | points |
# |---|---|---|
# | `attention_rollout` | 12 | 3 |
# | `mean_attention_distance` | 13 | 3 |
# | `predict_with_attention` | 15 | 4 |
# | two written questions | 12 | 2 + 2 |
# | a bug hunt (a seed chooses the bug) | 5 | – |

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
from vit_course.data import Augmentation, load_dataset, own_picture, photo, shapes, train_validation_split
from vit_course.plots import show_images, show_matrix, show_position_similarity
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
# An untrained model has learned nothing, so we need one with a little training. Drawings of ten shapes are enough: a
# small model learns them in a minute, and we know for certain which part of each picture decides its class.


# %%
def new_model(config):
    """A model of your class, with weights initialized as in the first ViT."""
    model = MyViT(config)
    if not isinstance(model, VisionTransformer):  # the course's own model has done this already
        model.config = config
        initialise(model)
    return model


torch.manual_seed(0)
config = ViTConfig(image_size=32, patch_size=4, embed_dim=64, depth=3, num_heads=4, mlp_ratio=2.0)
model = new_model(config)
first_filters = model.patch_embedding.projection.weight.detach().clone()  # for later: what training makes of them
train, pictures = train_validation_split(shapes(7000), 1000)
classes = pictures.classes
show_images(pictures.images[:8], titles=[classes[label] for label in pictures.labels[:8]])

# %% [markdown]
# At the end you look into your own model of lesson 07, or into the one that comes with the course. First we train the
# small one. **This takes about a minute on one core**; the cell prints how long it took. Later you train a second one,
# which takes another minute. Two later cells download something: the weights of a large model (330 MB, which you may
# skip), and CIFAR-10 (170 MB), if lesson 06 has not left it on this machine.

# %% tags=["experiment"]
torch.set_num_threads(1)  # enough for so small a model, and safer on a busy machine
print("six epochs of 6,000 drawings:")
shifted = Augmentation(max_shift=2)
# 6 epochs, batches of 64; Muon (lesson 07) trains the matrices of the blocks, AdamW all the rest
settings = TrainingSettings(6, 64, learning_rate=2e-3, muon_learning_rate=0.02, augmentation=shifted)
history = fit(model, train, pictures, settings, progress=False)
print(f"{sum(history.seconds):.0f} seconds of training")
print(f"right on {history.validation_accuracy[-1]:.1%} of 1,000 drawings that it has not seen")

# %% [markdown]
# ## Every head of every block
#
# `record(model, images)` runs a model and returns its intermediate results by name. The attention weights of each block
# are among them. Four heads in three blocks make twelve tables of 65 × 65 weights for one picture. Row 0 of each is the
# class token's: how it distributes its attention over itself and 64 patches. Without the first entry that row *is* a
# little picture, 8 × 8.


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
# **Predict first.** In block 0 the class token knows nothing about this picture yet. Where does it look: everywhere
# equally, at the shape, or at the background? Will four heads of one block look at the same place? Sketch a star, and
# shade what you expect.

# %%
number = 23
image = pictures.images[number]
logits, weights = look(image[None])
print(f"a {classes[pictures.labels[number]]}; the model says: {classes[logits.argmax()]}")
for block, layer in enumerate(weights):
    kept = ", ".join(f"{share:.0%}" for share in layer[0, :, 0, 0])
    print(f"block {block}: the class token gives itself {kept}")  # a number for each head
show_every_head(image, [class_token_maps(layer)[0] for layer in weights])

# %% [markdown]
# Brighter means more attention; each map is scaled to its own maximum. What the class token gives to itself is only in
# the printed lines: a head that kept nearly everything would still show a bright map. In block 0 the class token has
# the same query in every picture, and only the keys differ. Yet in our run most heads look at the shape from the first
# block on, each in its own way. In the last block, three heads look at a tip of the star, each at another one, and one
# head of block 1 looks at the whole background. Change `number` a few times. Is "the head for tips" the same on every
# picture, or did you see a pattern because you wanted one?

# %% [markdown]
# The next cell saves each of these pictures in a folder, for a report.

# %% tags=["experiment"]
files = save_every_head(image, [class_token_maps(layer)[0] for layer in weights], "heads")
print(f"{len(files)} pictures in {files[0].parent}/, the first is {files[0].name}")

# %% [markdown]
# ## All layers at once
#
# Which of the twelve maps is *the* answer? None. By the last block, every token has collected information from other
# tokens for two blocks. The token of patch 9 may hold a good deal of patch 20 by now. To know what reached the class
# token we have to follow attention through all blocks. That is called **rollout** (Abnar and Zuidema 2020).
#
# ![Rollout in small numbers: to the mean attention of each of two blocks the identity is added, the sum is halved, and
# the two results are multiplied, the later block on the left.](../figures/rollout.svg)

# %% [markdown]
# Two things in a block decide which tokens are mixed. Attention adds a mixture of tokens, and the residual connection
# passes the token itself on. Rollout gives both the same weight, one half each. In the figure, the class token gives
# patch A no weight in the last block, and still a quarter of it comes from A in the end. Find the two paths by which it
# got there. (They bring 0.20 and 0.05.)

# %% [markdown]
# ### Exercise: `attention_rollout` (12 minutes, 3 points)


# %% exercise="attention_rollout"
def attention_rollout(weights):
    """How much of each output token comes from each input token, if attention and residuals did nothing but mix them.

    In each layer: take the mean over the heads, add the identity for the residual connection, and divide each
    row by its sum. Multiply the tables of all layers so that each layer mixes what the layers before it have
    mixed. As in lesson 03, rows are queries, so row i of the result says what output token i is made of.

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
# three blocks. As we add blocks, does the light gather on a few patches (the brightest patch gets a larger share), or
# does it spread (a smaller share)?

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
# In our run it spreads: the brightest patch has a smaller share of the light, which covers the whole shape. (The soft
# edges come from the plotting: the map has only 8 × 8 values.) The last block alone is patchy and looks at three tips.
# Rollout includes the blocks before, and is smoother. Part of this is to be expected: row 0 of the product is a
# weighted mean of the rows of many tokens, and these tokens look at different patches. (It need not happen: a last
# block that looks at one patch only would gather the light there.) Rollout also leaves a good deal out: values, MLPs,
# and the fact that one head may matter more than another. And it counts attention and the token itself as one half
# each. We can measure whether that is right.
#
# **Predict first.** Compare lengths: is what attention adds to a token about as long as the token, longer, or shorter?


# %%
def attention_shares(images):
    """For each block, attention's share in the length of a token: of the class token, and of the patches."""
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
    print(f"block {block}: attention's share is {of_class:.0%} for the class token, {of_patches:.0%} for the patches")

# %% [markdown]
# Rollout takes 50 % for all. In our three runs attention's share is 95 to 97 % for the class token in block 0 (and 56
# to 60 % for the patches). The class token begins as a very short vector, so once attention has been added, nearly all
# of it comes from there: here rollout gives too much to the token itself. In the later blocks the shares are 36 to
# 45 %: there it gives too much to attention (`benchmarks/results/inside.json`, heads). Lengths are a crude measure,
# since the two vectors may point in opposite directions. (Kobayashi et al. 2020, *Attention Is Not Only a Weight*,
# measure the length of what each token really contributes.) So rollout is a useful way to combine maps, not an exact
# account of what the model computes.

# %% [markdown]
# ## How far do heads look?
#
# In a layer of 3 × 3 convolutions each place sees itself and its eight neighbors. A head may look anywhere. Does it?
# The first ViT paper measured how far heads look: for each query patch, the distance to all patches, averaged with the
# attention weights.
#
# ![A query patch on a grid of 4 by 6 patches looks at three patches; each weight times the distance in pixels, added
# up, gives 20.8 pixels.](../figures/attention_distance.svg)

# %% [markdown]
# They found heads that look near and heads that look far side by side in the first blocks, and mostly far ones in the
# deep blocks (Dosovitskiy et al. 2021, figure 7). This is often summed up as *from local to global*.
#
# **Predict first.** A head that looks at all patches equally has a mean distance, too. How large will it be on our
# pictures, which are 32 pixels wide and high? And in which blocks of our small model will heads lie clearly below that?

# %%
predict("all-patches-alike", 16)  # pixels

# %% [markdown]
# ### Exercise: `mean_attention_distance` (13 minutes, 3 points)


# %% exercise="mean_attention_distance"
def mean_attention_distance(weights, grid_size, patch_size):
    """How far each head of one layer looks, in pixels: the mean over images and query patches.

    For one query patch: the sum over all patches of weight times distance. Distances are Euclidean (a straight
    line) between the centers of two patches. The patches come row by row, as patchify cuts them.

    weights:    (batch, num_heads, tokens, tokens), rows are queries and sum to 1. There are rows * columns
                tokens, or one more: then a class token comes first. It has no place in the picture, so leave it
                out, both as a query and as a key, and then divide each row by its sum so that it sums to 1 again.
    grid_size:  (rows, columns) of patches
    patch_size: side of a patch in pixels
    returns:    (num_heads,), of the dtype of the weights and on their device

    By hand: one row of two patches, 16 pixels each. The first gives half of its attention to the other, which
    is 0.5 * 16 = 8 pixels; the second looks at itself, which is 0. Their mean is 4.

    >>> mean_attention_distance(torch.tensor([[[[0.5, 0.5], [0.0, 1.0]]]]), (1, 2), 16)
    tensor([4.])

    If the number of tokens is neither rows * columns nor one more, raise ValueError, and name the numbers of
    tokens, rows and columns in its text. Allowed: everything; torch.cdist may help. About 11 lines.
    """
    ### BEGIN SOLUTION
    rows, columns = grid_size
    tokens, num_patches = weights.shape[-1], rows * columns
    if tokens not in (num_patches, num_patches + 1):
        raise ValueError(f"{tokens} tokens are neither {rows} x {columns} patches nor one more")
    among_patches = weights[..., -num_patches:, -num_patches:]
    among_patches = among_patches / among_patches.sum(dim=-1, keepdim=True)
    patches = torch.arange(num_patches, device=weights.device)
    centers = patch_size * torch.stack([patches // columns, patches % columns], dim=1).to(weights.dtype)
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
# Now we measure both the trained model and a fresh one, with random weights, on two hundred pictures. The dashed line
# shows a head that looks at all patches equally.
#
# A small distance alone does not prove that a head looks at neighbors. If every query looked at the patch in the middle
# of the picture, the distance would be only 12.4 pixels, although nobody looks near. So the measurement needs a
# control: in each picture we give every query the *same* attention, the average over all queries. The further a head's
# distance lies *below* that of its control, the more local it is.


# %%
def averaged(layer):
    """The control: attention among patches, where every query of a picture has the average of all queries."""
    patches = layer[..., -config.num_patches :, -config.num_patches :]
    return patches.mean(dim=2, keepdim=True).expand_as(patches)


def show_distances(images, trained, fresh):
    """How far the heads of a trained and of a fresh model look, and the trained one's control."""
    weights, sizes, count = look(images, trained)[1], (config.grid_size, config.patch_size), config.num_patches
    layers = {"trained": weights, "its control": [averaged(each) for each in weights], "fresh": look(images, fresh)[1]}
    distances = {name: [mean_attention_distance(each, *sizes) for each in group] for name, group in layers.items()}
    for block, pairs in enumerate(zip(distances["trained"], distances["its control"], strict=True)):
        heads = [f"{head:.1f} (control {same:.1f})" for head, same in zip(*pairs, strict=True)]
        print(f"block {block}: {', '.join(heads)}")
    everywhere = mean_attention_distance(torch.full((1, 1, count, count), 1 / count), *sizes)
    return plot_attention_distance(distances, everywhere.item())


torch.manual_seed(1)
fresh = new_model(config)
count = config.num_patches
uniform = torch.full((1, 1, count, count), 1 / count)
everywhere = mean_attention_distance(uniform, config.grid_size, config.patch_size)
reveal("all-patches-alike", everywhere.item(), within=2)
show_distances(pictures.images[:200], model, fresh)

# %% [markdown]
# In our three runs no head of any block is local: equal attention to the neighbors alone would be about 4.7 pixels, and
# no head looks more than 1.7 pixels nearer than its own control; 31 of 36 are within one pixel of it. So if a head lies
# below the line, it is mostly because all queries look at the same thing, such as a shape in the middle, and not
# because each looks near itself. A head may still be sharply focused: on the shape, wherever it is. We do not find
# *from local to global* here, and an honest report says so.

# %% [markdown]
# What is different from the paper? Nearly everything: we have three blocks instead of 24 (a ViT-L), a grid of 8 × 8
# instead of 14 × 14, and six epochs on six thousand drawings, each of a single shape on a plain background, instead of
# a long training on millions of photos. Our positions start at 0.02. The paper's do, too, but its training is long: in
# the short trainings of lesson 07, positions that start so small brought no gain that we could show. And a head that
# does not know where the patches are can look near only where neighbors look alike.
#
# With an internet connection the next cell measures torchvision's ViT-B/16 in the same way, on one photo. If lesson 05
# has not downloaded its weights already, 330 MB are downloaded first (on Colab in every new runtime). Without them
# nothing is drawn, and nothing later needs them. If you get the plot, compare it with the paper's sentence: are there
# heads far below their controls in the first blocks, beside others near the dashed line? Are there any in the last
# blocks? (We cannot tell you what you will see: the machines that made our logs have no access to these weights.)

# %% tags=["experiment"]
import torchvision

from vit_course.torchvision_vit import vit_b_16

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
    same = [layer[..., 1:, 1:].mean(dim=2, keepdim=True).expand(-1, -1, 196, -1) for layer in layers]  # as `averaged`
    controls = [mean_attention_distance(layer, (14, 14), 16) for layer in same]
    figure = plot_attention_distance({"ViT-B/16 on one photo": of_layers, "its control": controls}, alike)
figure

# %% [markdown] question="local-or-global" points=2
# ### Question: why so far? (6 minutes, 2 points)
#
# Choose **one** thing about our small model (its data, its depth, its grid, the length of its training, the start of
# its positions, ...) that you think keeps its heads from looking near. Write down why you think so, and an experiment
# that could prove you wrong: what do you change, what do you keep, what do you measure, how many seeds, and which
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
# Have you written your idea down? Then look at a model between ours and the paper's: the same grid, four blocks,
# trained for 20 epochs on 45,000 photos of CIFAR-10. It pools by the mean of all tokens. The upper half of the figure
# shows what has reached the middle of the picture: for convolutions by counting paths, pixel by pixel, and for this
# trained model by rollout, patch by patch. The lower half shows how far its heads look.
#
# ![Maps by depth: through 3 by 3 convolutions the middle of a picture sees a square that grows by two pixels a layer;
# through attention it can see the whole picture from the first layer on.](../figures/receptive_growth.svg)

# The nearest head is in the second layer, with a mean distance of 12.2 pixels; equal attention to all patches would
# give 16.55, and equal attention to the neighbors alone about 4.7. So even this head is far from local. Perhaps it does
# not look near at all: a head that always looks at the middle gets nearly the same, 12.4, and no control was logged to
# tell the two apart. The *first* layer has no near head. Take care with the maps, too: they follow the patch in the
# middle, and in photos the subject is mostly in the middle. So light around the middle does not prove that a
# neighborhood grows.
#
# This does not settle your question. Photos, size, depth, pooling, the head, the start of the positions (0.5 here)
# and 40 minutes of training all differ from ours at once, and it is one run with one seed.
#
# If your idea was the data, a result on large models supports it. Raghu et al. 2021 measured ViT-L/16 and ViT-H/14.
# Pretrained on JFT, 300 million photos, both have near and far heads side by side in their first blocks. Trained on
# ImageNet alone, 1.3 million photos, they do not learn to look near there, and are much less accurate (figures 3 and 4
# of that paper).
#
# One possible reason why our heads do not look near can be tested in a minute: let positions start at 0.5, and keep all
# else. **Predict first:** will a head of block 0 now look clearly nearer than its control?

# %% tags=["experiment"]
torch.manual_seed(0)
placed = new_model(replace(config, position_std=0.5))
fit(placed, train, pictures, settings, progress=False)
show_distances(pictures.images[:200], placed, new_model(placed.config))

# %% [markdown]
# In our runs from three seeds, the most local of all heads was 1.2 pixels nearer than its control; with small positions
# it was 1.6. So the start of the positions is not what keeps these heads from looking near, or not that alone.

# %% [markdown]
# ## What the first layers have learned
#
# Attention is not all that there is to see. Two tables of weights can be looked at directly. First the positions. They
# were initialized as noise with a standard deviation of 0.02, and the model never gets the row and column of a patch.
#
# **Predict first.** Each small map below belongs to one patch, and shows how similar its position is to all the others.
# Will the map of a patch in the middle and of one in the corner look the same?

# %%
show_position_similarity(model.positions.detach(), config.grid_size)

# %% [markdown]
# After six epochs, the positions of neighboring patches are similar. Something else has appeared, too: all positions
# along the border are similar to one another. Some of our drawings reach it, but on average the shape is in the middle
# and the rim is background. A likely reason: to know whether a patch is *inside* helps more than to know its row or its
# column. Then the model has learned a property of our data set. To test this, train on drawings whose centers may lie
# anywhere, so that many shapes are cut off by the border.

# %% [markdown]
# Now the filters. Each of the 64 numbers of a token says how well its patch matches one learned pattern of 4 × 4
# pixels. Here are the principal components of these patterns: every one of the 64 is a weighted sum of them. The
# strongest comes first, each has its share of the sum of squares of all weights, and 14 of the 48 are shown.

# %% tags=["experiment"]
from vit_course.interpret import patch_filters

trained_filters = model.patch_embedding.projection.weight.detach()
cosine = F.cosine_similarity(first_filters.flatten(), trained_filters.flatten(), dim=0)
print(f"cosine of the filters before and after training: {cosine:.2f}")
filters, shares = patch_filters(trained_filters, config.in_channels, count=14)
show_filters(filters, titles=[f"{share:.0%}" for share in shares], columns=7)

# %% [markdown]
# Noise, for the most part. In the paper's models this picture shows waves and edges (figure 7). Our filters began as
# noise, and the printed cosine says how little a training of six epochs has turned them. They did not need to change: a
# random projection from 48 numbers to 64 keeps everything that is in a patch, since 64 equations determine 48 unknowns.
# A first layer that looks untrained does not prove that a model is bad, and a neat one does not prove that it is good.

# %% [markdown]
# ## Reading what forward does not return
#
# So far `record` did the work. How does it read the weights? The model has no switch that makes it return more: its
# `forward` takes images and gives logits. This is so in *your* `VisionTransformer` of lesson 05, and in most models
# that you will use at work, whose code you cannot edit.
#
# PyTorch has an answer: a **hook**. You register a function with any module inside the model, and PyTorch calls it each
# time that this module runs. Registering gives you a handle; with it you remove the hook again.

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
finally:  # a hook that is not removed runs in every later call
    for handle in handles:
        handle.remove()

# %% [markdown]
# There is one line for each block: the mean length of its tokens. In lesson 04 you saw it grow in untrained blocks.
# PyTorch has two kinds of hooks around a forward. `register_forward_hook` calls you with (module, inputs, output) once
# the module is done; `register_forward_pre_hook` with (module, inputs) before it begins. `inputs` is always a tuple, of
# the positional arguments only. If your function returns something, it takes the place of the output or of the input.
# To listen only, return nothing.
#
# Now for attention. A block calls its attention without `return_weights=True`, so no output holds the weights. But you
# can keep the input of the attention, and then call the attention again yourself: `attention(x, return_weights=True)`,
# as you built it in lesson 03.
#
# **Predict first.** If your hook function itself calls the module that it is hooked to, what happens?
#
# <details><summary>Written down? Then look.</summary>
#
# The hook is called again, which calls the module, which calls the hook ... Python allows only so many calls inside one
# another, and then there is a `RecursionError`. So keep the input, remove the hook, and call the module afterward.
#
# </details>

# %% [markdown]
# ## From a row of weights to a map
#
# Now you write a function that gets the class token's map from a model of yours, without `record`, and leaves the model
# as it was. The model may be in the middle of its training: switch to evaluation mode while you look (otherwise dropout
# changes the answer), and afterward put each module back into its own mode. No gradient should be kept and no hook left
# behind, even after an error.
#
# ### Exercise: `predict_with_attention` (15 minutes, 4 points)


# %% exercise="predict_with_attention"
def predict_with_attention(model, image):
    """What a model says about one image, and where its class token looked in the last block.

    model:   a VisionTransformer as you built it in lesson 05, in training or in evaluation mode. It has
             patch_embedding (with a patch_size), class_token, positions, blocks, norm, head; each block
             has norm1, attention, norm2, mlp. model(images) takes images and nothing else, and
             block.attention(x, return_weights=True) gives (output, weights).
    image:   (channels, height, width), normalized already
    returns: probabilities (num_classes,), and a map (rows, columns): the class token's attention to the
             patches in the last block, the mean over the heads, divided by its sum

    Ask in evaluation mode and without gradients. Afterward, and after an error too, the model is as it was:
    each module in its own mode again, no hook left, nothing frozen. Listening with a hook is one way; walking
    through the parts by hand is another.

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
# Would you have recognized the shape from the lit patches alone? You see an arm of a cross here and the bend of a
# crescent there. This is only the last block; the blocks before it have already collected information.

# %% [markdown]
# ## A bug hunt (5 minutes)
#
# Here is a bug hunt in code where much can go wrong: a mode, a hook, a row, a sum. The seed chooses one of the course's
# known mistakes.

# %%
SEED = 7  # any whole number: your own, or the one that your instructor gave you
suspect = hunt("predict_with_attention", SEED)
suspect

# %% [markdown]
# **Predict first**, once you have read the program: will you see the bug on the map, in the probabilities, or only in
# the model afterward? The next cell uses it on three drawings, with the model in training mode. Its last line removes
# hooks that were left behind.

# %% tags=["raises-exception"]
model.train()
told = [suspect(model, pictures.normalize(each[None])[0]) for each in pictures.images[chosen[:3]]]
listeners = model.blocks[-1].attention._forward_pre_hooks  # private: torch has no public list of hooks
print("still training:", model.training, " hooks left:", len(listeners))
print("sums:", [(round(shares.sum().item(), 3), round(seen.sum().item(), 3)) for shares, seen in told])
listeners.clear()
both = torch.stack([seen for _, seen in told] + maps[:3])
show_lit(pictures.images[chosen[:3] * 2], both, ["the suspect's"] * 3 + ["yours"] * 3)

# %% [markdown]
# Same maps, sums of 1, and nothing left behind? Then try a picture that is wider than tall, or a model with dropout.
# Repair a copy, and check it.

# %%
mended = None  # paste the program above this line, mend it, and put its name in place of None
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
# A model cannot say "that is no shape at all": its ten probabilities sum to 1, whatever the image, and nothing in its
# training taught it to spread them evenly when no class fits. So it names the best of ten bad answers, and sometimes
# with great confidence. And you get a map for a question that makes no sense, too.

# %% [markdown]
# ## Does the map mean anything?
#
# So far we have only looked at maps. Now we test them: if the model needs what it looks at, then covering those patches
# must cost accuracy, and covering other patches must cost little. We paint 8 of the 64 patches over with the picture's
# mean color. (Papers call this a deletion or perturbation test: Samek et al. 2017, Petsiuk et al. 2018.)
#
# The test has a trap: the model has never seen painted pictures, and may lose accuracy to the paint itself. So random
# patches come first. They show what eight painted patches cost when no map has chosen them. (Hooker et al. 2019 train
# anew on the painted pictures instead, one training for each map.)


# %%
def covered(images, order):
    """Copies of the images; the first eighth of the patches in `order` (batch, num_patches) has the mean color."""
    chosen = torch.zeros(order.shape).scatter_(1, order[:, : order.shape[1] // 8], 1.0)
    mask = F.interpolate(chosen.reshape(-1, 1, *config.grid_size), scale_factor=config.patch_size).bool()
    mean_color = images.float().mean(dim=(2, 3), keepdim=True)
    return torch.where(mask, mean_color, images.float()).to(torch.uint8)


# %%
def right(images):
    """The accuracy on the first images of `pictures`, which may be covered in part."""
    return (look(images)[0].argmax(dim=1) == pictures.labels[: len(images)]).float().mean().item()


def cover_anything(images, times=10):
    """Accuracy with nothing covered, and with an eighth of the patches chosen at random, so many times."""
    generator = torch.Generator().manual_seed(0)
    orders = torch.rand(times, len(images), config.num_patches, generator=generator).argsort(dim=2)
    each = torch.tensor([right(covered(images, order)) for order in orders])
    print(f"nothing covered   {right(images):.1%} right")
    print(f"random patches    {each.mean():.1%} right, from {each.min():.1%} to {each.max():.1%} in {times} choices")


images = pictures.images[:500]
cover_anything(images)

# %% [markdown]
# This is the cost of eight random patches. Now we test three maps: that of the last block, rollout, and the rollout of
# the *fresh* model, which has never learned anything.
#
# **Predict first.** Write down two numbers for each map: the accuracy when its most looked-at patches are covered, and
# when its least looked-at patches are. For a good map the first number is low and the second is high.


# %%
predict("what-it-looks-at-most", 50)  # in % right, when the last block's most looked-at patches are covered


# %%
def cover_by_maps(images, seen, number):
    """Accuracy without the patches that each map (batch, num_patches) names most, and least; a picture of one image."""
    hidden = {"": images[number]}
    print(f"{'covered by':12}{'most':>6}{'least':>7}")
    for name, shares in seen.items():
        most, least = (covered(images, shares.argsort(dim=1, descending=way)) for way in (True, False))
        print(f"{name:12}{right(most):6.1%}{right(least):7.1%}")
        hidden |= {f"{name}:\nmost": most[number], f"{name}:\nleast": least[number]}
    return show_images(torch.stack([*hidden.values()]), titles=[*hidden])


_, weights = look(images)
seen = {
    "last block": class_token_maps(weights[-1]).mean(dim=1).flatten(1),  # (batch, num_patches)
    "rollout": attention_rollout(weights)[:, 0, 1:],
    "fresh model": attention_rollout(look(images, fresh)[1])[:, 0, 1:],
}
cover_by_maps(images, seen, number=23)
most = covered(images, seen["last block"].argsort(dim=1, descending=True))
reveal("what-it-looks-at-most", 100 * right(most), within=10)

# %% [markdown]
# Read the table slowly. Covering where the model looks costs a good deal of accuracy, so these maps do say something
# about the answer. Then compare the second column with the random patches. We trained from three seeds
# (`benchmarks/results/inside.json`). With the patches covered that the last block looks at *least*, 82.0, 86.8 and
# 71.4 % were right; with random ones covered, 87.3, 88.6 and 88.1 %. In the first and the third run that is clearly
# **worse** than random; in the second it lies within what ten random choices give. If it is worse in yours, find these
# patches in the picture: do they lie on the shape? A likely reason: the class token had collected from them in earlier
# blocks, and the last block had no need to look again (see the heads above).
#
# Rollout, your first exercise, includes the earlier blocks. In each of our runs it was the best of the three in both
# columns: lowest in the first (27.6, 31.0 and 24.6 %), highest in the second (93.8, 95.0 and 93.8 %). If it is not in
# yours, take that as a warning about single runs.

# %% [markdown]
# And the untrained model? Its map is not bad at all! With what it names most covered, 51.6, 61.2 and 60.8 % were right,
# far fewer than with random patches covered. Probably it finds the shape because the shape differs from the background,
# and random weights respond to that, too. A map that lies on the object does not prove that the model has learned
# anything. (Adebayo et al. 2018 replaced trained weights by random ones: the maps of guided backpropagation hardly
# changed. Plain gradients, as in the next cell, passed this test.) The maps of a ViT trained without labels, DINO,
# outline objects better than those of one trained with labels (Caron et al. 2021); they have to pass such tests, too.
#
# A *gradient map* needs no attention at all: how steeply does the logit of the winning class change with each pixel?


# %%
def gradient_map(images):
    """(batch, num_patches): the size of the winning logit's gradient, mean over the pixels of each patch."""
    pixels = pictures.normalize(images).requires_grad_()
    (gradient,) = torch.autograd.grad(model.eval()(pixels).amax(dim=1).sum(), pixels)
    return F.avg_pool2d(gradient.abs().sum(dim=1), config.patch_size).flatten(1)


cover_by_maps(images, {"gradient": gradient_map(images)}, number=23)

# %% [markdown]
# In our runs its first column lies between the fresh model's map and rollout: with what it names most covered, 39.8,
# 47.8 and 40.2 % are right. (The last block's number is lower than that in two runs of three.) In the second column the
# gradient is as good as rollout. It says where a *small* change of a pixel would move this logit, and not what the
# model does without that patch, or why.
#
# Covering changes the picture. We can also change the *model*: take one head out, and see what the others can do
# without it. That is called **ablation**. There are two ways to take it out. *Zero* ablation puts zeros in the place of
# what the head gives. But a head never gives exactly zeros, and later layers may stumble over numbers that they have
# never seen. So *mean* ablation puts in the head's mean over all pictures and tokens: then only what *differs* from
# picture to picture and from token to token is lost. **Predict first:** which of the twelve heads will the model miss
# most? Look at the maps of the heads again before you choose.


# %%
def right_without(block, head, images, mean):
    """Accuracy when a head's part of what the projection reads is its mean everywhere, or zero."""
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
places = [(mean, head) for mean in (False, True) for head in range(config.num_heads)]
left = [[right_without(block, head, images, mean) for mean, head in places] for block in range(config.depth)]
columns = f"heads as zeros, and from {config.num_heads} on the same heads as their mean"
show_matrix(100 * torch.tensor(left), "block", columns, "right without this head, in %")

# %% [markdown]
# Was it the head that you chose? (One accuracy on 500 drawings has a standard error of one point at 94 % and of two at
# 75 %, so do not rank heads that are only a few points apart.) With means, the model missed each head of block 0 more
# than any head of the last block in each of our three runs, with zeros in two of them. (Block 1 lies between: in two
# runs one of its heads was missed about as much as those of block 0.) One reason may be that every later block works
# with what the early heads have written. Yet it is the last block whose maps are usually shown. A head with a striking
# map may be one that the model can do without, and a head with a dull map may be needed.
#
# Neither way of taking a head out is always the gentler one. Four heads in three runs make twelve cases for each block.
# The mean cost less than zeros in 11 of the 12 of the last block, but more in 10 of the 12 of block 0. (One mean for
# the class token and all patches may fit none of them.) What an ablation shows is narrower than it looks, too: how much
# the model misses this head when all others stay as they are. Two heads that can replace each other look useless one by
# one. Take out both, and they may not be.

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
# number can be read, follows the number; or cover one tip at a time. Covering has a trap of its own: the model has
# never seen pictures with gray patches, so part of the drop in accuracy may come from that.
#
# **Rubric.** 1 point: the map shows where, the covering test shows dependence; neither shows how. 1 point: a
# measurement in which the claimed cause is varied while the rest is kept.
# ### END SOLUTION

# %% [markdown]
# ## Your own model
#
# **Here the core of the lesson ends.** The rest makes the same measurements on a model of photos. Take what you want.
# From here on the names `model`, `config`, `classes`, `pictures` and `fresh` stand for something else: to go back to
# the drawings, run the notebook from the top.
#
# `vit_cifar.safetensors`, your model of lesson 07, was trained on photos. Put the file beside this notebook. (On Colab
# files are deleted with their runtime: download it in 07, then upload it here with the folder symbol on the left.)
# Without it the ViT that comes with the course takes its place: it was trained on CIFAR-10 too, in 18 minutes.
#
# **Predict first, in writing**, each with a reason:
#
# 1. Will its heads look at the object itself, as they did with drawings, or at its surroundings?
# 2. Will a head of its first block look clearly nearer than its control?
# 3. Positions: will those of the border be similar again, or do you expect rows and columns?
# 4. Filters: noise again, or something that you can name?
# 5. Covering: which map will find the patches that it needs, and will the fresh model's do nearly as well?
#
# After the heads, the model gets your own picture again. Try an object from its ten classes, and then a photo of
# yourself.

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
    """(batch, num_heads, rows, columns): the class token's attention to each patch; without one, all tokens' mean."""
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
# That is one query in one block. You can see any other query, too: choose a patch, a block and a head, then go from raw
# attention to your rollout. **Predict first:** take a patch of the background as the query. Will it look at the object
# in block 0? And in the last block?

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
filters, shares = patch_filters(model.patch_embedding.projection.weight.detach(), config.in_channels, count=14)
show_filters(filters, titles=[f"{share:.0%}" for share in shares], columns=7)

# %% tags=["experiment"]
figure = None
if pictures.classes == classes:  # otherwise nobody can say what is right
    images = pictures.images[:200]
    cover_anything(images)
    _, weights = look(images)
    seen = {
        "last block": taken(weights[-1]).mean(dim=1).flatten(1),  # (batch, num_patches)
        "rollout": taken(attention_rollout(weights)[:, None]).flatten(1),
        "fresh model": taken(attention_rollout(look(images, fresh)[1])[:, None]).flatten(1),
        "gradient": gradient_map(images),
    }
    figure = cover_by_maps(images, seen, number)
figure

# %% [markdown]
# One last question to this model: *where* does the answer arise? After each block we read the class token with a linear
# classifier, fitted by least squares on 3,000 photos and measured on 1,000 others. (Alain and Bengio 2016 call this a
# probe; in lesson 09 you write a better one.) For comparison we read the mean of the patches' tokens. (Does your model
# pool by the mean? Then it has no class token: what the cell prints as "class token" is its first patch, in a corner of
# the photo. The answer arises in the mean, so read the numbers of the mean, and skip this prediction.)
# **Predict first:** what share does the class token get right after block 0? And after which block has it half of its
# final lead over guessing (10 %)?

# %%
predict("class-token-after-block-0", 30)  # in % right


# %% tags=["experiment"]
def token_means(images, size=500):
    """For each block, token 0 and the mean of the patches' tokens: (images, 2, embed_dim).

    Token 0 is the class token; in a model without one (yours may be such) it is the first patch.
    """
    stages = {}
    for batch in images.split(size):
        with torch.no_grad():
            found = record(model, pictures.normalize(batch))
        for number in range(config.depth):
            tokens = found[f"blocks.{number}.output"]
            pair = torch.stack([tokens[:, 0], tokens[:, -config.num_patches :].mean(dim=1)], dim=1)
            stages.setdefault(number, []).append(pair)
    return [torch.cat(each) for each in stages.values()]


def probed(features, labels):
    """Percent right of the last quarter, by a linear classifier fitted on the rest."""
    known = 3 * len(features) // 4
    inputs = torch.cat([features, torch.ones(len(features), 1)], dim=1)
    weights = torch.linalg.lstsq(inputs[:known], F.one_hot(labels[:known]).float()).solution
    return 100 * ((inputs[known:] @ weights).argmax(dim=1) == labels[known:]).float().mean().item()


def head_reads(pairs, labels):
    """Percent right when the model's own norm and head read what it classifies by, after any block."""
    which = 0 if config.pooling == "class_token" else 1
    with torch.no_grad():
        logits = model.head(model.norm(pairs[:, which]))
    return 100 * (logits.argmax(dim=1) == labels).float().mean().item()


images, labels = pictures.images[:4_000], pictures.labels[:4_000]
with torch.no_grad():  # the control: before any block only the patches know something about the photo
    before = model.patch_embedding(pictures.normalize(images)).mean(dim=1)
print(f"before block 0: mean of the patches {probed(before, labels):.1f} %")
after_blocks = token_means(images)
for block, pair in enumerate(after_blocks):
    of_class_token, of_patches = (probed(pair[:, which], labels) for which in (0, 1))
    print(f"after block {block}: class token {of_class_token:.1f} %, mean of the patches {of_patches:.1f} %")
    if block == 0:
        reveal("class-token-after-block-0", of_class_token, within=5)

# %% [markdown]
# In our run the class token had 41.1 % after block 0, then 57.4, 67.2 and 75.1 %; the patches had 45.7, 56.5, 58.0 and
# 63.5 %. Guessing gives 10 %, so count what is above it: after one block the class token has 31 of its final 65 points,
# about half. Each block adds to it, and none *is* the place of the answer. (Before any block the mean patch of a photo,
# 48 numbers, already gives 23.8 %.) At first the class token knows no more than the patches; later it is far ahead,
# since it is what the head reads. A probe shows what *can* be read, though, not what the model uses: for that you need
# an ablation.
#
# A probe is fitted anew after each block. The model's *own* head has learned to read what the last block gives. We let
# it read the class token after every block, through the last norm. (For language models this is called a *logit lens*:
# nostalgebraist 2020.) **Predict first:** after block 0, does it get less than the probe, the same, or more?

# %% tags=["experiment"]
for block, pairs in enumerate(after_blocks):
    print(f"after block {block}: the model's own head gets {head_reads(pairs, labels):.1f} %")

# %% [markdown]
# In our run 20.9, 41.5, 67.1 and 76.6 %. After block 0 the head gets half of what the probe found, after block 2 the
# same. So early on the class token holds more than the head can read: it lies in other directions than those that the
# head has learned. (Without a class token we take the mean before the norm, the model after it: then the last number is
# only close to its accuracy.)

# %% [markdown]
# Compare with what you wrote, and then with the drawings. In our run with the course's model, on a photo of an animal
# (your files may have the photos in another order), most heads look at parts of it, and positions are like those of
# their neighbors. Heads of the first two blocks look one to three pixels nearer than their controls, and those of the
# last two stay within a pixel of theirs. That is a weak form of *from local to global*, and without the controls you
# would hardly see it. The first filter is one plain color, and others are edges: light beside dark, or orange above
# blue. They are in no line of our code; training has made them.
#
# Covering costs far less than with drawings. One accuracy on 200 images has a standard error of 3 points, so we drew
# 200 photos three times. The means (`benchmarks/results/inside.json`):
#
# | covered, % right | most looked at | least looked at |
# |---|---|---|
# | by the last block | 67.8 | 69.7 |
# | by rollout | 66.3 | 72.2 |
# | by the fresh model's rollout | 70.5 | 70.5 |
# | by the gradient | 67.3 | 73.5 |
#
# Nothing covered gives 74.8 %, random patches 71.7 %. A useful map has a gap between its two columns. For rollout the
# gap is 5.8 ± 5.2 points, for the gradient, which uses no attention at all, 6.2 ± 5.2, and for the last block 1.8 ±
# 5.2 (taken before rounding). For the fresh model we see no gap: if its map says something about what the model needs
# on these photos, it is too little for this test. A likely reason: in a photo the object does not stand on a plain
# background. (The ± counts the two columns as measured on different photos. They come from the same 600 photos, so the
# gaps are more precise than that (lesson 07), but not precise enough for a point or two. In the three draws one by one,
# rollout's gap is 7.0, 0.5 and 10.0 points, and the gradient's 2.5, 3.5 and 12.5: one draw of 200 could have shown you
# almost anything.)
#
# And where the two models differ, data, size and training have all changed together: you have found a question, and not
# yet its answer.

# %% [markdown]
# ## A harder one, without points
#
# An attention weight says how much of a patch was mixed in. It does not say whether that mattered for the class.
# Multiply each attention weight by the gradient of the class's logit with respect to it, set what is negative to zero,
# and take the mean over heads: that is the table $A$ of a layer. Start with $R = I$, the identity, and go through the
# layers with $R \leftarrow R + A R$; rows are not divided by their sums (Chefer et al. 2021, *Generic Attention-model
# Explainability*). You need weights that are in the graph of the logits. `record(model, images)` outside of `no_grad`
# gives them, and `torch.autograd.grad(logits[0, label], weights)` the gradients. Put your map into the covering
# experiment above, beside the others. Is it better than rollout, and how far is it above the fresh model's map?

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
# ## What you can do now
#
# You can cut a picture into tokens, write attention and blocks, build a Vision Transformer that runs torchvision's
# weights, train it, and look into it, and you know how much such a look proves. Now take pictures of your own, with one
# folder for each class: `vit-course recipes` lists ways to train; or adapt a trained model to them, in
# `09_fine_tuning`. What you wrote in this lesson works on the result, with one change. Most of our own recipes,
# `cpu-coffee` among them, have no class token: they pool by the mean of all tokens, so every token's attention counts.
# Rollout and distance run as they are. For the maps, use `taken` above, and in `predict_with_attention` replace row 0
# by the mean over all rows:
#
# ```python
# seen = weights[0].mean(dim=(0, 1))[-rows * columns :]  # (num_patches,): over heads and queries
# ```
#
# **Further reading.** Abnar and Zuidema 2020, *Quantifying Attention Flow in Transformers*: rollout. Raghu et al. 2021,
# *Do Vision Transformers See Like Convolutional Neural Networks?*: near and far heads, and how much data they need.
# Jain and Wallace 2019, *Attention is not Explanation*, and Wiegreffe and Pinter 2019, *Attention is not not
# Explanation*: what a map can show. Darcet et al. 2024, *Vision Transformers Need Registers*: bright patches that say
# little about their own place.

# %%
progress()
