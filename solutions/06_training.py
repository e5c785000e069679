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
# # 06 · Training on CIFAR-10
#
# Your Vision Transformer is built and tested. Now you train it on small photos, with a training loop and an
# evaluation that you write yourself.
#
# **After this lesson you can**
# - split data so that nothing leaks, and leave a test set unused until the very end;
# - write a training loop and an evaluation, test them on a single batch, and recognize common faults by their curves;
# - add a learning-rate schedule, sensible weight decay, and a rule for when to stop;
# - find a learning rate with 100 steps of training, and say why half precision needs care.
#
# <!-- table: tasks -->
#
# A good place for a break is before "What AdamW does with a gradient". On Colab, switch on a GPU *now* (Runtime >
# Change runtime type): switching restarts the notebook, and would later delete your variables and files.

# %%
import copy
import itertools
import math
import os
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import nn

from vit_course import VisionTransformer, ViTConfig, initialise
from vit_course import check, hunt, keep, own, predict, progress, reveal
from vit_course.data import Batches, load_dataset, shapes
from vit_course.plots import BLUE, GRAY, INK, ORANGE, new_figure, show_images
from vit_course.training import bar

device = "cuda" if torch.cuda.is_available() else "cpu"
MyViT = own("VisionTransformer")
toys = shapes(1500)  # our own drawings, for quick trials


# %%
def draw(curves, xlabel, ylabel, xscale="linear"):
    """Curves {name: numbers}, or {name: (x, y)}, in one picture."""
    figure = new_figure(6.8, 3.0)
    axes = figure.subplots()
    styles = zip((BLUE, ORANGE, INK), ("-", "--", ":"), strict=True)
    for (name, values), (color, line) in zip(curves.items(), styles, strict=False):
        x, y = (
            values if isinstance(values, tuple) else (range(1, 1 + len(values)), values)
        )
        axes.plot(x, y, line, label=name, color=color)
    axes.set(xlabel=xlabel, ylabel=ylabel, xscale=xscale)
    if xscale == "linear":
        axes.locator_params(axis="x", integer=True)
    axes.grid(color=GRAY, alpha=0.2)
    axes.legend(frameon=False)
    return figure


# %% [markdown]
# ## Three piles of pictures
#
# CIFAR-10 is 60,000 color photos of 32 × 32 pixels in ten classes: airplanes, cars, birds, cats and so on (Krizhevsky
# 2009). The cell downloads it once (170 MB), or takes it from the folder that `VIT_COURSE_DATA` names. If neither
# works, it uses our own drawings of ten shapes, and says so. They are easier, so your numbers will then be higher
# than ours.

# %% tags=["experiment"]
full, _ = load_dataset("cifar10", otherwise="shapes")
print(full)
show_images(
    full.images[:16], titles=[full.classes[label] for label in full.labels[:16]]
)

# %% [markdown]
# See the underscore? `load_dataset` gave us two sets, and we dropped the second without a look. It is the **test
# set**.
#
# ![Three piles of pictures. The training pile is used at every step, the validation pile after every epoch to choose,
# the test pile once, at the very end.](../figures/three_piles.svg)
#
# Images that you use to *choose* something, a learning rate or the moment to stop, have helped to make the model, and
# can no longer judge it. So a second set, for validation, is split off for all the choosing. The test set is not
# touched before you have a model to hand in, in lesson 07.
#
# **Predict first.** 200 models only guess: each of their answers is right with a probability of 10 %. You choose the
# model that does best on 500 validation images. What share of these 500 does it get right?

# %%
predict("best-of-200-guessers", 10)  # in %, of the validation images

# %%
generator = torch.Generator().manual_seed(0)
# (models, validation or test, images)
right = torch.rand(200, 2, 500, generator=generator) < 0.1
on_validation, on_test = 100 * right.float().mean(dim=2).T  # (200,) each, in %
chosen = on_validation.argmax()
reveal("best-of-200-guessers", on_validation[chosen], within=1)
print(f"the same model on 500 test images: {on_test[chosen]:.1f} %")

# %% [markdown]
# Nothing leaked, and no line of code is wrong: the largest of 200 noisy numbers is nearly always too large. Only
# images that were not used to choose anything give an honest number.

# %% [markdown]
# ### Exercise: `split_indices`


# %% exercise="split_indices"
def split_indices(num_samples, num_validation, seed):
    """Choose at random which images validate; all the others train.

    num_samples:    how many images there are, numbered from 0
    num_validation: how many of them validate
    seed:           the same seed gives the same split, today and next year
    returns:        (train_indices, validation_indices), two int64 tensors. Every image
                    is in one of them, no image is in both.

    Draw from a torch.Generator of your own, seeded with `seed`: the split must not
    depend on random numbers drawn elsewhere, nor change those drawn afterward.

    >>> train_indices, validation_indices = split_indices(10, 3, 0)
    >>> len(train_indices), len(validation_indices)
    (7, 3)
    >>> sorted(torch.cat([train_indices, validation_indices]).tolist())
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]

    Raise ValueError, with the value of num_validation in its text, unless 0 <
    num_validation < num_samples.
    Allowed: anything in torch. About 8 lines.
    """
    ### BEGIN SOLUTION
    if not 0 < num_validation < num_samples:
        raise ValueError(
            f"num_validation {num_validation} is not between 1 and {num_samples - 1}"
        )
    shuffled = torch.randperm(
        num_samples, generator=torch.Generator().manual_seed(seed)
    )
    return shuffled[num_validation:], shuffled[:num_validation]
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# An image in both parts? You drew twice: the second draw knows nothing of the first. Another split every time, although
# the seed is the same? Something still draws from torch's own generator. The parts are the wrong way round? Look at the
# order in the docstring's "returns".
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# If the numbers from 0 to `num_samples - 1` were a shuffled pack of cards, how would you make two piles? Which function
# of torch shuffles, and does it take a `generator`?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# refuse sizes that leave a pile empty
# a generator of your own, seeded
# all numbers, shuffled once, by that generator
# the first num_validation of them validate, the rest train; mind the order in which you
#     return them
# ```
#
# </details>

# %% check="split_indices" points=3
check("split_indices", split_indices)

# %% [markdown]
# Why may no image be in both? Consider a model that only memorizes. For a new picture, it gives the label of the most
# similar training picture.
#
# **Predict first.** With a correct split this model gets 40 % of the validation pictures right. Now, by mistake, half
# of the validation pictures are among the training pictures as well. What share will it get right then?

# %%
predict("half-of-it-leaks", 60)  # in %, where an honest split gives 40 %

