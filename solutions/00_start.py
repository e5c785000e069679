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
# # 00 · A broken ViT still learns
#
# A Vision Transformer (ViT) cuts a picture into pieces and reads them as a language model reads words. You are going
# to build one by hand. In lesson 05 your code loads published weights and gives the same answers as torchvision's
# model.
#
# How will you know that a part is right? The *training loss*, which says how wrong a model is on its training images,
# can fall even when the model is broken. That is what *checks* are for.
#
# **After this lesson you can**
# - name the steps of a Vision Transformer, and the shape of what goes through them;
# - apply one number per channel to a whole batch of images, by broadcasting;
# - read a check's report, and find your way from it to the mistake;
# - say why a falling loss proves little, and choose an input that proves more.
#
# <!-- table: tasks -->
#
# You need Python, a little PyTorch and a little linear algebra, but no GPU. Run the cells from top to bottom, each
# with Shift + Enter.
#
# <details><summary>More on these notebooks: on your own, in a class, on a slow computer</summary>
#
# **On your own.** Go in order, and predict before you run. Lessons 01 to 06 and 09 end with `keep`, which writes your
# functions into a file of your own; later lessons use them. The notebooks with answers are in the repository's folder
# `solutions`; you learn more from them after you have tried.
#
# **In a class.** Write where it says TODO, keep the names of functions, and leave the check cells alone: they are
# locked. The points that they show are an estimate: grading runs your functions on other inputs, with other checks.
# Written answers are read by a person. Before you hand in: *Kernel › Restart Kernel and Run All Cells*.
#
# **On a slow computer.** On a laptop most cells run in seconds. This lesson trains three small models in about half a
# minute; training in lessons 04 and 05 may take a minute or two. From lesson 06 on, cells that run for minutes say
# so. On Colab you can use a GPU: *Runtime › Change runtime type*.
#
# </details>

# %%
from dataclasses import replace

import torch
import torch.nn.functional as F

from vit_course import check, hunt, predict, progress, reveal
from vit_course.data import cat, own_picture, shapes, train_validation_split
from vit_course.plots import show_images
from vit_course.trained import trained_vit

print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")

picture = cat()[None].float() / 255  # a batch of one photo, its numbers between 0 and 1
small = F.interpolate(picture, size=(32, 32), mode="area")
show_images(
    torch.cat([picture, F.interpolate(small, size=(128, 128))]),
    titles=["a cat", "in 32 x 32 pixels"],
)

# %% [markdown]
# ## A model that works
#
# To a program a photo is a box of numbers: three channels (red, green, blue) of rows and columns. Photos go through a
# model in groups, called *batches*. Our small ViT was trained on CIFAR-10, photos of 32 × 32 pixels in ten *classes*.
# What does it answer for the cat?

# %%
vit = trained_vit()


def answer_of(images):
    """The model's answer, and how sure it is."""
    # its scores, made into shares that add up to 1
    shares = vit.model(images).softmax(dim=1)[0]
    return f"{vit.classes[shares.argmax()]}, {shares.max():.0%}"


# as in its training; you are going to write a function for this
ready = vit.normalize(small)
print("(batch, channels, height, width):", tuple(ready.shape))
print("the model's answer:", answer_of(ready))

# %% [markdown]
# ## One number per channel
#
# `vit.normalize` prepares the photo: it subtracts each channel's mean and divides by the channel's standard
# deviation. Now you write this.
#
# $$\text{normalized}[:, c] = \frac{\text{images}[:, c] - \text{mean}[c]}{\text{std}[c]} \quad \text{for channel } c$$
#
# One line seems to be enough, the `return` below. Does it subtract the first mean from the red channel?


# %%
def first_try(images, mean, std):
    channels = images.shape[1]
    if len(mean) != channels:
        raise ValueError(
            f"images have {channels} channels, but there are {len(mean)} means"
        )
    return (images - torch.as_tensor(mean)) / torch.as_tensor(std)


thumbnail = F.interpolate(picture, size=(4, 3), mode="area")
tuple(first_try(thumbnail, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)).shape)

