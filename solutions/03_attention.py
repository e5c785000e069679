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
# # 03 · Every patch asks a question
#
# The photo is a sentence, and each word says where it stands. Now the words exchange what they know. Each word
# asks a question and takes most from the words that answer it best. This is one line of algebra, and most mistakes in
# it raise no error.
#
# **After this lesson you can**
# - compute attention for any batch, and say what each axis of each product means;
# - show, with numbers, why the scores are divided by the root of `head_dim`;
# - split tokens into heads without mixing them up, and run all heads in one matrix product;
# - write a test that tells attention from its look-alikes.
#
# <!-- table: tasks -->

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn

from vit_course import check, hunt, keep, own, predict, progress, reveal
from vit_course.data import photo
from vit_course.plots import show_images, show_matrix

patchify, unpatchify = own("patchify", "unpatchify")
sinusoidal_positions, sinusoidal_positions_2d = own(
    "sinusoidal_positions", "sinusoidal_positions_2d"
)

torch.manual_seed(3)
picture = photo().float() / 255  # (channels, height, width)
# (batch, channels, height, width)
picture = F.interpolate(picture[None], size=(288, 240), mode="area")

# %% [markdown]
# ## A soft look-up
#
# A Python dictionary is strict: your query *equals* a key, or you get a `KeyError`. Attention is a soft dictionary.
# It compares the query with **every** key, and returns a mixture of **all** values: the better a key fits, the larger
# the share of its value. Here the keys are colors, as (red, green, blue), and the values are numbers.

# %%
red, green, blue = torch.eye(3)
keys = {"red": red, "green": green, "blue": blue}
values = torch.tensor([10.0, 20.0, 30.0])


def soft_look_up(wanted, sharpness=4.0):
    fits = torch.stack([(wanted * color).sum() for color in keys.values()])
    shares = (sharpness * fits).softmax(dim=0)  # positive, and their sum is 1
    return shares, (shares * values).sum().item()


# %%
for name, wanted in {
    "red": red,
    "orange": red + green / 2,
    "gray": (red + green + blue) / 2,
}.items():
    shares, answer = soft_look_up(wanted)
    print(
        f"{name:>7}: shares {[round(share, 2) for share in shares.tolist()]}, "
        f"answer {answer:.1f}"
    )

# %% [markdown]
# Let the query move from red to green, and all shares change smoothly. So a network can learn, by gradients, *what to
# ask for*.
#
# ## Every token asks, every token answers
#
# In a Transformer each token has a **query** (what am I looking for?), a **key** (how can others find me?) and a
# **value** (what do I pass on?). Each is a vector, made from the token by a learned Linear of its own. A query and a
# key have the same length, `head_dim`; heads come later. First one number at a time, for three
# tokens that ask and four that answer:

# %%
query, key, value = torch.randn(3, 2), torch.randn(4, 2), torch.randn(4, 5)
scores, weights, output = torch.zeros(3, 4), torch.zeros(3, 4), torch.zeros(3, 5)
for token in range(3):
    for other in range(4):
        scores[token, other] = (query[token] * key[other]).sum()  # (a)
    weights[token] = (scores[token] / math.sqrt(2)).softmax(dim=0)
    for other in range(4):
        output[token] += weights[token, other] * value[other]  # (b)

# .mT swaps the last two axes
print("all of (a) is query @ key.mT:", torch.allclose(query @ key.mT, scores))
print("all of (b) is weights @ value:", torch.allclose(weights @ value, output))

# %% [markdown]
# All tokens ask at once: the queries are the rows of a matrix, and so are the keys and the values.
#
# > **weights** = softmax( **query** · **key**ᵀ / √head_dim )
# >
# > **output** = **weights** · **value**
#
# ![Attention in small numbers: query times key gives scores, scaled by the root of head_dim; a softmax makes weights
# that sum to 1 in each row; weights times value give the output.](../figures/attention_step_by_step.svg)
#
# Follow the framed row with a pencil. The query of token 1 is (0, −1, 1, 2), and its scores are 1, −3 and −1. They
# are halved (the root of 4 is 2), and the softmax gives 0.67, 0.09 and 0.24: the shares of the three values in its
# output.
#
# (queries, head_dim) times (head_dim, keys) gives (queries, keys): a **row for each query**, a **column for each
# key**. The softmax runs along a row: a query has one unit of attention to give away.
#
# ### Exercise: `scaled_dot_product_attention`
#
# There may be other axes in front of the last two: a batch, heads, both, or none. Count axes from the *back*.


# %% exercise="scaled_dot_product_attention"
def scaled_dot_product_attention(query, key, value):
    """Attention: softmax(query · keyᵀ / √head_dim) · value.

    query:   (..., queries, head_dim)
    key:     (..., keys, head_dim)
    value:   (..., keys, value_dim)
    returns: output (..., queries, value_dim) and weights (..., queries, keys), in this
             order

    The dtype and the device stay what they are, inputs are not changed, and scores in
    the thousands give no NaN.

    By hand: the scores are 2·log 3 and 0, divided by √4 they are log 3 and 0; so the
    first key gets three times the weight of the second, and the output is
    ¾ · 10 + ¼ · 20.

    >>> query = torch.tensor([[2 * math.log(3), 0.0, 0.0, 0.0]])
    >>> key = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    >>> output, weights = scaled_dot_product_attention(
    ...     query, key, torch.tensor([[10.0], [20.0]]))
    >>> weights, output
    (tensor([[0.7500, 0.2500]]), tensor([[12.5000]]))

    Allowed: torch's operations on tensors (products, sums, exp, softmax, einsum,
    einops), no ready-made attention, whichever library it is from. About 4 lines.
    """
    ### BEGIN SOLUTION
    head_dim = query.shape[-1]
    scores = query @ key.transpose(-2, -1) / math.sqrt(head_dim)  # (..., queries, keys)
    weights = scores.softmax(dim=-1)
    return weights @ value, weights
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# "too sharp" or "too flat" by a factor? Compare that factor with `head_dim`, which the message names. Sums that are 1
# along the wrong axis? Look at the `dim` of your softmax. Works with four axes and fails with two? You count axes from
# the front somewhere.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# `query` is (…, queries, head_dim) and you want scores of (…, queries, keys). Which shape must the other factor have,
# and which *two* axes of `key` have to trade places for that?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# scores  = matrix product of query with the key, its last two axes transposed
# scores  = scores / root of the size of query's last axis
# weights = softmax along the axis of the keys
# output  = matrix product of weights with value
# return both
# ```
#
# </details>

