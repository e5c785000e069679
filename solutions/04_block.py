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
# # 04 · The encoder block
#
# Attention exchanges information between tokens. After it, a small network, the MLP, transforms every token on its
# own. A *block* is attention followed by an MLP, and a ViT is a stack of such blocks. You build one, and find out
# what makes a stack of twenty-four easier to train: a path through all of them that no layer interrupts.
#
# **After this lesson you can**
# - write LayerNorm by hand, with eps in the right place, and say along which axis it works and why;
# - write a test that tells LayerNorm from its look-alikes, and choose inputs that hide none of them;
# - say what a GELU does, and what two Linears without it cannot represent;
# - build an encoder block, and test how it is wired, with zero weights and against a block that you trust;
# - compare a stack with its norms on the branches and one with its norms on the residual stream, by their gradients
#   and their losses, and say what this comparison shows.
#
# <!-- table: tasks -->

# %%
import torch
import torch.nn.functional as F
from torch import nn

from vit_course import check, hunt, keep, own, predict, progress, reveal
from vit_course.plots import BLUE, GRAY, INK, ORANGE, new_figure
from vit_course.data import photo, shapes
from vit_course.plots import show_images, show_matrix
from vit_course.training import bar

MultiHeadSelfAttention, PatchEmbedding = own("MultiHeadSelfAttention", "PatchEmbedding")
patchify, unpatchify, sinusoidal_positions_2d = own(
    "patchify", "unpatchify", "sinusoidal_positions_2d"
)

torch.manual_seed(4)
picture = F.interpolate(photo()[None].float() / 255, size=(288, 240), mode="area")


# %%
def draw(curves, xlabel, ylabel):
    """Curves {name: numbers}, or {name: (x, y)}, in one picture."""
    figure = new_figure(6.6, 3.0)
    axes = figure.subplots()
    styles = {
        "color": (BLUE, ORANGE, INK, "#009E73", GRAY),
        "linestyle": ("-", "--", ":", "-.", "-"),
    }
    for number, (name, values) in enumerate(curves.items()):
        x, y = values if isinstance(values, tuple) else (range(len(values)), values)
        axes.plot(
            x, y, label=name, **{key: choice[number] for key, choice in styles.items()}
        )
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.grid(color=GRAY, alpha=0.2)
    axes.legend(frameon=False)
    return figure


# %% [markdown]
# ## What LayerNorm does to one token
#
# The numbers of one token may be spread ten times as far around their mean as those of another, and a Linear has to
# handle both with the same weights. LayerNorm first brings every token to the same scale:
#
# $$z = \frac{x - \text{mean}}{\sqrt{\text{variance} + \text{eps}}}
# \qquad\qquad \text{result} = \text{weight} \cdot z + \text{bias}$$
#
# Mean and variance are those of *this token's own numbers*; the variance is the mean of the squared deviations.
#
# **Predict first.** A token holds 1, 1, 5, 5. Somebody multiplies it by 1000 and adds 7. What is its first number
# after LayerNorm, with eps = 0, a weight of 1 and a bias of 0?

# %%
predict("first-number", 12)

# %%
token = torch.tensor([1.0, 1.0, 5.0, 5.0])
for each in (token, 1000 * token + 7, -token):
    print(
        each.tolist(), "→", F.layer_norm(each, (4,), eps=0.0).round(decimals=3).tolist()
    )

reveal("first-number", F.layer_norm(1000 * token + 7, (4,), eps=0.0)[0], within=0.01)

# %% [markdown]
# LayerNorm removes a token's **scale and offset** and keeps its **pattern**. Then `weight` and `bias`, each with one
# learned number per dimension, set a new scale and offset, the same for all tokens.

# %% [markdown]
# ## Which axis?
#
# ![LayerNorm takes a mean and a standard deviation along embed_dim for each token of each image
# alone.](../figures/layer_norm.svg)
#
# Each token is normalized on its own. BatchNorm takes the mean and the variance of one *dimension*, over all tokens
# of all images in the batch. Does an image get the same numbers in a batch of eight as alone?

# %%
tokens = torch.randn(8, 16, 32)  # (batch, tokens, embed_dim)
layer, batch = nn.LayerNorm(32), nn.BatchNorm1d(32)
norms = {
    "LayerNorm": layer,
    "BatchNorm": lambda x: batch(x.transpose(1, 2)).transpose(1, 2),
}
for name, norm in norms.items():
    difference = norm(tokens)[:1] - norm(tokens[:1])
    print(f"{name}: {difference.abs().max().item():.2g}")

# %% [markdown]
# ## What eps is for
#
# A token whose numbers are all equal has variance 0, and 0 / 0 is a NaN. So eps is added to the variance, *under* the
# root. It is also a **threshold**: a token whose variance is far above eps ends with variance 1, one whose variance
# is far below with almost 0.

# %% [markdown]
# ### Exercise: `layer_norm`


# %% exercise="layer_norm"
def layer_norm(x, weight, bias, eps):
    """Normalize every token, then scale and shift its dimensions.

    Convention: a token lies along the last axis, however many axes stand in front. Its
    variance is the mean of its squared deviations: divide by embed_dim, not by
    embed_dim - 1. eps is added to the variance. The result stays accurate for a large
    mean, say 1000, and the gradient flows through the mean and the variance too.

    x:            (..., embed_dim); leave it as you found it
    weight, bias: (embed_dim,)
    returns:      the shape and the dtype of x

    >>> token = torch.tensor([[1.0, 1.0, 5.0, 5.0]])
    >>> layer_norm(token, torch.ones(4), torch.zeros(4), 0.0).tolist()
    [[-1.0, -1.0, 1.0, 1.0]]
    >>> layer_norm(token, torch.ones(4), torch.zeros(4), 12.0).tolist()
    [[-0.5, -0.5, 0.5, 0.5]]

    Allowed: torch's operations on tensors (mean, var, sqrt and the like), no ready-made
    norm: neither nn.LayerNorm nor group_norm nor another. About 3 lines.
    """
    ### BEGIN SOLUTION
    mean = x.mean(dim=-1, keepdim=True)
    variance = (x - mean).square().mean(dim=-1, keepdim=True)
    return weight * (x - mean) / (variance + eps).sqrt() + bias
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# "The size of tensor a must match the size of tensor b"? Print the shape of your mean next to the shape of `x`: one
# axis is missing; `keepdim=True` keeps it. Variance 0.857 where 1 was expected? That is 6/7, and a token of the check
# has 7 numbers.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# `x.var()` and `x.std()` of torch divide by one less than the number of values, unless you say otherwise. Have you? And
# which index means *the last axis*, whatever the number of axes?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# mean: along the last axis, kept as an axis of length 1
# variance: the mean of the squares of (x minus mean), along the same axis, kept as well
# divide the deviations by the root of (variance plus eps); times weight; plus bias
# ```
#
# </details>

