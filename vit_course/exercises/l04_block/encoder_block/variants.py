"""Right answers in other styles: what no check may refuse."""

import torch
import torch.nn.functional as F
from torch import nn

from vit_course import encoder as reference
from vit_course.attention import MultiHeadSelfAttention
from vit_course.exercises.l04_block.layer_norm.variants import layer_norm_in_the_lesson
from vit_course.exercises.l04_block.mlp.variants import MlpWithErf, MlpWithModuleAndDropout


class BlockOfTheLesson(nn.Module):
    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0, qkv_bias=True, layer_norm_eps=1e-6):
        super().__init__()
        self.norm1 = nn.LayerNorm(embed_dim, eps=layer_norm_eps)
        self.attention = MultiHeadSelfAttention(embed_dim, num_heads, qkv_bias)
        self.norm2 = nn.LayerNorm(embed_dim, eps=layer_norm_eps)
        self.mlp = MlpWithErf(embed_dim, int(embed_dim * mlp_ratio))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class BlockInOneExpression(BlockOfTheLesson):
    def forward(self, x):
        return (after := x + self.attention(self.norm1(x))) + self.mlp(self.norm2(after))


class BlockOnACopy(BlockOfTheLesson):
    """In place, but on a tensor of its own, and where the gradient needs nothing of it."""

    def forward(self, x):
        stream = x.clone()
        stream = torch.add(stream, self.attention(self.norm1(stream)))
        update = self.mlp(self.norm2(stream.clone()))
        stream += update
        return stream


class NormByHand(nn.Module):
    def __init__(self, embed_dim, eps):
        super().__init__()
        self.eps = eps
        self.weight, self.bias = nn.Parameter(torch.ones(embed_dim)), nn.Parameter(torch.zeros(embed_dim))

    def forward(self, x):
        return layer_norm_in_the_lesson(x, self.weight, self.bias, self.eps)


class BlockOfHandMadeParts(nn.Module):
    """Norms by hand, attention head by head, dropouts of zero, a depth to print, and a summary to look at."""

    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0, qkv_bias=True, layer_norm_eps=1e-6, dropout=0.0):
        super().__init__()
        self.mlp = MlpWithModuleAndDropout(embed_dim, round(embed_dim * mlp_ratio), dropout)
        self.attention = HeadByHead(embed_dim, num_heads, qkv_bias)
        self.norm2, self.norm1 = NormByHand(embed_dim, layer_norm_eps), NormByHand(embed_dim, layer_norm_eps)
        self.drop_path = nn.Identity()
        self.last_norms = []

    def forward(self, x, mask=None):
        for norm, branch in ((self.norm1, self.attention), (self.norm2, self.mlp)):
            self.last_norms.append(x.detach().norm())
            x = x + self.drop_path(branch(norm(x)))
        return x


class HeadByHead(nn.Module):
    def __init__(self, embed_dim, num_heads, qkv_bias):
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.projection = nn.Linear(embed_dim, 3 * embed_dim, qkv_bias), nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        parts = [part.chunk(self.num_heads, dim=-1) for part in self.qkv(x).chunk(3, dim=-1)]
        heads = [F.scaled_dot_product_attention(query, key, value) for query, key, value in zip(*parts, strict=True)]
        return self.projection(torch.cat(heads, dim=-1))


_BLOCKS = [reference.EncoderBlock, BlockOfTheLesson, BlockInOneExpression, BlockOnACopy, BlockOfHandMadeParts]


RIGHT = {"EncoderBlock": _BLOCKS, "fix_block": _BLOCKS}