# %% check="scaled_dot_product_attention" points=8
check("scaled_dot_product_attention", scaled_dot_product_attention)

# %% [markdown]
# Does your function use each input as it should? Three tokens, and we change one number of token 0: in its *query*,
# in its *key*, in its *value*.

# %%
before = torch.randn(3, 3, 4)  # query, key and value of 3 tokens
for which, name in enumerate(("query", "key", "value")):
    after = before.clone()
    after[which, 0, 0] += 1
    outputs = [scaled_dot_product_attention(*each)[0] for each in (before, after)]
    change = (outputs[1] - outputs[0]).abs().amax(dim=1)
    rows = change.nonzero().flatten().tolist()
    print(f"its {name} changes the rows {rows} of the output")

# %% [markdown]
# A token's query changes only its own output. Its key and its value can change the output of every token.
#
# If query, key and value are made from the same tokens, this is **self-attention**, the only kind in a ViT. In
# **cross-attention** the queries come from one sequence, and the keys and values from another: the words of a caption
# can ask the patches of a photo.
#
# Why a query *and* a key? If they were the same vector, the *score* of nose and cap would be the same both ways, and
# the dot product of a token with itself would never be below 0.

# %% [markdown]
# ## Why divide by the root
#
# **Predict first.** Take two vectors of `head_dim` independent random numbers, each with mean 0 and standard
# deviation 1. Their dot product is a sum of `head_dim` products. How large is it typically for `head_dim = 256`?

# %%
predict("dot-product-of-256", 256)

# %%
for head_dim in (4, 64, 256):
    pairs = torch.randn(2, 10_000, head_dim)
    products = (pairs[0] * pairs[1]).sum(dim=1)
    print(f"head_dim {head_dim:>3}: a dot product is typically ±{products.std():.1f}")
reveal("dot-product-of-256", products.std(), within=2)  # the last of the three

# %% [markdown]
# What does a softmax make of such scores? 64 tokens ask 64 tokens; how much weight does each query give to its
# favorite?


# %%
def scores_of(head_dim, divisor):
    query, key = torch.randn(2, 50, 64, head_dim)  # 50 times: 64 tokens ask 64 tokens
    return query @ key.mT / divisor  # .mT swaps the last two axes


def largest_weight(scores):
    return scores.softmax(dim=-1).amax(dim=-1).mean()


print("largest weight in a row")
for head_dim in (4, 64, 256):
    undivided, divided = (
        largest_weight(scores_of(head_dim, each)) for each in (1, math.sqrt(head_dim))
    )
    print(
        f"head_dim {head_dim:>3}: {undivided:.2f} undivided, "
        f"{divided:.2f} divided by the root"
    )

tokens = torch.randn(64, 192)
with torch.no_grad():
    scores = nn.Linear(192, 64)(tokens) @ nn.Linear(192, 64)(tokens).mT
undivided, divided = (largest_weight(scores / each) for each in (1, math.sqrt(64)))
print(
    f"two new Linears, head_dim 64: {undivided:.2f} undivided, "
    f"{divided:.2f} divided by the root"
)

# %% [markdown]
# ![Two plots against head_dim: undivided scores make the softmax rows collapse onto one token, scores divided by the
# root of head_dim do not.](../figures/softmax_scale.svg)
#
# Each product has variance 1, and variances of independent numbers add up. So the variance of the sum is `head_dim`,
# and its typical size is the root of `head_dim`. A softmax depends only on *differences* of scores. A difference of
# 16 means that one key gets e¹⁶ times, nine million times, the weight of the other.
#
# Without the root, an untrained query of 256 numbers gives, on average, about nine tenths of its weight to one token
# among 64. With the root, the weight is spread over many tokens, whatever the size of the head. The numbers that two
# new Linears make are smaller, but the root matters there as well: see the last line.
#
# **Predict first.** Without the root, a head of 256 numbers: in how many of its rows is one weight above 0.99? And
# does the query of such a row get a larger gradient than the others, or a smaller one?

# %%
predict("stuck-rows", 10)  # in %: how many rows, for head_dim 256 and undivided?


# %%
def rows_and_gradients(head_dim, divisor):
    """Which rows have a weight above 0.99, and the length of each query's gradient."""
    query, key = torch.randn(2, 50, 64, head_dim)
    query.requires_grad_()
    weights = (query @ key.mT / divisor).softmax(dim=-1)
    (weights @ torch.randn(50, 64, 1)).sum().backward()
    return weights.amax(dim=-1) > 0.99, query.grad.norm(dim=-1)


for head_dim in (4, 64, 256):
    for name, divisor in {"undivided": 1, "divided": math.sqrt(head_dim)}.items():
        stuck, gradient = rows_and_gradients(head_dim, divisor)
        print(f"head_dim {head_dim:>3}, {name:>9}:", end=" ")
        print(f"{stuck.float().mean():6.2%} of the rows have a weight above 0.99;")
        here = f"{gradient[stuck].median():.3f}" if stuck.any() else "-"
        there = f"{gradient[~stuck].median():.2f}"
        print(f"    typical gradient of a query: in them {here}, in the others {there}")
        if head_dim == 256 and divisor == 1:
            reveal("stuck-rows", 100 * stuck.float().mean(), within=10)