# %%
subtracted = thumbnail - first_try(thumbnail, mean=(0.485, 0.456, 0.406), std=(1, 1, 1))
print("subtracted from each pixel of the red and of the green channel:")
print(subtracted[0, :2])

# %% [markdown]
# ## What a check tells you
#
# The shape is right, but the three means were lined up with the three columns. A *check* finds this out by calling
# your function on inputs chosen to expose mistakes.

# %%
check("normalize_images", first_try)

# %% [markdown]
# Read a report from top to bottom. A check that **fails** says what was *asked* of your function, then what was *seen*
# and *expected*, and, where it recognizes the mistake, the *likely cause* and *where to look*. Checks that **pass** are
# counted.
#
# <details><summary>Undecided claims, and how points are counted</summary>
#
# Some claims can be judged only after another claim has passed. Until then they are *undecided*, and below the failed
# claim the report says how many of them wait for it. An undecided claim does not count as a mistake.
#
# Some claims hold even for a function that does nothing useful, for example "the images that go in are not changed".
# Such a claim earns points only in proportion: if half of the other claims pass, it earns half of its points.
#
# </details>

# %% [markdown]
# ## Broadcasting, or which axis meets which
#
# ![Three cases of images minus mean: a mean of shape (3,) meets a width of 6, which stops; it meets a width of 3,
# which runs and is wrong; a mean of shape (3, 1, 1) meets the channels.](../figures/normalize_broadcast.svg)
#
# Shapes are lined up **from the right**. Two sizes fit where they are equal or one of them is 1, and a missing axis
# counts as 1. Along an axis of size 1 the same numbers are used again at every place.
#
# ## Your turn
#
# The text in quotes below `def` is the task. Replace the last two lines, `# TODO` and `raise`. Run the cell, then the
# check below it, as often as you like.
#
# ### Exercise: `normalize_images`


# %% exercise="normalize_images"
def normalize_images(images, mean, std):
    """Subtract each channel's mean, then divide by its standard deviation.

    images:    (batch, channels, height, width), float in [0, 1]; do not change them
    mean, std: one number per channel: a tensor, a list or a tuple
    returns:   (batch, channels, height, width), dtype and device of images

    Raise ValueError, naming both numbers, when there are not as many means as channels:
    ValueError("images have 3 channels, but there are 1 means").

    By hand: a picture of 2 channels with 1 x 2 pixels. Channel 0 holds 0.5 and 1, with
    mean 0.5 and std 0.5; channel 1 holds 0.25 and 0.75, with mean 0.25 and std 0.25.

    >>> image = torch.tensor([0.5, 1.0, 0.25, 0.75]).reshape(1, 2, 1, 2)
    >>> normalize_images(image, (0.5, 0.25), (0.5, 0.25)).flatten().tolist()
    [0.0, 1.0, 0.0, 2.0]

    Allowed: anything in torch. About 8 lines.
    """
    ### BEGIN SOLUTION
    channels = images.shape[1]
    if len(mean) != channels:
        raise ValueError(
            f"images have {channels} channels, but there are {len(mean)} means"
        )
    mean = torch.as_tensor(mean, dtype=images.dtype, device=images.device)
    std = torch.as_tensor(std, dtype=images.dtype, device=images.device)
    # (channels, 1, 1) meets (batch, channels, height, width)
    return (images - mean[:, None, None]) / std[:, None, None]
    ### END SOLUTION


# %% [markdown]
# Stuck? Each exercise has three hints. Open one and try again before you open the next.
#
# <details><summary>Hint 1: the symptom</summary>
#
# "The size of tensor a (6) must match the size of tensor b (5)"? Two axes that do not belong together have been lined
# up. Print both shapes, one under the other, aligned on the right.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# In the figure above, how many ones stand to the right of `channels` in the case that works? And how does a list get a
# shape?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# refuse a wrong number of means
# turn mean and std into tensors with the dtype and device of the images (torch.as_tensor
#     takes both)
# give both the shape (channels, 1, 1)
# subtract, then divide
# ```
#
# </details>

# %% check="normalize_images" points=2
check("normalize_images", normalize_images)

