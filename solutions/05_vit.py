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
# # 05 · The whole picture
#
# You have written patches, positions, attention and blocks. Here you join them to one model, and it is a real one: at
# the end the weights of torchvision's ViT-B/16 run in the class that *you* wrote, and give torchvision's logits, up
# to rounding.
#
# **After this lesson you can**
# - build a Vision Transformer from its parts, for any depth and any image size that the patch size divides;
# - say where its parameters are, and count them without building it;
# - explain why a falling loss proves little, and find a bug that it hides;
# - put somebody else's weights into your model, and prove that they arrived.
#
# <!-- table: tasks -->

# %%
from dataclasses import replace

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

from vit_course import PRESETS, ViTConfig, initialise
from vit_course import check, hunt, keep, own, predict, progress, record, reveal
from vit_course.data import photo, shapes, train_validation_split
from vit_course.plots import show_images, show_position_similarity
from vit_course.training import TrainingSettings, fit

PatchEmbedding, add_class_token, EncoderBlock = own(
    "PatchEmbedding", "add_class_token", "EncoderBlock"
)

# %% [markdown]
# ## The whole model in one picture
#
# ![The Vision Transformer from top to bottom. A photo is cut into 196 patches, patch_embedding turns each into a
# token of 768 numbers, a class token joins in front, positions are added, 12 blocks follow, then a norm; the class
# token goes on alone through the head to 1000 logits.](../figures/vit_architecture.svg)
#
# Follow the path from the photo down to the logits. You know all of it except two parts: one more norm after the
# blocks, and the head, which is a single Linear.
#
# **Predict first.** Five images of 3 × 24 × 32 pixels enter a model with `patch_size = 8`, `embed_dim = 48`, 4 heads
# and 2 blocks. How many tokens enter the first block?

# %%
predict("tokens-in-the-stream", 13)  # that enter the first block

# %%
# the course's own, to look at from outside
from vit_course import VisionTransformer as ReferenceViT

torch.manual_seed(5)
config = ViTConfig(
    image_size=(24, 32),
    patch_size=8,
    embed_dim=48,
    depth=2,
    num_heads=4,
    num_classes=10,
)
# runs the model, keeps what each part gives, by name
stages = record(ReferenceViT(config), torch.rand(5, 3, 24, 32))
for name, stage in stages.items():
    print(f"{name:28} {tuple(stage.shape)}")
reveal("tokens-in-the-stream", stages["embedding"].shape[1])

# %% [markdown]
# Look down the column of shapes from `embedding` to `norm`: apart from the attention weights it never changes. Every
# block takes as many tokens as it gives. At the end the head reads only the first of them, the class token. So all
# that the head can know about the image, the class token must collect in the blocks, by attention.

# %% [markdown]
# ## Six parts
#
# Here are all parts of a Vision Transformer. The checks find them by these names, and so will the function with which
# you load torchvision's weights.
#
# | attribute | what | shape or size |
# |---|---|---|
# | `patch_embedding` | `PatchEmbedding`, lesson 01 | `in_channels`, `patch_size`, `embed_dim` |
# | `class_token` | `nn.Parameter` of zeros | (1, 1, `embed_dim`) |
# | `positions` | `nn.Parameter`, normally distributed, standard deviation 0.02 | (1, 1 + `num_patches`, `embed_dim`) |
# | `blocks` | `nn.ModuleList` of `EncoderBlock`, lesson 04 | `depth` of them |
# | `norm` | `nn.LayerNorm` | `embed_dim`, with `eps=layer_norm_eps` |
# | `head` | `nn.Linear` | `embed_dim` to `num_classes` |
#
# All sizes are fields of the `config`, which is a `ViTConfig`. An `EncoderBlock` takes `embed_dim`, `num_heads` and
# `mlp_ratio`, then `qkv_bias=` and `layer_norm_eps=` by name; `add_class_token(tokens, class_token, positions)` of
# lesson 02 joins the class token *and* adds the positions.

# %%
print(config.image_size, "gives", config.num_patches, "patches")
print("eps is", config.layer_norm_eps)
sizes = config.embed_dim, config.num_heads, config.mlp_ratio
print(EncoderBlock(*sizes, qkv_bias=False, layer_norm_eps=1e-6))

# %% [markdown]
# ### Exercise: `VisionTransformer`