# %% [markdown]
# Undivided, almost half of the rows of a head of 256 numbers look at one token only, which was chosen by chance. Such
# a row is nearly stuck: its query gets one or two thousandths of the gradient that the other rows get (for 64 numbers
# a hundredth, or a little less). Where the weights are nearly 0 or 1 the softmax is flat, and a flat function has no
# slope to learn from. Divided by the root, no row is stuck, and the gradient is about the same for each size.
#
# Only training can show how much harm a missing root does: see *no scaling* in the figure of lesson 00.
#
# Now choose the divisor yourself: one query, 16 keys. For each `head_dim`, find the divisor that makes the largest
# weight about ¼.

# %%
from vit_course.explore import explore_softmax

explore_softmax()

# %% [markdown]
# About 16 for 256, about 8 for 64 and about 2 for 4: each time close to the root of `head_dim`. (For 16 the best
# divisor lies between 2 and 4, because of these few random numbers.) The root fits queries and keys of standard
# deviation 1. In training both may grow, and scores with them: lesson 10 shows a remedy, QK-norm.

# %% [markdown] question="why-scale" points=2
# ### Question: why the root?
#
# A friend leaves the division out: "The Linears that make query and key can learn to be smaller." Another one divides
# by `head_dim` itself: "Then no score can be too large." Answer both, using what you saw above.
#
# ### BEGIN SOLUTION
# To the first: they could, in principle. But where query and key have standard deviation 1, the scores have a standard
# deviation of √head_dim, and the softmax of many rows is saturated: nearly all the weight lies on one key, chosen by
# chance. Such a row gets about a hundredth of the gradient of the others, or less; yet these rows must change.
# For head_dim 64 that is almost every fifth row, for 256 almost every second. (Two new Linears of PyTorch
# make smaller numbers, so fewer rows are stuck at the start.) And it matters in training: in lesson 00 the model
# without the division had the best of three learning rates, and still ended at 47.0 % against 52.8 %. That run does not
# show that stuck rows are the cause; its heads have only 16 numbers.
#
# To the second: the variance of a score grows like head_dim, so its size grows like the root. Dividing by head_dim
# makes scores of size 1/√head_dim. Then the weights of a row are almost equal, and the larger the head, the more equal
# they are. The division is meant to keep the size of a score independent of head_dim, and at the start, while query and
# key are independent, only the root does that. (Still, this friend is not simply wrong: once training has aligned
# queries with keys, their products no longer cancel, and a score grows like head_dim itself. Yang et al. 2022, *Tensor
# Programs V*, divide by head_dim for this reason.)
#
# **Rubric.** 1 point: undivided scores saturate the softmax of many rows (nearly all the weight on one key), *and* such
# rows therefore get hardly any gradient (not only "numbers get too large"). No point is lost for knowing that other
# rows get a large one. 1 point: variance grows like head_dim, standard deviation like the root, so dividing by head_dim
# over-corrects toward even weights at the start. (Whoever argues well with trained, aligned queries has this point,
# too.)
# ### END SOLUTION

# %% [markdown]
# ## Attention on a photo
#
# Now your function looks at the photo. The patches have 12 × 12 pixels. For query and key we take the same vector,
# which we call *hue*: the mean color of the patch minus that of the photo, scaled to length 1. So the dot product is
# large for similar hues. First a function that only draws: the larger a weight, the brighter its patch. You need not
# read it.


# %%
def show_looks(picture, looks, asking, grid_size, titles=None):
    """The picture, lit by each row of weights in `looks`; red: the patch that asks."""
    gray = 0.1 + 0.45 * picture.mean(dim=1, keepdim=True)  # (1, 1, height, width)
    light = looks.detach() / looks.detach().amax(dim=1, keepdim=True)
    red = F.one_hot(torch.tensor(asking), light.shape[1]).float()
    light, red = (each.unflatten(1, grid_size)[:, None] for each in (light, red))
    light, red = (F.interpolate(each, picture.shape[-2:]) for each in (light, red))
    lit = torch.lerp(
        gray, torch.tensor([1.0, 0.76, 0.2])[:, None, None] * (0.4 + gray), light
    )
    lit = torch.lerp(lit, torch.tensor([1.0, 0.1, 0.0])[:, None, None], red)
    return show_images(lit.clamp(0, 1), titles, columns=3)


show_images(picture)

# %% [markdown]
# A patch of her cheek asks, then one of the wall, then one of the flag's blue field. Which parts of the picture will
# light up for each?


# %%
def hues(picture, patch_size):
    """Each patch's mean color minus the picture's, of length 1: (batch, tokens, 3)."""
    colors = patchify(picture, patch_size).unflatten(2, (3, -1)).mean(dim=3)
    return F.normalize(colors - colors.mean(dim=1, keepdim=True), dim=2)


hue = hues(picture, 12)
# 20 makes the softmax sharper
_, weights = scaled_dot_product_attention(20 * hue, hue, hue)
cheek, wall, flag = (row * 20 + column for row, column in ((10, 9), (10, 18), (5, 3)))
asking = [cheek, wall, flag]
show_looks(
    picture,
    weights[0, asking],
    asking,
    (24, 20),
    ["the cheek asks", "the wall asks", "the flag asks"],
)

# %% [markdown]
# One line of algebra finds her face (and the stripes of the flag). This attention knows nothing about faces: patches
# of a similar color found each other.
#
# The value need not be a color. Let it be a *place*, the patch's row and column. What comes back when we ask by
# color?

