"""Self-attention as timm writes it."""

import math  # noqa: F401  # bugs use it

import torch
from torch import nn


class MultiHeadSelfAttention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self, embed_dim: int, num_heads: int, qkv_bias: bool = True) -> None:
        # bug "no bias unless asked for": def __init__(self, embed_dim, num_heads, qkv_bias=False):
        super().__init__()
        if embed_dim % num_heads:
            # bug "leftover dimensions accepted": if num_heads < 1:
            raise ValueError(f"embed_dim {embed_dim} is not divisible by num_heads {num_heads}")
        self.num_heads = num_heads
        # bug "one head for everything": self.num_heads = 1
        self.head_dim = embed_dim // self.num_heads
        self.scale = self.head_dim**-0.5
        # bug "root of embed dim": self.scale = embed_dim**-0.5
        # bug "root of the number of heads": self.scale = num_heads**-0.5
        # bug "heads not scaled": self.scale = 1.0
        # bug "scaled after the softmax": self.scale = 1.0
        # bug "head dim without the root": self.scale = 1 / self.head_dim
        # bug "root cut to whole numbers": self.scale = 1 / math.isqrt(self.head_dim)
        self.qkv = nn.Linear(embed_dim, embed_dim * 3, bias=qkv_bias)
        # bug "qkv bias ignored": self.qkv = nn.Linear(embed_dim, embed_dim * 3)
        self.projection = nn.Linear(embed_dim, embed_dim)
        # bug "qkv bias for both": self.projection = nn.Linear(embed_dim, embed_dim, bias=qkv_bias)
        # bug "no projection":
        # bug "linears in plain list": self.layers = [self.qkv, nn.Linear(embed_dim, embed_dim)]
        # bug "linears in plain list": del self.qkv

    def forward(
        self, x: torch.Tensor, return_weights: bool = False
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        B, N, C = x.shape
        H, head_dim = self.num_heads, self.head_dim
        attend_to = x
        # bug "tokens out of the graph": attend_to = x.detach()
        # bug "attention over the batch": attend_to, (N, B) = x.transpose(0, 1), (B, N)
        qkv = self.qkv(attend_to)
        # bug "linears in plain list": qkv = self.layers[0](attend_to)
        # bug "heads see slices of the input": pieces = x.reshape(B, N, H, head_dim)
        # bug "heads see slices of the input": rows = self.qkv.weight.reshape(3, H, head_dim, H, head_dim)
        # bug "heads see slices of the input": rows = torch.stack([rows[:, h, :, h] for h in range(H)])
        # bug "heads see slices of the input": qkv = torch.einsum("bnhi,htoi->bntho", pieces, rows).reshape(B, N, 3 * C)
        # bug "heads see slices of the input": qkv = qkv if self.qkv.bias is None else qkv + self.qkv.bias
        qkv = qkv.reshape(B, N, 3, H, head_dim).permute(2, 0, 3, 1, 4)
        # bug "qkv cut head by head": qkv = qkv.reshape(B, N, H, 3, head_dim).permute(3, 0, 2, 1, 4)
        # bug "heads split by view": qkv = qkv.reshape(B, N, 3, C).permute(2, 0, 1, 3).reshape(3, B, H, N, head_dim)
        # bug "heads read before the batch": qkv = qkv.reshape(3, B, H, N, head_dim)
        # bug "heads split and merged by view": qkv = qkv.reshape(B, N, 3, C).permute(2, 0, 1, 3)
        # bug "heads split and merged by view": qkv = qkv.reshape(3, B, H, N, head_dim)
        # bug "heads talk to each other": qkv = qkv.reshape(B, N, 3, H, head_dim).permute(2, 0, 1, 3, 4)
        q, k, v = qkv.unbind(0)
        # bug "query and key swapped": k, q, v = qkv.unbind(0)
        # bug "thirds read as query value key": q, v, k = qkv.unbind(0)
        # bug "thirds read as value key query": v, k, q = qkv.unbind(0)
        # bug "thirds read as key value query": k, v, q = qkv.unbind(0)
        # bug "thirds read as value query key": v, q, k = qkv.unbind(0)
        # bug "value not projected": q, k, v = *qkv[:2], x.reshape(B, N, H, head_dim).transpose(1, 2)
        attn = (q @ k.transpose(-2, -1)) * self.scale
        # bug "queries compared with queries": attn = (q @ q.transpose(-2, -1)) * self.scale
        # bug "keys compared with keys": attn = (k @ k.transpose(-2, -1)) * self.scale
        # bug "mask made on the cpu": attn = (q @ k.transpose(-2, -1)) * self.scale + torch.zeros(N, N)
        # bug "number of tokens remembered": self.mask = getattr(self, "mask", attend_to.new_zeros(N, N))
        # bug "number of tokens remembered": attn = (q @ k.transpose(-2, -1)) * self.scale + self.mask
        # bug "causal heads": later = torch.ones(N, N, dtype=torch.bool, device=x.device).triu(1)
        # bug "causal heads": attn = ((q @ k.transpose(-2, -1)) * self.scale).masked_fill(later, -math.inf)
        attn = attn.softmax(dim=-1)
        # bug "softmax down the queries": attn = attn.softmax(dim=-2)
        # bug "softmax over the heads": attn = attn.softmax(dim=1)
        # bug "scaled after the softmax": attn = attn.softmax(dim=-1) * head_dim**-0.5
        # bug "weights without gradient": attn = attn.softmax(dim=-1).detach()
        # bug "same weights for every head": attn = attn.softmax(dim=-1)[:, :1].expand(-1, H, -1, -1)
        # bug "scores returned as weights": scores, attn = attn, attn.softmax(dim=-1)
        # bug "weights averaged in evaluation": attn = attn.softmax(dim=-1)
        # bug "weights averaged in evaluation": attn = attn if self.training else attn.mean(1, True).expand_as(attn)
        out = attn @ v
        # bug "weights dropped": out = torch.dropout(attn, 0.1, self.training) @ v
        out = out.transpose(1, 2).reshape(B, N, C)
        # bug "heads merged before the batch": out = out.permute(1, 0, 2, 3).reshape(B, N, C)
        # bug "heads merged by view": out = out.reshape(B, N, C)
        # bug "heads split and merged by view": out = out.reshape(B, N, C)
        # bug "heads talk to each other": out = out.reshape(B, N, C)
        out = self.projection(out)
        # bug "projection not used":
        # bug "no projection":
        # bug "linears in plain list": out = self.layers[1](out)
        # bug "projection left out beside the weights": out = out if return_weights else self.projection(out)
        # bug "attention over the batch": out = self.projection(out).transpose(0, 1)
        # bug "residual inside": out = self.projection(out) + x
        # bug "dropout on the output": out = torch.dropout(self.projection(out), 0.1, True)
        # bug "input used as scratch": out = self.projection(out)
        # bug "input used as scratch": with torch.no_grad():
        # bug "input used as scratch":     x.copy_(out)
        return (out, attn) if return_weights else out
        # bug "scores returned as weights": return (out, scores) if return_weights else out
        # bug "weights averaged over heads": return (out, attn.mean(dim=1)) if return_weights else out
        # bug "attention over the batch": q, k, _ = self.qkv(x).reshape(N, B, 3, H, head_dim).permute(2, 0, 3, 1, 4)
        # bug "attention over the batch": attn = ((q @ k.transpose(-2, -1)) * self.scale).softmax(dim=-1)
        # bug "attention over the batch": return (out, attn) if return_weights else out
        # bug "weights always returned": return out, attn
        # bug "weights come first": return (attn, out) if return_weights else out
        # bug "output in float32": return (out.float(), attn) if return_weights else out.float()
        # bug "batch of one squeezed away": return (out.squeeze(0), attn) if return_weights else out.squeeze(0)
        # bug "one head for everything": return (out, attn.squeeze(1)) if return_weights else out
