"""What the judge may ask of the functions and classes that cells defined."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from exercise_kit.sandbox.remote_backend import RemoteStudent
from vit_course.config import ViTConfig

IMPORTS = "import torch\nfrom torch import nn\n"
LAYER = (
    IMPORTS
    + """
class Layer(nn.Module):
    def __init__(self, width, scale=1.0):
        super().__init__()
        self.linear = nn.Linear(width, 2)
        self.unused = nn.Parameter(torch.zeros(3))
        self.register_buffer("scale", torch.tensor(scale))
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.linear(x)) * self.scale
"""
)


def call_function(worker, name, *inputs, **fields):
    return worker.request("call", name=name, inputs=inputs, **fields)


def test_a_call_gives_its_result(harness):
    worker = harness.with_cell("def f(x, n, scale=1): return x * n * scale, [n], {'n': n}, None")
    reply = call_function(worker, "f", torch.arange(3), 2, options={"scale": 3})
    result, *rest = reply["result"]
    assert torch.equal(result, torch.arange(3) * 6)
    assert rest == [[2], {"n": 2}, None]
    after, number = reply["inputs"]
    assert torch.equal(after, torch.arange(3))
    assert (number, reply["same"], reply["shares"]) == (None, None, False)


@pytest.mark.parametrize(
    ("body", "changed", "same", "shares"),
    [
        ("return x + 1", [], None, False),
        ("return x", [], 0, True),
        ("return x.T", [], None, True),
        ("return x.add_(1)", [0], 0, True),
        ("x.add_(1); return y.clone()", [0], None, False),
        ("x.resize_(1); return y.clone()", [0], None, False),
    ],
)
def test_what_a_call_does_to_its_inputs(harness, body, changed, same, shares):
    worker = harness.with_cell(f"def f(x, y): {body}")
    reply = call_function(worker, "f", torch.ones(2, 3), torch.full((2,), torch.nan))
    assert (reply["same"], reply["shares"]) == (same, shares)
    mine = RemoteStudent(worker, ["f"])
    mine(torch.ones(2, 3), torch.full((2,), torch.nan))
    assert mine.changed_inputs == ["(2, 3)"] * len(changed)


def test_gradients_of_the_inputs(harness):
    worker = harness.with_cell("def f(x, y, n): return x * y, n, [x.sum(), y.argmax()]")
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    reply = call_function(worker, "f", x, y, torch.tensor(3), gradients=True)
    x, y = x.requires_grad_(), y.requires_grad_()
    outputs = (x * y, x.sum())
    seeds = (
        torch.randn(each.shape, generator=torch.Generator().manual_seed(k))
        for k, each in zip((0, 2), outputs, strict=True)
    )
    torch.autograd.backward(outputs, list(seeds))
    assert torch.equal(reply["gradients"][0], x.grad)
    assert torch.equal(reply["gradients"][1], y.grad)
    assert reply["gradients"][2] is None


def test_layers_and_configs_are_what_they_are(harness):
    worker = harness.with_cell(
        IMPORTS
        + "def conv(linear): return nn.Conv2d(2, 4, (3, 5))\n"
        + "def of(config): return config.num_patches, type(config).__module__"
    )
    assert isinstance(call_function(worker, "conv", nn.Linear(2, 3))["result"], nn.Conv2d)
    config = ViTConfig(image_size=(8, 4), patch_size=2)
    assert call_function(worker, "of", config)["result"] == (8, "vit_course.config")


def test_non_contiguous_inputs_arrive_as_such(harness):
    worker = harness.with_cell("def f(x): return list(x.stride())")
    assert call_function(worker, "f", torch.ones(2, 3).T)["result"] == [1, 3]


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ("raise ValueError('no')", ["ValueError", "Exception", "BaseException"]),
        ("raise SystemExit", ["SystemExit", "BaseException"]),
        ("raise KeyboardInterrupt", ["KeyboardInterrupt", "BaseException"]),
        ("raise GeneratorExit", ["GeneratorExit", "BaseException"]),
        ("return next(iter(()))", ["StopIteration", "Exception", "BaseException"]),
        ("return f(x)", ["RecursionError", "RuntimeError", "Exception", "BaseException"]),
        ("return [0] * (1 << 40)", ["MemoryError", "Exception", "BaseException"]),
        ("raise Silent", ["Silent", "Exception", "BaseException"]),
    ],
)
def test_every_exception_is_a_reply(harness, body, kinds):
    worker = harness.with_cell(
        "class Silent(Exception):\n    def __str__(self): raise SystemExit\n    __repr__ = __str__\n"
        f"def f(x):\n    {body}"
    )
    raised = call_function(worker, "f", 1)["raised"]
    assert raised["kinds"] == kinds
    assert raised["line"] == body
    assert raised["functions"][0] == "f"
    assert call_function(worker, "f", 1)["raised"]["kinds"] == kinds


def test_words_are_short(harness):
    worker = harness.with_cell("def f(): raise ValueError('x' * 10**7)")
    assert call_function(worker, "f")["raised"]["words"] == "x" * 500


def test_a_name_that_is_not_there(harness):
    worker = harness.with_cell("def f(): ...\nclass C: ...\nx = 3")
    assert call_function(worker, "g")["raised"]["kinds"][0] == "NameError"
    kinds = {"f": "function", "C": "class", "x": "other", "g": None}
    assert worker.request("defined", names=list(kinds))["defined"] == kinds


def test_modules_are_built_loaded_and_run(harness):
    worker = harness.with_cell(LAYER)
    number = worker.request("build", name="Layer", inputs=(3,), options={"scale": 2.0})["module"]
    held = worker.request("parameters", module=number)
    assert held["parameters"] == {"linear.weight": [2, 3], "linear.bias": [2], "unused": [3]}
    assert held["buffers"] == {"scale": []}
    weights = {"linear.weight": torch.randn(2, 3), "linear.bias": torch.randn(2)}
    assert worker.request("load", module=number, weights=weights) == {}
    worker.request("mode", module=number, training=False)
    x = torch.randn(4, 3)
    output = worker.request("forward", module=number, inputs=(x,))["result"]
    assert torch.equal(output, (x @ weights["linear.weight"].T + weights["linear.bias"]) * 2) or output.allclose(
        2 * nn.functional.linear(x, weights["linear.weight"], weights["linear.bias"])
    )
    assert output.requires_grad
    gradients = worker.request("backward", module=number, cotangents=[torch.ones(4, 2)])["gradients"]
    assert gradients["unused"] is None
    assert torch.allclose(gradients["linear.bias"], torch.full((2,), 8.0))
    state = worker.request("state", module=number)["tensors"]
    assert torch.equal(state["linear.weight"], weights["linear.weight"])


def test_a_module_changes_its_dtype_and_mode(harness):
    worker = harness.with_cell(LAYER)
    number = worker.request("build", name="Layer", inputs=(3,))["module"]
    worker.request("cast", module=number, dtype=torch.float64)
    worker.request("move", module=number, device="cpu")
    assert worker.request("state", module=number)["tensors"]["linear.weight"].dtype == torch.float64
    x = torch.randn(50, 3, dtype=torch.float64)
    assert (worker.request("forward", module=number, inputs=(x,))["result"] == 0).any()
    worker.request("mode", module=number, training=False)
    assert not (worker.request("forward", module=number, inputs=(x,))["result"] == 0).any()


def test_a_lazy_layer_is_reported(harness):
    worker = harness.with_cell(IMPORTS + "def f(): return nn.LazyLinear(2)")
    number = worker.request("build", name="f", inputs=())["module"]
    held = worker.request("parameters", module=number)
    assert set(held["lazy"]) == {"weight", "bias"}


def test_what_is_no_module_is_given_back(harness):
    worker = harness.with_cell("def f(): return 3")
    assert worker.request("build", name="f", inputs=())["result"] == 3


def test_settings_do_not_outlive_a_request(harness):
    worker = harness.with_cell(
        IMPORTS
        + "import sys\ndef spoil():\n    torch.set_default_dtype(torch.float64); torch.set_grad_enabled(False)\n"
        "    torch.set_default_device('meta'); torch.manual_seed(9); sys.setrecursionlimit(60)\n"
        "def f(): return torch.rand(1).requires_grad_() * 2\n"
    )
    before = call_function(worker, "f")["result"]
    call_function(worker, "spoil")
    after = call_function(worker, "f")["result"]
    assert torch.equal(before, after)
    assert after.requires_grad
    assert after.dtype == torch.float32


def test_seeds_are_the_judges(harness):
    worker = harness.with_cell(IMPORTS + "def f(): return torch.rand(3)")
    first, again, on = (call_function(worker, "f", seed=seed)["result"] for seed in (5, 5, None))
    assert torch.equal(first, torch.rand(3, generator=torch.Generator().manual_seed(5)))
    assert torch.equal(first, again)
    assert not torch.equal(first, on)


def attend(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    if query.shape[-1] != key.shape[-1]:
        raise ValueError("widths differ")
    weights = torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, -1)
    return weights @ value, weights


def test_a_function_of_the_judges_is_called_there(harness):
    worker = harness.with_cell(
        IMPORTS
        + "def f(attend, q, k, v):\n    output, weights = attend(q, key=k, value=v)\n    return output, weights.sum(-1)"
    )
    q, k, v = torch.randn(3, 2, 4, 5).unbind()
    output, sums = call_function(worker, "f", attend, q, k, v)["result"]
    assert torch.equal(output, attend(q, k, v)[0])
    assert sums.allclose(torch.ones(2, 4))


def test_a_function_of_the_judges_can_be_differentiated(harness):
    worker = harness.with_cell(
        IMPORTS + "def f(attend, q, k, v):\n    output, _ = attend(q * 2, k, v)\n    return output"
    )
    q, k, v = torch.randn(3, 2, 4, 5).unbind()
    gradients = call_function(worker, "f", attend, q, k, v, gradients=True)["gradients"]
    leaves = [each.clone().requires_grad_() for each in (q, k, v)]
    output = attend(leaves[0] * 2, *leaves[1:])[0]
    output.backward(torch.randn(output.shape, generator=torch.Generator().manual_seed(0)))
    assert all(got.allclose(leaf.grad) for got, leaf in zip(gradients[1:], leaves, strict=True))


def centered(x: Tensor) -> Tensor:
    with torch.no_grad():
        x.sub_(x.mean())
    return x.square()


@pytest.mark.parametrize("made", ["torch.arange(3.0)", "torch.arange(3.0, requires_grad=True)"])
def test_what_a_function_of_the_judges_writes_into_its_inputs_is_seen(harness, made):
    worker = harness.with_cell(IMPORTS + f"def f(norm):\n    x = {made}\n    return norm(x=x), x")
    squares, written = call_function(worker, "f", centered)["result"]
    assert written.tolist() == [-1.0, 0.0, 1.0]
    assert squares.tolist() == [1.0, 0.0, 1.0]


def test_an_expanded_input_stays_as_it_is(harness):
    worker = harness.with_cell(IMPORTS + "def f(norm):\n    x = torch.ones(1).expand(3)\n    return norm(x), x")
    squares, written = call_function(worker, "f", centered)["result"]
    assert squares.tolist() == [0.0] * 3
    assert written.tolist() == [1.0] * 3


def test_what_the_judge_refuses_does_not_tell_its_functions_apart(harness):
    def by_einsum(query):
        raise TypeError("einsum(): the number of subscripts")

    worker = harness.with_cell(
        "def f(attend):\n    try: attend('x')\n    except Exception as error: return repr(error)"
    )
    assert call_function(worker, "f", by_einsum)["result"] == "TypeError('these inputs do not fit together')"


@pytest.mark.parametrize("seed", [-1, (1 << 64) - 1, 1 << 40])
def test_any_seed_of_torch_is_one(harness, seed):
    worker = harness.with_cell(IMPORTS + "def f(): return torch.rand(2)")
    expected = torch.rand(2, generator=torch.Generator().manual_seed(seed))
    assert torch.equal(call_function(worker, "f", seed=seed)["result"], expected)


def test_a_module_tells_what_its_parts_are_given_and_give(harness):
    worker = harness.with_cell(LAYER)
    number = worker.request("build", name="Layer", inputs=(3,))["module"]
    x = torch.randn(4, 3)
    found = worker.request("parts", module=number, names=["linear", "drop", "nowhere", "linear"], inputs=(x,))["parts"]
    assert list(found) == ["linear:in", "linear:out", "drop:in", "drop:out"]
    assert torch.equal(found["linear:in"], x)
    assert torch.equal(found["linear:out"], found["drop:in"])


def test_a_module_tells_the_gradients_of_its_inputs(harness):
    worker = harness.with_cell(
        IMPORTS + "class Double(nn.Module):\n    def forward(self, x, n): return 2 * x, x.detach()"
    )
    number = worker.request("build", name="Double", inputs=())["module"]
    reply = worker.request("forward", module=number, inputs=(torch.ones(4, 3), 7), gradients=True)
    wanted = 2 * torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(reply["gradients"][0], wanted)
    assert reply["gradients"][1] is None


def test_parameters_are_what_they_are(harness):
    worker = harness.with_cell(IMPORTS + "def f(x): return nn.Parameter(x * 2), [nn.Parameter(x)], torch.Size([2])")
    first, second, size = call_function(worker, "f", torch.ones(2, 3), gradients=True)["result"]
    assert torch.equal(first.detach(), torch.full((2, 3), 2.0))
    assert first.requires_grad
    assert second[0].requires_grad
    assert size == (2,)