# %% exercise="VisionTransformer"
class VisionTransformer(nn.Module):
    """Images to logits, with a class token and learned positions.

    The attributes are those of the table above: patch_embedding, class_token,
    positions, blocks, norm, head. The class token stands at index 0, in front of the
    patches, and has a position like every other token. After the blocks comes the norm,
    and the head reads the class token alone. Logits are plain numbers: no softmax.

    config:  a ViTConfig. Read from it in_channels, patch_size, embed_dim, num_patches,
             depth, num_heads, mlp_ratio, qkv_bias, layer_norm_eps, num_classes. You
             need not read its other options (mean pooling, sine tables, dropout).
    images:  (batch, in_channels, height, width)
    returns: logits (batch, num_classes)

    >>> config = ViTConfig(image_size=(8, 12), patch_size=4, embed_dim=6, depth=2,
    ...                    num_heads=2, num_classes=5)
    >>> model = VisionTransformer(config)
    >>> tuple(model(torch.zeros(3, 3, 8, 12)).shape)
    (3, 5)
    >>> tuple(model.positions.shape), len(model.blocks)  # 2 x 3 patches, class token
    ((1, 7, 6), 2)

    Allowed: PatchEmbedding, add_class_token and EncoderBlock, operations on tensors,
    and the modules of torch.nn except its ready-made Transformers and
    MultiheadAttention. About 20 lines in __init__ and 6 in forward.
    """

    def __init__(self, config):
        super().__init__()
        ### BEGIN SOLUTION
        dim, eps = config.embed_dim, config.layer_norm_eps
        self.patch_embedding = PatchEmbedding(
            config.in_channels, config.patch_size, dim
        )
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.positions = nn.Parameter(
            0.02 * torch.randn(1, 1 + config.num_patches, dim)
        )
        self.blocks = nn.ModuleList(
            EncoderBlock(
                dim,
                config.num_heads,
                config.mlp_ratio,
                qkv_bias=config.qkv_bias,
                layer_norm_eps=eps,
            )
            for _ in range(config.depth)
        )
        self.norm = nn.LayerNorm(dim, eps=eps)
        self.head = nn.Linear(dim, config.num_classes)
        ### END SOLUTION

    def forward(self, images):
        ### BEGIN SOLUTION
        patches = self.patch_embedding(images)  # (batch, num_patches, embed_dim)
        # (batch, 1 + num_patches, embed_dim)
        x = add_class_token(patches, self.class_token, self.positions)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])  # (batch, num_classes)
        ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# "has no parameter …"? Compare the names letter by letter; a plain Python list of blocks hides them all from torch.
# "Sizes of tensors must match except in dimension 1"? You have one class token, and need one for every image. "what
# enters `norm` is wrong already"? Somewhere between two blocks a result is not passed on.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# In the picture, which things stand on the path from the photo to the logits, and which of them have parameters? Each
# one with parameters is a line in `__init__`, and each is used once in `forward`. Is one of your lines used twice, or
# never?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# __init__: one attribute for each row of the table; a new EncoderBlock for every one of
#           depth blocks
# forward:  patches from the patch embedding
#           one class token for each image, in front of its patches
#           add the positions
#           through every block, in order
#           norm; take token 0; head
# ```
#
# </details>

# %% check="VisionTransformer" points=10
check("VisionTransformer", VisionTransformer)

# %%
deep = ReferenceViT(ViTConfig(depth=12))
with torch.no_grad():
    stages = record(deep, torch.randn(8, 3, 32, 32))
spreads = [stages[f"blocks.{number}.output"].std().item() for number in range(12)]

figure, axes = plt.subplots(figsize=(7, 2.4), facecolor="#fbfaf7", layout="constrained")
heights = [stages["embedding"].std().item(), *spreads, stages["norm"].std().item()]
bars = axes.bar(["in", *map(str, range(12)), "norm"], heights, color="#0072B2")
bars[-1].set_color("#E69F00")
axes.bar_label(bars, fmt="%.2f", fontsize=8)
axes.set(
    xlabel="after block",
    ylabel="spread (standard deviation)",
    ylim=(0, 3.2),
    facecolor="#fbfaf7",
)
plt.show()

# %% [markdown]
# What is the last norm for? We sent noise through twelve fresh blocks. Every block *adds* to the stream and nothing
# scales it back. So the spread becomes nearly three times that of the first bar, `in` (2.8, 2.8 and 2.9 times from
# three seeds, `benchmarks/results/short_lessons.json`), and training may increase it further. The final norm brings
# the stream back to a spread of about 1 for the head.

# %% [markdown]
# Here is what you built, in the size known as ViT-Ti/16: tiny, with patches of 16 pixels. (S, B and L are small, base
# and large.) torchinfo runs it once on a photo and prints a table of its layers.

# %%
try:
    from torchinfo import summary
except ModuleNotFoundError:
    print(
        "No table: torchinfo is missing. With a network, run `%pip install torchinfo`."
    )
else:
    vit_tiny = VisionTransformer(PRESETS["vit_tiny_16"])
    print(summary(vit_tiny, input_size=(1, 3, 224, 224), depth=1, verbose=0))

# %% [markdown]
# The blocks have 93 % of the parameters. The 38,016 in the table's first line are 198 · 192: one class token and 197
# positions, which belong to no layer. Do not trust the line "mult-adds": torchinfo counts each Linear once, though it
# is applied to 197 tokens.
#
# A habit for every training: first **look at the loss of the fresh model.** It knows nothing, so it should give each
# of the ten classes about the same probability, and its loss should be near −log(1/10) = 2.30. How near depends on
# how the weights start:
#
# - **yours:** each Linear starts as torch starts it, with small random numbers;
# - **the paper's:** the Linears of the blocks start Xavier-uniform (Glorot and Bengio 2010), and the *head starts at
#   zero* (`initialise` does this to your model, here and from lesson 06 on);
# - **randn:** somebody wrote `torch.randn` for the weights of the head.
#
# **Predict first.** How large is the loss of the third?