# %% check="layer_norm" points=5
check("layer_norm", layer_norm)

# %% [markdown]
# With BatchNorm, for years the standard in convolutional networks, the result for your picture depends on the other
# pictures of the batch. With LayerNorm it never does.
#
# Why does eps stand under the root, and not outside it? Here is a token of four equal numbers, with eps in each of
# the two places.

# %%
flat = torch.full((4,), 3.0, requires_grad=True)
variance = flat.var(correction=0)
for place, root in {
    "under": (variance + 1e-6).sqrt(),
    "outside": variance.sqrt() + 1e-6,
}.items():
    result = (flat - flat.mean()) / root
    (gradient,) = torch.autograd.grad(result[0], flat, retain_graph=True)
    print(
        f"eps {place:7} the root: result {result.tolist()}, "
        f"gradient {gradient.round().tolist()}"
    )

# %% [markdown]
# At 0 the root has an infinite slope, and the variance, at its minimum, has slope 0. With eps outside the root the
# two are multiplied: the *gradient* is NaN, and after the next step the weights are, too.
#
# Now use your function on something that you can see. Each 16 × 16 patch of the photo is a token of 768 pixel values.
# We normalize every patch and put the patches together again (mid-gray stands for zero). Grace Hopper's uniform is
# almost black, and its patches are nearly one color. What becomes of it with eps = 1e-6, and with eps = 0.1?

# %%
patches = patchify(picture, 16)  # (1, 270, 768)
views = [picture]
for eps in (1e-6, 1e-3, 0.1):
    normalized = layer_norm(patches, torch.ones(768), torch.zeros(768), eps)
    views.append(unpatchify(0.5 + 0.2 * normalized, 16, (288, 240)).clamp(0, 1))
show_images(
    torch.cat(views), titles=["the photo", "eps = 1e-6", "eps = 0.001", "eps = 0.1"]
)

# %%
variances = patches.var(dim=-1, correction=0)[0]
print(f"variance of a patch: from {variances.min():.1e} to {variances.max():.2f}")
print(f"below 0.1: {(variances < 0.1).float().mean():.0%} of the patches")

# %% [markdown]
# With a tiny eps every patch is brought to the same contrast, and the uniform turns out to be full of colored noise,
# too weak to be seen in the photo. With eps = 0.1, above the variance of nine patches in ten, flat patches stay flat.
# A ViT uses 1e-6. (But its tokens are no longer pixels: positions and earlier blocks have added to them, so hardly
# any token is truly flat.)

# %% [markdown]
# ## A test for LayerNorm
#
# In lesson 03 you wrote a test for attention. This time someone gives you a function `norm(x, weight, bias, eps)`,
# and says that it is LayerNorm. Here are seven suspects, each made of *your* function. Six have one bug each. **One
# is right**, though it looks wrong. Which?


# %%
def tidy(x, weight, bias, eps):
    x -= x.mean(dim=-1, keepdim=True)
    return layer_norm(x, weight, bias, eps)


def crowd(x, weight, bias, eps):
    ones, zeros = torch.ones(x.numel()), torch.zeros(x.numel())
    return weight * layer_norm(x.flatten(), ones, zeros, eps).reshape(x.shape) + bias


def unbiased(x, weight, bias, eps):
    share = 1 - 1 / x.shape[-1]
    return layer_norm(x, weight * share**0.5, bias, eps * share)


suspects = {
    "tidy": tidy,
    "crowd": crowd,
    "unbiased": unbiased,
    "hasty": lambda x, weight, bias, eps: layer_norm(x, weight, weight * bias, eps),
    "stubborn": lambda x, weight, bias, eps: layer_norm(x, weight, bias, 1e-6),
    "generous": lambda x, weight, bias, eps: layer_norm(x, 1 + weight, bias, eps),
    "stretched": lambda x, weight, bias, eps: layer_norm(
        10 * x - 3, weight, bias, 100 * eps
    ),
}

# %% [markdown]
# The test that comes to mind first: random tokens, a weight of ones, a bias of zeros, a small eps. Each token must
# come out with mean 0 and variance 1, to within a hundredth. How many of the six does it catch?

# %%
generator = torch.Generator().manual_seed(4)


def zero_and_one(norm):
    tokens = torch.randn(2, 5, 384, generator=generator)
    result = norm(tokens, torch.ones(384), torch.zeros(384), 1e-6)
    mean, variance = result.mean(dim=-1), result.var(dim=-1, correction=0)
    zeros, ones = torch.zeros_like(mean), torch.ones_like(mean)
    is_zero = torch.allclose(mean, zeros, atol=0.01)
    return is_zero and torch.allclose(variance, ones, atol=0.01)


for name, norm in suspects.items():
    print(f"{name:>10}: {'passes' if zero_and_one(norm) else 'caught'}")

# %% [markdown]
# Of the four wrong ones that pass, three get through because of the *inputs*: each was chosen as one usually chooses
# it, and each hides a bug. The fourth gives the right result, and does its harm elsewhere.
#
# Look at two of them, on tokens of eight numbers with an eps of 0.001. The tokens' spread (their standard deviation)
# goes from 0.0001 to 10. "Stubborn" always uses 1e-6, and "unbiased" divides by 7. Where do you see them?

# %%
spreads = torch.logspace(-4, 1, 60)
tokens = spreads[:, None, None] * torch.randn(100, 8, generator=generator)
given = tokens, torch.ones(8), torch.zeros(8), 0.001
curves = {}
for name in ("stubborn", "unbiased"):
    # (spreads, tokens, embed_dim)
    difference = suspects[name](*given) - layer_norm(*given)
    curves[name] = (spreads.log10(), difference.abs().amax(dim=(1, 2)))
draw(curves, "spread of the tokens, as a power of 10", "largest difference from yours")