# %% [markdown]
# All checks pass? Then the model can use your function in place of ours, and answers as it did. Try a photo of your
# own, too.

# %%
print(
    "the model's answer:", answer_of(normalize_images(small.clone(), vit.mean, vit.std))
)

# %%
path = ""  # of a photo of your own, if you like; left empty, it is the cat once more
print("the model knows these classes:", ", ".join(vit.classes))
yours = F.interpolate(
    own_picture(path, otherwise=cat())[None].float() / 255, size=(32, 32), mode="area"
)
print("the model's answer:", answer_of(vit.normalize(yours)))

# %% [markdown]
# Now the rule once more. A cell with `predict(...)` asks for your guess, which nobody grades: put it in the place of
# the three dots. The next cell shows the result beside it. Images are (2, 3, 4, 6). How many of the shapes (3,),
# (6,), (4, 1) and (3, 1, 1) can be subtracted from them? **Predict first.**

# %%
predict("shapes-that-fit", 2)  # how many of the four?

# %%
images, fitting = torch.rand(2, 3, 4, 6), 0
for shape in [(3,), (6,), (4, 1), (3, 1, 1)]:
    try:
        print(shape, "runs:", tuple((images - torch.rand(shape)).shape))
        fitting += 1
    except RuntimeError as error:
        print(shape, "stops:", error)
reveal("shapes-that-fit", fitting)

# %% [markdown]
# Of the shapes that run, only (3, 1, 1) gives every channel its own mean: (6,) was lined up with the width, and (4,
# 1) with the height. Most of our checks use images whose four sizes all differ. Then a wrong axis rarely fits by
# accident: `first_try` stopped there, and ran on our thumbnail.
#
# Where do the means come from? They are computed once, from all training photos. Training is easier when the numbers
# that go in lie around zero and are about 1 in size (LeCun et al. 1998, *Efficient BackProp*). Always use the numbers
# that the model was trained with: those in `first_try` are ImageNet's, which torchvision's ViT-B/16 expects.

# %% [markdown]
# ## A first bug hunt
#
# Every lesson has one. The next cell shows another version of `normalize_images` with one bug, which the seed
# chooses. (A torch method whose name ends in `_`, such as `sub_`, changes its tensor instead of making a new one.)
# Which line do you suspect?

# %%
SEED = 1  # any whole number: your own, or the one that your instructor gave you
suspect = hunt("normalize_images", SEED)
suspect

# %% [markdown]
# Here is the cat, normalized by your function and by the suspect, with the mean and standard deviation of this one
# photo. So each channel should end with mean 0 and standard deviation 1, up to rounding. (To show numbers around
# zero, we divide them by 5 and add 0.5.)

# %% tags=["raises-exception"]
statistics = picture.mean(dim=(0, 2, 3)), picture.std(dim=(0, 2, 3))
both = [
    normalize_images(picture.clone(), *statistics),
    suspect(picture.clone(), *statistics),
]
for channel, numbers in zip(
    ("red", "green", "blue"), both[1].transpose(0, 1), strict=True
):
    print(
        f"{channel:6} mean {numbers.mean():6.3f}, "
        f"standard deviation {numbers.std():.3f}"
    )
show_images((0.5 + torch.cat(both) / 5).clamp(0, 1), titles=["yours", "the suspect's"])

# %% [markdown]
# Other seeds give other bugs: some ruin the picture, some tint it, one ends in an error, and one changes nothing in
# this test. Copy the program into the next cell, repair it, and check it.

# %%
mended = None  # paste the program above, fix it, and put its name in place of None
suspect.check(mended)

# %% [markdown]
# <details><summary>A hint that helps with every bug</summary>
#
# Write the formula of this lesson beside the program and find each of its parts there: images, mean, minus, std,
# division. Which part is missing or wrong? Which shape do mean and std have, and which axis do they meet? Does the
# program do anything that is not in the formula? Does it change the picture that it was given?
#
# </details>
# <details><summary>Given up?</summary>
#
# Let the check name it, and read the lines again with that name in mind: `suspect.check(suspect.program)`.
#
# </details>