# %%
predict("loss-of-randn", 3)

# %%
data = shapes(9000)
train, validation = train_validation_split(data, 1000)
small = ViTConfig(patch_size=8, embed_dim=64, depth=4, num_heads=4)
images, labels = train.normalize(train.images[:500]), train.labels[:500]
fresh = VisionTransformer(small)
fresh.config = small  # `initialise` reads it
with torch.no_grad():
    for start in ("yours", "the paper's", "randn"):
        if start == "the paper's":
            initialise(fresh)
        if start == "randn":
            fresh.head.weight.normal_()
        first_loss = F.cross_entropy(fresh(images), labels).item()
        print(f"first loss, {start:12} {first_loss:.4f}")
reveal("loss-of-randn", first_loss, within=4)
show_images(data.images[:8], titles=[data.classes[label] for label in data.labels[:8]])

# %% [markdown]
# If ten classes start with a loss of 7, look for a bug, usually in the scale of the initial weights.
#
# <details><summary>Why the three losses are what they are</summary>
#
# With a head of zeros all logits are 0, and the loss is log 10 to the last digit. Yours is a little above (2.43 to
# 2.49 from three seeds, `benchmarks/results/short_lessons.json`), since its logits are small but not 0. The third is
# far worse than guessing (11.6 to 14.1). The head adds up 64 numbers of size 1 with weights of size 1, so its logits
# have a standard deviation of about 8, the root of 64. The model is sure of its answers, and mostly wrong.
#
# </details>

# %% [markdown]
# ## Where the parameters are
#
# How large is a model? You can tell from its config alone. A Linear from a to b has a · b weights and b biases, a
# LayerNorm has two vectors, and the shapes of class token and positions are in the table above.
#
# **Predict first.** In ViT-Ti/16, 93 % of the parameters are in the blocks. ViT-B/16 has as many blocks, and its
# tokens are four times as long. What share do its blocks have?

# %%
predict("share-in-blocks", 90)  # in %

# %% [markdown]
# ### Exercise: `count_parameters`


# %% exercise="count_parameters"
def count_parameters(config):
    """How many parameters a VisionTransformer(config) has, without building one.

    Count the model above: class token, learned positions, one Linear as the head.
    `qkv_bias` and `mlp_ratio` (`config.hidden_dim` is the MLP's width, a whole number)
    may be anything.

    By hand: one channel, patch_size 2, image 2 x 4, embed_dim 3, depth 0, 2 classes.
    The patch embedding has 4 * 3 + 3, the class token 3, the positions 3 * 3, the norm
    2 * 3, the head 3 * 2 + 2: 41 in all.

    >>> count_parameters(ViTConfig((2, 4), 2, in_channels=1, num_classes=2, embed_dim=3,
    ...                            depth=0, num_heads=1))
    41

    returns: an int

    Allowed: arithmetic with Python's numbers; no tensor and no module, not even on the
    meta device. About 9 lines.
    """
    ### BEGIN SOLUTION
    dim, hidden = config.embed_dim, config.hidden_dim
    norm = 2 * dim
    patch_embedding = (config.in_channels * config.patch_size**2 + 1) * dim
    class_token_and_positions = dim + (1 + config.num_patches) * dim
    attention = 3 * dim * dim + (3 * dim if config.qkv_bias else 0) + (dim + 1) * dim
    mlp = (dim + 1) * hidden + (hidden + 1) * dim
    blocks = config.depth * (norm + attention + norm + mlp)
    head = (dim + 1) * config.num_classes
    return patch_embedding + class_token_and_positions + blocks + norm + head
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# The check says by how much you are off. Divide that number by `embed_dim`: is it 1, 2, 3, or `embed_dim` itself? If
# the difference grows with `depth`, the mistake is in the block.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# Print name and shape of `VisionTransformer(config).named_parameters()` for a config of depth 1. How many lines are
# there, and which of them are missing from your formula?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# patch embedding: (numbers in a patch) to embed_dim, and a bias
# class token: one vector; positions: one vector for every token
# a block: two norms; qkv (bias if asked for); projection; two Linears of the MLP
# after the blocks: one norm, one Linear
# ```
#
# </details>

# %% check="count_parameters" points=3
check("count_parameters", count_parameters)

# %%
for name in ("vit_tiny_16", "vit_small_16", "vit_base_16", "vit_large_16"):
    print(f"{name:13} {count_parameters(PRESETS[name]):>13,}")
base = PRESETS["vit_base_16"]
share = 1 - count_parameters(replace(base, depth=0)) / count_parameters(base)
reveal("share-in-blocks", 100 * share, within=2)
giant = replace(PRESETS["vit_large_16"], embed_dim=2**17, depth=1000, num_heads=1024)
print(f"{'a giant':13} {count_parameters(giant):>13,}")

