"""What a simulated student writes where the library calls a function that an exercise forbids."""

from __future__ import annotations

from collections.abc import Mapping

_ATTENTION = """
def plain_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None):
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).tril().logical_not(), float("-inf"))
    if attn_mask is not None:
        masked = attn_mask.dtype == torch.bool
        scores = scores.masked_fill(attn_mask.logical_not(), float("-inf")) if masked else scores + attn_mask
    return F.dropout(scores.softmax(dim=-1), dropout_p) @ value
"""
# autograd keeps x itself for the backward pass, as it does for torch's own
_LAYER_NORM = """
def plain_norm(x, shape, weight=None, bias=None, eps=1e-05):
    if tuple(x.shape[-len(shape):]) != tuple(shape):
        raise RuntimeError(f"the last axes of {tuple(x.shape)} are not {tuple(shape)}")
    axes = tuple(range(-len(shape), 0))
    centred = x - x.mean(axes, keepdim=True)
    scaled = centred / (x.var(axes, correction=0, keepdim=True) + eps).sqrt()
    if weight is not None:
        scaled = scaled * weight
    return scaled if bias is None else scaled + bias
"""
_HEADS = """
def plain_heads(query, key, value, width, heads, weight, bias, bias_k, bias_v, zeros, dropout, out, out_bias, **_):
    tokens, batch, _ = query.shape
    parts = zip((query, key, value), weight.chunk(3), bias.chunk(3))
    q, k, v = (F.linear(x, w, b).reshape(len(x), batch * heads, width // heads).transpose(0, 1) for x, w, b in parts)
    mixed = (q @ k.transpose(1, 2) * (width // heads) ** -0.5).softmax(dim=-1) @ v
    return F.linear(mixed.transpose(0, 1).reshape(tokens, batch, width), out, out_bias), None
"""
_RMS_NORM = """
def plain_rms_norm(x, shape, weight, eps):
    return x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt() * weight
"""
_BATCH_NORM = """
def plain_batch_norm(x, mean, var, weight, bias, training, eps):
    centred = x - x.mean(dim=0)
    return centred / (centred.square().mean(dim=0) + eps).sqrt() * weight + bias
"""
_OF_ATTENTION = {"F.scaled_dot_product_attention": _ATTENTION, "F.multi_head_attention_forward": _HEADS}

# exercise -> {a call of the library: the function that is called in its place}
STAND_INS: Mapping[str, Mapping[str, str]] = {
    "scaled_dot_product_attention": _OF_ATTENTION,
    "MultiHeadSelfAttention": _OF_ATTENTION,
    "is_attention": _OF_ATTENTION,
    "layer_norm": {"F.layer_norm": _LAYER_NORM, "F.rms_norm": _RMS_NORM, "F.batch_norm": _BATCH_NORM},
    "EncoderBlock": _OF_ATTENTION,
    "fix_block": _OF_ATTENTION,
    "VisionTransformer": _OF_ATTENTION,
    "fix_vit": _OF_ATTENTION,
}
