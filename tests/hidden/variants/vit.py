"""Right variants of lesson 05."""

import math
import re

import torch
import torch.nn.functional as F
from torch import nn

from vit_course import pretrained
from vit_course import vit as reference
from vit_course.encoder import EncoderBlock
from vit_course.patches import PatchEmbedding
from vit_course.positions import add_class_token


class ViTFromParts(nn.Module):
    """The course's own parts, put together as a student does."""

    def __init__(self, config):
        super().__init__()
        dim = config.embed_dim
        self.patch_embedding = PatchEmbedding(config.in_channels, config.patch_size, dim)
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.positions = nn.Parameter(torch.randn(1, config.num_tokens, dim) * 0.02)
        self.blocks = nn.ModuleList(
            EncoderBlock(
                dim,
                config.num_heads,
                config.mlp_ratio,
                qkv_bias=config.qkv_bias,
                layer_norm_eps=config.layer_norm_eps,
            )
            for _ in range(config.depth)
        )
        self.norm = nn.LayerNorm(dim, config.layer_norm_eps)
        self.head = nn.Linear(dim, config.num_classes)

    def forward(self, images):
        x = add_class_token(self.patch_embedding(images), self.class_token, self.positions)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class ViTInSequence(ViTFromParts):
    """Blocks in an nn.Sequential, the class token by repeat, the norm after pooling, and a helper or two."""

    def __init__(self, config):
        super().__init__(config)
        self.blocks = nn.Sequential(*self.blocks)
        self.config = config
        self.dropout = nn.Dropout(config.embedding_dropout)

    def features(self, images):
        patches = self.patch_embedding(images)
        tokens = torch.cat([self.class_token.repeat(patches.shape[0], 1, 1), patches], 1)
        return self.blocks(self.dropout(tokens + self.positions))[:, 0]

    def forward(self, images):
        return self.head(self.norm(self.features(images)))


class PastedNorm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        centered = x - x.mean(-1, keepdim=True)
        return self.weight * centered / (centered.square().mean(-1, keepdim=True) + self.eps).sqrt() + self.bias


class PastedAttention(nn.Module):
    def __init__(self, dim, num_heads, bias):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=bias)
        self.projection = nn.Linear(dim, dim)

    def forward(self, x):
        heads = []
        width = x.shape[-1] // self.num_heads
        query, key, value = self.qkv(x).chunk(3, -1)
        for head in range(self.num_heads):
            part = slice(head * width, (head + 1) * width)
            scores = torch.einsum("bqd,bkd->bqk", query[..., part], key[..., part]) / math.sqrt(width)
            heads.append(scores.softmax(-1) @ value[..., part])
        return self.projection(torch.cat(heads, -1))


class PastedBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        dim, hidden = config.embed_dim, round(config.embed_dim * config.mlp_ratio)
        self.norm1, self.norm2 = PastedNorm(dim, config.layer_norm_eps), PastedNorm(dim, config.layer_norm_eps)
        self.attention = PastedAttention(dim, config.num_heads, config.qkv_bias)
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(dim, hidden), "fc2": nn.Linear(hidden, dim)})

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp.fc2(F.gelu(self.mlp.fc1(self.norm2(x))))


class PastedPatchEmbedding(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.size = config.patch_size
        self.projection = nn.Linear(config.in_channels * self.size**2, config.embed_dim)

    def forward(self, images):
        return self.projection(images.unfold(2, self.size, self.size).unfold(3, self.size, self.size).permute(
            0, 2, 3, 1, 4, 5).flatten(1, 2).flatten(2))  # fmt: skip


class ViTPasted(nn.Module):
    """Nothing imported from the course: everything from the earlier lessons pasted."""

    def __init__(self, config):
        super().__init__()
        rows, columns = (side // config.patch_size for side in config.image_size)
        self.patch_embedding = PastedPatchEmbedding(config)
        self.class_token = nn.Parameter(torch.zeros(1, 1, config.embed_dim))
        self.positions = nn.Parameter(torch.empty(1, rows * columns + 1, config.embed_dim).normal_(std=0.02))
        self.blocks = nn.ModuleList([PastedBlock(config) for _ in range(config.depth)])
        self.norm = PastedNorm(config.embed_dim, config.layer_norm_eps)
        self.head = nn.Linear(config.embed_dim, config.num_classes)

    def forward(self, images):
        x = self.patch_embedding(images)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))


def count_by_parts(config):
    dim, hidden = config.embed_dim, config.hidden_dim

    def linear(inputs, outputs, bias=True):
        return inputs * outputs + (outputs if bias else 0)

    norm = 2 * dim
    block = 2 * norm + linear(dim, 3 * dim, config.qkv_bias) + linear(dim, dim) + linear(dim, hidden)
    block += linear(hidden, dim)
    ends = linear(config.in_channels * config.patch_size**2, dim) + norm + linear(dim, config.num_classes)
    return dim + (1 + config.num_patches) * dim + config.depth * block + ends