# %% [markdown]
# ![Two stacked bars. Of ViT-B/16's 86.6 million parameters 98.3 % are in its 12 blocks; of a block, attention has one
# third and the MLP two thirds.](../figures/parameters.svg)
#
# The matrices of a block grow with the *square* of `embed_dim`; patch embedding, positions and head only in
# proportion to it. Within a block the MLP has two thirds. The positions, on which you spent a whole lesson, are 0.2
# %. The giant could not be built here, but it can be counted.

# %% [markdown]
# ## Two broken models
#
# Now we train three models that start from the same random weights. The first is yours. In the second somebody wrote
# `reshape` where `transpose` was needed (lesson 01): a token does not hold the 64 features of one patch, but four
# features of each of the sixteen patches.


# %%
class ScrambledEmbedding(PatchEmbedding):
    def forward(self, images):
        tokens = super().forward(images)  # (batch, tokens, embed_dim)
        # (batch, embed_dim, tokens)
        as_a_convolution_gives_them = tokens.transpose(1, 2)
        return as_a_convolution_gives_them.reshape(tokens.shape)


class ScrambledViT(VisionTransformer):
    def __init__(self, config):
        super().__init__(config)
        scrambled = ScrambledEmbedding(
            config.in_channels, config.patch_size, config.embed_dim
        )
        scrambled.load_state_dict(self.patch_embedding.state_dict())
        self.patch_embedding = scrambled


# %% [markdown]
# The third stands for a model found on the internet. It has your parts, a different `forward`, and a bug. Do not look
# for it yet.


# %%
class ViTFromTheInternet(VisionTransformer):
    def forward(self, images):
        x = self.patch_embedding(images)
        batch, num_patches, _ = x.shape
        cls_token = self.class_token.repeat(batch, 1, 1)
        x = torch.cat((x, cls_token), dim=1)
        x = x + self.positions[:, : num_patches + 1]
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x[:, 0])


# %% [markdown]
# **Predict first.** All three see the same 8,000 drawings of ten shapes, in five epochs. Guessing gets 10 % right.
# What share will the one with scrambled tokens get right in the end?

# %%
predict("scrambled", 10)  # in % right, after five epochs

# %% tags=["experiment"]
torch.set_num_threads(1)  # enough for so small a model, and safer on a busy machine
settings = TrainingSettings(epochs=5, learning_rate=3e-3)
histories = {}
print("validation images right, after each of 5 epochs")
print("(15 seconds a model, two minutes on a busy machine):")
for model_class in (VisionTransformer, ScrambledViT, ViTFromTheInternet):
    torch.manual_seed(0)
    history = fit(model_class(small), train, validation, settings)
    histories[model_class.__name__] = history
    print(
        f"{model_class.__name__:18}",
        *(f"{accuracy:6.1%}" for accuracy in history.validation_accuracy),
    )
reveal("scrambled", 100 * histories["ScrambledViT"].validation_accuracy[-1], within=10)

# %% tags=["experiment"]
figure, axes = plt.subplots(figsize=(7, 3.2), facecolor="#fbfaf7", layout="constrained")
looks = {"VisionTransformer": "o-", "ScrambledViT": "s--", "ViTFromTheInternet": "^:"}
for (name, look), color in zip(
    looks.items(), ("#0072B2", "#D55E00", "#E69F00"), strict=True
):
    axes.plot(range(1, 6), histories[name].train_loss, look, color=color, label=name)
axes.set(
    xlabel="epoch", ylabel="training loss", xticks=range(1, 6), facecolor="#fbfaf7"
)
axes.legend(frameon=False)
plt.show()

# %% [markdown]
# Would you have looked for a bug in any of these curves? **A loss that falls, or a good accuracy, does not show that a
# model is correct. To find its mistakes, test its parts.**
#
# <details><summary>Our three runs</summary>
#
# The model with the scrambled tokens even *won*: 92.3, 92.5 and 92.5 % against 80.4, 81.4 and 79.6 % of the right
# model. The one from the internet ended 2 to 7 points below the right one, at 73.6, 75.0 and 77.7 %
# (`benchmarks/results/short_lessons.json`). Yours may differ: the same seed gives other weights if your `__init__`
# draws its numbers in another order. And a model that is some points behind is noticed only beside a correct one.
#
# </details>

# %% [markdown] question="why-it-learns" points=2
# ### Question: why does it learn at all?
#
# Every token of `ScrambledViT` mixes numbers from all patches. Why can it still be trained? Name one possible reason
# why it even won in our runs here, and how you would test that reason. And since accuracy does not show such a bug:
# name two tests that do, and that need no training. (What if one patch changes? What if you trust another model?)
#
# ### BEGIN SOLUTION
# The scramble only moves numbers to other places, always the same ones. Nothing is lost and gradients flow through it,
# so training fits the weights to whatever arrives: a network learns with the function that is there, not the one that
# was meant. Why it sometimes wins is a question for an experiment. A possible reason: positions that start at 0.02, as
# here, are too small to have an effect at first, and inside a scrambled token the *index* of a number tells from which
# patch it came. If that is the reason, the lead must shrink when positions start larger (lesson 07 makes this test; in
# the nine models of lesson 00 positions start at 0.5, and the scrambled model has no lead: 52.6 against 52.8 %. But
# those models saw other images, too, so this alone proves nothing).
# Another possible reason: each token contains a little of the whole picture. Then at least a part of the lead should
# remain. Tests without training: change one patch of the image and see which tokens change (only one may); compare with
# an independent implementation on random weights; load weights that are known to work and compare logits; permute the
# patches together with their positions and expect the same logits.
#
# **Rubric.** 1 point: information and gradients survive, so training adapts the weights to the wrong function (any
# wording). A reason for the lead is asked for, but no point depends on which one. 1 point: two tests without training
# that this bug would fail; "train longer" and "look at accuracy" do not count.
# ### END SOLUTION

