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
# # 01 · An image becomes a sentence
#
# A Transformer reads a sentence: a sequence of words, each one a vector. A photo has no words. In this lesson you cut
# a photo into squares of 16 × 16 pixels and treat the squares as words (Dosovitskiy et al. 2021, *An Image is Worth
# 16x16 Words*).
#
# **After this lesson you can**
# - cut any batch of images into patches with `reshape` and `permute`, and say what each axis means;
# - test a function that rearranges numbers by undoing it, and say what this test cannot show;
# - turn patches into tokens with one Linear;
# - show that a strided convolution computes the very same numbers.
#
# <!-- table: tasks -->

# %%
import torch
import torch.nn.functional as F
from torch import nn

from vit_course import check, hunt, keep, predict, progress, reveal
from vit_course.data import photo
from vit_course.plots import show_images, show_patches

torch.manual_seed(1)
picture = photo().float() / 255  # (channels, height, width)
# (batch, channels, height, width)
picture = F.interpolate(picture[None], size=(288, 240), mode="area")
print(tuple(picture.shape))

# %%
show_images(picture, titles=["Grace Hopper"])

# %% [markdown]
# The photo shows Grace Hopper, who wrote one of the first compilers.
#
# ## What a token is
#
# ![A portrait cut into a grid of square patches, numbered row by row from the top left, and the same patches laid out
# in one row as a sequence of tokens.](../figures/patchify_grid.svg)
#
# A *patch* is a square of `patch_size` × `patch_size` pixels. Unrolled into one vector, it becomes a *token*. The
# tokens follow each other as you read a page: row by row, from the top left.
#
# **Predict first.** Our picture has 3 channels, 288 rows and 240 columns. With `patch_size = 16`, how many tokens are
# there? How many numbers does each hold?

# %%
predict("tokens", 270)
predict("numbers-in-a-token", 768)