# %% [markdown]
# At each end only one of them is seen. Where eps is far above the variance, the divisor makes no difference; where it
# is far below, eps makes none. So choose an eps of about the size of the variance: there both count.
#
# **On paper.** The token 1, 1, 5, 5 has mean 3 and variance 4; with an eps of 12 the root is 4, and the result is −½,
# −½, ½, ½. What would it be with eps added outside the root? With the divisor 3?
#
# <details><summary>Write down both, then open this.</summary>
#
# With eps outside, 2 / (2 + 12) = 1/7 in place of ½. With the divisor 3 the variance is 16/3, and 2 divided by the
# root of (16/3 + 12) is 0.48.
#
# </details>
#
# With this token some mistakes stay hidden. The middle between 1 and 5 is 3, the same as the mean, and the mean
# distance from 3 is 2, the same as the standard deviation. Find a token in which fewer numbers agree by accident, and
# a weight and a bias that hide nothing.

# %% [markdown]
# ### Exercise: `is_layer_norm`
#
# Write the test. It is tried on right norms, written in many ways, which it must accept, and on wrong ones, which it
# must reject. A test that rejects everything earns nothing. You may not compare with a second LayerNorm: for new code
# there is often none, and two programs by the same author often share a mistake.


# %% exercise="is_layer_norm"
def is_layer_norm(norm):
    """Tell layer normalization from its look-alikes.

    Convention: that of layer_norm. The variance divides by embed_dim, eps is added to
    it, and x is left as it was.

    norm:    a function of x (..., embed_dim), weight (embed_dim,), bias (embed_dim,)
             and eps that gives one tensor. It may be wrong in any way: in its shape, or
             by changing x, too.
    returns: True if what it computes is layer normalization, up to rounding; False if
             not

    Your own layer_norm has to pass, and this has to fail:

    >>> is_layer_norm(lambda x, weight, bias, eps: x)
    False

    Allowed: anything but a second layer norm to compare with, yours or a library's.
    Right answers differ in their last digits: torch.allclose(a, b, atol=1e-5). Inputs
    of a few hundred numbers are enough. About 18 lines.
    """
    ### BEGIN SOLUTION
    generator = torch.Generator().manual_seed(4)
    x, weight, bias = (
        torch.randn(*size, generator=generator) for size in ((2, 3, 5, 8), (8,), (8,))
    )
    before = x.clone()
    result = norm(x, weight, bias, 0.5)
    if result.shape != before.shape or not torch.equal(x, before):
        return False
    alone = [norm(token, weight, bias, 0.5) for token in x.flatten(0, 2)[::7]]
    # mean 4, variance 4; with an eps of 5 the root is 3
    token = torch.tensor([0.0, 5.0, 5.0, 5.0, 5.0])
    weight = torch.tensor([3.0, 6.0, -3.0, 9.0, 0.0])
    bias = torch.tensor([1.0, 0.0, 2.0, -1.0, 4.0])
    by_pencil = torch.tensor([-3.0, 2.0, 1.0, 2.0, 4.0])
    facts = [
        (torch.stack(alone), result.flatten(0, 2)[::7]),
        (norm(token, weight, bias, 5.0), by_pencil),
    ]
    return all(torch.allclose(seen, expected, atol=1e-5) for seen, expected in facts)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# A right norm is refused? Print the two tensors that you compare, and their difference: `==` is too strict for
# floating-point numbers. A norm that changes x slips through? Then `x` and your copy of it are the same tensor:
# `clone()` makes another. Your test *raises*? Look at the shape first, and return False.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# For each norm that slips through: what does it do differently, and on which inputs could anybody see that? One token,
# one image, three axes, equal sizes, a mean of 0, a tiny eps, weights that are all positive: each of these hides some
# mistake. What must a token give when it is alone? And what does x hold after the call?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# draw x with four axes of different sizes, a weight and a bias; keep a copy of x
# wrong shape, or x no longer like the copy? return False
# facts = every token alone gives what it gave among the others;
#         the token of your example on paper, with its eps, weight and bias,
#         gives the numbers that you worked out
# return whether all facts hold, up to rounding
# ```
#
# </details>

# %% check="is_layer_norm" points=6
check("is_layer_norm", is_layer_norm)

# %% [markdown]
# Now the line-up: your own test, and the seven suspects. Did you guess the right one?

# %%
for name, norm in suspects.items():
    print(f"{name:>10}: {'INNOCENT' if is_layer_norm(norm) else 'guilty'}")

# %% [markdown]
# "Stretched" multiplies a token by 10, so the variance becomes 100 times as large. It multiplies eps by 100 as well,
# and the shift by 3 is removed with the mean.
#
# | our facts | catch |
# |---|---|
# | x is as it was | tidy |
# | a token alone gives the same | crowd |
# | the example worked out on paper | unbiased, hasty, stubborn, generous |
#
# Each fact catches somebody whom the other two miss: "tidy" gives the right results, so only a look at x catches it.

# %% [markdown]
# ## A soft gate: GELU
#
# After attention comes the MLP. Each token goes on its own through two Linears: the first widens it to `hidden_dim`
# numbers, usually 4 · `embed_dim`, the second brings it back. Between them stands the GELU (Hendrycks and Gimpel
# 2016), which works like a gate:
#
# $$\text{GELU}(x) = x \cdot \Phi(x)$$
#
# Φ(x) is the share of the standard normal distribution that lies below x. It says how far the gate is open: almost
# shut at −3, half open at 0, almost fully open at 3.
#
# ![Exact GELU, its tanh form and ReLU as curves, with an inset of the difference between the two
# GELUs.](../figures/mlp_gelu.svg)
#
# There are two versions: the exact one, and an approximation with a tanh, which the original ViT code uses. They
# differ by less than 0.0005, so it is easy to use the wrong one without noticing. torchvision and timm use the exact
# form in their ViTs. So do we, and the check tests for it.

# %% [markdown]
# ### Exercise: `Mlp`


# %% exercise="Mlp"
class Mlp(nn.Module):
    """Two Linears with an exact GELU between them, for every token alone.

    The Linears are the attributes `fc1` (up to hidden_dim) and `fc2` (back to
    embed_dim), both with a bias. No activation follows fc2: the result may be any
    number, negative ones too.

    x:       (..., embed_dim)
    returns: (..., embed_dim)

    >>> tuple(Mlp(embed_dim=6, hidden_dim=24)(torch.zeros(2, 5, 6)).shape)
    (2, 5, 6)

    Allowed: anything in torch. About 5 lines.
    """

    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        ### BEGIN SOLUTION
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        self.fc2 = nn.Linear(hidden_dim, embed_dim)
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        return self.fc2(F.gelu(self.fc1(x)))
        ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# "has no parameter `fc1.weight`"? The two Linears must be attributes of `self` under their exact names; inside a plain