# %%
pixels = toys.images.flatten(1).float()
train_indices, validation_indices = split_indices(len(toys), 500, seed=0)
leaky_indices = torch.cat([train_indices, validation_indices[:250]])
shares = []
for name, known in (
    ("honest split", train_indices),
    ("half of it leaks", leaky_indices),
):
    nearest = torch.cdist(pixels[validation_indices], pixels[known]).argmin(dim=1)
    right = toys.labels[known][nearest] == toys.labels[validation_indices]
    shares.append(right.float().mean())
    print(f"{name:18} {shares[-1]:.1%}")
honest, leaky = shares
print("scaled to an honest split of 40 %:")
reveal("half-of-it-leaks", 40 + 60 * (leaky - honest) / (1 - honest), within=5)

# %% [markdown]
# <details><summary>A formula</summary>
#
# For an honest share *a*, (1 + *a*) / 2: half of the pictures have leaked, and each of these finds itself and is
# right; of the other half, a share *a* is right.
#
# </details>
#
# And the model is no better than before. Every real model memorizes to some degree. A leak never looks like a bug. It
# looks like success.
#
# Your split keeps *indices* apart, not pictures. Near-copies, such as frames of one video, must all go into the same
# pile; lesson 09 measures such a leak. Small leaks count too: the mean and the standard deviation that normalize the
# pictures are *learned from pictures*, so they must come from the training set alone.

# %%
# empty: to be computed from these images
toy_train = replace(toys.subset(train_indices), mean=(), std=())
toy_validation = toys.subset(validation_indices).with_statistics_of(toy_train)
print("mean of each channel:", [round(mean, 3) for mean in toy_train.mean])

# %% [markdown]
# ## The loop
#
# This is all of training, once for each batch: compute the logits and their loss, empty the old gradients, compute
# the new ones, change the weights a little. Most mistakes in these few lines raise no error: the loss often falls all
# the same.
#
# A `loader` gives batches `(images, labels)` again and again. The last batch is often smaller: 10 images in batches
# of 4 make 4, 4 and 2. On paper: these three have mean losses of 1.0, 1.0 and 3.5. What is the mean loss *per image*?
# It is not 1.83.

# %% [markdown]
# <details><summary>Write down your number, then open this.</summary>
#
# Four images at 1.0, four at 1.0, two at 3.5: (4 + 4 + 7) / 10 = 1.5. The mean of means, 1.83, gives two images the
# same weight as four.
#
# </details>
#
# ### Exercise: `train_one_epoch`


# %% exercise="train_one_epoch"
def train_one_epoch(model, loader, optimizer, device):
    """Show the model every batch once, and update it after each.

    model:     images (batch, channels, height, width) → logits (batch, num_classes), on
               `device` already. It may still be in evaluation mode: put it into
               training mode yourself.
    loader:    gives (images, labels), which may lie on another device; a plain list of
               batches will do
    optimizer: of torch.optim, holding the model's parameters, which may still hold old
               gradients.
    returns:   a float (no tensor), the mean cross-entropy per image; each batch's loss
               is taken before its update

    By hand: two logits that start at 0 make a softmax of 1/2 and 1/2, so the loss is
    log 2, its gradient on the logits is -1/2 and +1/2, and plain SGD with a rate of 1
    subtracts these, times the input, from the weights.

    >>> model = nn.Linear(2, 2, bias=False)
    >>> _ = nn.init.zeros_(model.weight)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    >>> batch = (torch.tensor([[1.0, 0.0]]), torch.tensor([0]))
    >>> round(train_one_epoch(model, [batch], optimizer, "cpu"), 4)
    0.6931
    >>> model.weight.tolist()
    [[0.5, 0.0], [-0.5, 0.0]]

    Allowed: torch, F.cross_entropy. About 11 lines.
    """
    ### BEGIN SOLUTION
    model.train()
    loss_sum, num_images = 0.0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss_sum += loss.item() * len(labels)
        num_images += len(labels)
    return loss_sum / num_images
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# The weights after one batch are right, after two wrong? Something of the first batch is still there in the second. The
# weights do not move at all? One of three calls is missing, or comes too early. The mean is a little off, and only when
# the last batch is short? Go back to your number on paper.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# `backward` *adds* to the gradients that it finds. Which call empties them, and when? And `loss` is a tensor that
# remembers how it was computed. Which method gives you the plain number, so that torch can free that memory?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# training mode
# for each batch, on the device:
#     loss of the logits
#     forget old gradients; new gradients; update
#     add the loss times the number of images to one sum, the number to another
# one sum divided by the other
# ```
#
# </details>

# %% check="train_one_epoch" points=4
check("train_one_epoch", train_one_epoch)

# %% [markdown]
# Other people's loader is usually a `torch.utils.data.DataLoader`. It gives such pairs too, so your function works
# with it as it is.
#
# ### Overfit one batch
#
# Before any real training comes the cheapest test there is (Karpathy 2019): take **one** batch of 32 drawings and
# show it to the model again and again. If a loop, a model and a rate cannot learn 32 pictures by heart in seconds, do
# not start the long training.
#
# We train three times, 60 steps each. How low does the loss get with the drawings as they are? With *shuffled*
# labels, so that there is nothing to understand? And with all images multiplied by 0, so that there is nothing to
# see?

# %%
TOY = ViTConfig(patch_size=8, embed_dim=48, depth=2, num_heads=4)


def new_model(config):
    """A model of your class that starts as the first ViT paper's (see position_std)."""
    model = MyViT(config)
    # the course's own model has done this already
    if not isinstance(model, VisionTransformer):
        model.config = config
        initialise(model)
    return model


# gives normalized images, each pass in a new order
toy_loader = Batches(toy_train, 64, shuffle=True, device=device)
torch.manual_seed(0)
some_images, some_labels = (each[:32] for each in next(iter(toy_loader)))
one_batch = {
    "as they are": (some_images, some_labels),
    "labels shuffled": (some_images, some_labels[torch.randperm(32)]),
    "images times 0": (0 * some_images, some_labels),
}
by_heart = {}
for name, batch in one_batch.items():
    torch.manual_seed(0)
    model = new_model(TOY).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    by_heart[name] = [
        train_one_epoch(model, [batch], optimizer, device) for _ in range(60)
    ]
draw(by_heart, "step", "loss on the one batch")

# %% [markdown]
# All three curves begin at log 10 = 2.30, as they should: our heads start at zero.
#
# Pictures and labels that do not belong together are learned by heart as well: a loss near 0 on *training* pictures
# says that the machinery works, and nothing about understanding (Zhang et al. 2017). Blank images all get the same
# logits, so the best possible answer is the share of each class in the batch. Whenever a training "does not learn",
# make this test first.
#
# Now all 1,000 drawings, five epochs; a few seconds. What share of *new* drawings will the model get right in the
# end?