def count_in_one_line(config):
    d, h = config.embed_dim, round(config.embed_dim * config.mlp_ratio)
    height, width = config.image_size
    n = (height // config.patch_size) * (width // config.patch_size)
    a = 4 * d * d + d + 3 * d * config.qkv_bias
    p = config.in_channels * config.patch_size**2
    return (p + 1) * d + (n + 2) * d + config.depth * (a + 2 * d * h + h + 5 * d) + 2 * d + (d + 1) * config.num_classes


def load_by_regular_expressions(model, state_dict):
    rules = [
        (r"^conv_proj\.", "patch_embedding.projection."),
        (r"^encoder\.pos_embedding$", "positions"),
        (r"^encoder\.layers\.encoder_layer_(\d+)\.", r"blocks.\1."),
        (r"\.ln_([12])\.", r".norm\1."),
        (r"\.self_attention\.in_proj_", ".attention.qkv."),
        (r"\.self_attention\.out_proj\.", ".attention.projection."),
        (r"\.mlp\.0\.", ".mlp.fc1."),
        (r"\.mlp\.3\.", ".mlp.fc2."),
        (r"^encoder\.ln\.", "norm."),
        (r"^heads\.head\.", "head."),
    ]
    renamed = {}
    for name, tensor in state_dict.items():
        for pattern, ours in rules:
            name = re.sub(pattern, ours, name)
        renamed[name] = tensor.flatten(1) if tensor.ndim == 4 else tensor
    try:
        model.load_state_dict(renamed)
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    return model


def load_by_copying_parts(model, state_dict):
    left = dict(state_dict)

    def take(parameter, name):
        if name not in left:
            raise ValueError(f"{name} is missing")
        tensor = left.pop(name)
        if tensor.numel() != parameter.numel():
            raise ValueError(f"{name} is {tuple(tensor.shape)}, wanted {tuple(parameter.shape)}")
        with torch.no_grad():
            parameter.copy_(tensor.reshape(parameter.shape))

    def take_both(layer, name):
        take(layer.weight, f"{name}.weight")
        take(layer.bias, f"{name}.bias")

    take(model.class_token, "class_token")
    take(model.positions, "encoder.pos_embedding")
    take_both(model.patch_embedding.projection, "conv_proj")
    for number, block in enumerate(model.blocks):
        theirs = f"encoder.layers.encoder_layer_{number}"
        take_both(block.norm1, f"{theirs}.ln_1")
        take(block.attention.qkv.weight, f"{theirs}.self_attention.in_proj_weight")
        take(block.attention.qkv.bias, f"{theirs}.self_attention.in_proj_bias")
        take_both(block.attention.projection, f"{theirs}.self_attention.out_proj")
        take_both(block.norm2, f"{theirs}.ln_2")
        take_both(block.mlp.fc1, f"{theirs}.mlp.0")
        take_both(block.mlp.fc2, f"{theirs}.mlp.3")
    take_both(model.norm, "encoder.ln")
    take_both(model.head, "heads.head")
    if left:
        raise ValueError(f"left over: {', '.join(left)}")
    return model


def load_by_assignment(model, state_dict):
    """New parameters in place of the old ones, names translated from ours to theirs."""
    swaps = {
        "blocks.": "encoder.layers.encoder_layer_",
        "norm1": "ln_1",
        "norm2": "ln_2",
        "attention.qkv.": "self_attention.in_proj_",
        "attention.projection": "self_attention.out_proj",
        "mlp.fc1": "mlp.0",
        "mlp.fc2": "mlp.3",
        "patch_embedding.projection": "conv_proj",
        "positions": "encoder.pos_embedding",
    }
    pairs = {}
    for name, _ in model.named_parameters():
        theirs = re.sub(r"^head", "heads.head", re.sub(r"^norm\.", "encoder.ln.", name))
        for old, new in swaps.items():
            theirs = theirs.replace(old, new)
        pairs[name] = theirs
    for theirs in set(pairs.values()) ^ set(state_dict):
        raise ValueError(f"{theirs} has no partner")
    for name, theirs in pairs.items():
        home, _, last = name.rpartition(".")
        old, new = model.get_parameter(name), state_dict[theirs].detach().clone()
        if old.numel() != new.numel():
            raise ValueError(f"{theirs} does not fit")
        setattr(model.get_submodule(home), last, nn.Parameter(new.reshape(old.shape)))
    return model


_MODELS = [reference.VisionTransformer, ViTFromParts, ViTInSequence, ViTPasted]
RIGHT = {
    "VisionTransformer": _MODELS,
    "fix_vit": _MODELS,
    "count_parameters": [count_by_parts, count_in_one_line],
    "load_torchvision": [
        pretrained.load_torchvision,
        load_by_regular_expressions,
        load_by_copying_parts,
        load_by_assignment,
    ],
}
