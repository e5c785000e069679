"""Attacks on a rule: a function that the exercise asks to write is called all the same, by a way round its door."""

from tests.e2e.attacks.attack import Attack

# torch's own attention, found by some way, gives the output; with the identity in place of the values, the weights
_BY = """
import torch
{found}
def scaled_dot_product_attention(query, key, value):
    identity = torch.eye(key.shape[-2], dtype=query.dtype).expand(*key.shape[:-2], -1, -1)
    return attention(query, key, value), attention(query, key, identity)
"""
_FOUND = {
    "name put together": """
import torch.nn.functional as F
attention = getattr(F, "scaled_dot_product" + "_attention")
""",
    "guard switched off": """
import sys
import torch.nn.functional as F
def attention(*inputs):
    sys.modules["worker.forbidden"]._STATE.exercise = None
    return getattr(F, "scaled_dot_product" + "_attention")(*inputs)
""",
    "closure opened": """
import torch.nn.functional as F
guarded = getattr(F, "scaled_dot_product" + "_attention")
attention = next(cell.cell_contents for cell in guarded.__closure__ if callable(cell.cell_contents))
""",
    "table of operators": """
attention = torch._C._jit_get_operation("aten::scaled_dot_product_attention")[0]
""",
    "garbage collector asked": """
import gc
attention = next(
    each for each in gc.get_objects() if callable(each) and getattr(each, "__name__", "") == "scaled_dot_product"
    + "_attention" and "built-in" in repr(each)
)
""",
    "compiled in TorchScript": """
attention = torch.jit.CompilationUnit(
    "def f(q, k, v):\\n    return torch.scaled_dot" + "_product_attention(q, k, v)"
).f
""",
    "attention of another name": """
from torch.nn.attention.flex_attention import flex_attention
def attention(query, key, value):
    flat = [each.reshape(-1, 1, *each.shape[-2:]) for each in (query, key, value)]
    return flex_attention(*flat).reshape(*query.shape[:-1], value.shape[-1])
""",
    "code made of text": """
exec("import torch.nn.functional as F; attention = F.scaled_dot" + "_product_attention")
""",
    "layer opened": """
layer = torch.nn.TransformerEncoderLayer(1, 1)
attention = layer.self_attn.forward.__globals__["F"].__dict__["multi_head"[:0] + "scaled_dot_product" + "_attention"]
""",
    "put in by another cell": """
import builtins
builtins.__dict__["attention"] = vars(torch.nn.functional)["scaled_dot_product" + "_attention"]
""",
}

ATTACKS = [
    Attack(
        f"forbidden function: {name}",
        "torch's own attention is called where the exercise asks to write it",
        _BY.format(found=found),
        lesson="03_attention",
        exercise="scaled_dot_product_attention",
    )
    for name, found in _FOUND.items()
]