# %% [markdown]
# ### Bug hunt: `fix_vit`
#
# The author of `ViTFromTheInternet` checked the shapes, watched the loss fall, and published. Do not read the program
# yet. First make it small enough to think about: with `depth=0` there are no blocks, so nothing can move from one
# token to another. Which patches of a photo may then have an influence on the logits of a *right* model?


# %%
def influence(model_class):
    """How far logits move, without blocks, as a patch turns gray: (rows, columns)."""
    torch.manual_seed(0)
    model, image = model_class(replace(small, depth=0)), torch.rand(1, 3, 32, 32)
    moved = torch.zeros(4, 4)
    for row in range(4):
        for column in range(4):
            changed = image.clone()
            changed[:, :, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8] = 0.5
            moved[row, column] = (model(changed) - model(image)).norm().item()
    return moved


for model_class in (VisionTransformer, ViTFromTheInternet):
    print(f"{model_class.__name__}\n{influence(model_class)}\n")

# %% [markdown]
# Say in one sentence which rule every correct model without blocks obeys, and how this model breaks it. Then read the
# program, and repair it.


# %% exercise="fix_vit"
class FixedViT(VisionTransformer):
    """ViTFromTheInternet without its bug: the same parts, and the logits that
    VisionTransformer gives.

    Write the whole forward. On the line that you repaired, write as a comment the rule
    that the old line broke. (No check reads the comment; your instructor may.) Allowed:
    what VisionTransformer allows, but not your VisionTransformer's own forward. About 8
    lines.

    >>> tuple(FixedViT(ViTConfig(depth=1))(torch.zeros(2, 3, 32, 32)).shape)
    (2, 10)
    """

    def forward(self, images):
        ### BEGIN SOLUTION
        x = self.patch_embedding(images)
        batch, num_patches, _ = x.shape
        cls_token = self.class_token.repeat(batch, 1, 1)
        # without blocks no patch may move the logits; patch 0 did
        x = torch.cat((cls_token, x), dim=1)
        x = x + self.positions[:, : num_patches + 1]
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x[:, 0])
        ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# Without blocks the head can only read what stands at its own place. One patch has an influence: which index does it
# have among the tokens, and who should stand there?
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# Three lines assume an order of the tokens: the `cat`, the positions and the last line. Which one assumes a different
# order from the other two?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# join in the order that the positions and the last line expect
# ```
#
# </details>

# %% check="fix_vit" points=3
check("fix_vit", FixedViT)

# %%
strengths = []
for model_class in (ViTFromTheInternet, FixedViT):
    torch.manual_seed(0)
    picture = torch.randn(1, 3, 32, 32, requires_grad=True)
    model_class(replace(small, depth=1))(picture).square().sum().backward()
    # (1, height, width): how much each pixel moves the logits
    strength = picture.grad.abs().sum(dim=1)
    strengths.append(strength / strength.max())
show_images(torch.stack(strengths), titles=["theirs", "fixed"])

# %% [markdown]
# The rule: without blocks no patch may have an influence on the logits, since the head reads the class token alone.
#
# Bright pixels influence the logits strongly (fresh models, one block). The model from the internet depends most on
# the top left corner, since the head reads the token of that patch. Attention still carries enough of the other
# patches there to make the loss fall.

# %% [markdown]
# ### A second bug hunt, with a random bug
#
# One more model, this time with its `__init__`. A seed picks its bug from our library of mistakes. Every part of the
# figure at the start of this lesson should have its line here. Which line is missing, in the wrong place, or not
# quite right?

# %%
SEED = 0  # any whole number: your own, or the one that your instructor gave you
suspect = hunt("VisionTransformer", SEED)
suspect

# %% [markdown]
# Four measurements at once: which parameters get no gradient, how many parameters there are, what the logits look
# like, and which pixels have an influence on those of image 0.

# %% tags=["raises-exception"]
torch.manual_seed(0)
shallow = replace(small, depth=2, mlp_ratio=2.0, qkv_bias=False)
theirs = suspect(shallow)
pictures = torch.randn(2, 3, 32, 32, requires_grad=True)
logits = theirs(pictures)
logits[0].square().sum().backward()
forgotten = [name for name, each in theirs.named_parameters() if each.grad is None]
print("no gradient:    ", forgotten)
print("parameters:     ", sum(each.numel() for each in theirs.parameters()))
print("by your formula:", count_parameters(shallow))
print("logits:         ", [round(each, 2) for each in logits[0].tolist()])
strength = pictures.grad.abs().sum(dim=1, keepdim=True)
show_images(strength / strength.max(), titles=["image 0", "image 1"])