# %%
channels, height, width = picture.shape[1:]
patch_size = 16
reveal("tokens", (height // patch_size) * (width // patch_size))
reveal("numbers-in-a-token", channels * patch_size**2)

# %% [markdown]
# No number was lost. Why not ask PyTorch for that shape, with one `reshape`? **Predict first:** which numbers of the
# picture would be in token 0?

# %%
predict(
    "token-0",
    "a square",
    choices=("a square", "one row of all channels", "three rows of red"),
)

# %%
one_liner = picture.reshape(1, -1, channels * patch_size**2)
found = {
    "a square": picture[0, :, :16, :16],
    "one row of all channels": picture[0, :, 0],
    "three rows of red": picture[0, 0],
}
for name, part in found.items():
    if torch.equal(part.flatten()[:768], one_liner[0, 0]):
        reveal("token-0", name)
show_patches(one_liner[0], grid_size=(18, 15))

# %% [markdown]
# Confetti. `reshape` never changes the order of the numbers: it reads them with the last index changing fastest, and
# cuts this long line into pieces. Our checks call this mistake *strips, not squares*.

# %% [markdown]
# ## Two kinds of axes
#
# ![Six axes of an image whose height and width are each split in two. Batch, patch row and patch column say which
# patch; channel, pixel row and pixel column say where inside it. Below, the order in memory beside the order in a
# token.](../figures/patchify_axes.svg)
#
# Split the height into two axes: *which row of patches*, and *which pixel row inside the patch*. The second changes
# faster. Split the width in the same way. Now six axes say where a number stands: image, patch row and patch column
# name **the patch**; channel, pixel row and pixel column the place **inside**. In the result, image, patch row and
# patch column must come first, and channel, pixel row and pixel column last.
#
# `permute` changes the order of the axes, and a `reshape` after it reads in the new order. On two axes:

# %%
tiny = torch.arange(16).reshape(1, 1, 4, 4)
print(tiny[0, 0])
print(tiny[0, 0].reshape(2, 8))
print(tiny[0, 0].permute(1, 0).reshape(2, 8))

# %% [markdown]
# In `tiny` above, the number 9 is in row 2, column 1. With patches of 2 × 2, in which token is it, and at which place?
# The docstring has the answer.
#
# ### Exercise: `patchify`


# %% exercise="patchify"
def patchify(images, patch_size):
    """Cut images into patches and unroll each one.

    Convention: tokens follow the image row by row. Inside a token the order is channel,
    pixel row, pixel column.

    images:  (batch, channels, height, width), any dtype; do not change them
    returns: (batch, tokens, channels * patch_size**2), same dtype and device; gradients
             flow through it

    Raise ValueError, naming the side and patch_size, when a side is not divisible by
    it: ValueError("height 30 is not divisible by patch_size 4").

    >>> patchify(torch.arange(16).reshape(1, 1, 4, 4), 2)[0].tolist()
    [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]

    Allowed: anything in torch. Without a loop it takes about 8 lines.
    """
    ### BEGIN SOLUTION
    batch, channels, height, width = images.shape
    for name, side in (("height", height), ("width", width)):
        if side % patch_size:
            raise ValueError(
                f"{name} {side} is not divisible by patch_size {patch_size}"
            )
    rows, columns = height // patch_size, width // patch_size
    patches = images.reshape(batch, channels, rows, patch_size, columns, patch_size)
    # (batch, rows, columns, channels, patch_size, patch_size)
    patches = patches.permute(0, 2, 4, 1, 3, 5)
    return patches.reshape(batch, rows * columns, channels * patch_size**2)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# Your shape is right but the check says that token 1 starts with a wrong pixel? Then your last reshape joined axes that
# were still in the order of the image. A reshape at the end is fine; something has to happen before it. To see which
# axis is in the wrong place, cut `torch.arange(64).reshape(2, 2, 4, 4)` by 2 and look at the numbers of token 1.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# After you have split height and width in two there are six axes. Which three say *which patch*, and which three say
# *where inside*? In which order must they stand so that a plain reshape at the end does what you want?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# refuse a height or a width that does not fit
# split height into (rows, pixel rows) and width into (columns, pixel columns)
# bring the axes into the order: image, patch row, patch column, channel, pixel row, pixel
#     column
# join the two axes that say which patch; join the three that say where inside
# ```
#
# </details>

# %% check="patchify" points=8
check("patchify", patchify)

# %%
patches = patchify(picture, patch_size)
show_patches(patches[0], grid_size=(18, 15))

# %% [markdown]
# There she is again. The tensor has the shape and the numbers of the confetti; only the order is different. Now we
# shuffle the *words*. Would a Transformer notice, too? Lesson 02 begins with this question.

# %%
words = patchify(picture, 48)[0]
show_patches(words[torch.randperm(len(words))], grid_size=(6, 5))

# %% [markdown]
# Now try a photo of your own: write the name of its file into `path` below, or leave it empty. **Predict first:** if
# you halve the patch size, by how much does the number of *pairs* of tokens grow? Then move the sliders, with the
# mouse or the arrow keys, and find the token that holds an eye.

# %%
predict("pairs-of-tokens", 4)  # how many times as many?

# %%
pairs = [patchify(picture, size).shape[1] ** 2 for size in (48, 24)]
reveal("pairs-of-tokens", pairs[1] / pairs[0])

# %%
from vit_course.data import own_picture
from vit_course.explore import explore_patches

path = ""  # such as "my_photo.jpg"; without one it is the photo above
explore_patches(own_picture(path, otherwise=photo()), patchify)

# %% [markdown]
# Attention compares every token with every token, so small patches are expensive. (The Linears and the MLP of a
# block, which you build in lessons 03 and 04, treat each token alone: their work grows only with the number of
# tokens.) How expensive?

# %% [markdown] question="patches-or-pixels" points=2
# ### Question: why not one token per pixel?
#
# Attention compares every token with every token, itself included. Take a 224 × 224 image. How many comparisons does
# a layer make with patches of 16, and how many with one token per pixel? And what do you lose with the larger patch, if
# one Linear turns each patch into a vector of fixed length, and attention sees only these vectors?
#
# ### BEGIN SOLUTION
# With patches of 16 there are 14 · 14 = 196 tokens and 196² ≈ 38 thousand comparisons. With one token per pixel there
# are 50,176 tokens and about 2.5 billion comparisons, 65,536 (= 16⁴) times as many. The price of a large patch is
# resolution: attention cannot look at anything smaller than a patch, and all detail inside one has to survive a single
# linear map into `embed_dim` numbers.
#
# **Rubric.** 1 point: both counts, or their ratio 16⁴, with the reason (quadratic in the number of tokens).
# 1 point: what is lost (detail inside a patch, finer positions), in the student's own words.
# ### END SOLUTION

# %% [markdown]
# ## And back again
#
# A good first test of `patchify` is its inverse. If `unpatchify(patchify(images))` is not `images`, one of the two is
# wrong. If it is, both can still be wrong *in the same way*: cut the photo into strips and put the strips back, and
# you get the photo, too. So do not reverse your own code. Start from the convention in the docstring of `patchify`.
#
# ### Exercise: `unpatchify`


# %% exercise="unpatchify"
def unpatchify(patches, patch_size, image_size):
    """Put the patches back together; the inverse of patchify.

    patches:    (batch, tokens, channels * patch_size**2); do not change them
    image_size: (height, width) in pixels
    returns:    (batch, channels, height, width), same dtype and device; gradients flow
                through it

    >>> unpatchify(torch.tensor([[[0, 1, 4, 5], [2, 3, 6, 7]]]), 2, (2, 4)).tolist()
    [[[[0, 1, 2, 3], [4, 5, 6, 7]]]]

    Allowed: anything in torch. About 5 lines.
    """
    ### BEGIN SOLUTION
    height, width = image_size
    rows, columns = height // patch_size, width // patch_size
    batch = patches.shape[0]
    images = patches.reshape(batch, rows, columns, -1, patch_size, patch_size)
    # (batch, channels, rows, patch_size, columns, patch_size)
    images = images.permute(0, 3, 1, 4, 2, 5)
    return images.reshape(batch, -1, height, width)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# Strips in the result? Then one reshape did all the work. The pixels of one image row stand in *several* tokens, so
# they have to be brought together first.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# Which six axes are hidden in the tokens, and in which order? In which order does the image need them? Which `permute`
# turns the first order into the second?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# split the token axis into (rows, columns) and the features into (channels, pixel rows,
#     pixel columns)
# bring each pixel axis next to the patch axis that it belongs to
# join rows with pixel rows, and columns with pixel columns
# ```
#
# </details>

# %% check="unpatchify" points=5
check("unpatchify", unpatchify)

# %%
back = unpatchify(patches, patch_size, (288, 240))
print("there and back gives the photo:", torch.equal(back, picture))
middle = patches.clone()
middle[:, ::2] = 0.5  # every second token turns gray
show_images(
    unpatchify(middle, patch_size, (288, 240)), titles=["every second word deleted"]
)

# %% [markdown]
# You still recognize her. Neighboring pixels mostly repeat each other. Masked autoencoders (He et al. 2022) turn this
# into a training task: three quarters of the patches are deleted, and the model learns to fill them in.

# %% [markdown]
# ## From pixels to tokens
#
# So far a token was an unrolled patch. The model works with vectors of `embed_dim` numbers, and a single Linear, the
# same for every patch, computes them from the pixels: `token = projection(patch)`. There is no activation and no
# mixing of patches. From now on, *token* means the output of this Linear.
#
# ### Exercise: `PatchEmbedding`


# %% exercise="PatchEmbedding"
class PatchEmbedding(nn.Module):
    """Images to tokens: patchify, then one Linear for every patch.

    The Linear is the attribute `projection`; it has a bias. Checks load weights by that
    name.

    images:  (batch, in_channels, height, width)
    returns: (batch, tokens, embed_dim), on the device of the images

    >>> tuple(PatchEmbedding(3, 4, 10)(torch.zeros(2, 3, 8, 12)).shape)
    (2, 6, 10)

    Allowed: nn.Linear and your own patchify. About 6 lines.
    """

    def __init__(self, in_channels, patch_size, embed_dim):
        super().__init__()
        ### BEGIN SOLUTION
        self.patch_size = patch_size
        self.projection = nn.Linear(in_channels * patch_size**2, embed_dim)
        ### END SOLUTION

    def forward(self, images):
        ### BEGIN SOLUTION
        return self.projection(patchify(images, self.patch_size))
        ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# "has no parameter `projection.weight`"? The Linear has to be an attribute of `self`, made in `__init__`, and it has to
# have that very name.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# How many numbers go into the Linear for one patch? And what does a Linear do with all the axes in front of the last?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# in __init__: remember patch_size; make a Linear from (numbers in a patch) to embed_dim
# in forward:  cut the images into patches, and send them through the Linear
# ```
#
# </details>

# %% check="PatchEmbedding" points=5
check("PatchEmbedding", PatchEmbedding)

# %% [markdown]
# How short may a token be? Twelve numbers are enough to recognize her, if the Linear keeps the right ones, and
# 48 random ones are not: [a side note](/notes/directions.html) shows it.

# %% [markdown]
# ## A convolution in disguise
#
# ![A convolution kernel as large as a patch steps from patch to patch; at each stop its dot product with the pixels
# is one number of one token, the same number that a Linear gives on the unrolled
# patch.](../figures/conv_is_linear.svg)
#
# Read the source of the `VisionTransformer` in torchvision, in timm or by the paper's authors, and you find no
# patchify. You find a convolution whose kernels and stride are as large as a patch. At each stop a kernel multiplies
# the pixels of one patch by its weights, adds the products up, and adds its bias: one number of one token. There are
# `embed_dim` kernels, one for each row of your Linear's weight.
#
# ### Exercise: `conv_from_linear`


# %% exercise="conv_from_linear"
def conv_from_linear(projection, in_channels, patch_size):
    """The convolution that gives, on an image, what `projection` gives on its patches.

    projection: nn.Linear from in_channels * patch_size**2 to embed_dim, with or
                without a bias
    returns:    nn.Conv2d from in_channels to embed_dim; kernel and stride are
                patch_size

    By hand: with one channel and patch_size 2, a Linear with the weight [[1, 2, 3, 4]]
    becomes the kernel [[1, 2], [3, 4]].

    >>> linear = nn.Linear(4, 1)
    >>> linear.weight.data = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    >>> conv_from_linear(linear, 1, 2).weight.tolist()
    [[[[1.0, 2.0], [3.0, 4.0]]]]

    Allowed: nn.Conv2d, and copying weights under torch.no_grad(). About 6 lines.
    """
    ### BEGIN SOLUTION
    has_bias = projection.bias is not None
    sizes = in_channels, projection.out_features, patch_size
    convolution = nn.Conv2d(*sizes, stride=patch_size, bias=has_bias)
    with torch.no_grad():
        convolution.weight.copy_(projection.weight.reshape(convolution.weight.shape))
        if has_bias:
            convolution.bias.copy_(projection.bias)
    return convolution
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# Right shape, wrong numbers? Compare one kernel with one row of the Linear's weight, entry by entry, for
# `in_channels = 1` and `patch_size = 2`.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# The kernel's axes are (embed_dim, channel, row, column). In which order do the numbers of an unrolled patch run? Which
# line of which function decides that?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# make a Conv2d of the right sizes, with a bias only if the Linear has one
# without recording gradients: copy the Linear's weight into the kernel's shape; copy the
#     bias if there is one
# ```
#
# </details>

# %% check="conv_from_linear" points=5
check("conv_from_linear", conv_from_linear)

# %%
embedding = PatchEmbedding(in_channels=3, patch_size=16, embed_dim=192)
convolution = conv_from_linear(embedding.projection, 3, 16)
with torch.no_grad():
    by_linear = embedding(picture)
    by_convolution = convolution(picture).flatten(2).transpose(1, 2)
    reshaped = convolution(picture).reshape(1, 270, 192)
print("largest difference:", (by_linear - by_convolution).abs().max().item())

# one number of each token
maps = torch.stack(
    [tokens[0, :, :1].T for tokens in (by_linear, by_convolution, reshaped)]
)
maps = (maps - maps.amin(2, keepdim=True)) / (
    maps.amax(2, keepdim=True) - maps.amin(2, keepdim=True)
)
maps = F.interpolate(maps.unflatten(2, (18, 15)), size=(288, 240)).expand(-1, 3, -1, -1)
show_images(maps, titles=["by Linear", "by convolution", "reshaped"])

# %% [markdown]
# A few millionths at most: the same products, added up in another order. A row of the weight follows the order of
# `patchify` (channel, pixel row, pixel column), and so do the axes of a kernel. So a ViT does contain a convolution,
# one whose windows do not overlap. The pictures show one number of each token, at the place of its patch.
#
# Look at the line that computes `by_convolution`. The convolution gives (batch, embed_dim, rows, columns).
# `flatten(2)` joins rows and columns, and `transpose(1, 2)` puts the tokens before their numbers. If you write
# `reshape` instead, you get the right shape and the wrong tokens, as in the third picture: each holds one number from
# each of 192 patches.
#
# [A side note](/notes/addresses.html) has two more tools: test images whose
# pixel values are their addresses, and `patchify` as one line of einops.

# %% [markdown]
# ## Bug hunt: the square test
#
# Here is another way to cut an image, without `permute`: for each number of each token, the function computes at
# *which place of the flattened image* it stands, and fetches it from there. Its author tested it on square images,
# and every number was right. What will it do to a tall one?


# %%
def patchify_from_the_internet(images, patch_size):
    channels, height, width = images.shape[1:]
    rows, columns = height // patch_size, width // patch_size
    token = torch.arange(rows * columns)[:, None]  # (tokens, 1)
    feature = torch.arange(channels * patch_size**2)  # (numbers in a token,)
    channel, inside = feature // patch_size**2, feature % patch_size**2
    # (tokens, numbers in a token)
    row = token // rows * patch_size + inside // patch_size
    column = token % rows * patch_size + inside % patch_size
    return images.flatten(1)[:, (channel * width + row) * width + column]


square = picture[:, :, :240]  # its upper 240 rows
print(
    "the author's test:",
    torch.equal(patchify_from_the_internet(square, 48), patchify(square, 48)),
)
show_patches(patchify_from_the_internet(picture, 48)[0], grid_size=(6, 5))

# %% [markdown]
# ### Exercise: `fix_patchify`
#
# The tiles are out of order, and their colors do not fit together. These are two mistakes, and a square image shows
# neither. Copy the function, repair both, and let it raise a ValueError for sizes that do not fit, which its author
# forgot.


# %% exercise="fix_patchify"
def fix_patchify(images, patch_size):
    """patchify_from_the_internet without its bugs; the convention is that of patchify
    above.

    Raise ValueError, naming the side and patch_size, as patchify does: "height 30 is
    not divisible by patch_size 4". Any dtype; same device; gradients flow.

    >>> fix_patchify(torch.arange(8).reshape(1, 1, 2, 4), 2)[0].tolist()
    [[0, 1, 4, 5], [2, 3, 6, 7]]

    Allowed: torch's operations on tensors, but not your own patchify.
    """
    ### BEGIN SOLUTION
    channels, height, width = images.shape[1:]
    for name, side in (("height", height), ("width", width)):
        if side % patch_size:
            raise ValueError(
                f"{name} {side} is not divisible by patch_size {patch_size}"
            )
    rows, columns = height // patch_size, width // patch_size
    token = torch.arange(rows * columns)[:, None]  # (tokens, 1)
    feature = torch.arange(channels * patch_size**2)  # (numbers in a token,)
    channel, inside = feature // patch_size**2, feature % patch_size**2
    # (tokens, numbers in a token)
    row = token // columns * patch_size + inside // patch_size
    column = token % columns * patch_size + inside % patch_size
    return images.flatten(1)[:, (channel * height + row) * width + column]
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# There are two symptoms. Some tiles stand in the wrong place, with all three of their colors. And the three colors of a
# tile do not fit together: two of them are shifted. Each symptom has its own cause. Repair one line, show the picture
# again, and see which symptom is gone.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# Patches are counted from left to right, one row of patches after the other. By which number must you divide to get the
# row of patch 7? And how many places further does the same pixel of the next channel stand in the flattened image? In a
# square image two different sizes are the same number, so nobody can tell which one the code used.
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# first: refuse a side that does not fit, with both numbers in the message
# patch row    = token divided by (patches in a row), rounded down
# patch column = the rest of this division
# place = column + (pixels in a row) times
#         (row + (rows of pixels in a channel) times channel)
# ```
#
# </details>

# %% check="fix_patchify" points=3
check("fix_patchify", fix_patchify)

# %%
show_patches(fix_patchify(picture, 48)[0], grid_size=(6, 5))

# %% [markdown]
# ## A second bug hunt, with a random bug
#
# The two bugs above are the same for everybody. The next one is chosen by a seed, from the mistakes that our checks
# know. The program uses another tool: `unfold(axis, size, step)` slides a window along an axis, so
# `torch.arange(6).unfold(0, 3, 3)` is [[0, 1, 2], [3, 4, 5]].

# %%
SEED = 1  # any whole number: your own, or the one that your instructor gave you
suspect = hunt("patchify", SEED)
suspect

# %% [markdown]
# Look at the symptoms: the shape of the result, and the photo cut by this program. If there is an error, read the
# last line of the traceback. If everything looks right, ask what this test cannot show: it uses a single photo, and
# both of its sides are divisible by 48.

# %% tags=["raises-exception"]
tokens = suspect(picture, 48)[0]
print(tuple(tokens.shape))
show_patches(tokens, grid_size=(6, 5))

# %% [markdown]
# Copy the program into the next cell and repair it. If your instructor gave you a seed for points, put the repaired
# program into the exercise `fix_patchify` above, under that name: its check accepts every seed's program.

# %%
mended = None  # paste the program above, fix it, and put its name in place of None
suspect.check(mended)

# %% [markdown]
# <details><summary>A hint that helps with every bug</summary>
#
# Cut `torch.arange(64).reshape(2, 2, 4, 4)`, two images of two channels, by 2, once with your own `patchify` and once
# with the suspect. Which number is the first to differ, and along which of the six axes has it moved? What does the
# suspect do with an image of 5 rows?
#
# </details>
# <details><summary>Given up?</summary>
#
# Let the check name it, and read the lines again with that name in mind: `suspect.check(suspect.program)`.
#
# </details>
#
# Too easy? `hunt("patchify", SEED, bugs=2)` hides two.

# %% [markdown]
# ## Keep what you wrote
#
# Later lessons are built on this one. `keep` puts your functions into a file of yours, `my_vit.py`. It is plain
# Python, beside this notebook, yours to read and to change. A part that has not passed its check is not kept; the
# next lesson then uses our version, and says so.
#
# <details><summary>In a class, or on Colab</summary>
#
# In a class where each lesson has its own folder, the file lies beside these folders. On Colab it lies in your Drive,
# if you have mounted it.
#
# </details>

# %%
keep("patchify", "unpatchify", "PatchEmbedding", "conv_from_linear")

# %% [markdown]
# Now the ViT of lesson 00 learns again, with your embedding in it. (15 seconds on one core, a minute on a slow
# one.)

# %% tags=["experiment"]
from vit_course.whole_vit import learn_drawings, your_vit

learn_drawings(your_vit())

# %% [markdown]
# ## A harder one, without points
#
# Let the patches overlap: `patchify` with a stride that is smaller than the patch. How many tokens are there now?
# Then write the way back: where patches overlap, take the mean. You are right when the round trip gives the image
# back up to rounding, and when `F.unfold` gives the same numbers as your patches. In which order does it give them?
# Which pixels are in no patch when the stride does not divide `height - patch_size`?

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. Why does <code>reshape</code> alone not turn an image into patches?</summary>
#
# It keeps the numbers in the order of their indices. In this order a row of pixels runs through several patches, and
# all of one channel comes before the next, while a token holds all channels of one patch.
#
# </details>
# <details><summary>2. An image of 3 × 32 × 48 with patches of 8: how many tokens, how long?</summary>
#
# 4 · 6 = 24 tokens of 3 · 64 = 192 numbers.
#
# </details>
# <details><summary>3. On which images can nobody tell column order from row order?</summary>
#
# On images that read the same in both orders. Examples have one row or one column of patches, a square grid that stays
# the same when rows and columns are swapped, or patches that are all equal. That is why the checks use tall and wide
# images in which no two pixels are equal.
#
# </details>
# <details><summary>4. A friend's ViT uses <code>conv(x).reshape(batch, tokens, embed_dim)</code>, and its loss falls.
# What do you tell your friend?</summary>
#
# Each of their tokens mixes numbers from different patches. `flatten(2).transpose(1, 2)` is right, and usually it
# copies nothing.
#
# </details>
#
# **Next lesson:** `02_positions`, which asks whether the reader of this sentence sees the order, and gives each word
# its place.
#
# **Further reading.** Dosovitskiy et al. 2021, *An Image is Worth 16x16 Words*, section 3.1: patches as words. He et
# al. 2022, *Masked Autoencoders Are Scalable Vision Learners*: how many words can be left out. Touvron et al. 2022,
# *Three things everyone should know about Vision Transformers*: another way from patches to tokens. Xiao et al. 2021,
# *Early Convolutions Help Transformers See Better*: a few small convolutions in place of this one layer.

# %%
progress()