# `nn.Sequential` they get other names. Right in the first three digits and wrong in the fourth? Then it is the
# approximate GELU.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# Where in a chain of two Linears can an activation stand, if not in front of both and not behind both?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# in __init__: a Linear from embed_dim to hidden_dim, another from hidden_dim back
# in forward:  the first Linear, GELU, the second Linear
# ```
#
# </details>

# %% check="Mlp" points=3
check("Mlp", Mlp)

# %% [markdown]
# What is the GELU good for? We train an MLP with 32 hidden units to draw a curve, with it and without it. Sketch both
# first.

# %%
x = torch.linspace(-2, 2, 200)[:, None]
target = torch.sin(4 * x) / 2 + (x > 0.4).float()


def fit(model, steps=400):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    for _ in range(steps):
        optimizer.zero_grad()
        F.mse_loss(model(x), target).backward()
        optimizer.step()
    return model(x).detach()


without_gelu = nn.Sequential(nn.Linear(1, 32), nn.Linear(32, 1))
fits = {
    "with GELU": fit(Mlp(1, 32)),
    "without GELU": fit(without_gelu),
    "target": target,
}
draw({name: (x, y) for name, y in fits.items()}, "x", "y")

# %% [markdown]
# Without the GELU: a straight line, however many hidden units there are. A Linear of a Linear is one Linear. With it,
# every hidden unit can bend the curve at a place of its own. (The rows of `fc1` work like the keys of lesson 03, and
# the columns of `fc2` like the values: Geva et al. 2021, *Transformer Feed-Forward Layers Are Key-Value Memories*.)

# %% [markdown]
# ## The residual stream and its branches
#
# The tokens pass from the first block to the last on the *residual stream*. In every block two branches leave it. A
# branch takes a **normalized copy** of the stream, computes something from it, and **adds** the result to the stream.
# Nothing else ever happens to the stream. So after 24 blocks it is a sum of 49 terms:
#
# $$\text{stream at the end} = \text{stream at the start} + \text{what each of the 48 branches has added}$$
#
# ![In a pre-norm block the norms stand on the branches and the residual stream runs straight through; in a post-norm
# block the norms stand on the stream.](../figures/pre_post_norm.svg)
#
# Build the one on the left. **Predict first:** set the weights and biases of all four Linears of such a block to
# zero. What is its output for the tokens x?

# %%
predict("all-zero", "x itself", choices=("zeros", "x itself", "x, normalized"))

# %% [markdown]
# ### Exercise: `EncoderBlock`


# %% exercise="EncoderBlock"
class EncoderBlock(nn.Module):
    """Attention, then an MLP, each on a normalized copy, each added to the stream.

    Its parts are the attributes `norm1`, `attention` (MultiHeadSelfAttention), `norm2`
    and `mlp` (your Mlp, embed_dim * mlp_ratio wide, a whole number here). Both norms
    are LayerNorms with an eps of layer_norm_eps; note that torch's default, 1e-5, is
    larger than ours. The qkv of the attention has a bias if qkv_bias is True.

    x:       (batch, tokens, embed_dim); leave it as you found it
    returns: the same shape

    >>> block = EncoderBlock(embed_dim=8, num_heads=2)
    >>> tuple(block(torch.zeros(3, 5, 8)).shape)
    (3, 5, 8)
    >>> sum(parameter.numel() for parameter in block.parameters())  # 2 · 16 + 288 + 552
    872

    Allowed: nn.LayerNorm (you have earned it), MultiHeadSelfAttention, your Mlp,
    operations on tensors; no ready-made layer of a Transformer. About 8 lines.
    """

    def __init__(
        self, embed_dim, num_heads, mlp_ratio=4.0, qkv_bias=True, layer_norm_eps=1e-6
    ):
        super().__init__()
        ### BEGIN SOLUTION
        self.norm1 = nn.LayerNorm(embed_dim, eps=layer_norm_eps)
        self.attention = MultiHeadSelfAttention(embed_dim, num_heads, qkv_bias)
        self.norm2 = nn.LayerNorm(embed_dim, eps=layer_norm_eps)
        self.mlp = Mlp(embed_dim, round(embed_dim * mlp_ratio))
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        x = x + self.attention(self.norm1(x))
        x = x + self.mlp(self.norm2(x))
        return x
        ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# "must be tuple of ints, but found element of type float": `embed_dim * mlp_ratio` is a float until you round it.
# Not the identity when all Linears are zero? Then some layer stands on the residual path, or an addition is missing.
# "modified by an inplace operation"? Look for `+=`.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# Follow the thick line of the figure. Which two operations are on it? For each branch, write down every step from where
# it leaves the line to where it returns. To which `x` is the result added?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# in __init__: two norms, one attention, one mlp
# in forward:  stream = stream plus attention of (first norm of the stream)
#              stream = stream plus mlp of (second norm of the stream)
# ```
#
# </details>

# %% check="EncoderBlock" points=7
check("EncoderBlock", EncoderBlock)


# %%
def moves_at_zero(block_class):
    """How far tokens move in a block whose Linears are all zero."""
    block, tokens = block_class(embed_dim=8, num_heads=2), torch.randn(2, 5, 8)
    for name, parameter in block.named_parameters():
        if "norm" not in name:
            nn.init.zeros_(parameter)
    return (block(tokens) - tokens).abs().max().item()


print("with zeros, your block moves tokens by", moves_at_zero(EncoderBlock))
reveal("all-zero", "x itself" if moves_at_zero(EncoderBlock) == 0 else "something else")

# %% [markdown]
# This is the cheapest test of a block: it catches everything that changes the stream besides the two additions. You
# will need `moves_at_zero` again.
#
# The gradient takes the same path backward. A branch makes y = x + f(x), and the derivative of y is 1 + f′(x).
# Because of the 1, the gradient at the end of the stream arrives unchanged at the start, and each branch adds a part
# of its own. Without the addition only f′(x) would be left, and over 48 branches these factors are multiplied: their
# product can become tiny or huge.
#
# But the test does not see what a branch reads. In the block below both branches leave from the input, side by side,
# and the MLP never reads what attention has found. So we need a second test: the block gets *your* block's weights
# and has to give the same output.


