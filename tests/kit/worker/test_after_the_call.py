"""What a student's code calls behind its call, when the worker looks at what it gave, is noted or never runs."""

from __future__ import annotations

import pytest
import torch

NORM = "torch.ops.aten.layer_norm"
HEAD = """
import torch
from torch import nn
runs = []
def forbidden(*_, **__):
    runs.append(1)
    torch.layer_norm(torch.ones(2, 3), (3,))
def ran(): return len(runs)
"""
X = torch.ones(2, 3)


def call(worker, name="f", *inputs, **fields):
    return worker.request("call", name=name, inputs=inputs, **fields)


SUBCLASSES = {
    "a property __class__": "class Late(torch.Tensor):\n    __class__ = property(forbidden)",
    "a property __dict__": "class Late(torch.Tensor):\n    __dict__ = property(forbidden)",
    "__getattribute__": "class Late(torch.Tensor):\n    def __getattribute__(self, name):\n        forbidden()\n"
    "        return super().__getattribute__(name)",
    "methods": "class Late(torch.Tensor):\n    detach = numel = shape = dtype = requires_grad = property(forbidden)\n"
    "    __mul__ = __len__ = __iter__ = __eq__ = __hash__ = __repr__ = __bool__ = forbidden",
    "a metaclass": """
class Meta(type(torch.Tensor)):
    def __getattribute__(cls, name):
        forbidden()
        return type.__getattribute__(cls, name)
    __instancecheck__ = __eq__ = __hash__ = forbidden
class Late(torch.Tensor, metaclass=Meta): pass
""",
    "a metaclass's properties": """
class Meta(type(torch.Tensor)):
    __name__ = __mro__ = __torch_dispatch__ = property(forbidden)
class Late(torch.Tensor, metaclass=Meta): pass
""",
}


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("subclass", SUBCLASSES.values(), ids=SUBCLASSES)
def test_a_subclass_is_read_without_running_anything_of_its_own(harness, subclass, gradients):
    answer = """
def f(x):
    late = torch._C.TensorBase.as_subclass(x * 2, Late)
    runs.clear()
    return late
"""
    worker = harness.with_cell(HEAD + subclass + answer)
    worker.watch(True)
    got = call(worker, "f", X, gradients=gradients)
    assert torch.equal(got["result"].detach(), X * 2)
    assert [each.shape for each in got.get("gradients", ())] == [X.shape] * gradients
    assert call(worker, "ran")["result"] == 0


LATE = {
    "a text": "class Late:\n    __repr__ = forbidden\ndef f(x): return Late()",
    "an exception's words": "class Late(Exception):\n    __str__ = forbidden\ndef f(x): raise Late",
    "the end of an object": "class Late(list):\n    __del__ = forbidden\ndef f(x): return Late()",
    "a hook of a gradient": "def f(x):\n    y = x * 2\n    y.register_hook(forbidden)\n    return y",
    "a coroutine's end": """
class Wait:
    def __await__(self): yield
async def later():
    try:
        await Wait()
    finally:
        forbidden()
def f(x):
    waiting = later()
    waiting.send(None)
    return waiting
""",
    "json": "import json\nreal = json.dumps\ndef f(x):\n    json.dumps = late\n    return x\n"
    "def late(*a, **k):\n    json.dumps = real\n    forbidden()\n    return real(*a, **k)",
    "a tensor's method": "real = torch.Tensor.detach\ndef f(x):\n    return x\n"
    "def late(*a):\n    forbidden()\n    return real(*a)\ntorch.Tensor.detach = late",
}


@pytest.mark.parametrize("answer", LATE.values(), ids=LATE)
def test_what_runs_while_a_result_is_packed_is_noted(harness, answer):
    worker = harness.with_cell(HEAD + answer)
    worker.watch(True)
    call(worker, "f", X, gradients=True)
    ran = call(worker, "ran")["result"]  # which also tells what ran when the first frame had gone
    assert (NORM in worker.called) == (ran > 0)
    assert ran or "detach" in answer, "torch's own types are asked, whatever a cell puts in their place"


def test_an_operator_of_its_own_is_not_called(harness):
    answer = "class Late(torch.Tensor):\n    __torch_dispatch__ = classmethod(forbidden)\n"
    make = "torch.Tensor._make_wrapper_subclass(Late, x.shape, dtype=x.dtype, requires_grad=True)"
    worker = harness.with_cell(f"{HEAD}{answer}def f(x):\n    y = {make}\n    runs.clear()\n    return y")
    worker.watch(True)
    assert call(worker, "f", X, gradients=True)["result"].kind == "Tensor"
    assert call(worker, "ran")["result"] == 0


MODULE = """
class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
    def forward(self, x): return self.linear(x)
    def late(name):
        def method(self, *inputs, **options):
            forbidden()
            return getattr(super(Odd, self), name)(*inputs, **options)
        return method
"""
METHODS = {
    "state_dict": [("parameters", {}), ("state", {})],
    "train": [("mode", {"training": False})],
    "to": [("cast", {"dtype": torch.float64})],
    "named_modules": [("parts", {"names": ["linear"], "inputs": (X,)})],
}


@pytest.mark.parametrize("method", METHODS)
def test_a_module_s_own_methods_are_watched(harness, method):
    worker = harness.with_cell(f"{HEAD}{MODULE}    {method} = late({method!r})")
    worker.watch(True)
    number = worker.request("build", name="Odd", inputs=())["module"]
    for kind, fields in METHODS[method]:
        worker.watch(True)
        assert "raised" not in worker.request(kind, module=number, **fields)
        assert NORM in worker.called, kind


@pytest.mark.parametrize("where", ["named_parameters", "parameters", "_named_members"])
def test_a_module_s_parameters_are_read_without_its_methods(harness, where):
    worker = harness.with_cell(f"{HEAD}{MODULE}    {where} = late({where!r})")
    number = worker.request("build", name="Odd", inputs=())["module"]
    worker.request("forward", module=number, inputs=(X,))
    gradients = worker.request("backward", module=number, cotangents=[X])["gradients"]
    assert set(gradients) == {"linear.weight", "linear.bias"}
    assert call(worker, "ran")["result"] == 0


def test_a_part_that_is_called_for_its_inputs_is_watched(harness):
    worker = harness.with_cell(HEAD + "Odd = nn.TransformerEncoderLayer")
    worker.watch(True)
    number = worker.request("build", name="Odd", inputs=(4, 2))["module"]
    worker.watch(True)
    worker.request("parts", module=number, names=["norm1"], inputs=(torch.ones(2, 3, 4),))
    assert "torch.nn.modules.transformer.TransformerEncoderLayer" in worker.called


def test_however_many_names_are_noted_they_arrive(harness):
    answers = "".join(f"def f{n}(): pass\n" for n in range(1500))
    calls = "".join(f"    f{n}()\n" for n in range(1500))
    worker = harness.with_cell(f"{HEAD}{answers}def f(x):\n{calls}    forbidden()\n    return x")
    worker.watch(True)
    call(worker, "f", X)
    assert NORM in worker.called


def test_parameters_are_what_they_are(harness):
    worker = harness.with_cell(HEAD + "def f(x): return nn.Parameter(x * 2), [nn.Parameter(x)], torch.Size([2])")
    worker.watch(True)
    (first, second, size) = call(worker, "f", X, gradients=True)["result"]
    assert torch.equal(first.detach(), X * 2)
    assert first.requires_grad
    assert second[0].requires_grad
    assert size == (2,)