# %% [markdown]
# Is image 1 completely black? It should be. Are there as many parameters as your formula says? Repair a copy.
#
# If your instructor gave you a seed for points, put your repaired version of *that* program into the cell of
# `fix_vit` above, with its `__init__` if the bug is there, and run the check again.

# %%
mended = None  # paste the program above, fix it, and put its name in place of None
suspect.check(mended)

# %% [markdown]
# <details><summary>A hint, whatever the bug</summary>
#
# Read `__init__` with the config next to you, field by field: where is it used? Then `forward`, with the shape of `x`
# after each line. If nothing is odd, try it with another eps, and with a depth of 0.
#
# </details>
# <details><summary>Given up?</summary>
#
# Let the check name it, and read the lines again with that name in mind: `suspect.check(suspect.program)`.
#
# </details>
#
# Too easy? `hunt("VisionTransformer", SEED, bugs=2)` hides two.

# %% [markdown]
# ## Somebody else's names
#
# There is one test that a wrong model hardly ever passes. Give it the weights of a model that somebody else wrote,
# and compare the outputs. The library torchvision has such a model, and trained weights for it. Only the *names* of
# its parts are different, and one shape.

# %%
theirs = torchvision.models.VisionTransformer(
    image_size=32,
    patch_size=8,
    num_layers=1,
    num_heads=4,
    hidden_dim=48,
    mlp_dim=192,
    num_classes=10,
)
tiny = ViTConfig(patch_size=8, embed_dim=48, depth=1, num_heads=4)
mine = VisionTransformer(tiny)
for title, model in (("theirs", theirs), ("mine", mine)):
    print(f"\n{title}")
    for name, tensor in model.state_dict().items():
        print(f"  {name:60} {tuple(tensor.shape)}")

# %% [markdown]
# Find the partner of every line. One pair has different shapes: which exercise of lesson 01 turns one into the other?
# And which pairs of names could you mix up without an error from torch? torchvision keeps queries, keys and values in
# one matrix as you do, all queries first.
#
# <details><summary>Find all partners, then open this.</summary>
#
# The pair with different shapes is `conv_proj.weight`, four axes, and your `patch_embedding.projection.weight`, two.
# `conv_from_linear` (lesson 01) turned such a matrix into such a kernel: a convolution's kernel, flattened, has the
# order of a flattened patch. Shapes hardly protect you here. Every vector of 48 numbers fits where any other belongs:
# the weights and biases of all norms, and the biases of `conv_proj`, `out_proj` and `mlp.3`. Here even the flattened
# `conv_proj.weight` has the shape of `mlp.3.weight`, (48, 192); in ViT-B/16 it has that of `out_proj.weight`, (768,
# 768). Torch would notice none of these mix-ups.
#
# </details>
#
# ### Exercise: `load_torchvision`


# %% exercise="load_torchvision"
def load_torchvision(model, state_dict):
    """Copy the weights of a torchvision VisionTransformer into a model with your names;
    return the model.

    state_dict: what theirs.state_dict() gives: name -> tensor. Leave it as it is.
    model:      a VisionTransformer of yours, of the same sizes, any depth.

    Raise ValueError, with the name in its text, for a tensor that is missing, one that
    has no place in the model, or one of another size. You may catch load_state_dict's
    RuntimeError and raise a ValueError of it.

    >>> theirs = torchvision.models.VisionTransformer(8, 4, 1, 2, 6, 24, num_classes=5)
    >>> config = ViTConfig(8, 4, num_classes=5, embed_dim=6, depth=1, num_heads=2)
    >>> loaded = load_torchvision(VisionTransformer(config), theirs.state_dict())
    >>> torch.equal(loaded.positions, theirs.encoder.pos_embedding)
    True

    Allowed: str.replace, re, load_state_dict, copy_ under torch.no_grad().
    About 20 lines, most of them names.
    """
    ### BEGIN SOLUTION
    new_names = {
        "conv_proj.": "patch_embedding.projection.",
        "encoder.pos_embedding": "positions",
        "encoder.layers.encoder_layer_": "blocks.",
        ".ln_1.": ".norm1.",
        ".ln_2.": ".norm2.",
        ".self_attention.in_proj_": ".attention.qkv.",
        ".self_attention.out_proj.": ".attention.projection.",
        ".mlp.0.": ".mlp.fc1.",
        ".mlp.3.": ".mlp.fc2.",
        "encoder.ln.": "norm.",
        "heads.head.": "head.",
    }
    renamed = {}
    for name, tensor in state_dict.items():
        for their_part, my_part in new_names.items():
            name = name.replace(their_part, my_part)
        # see lesson 01: in the order of a patch
        renamed[name] = tensor.flatten(1) if tensor.ndim == 4 else tensor
    try:
        model.load_state_dict(renamed)
    except RuntimeError as problem:
        raise ValueError(str(problem)) from None
    return model
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# "holds the numbers of … in another order"? You permuted before you flattened. "holds what it held before"? That pair
# is missing from your list. Blocks 10 and 11 wrong, and only those? The name `layer_1` is also the beginning of
# `layer_10`.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# Could you turn each of their names into yours by replacing a few pieces of text? Which pieces, and does any of them
# occur in a place where you do not want it? (Keep the dots in the pieces: then `.ln_1.` and `encoder.ln.` cannot be
# confused.)
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# a dict: piece of their name -> piece of mine
# for each of their tensors: replace the pieces in its name; a tensor with four axes
#     becomes a matrix
# load the renamed dict strictly; a RuntimeError becomes a ValueError with the same text
# return the model
# ```
#
# </details>