# %%
# (1, 480, 2): row and column
places = torch.cartesian_prod(torch.arange(24.0), torch.arange(20.0))[None]
answers, _ = scaled_dot_product_attention(20 * hue, hue, places)
for name, token in {"cheek": cheek, "wall": wall, "flag": flag}.items():
    row, column = answers[0, token].tolist()
    print(
        f"what looks like the {name}: on average in row {row:.1f}, column {column:.1f}"
    )

# %% [markdown]
# The cheek gets the place of her face, the wall that of the wall on the right. And the flag? Her uniform is navy
# blue, too, so the mean lies between flag and uniform, at her collar, which is not blue. Attention does not choose,
# it mixes. And the key is what a token is found by, the value is what it passes on.

# %% [markdown]
# ## Several heads, several questions
#
# So far each token has one softmax, and gets one mixture. But the cheek may want to know two things at once: *what
# looks like me?* and *what is next to me?* So we cut every token's query, key and value into `num_heads` pieces, and
# each piece gets an attention of its own.
#
# ![The embed_dim columns of the token matrix are cut in three parts; each head receives one part of every token's
# vector.](../figures/split_heads.svg)
#
# The target shape is (batch, num_heads, tokens, head_dim): attention works on the last two axes, and sees the heads
# as one more kind of batch. PyTorch gives us that shape in one call. **Predict first:** below, each number tells
# which of five tokens it belongs to. After the `view`, of how many tokens does head 0 hold something?

# %%
# of how many of the five tokens does head 0 hold something?
predict("tokens-in-head-0", 5)

# %%
# 5 tokens of 6 numbers
x = torch.arange(5.0).reshape(1, 5, 1).expand(1, 5, 6).contiguous()
tempting = x.view(1, 3, 5, 2)  # (batch, num_heads, tokens, head_dim), or so it seems
reveal("tokens-in-head-0", len(tempting[0, 0].unique()))
show_matrix(
    torch.cat(list(tempting[0]), dim=1),
    "row of the head",
    "head 0 | head 1 | head 2",
    "which token?",
)

# %% [markdown]
# `view` took the numbers in the order in which they lie in memory, token after token, and gave ten of them to each
# head. We wanted *columns*, a part of every token. This is the mistake that made confetti in lesson 01.
#
# ### Exercise: `split_heads` and `merge_heads`


