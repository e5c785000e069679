"""Wrong answers as beginners write them, each with words that its report says and words that would be false of it."""

import copy
import math
import random
from itertools import count

import torch
from torch import nn
from torch.nn import functional as F

from exercise_kit.engine.program import make_module
from exercise_kit.engine.verdict import LOOKS_LIKE
from vit_course import PatchEmbedding, patchify
from vit_course.exercises.catalog import EXERCISES
from vit_course.interpret import attention_rollout

_EDITED = count()
TOLD = {}  # name → exercise, answer, what the report says, what it must not say


def is_told(exercise, *says, never=()):
    """A function or class is an answer to ``exercise`` of which ``check`` says this."""

    def add_answer(answer, name=""):
        unsaid = (never,) if isinstance(never, str) else never
        TOLD[f"{exercise}-{name or answer.__name__}"] = exercise, answer, says, unsaid
        return answer

    return add_answer


def edit_right_program(exercise, edit):
    """The right program of an exercise, its text edited, as the objects of a student whose lines can be found."""
    text = EXERCISES[exercise].program.text()
    edited = edit(text)
    assert edited != text
    module = make_module(f"{exercise}, edited for the {next(_EDITED)}. time", edited)
    return [vars(module)[name] for name in EXERCISES[exercise].objects]


def edit_vit(old, new):
    """The right program of VisionTransformer, with ``new`` in the place of ``old``."""
    (edited,) = edit_right_program("VisionTransformer", lambda text: text.replace(old, new))
    return edited


ATTENTION = "scaled_dot_product_attention"


@is_told(ATTENTION, "`.T` turns all axes round")
def all_axes_turned(query, key, value):
    weights = (query @ key.T / math.sqrt(query.shape[-1])).softmax(-1)
    return weights @ value, weights


@is_told(ATTENTION, "Python reads `query.shape[-1]**1/2` as `(query.shape[-1]**1) / 2`")
def half_of_head_dim(query, key, value):
    weights = (query @ key.mT / (query.shape[-1] ** 1 / 2)).softmax(-1)
    return weights @ value, weights


@is_told(ATTENTION, "Which axis of the first matrix meets", never=LOOKS_LIKE)
def queries_on_values(query, key, value):
    weights = (query @ key.mT / math.sqrt(query.shape[-1])).softmax(-1)
    return query @ value, weights


@is_told(
    "patchify",
    "starts with 1.5, which is no pixel",
    "which line changes its number",
    never=("starts with the pixel of image 0, channel 0, row 0, column 0 Exp", "Count the patches"),
)
def half_added(images, patch_size):
    return patchify(images, patch_size) + 0.5


@is_told("patchify", "0, which is no pixel", "where is number", never="changes its number")
def last_row_left_empty(images, patch_size):
    right = patchify(images, patch_size)
    tokens = torch.zeros_like(right)
    written = len(right[0]) - images.shape[-1] // patch_size
    tokens[:, :written] = right[:, :written]
    return tokens