# %% check="load_torchvision" points=7
check("load_torchvision", load_torchvision)

# %%
load_torchvision(mine, theirs.state_dict())
images = torch.randn(4, 3, 32, 32)
with torch.no_grad():
    difference = (mine.eval()(images) - theirs.eval()(images)).abs().max().item()
    print("largest difference:", difference)
    print("largest logit:     ", theirs(images).abs().max().item())

# %% [markdown]
# A difference of zero! But look at the second line. torchvision's head *starts* at zero, so both models give 0 for
# everything. A test that cannot fail is no test. So we put random numbers into every parameter of theirs, and compare
# again.

# %%
with torch.no_grad():
    for parameter in theirs.parameters():
        parameter.normal_(mean=0.1, std=0.3)
load_torchvision(mine, theirs.state_dict())
with torch.no_grad():
    print("largest difference:", (mine(images) - theirs(images)).abs().max().item())
    print("largest logit:     ", theirs(images).abs().max().item())

# %% [markdown]
# Now the test says something: the same numbers, up to rounding. And the two broken models, with the same weights?

# %%
with torch.no_grad():
    for model in (mine, ScrambledViT(tiny), ViTFromTheInternet(tiny)):
        load_torchvision(model, theirs.state_dict())
        difference = (model(images) - theirs(images)).abs().max().item()
        print(f"{type(model).__name__:20} differs by {difference:.1e}")

# %% [markdown]
# These numbers show that models differ, but not where. So compare them stage by stage: the bug lies between the last
# stage that agrees and the first that differs. `record`, from the start of this lesson, needs a model with your
# names, so `mine` stands in for `theirs`. Which stage will it name for each of the two broken models?


# %%
def first_difference(model, reference, images):
    """The first stage in which two models with the same weights differ, or None."""
    with torch.no_grad():
        expected = record(reference, images)
        for name, stage in record(model, images).items():
            if not torch.allclose(stage, expected[name], rtol=1e-3, atol=1e-3):
                return name


for model in (mine, ScrambledViT(tiny), ViTFromTheInternet(tiny)):
    load_torchvision(model, theirs.state_dict())
    stage = first_difference(model, mine, images)
    print(f"{type(model).__name__:20} first differs in: {stage}")

# %% [markdown]
# Whenever a model of yours and a reference disagree, look for the first stage that differs before you read any code.
# In the model from the internet the patches are still right, so the mistake is in how class token and positions join
# them. (The stage `class_token` between the two says nothing here: `record` makes it itself, in the right order.)

# %% [markdown]
# ## Three hundred thousand trained parameters
#
# The course brings a small trained ViT: 32 × 32 pixels, 64 patches, ten classes; it classifies 82.4 % of CIFAR-10's
# test photos correctly. Its parameters have the names of your class, so `load_state_dict` is enough. You have seen
# its positions in lesson 02. Here they are again, from *your* class.

# %% tags=["experiment"]
from vit_course.trained import trained_vit

saved = trained_vit()
trained = VisionTransformer(saved.config).eval()
trained.load_state_dict(saved.model.state_dict())
with torch.no_grad():
    difference = (trained(images) - saved.model(images)).abs().max().item()
print(f"your class and the course's, with the same weights, differ by {difference:.1e}")
show_position_similarity(trained.positions.detach(), saved.config.grid_size)

# %% [markdown]
# Each small square belongs to one patch, and is brightest at the place of that patch. Look for a second spot: many
# positions are also like those of their mirror images.

# %% [markdown]
# ## Eighty-six million trained parameters
#
# The last step. torchvision's ViT-B/16 was trained on the 1.28 million photos of ImageNet. The next cell downloads
# its weights, 330 MB, once. Without an internet connection it uses random weights instead, and says so.

# %% tags=["experiment"]
from vit_course.torchvision_vit import vit_b_16

famous, is_real = vit_b_16()
with torch.no_grad():
    mine = VisionTransformer(PRESETS["vit_base_16"]).eval()
    load_torchvision(mine, famous.state_dict())
count = sum(parameter.numel() for parameter in mine.parameters())
print(f"{count:,} numbers moved into your class")

# %% [markdown]
# Now a photo: Grace Hopper in the uniform of the US Navy, resized, cropped and normalized as torchvision prescribes.
# Your model adds up hundreds of numbers in another order than torchvision's, so expect a small difference, and not
# none.