# %% [markdown]
# ## Four wrong inputs
#
# Does a model complain when something is wrong? Now we make four easy mistakes, one at a time:
#
# - the photo is not normalized;
# - before it is normalized, its numbers go from 0 to 255 instead of 0 to 1;
# - its channels come as blue, green, red, as OpenCV reads them;
# - its patches, squares of 4 × 4 pixels, are laid out column by column, where the model expects them row by row.
#
# **Predict first:** how many of the four raise an error?

# %%
predict("errors-raised", 2)


# %%
def by_columns(images, size):
    """Patches change places: that of row 1, column 2 moves to row 2, column 1."""
    moved = images.clone()
    for row in range(0, 32, size):
        for column in range(0, 32, size):
            rows, columns = slice(row, row + size), slice(column, column + size)
            moved[:, :, rows, columns] = images[:, :, columns, rows]
    return moved


inputs = {
    "as in its training": ready,
    "not normalized": small,
    "from 0 to 255": vit.normalize(255 * small),
    "blue, green, red": vit.normalize(small.flip(1)),
    "column by column": by_columns(ready, 4),
}
answers, errors = {}, 0
for name, given in inputs.items():
    try:
        answers[name] = answer_of(given)
    except Exception as error:
        answers[name], errors = f"{type(error).__name__}: {error}", errors + 1
reveal("errors-raised", errors)
# the scale of the numbers is not shown
seen = torch.cat([small, small, small, small.flip(1), by_columns(small, 4)])
show_images(seen, titles=[f"{name}\n{answer}" for name, answer in answers.items()])

# %% [markdown]
# Three of the four answers are wrong, two of them more confident (70 % and 66 %) than the *cat* of the right input
# (60 %). Without normalization the answer is right. Is that input as good? Here is how many of all 10,000 *test*
# photos, which had no part in its training, the model gets right. (Guessing: 10 %;
# `benchmarks/results/short_lessons.json`.)
#
# | as in its training | not normalized | from 0 to 255 | blue, green, red | column by column |
# |---|---|---|---|---|
# | 82.4 % | 28.0 % | 14.2 % | 57.9 % | 53.9 % |
#
# So one right answer proves little, and a run without an error even less.

# %% [markdown]
# ## One photo, sixteen words
#
# Here the photo is cut into 16 *patches* of 8 × 8 pixels, in the order in which a ViT reads them.

# %%
places = range(0, 32, 8)
corners = [(row, column) for row in places for column in places]
patches = [small[0, :, row : row + 8, column : column + 8] for row, column in corners]
patches = torch.stack(patches)
print("(patches, channels, height, width):", tuple(patches.shape))
show_images(patches, columns=16)

# %% [markdown]
# Each patch is written out as one list of 3 · 8 · 8 = 192 numbers: its word (Dosovitskiy et al. 2021, *An Image is
# Worth 16x16 Words*). All words go in at once. They look at each other, several times: each gets a weighted mean of
# numbers from all of them. So the word for the nose also says something about the eyes. This step is called
# *attention*. The steps of a small model, for one photo:
#
# | step | shape | lesson |
# |---|---|---|
# | the photo's numbers are brought to a common scale | (1, 3, 32, 32) | 00 |
# | it is cut into 16 patches, each a list of 192 numbers | (1, 16, 192) | 01 |
# | each list is turned into a list of 64 numbers, a *token* | (1, 16, 64) | 01 |
# | an extra token is put in front, and every token is told its place | (1, 17, 64) | 02 |
# | several times: the tokens look at each other, then each goes through a small network | (1, 17, 64) | 03, 04 |
# | ten scores are computed from the extra token | (1, 10) | 05 |
#
# The figure shows them for ViT-B/16, the large model whose weights you load in lesson 05. There the extra token is
# called the *class token*, and the scores *logits*. Come back to it to see where you are.
#
# ![A Vision Transformer from image to scores: patches become tokens, a class token is put in front, positions are
# added, twelve blocks follow, and the class token alone goes on to the head. The shape stands beside every
# stage.](../figures/vit_architecture.svg)