# %%
def differs_from_yours(block_class):
    """How far a block's output is from that of yours, with the same random weights."""
    yours, theirs = (
        each(embed_dim=8, num_heads=2) for each in (EncoderBlock, block_class)
    )
    for parameter in yours.parameters():
        nn.init.normal_(parameter)  # the norms' too: fresh norms are all alike
    theirs.load_state_dict(yours.state_dict())
    tokens = torch.randn(2, 5, 8)
    return (theirs(tokens) - yours(tokens)).abs().max().item()


class SideBySide(EncoderBlock):
    def forward(self, x):
        return x + self.attention(self.norm1(x)) + self.mlp(self.norm2(x))


print(f"with zeros it moves tokens by {moves_at_zero(SideBySide)}")
print(
    f"with your weights it differs from yours by {differs_from_yours(SideBySide):.2f}"
)

# %% [markdown]
# It passes the first test and fails the second, as do most of the wrong wirings that our checks know. The second test
# has two limits. It compares outputs only: a `detach` on the stream changes no output, but it cuts the gradient, so
# compare the gradients too. And it needs a block that you trust, with the same names for its parts.
#
# Which tokens influence which? We change token 4 of nine. Draw a table of four rows (norm1, attention, mlp, block)
# and nine columns, and mark the cells that you think will change.

# %%
block = EncoderBlock(embed_dim=192, num_heads=3)
tokens = torch.randn(1, 9, 192)
changed = tokens.clone()
changed[0, 4] += torch.randn(192)
with torch.no_grad():
    parts = (block.norm1, block.attention, block.mlp, block)
    moved = [(part(changed) - part(tokens))[0].norm(dim=-1) for part in parts]

title = "how far outputs move: 0 norm1, 1 attention, 2 mlp, 3 block"
show_matrix(torch.stack(moved), "part", "token", title)

# %% [markdown]
# In a ViT, information passes between tokens only in attention. Here the other tokens change little: fresh attention
# is close to a plain mean over the nine tokens. And which part has the most parameters?

# %%
for name, part in block.named_children():
    count = sum(weight.numel() for weight in part.parameters())
    print(f"{name:>10}: {count:>7,} parameters")

# %% [markdown]
# We send the photo, 400 patches of 8 × 8, through twelve fresh blocks. Does the mean length of the tokens on the
# stream grow, shrink or stay?

# %%
embed_dim = 8 * 8 * 3
small = F.interpolate(picture[:, :, :240], size=(160, 160), mode="area")
# for an embedding that we can undo later
rotation = torch.linalg.qr(torch.randn(embed_dim, embed_dim))[0]
stream = 4 * (patchify(small, 8) - 0.5) @ rotation  # (1, 400, embed_dim)

x, lengths = stream, {"stream": [], "what attention adds": [], "what the mlp adds": []}
with torch.no_grad():
    for block in [EncoderBlock(embed_dim, num_heads=3) for _ in range(12)]:
        attended = block.attention(block.norm1(x))
        added = block.mlp(block.norm2(x + attended))
        for values, each in zip(lengths.values(), (x, attended, added), strict=True):
            values.append(each.norm(dim=-1).mean().item())
        x = block(x)

draw(lengths, "block", "mean length")

# %% [markdown]
# The stream grows, slowly. What a fresh branch adds is almost at right angles to the stream, so, by Pythagoras, the
# *squares* of the lengths add. The branches hardly grow, because each reads a *normalized* copy. So in late blocks a
# branch is small beside the stream: in the twelfth block what it adds is about an eighth as long (12 to 14 % from
# three seeds, `benchmarks/results/short_lessons.json`).

# %% [markdown] question="silent-start" points=2
# ### Question: a block that starts as the identity
#
# Some people start training with `fc2` and the attention's `projection` at zero (weights and biases) in every block.
# What does a stack of 24 such blocks compute before the first step? Which of the two Linears of an MLP gets a
# gradient in that first step, and which one does not? Why might such a start be a good idea?
#
# ### BEGIN SOLUTION
# Every branch adds zero, so each block, and the whole stack, is the identity: the head sees the embedded patches
# themselves. The gradient of `fc2`'s weight is (what arrives from the loss) times (the hidden activations), which is
# not zero; the gradient of `fc1` has to pass backward through `fc2`'s weight, which is zero, so `fc1` gets none in the
# first step. (`fc2`'s bias gets a gradient as well. In attention it is the same with `projection` and `qkv`.) After
# that step `fc2` is no longer zero, and both learn. The start is good because a deep stack begins as a shallow model
# that is easy to train, with a clear path for the gradient, and each block joins in when it has something useful to
# add. (Goyal et al. 2017 start residual networks in a similar way: the scale of the last BatchNorm of each branch
# starts at zero.)
#
# **Rubric.** 1 point: identity, and so the stack's output is its input. 1 point: `fc2` learns at once, `fc1` only from
# the second step on, with the reason (the zero weight of `fc2` lies between `fc1` and the loss); or, in its place, a
# sound reason why an easy start helps.
# ### END SOLUTION

# %% [markdown]
# ## Before or after?
#
# The first Transformer had its norms *on the stream*, after each addition: the right half of the figure. This is
# called post-norm. Here it is, built from your parts:


# %%
class PostNormBlock(EncoderBlock):
    """The block of 2017: each norm stands on the stream."""

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))


# %%
def stack(block_class, depth, embed_dim):
    """Blocks in a row, with Linears that start Xavier-uniform and biases at zero.

    That start is by Glorot and Bengio (2010).
    """
    torch.manual_seed(0)
    blocks = nn.Sequential(*(block_class(embed_dim, 4) for _ in range(depth)))
    for linear in (
        module for module in blocks.modules() if isinstance(module, nn.Linear)
    ):
        nn.init.xavier_uniform_(linear.weight)
        nn.init.zeros_(linear.bias)
    return blocks


# %% [markdown]
# We build 24 blocks of each kind, with the same random weights, and send one gradient back from a loss at the end.
# How large is the gradient that arrives at the MLP of each block, from block 0 to block 23? Draw two lines.