# %%
torch.manual_seed(0)
toy_model = new_model(TOY).to(device)
toy_loader = Batches(toy_train, 64, shuffle=True, device=device)
toy_optimizer = torch.optim.AdamW(toy_model.parameters(), lr=3e-3)
for _ in range(5):
    mean_loss = train_one_epoch(toy_model, toy_loader, toy_optimizer, device)
    print(f"mean loss per image {mean_loss:.3f}")

# %% [markdown]
# The loss on training pictures says how well the model knows *these* pictures. To know about others, we have to
# evaluate it on others.
#
# ## Evaluation
#
# Evaluation is the loop without the updates, and three things change. The model runs as it will be *used*, with
# dropout off. Nothing is stored for a `backward` that never comes. And afterward the model is as before: if it was in
# training mode, it is in training mode again.
#
# ### Exercise: `evaluate`


# %% exercise="evaluate"
def evaluate(model, loader, device):
    """Measure a model, and leave no trace on it.

    loader:  gives (images, labels), as above; a plain list of batches will do
    returns: (mean cross-entropy per image, share of right answers in [0, 1]), two
             floats (no tensors), right with a short last batch too

    The model's mode is restored: a model in training mode is in training mode again,
    and can be trained further.

    By hand, with a model that passes its input on as logits. Logits of log 3 and 0 make
    probabilities of 3/4 and 1/4. Two images are right, with a loss of -log 3/4 = 0.288
    each; the third is wrong, with -log 1/4 = 1.386. The mean over three images is
    0.654.

    >>> log3 = 1.0986123
    >>> full_batch = (torch.tensor([[log3, 0.0], [log3, 0.0]]), torch.tensor([0, 0]))
    >>> short_batch = (torch.tensor([[0.0, log3]]), torch.tensor([0]))
    >>> loss, accuracy = evaluate(nn.Identity(), [full_batch, short_batch], "cpu")
    >>> round(loss, 3), round(accuracy, 3)
    (0.654, 0.667)

    Allowed: torch, F.cross_entropy (its `reduction` may help). About 13 lines.
    """
    ### BEGIN SOLUTION
    # a part may be frozen in evaluation mode
    modes = {module: module.training for module in model.modules()}
    model.eval()
    loss_sum, num_right, num_images = 0.0, 0, 0
    with torch.no_grad():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            logits = model(images)  # (batch, num_classes)
            loss_sum += F.cross_entropy(logits, labels, reduction="sum").item()
            num_right += (logits.argmax(dim=-1) == labels).sum().item()
            num_images += len(labels)
    for module, mode in modes.items():
        module.training = mode
    return loss_sum / num_images, num_right / num_images
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# The accuracy is right and the loss is not? A mean of means again. An absurdly low accuracy? Print the shape of what
# `argmax` gives: one guess for each image, or for each class? The check complains about the mode although you called
# `eval()`? It looks at the mode *after* your function has returned.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# Which attribute tells whether a module is in training mode, and which method takes such a True or False? And which
# context manager of torch stops it from recording how things were computed?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# note the mode; evaluation mode
# without gradients, for each batch on the device:
#     logits
#     add up: the batch's summed loss, how many guesses equal the labels, how many images
# put the mode back
# divide both sums by the number of images
# ```
#
# </details>

# %% check="evaluate" points=4
check("evaluate", evaluate)

# %%
for name, dataset in (
    ("drawings it learned from", toy_train),
    ("drawings it never saw", toy_validation),
):
    loss, accuracy = evaluate(toy_model, Batches(dataset, 200, device=device), device)
    print(f"{name:26} loss {loss:.3f}, {accuracy:.1%} right")

# %% [markdown]
# The second line is the answer. If it is worse than the first, the difference was memory, not knowledge.

# %%
with torch.no_grad():
    shown = toy_validation.subset(slice(16))
    logits = toy_model.eval()(shown.normalize(shown.images).to(device))
    guesses = logits.argmax(dim=-1).tolist()
pairs = zip(guesses, shown.labels.tolist(), strict=True)
names = toys.classes
show_images(
    shown.images,
    titles=[names[g] + (" ✓" if g == y else f",\nbut {names[y]}") for g, y in pairs],
)

# %% [markdown]
# ## Six faulty trainings
#
# One small ViT was trained seven times on CIFAR-10, 300 steps each, all from the same start. The dashed gray line is
# the correct training. Each of the other six has **one** thing wrong with it. Blue is the loss on training batches,
# orange dots are the loss on validation images.
#
# ![Six panels, A to F, each with the loss curve of a faulty training in blue, dots of its validation loss in orange,
# and a correct training in dashed gray. A rises steeply at first and stays high. B sinks a little, then climbs. C
# sinks very slowly and stays above 2. D goes up and down like a saw, while its dots climb. E is nearly flat. F falls
# to zero while the dots climb.](../figures/sick_curves.svg)
#
# Write a diagnosis next to each letter, out of these six: *learning rate too high · learning rate too low ·
# `zero_grad` forgotten · softmax before the loss · images not shuffled but sorted by class · only 500 images.*

# %% [markdown]
# <details><summary>Write down all six, then open this.</summary>
#
# **A** is a learning rate 100 times too high: the first few steps drive the loss of a batch above 5, and with steps of
# this size the model has hardly recovered after 300. **B** forgot `zero_grad`: every update uses the sum of all
# gradients since the beginning, most of which are out of date. **C** has a softmax before the loss, and the loss takes
# a second softmax, so this loss cannot fall below 1.46. It falls slowly (lesson 07 asks why). **D** sees its images
# sorted by class: within a class it learns to answer "cat" to everything, and at the next class the loss jumps.
# Validation images are of all classes, so what it has just learned is wrong for nine of ten of them, and its dots
# climb. **E** is a rate 100 times too low. **F** has 500 images and learns them by heart: the training loss falls to
# zero, which alone would look like a success, and the validation loss climbs.
#
# Real runs, all of them: `benchmarks/results/lesson_cifar.json`, drawn by `figures/training.py`.
#
# </details>
#
# A curve shows some faults, and not all: scrambled patches, a loop that evaluates in training mode and a leak look
# normal. After step 50, A, C and E look much alike, too. To tell them apart, look at the first steps, or make the
# test with one batch. You can also watch, and clip, the length of the gradient: [side note on
# clipping](/notes/gradient_clipping.html).

# %% [markdown]
# ## A loop from the internet
#
# ### Bug hunt: `fix_training`
#
# Imagine a popular tutorial with this loop in it. A reader complains that the model learns little, and somebody
# advises a smaller learning rate. Two things are wrong: one harms the training, the other only the number that it
# reports. The hunt begins with measurements, on a model so small that you can work out every number.