# %% [markdown]
# ## Broken models
#
# The wrong inputs met a model that was trained with right ones. What does a bug cost when a model is also *trained*
# with it? Three small ViTs start from the same random numbers and learn ten drawn shapes, for four *epochs* (passes
# through the training images):
#
# - *the right model* reads the patches of a drawing row by row;
# - *tokens column by column*: the second model reads them column by column. (To get this, we move the patches of its
#   drawings, as in the second row of the picture below.)
# - *attention over the batch*: each patch looks at the patches at the same place in all *other drawings* of the
#   batch, not at those of its own. Forget `batch_first=True`, and torch's `nn.MultiheadAttention` does this without a
#   warning.
#
# Their *accuracy* is the share of new drawings that get the right answer. **Predict first:** by how many percentage
# points will the first two differ? What will the third reach?

# %%
upper = shapes(4000)
lower = replace(upper, images=by_columns(upper.images, 8))
show_images(torch.cat([upper.images[:6], lower.images[:6]]), columns=6)

# %%
predict("rows-or-columns", 20)  # percentage points between the first two
predict("over-the-batch", 30)  # of 100 new drawings, how many is the third right on?

# %% tags=["experiment"]
from torch import nn

from vit_course import VisionTransformer, ViTConfig
from vit_course.training import TrainingSettings, fit


class OverTheBatch(nn.Module):
    """Attention along the axis of the images instead of the axis of the tokens."""

    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, tokens):  # (batch, tokens, embed_dim)
        return self.attention(tokens.transpose(0, 1)).transpose(0, 1)


print("accuracy, and in brackets the training loss, of each of four epochs")
print("(about 10 seconds a model)")
small_vit = ViTConfig(patch_size=8, embed_dim=64, depth=2, num_heads=4)
settings = TrainingSettings(epochs=4, learning_rate=3e-3)
given = {"row by row": upper, "column by column": lower, "over the batch": upper}
accuracies, models = [], {}
for name, data in given.items():
    torch.manual_seed(0)
    model = VisionTransformer(small_vit)
    if name == "over the batch":
        for block in model.blocks:
            block.attention = OverTheBatch(block.attention)
    # 3,000 drawings to learn from, 1,000 to measure on
    train, validation = train_validation_split(data, 1000)
    history = fit(model, train, validation, settings)
    accuracies.append(100 * history.validation_accuracy[-1])
    models[name] = model
    epochs = zip(history.validation_accuracy, history.train_loss, strict=True)
    line = [f"{accuracy:.1%} ({loss:.3f})" for accuracy, loss in epochs]
    print(f"{name:16}", "  ".join(line))
reveal("rows-or-columns", abs(accuracies[0] - accuracies[1]), within=5)
reveal("over-the-batch", accuracies[2], within=3)

# %% [markdown]
# *Attention over the batch* guesses. The scores are computed from the extra token alone, and with this bug it never
# sees a patch. Still the loss fell a little, to 2.303, where it was before training. (The loss is the
# *cross-entropy*: the mean of −log(share of the right class). A share of 1/10 for every class gives log 10 = 2.303.)
# The first epoch made it worse, the later ones brought it back: the loss fell, and nothing about drawings was
# learned.
#
# *Tokens column by column* is about as good as the right model. The lower drawings look scrambled to us, but the
# order is the same for every drawing. In either order the model has to learn what each place means. It goes wrong as
# soon as something else relies on the order: weights that were trained with the row order, or a map of where the
# model looks. (With three *seeds*, three sets of random numbers, the two models are at most 2.9 points apart:
# `benchmarks/results/short_lessons.json`.)