# %% tags=["experiment"]
weights = torchvision.models.ViT_B_16_Weights.IMAGENET1K_V1
image = weights.transforms()(photo())[None]  # (batch, channels, 224, 224)
with torch.no_grad():
    my_logits, their_logits = mine(image), famous(image)
difference = (my_logits - their_logits).abs().max().item()
print(f"largest logit {their_logits.abs().max().item():.2f}")
print(f"largest difference {difference:.1e}")
assert difference < 1e-4, "the models differ: use first_difference to find the stage"

# %% tags=["experiment"]
# Your own picture? Run `from vit_course.data import own_picture`. In place of photo(),
# here and in the cell above, put own_picture("my_photo.jpg", otherwise=photo())
probabilities, classes = my_logits[0].softmax(dim=0).topk(5)
if is_real:
    for probability, index in zip(probabilities, classes, strict=True):
        print(f"{probability:6.1%}  {weights.meta['categories'][index]}")
else:
    print("Random weights have no opinion on photos. Real ones would name it here.")
show_images(photo(), titles=["What does your model say?"])

# %% [markdown]
# With the real weights the first name on the list should be *military uniform*. The model that said so is yours, with
# every part that the first cell of this lesson listed as "your own". You did not import this Vision Transformer. You
# wrote it.
#
# What does a ViT lack, compared with a convolutional network? A CNN is *built* so that neighboring pixels belong
# together, and so that a cat is found wherever it sits. Papers call this *inductive bias*. In a ViT all patches pass
# through the same Linear, but which of them are neighbors it has to learn from data: how much data, and what can
# replace it, is in [a side note](/notes/vit_and_cnn.html).
#
# One last look: for each patch, how similar its learned position is to all the others. Figure 7 of the paper shows
# crosses, rows and columns, which were never given to its model. Do you see them?

# %% tags=["experiment"]
show_position_similarity(mine.positions.detach(), grid_size=(14, 14))

# %% [markdown]
# With random weights each square has one bright point, and noise around it. All the structure that you see with the
# real weights was learned. If it is a round spot rather than a cross, believe your picture: the paper's figure shows
# another model, ViT-L/32.

# %% [markdown]
# ## Keep what you wrote

# %%
keep("VisionTransformer", "load_torchvision")

# %% [markdown]
# And the ViT of lesson 00 once more. Nothing in it is borrowed now, if you have kept every part:

# %% tags=["experiment"]
from vit_course.whole_vit import learn_drawings, your_vit

learn_drawings(your_vit())

# %% [markdown]
# ## A harder one, without points
#
# How much work is one image? Count the multiplications of a forward pass by hand, as you counted parameters: patch
# embedding, the four products of attention, the MLP, the head. For ViT-B/16 and an image of 224 × 224 pixels you
# should come to 17.6 billion, half of what `torch.utils.flop_counter.FlopCounterMode` counts. (Build model and image
# under `with torch.device("meta"):`, and they have shapes, but no numbers.) With how many tokens does attention begin
# to cost more than the MLP?
#
# <details><summary>Write down your answer, then open this.</summary>
#
# For n tokens of d numbers, attention has 4nd² + 2n²d multiplications (the first part for its Linears, the second for
# its two products of tokens with tokens), the MLP 8nd². They are equal at n = 2d: 1,536 tokens for ViT-B/16, which has
# 197. At 224 pixels most of the work is in the Linears.
#
# </details>

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. An image of 3 × 48 × 80, patches of 16, embed_dim 64, 4 heads. What is the shape of the attention
# weights in a block?</summary>
#
# 3 · 5 = 15 patches and the class token are 16 tokens: (batch, 4, 16, 16).
#
# </details>
# <details><summary>2. Twice the <code>depth</code>, or twice the <code>embed_dim</code>: which costs more parameters?
# </summary>
#
# Twice the depth doubles the blocks. Twice the width makes every matrix in them four times as large. (The number of
# heads changes nothing.)
#
# </details>
# <details><summary>3. <code>nn.ModuleList([EncoderBlock(...)] * depth)</code>: the model trains, its state dict has
# all the names. How would you notice?</summary>
#
# Add up the sizes of `model.parameters()`: torch gives a shared block only once, so there are fewer than
# `count_parameters` says.
#
# </details>
# <details><summary>4. Your fresh model for 1000 classes starts with a loss of 6.9. Worried?</summary>
#
# No: log 1000 is 6.9. The model knows nothing yet, and gives each class the same probability.
#
# </details>
# <details><summary>5. Two models give the same logits on the same weights. When does that prove nothing?</summary>
#
# When the weights are special: a head of zeros, norms of ones and zeros, positions of zero. A part that is multiplied
# by zero, or that adds zero, is not tested.
#
# </details>
#
# Next: `06_training`, in which you train it.
#
# **Further reading.** Dosovitskiy et al. 2021, *An Image is Worth 16x16 Words*: the paper whose model you have built.
# Steiner et al. 2022, *How to train your ViT?* Karpathy 2019, *A Recipe for Training Neural Networks*: more tests to
# make before training.

# %%
progress()