# %%
tokens = torch.randn(8, 20, 64)
directions = torch.randn(64, 10)
labels = torch.arange(8)
pulls = {}
for name, block_class in {"pre-norm": EncoderBlock, "post-norm": PostNormBlock}.items():
    blocks = stack(block_class, 24, 64)
    # one vector for each of eight images, after a last norm
    summary = F.layer_norm(blocks(tokens), (64,)).mean(dim=1)
    # ten fixed random directions: a stand-in for a head
    logits = summary @ directions / 8
    F.cross_entropy(logits, labels).backward()  # eight images, eight different labels
    pulls[name] = [block.mlp.fc1.weight.grad.norm().item() for block in blocks]
factor = pulls["post-norm"][-1] / pulls["pre-norm"][-1]
print(f"last block: the gradient of post-norm is {factor:.1f} times as large")

draw(pulls, "block", "gradient of fc1")

# %% [markdown]
# At block 0 the two gradients are of similar size: from three seeds (`benchmarks/results/short_lessons.json`) the
# larger is at most 1.8 times the smaller. With pre-norm the gradient then shrinks, on the whole, to about a third in
# the last block. What an early block adds is a large part of the still short stream, and all later branches read it.
# What a late block adds is a small part of a long stream. With post-norm every norm brings the tokens back to the
# same length, so the last branch is as large a part of the stream as the first.
#
# Does that matter? We train both stacks on pictures of ten shapes, for 80 steps, with the same weights, batches and
# learning rate. A model that only guesses has a loss of ln 10 = 2.30. **Predict first:** where will post-norm end?
# And would a smaller learning rate help, or a *warm-up*, in which the rate rises from near zero over the first 40
# steps?

# %%
predict("24-post-norm-blocks", 1.5)  # the loss of post-norm after 80 steps

# %%
data = shapes(4000, image_size=16)
images = data.normalize(data.images)  # (4000, 3, 16, 16)
names = [data.classes[label] for label in data.labels[:10]]
show_images(data.images[:10], titles=names, columns=10)


# %%
class Sketch(nn.Module):
    """A sketch of lesson 05: patches and positions, blocks, a last norm, ten logits."""

    def __init__(self, block_class, depth):
        super().__init__()
        self.blocks = stack(block_class, depth, 32)
        self.patches = PatchEmbedding(3, 4, 32)
        self.last = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 10))
        self.register_buffer("grid", sinusoidal_positions_2d((4, 4), 32))

    def forward(self, images):
        # kept, to be looked at
        self.tokens = self.blocks(self.patches(images) + self.grid)
        return self.last(self.tokens).mean(dim=1)