# %% [markdown]
# ### Nine models, eight bugs
#
# Is it the same with real photos? We trained the model of the table above on CIFAR-10, and eight more, each with one
# bug that is easily made and raises no error. You know two of them. In a third, *patches reshaped*, each of the 16
# tokens holds four numbers of *every* patch, where it should hold 64 of *one* (lesson 01). Lessons 03 and 06 explain
# the other five.
#
# ![Accuracy on CIFAR-10 of the right model and of eight broken ones, one mark for each random seed, and the loss at
# the end of training. Five broken models lie beside the right one, two lower; attention over the batch stays at
# chance.](../figures/broken_vit.svg)
#
# The right model is right on 52.8 % of the test photos, the one with reshaped patches on 52.6 %: no number is lost,
# and each has the same place in every photo. With these three seeds, the accuracy does not distinguish five of the
# eight from the right model. Nor does the training loss: of the five, two end clearly *below* the right model (0.91
# and 0.96 against 1.05), and one clearly above it (1.13).
#
# **A falling loss, and even a good accuracy, do not tell you whether a model is right.** This is the reason for every
# check in this course. The bugs may still cost a point or two: how we measured, and how sure we are, is [a side
# note](/notes/nine_models.html).

# %% [markdown]
# ### One input that tells them apart
#
# One picture shows which model reads in the wrong order, without any training, and **you choose it**: some patches
# white, all others black. Which of the sixteen words, counted from 0, are white?

# %%
white = [(0, 0)]  # in brackets, a (row, column) for each white patch, from 0 to 3

grid = torch.zeros(4, 4)
for row, column in white:
    grid[row, column] = 1
# each place becomes a patch of 8 x 8 pixels
chosen = F.interpolate(grid.expand(1, 3, 4, 4), scale_factor=8)
sentences = []
orders = {"row by row": chosen, "column by column": by_columns(chosen, 8)}
for name, given in orders.items():
    # of each of the 16 patches
    brightness = given.reshape(1, 3, 4, 8, 4, 8).mean(dim=(1, 3, 5)).flatten()
    sentences.append(brightness.nonzero().flatten().tolist())
    print(f"{name:16} white words: {sentences[-1]}")
if sentences[0] != sentences[1]:
    print("This picture tells the two orders apart.")
else:
    print("This picture proves nothing.")

# %% [markdown]
# The upper left patch is word 0 in both orders. Change `white` until the picture tells the orders apart. Then try to
# find a picture with *four* white patches in four different rows that still proves nothing.
#
# <details><summary>Try first, then open this.</summary>
#
# `[(0, 1)]` is word 1 row by row, and word 4 column by column. Reading by columns exchanges rows and columns. So a
# picture proves nothing when it is its own mirror image in the diagonal from the upper left to the lower right.
# Examples are the four patches on this diagonal, or the four on the other one.
#
# </details>
#
# A check works like this: it chooses an input on which right and wrong *must* differ. For `first_try` it was images
# with five channels and six columns. For attention over the batch two different drawings are enough: a model that
# never sees a patch must give both the same scores. By how much do they differ in each of your models?

# %% tags=["experiment"]
pair = upper.normalize(upper.images[:2])
for name, model in models.items():
    # as in its training
    given = by_columns(pair, 8) if name == "column by column" else pair
    with torch.inference_mode():
        scores = model.cpu().eval()(given)  # fit may have moved the model to a GPU
    gap = (scores[0] - scores[1]).abs().max()
    print(f"{name:16} largest difference between the two drawings' scores: {gap:.2f}")

# %% [markdown]
# With attention over the batch the difference is 0.00: one pass through the model showed what four epochs of a
# falling loss did not. The model that reads column by column passes this test. An input exposes only the mistakes
# that it was chosen for, so a check makes several claims.

# %% [markdown] question="loss-proves-little" points=1
# ### Question: "my loss falls"
#
# A friend writes: "My ViT must be right. The loss falls in every epoch, and it is more accurate than yours." What do
# you answer, in two or three sentences? Support your answer with a number from the figure of the nine models.
#
# ### BEGIN SOLUTION
# A falling loss shows that the model learns something, not that it is the model you meant to write. In the figure a ViT
# that reads its patches column by column reaches 53.3 %, the right one 52.8 % (their ranges overlap: from seed to seed
# the right one alone varies by more than that), so being more accurate than mine proves nothing either. Which inputs
# would make your code and the right code give different numbers? Let us compare on those.
#
# **Rubric.** 1 point: broken models learn too, some of them as well as the right one, with a number from the figure.
# Half a point: the same without a number.
# ### END SOLUTION

