"""Generated cases: every dtype, layout, stride, offset and size crosses a real socket pair, both ways, or in words."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
import time

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from exercise_kit.sandbox.reply import restore_value
from exercise_kit.worker.values import Other, Packer, Unpacker
from exercise_kit.worker.wire import DTYPES, Caps, Wire
from tests.waiting import GIVE_UP

LIMIT = 1 << 16
ALL_DTYPES = sorted({each for each in vars(torch).values() if isinstance(each, torch.dtype)}, key=str)
SIZES = {"no axis": (), "none": (0,), "one": (1,), "ones": (1, 1, 1), "none of three": (3, 0), "some": (2, 3)}
LAYOUTS = {
    "contiguous": lambda x: x,
    "every other": lambda x: torch.cat([x.reshape(-1), x.reshape(-1)])[::2].reshape(x.shape),
    "a column": lambda x: torch.stack([x, x, x], dim=-1)[..., 1],
    "the last of a column": lambda x: torch.stack([x, x, x], dim=-1)[..., 2],
    "behind others": lambda x: torch.cat([x.reshape(-1)[:1], x.reshape(-1)])[x.numel() > 0 :].reshape(x.shape),
    "transposed": lambda x: x.transpose(0, -1).contiguous().transpose(0, -1) if x.ndim else x,
    "expanded": lambda x: x.reshape(-1)[:1].sum().to(x.dtype).expand(x.shape) if x.numel() else x,
    "overlapping": lambda x: torch.cat([x.reshape(-1)] * 4).as_strided(x.shape, [1] * x.ndim),
    "an odd stride": lambda x: torch.cat([x.reshape(-1)] * 9).as_strided(x.shape, [7, 5, 3][: x.ndim]),
    "a slice flattened": lambda x: torch.stack([x, x], dim=-1)[..., :1].reshape(-1),
    "a parameter": lambda x: nn.Parameter(x, requires_grad=x.is_floating_point()),
}
ODD = {
    "sparse": lambda x: x.to_sparse(),
    "csr": lambda x: x.to_sparse_csr(),
    "mkldnn": lambda x: x.to_mkldnn(),
    "nested": lambda x: torch.nested.nested_tensor([x, x]),
    "jagged": lambda x: torch.nested.nested_tensor([x, x], layout=torch.jagged),
    "quantized": lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8),
    "meta": lambda x: x.to("meta"),
    "a fake": lambda x: FakeTensorMode().from_tensor(x),
    "of seventeen axes": lambda x: x.reshape([1] * 17 + list(x.shape)),
    "complex": lambda x: torch.complex(x, x).conj(),
    "not there yet": lambda _: nn.UninitializedParameter(),
    "too large": lambda x: x.sum().expand(1 << 40),
    "of no number and giant axes": lambda _: torch.empty(0, 1 << 50),
}


def send_over_socket(value, *, trusting):
    """Return what arrives of ``value``: at a worker (trusting) or at the judge."""
    near, far = socket.socketpair()
    near.setblocking(False)
    packer = Packer(most_bytes=LIMIT)
    packed = packer.pack(value)
    with near, far:
        blocking = Wire(far.fileno(), blocking=True)
        wary = Wire(near.fileno(), Caps(1 << 20, LIMIT), blocking=False)
        soon = time.monotonic() + GIVE_UP
        sender, receiver = (wary, blocking) if trusting else (blocking, wary)
        thread = threading.Thread(target=sender.send, args=(packed, packer.tensors, soon))
        thread.start()
        body, tensors = receiver.receive(soon)
        thread.join()
    return Unpacker(tensors, trusting=trusting).unpack(body)


def make_tensor(sizes, dtype):
    count = torch.Size(sizes).numel()
    try:
        return (torch.arange(count) % 2).to(dtype).reshape(sizes)
    except (RuntimeError, TypeError):
        pytest.skip(f"torch cannot make one of {dtype}")


@pytest.mark.parametrize("trusting", [True, False], ids=["to the worker", "to the judge"])
@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_every_layout_of_every_dtype(dtype, trusting):
    for (size, sizes), (layout, lay) in itertools.product(SIZES.items(), LAYOUTS.items()):
        try:
            given = lay(make_tensor(sizes, dtype))
        except (RuntimeError, NotImplementedError, TypeError):
            continue  # torch itself has no such tensor
        got = send_over_socket(given, trusting=trusting)
        if dtype not in DTYPES.values() or dtype.is_complex:
            assert isinstance(got, Other), (size, layout)
            assert got.kind == "Tensor"
            continue
        assert got.shape == given.shape, (size, layout)
        assert got.dtype == given.dtype
        assert torch.equal(got, given.detach()), (size, layout)
        assert got.requires_grad == given.requires_grad


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("held", ["alone", "in a list", "as a weight of a Linear", "as a weight of a model"])
def test_what_cannot_cross_comes_in_words(kind, held):
    odd = ODD[kind](torch.ones(2, 3))
    holders = {"alone": lambda: odd, "in a list": lambda: [odd]}
    got = send_over_socket(holders.get(held, lambda: _make_module_holding(odd, held))(), trusting=False)
    received = got[0] if held == "in a list" else got
    assert isinstance(received, Other)
    assert received.kind == {"as a weight of a Linear": "Linear", "as a weight of a model": "Sequential"}.get(
        held, "Tensor"
    )
    assert received.text.startswith("a " if received.kind == "Tensor" else received.kind)
    restore_value(got)


def _make_module_holding(odd, held):
    module = nn.Linear(3, 2) if "Linear" in held else nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2))
    weight = odd if isinstance(odd, nn.Parameter) else nn.Parameter(odd, requires_grad=False)
    (module if isinstance(module, nn.Linear) else module[0])._parameters["weight"] = weight
    return module


@pytest.mark.parametrize("view", ["conj", "neg", "imag", "real"])
def test_lazy_views_arrive_as_their_numbers(view):
    number = torch.complex(torch.ones(2), torch.full((2,), 3.0)).conj()
    given = {"conj": number.resolve_conj().real, "neg": torch._neg_view(torch.ones(2)), "imag": number.imag}
    value = given.get(view, number.real)
    assert torch.equal(send_over_socket(value, trusting=False), value.clone())


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_a_dtype_itself_crosses_or_is_named(dtype):
    got = send_over_socket(dtype, trusting=False)
    assert got is dtype if dtype in DTYPES.values() else got.kind == "dtype"


MODULES = {
    "a third parameter": lambda layer: layer.register_parameter("scale", nn.Parameter(torch.ones(1))),
    "no weight": lambda layer: layer._parameters.pop("weight"),
    "a weight of None": lambda layer: layer._parameters.update(weight=None),
    "groups that divide nothing": lambda layer: setattr(layer, "groups", 5),
    "same with a stride": lambda layer: vars(layer).update(padding="same", stride=(2, 2)),
    "old weight norm": lambda layer: torch.nn.utils.weight_norm(layer),
    "parametrized": lambda layer: torch.nn.utils.parametrizations.weight_norm(layer),
    "spectral norm": lambda layer: torch.nn.utils.spectral_norm(layer),
    "a padding of None": lambda layer: setattr(layer, "padding", None),
    "a kernel of one number": lambda layer: setattr(layer, "kernel_size", 3),
    "thousands of parameters": lambda layer: [
        layer.register_parameter(f"p{number}", nn.Parameter(torch.ones(1))) for number in range(5000)
    ],
    "a name with a dot": lambda layer: layer._parameters.update({"a.b": nn.Parameter(torch.ones(1))}),
    "a name that modules have": lambda layer: layer._parameters.update({"forward": nn.Parameter(torch.ones(1))}),
    "a float for a weight": lambda layer: layer._parameters.update(weight=1.0),
}


@pytest.mark.parametrize("change", MODULES)
def test_every_odd_module_arrives_under_the_name_of_its_class(change):
    layer = nn.Conv2d(4, 6, 3)
    with pytest.warns() if change == "old weight norm" else contextlib.nullcontext():
        MODULES[change](layer)
    arrived = restore_value(send_over_socket(layer, trusting=False))
    assert type(arrived).__name__ == type(layer).__name__


def nest_containers(kinds, depth):
    value = 1.0
    for level in range(depth):
        value = kinds[level % len(kinds)](value)
    return value


@pytest.mark.parametrize("depth", range(12))
@pytest.mark.parametrize(
    "kinds",
    [
        [lambda value: [value]],
        [lambda value: (value,)],
        [lambda value: {"a": value}],
        [lambda value: {"a": value}, lambda value: (value,)],
        [lambda value: {"a": [value, nn.Linear(1, 1), torch.ones(2, 2).T]}],
    ],
    ids=["lists", "tuples", "dicts", "dicts and tuples", "dicts of modules"],
)
def test_eight_containers_deep_all_arrives_and_below_that_by_name(kinds, depth):
    sent = {"reply": nest_containers(kinds, depth)}
    arrived = restore_value(send_over_socket(sent, trusting=False))
    for _ in range(9):
        if sent == 1.0:
            assert arrived == 1.0
            return
        assert type(arrived) is type(sent)
        sent, arrived = (next(iter(each.values() if isinstance(each, dict) else each)) for each in (sent, arrived))
    assert type(arrived).__name__ == type(sent).__name__