# %%
def train_from_the_internet(model, loader, optimizer, device):
    model.train()
    running_loss = 0.0
    optimizer.zero_grad()
    for images, targets in loader:
        images, targets = images.to(device), targets.to(device)
        outputs = model(images)
        loss = F.cross_entropy(outputs, targets)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    return running_loss / len(loader)


# %% [markdown]
# What should a *right* loop do?
#
# - One batch is repeated 1, 2, 3, 4 times, with plain SGD and a tiny learning rate, so that its gradient stays nearly
#   the same. The weight moves by 1 unit in the first case. By how much in the others?
# - Six images, two of them hard, and a rate of 0. They come in one batch, then as 4 + 2. Does the reported loss
#   change?

# %%
images, labels = torch.ones(6, 1), torch.tensor([0, 0, 0, 0, 1, 1])


def tiny_model():
    """Two logits, 1 and -1 for every image: class 0 is easy, class 1 is hard."""
    model = nn.Linear(1, 2, bias=False)
    model.weight.data = torch.tensor([[1.0], [-1.0]])
    return model


def moved(one_epoch, repetitions):
    """How far the first weight moves when a batch is used `repetitions` times."""
    model = tiny_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    one_epoch(model, [(images, labels)] * repetitions, optimizer, "cpu")
    return 1 - model.weight[0, 0].item()


def reported(one_epoch, sizes):
    """The loss reported for six images in batches of these sizes; nothing learned."""
    model = tiny_model()
    loader = list(zip(images.split(sizes), labels.split(sizes), strict=True))
    return one_epoch(model, loader, torch.optim.SGD(model.parameters(), lr=0.0), "cpu")


for one_epoch in (train_one_epoch, train_from_the_internet):
    units = [
        round(moved(one_epoch, times) / moved(one_epoch, 1), 1)
        for times in (1, 2, 3, 4)
    ]
    losses = [round(reported(one_epoch, sizes), 2) for sizes in ([6], [4, 2])]
    print(f"{one_epoch.__name__:24} moves {units}, reports {losses}")

# %% [markdown]
# Before you read the other loop again, write down two facts that are true of your loop and false of the other, one
# sentence each. Look at how far the other loop moves the weight: 1, then 1 + 2, then 1 + 2 + 3, … What adds up there?


# %% exercise="fix_training"
def fix_training(model, loader, optimizer, device):
    """train_from_the_internet without its two bugs: arguments and result as in
    train_one_epoch.

    Write the whole function; your own train_one_epoch may not be called in it. On each
    line that you changed, write as a comment which of the two facts is true because of
    it. (No check reads the comment; your instructor may.) About 12 lines.

    By hand: three images in two batches, and a rate of 0, so that nothing moves. Logits
    are 0, so every image has a loss of log 2 = 0.693, however they are batched.

    >>> model = nn.Linear(1, 2, bias=False)
    >>> _ = nn.init.zeros_(model.weight)
    >>> batches = [(torch.ones(2, 1), torch.tensor([0, 1])),
    ...            (torch.ones(1, 1), torch.tensor([0]))]
    >>> round(fix_training(model, batches,
    ...                    torch.optim.SGD(model.parameters(), lr=0.0), "cpu"), 3)
    0.693
    """
    ### BEGIN SOLUTION
    model.train()
    running_loss, num_images = 0.0, 0
    for images, targets in loader:
        images, targets = images.to(device), targets.to(device)
        # an update depends on the gradient of its own batch alone
        optimizer.zero_grad()
        outputs = model(images)
        loss = F.cross_entropy(outputs, targets)
        loss.backward()
        optimizer.step()
        # the report is the same, however images are batched
        running_loss += loss.item() * len(targets)
        num_images += len(targets)
    return running_loss / num_images
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# For the first bug: why would the second update be twice as large as the first, with the same gradient? For the second:
# which two numbers does 4 + 2 average, and with which weights?
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# How often does each line run in an epoch of 100 batches, and how often should it? And what does `len(loader)` count?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# one line moves into the loop
# one line multiplies the batch's loss by its number of images
# the last line divides by the number of all images, which has to be counted
# ```
#
# </details>

# %% check="fix_training" points=3
check("fix_training", fix_training)

# %%
losses = {}
for name, one_epoch in (
    ("from the internet", train_from_the_internet),
    ("fixed", fix_training),
):
    torch.manual_seed(0)
    model = new_model(TOY).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    toy_loader.epoch = 0  # the same batches for both
    losses[name] = [one_epoch(model, toy_loader, optimizer, device) for _ in range(5)]
draw(losses, "epoch", "training loss")

# %% [markdown]
# The loop from the internet adds up all gradients of an epoch, so its updates still follow the first batches,
# although the model has changed a lot since then. Was the advice good: does a smaller rate help? Try `lr=3e-4` in the
# cell above.
#
# <details><summary>Try first, then open this.</summary>
#
# If the model changes little within an epoch, the old gradients are not yet out of date, and their sum works like a
# crude momentum. So a smaller rate may hide this bug. It does not remove it.
#
# </details>

# %% [markdown]
# ### A second bug hunt, with a random bug
#
# One more loop; a seed picks its bug from the library of mistakes. Some harm the training, some only the number that
# is reported, and some show only with dropout, with a GPU, or when memory is full. Which kind is yours?

# %%
SEED = 12  # any whole number: your own, or the one that your instructor gave you
suspect = hunt("train_one_epoch", SEED)
suspect

# %% [markdown]
# Three epochs on the drawings, the suspect's loop next to your own, with the same weights and batches: two correct
# loops report the same numbers.

# %% tags=["raises-exception"]
losses = {}
for name, one_epoch in (("the suspect", suspect.program), ("yours", train_one_epoch)):
    torch.manual_seed(0)
    model = new_model(TOY).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    toy_loader.epoch = 0  # the same batches for both
    losses[name] = [
        float(one_epoch(model, toy_loader, optimizer, device)) for _ in range(3)
    ]
    print(f"{name:12}", [round(loss, 3) for loss in losses[name]])
draw(losses, "epoch", "training loss")

# %% [markdown]
# Are both lines the same? A curve does not show every fault. Try `moved(suspect.program, 2)` and
# `reported(suspect.program, [4, 2])`, and compare with the same calls of `train_one_epoch`. Then repair a copy.
#
# If your instructor gave you a seed for points, put your repaired version of *that* program into the cell of
# `fix_training` above and run the check again.

# %%
mended = None  # paste the program above, fix it, and put its name in place of None
suspect.check(mended)

# %% [markdown]
# <details><summary>A hint, whatever the bug</summary>
#
# There are five lines of torch, one mode and two sums. For each line, say how often it runs in an epoch, what it needs
# from the line before, and whether it sees a tensor or a number.
#
# </details>
# <details><summary>Given up?</summary>
#
# Let the check name it, and read the lines again with that name in mind: `suspect.check(suspect.program)`.
#
# </details>
#
# Want more? `hunt("evaluate", SEED)` puts a bug into the evaluation.