# %% [markdown]
# ## A whole ViT, all of it borrowed
#
# Here is the figure as a program. Read it beside the figure, then let it learn the drawings. (About 15 seconds on one
# core, a minute on a slow one.)

# %% tags=["experiment"]
from vit_course import EncoderBlock, PatchEmbedding, add_class_token
from vit_course.whole_vit import learn_drawings


class FirstViT(nn.Module):
    """Drawings (batch, 3, 32, 32) to scores (batch, 10), as in the figure."""

    def __init__(self):
        super().__init__()
        # 16 patches of 8 x 8 pixels; each becomes a token of 64 numbers
        self.patch_embedding = PatchEmbedding(3, 8, 64)
        self.class_token = nn.Parameter(torch.zeros(1, 1, 64))
        self.positions = nn.Parameter(0.02 * torch.randn(1, 17, 64))
        # in each block: attention with 4 heads, then a small network
        self.blocks = nn.Sequential(EncoderBlock(64, 4), EncoderBlock(64, 4))
        self.norm = nn.LayerNorm(64)
        self.head = nn.Linear(64, 10)

    def forward(self, images):
        tokens = self.patch_embedding(images)  # (batch, 16, 64)
        # (batch, 17, 64): the class token comes first
        tokens = add_class_token(tokens, self.class_token, self.positions)
        tokens = self.blocks(tokens)
        class_token = self.norm(tokens)[:, 0]  # (batch, 64)
        return self.head(class_token)  # (batch, 10)


torch.manual_seed(0)
learn_drawings(FirstViT())

# %% [markdown]
# Above each new drawing stands the model's answer. Six parts of this model are exercises of lessons 01 to 05. At the
# end of each lesson it learns again, with your parts in it.

# %% [markdown]
# ## A harder one, without points
#
# Compute the mean and the standard deviation of each channel for a data set that does not fit into memory. Go through
# it once, in batches of different sizes, and keep only a few numbers from each batch. Compare with
# `images.double().mean(dim=(0, 2, 3))` and `.std(...)` of all images at once (torch's `std` divides by n − 1). Then
# add 10,000 to every pixel, in float32. Which of your results goes wrong now, and which way of adding up avoids the
# error? (Welford 1962 has one for single numbers, Chan, Golub and LeVeque 1979 one for batches.)

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. Images are (8, 3, 32, 32). Which axis does a tensor of shape (32,) meet? And (32, 1)?</summary>
#
# (32,) meets the width, (32, 1) the height. On square pictures both run, so no error warns you when you have chosen the
# wrong one.
#
# </details>
# <details><summary>2. <code>images / std - mean / std</code> or <code>images / std - mean</code>: which one
# normalizes?</summary>
#
# The first: dividing a difference divides both of its parts. The check calls the second one *divided before
# subtracting*.
#
# </details>
# <details><summary>3. Eight photos of 32 × 32 pixels go into a ViT with patches of 4 × 4 pixels and ten classes. Which
# shape goes in, into how many words is each photo cut, and which shape comes out?</summary>
#
# (8, 3, 32, 32) goes in. Each photo is cut into 8 · 8 = 64 words of 3 · 4 · 4 = 48 numbers. (8, 10) comes out: ten
# scores for each photo.
#
# </details>
# <details><summary>4. <code>first_try</code> is wrong. Name a shape of images on which it stops with an error, one on
# which it runs and is wrong, and one on which it is right.</summary>
#
# For example (2, 3, 4, 6), (2, 3, 4, 3) and (2, 1, 4, 6). With a single channel there is only one mean, and it does not
# matter which axis it meets: a test on gray images would have found nothing.
#
# </details>
#
# ---
#
# **Next lesson:** `01_patchify`, in which a photo becomes a sentence.
#
# **Further reading.** Karpathy 2019, *A Recipe for Training Neural Networks*: neural networks fail silently. Zhang et
# al. 2017, *Understanding Deep Learning Requires Rethinking Generalization*: a network's loss falls even on random
# labels.

# %%
progress()