# %% exercise="split_heads"
def split_heads(x, num_heads):
    """Cut every token into one piece for each head.

    Convention: head 0 gets the first head_dim numbers of every token, head 1 the next
    ones, and so on.

    x:       (batch, tokens, embed_dim)
    returns: (batch, num_heads, tokens, head_dim), where
             head_dim = embed_dim / num_heads

    Raise ValueError, naming both numbers, when num_heads does not divide embed_dim:
    ValueError("embed_dim 10 is not divisible by num_heads 4").

    >>> x = torch.tensor([[[0, 1, 2, 3], [10, 11, 12, 13]]])  # two tokens of four
    >>> split_heads(x, 2).tolist()
    [[[[0, 1], [10, 11]], [[2, 3], [12, 13]]]]

    Allowed: anything in torch. About 7 lines.
    """
    ### BEGIN SOLUTION
    batch, tokens, embed_dim = x.shape
    if embed_dim % num_heads:
        raise ValueError(
            f"embed_dim {embed_dim} is not divisible by num_heads {num_heads}"
        )
    pieces = x.reshape(batch, tokens, num_heads, embed_dim // num_heads)
    return pieces.transpose(1, 2)  # (batch, num_heads, tokens, head_dim)
    ### END SOLUTION


def merge_heads(x):
    """Lay the pieces of every token side by side again; the inverse of split_heads.

    x:       (batch, num_heads, tokens, head_dim), not always contiguous
    returns: (batch, tokens, embed_dim)

    >>> merge_heads(torch.tensor([[[[0, 1], [10, 11]], [[2, 3], [12, 13]]]])).tolist()
    [[[0, 1, 2, 3], [10, 11, 12, 13]]]

    Allowed: anything in torch. About 2 lines.
    """
    ### BEGIN SOLUTION
    batch, num_heads, tokens, head_dim = x.shape
    return x.transpose(1, 2).reshape(batch, tokens, num_heads * head_dim)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# The check says which number of which token stands in a place. Is it a number of another *token*, and not only another
# number of the right token? Then you gave whole tokens to the heads. "view size is not compatible"? After a transpose
# the numbers lie scattered in memory: `view` refuses, `reshape` copies.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# A reshape may cut an axis in two, or join two that stand side by side; it must never carry an axis past another. Which
# axis do you have to cut? And which two axes have to trade places afterward?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# split: refuse sizes that do not fit
#        cut the last axis in two: (num_heads, head_dim)
#        let the axis of the tokens and the axis of the heads trade places
# merge: the same steps backward
# ```
#
# </details>

# %% check="split_heads" points=6
check("split_heads", split_heads, merge_heads)

# %%
heads = split_heads(x, 3)
show_matrix(
    torch.cat(list(heads[0]), dim=1),
    "row of the head",
    "head 0 | head 1 | head 2",
    "which token?",
)

# %% [markdown]
# Every head has a part of every token. (Splitting an axis and swapping two axes copies no number.)

# %% [markdown] question="heads-or-one" points=2
# ### Question: three small heads or one large one?
#
# A layer with `embed_dim = 192` may have 1 head of 192, 3 heads of 64, or 192 heads of 1. All three have the same
# number of parameters. What can three heads do for a token that one head cannot? And what is lost with 192 heads?
#
# ### BEGIN SOLUTION
# A head makes one softmax per token, so it can fetch one weighted mean. With one head a token that needs two
# different things (what looks like me; what lies next to me) gets a single compromise of weights for both. Three
# heads have three independent sets of weights and bring back three means side by side. With 192 heads each score is
# the product of two single numbers, so a head can ask hardly anything: its keys differ along one direction only, and
# it can do little more than prefer large or small ones.
#
# **Rubric.** 1 point: one softmax gives one set of weights, several heads give several independent mixtures at once.
# 1 point: with a tiny head_dim the queries and keys are too poor to tell tokens apart.
# ### END SOLUTION

# %% [markdown]
# ## All heads in one matmul
#
# A head needs three maps: token to query, token to key, token to value. With 3 heads that makes 9 small Linears. Most
# code has one wide Linear in their place: one product computes all nine, and the result is cut afterward.
#
# | rows of `qkv.weight` | make |
# |---|---|
# | 0 … embed_dim − 1 | **queries**: head 0, head 1, head 2 |
# | embed_dim … 2·embed_dim − 1 | **keys**: head 0, head 1, head 2 |
# | 2·embed_dim … 3·embed_dim − 1 | **values**: head 0, head 1, head 2 |
#
# At the end a second Linear, `projection`, reads the merged heads. Without it the first `head_dim` numbers of the
# output would hold only what head 0 has found, and so on. With it every head can write into all numbers of the
# output.
#
# ### Exercise: `MultiHeadSelfAttention`


# %% exercise="MultiHeadSelfAttention"
class MultiHeadSelfAttention(nn.Module):
    """Every token attends to every token, in num_heads heads at once.

    Parameters: the Linear `qkv` from embed_dim to 3 * embed_dim, with a bias if
    qkv_bias is True; its first embed_dim rows make the queries, the next the keys, the
    last the values; within each third, head 0 comes first. The Linear `projection` from
    embed_dim to embed_dim always has a bias. Checks use these names.

    x:       (batch, tokens, embed_dim); leave it as you found it
    returns: (batch, tokens, embed_dim); with return_weights=True a pair of that and the
             weights (batch, num_heads, tokens, tokens). Moved to another device, it
             computes there.

    Raise ValueError, naming both numbers, in __init__, when num_heads does not divide
    embed_dim.

    >>> attention = MultiHeadSelfAttention(embed_dim=6, num_heads=2)
    >>> tuple(attention(torch.zeros(4, 5, 6)).shape)
    (4, 5, 6)
    >>> output, weights = attention(torch.zeros(4, 5, 6), return_weights=True)
    >>> weights[0, 1, 2]  # all tokens alike: each gets a fifth
    tensor([0.2000, 0.2000, 0.2000, 0.2000, 0.2000], grad_fn=<SelectBackward0>)

    Allowed: nn.Linear, operations on tensors, and your three functions from above; no
    ready-made attention. About 13 lines.
    """

    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        ### BEGIN SOLUTION
        if embed_dim % num_heads:
            raise ValueError(
                f"embed_dim {embed_dim} is not divisible by num_heads {num_heads}"
            )
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.projection = nn.Linear(embed_dim, embed_dim)
        ### END SOLUTION

    def forward(self, x, return_weights=False):
        ### BEGIN SOLUTION
        # (batch, tokens, embed_dim) each
        query, key, value = self.qkv(x).chunk(3, dim=-1)
        query, key, value = (
            split_heads(part, self.num_heads) for part in (query, key, value)
        )
        heads, weights = scaled_dot_product_attention(query, key, value)
        output = self.projection(merge_heads(heads))
        return (output, weights) if return_weights else output
        ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# Weights right, output wrong? Then the mistake comes after the softmax: merging, or the projection. Weights wrong
# already? Then it comes before: how `qkv`'s output is cut, or how heads are split. "has no parameter"? Both Linears
# must be attributes of `self` under their exact names.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# `self.qkv(x)` is (batch, tokens, 3 · embed_dim). Which cut comes first: into query, key and value, or into heads? The
# table above tells. And which of your functions takes care of the other cut?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# in __init__: refuse sizes that do not fit; remember num_heads; make the two Linears
# in forward:  one product with qkv, cut in three equal parts along the last axis
#              split each part into heads
#              attention (the heads are one more leading axis)
#              merge the heads, send them through the projection
#              give the output, or output and weights when asked for
# ```
#
# </details>

# %% check="MultiHeadSelfAttention" points=10
check("MultiHeadSelfAttention", MultiHeadSelfAttention)

# %% [markdown]
# Does a layer with 6 heads have more parameters than one with 3?

# %%
for num_heads in (3, 6):
    layer = MultiHeadSelfAttention(192, num_heads)
    count = sum(parameter.numel() for parameter in layer.parameters())
    print(num_heads, "heads:", count, "parameters")

# %% [markdown]
# The number of heads decides how the output of `qkv` is *read*, not how large it is. What does grow is the table of
# weights: num_heads · tokens² numbers for each image, in each layer. For 3 heads and 197 tokens these are 116,427.
#
# Your layer can use the weights of PyTorch's own layer, which keeps its rows in the same order. The two outputs
# should agree:

# %%
theirs = nn.MultiheadAttention(192, 3, batch_first=True)
with torch.no_grad():
    for bias in (theirs.in_proj_bias, theirs.out_proj.bias):
        # PyTorch starts biases at zero: that would test none of them
        bias.copy_(torch.linspace(-1, 1, len(bias)))
ours = MultiHeadSelfAttention(192, 3)
ours.load_state_dict(
    {
        "qkv.weight": theirs.in_proj_weight,
        "qkv.bias": theirs.in_proj_bias,
        "projection.weight": theirs.out_proj.weight,
        "projection.bias": theirs.out_proj.bias,
    }
)
tokens = torch.randn(2, 10, 192)
with torch.no_grad():
    difference = ours(tokens) - theirs(tokens, tokens, tokens)[0]
print("largest difference:", difference.abs().max().item())

# %% [markdown]
# They agree up to rounding. In later projects, call `F.scaled_dot_product_attention(query, key, value)`: it gives the
# output that yours gives, usually faster, but not the weights. [A side
# note](/notes/attention.html) has more: views in memory, how the heads add up,
# and *dropout*, which sets some of the weights to zero at random in training.

# %% [markdown]
# ## Shuffle the tokens
#
# Nowhere does the formula ask *where* a token stands. So shuffled tokens give the same outputs, shuffled in the same
# way (lesson 02), and the mean of the outputs does not change. Now add positions, to the photo and to the shuffled
# photo: place 0 always gets position 0, whichever patch lies there. The layer is new, not trained. Does the mean of
# all outputs change by about a percent, by half, or completely?

# %%
embed, layer = nn.Linear(6912, 192), MultiHeadSelfAttention(192, 3)
order = torch.randperm(30)
with torch.no_grad():
    tokens = embed(patchify(picture, 48))  # (1, 30, 192)
    print(
        "shuffled like the tokens:",
        torch.allclose(layer(tokens[:, order]), layer(tokens)[:, order], atol=1e-5),
    )
    tables = {"without": torch.zeros(30, 192)}
    tables["with"] = sinusoidal_positions_2d((6, 5), 192)
    for name, positions in tables.items():
        output = layer(tokens + positions).mean(dim=1)
        shuffled = layer(tokens[:, order] + positions).mean(dim=1)
        change = ((shuffled - output).norm() / output.norm()).item()
        print(f"{name} positions the mean changes by {change:.1%}")

# %% [markdown]
# By less than one percent (0.5 to 0.7 % from three seeds, `benchmarks/results/short_lessons.json`). A new layer
# weighs all tokens nearly alike, so its outputs are nearly those of the mean token. The mean of all patches plus all
# positions is the same in any order. Near the end of this lesson a layer is trained to look by position.

# %% [markdown]
# ## A test for attention
#
# So far the checks were ours. Now you write one. Someone gives you a function `attend(query, key, value)` that
# returns output and weights, and says that it is attention. Is it?
#
# Here are seven suspects, each made of *your* function. Six have one bug each. **One is right**, though it looks
# wrong. Which one? (The names are hints.)

# %%
attention = scaled_dot_product_attention


def on_its_side(query, key, value):
    weights = attention(key, query, query)[1].transpose(-2, -1)
    return torch.matmul(weights, value), weights


suspects = {
    "hot-headed": lambda query, key, value: attention(
        query * query.shape[-1] ** 0.5, key, value
    ),
    "deaf": lambda query, key, value: attention(0 * query, key, value),
    "gossip": lambda query, key, value: attention(query, key, value.roll(1, dims=-2)),
    "liar": lambda query, key, value: (
        attention(query, key, value)[0],
        attention(0 * query, key, value)[1],
    ),
    "on its side": on_its_side,
    "odd": lambda query, key, value: attention(query, key + 3, value),
    "herd": lambda query, key, value: attention(query - query.mean(dim=0), key, value),
}

# %% [markdown]
# You could compare each with your own function. But a mistake of your own would be on both sides of the comparison,
# and the test would pass. A better test states **facts**: things that hold for attention and that you know without
# running any. Here is the first fact: the weights of a query sum to one.


# %%
def rows_sum_to_one(attend):
    query, key, value = torch.randn(2, 5, 4), torch.randn(2, 7, 4), torch.randn(2, 7, 6)
    _, weights = attend(query, key, value)
    sums = weights.sum(dim=-1)
    return torch.allclose(sums, torch.ones_like(sums), atol=1e-5)


for name, attend in suspects.items():
    print(f"{name:>12}: {'passes' if rows_sum_to_one(attend) else 'caught'}")

# %% [markdown]
# One is caught, five are left. Write down more facts before you go on. What must attention *not* care about? What do
# its two results have to do with each other? Which input has an output that you know at once? We found six more.
#
# None of them catches "hot-headed". For that you need numbers: a small **example**, worked out with a pencil. Two
# queries, (2, 0, 0, 0) and (−2, 0, 0, 0); three keys, (1, 0, 0, 0) and twice (0, 0, 0, 0). What are the six weights?
# What would they be without the division, or with the root of the number of *keys*?


# %%
def three(first):
    return [f"{share:.5f}" for share in torch.tensor([first, 0.0, 0.0]).softmax(dim=0)]


print("attention: query 0", three(1.0), "query 1", three(-1.0))
print("undivided: query 0", three(2.0), "query 1", three(-2.0))
print(
    "by keys:   query 0", three(2 / math.sqrt(3)), "query 1", three(-2 / math.sqrt(3))
)

# %% [markdown]
# This example cannot see every mistake: head_dim is 4, so its root, 2, is also its half, and a function that always
# divides by 2 passes. The keys have length 1 or 0, and only the first coordinate is used. For the exercise choose an
# example of your own, in which all sizes and numbers differ. And no finite test *proves* that a function is
# right: each fact rules out some wrong ones.

# %% [markdown]
# ### Exercise: `is_attention`
#
# Write the test. It is tried on right attentions, written in many ways, which it must accept, and on wrong ones, which
# it must reject. Some of these go wrong only in one place: in the second image of a batch, in the last number of a key,
# or where scores are very large. A test that rejects everything earns nothing.


# %% exercise="is_attention"
def is_attention(attend):
    """Tell attention from its look-alikes.

    attend:  a function of query (..., queries, head_dim), key (..., keys, head_dim) and
             value (..., keys, value_dim) that gives two tensors, said to be output and
             weights. It may be wrong in any way, in its shapes too.
    returns: True if what it computes is attention, up to rounding; False if not

    Your own scaled_dot_product_attention has to pass, and this has to fail:

    >>> is_attention(lambda query, key, value: (value, query))
    False

    Allowed: anything but a second attention to compare with, yours or a library's.
    Right answers differ in their last digits: torch.allclose(a, b, atol=1e-5). About 30
    lines.
    """
    ### BEGIN SOLUTION
    generator = torch.Generator().manual_seed(3)
    query, key, value = (
        torch.randn(2, 3, *size, generator=generator)
        for size in ((5, 4), (7, 4), (7, 6))
    )
    output, weights = attend(query, key, value)
    if output.shape != (2, 3, 5, 6) or weights.shape != (2, 3, 5, 7):
        return False
    order = torch.randperm(7, generator=generator)
    shuffled, _ = attend(query, key[:, :, order], value[:, :, order])
    alone, _ = attend(query[1:], key[1:], value[1:])
    # nearly all weight goes to the largest score
    _, steep = attend(1e5 * query, key, value)
    facts = [
        (weights.sum(dim=-1), torch.ones(2, 3, 5)),
        (weights @ value, output),
        (shuffled, output),
        (alone, output[1:]),
        (steep, F.one_hot(weights.argmax(dim=-1), 7).float()),
    ]
    high, low = math.e**2 / (math.e**2 + 2), 1 / (1 + 2 * math.e**2)
    # head_dim * number / root is 2: scores ±2, 0 and 0
    for head_dim, number in ((4, 1.0), (9, 2 / 3)):
        queries, keys = torch.ones(2, head_dim), torch.zeros(3, head_dim)
        queries[1], keys[0] = -1, number
        _, by_pencil = attend(queries, keys, torch.eye(3))
        rest = [(1 - high) / 2, (1 - low) / 2]
        expected = [[high, rest[0], rest[0]], [low, rest[1], rest[1]]]
        facts.append((by_pencil, torch.tensor(expected)))
    return all(torch.allclose(seen, expected, atol=1e-5) for seen, expected in facts)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: the symptom</summary>
#
# A right attention is refused? Print the two tensors that you compare, and their difference: `==` is too strict for
# floating-point numbers. Your test *raises*? `allclose` raises an error when two shapes do not fit, and broadcasts when
# they happen to; look at the shapes first and return False.
#
# </details>
# <details><summary>Hint 2: a question</summary>
#
# For each suspect that slips through: what does it do differently from attention, and on which inputs could anybody
# see that? With `query = key = value`, with one image, or with all sizes equal, whole families of mistakes are
# invisible. And in your pencil example: which numbers of a query or key could be left out, and which key could be
# scaled to length 1, without any change in the weights? Could the number 2 stand there for something else?
#
# </details>
# <details><summary>Hint 3: pseudo-code</summary>
#
# ```
# draw query, key, value with a batch, with heads, and with sizes that all differ
# wrong shapes? return False
# facts = rows sum to one; output is weights times value;
#         shuffled keys and values change nothing;
#         one image of the batch alone gives the same;
#         scores in the thousands give no NaN, and nearly all weight to the largest;
#         the pencil example gives the pencil's numbers
# return whether all facts hold, up to rounding
# ```
#
# </details>

# %% check="is_attention" points=8
check("is_attention", is_attention)

# %% [markdown]
# ## The line-up
#
# A bug hunt with your own test: run it on the seven suspects. Did you guess the right one?

# %%
for name, attend in suspects.items():
    print(f"{name:>12}: {'INNOCENT' if is_attention(attend) else 'guilty'}")

# %% [markdown]
# "Odd" adds 3 to every number of every key. Then all scores of a query grow by the same number, and a softmax depends
# only on differences. That is also why a bias on the keys is a parameter that does nothing.
#
# "Hot-headed" does not divide by the root. "Deaf" ignores the query. "Gossip" gives each key the value of its
# neighbor. "Liar" returns weights that it did not use. "On its side" takes the softmax along the queries. "Herd"
# mixes the images of a batch.
#
# | our facts | catch |
# |---|---|
# | rows sum to one | on its side |
# | if all values are equal, the output is that value | on its side |
# | keys and values shuffled alike change nothing | gossip |
# | the output is the mean of the values under those very weights | gossip, liar |
# | an image gets the same answer alone and in a batch | herd |
# | with very large scores the largest takes nearly all | deaf, liar, on its side; herd, if your test computes scores |
# | the shapes are right when all sizes differ | none of these six, but others in the check |
# | the weights of the pencil example | hot-headed, deaf, liar, on its side |
#
# Only the pencil catches "hot-headed", and no single fact catches all six.

# %% [markdown]
# ## One more suspect, with a random bug
#
# This suspect is guilty. The seed chooses its mistake, from those that our checks know. The program uses the names of
# the paper, Q, K, V and d_k. Find the wrong line by reading. Then: will your test catch it?

# %%
SEED = 1  # any whole number: your own, or the one that your instructor gave you
suspect = hunt("scaled_dot_product_attention", SEED)
suspect

# %% [markdown]
# Three queries and five keys, of four dimensions: what do the rows of its weights sum to, and what does your test say?

# %% tags=["raises-exception"]
query, key, value = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5, 4)
_, weights = suspect(query, key, value)
print("sums of the rows:", [round(total, 3) for total in weights.sum(dim=-1).tolist()])
print("your test says:", "INNOCENT" if is_attention(suspect) else "guilty")
show_matrix(weights, "query", "key", "the suspect's weights")