@is_told("patchify", "`patches.permute(0, 2, 4, 1, 3, 5)` makes a new tensor that gets no name", never=LOOKS_LIKE)
def order_changed_for_nobody(images, patch_size):
    b, c, h, w = images.shape
    patches = images.reshape(b, c, h // patch_size, patch_size, w // patch_size, patch_size)
    patches.permute(0, 2, 4, 1, 3, 5)
    return patches.reshape(b, -1, c * patch_size**2)


@is_told("unpatchify", "How many numbers does that shape hold", never="the same sizes in another order")
def channels_of_a_photo(patches, patch_size, image_size):
    rows, columns = (side // patch_size for side in image_size)
    x = patches.reshape(-1, rows, columns, 3, patch_size, patch_size)
    return x.permute(0, 3, 1, 4, 2, 5).reshape(-1, 3, *image_size)


channels = 3


@is_told("unpatchify", "`channels` is a number of the notebook, 3, whatever the caller gives")
def channels_of_the_notebook(patches, patch_size, image_size):
    rows, columns = (side // patch_size for side in image_size)
    x = patches[..., : channels * patch_size**2].reshape(-1, rows, columns, channels, patch_size, patch_size)
    return x.permute(0, 3, 1, 4, 2, 5).reshape(-1, channels, *image_size)


picture = torch.rand(1, 3, 8, 8)


@is_told("patchify", "`images` is never read, and `picture`, a tensor of the notebook, is")
def the_picture_of_the_notebook(images, patch_size):
    b, c, h, w = picture.shape
    x = picture.reshape(b, c, h // patch_size, patch_size, w // patch_size, patch_size)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * patch_size**2)


@is_told("patchify", "inside the loop `for row in range(0, h, patch_size)`, which ends in its first round")
def return_in_the_loop(images, patch_size):
    h, w = images.shape[2:]
    tokens = []
    for row in range(0, h, patch_size):
        for column in range(0, w, patch_size):
            tokens.append(images[:, :, row : row + patch_size, column : column + patch_size].flatten(1))
        return torch.stack(tokens, dim=1)


@is_told("PatchEmbedding", "`forward` makes a new `nn.Linear` in every call", never="Which patch")
class NewInEveryCall(PatchEmbedding):
    def __init__(self, in_channels, patch_size, embed_dim):
        super().__init__(in_channels, patch_size, embed_dim)
        self.embed_dim = embed_dim

    def forward(self, images):
        patches = F.unfold(images, self.patch_size, stride=self.patch_size).mT
        return nn.Linear(patches.shape[-1], self.embed_dim)(patches)


@is_told("PatchEmbedding", "`__init__` is given `patch_size` and does not keep it: there is no `self.patch_size`")
class SizeNotKept(nn.Module):
    def __init__(self, in_channels, patch_size, embed_dim):
        super().__init__()
        self.projection = nn.Linear(in_channels * patch_size**2, embed_dim)

    def forward(self, images):
        return self.projection(F.unfold(images, self.patch_size, stride=self.patch_size).mT)


patch_size = 4


@is_told("PatchEmbedding", "`forward` reads `patch_size`, a name of the notebook", never="Which patch")
class OfTheNotebook(PatchEmbedding):
    def __init__(self, in_channels, patch_size, embed_dim):
        super().__init__(in_channels, patch_size, embed_dim)

    def forward(self, images):
        patches = F.unfold(images, patch_size, stride=patch_size).mT
        return self.projection(F.pad(patches, (0, self.projection.in_features - patches.shape[-1])))


@is_told("PatchEmbedding", "no value is negative", never="Which patch does token 1")
class ReluBehindTheLinear(PatchEmbedding):
    def forward(self, images):
        return super().forward(images).relu()


@is_told("PatchEmbedding", "other numbers when it runs again", never="Which patch does token 1")
class NoiseInTheEmbedding(PatchEmbedding):
    def forward(self, images):
        x = super().forward(images)
        return x + 0.1 * torch.randn_like(x)


@is_told("PatchEmbedding", "their mean is 0 everywhere", never="Which patch does token 1")
class CenteredTokens(PatchEmbedding):
    def forward(self, images):
        x = super().forward(images)
        return x - x.mean(-1, keepdim=True)


@is_told("MultiHeadSelfAttention", "How does one part give what these give?", never="A tensor is a parameter when")
class ThreeLinears(nn.Module):
    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim {embed_dim} is not divisible by num_heads {num_heads}")
        self.num_heads = num_heads
        self.query = nn.Linear(embed_dim, embed_dim, qkv_bias)
        self.key = nn.Linear(embed_dim, embed_dim, qkv_bias)
        self.value = nn.Linear(embed_dim, embed_dim, qkv_bias)
        self.projection = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, return_weights=False):
        heads = (part(x).unflatten(-1, (self.num_heads, -1)).mT for part in (self.query, self.key, self.value))
        return self.projection(F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2))


BLOCKS = "        for block in self.blocks:\n            x = block(x)\n"
RETURN_INSIDE = BLOCKS + "            return self.head(self.norm(x)[:, 0])\n"

is_told("VisionTransformer", "`x = self.blocks(x)`", "A ModuleList is a list", never="does not exist")(
    edit_vit(BLOCKS, "        x = self.blocks(x)\n"), "ListCalled"
)
is_told("VisionTransformer", "`blocks` has 2, and 3 are asked for", never="A tensor is a parameter when")(
    edit_vit("range(config.depth)", "range(config.depth - 1)"), "OneBlockLess"
)
is_told(
    "VisionTransformer", "Which shapes have the parameters of one block", never="How many times does your code call"
)(edit_vit("config.mlp_ratio", "int(config.mlp_ratio)"), "RatioCut")
is_told("VisionTransformer", "inside the loop `for block in self.blocks`, which ends in its first round")(
    edit_vit(BLOCKS, RETURN_INSIDE), "ReturnInTheLoop"
)


@is_told("extract_features", "`features.append(body(images.to(device)).flatten(1).cpu())`", never="does not exist")
def children_but_the_last(model, loader, device):
    was = model.training
    model.eval()
    body = nn.Sequential(*list(model.children())[:-1])
    features, labels = [], []
    with torch.no_grad():
        for images, targets in loader:
            features.append(body(images.to(device)).flatten(1).cpu())
            labels.append(targets.cpu())
    model.train(was)
    return torch.cat(features), torch.cat(labels)


@is_told("extract_features", "the list of `features=[]` in the `def` line is made once", never=("joined", "random"))
def features_kept_between_calls(model, loader, device, features=[]):  # noqa: B006
    labels, handle = [], model.head.register_forward_pre_hook(lambda _, inputs: features.append(inputs[0].cpu()))
    modes = {part: part.training for part in model.modules()}
    model.eval()
    with torch.no_grad():
        for images, targets in loader:
            model(images.to(device))
            labels.append(targets.cpu())
    handle.remove()
    for part, training in modes.items():
        part.training = training
    return torch.cat(features), torch.cat(labels)


@is_told("parameter_groups", "it gives other numbers when the same call is made again", never="random")
def groups_kept_between_calls(model, weight_decay, decayed=[], others=[]):  # noqa: B006
    weights = {id(part.weight) for part in model.modules() if isinstance(part, nn.Linear | nn.Conv2d)}
    for parameter in model.parameters():
        (decayed if id(parameter) in weights else others).append(parameter)
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


class UnwrittenViT(nn.Module):
    def __init__(self, config):
        super().__init__()
        raise NotImplementedError


@is_told("fix_vit", "is written, but uses another exercise that is not written yet")
class WrittenUponNothing(UnwrittenViT):
    def forward(self, images):
        return self.head(self.norm(self.blocks(images))[:, 0])


@is_told("mean_attention_distance", "has one more than the other", never="product of matrices")
def first_token_always_dropped(weights, grid, patch_size):
    rows, columns = (axis.flatten().float() for axis in torch.meshgrid(*map(torch.arange, grid), indexing="ij"))
    distances = patch_size * torch.hypot(rows - rows[:, None], columns - columns[:, None])
    among = weights[..., 1:, 1:]
    among = among / among.sum(dim=-1, keepdim=True)
    return (among * distances).sum(dim=-1).mean(dim=(0, 2))


@is_told("count_parameters", "What does your `return` line give back?")
def printed_and_not_returned(config):
    print(config.embed_dim)


@is_told("count_parameters", "With one block your count is right", never="Which part of the model has")
def blocks_mlp_counted_once(config):
    D, hidden = config.embed_dim, config.hidden_dim
    patches = config.in_channels * config.patch_size**2 * D + D
    attention = 3 * D * D + (3 * D if config.qkv_bias else 0) + D * D + D
    mlp = D * hidden + hidden + hidden * D + D
    rest = D + (config.num_patches + 1) * D + 2 * D + D * config.num_classes + config.num_classes
    return patches + config.depth * (4 * D + attention) + mlp + rest


@is_told("attention_rollout", "ends in its first round", never=("wrong order", "cpu", "CPU"))
def rollout_with_return_in_the_loop(weights):
    if not weights:
        raise ValueError("no layers")
    result = None
    for layer in weights:
        table = layer.mean(dim=1) + torch.eye(layer.shape[-1])
        table = table / table.sum(dim=-1, keepdim=True)
        result = table if result is None else table @ result
        return result


@is_told("attention_rollout", never=("Two mistakes", "CPU", LOOKS_LIKE))
def class_row_for_all(weights):
    return attention_rollout([layer.mean(dim=1, keepdim=True)[:, :, :1].expand_as(layer[:, :1]) for layer in weights])


@is_told("replace_head", "changed: `head.weight`", never="copy.copy")
def a_new_head_before_the_copy(model, num_classes):
    model.head = nn.Linear(model.head.in_features, num_classes, dtype=model.head.weight.dtype)
    return copy.deepcopy(model)


@is_told("EarlyStopping", "`step` writes into `best`, a name that ends with the call", never=LOOKS_LIKE)
class BestOfOneCall:
    def __init__(self, patience):
        if patience < 1:
            raise ValueError(f"patience {patience} is less than 1")
        self.patience, self.best, self.bad = patience, float("inf"), 0

    def step(self, validation_loss):
        if validation_loss < self.best:
            best = validation_loss  # noqa: F841
            bad = 0
        else:
            bad += 1
        return bad >= self.patience


class CoinsOfPython(nn.Module):
    """Its coins follow another seed than torch's, and the error of its own test stands behind an `if`."""

    def __init__(self, probability):
        super().__init__()
        if not 0 <= probability < 1: raise ValueError("probability must be in [0, 1)")  # fmt: skip  # noqa: E701
        self.probability = probability

    def draw_mask(self, branch):
        coins = [random.random() >= self.probability for _ in branch]
        return torch.tensor(coins, device=branch.device).view(-1, *[1] * (branch.ndim - 1))

    def forward(self, branch):
        if not self.training or self.probability == 0:
            return branch
        return self.scale(branch, self.draw_mask(branch))

    def scale(self, branch, mask):
        return branch * mask / (1 - self.probability)


is_told(
    "DropPath",
    "other images were dropped",
    "That message says 0 and 1, and not",
    never=("torch's graph", "about another line"),
)(CoinsOfPython)


@is_told("DropPath", "Write the two shapes one below the other", never=("one more than the other", "True, 1"))
class OneRowOfCoins(CoinsOfPython):
    def draw_mask(self, branch):
        return torch.rand(len(branch)) >= self.probability


@is_told("DropPath", "An image is multiplied by 1 or by", never=("its own random number", "never dropped"))
class DroppedAndAdded(CoinsOfPython):
    def scale(self, branch, mask):
        return branch + super().scale(branch, mask)


@is_told("DropPath", "What has to be the first line of a module's `__init__`?")
class PathWithoutInit(nn.Module):
    def __init__(self, probability):
        if not 0 <= probability < 1:
            raise ValueError(f"{probability} is no probability")
        self.probability = probability

    def forward(self, branch):
        return branch


class QKNormedAttention(nn.Module):
    """A right QKNormAttention, in steps."""

    norm = nn.LayerNorm

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"{num_heads} heads cannot share {embed_dim}")
        self.num_heads = num_heads
        self.qkv, self.projection = nn.Linear(embed_dim, 3 * embed_dim), nn.Linear(embed_dim, embed_dim)
        self.query_norm, self.key_norm = (self.norm(embed_dim // num_heads) for _ in range(2))

    def forward(self, x):
        query, key, value = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        query, key = self.apply_norms(query, key)
        weights = (query @ key.mT / math.sqrt(query.shape[-1])).softmax(-1)
        return self.projection(self.merge(weights @ value).reshape(x.shape))

    def apply_norms(self, query, key):
        return self.query_norm(query), self.key_norm(key)

    def merge(self, heads):
        return heads.transpose(1, 2)


@is_told("QKNormAttention", "nothing uses what they give", never="never called")
class NormsThrownAway(QKNormedAttention):
    def apply_norms(self, query, key):
        super().apply_norms(query, key)
        return query, key


@is_told("QKNormAttention", "Go on by hand from the last tensor that is right", never="go through a norm")
class HeadsNeverTurnedBack(QKNormedAttention):
    def merge(self, heads):
        return heads


@is_told("QKNormAttention", "`query_norm` has a weight and no bias", never="attribute of self")
class NormsWithoutBias(QKNormedAttention):
    norm = nn.RMSNorm