# %% [markdown]
# ## What AdamW does with a gradient
#
# Plain SGD subtracts `lr * gradient` from each weight. But the gradients of one weight may be a thousand times as
# large as those of another, and a rate that suits one is wrong for the other. Adam (Kingma and Ba 2015) keeps two
# running means for each weight: one of its gradient, one of the square of its gradient. The root of the second is the
# gradient's typical size, and Adam divides the first by it. AdamW (Loshchilov and Hutter 2019) also shrinks the
# weight itself a little.
#
# **Predict first.** The first gradient of one weight is 0.001, that of another is 10. How many times as far does
# AdamW move the second one in the first step?

# %%
predict("first-step-of-adamw", 100)


# %%
def adamw_update(weight, gradient, mean, square, step, lr, decay):
    """One update in place: torch's betas and eps, both means from 0, `step` from 1."""
    # a tenth of the new gradient, nine tenths of the old mean
    mean.lerp_(gradient, 1 - 0.9)
    square.lerp_(gradient.square(), 1 - 0.999)
    # both means began at 0 and are too small at first: this corrects them
    direction = mean / (1 - 0.9**step)
    typical_size = (square / (1 - 0.999**step)).sqrt()
    weight.mul_(1 - lr * decay)
    weight.sub_(lr * direction / (typical_size + 1e-8))


ours = torch.ones(2, dtype=torch.float64)
theirs = nn.Parameter(ours.clone())
mean, square = torch.zeros_like(ours), torch.zeros_like(ours)
optimizer = torch.optim.AdamW([theirs], lr=0.1, weight_decay=0.05)
for step, gradient in enumerate(
    (torch.tensor([0.001, 10.0]), torch.tensor([-0.002, 10.0])), 1
):
    before, theirs.grad = ours.clone(), gradient.double()
    optimizer.step()
    adamw_update(ours, gradient.double(), mean, square, step, lr=0.1, decay=0.05)
    print(
        f"step {step}: moved by {(ours - before).tolist()}, "
        f"differs from torch by {(ours - theirs).abs().max():.0e}"
    )
    if step == 1:
        reveal(
            "first-step-of-adamw", (ours - before)[1] / (ours - before)[0], within=0.1
        )

# %% [markdown]
# These six lines give torch's numbers, up to rounding. The second gradients show what the running means are for: the
# first weight's gradient has changed its sign, so it turns back at about a third of the speed.
#
# <details><summary>And the first step?</summary>
#
# One gradient divided by its own size is 1 or −1: every weight moves by the full rate. AdamW cannot know yet whether
# it was signal or noise.
#
# </details>

# %% [markdown]
# ## Warm-up and cosine
#
# One learning rate rarely suits a whole training. In the first steps AdamW knows too few gradients to tell signal
# from noise, and moves everything at full speed all the same (Liu et al. 2020). Smaller first steps limit the harm.
# They do not cure a peak rate that is too high. In lesson 04, 24 post-norm blocks stayed near guessing with a warm-up
# of 40 steps, and began to learn with a tenth of the rate. Toward the end the steps have to become smaller, or the
# loss does not settle.
#
# So the rate rises linearly over `warmup_steps` (Vaswani et al. 2017), then falls along half a cosine to zero
# (Loshchilov and Hutter 2017):
#
# $$\text{factor} = \frac{\text{step} + 1}{\text{warmup\_steps}}
# \qquad\text{then}\qquad
# \text{factor} = \frac{1}{2}\left(1 + \cos \pi\,
# \frac{\text{step} - \text{warmup\_steps}}{\text{total\_steps} - \text{warmup\_steps}}\right)$$
#
# ### Exercise: `warmup_cosine`


# %% exercise="warmup_cosine"
def warmup_cosine(step, warmup_steps, total_steps):
    """The factor by which the peak learning rate is multiplied at update number
    `step`, counted from 0.

    It rises linearly, so that the last warm-up step (number warmup_steps - 1) is made
    at the full rate, and the first one at more than 0. Then it falls along half a
    cosine, and would reach 0 at total_steps.

    returns: a plain number

    >>> [round(warmup_cosine(step, 2, 6), 3) for step in range(7)]
    [0.5, 1.0, 1.0, 0.854, 0.5, 0.146, 0.0]

    warmup_steps may be 0 (the cosine starts at once) or total_steps (there is no cosine
    at all); and step may be total_steps, since a scheduler calls once more after the
    last update: then the factor is 0, or any number from 0 to 1 where there is no
    cosine.
    Allowed: the module math. About 4 lines.
    """
    ### BEGIN SOLUTION
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    done = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * done))
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# A first factor of 0 wastes a batch: nothing is learned from it. A jump where the two parts meet? Put `step =
# warmup_steps` into the cosine by hand. It reaches 0 too early, or never? Count how many steps remain for the cosine.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# After the warm-up, what share of the *remaining* steps has been made at step `step`? It should be 0 where the cosine
# begins and 1 at `total_steps`. What is the cosine of 0, and of π?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# in the warm-up: steps made by now, this one included, as a share of the warm-up
# after it: the share of the remaining steps, times pi; its cosine; plus 1; divided by 2
# ```
#
# </details>

# %% check="warmup_cosine" points=2
check("warmup_cosine", warmup_cosine)

# %%
draw(
    {
        f"warm-up of {steps}": [warmup_cosine(step, steps, 200) for step in range(200)]
        for steps in (0, 20, 100)
    },
    "step",
    "share of the peak rate",
)

# %% [markdown]
# This is a rate for each *step*: a common mistake is to call such a schedule once an epoch. Most code has a scheduler
# beside the optimizer, `LambdaLR(optimizer, lambda step: warmup_cosine(step, warmup_steps, total_steps))`, and calls
# its `step()` after each `optimizer.step()`. We use a *hook* instead, a function that the optimizer calls before each
# update, so that your loop stays as it is:


# %%
def follow_schedule(optimizer, total_steps, warmup=0.1):
    """Before every update, set the learning rate to its peak times your factor."""
    steps, peak = itertools.count(), optimizer.param_groups[0]["lr"]

    def before_update(*_):
        factor = warmup_cosine(next(steps), round(warmup * total_steps), total_steps)
        for group in optimizer.param_groups:
            group["lr"] = peak * factor

    optimizer.register_step_pre_hook(before_update)