# %% [markdown]
# Your test says INNOCENT? Then a fact is missing in it: what must hold for attention, but not for this program? Copy
# the program, repair it, and check it: a test says *that* something is wrong, and you have to find what.

# %%
mended = None  # paste the program above, fix it, and put its name in place of None
suspect.check(mended)

# %% [markdown]
# <details><summary>A hint that helps with every bug</summary>
#
# Go through the formula from the inside out: the product, the division, the softmax and its axis, the second product,
# what is returned. Say for each line which shape it gives for 3 queries and 5 keys. Then try keys a thousand times as
# large.
#
# </details>
# <details><summary>Given up?</summary>
#
# Let the check name it, and read the lines again with that name in mind: `suspect.check(suspect.program)`.
#
# </details>
#
# For more, `hunt("MultiHeadSelfAttention", SEED)` puts a bug into the whole module.

# %% [markdown]
# ## Heads with a purpose
#
# Can a head learn where to look? Twenty tokens stand in a row. Each holds 32 random numbers, new in every step, and
# the position of its place. The head should give each token the numbers of the token on the *other side*. Where to
# look is never given: the head learns only from the squared error of its **output**.
#
# **Predict first.** A new head gives each of the 20 places about 5 % of its weight. How much does the mirror place
# get after 300 steps? And how far does the error fall if the tokens contain *no* positions?