# %%
def train(block_class, depth, steps, rate=2e-3, warmup=1, spreads=None):
    """Train on the shapes; the loss of each step, as a mean over ten steps.

    Over `warmup` steps the learning rate rises to `rate`. `spreads` gets, for each
    step, how much the tokens at the end of the stack differ from picture to picture:
    the standard deviation over the batch, after a LayerNorm.
    """
    model = Sketch(block_class, depth)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / warmup)
    )
    losses = []
    for batch in bar(torch.randint(len(images), (steps, 48)), f"{depth} blocks"):
        loss = F.cross_entropy(model(images[batch]), data.labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if spreads is not None:
            spreads.append(F.layer_norm(model.tokens, (32,)).std(dim=0).mean().item())
    return torch.tensor(losses).unfold(0, 10, 1).mean(dim=1)


# %% tags=["experiment"]
guess = torch.full((71,), 10.0).log()
ways = {
    "pre-norm": (EncoderBlock, 2e-3, 1),
    "post-norm": (PostNormBlock, 2e-3, 1),
    "post-norm, a tenth of the rate": (PostNormBlock, 2e-4, 1),
    "post-norm, warm-up of 40 steps": (PostNormBlock, 2e-3, 40),
}
deep, spreads = {}, {}
print(
    "how much the tokens differ from picture to picture, at steps 0, 1, 10, 40 and 79"
)
for name, (block_class, rate, warmup) in ways.items():
    spreads[name] = []
    deep[name] = train(block_class, 24, 80, rate, warmup, spreads[name])
    print(f"{name:31}", *(f"{spreads[name][step]:7.4f}" for step in (0, 1, 10, 40, 79)))
reveal("24-post-norm-blocks", deep["post-norm"][-1], within=0.2)
draw(deep | {"guessing": guess}, "step", "loss of 24 blocks")

# %% [markdown]
# Where our runs ended (three seeds, `benchmarks/results/short_lessons.json`; guessing has 2.30):
#
# | 24 blocks, after 80 steps | loss |
# |---|---|
# | pre-norm | 2.03, 2.05 and 1.93 |
# | post-norm | 2.32, 2.33 and 2.33 |
# | post-norm, a tenth of the rate | 2.13, 2.12 and 2.12 |
# | post-norm, warm-up of 40 steps | 2.32, 2.31 and 2.33 |
#
# At the first rate post-norm is no better than guessing. The numbers above the curves show how it fails: within a few
# steps its tokens are nearly the same for *every* picture, so the head can no longer see which picture went in.
# Warm-up keeps them different for longer: in our runs they have collapsed by step 79.
#
# So is post-norm bad? One rate cannot say that: at a tenth of it the same 24 blocks begin to learn. You have seen
# that on a small data set, in 80 steps, pre-norm learns at a rate at which post-norm does not. Nobody gave each of
# them its best rate and a long training. Why post-norm needs care, and where it still stands, is in [a side
# note](/notes/post_norm.html). A ViT is pre-norm.

# %% [markdown]
# ## Without the additions
#
# And the additions? Here is a block without them: each part passes on only its result. (He et al. 2016, *Deep
# Residual Learning*, introduced residual connections because deeper networks without them had a higher error even on
# their *training* images.) **Predict first:** eight such blocks, after 200 steps. Would a tenth of the rate help?

# %%
# the loss of eight blocks without additions after 200 steps
predict("without-additions", 1.5)


# %%
class NoStream(EncoderBlock):
    def forward(self, x):
        return self.mlp(self.norm2(self.attention(self.norm1(x))))


# %% tags=["experiment"]
ways = {
    "8 blocks": (EncoderBlock, 8, 2e-3),
    "2 without additions": (NoStream, 2, 2e-3),
    "4 without additions": (NoStream, 4, 2e-3),
    "8 without additions": (NoStream, 8, 2e-3),
    "8 without, a tenth of the rate": (NoStream, 8, 2e-4),
}
bare = {}
for name, (block_class, depth, rate) in ways.items():
    bare[name] = train(block_class, depth, 200, rate)
    print(f"{name:31} {bare[name][-1]:.2f}")
reveal("without-additions", bare["8 without additions"][-1], within=0.2)
draw(bare, "step", "loss")

# %% [markdown]
# Our three runs (`benchmarks/results/short_lessons.json`):
#
# | after 200 steps | loss |
# |---|---|
# | 8 blocks | 1.56, 1.47 and 1.39 |
# | 2 without additions | 1.48, 1.55 and 1.57 |
# | 4 without additions | 1.87, 1.87 and 2.31 |
# | 8 without additions | 2.30, 2.32 and 2.29 |
# | 8 without, a tenth of the rate | 2.08, 2.01 and 1.99 |
#
# Two blocks still learn, four learn less or not at all, and eight do not learn. At a tenth of the rate the eight
# begin to learn, but stay far behind eight blocks with additions. One reason can be seen before any training: look at
# what fresh blocks make of seventeen different tokens.

# %%
different = torch.randn(1, 17, 32)
for block_class in (EncoderBlock, NoStream):
    with torch.no_grad():
        spread = (
            F.layer_norm(stack(block_class, 8, 32)(different), (32,)).std(dim=1).mean()
        )
    print(f"{block_class.__name__:13} tokens of one image differ by {spread:.0e}")

# %% [markdown]
# Without additions all tokens of an image have become *the same*, up to rounding. Fresh attention is close to a mean,
# and its output replaces the tokens instead of being added to them. This is called *rank collapse*. (Dong et al.
# 2021, *Attention Is Not All You Need*, prove how fast it happens with attention alone.)

# %% [markdown]
# ## Bug hunt
#
# Imagine a popular repository. Its block has the same parts under the same names as yours, so here it inherits your
# `__init__`. It even looks tidier than yours: nothing is written twice.


# %%
class BlockFromTheInternet(EncoderBlock):
    def forward(self, x):
        for norm, branch in ((self.norm1, self.attention), (self.norm2, self.mlp)):
            x = norm(x)
            x = x + branch(x)
        return x


# %% [markdown]
# Its author trained it with four blocks. We do the same, and compare it with your block:

# %% tags=["experiment"]
blocks = {"your block": EncoderBlock, "from the internet": BlockFromTheInternet}
shallow = {name: train(block_class, 4, 250) for name, block_class in blocks.items()}
draw(shallow, "step", "loss of 4 blocks")

# %% [markdown]
# From these curves nobody would suspect a bug. (Our three runs, in the same log: yours ends at 1.26, 1.21 and 1.25,
# this one at 1.23, 1.27 and 1.32.) Then a user sets `depth=24`:

# %% tags=["experiment"]
as_found = train(BlockFromTheInternet, 24, 80)
losses = {
    "4 blocks": shallow["from the internet"][:71],
    "24 blocks": as_found,
    "guessing": guess,
}
draw(losses, "step", "loss, from the internet")

# %% [markdown]
# You have seen that flat line before. A smaller learning rate might only hide the bug, so do not begin with the rate,
# and do not begin with the code either. A bug like this is found with a **promise** (also called an *invariant*): one
# sentence about a pre-norm block that is true for every input, and that this block breaks. You met such a sentence at
# `moves_at_zero`. Write it down.
#
# Then find the line. In the next cell all Linears are zero, and one norm after the other is taken out. In which of
# the four cases are the tokens left unchanged?


# %%
def without(*norms):
    """BlockFromTheInternet, with some of its norms taken out."""

    def build(**sizes):
        block = BlockFromTheInternet(**sizes)
        for name in norms:
            setattr(block, name, nn.Identity())
        return block

    return build


for norms in ((), ("norm1",), ("norm2",), ("norm1", "norm2")):
    print(
        f"without {' and '.join(norms) or 'nothing':15}: "
        f"moved by {moves_at_zero(without(*norms)):.2f}"
    )

# %% [markdown]
# ### Exercise: `fix_block`
#
# Only without both norms are the tokens unchanged: each of the two norms moves them. To take the norms out would keep
# the promise, and would be wrong: the branches need them.
#
# Keep the loop, and change as little as you can. Then put the promise above it as a comment, in one sentence. Whoever
# changes this block later can test that sentence in a second, without a training of 24 blocks.


# %% exercise="fix_block"
class FixedBlock(EncoderBlock):
    """BlockFromTheInternet without its bug. It keeps your __init__; write its forward.

    Put the promise that it broke into a comment, as one sentence. (No check reads the
    comment; your instructor may.) Allowed: what EncoderBlock allows, but not your
    EncoderBlock's own forward.

    >>> block = FixedBlock(8, 2).requires_grad_(False)
    >>> zeros = [each.zero_() for each in block.parameters()]
    >>> tokens = torch.arange(40.0).reshape(1, 5, 8)
    >>> torch.equal(block(tokens), tokens)
    True
    """

    def forward(self, x):
        ### BEGIN SOLUTION
        # the promise: if both branches add zero, every token comes out as it went in
        for norm, branch in ((self.norm1, self.attention), (self.norm2, self.mlp)):
            x = x + branch(norm(x))
        return x
        ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# Both branches add zero, and yet the tokens change, as long as one of the two norms is there. Which line changes
# them?
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# Which `x` does the branch read, and which `x` stands left of the plus? Can one variable be both?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# never store a normalized copy under the name of the stream
# ```
#
# </details>

# %% check="fix_block" points=3
check("fix_block", FixedBlock)

# %% tags=["experiment"]
losses = {"fixed": train(FixedBlock, 24, 80), "as found": as_found, "guessing": guess}
draw(losses, "step", "loss of 24 blocks")

# %% [markdown]
# Follow the stream of the buggy stack: norm, add, norm, add, norm, add. Now that of the post-norm stack: add, norm,
# add, norm. It is *the same stack*, shifted by one step. Somebody wanted pre-norm and wrote post-norm.

# %% [markdown]
# ## A second bug hunt, with a random bug
#
# Some authors write one step per line and keep the stream in a variable, `shortcut`. That is easy to read, but it has
# many places where a bug can hide. A seed chooses yours. First sketch the stream of this block on paper, with
# everything that happens to it.

# %%
SEED = 4  # any whole number: your own, or the one that your instructor gave you
suspect = hunt("EncoderBlock", SEED)
suspect

# %% [markdown]
# The quickest tests: does it leave the tokens alone when all its Linears are zero? Do its parameters have the shapes
# that you expect with `mlp_ratio=2.0`, and does each of them get a gradient?

# %% tags=["raises-exception"]
print("with zeros, their block moves tokens by", moves_at_zero(suspect.program))
block = suspect(embed_dim=8, num_heads=2, mlp_ratio=2.0)
block(torch.randn(2, 5, 8)).square().sum().backward()
for name, parameter in block.named_parameters():
    print(
        f"{name:28} {tuple(parameter.shape)!s:10}",
        "no gradient" if parameter.grad is None else "",
    )

# %% [markdown]
# Both can pass even when there is a bug. Then try `differs_from_yours(suspect.program)`. If that finds nothing
# either, build the block with other arguments, such as `suspect(8, 2, 2.0, qkv_bias=False, layer_norm_eps=0.5)`, and
# print it. Are the sizes, the `bias` and the `eps` of its layers what you asked for? Repair a copy.
#
# If your instructor gave you a seed for points, put your repaired version of *that* program into the cell of
# `fix_block` above, with the repaired `__init__` if the bug was there.

# %%
mended = None  # paste the program above, fix it, and put its name in place of None
suspect.check(mended)

# %% [markdown]
# <details><summary>A hint, whatever the bug</summary>
#
# In `__init__`, ask what each line does with the arguments, and what each norm is built with. In `forward`, write next
# to each line what `x` holds now, and what `shortcut` holds: the stream, a normalized copy, or a branch's output.
#
# </details>
# <details><summary>Given up?</summary>
#
# Let the check name it, and read the lines again with that name in mind: `suspect.check(suspect.program)`.
#
# </details>
#
# Too easy? `hunt("EncoderBlock", SEED, bugs=2)` hides two.

# %% [markdown]
# ## A photograph in the stream
#
# One last look at the stream, as a picture. At the start it is the photo, multiplied by a random rotation. After any
# number of blocks we can undo the rotation and *look*. All weights are random. After how many blocks can you no
# longer recognize Grace Hopper: with your block, with the block from the internet, and with `NoStream`?

# %%
variants = {
    "yours": EncoderBlock,
    "internet": BlockFromTheInternet,
    "no stream": NoStream,
}

# %%
views, titles, stops = [], [], (0, 1, 2, 4, 8, 12)
for name, block_class in variants.items():
    torch.manual_seed(0)
    x = stream
    with torch.no_grad():
        for number in range(13):
            if number in stops:
                pixels = x @ rotation.T / 4 + 0.5
                views.append(unpatchify(pixels, 8, (160, 160)).clamp(0, 1))
                titles.append(f"{name}, after {number}")
            x = block_class(embed_dim, num_heads=3)(x)
show_images(torch.cat(views), titles=titles, columns=len(stops))

# %% [markdown]
# In *your* stream she can be recognized after twelve untrained blocks, under some noise: every block can still read
# the photo, and so can the head at the end. Without the additions one block is enough to make the picture
# unrecognizable. In the stream of the block from the internet each norm brings weak and strong patches to the same
# scale, and their own scale is lost.

# %% [markdown]
# ## Keep what you wrote

# %%
keep("Mlp", "EncoderBlock")

# %% [markdown]
# And the ViT of lesson 00 again, with your blocks:

# %% tags=["experiment"]
from vit_course.whole_vit import learn_drawings, your_vit

learn_drawings(your_vit())

# %% [markdown]
# ## A harder one, without points
#
# Some large models, such as ViT-22B (Dehghani et al. 2023), compute both branches side by side, from one shared norm:
# `x + attention(norm(x)) + mlp(norm(x))`. Then `qkv` and `fc1` read the same tokens, and can be *one* matrix product;
# and so can `projection` and `fc2`. Write that block with two Linears in all. You are right when it gives the same
# numbers as the block with four Linears whose weights you have copied into it, up to rounding. Two biases have become
# one: which two, and how do you compute the new one from them?
#
# <details><summary>Write down your answer, then open this.</summary>
#
# Those of `projection` and `fc2`. Both outputs are added to the same stream, so the new bias is their sum. (The
# biases of `qkv` and `fc1` belong to different outputs, so they are put one behind the other.)
#
# </details>

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. A token is 0, 0, 6, 6. What does LayerNorm with eps = 0 make of it, and of 1, 1, 2, 2?</summary>
#
# −1, −1, 1, 1, both times: scale and offset are removed.
#
# </details>
# <details><summary>2. Your batch holds one image. Which of the two is affected, LayerNorm or BatchNorm?
# </summary>
#
# BatchNorm: its statistics come from the batch. LayerNorm uses one token at a time.
#
# </details>
# <details><summary>3. Two Linears, 192 → 768 → 192, no activation. Which single layer does the same?</summary>
#
# One Linear, 192 → 192. Its weight is the product of the two weights, and its bias is the second weight times the first
# bias, plus the second bias.
#
# </details>
# <details><summary>4. A friend wrote the norms by hand, and the block gives NaN in its very first step. Where do you
# look first?</summary>
#
# At the denominators: is an eps added under every root? (If it is outside, the loss is fine and the gradient is NaN.)
# One token whose numbers are all equal is enough, for example one of zeros. When NaN comes only after days of training,
# look first for an overflow (in float16), a learning rate that is too large, or attention scores that have grown.
#
# </details>
# <details><summary>5. You doubt the wiring of a block that you did not write. What do you do, in two lines?</summary>
#
# Set the weights and biases of all its Linears to zero, and see whether the tokens are left unchanged. If they are not,
# the block is wrong. If they are, a branch may still be wrong. Give the block the random weights of a block that you
# trust, those of the norms too. Compare the outputs, and the gradients that arrive at the tokens.
#
# </details>

# %% [markdown]
# **In one sentence:** the stream is only ever added to, branches read a normalized copy of it, attention is where
# tokens meet, and the MLP works on each token alone. (The stream leaves the last block without a norm, so a ViT has
# one more LayerNorm in front of its head.)
#
# **Next lesson:** `05_vit`, in which you put it all together and load the weights that torchvision has trained.
#
# **Further reading.** Ba, Kiros and Hinton 2016, *Layer Normalization*. He et al. 2016, *Identity Mappings in Deep
# Residual Networks*: why nothing should stand on the stream. Xiong et al. 2020, *On Layer Normalization in the
# Transformer Architecture*, and Liu et al. 2020, *Understanding the Difficulty of Training Transformers*: two answers
# to the question why post-norm is hard to train.

# %%
progress()