# %% [markdown]
# ## What weight decay should not touch
#
# Weight decay pulls numbers a little toward zero at every step, so a weight stays large only if the gradients keep
# pushing it. AdamW does this apart from the gradient: `weight.mul_(1 - lr * decay)`, above. For the matrices of a
# model, decay often improves the accuracy on new images (Steiner et al. 2022). By convention the rest is left alone:
# the weight of a LayerNorm is a scale around **1**, a bias is an offset, a position says where a token lies. There is
# little reason to pull those toward zero.
#
# ### Exercise: `parameter_groups`


# %% exercise="parameter_groups"
def parameter_groups(model, weight_decay):
    """Two groups for an optimizer: one with weight decay, one without.

    Decayed are the weights of Linear layers and convolutions (in models that are made
    of these, all parameters with two axes or more whose name ends in "weight"). Left
    alone is all the rest: biases, norms, class token, positions.

    returns: [{"params": [...], "weight_decay": weight_decay}, {"params": [...],
             "weight_decay": 0.0}], the decayed first; every parameter, frozen or not,
             is in exactly one of the two lists, once

    >>> layers = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    >>> [(len(group["params"]), group["weight_decay"])
    ...  for group in parameter_groups(layers, 0.05)]
    [(1, 0.05), (3, 0.0)]

    Allowed: named_parameters. About 8 lines.
    """
    ### BEGIN SOLUTION
    decayed, left_alone = [], []
    for name, parameter in model.named_parameters():
        is_matrix = parameter.ndim >= 2 and name.endswith("weight")
        (decayed if is_matrix else left_alone).append(parameter)
    return [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": left_alone, "weight_decay": 0.0},
    ]
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# The class token or the positions are decayed? They have three axes; look at their names. A norm is decayed? Its name
# ends in "weight"; count its axes.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# Print name and shape of every parameter of `VisionTransformer(TOY)`. Which two facts about a line tell the matrices
# from all others?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# two empty lists
# each named parameter goes to one of them, by its number of axes and the end of its name
# two dicts
# ```
#
# </details>

# %% check="parameter_groups" points=2
check("parameter_groups", parameter_groups)

# %%
for group in parameter_groups(new_model(TOY), 0.05):
    numbers = sum(parameter.numel() for parameter in group["params"])
    print(
        f"decay {group['weight_decay']}: "
        f"{len(group['params']):2} tensors, {numbers:,} numbers"
    )

# %% [markdown]
# The matrices are a third of the tensors, and hold nearly all of the numbers.

# %% [markdown]
# ## When to stop
#
# Train long enough on few pictures, and the training loss goes to zero, as in panel F. Somewhere on the way the
# validation loss begins to rise. The simple remedy is *early stopping* (Prechelt 1998): when there has been no new
# best for a few epochs, stop. How many are "a few"? That is the *patience*.
#
# ![An invented validation loss by epoch. Under each epoch stands the number of epochs since the last new best; where
# it reaches the patience of 3, training stops.](../figures/early_stopping.svg)
#
# ### Exercise: `EarlyStopping`


# %% exercise="EarlyStopping"
class EarlyStopping:
    """Says when the validation loss has not improved on its best value for `patience`
    epochs in a row.

    patience:   at least 1; raise ValueError, with the value of patience in its text,
                for less
    best:       the lowest loss so far; float("inf") before the first
    step:       takes one epoch's loss, a float. Returns True once `patience` calls in a
                row have brought no new best (and in later calls, until there is one),
                else False. A new best is any loss below `best`, however little; an
                equal loss or a NaN is not.

    >>> stopping = EarlyStopping(2)
    >>> [stopping.step(loss) for loss in (2.0, 1.5, 1.6, 1.4, 1.5, 1.4)]
    [False, False, False, False, False, True]
    >>> stopping.best
    1.4

    About 12 lines.
    """

    def __init__(self, patience):
        ### BEGIN SOLUTION
        if patience < 1:
            raise ValueError(f"patience must be at least 1, not {patience}")
        self.patience = patience
        self.best = float("inf")
        self.bad_epochs = 0
        ### END SOLUTION

    def step(self, validation_loss):
        ### BEGIN SOLUTION
        if validation_loss < self.best:
            self.best, self.bad_epochs = validation_loss, 0
        else:
            self.bad_epochs += 1
        return self.bad_epochs >= self.patience
        ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# It stops although the loss found a new best in between? The count has to start again then. It stops an epoch late, or
# early? Go through the six losses of the docstring on paper, with a column for the count. A NaN counts as a best?
# Every comparison with a NaN is False: does your condition use `<` or `>=`?
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# What does each new loss get compared with: the loss before it, or the lowest of all?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# step: a new best? then remember it, and no bad epochs
#       else one bad epoch more
#       are there as many as the patience allows?
# ```
#
# </details>

# %% check="EarlyStopping" points=2
check("EarlyStopping", EarlyStopping)

# %%
validation_curve = [2.30, 2.05, 1.90, 1.94, 1.83, 1.79, 1.82, 1.84, 1.80, 1.88, 1.97]
for patience in (1, 2, 3):
    stopping = EarlyStopping(patience)
    stops = next(
        epoch for epoch, loss in enumerate(validation_curve, 1) if stopping.step(loss)
    )
    print(
        f"patience {patience}: stops after epoch {stops}, "
        f"best loss so far {stopping.best}"
    )

# %% [markdown]
# A patience of 1 stopped before the best epoch, at the first small rise of these invented losses. A larger patience
# costs time, and little else if you keep the weights of the best epoch and not those of the last.

# %% [markdown]
# ## All together
#
# Now come the photos, and *your* functions split them, train on them and evaluate. `BUDGET` says how many images and
# epochs you can afford. One training took us about a minute on one CPU core (50 to 80 seconds). In `BASE` the learned
# positions start with a standard deviation of 0.5, and not of 0.02 as in lesson 05. Lesson 07 measures what that
# changes.


# %%
@dataclass(frozen=True)
class Budget:
    num_train: int = 10_000  # training images of an experiment
    num_validation: int = 5_000
    epochs: int = 6


BASE = ViTConfig(patch_size=8, embed_dim=64, depth=4, num_heads=4, position_std=0.5)
BUDGET = Budget()
# a rehearsal: everything runs, nothing is learned
if os.environ.get("VIT_COURSE_BUDGET") == "small":
    BUDGET = Budget(num_train=300, num_validation=200, epochs=1)

