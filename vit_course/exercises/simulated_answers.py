"""What simulated students of the course write: what torch does and they may not call, and answers to questions."""

from __future__ import annotations

from exercise_kit.engine.course import Simulation

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
    centered = x - x.mean(axes, keepdim=True)
    scaled = centered / (x.var(axes, correction=0, keepdim=True) + eps).sqrt()
    if weight is not None:
        scaled = scaled * weight
    return scaled if bias is None else scaled + bias
"""
_HEADS = """
def plain_heads(query, key, value, width, heads, weight, bias, bias_k, bias_v, zeros, dropout, out, out_bias, **_):
    tokens, batch, _ = query.shape
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    parts = zip((query, key, value), weight.chunk(3), biases)
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
    centered = x - x.mean(dim=0)
    return centered / (centered.square().mean(dim=0) + eps).sqrt() * weight + bias
"""
_OF_ATTENTION = {"F.scaled_dot_product_attention": _ATTENTION, "F.multi_head_attention_forward": _HEADS}

_STAND_INS = {
    "scaled_dot_product_attention": _OF_ATTENTION,
    "MultiHeadSelfAttention": _OF_ATTENTION,
    "is_attention": _OF_ATTENTION,
    "layer_norm": {"F.layer_norm": _LAYER_NORM, "F.rms_norm": _RMS_NORM, "F.batch_norm": _BATCH_NORM},
    "EncoderBlock": _OF_ATTENTION,
    "fix_block": _OF_ATTENTION,
    "VisionTransformer": _OF_ATTENTION,
    "fix_vit": _OF_ATTENTION,
}
_SHORT_ANSWERS = (
    "Because the cost grows with the square of the number of tokens, so twice as many tokens are four times the work.",
    "I think it would still learn, only slower. I did not have time to run the experiment twice.",
    "Das Modell sieht dann nicht mehr, *wo* ein Patch liegt, nur noch, *dass* er da ist.",
    "Не уверена, но думаю, что дело в порядке осей.",
    "Otherwise $\\sqrt{d}$ would be too large and the softmax saturates.",
    "我认为是因为它们的尺度不同。",
    "no idea, sorry",
)

SIMULATION = Simulation(_STAND_INS, _SHORT_ANSWERS)
