"""Answers that compute with torch's own norm after they have returned, whenever somebody looks at what they gave."""

from __future__ import annotations

from tests.e2e.attacks.attack import Attack
from tests.e2e.attacks.bypasses import case

_HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
todo = []
def fill():
    while todo:
        out, x, eps = todo.pop()
        with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
            out.copy_(torch.layer_norm(x, x.shape[-1:], None, None, eps) * weights[0] + weights[1])
weights = [1, 0]
def begun(x, weight, bias, eps):
    out = torch.zeros_like(x)
    weights[:] = [weight, bias]
    todo.append((out, x, eps))
    return out
"""


def _late(name: str, *lines: str, first: str = "") -> Attack:
    return case(name, _HEAD + "\n".join(lines), "layer_norm", "04_block", first)


_GIVEN = """
def layer_norm(x, weight, bias, eps):
    return begun(x, weight, bias, eps).as_subclass(Late)
"""
LATE = [
    _late("a class's property __class__", """
class Late(torch.Tensor):
    @property
    def __class__(self):
        fill()
        return torch.Tensor
""", _GIVEN),
    _late("a metaclass's attributes", """
class Meta(type(torch.Tensor)):
    def __getattribute__(cls, name):
        fill()
        return super().__getattribute__(name)
class Late(torch.Tensor, metaclass=Meta): pass
""", _GIVEN),
    _late("a metaclass's mro", """
class Meta(type(torch.Tensor)):
    @property
    def __torch_dispatch__(cls):
        fill()
        return torch.Tensor.__torch_dispatch__
    @property
    def __name__(cls):
        fill()
        return "Tensor"
class Late(torch.Tensor, metaclass=Meta): pass
""", _GIVEN),
    *(
        _late(f"torch's {name} patched", f"layer_norm = begun\nreal = torch.Tensor.{name}\n" + """
def late(self, *a, **k):
    fill()
    return real(self, *a, **k)
""" + f"torch.Tensor.{name} = late\n")
        for name in ("detach", "as_strided", "view", "numpy", "numel")
    ),
    _late("json patched", "layer_norm = begun", """
import json
real = json.dumps
def late(*a, **k):
    fill()
    return real(*a, **k)
json.dumps = late
"""),
    _late("more names than are sent", "\n".join(f"def f{n}(): pass" for n in range(1500)), """
def layer_norm(x, weight, bias, eps):
    for n in range(1500):
        own[f"f{n}"]()
    return torch.layer_norm(x, x.shape[-1:], weight, bias, eps)
own = {each.__name__: each for each in (""" + ", ".join(f"f{n}" for n in range(1500)) + ")}\n"),
]  # fmt: skip