# %% tags=["experiment"]
num_validation = min(BUDGET.num_validation, len(full) // 5)
train_indices, validation_indices = split_indices(len(full), num_validation, seed=0)
train = replace(full.subset(train_indices), mean=(), std=())
validation = full.subset(validation_indices).with_statistics_of(train)
few = train.subset(slice(BUDGET.num_train // 5))
print(
    f"{len(train)} to learn from, {len(validation)} to choose by; trained on {device}"
)


# %%
def learn(model, train, validation, epochs, learning_rate=2e-3, best=None):
    """Your functions together; training loss, validation loss, accuracy of each epoch.

    `best` may be a dict: it is given a copy of the weights of the epoch with the lowest
    validation loss.
    """
    model = model.to(device)
    loader = Batches(train, 128, shuffle=True, device=device)
    watched = Batches(validation, 500, device=device)
    optimizer = torch.optim.AdamW(parameter_groups(model, 0.05), lr=learning_rate)
    follow_schedule(optimizer, epochs * len(loader))
    history = []
    for _ in bar(range(epochs), "epochs"):
        train_loss = train_one_epoch(model, loader, optimizer, device)
        history.append((train_loss, *evaluate(model, watched, device)))
        if best is not None and history[-1][1] == min(loss for _, loss, _ in history):
            best.update(copy.deepcopy(model.state_dict()))
    return history


# %% [markdown]
# ### Finding a learning rate
#
# The learning rate often matters more than anything else that you can set. A trick finds its order of magnitude in
# less than a minute (after Smith 2017). Train for 100 steps, from a rate that is far too small to one that is far too
# large, multiplied by the same factor at every step. Then look at the loss against the rate. Sketch that curve first:
# where does it fall, and how does it end?

# %% tags=["experiment"]
torch.manual_seed(0)
model = new_model(BASE).to(device)
optimizer = torch.optim.AdamW(parameter_groups(model, 0.05))
rates = [1e-5 * 10 ** (5 * step / 99) for step in range(100)]
loader = Batches(
    train.subset(slice(BUDGET.num_train)), 128, shuffle=True, device=device
)
# one pass after the other
batches = itertools.chain.from_iterable(itertools.repeat(loader))
losses = []
steps = bar(zip(rates, batches, strict=False), "steps", total=len(rates))
for rate, batch in steps:
    for group in optimizer.param_groups:
        group["lr"] = rate
    # your loop, on a single batch
    losses.append(train_one_epoch(model, [batch], optimizer, device))
# means over 5 steps: single batches are noisy
calm = torch.tensor(losses).unfold(0, 5, 1).mean(dim=1)
# large rates may end in NaN, which argmin would take for the lowest
lowest = calm.nan_to_num(math.inf).argmin()
print(f"lowest at a rate of {rates[2 + lowest]:.4f}")
# cut off, or the losses on the right would flatten all the rest
capped = calm.clamp(max=3.5).tolist()
draw(
    {"mean of 5 steps": (rates[2:-2], capped)},
    "learning rate",
    "training loss",
    xscale="log",
)

# %% [markdown]
# ![The loss of 100 steps against the learning rate on a logarithmic axis: flat on the left, falling in the middle, a
# bottom, then a wall. A marked band a little left of the bottom is where to take the peak
# rate.](../figures/rate_finder.svg)
#
# On the left the steps are too small. Where the curve falls, the model learns. Take the peak rate from there: 100
# steps can survive a rate that is too high for a whole training. In our picture the lowest point is at 0.0048, and we
# took a little less than half of that, 0.002. Yours will lie somewhere else: one noisy run tells the order of
# magnitude, and no more. And a rate belongs to one model, one optimizer and one batch size.

# %% [markdown]
# ### A first training on photos
#
# Everything is there: your model, your loop, your schedule, your decay, and a rate. 10,000 photos, six epochs.
# Guessing gives 10 %.

# %% tags=["experiment"]
torch.manual_seed(0)
history = learn(
    new_model(BASE), train.subset(slice(BUDGET.num_train)), validation, BUDGET.epochs
)
for epoch, (train_loss, validation_loss, accuracy) in enumerate(history, 1):
    print(
        f"epoch {epoch}: training {train_loss:.2f}, "
        f"validation {validation_loss:.2f}, {accuracy:.1%} right"
    )

# %% [markdown]
# In our run the model got 28.3 % right after the first epoch and 46.9 % after the sixth
# (`benchmarks/results/lesson_cifar.json`, base, seed 0). Large models trained on many more images reach 99 %; lesson
# 07 looks for what would help.
#
# In the first two epochs our validation loss was *below* the training loss (1.86 and 2.05, then 1.72 and 1.76). That
# is no leak: the training loss is a mean over the whole epoch, while the validation loss is taken at its end.
#
# What did each tool add? Without which of the three would this training lose most: the schedule, the weight decay, or
# AdamW (with SGD and momentum in its place)?

# %% [markdown]
# <details><summary>Write down your answer, then open this.</summary>
#
# We trained from the same three seeds with one thing changed (`benchmarks/results/training_tools.json`; the number
# after ± is half the width of a 95 % interval, which lesson 07 explains):
#
# | training | each seed, % right | against the first row |
# |---|---|---|
# | AdamW, schedule, decay of 0.05 | 46.9, 45.1, 46.0 | |
# | constant rate: no warm-up, no cosine | 44.6, 43.4, 45.0 | −1.7 ± 1.6 |
# | no weight decay | 46.6, 44.6, 46.0 | −0.3 ± 0.6 |
# | SGD with momentum (rate 0.1) instead of AdamW | 45.6, 46.2, 46.8 | +0.2 ± 3.3 |
#
# Only the schedule's interval excludes 0, and barely. That is weak evidence: of three intervals, one may do so by
# chance. Nor is that comparison quite fair: the constant rate is 0.002, which we had chosen as a *peak*, and a smaller
# one may do better. Weight decay has little to do in 474 steps: each shrinks a weight by at most 0.002 · 0.05, a
# ten-thousandth, and with this schedule by half of that on average: about 2 % in all. Whether SGD or AdamW is better,
# these runs do not show: SGD may be three points worse or three and a half better. Its rate is fifty times AdamW's, and
# the best of three that we tried with seed 0 (0.03 reached 45.3 %, 0.3 reached 43.0 %). On large Transformers Adam is
# usually far ahead (Zhang et al. 2020, *Why are Adaptive Methods Good for Attention Models?*).
#
# </details>

# %% [markdown]
# ### Overfitting on purpose
#
# We now take 2,000 images, a fifth of the budget, and five times as many epochs: about the same number of steps. One
# to three minutes on one core. Where will your `EarlyStopping` with a patience of 3 stop?
#
# **Predict first.** When the validation *loss* rises, does the validation *accuracy* fall?

# %%
predict("overfitted-accuracy", "it falls", choices=("it falls", "it does not fall"))

# %% tags=["experiment"]
torch.manual_seed(0)
model, best_weights = new_model(BASE), {}
history = learn(model, few, validation, epochs=5 * BUDGET.epochs, best=best_weights)
train_losses, validation_losses, accuracies = (
    list(column) for column in zip(*history, strict=True)
)
stopping = EarlyStopping(patience=3)
stops = next(
    (epoch for epoch, loss in enumerate(validation_losses, 1) if stopping.step(loss)),
    len(history),
)
best = 1 + validation_losses.index(min(validation_losses))
print(
    f"lowest validation loss after epoch {best} ({accuracies[best - 1]:.1%} right), "
    f"stop after epoch {stops}"
)
print(f"the end, epoch {len(history)}: {accuracies[-1]:.1%} right")
reveal(
    "overfitted-accuracy",
    "it falls" if accuracies[-1] < accuracies[best - 1] - 0.005 else "it does not fall",
)
draw({"training": train_losses, "validation": validation_losses}, "epoch", "loss")


# %% [markdown]
# <details><summary>Our runs, and why</summary>
#
# In our run the validation loss was lowest after epoch 5 (1.85), and 3.30 after epoch 30. The accuracy went from 31.5
# to 33.3 %: *up*. With two other seeds it went from 32.1 to 35.2 % and from 32.4 to 35.1 %
# (`benchmarks/results/lesson_cifar.json`, few images). There are no more wrong answers than before. But the model
# gives them higher probabilities, and cross-entropy punishes a confident wrong answer heavily.
#
# ![Validation loss by epoch for a training on 2,000 images: lowest after epoch 5, then climbing. Under each epoch
# stands the number of epochs since the last new best; it reaches the patience of 3 after epoch
# 8.](../figures/overfitting.svg)
#
# </details>
#
# If you need probabilities, keep the weights of the best epoch. What the model's confidence has to do with it, and
# how one number mends it: [side note on
# overconfidence](/notes/overconfidence.html).
#
# Early stopping and a schedule disagree here. In our run a patience of 3 stops after epoch 8 of 30. There the cosine
# still gives 92 % of the peak rate, so a training that stops never gets its calm last steps. What the stop gives you
# is a first guess of how *long* to train: train again from the start, with a schedule of about that length. To stop
# and go on later takes more than the weights: [side
# note](/notes/stop_and_go_on.html).

# %% [markdown]
# ## Half as many bits
#
# GPUs with tensor cores multiply 16-bit numbers several times as fast as 32-bit ones, and the numbers take half the
# memory. There are two kinds. `float16` has about three decimal digits, no positive number below 0.00000006, and none
# above 65,504. `bfloat16` gives up one digit and gets the range of `float32` in exchange.
#
# Take a gradient of 0.00000001, and an update of 0.002 on a weight of 1. Which of the two formats loses the gradient?
# Which loses the update?

# %%
gradient, weight, update = torch.tensor(1e-8), torch.tensor(1.0), torch.tensor(0.002)
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    print(
        f"{dtype}: gradient {gradient.to(dtype):.2g}, "
        f"updated weight {weight.to(dtype) + update.to(dtype):.4f}"
    )

# %% [markdown]
# Each format loses one of the two: float16 rounds the gradient to 0, and in bfloat16 the next number after 1 is
# 1.0078. So training uses **mixed** precision (Micikevicius et al. 2018): the weights and the optimizer stay in
# float32, and the large products are computed in 16 bits. With float16 the loss is multiplied by a large number
# before `backward`, so that small gradients survive (`torch.amp.GradScaler`). With bfloat16 that is not needed.
#
# `torch.autocast` chooses the dtype of each operation. With bfloat16 your loop changes in two places: the forward
# pass runs under it, and the logits go back to float32 before the loss is taken:

# %%
classifier = nn.Linear(48, 10, device=device)
with torch.autocast(device, dtype=torch.bfloat16):
    logits = classifier(torch.rand(64, 48, device=device))
F.cross_entropy(
    logits.float(), torch.zeros(64, dtype=torch.int64, device=device)
).backward()
print(
    f"logits {logits.dtype}, weight {classifier.weight.dtype}, "
    f"its gradient {classifier.weight.grad.dtype}"
)

# %% [markdown]
# How much time it saves depends on the machine. The T4 that Colab offers is fast only with float16; newer GPUs are
# fast with both. The course's `fit` chooses by itself with `precision="auto"`.

# %% [markdown]
# ## Keep what you wrote

# %%
keep(
    "split_indices",
    "train_one_epoch",
    "evaluate",
    "warmup_cosine",
    "parameter_groups",
    "EarlyStopping",
)

# %% [markdown]
# ## A harder one, without points
#
# A batch of 128 does not fit into memory? Run four of 32, call `backward` after each, and update once: gradients add
# up. Write `train_one_epoch` with an argument `accumulate`. You are right when the gradients before each update are
# those of the large batch, *also* when the last small batch has 7 images. Which layers would make the two trainings
# differ nevertheless?
#
# <details><summary>Write down your answer, then open this.</summary>
#
# BatchNorm, which takes its statistics from each small batch, and dropout, whose random masks would be others. A ViT
# without dropout has neither.
#
# </details>

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. For three epochs your loss stays at 2.303, to the third digit. Name four suspects.</summary>
#
# Nothing moves: `optimizer.step()` is missing, `zero_grad()` stands between `backward()` and `step()`, the rate is far
# too low, or the optimizer holds another model's parameters. (log 10 = 2.303 is where our models start, since their
# heads are zero. With shuffled labels a model would also guess, but its loss would change a little: the last Linear
# still learns, and follows the labels of the latest batches.)
#
# </details>
# <details><summary>2. Your validation accuracy is higher than your training accuracy. Must there be a leak?</summary>
#
# No. Training accuracy is a mean over the epoch, and is often taken with dropout and augmentation, which make the task
# harder. What should make you suspicious is a validation accuracy far above what others reach with such a model.
#
# </details>
# <details><summary>3. Why does <code>evaluate</code> need <code>model.eval()</code> <em>and</em>
# <code>torch.no_grad()</code>?</summary>
#
# They do different things. `eval()` changes what layers do (dropout off). `no_grad()` changes what torch records: this
# saves memory and time, and changes no result.
#
# </details>
# <details><summary>4. A training of 1,000 steps with a warm-up of 0.1 is stopped after 500. Is it as good as a training
# of 500 steps?</summary>
#
# Hardly. At step 500 its rate is still at 59 % of the peak, and the calm last steps at a small rate are missing. To
# compare different numbers of epochs, run a separate training for each.
#
# </details>
#
# Which patch size, which positions, which augmentation? Next: `07_experiments`.
#
# **Further reading.** Steiner et al. 2022, *How to train your ViT?* Karpathy 2019, *A Recipe for Training Neural
# Networks*. Zhang et al. 2017, *Understanding Deep Learning Requires Rethinking Generalization*. Liu et al. 2020, *On
# the Variance of the Adaptive Learning Rate*.

# %%
progress()