# %%
predict("on-the-mirror-place", 50)  # in %, with positions


# %%
def learn_to_mirror(positions):
    """Train one head; return its weights in one row, and the mirror place's share."""
    head = MultiHeadSelfAttention(64, 1)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.01)
    for step in range(301):
        numbers = torch.randn(64, 20, 32)
        tokens = torch.cat([numbers, positions.expand(64, 20, 32)], dim=2)
        output, weights = head(tokens, return_weights=True)
        error = F.mse_loss(output[..., :32], numbers.flip(1))
        if step % 100 == 0:
            share = weights.flip(3).diagonal(dim1=2, dim2=3).mean().item()
            print(
                f"step {step:>3}: error {error.item():.2f}, "
                f"{share:4.0%} of the weight is on the mirror place"
            )
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
    return weights[0, 0].detach(), share


table = sinusoidal_positions(20, 32)
print("without positions")
learn_to_mirror(torch.zeros(20, 32))
print("with positions")
weights, share = learn_to_mirror(table)
reveal("on-the-mirror-place", 100 * share, within=10)
show_matrix(
    weights,
    "the token that asks",
    "the token it looks at",
    "learned weights, with positions",
)

# %% [markdown]
# With positions the mirror place gets nearly all of the weight. Without positions the head cannot know which token
# stands where, and can hardly do better than the mean of all 20 tokens. In this mean the right token has the share
# 1/20 in place of 1, and 19 wrong ones have 1/20 in place of 0. So the error is (19/20)² + 19 · (1/20)² = 0.95.
#
# The loss alone can teach attention where to look, if the tokens contain something by which they can find each other.
# One can also set heads by hand: [a side note](/notes/heads_by_hand.html)
# averages the photo by color, blurs it and mirrors it, in one layer. Lesson 08 shows what the heads of a trained ViT
# look at.

# %% [markdown]
# ## Keep what you wrote

# %%
keep("scaled_dot_product_attention", "split_heads", "MultiHeadSelfAttention")

# %% [markdown]
# And the ViT of lesson 00 again, with your attention in both blocks:

# %% tags=["experiment"]
from vit_course.whole_vit import learn_drawings, your_vit

learn_drawings(your_vit())

# %% [markdown]
# ## A harder one, without points
#
# Write attention that never stores the weights. Go through the keys in chunks of 16, and keep three things for each
# query: the largest score so far, the sum of the exponentials, and the weighted sum of values. When a chunk contains a
# larger score than before, how must you correct the two sums? (The running softmax is from Milakov and Gimelshein 2018,
# attention with it from Rabe and Staats 2021; Dao et al. 2022 made a fast kernel of it, one of those behind
# `F.scaled_dot_product_attention`.) You are right when `scaled_dot_product_attention` gives the same output, for any
# number of keys, and for scores of 1,000.

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. <code>scores</code> is (queries, keys). Which sums are 1 after the softmax, and which are not
# fixed?</summary>
#
# The sums over the keys are 1, one for each query. The sums over the queries are not fixed: popular keys get more.
#
# </details>
# <details><summary>2. <code>embed_dim = 768</code>, 12 heads: by what are the scores divided?</summary>
#
# By 8, the root of 64: a head's dot product has 768 / 12 = 64 terms. The root of `embed_dim` is a mistake that our
# checks know.
#
# </details>
# <details><summary>3. Why does <code>merge(split(x)) == x</code> not prove that either is right?</summary>
#
# The wrong pair, `view` there and back, passes as well. A round trip shows that two functions are inverse, no more.
#
# </details>
# <details><summary>4. A test uses <code>query = key = value</code>. Name two mistakes that it cannot see.</summary>
#
# One that mixes keys in place of values, and one that divides by the root of value_dim. Where the three tensors are the
# same, it makes no difference which of them is used.
#
# </details>
# <details><summary>5. In a language model a <em>causal mask</em> gives weight 0 to all later tokens. Why is there none
# in a ViT?</summary>
#
# The mask belongs to a task, not to a kind of data: a model that learns to predict the next token must not see that
# token. A ViT predicts the class of a whole picture, so every patch may look at every other. (Chen et al. 2020,
# *Generative Pretraining from Pixels*, predict pictures pixel by pixel, and do need the mask.)
#
# </details>

# %% [markdown]
# Each head only takes a weighted *mean* of values, which are linear in the tokens. **Next lesson:** `04_block`, in
# which each token also goes through a small network of its own.
#
# **Further reading.** Vaswani et al. 2017, *Attention Is All You Need*, section 3.2: the formula, the root and the
# heads. Michel, Levy and Neubig 2019, *Are Sixteen Heads Really Better than One?*: how many can be removed after
# training. Cordonnier, Loukas and Jaggi 2020, *On the Relationship between Self-Attention and Convolutional Layers*:
# when heads can do what a convolution does. Elhage et al. 2021, *A Mathematical Framework for Transformer Circuits*:
# heads as separate parts that add up.

# %%
progress()
