"""Values arrive as they were, whatever a student's classes do."""

from __future__ import annotations

import json
import math
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
import torch
from torch import nn

from exercise_kit.worker.values import Other, Packer, Unpacker
from exercise_kit.worker.wire import WireError
from vit_course.config import ViTConfig


def pack_and_unpack(value, records=(), **ends):
    packer = Packer(records=records)
    packed = json.loads(json.dumps(packer.pack(value), allow_nan=False))
    return Unpacker(packer.tensors, **ends).unpack(packed)


def test_numbers_that_json_has_not():
    nan, high, low = pack_and_unpack([math.nan, math.inf, -math.inf])
    assert math.isnan(nan)
    assert (high, low) == (math.inf, -math.inf)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.bool_(True), True),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (OrderedDict(a=1), {"a": 1}),
        (namedtuple("Pair", "a b")(1, 2), (1, 2)),
    ],
)
def test_relatives_come_as_the_plain_kind(given, expected):
    got = pack_and_unpack(given)
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize("value", [object(), len, int, {1: 2}, 1 << 70, (each for each in "ab"), b"bytes", {1, 2}])
def test_the_rest_comes_by_name(value):
    got = pack_and_unpack(value)
    assert isinstance(got, Other)
    assert got.kind == type(value).__name__


def test_a_long_list_comes_by_its_length():
    assert pack_and_unpack([0] * 2000) == Other("list", "2000")


def test_a_list_within_itself_ends():
    value = []
    value.append(value)
    arrived = pack_and_unpack(value)
    for _ in range(9):
        (arrived,) = arrived
    assert arrived == Other("list", "[[...]]")


def test_text_is_cut():
    assert len(pack_and_unpack("x" * 100_000)) == 4000


class EvilText(str):
    def __str__(self):
        raise SystemExit

    def __getitem__(self, _):
        raise SystemExit


class EvilDict(dict):
    def items(self):
        raise KeyboardInterrupt

    def __iter__(self):
        raise KeyboardInterrupt


class EvilList(list):
    def __iter__(self):
        raise ValueError

    def __len__(self):
        return -1


class Liar:
    __class__ = torch.Tensor

    def __reduce__(self):
        raise AssertionError("nobody pickles")

    def __repr__(self):
        raise SystemExit


class EvilMeta(type):
    __name__ = property(lambda _: 1 / 0)
    __mro__ = property(lambda _: 1 / 0)


class EvilKind(metaclass=EvilMeta):
    pass


def test_evil_relatives_are_taken_by_their_real_type():
    assert pack_and_unpack(EvilText("abc")) == "abc"
    assert pack_and_unpack(EvilDict(a=1)) == {"a": 1}
    assert pack_and_unpack(EvilList([1, 2])) == [1, 2]
    assert pack_and_unpack(Liar()) == Other("Liar", "a Liar")
    assert pack_and_unpack(EvilKind()).kind == "EvilKind"


class Subclass(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *_, **__):
        raise AssertionError("nobody calls this")


def test_a_subclass_of_tensor_dies_at_the_border():
    got = pack_and_unpack(torch.arange(4.0).as_subclass(Subclass))
    assert type(got) is torch.Tensor
    assert torch.equal(got, torch.arange(4.0))


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(24.0).reshape(2, 3, 4).transpose(0, 2),
        torch.arange(24.0)[::3],
        torch.arange(3.0).expand(4, 3),
        torch.tensor(1.5).expand(2, 2),
        torch.arange(24.0).reshape(4, 6)[:, 2:4],
    ],
    ids=["transposed", "every third", "expanded", "one number", "columns"],
)
def test_strides_are_kept_towards_the_worker_alone(tensor):
    there, back = pack_and_unpack(tensor, trusting=True), pack_and_unpack(tensor)
    assert torch.equal(there, tensor)
    assert there.stride() == tensor.stride()
    assert torch.equal(back, tensor)
    assert back.is_contiguous()


def test_a_tensor_sent_twice_is_one():
    tensor = torch.ones(3)
    first, second = pack_and_unpack((tensor, tensor))
    assert first is second


@pytest.mark.parametrize("layer", [nn.Linear(3, 2), nn.Linear(3, 2, bias=False), nn.Conv2d(2, 4, (3, 5), stride=2)])
def test_layers_come_with_settings_and_weights(layer):
    got = pack_and_unpack(layer)
    assert type(got) is type(layer)
    assert str(got) == str(layer)
    assert {name: tensor.tolist() for name, tensor in got.state_dict().items()} == {
        name: tensor.tolist() for name, tensor in layer.state_dict().items()
    }
    inputs = torch.randn(1, 2, 9, 9) if isinstance(layer, nn.Conv2d) else torch.randn(5, 3)
    assert torch.equal(got(inputs), layer(inputs))


def test_a_subclass_of_a_layer_that_computes_alike_is_that_layer():
    class Mine(nn.Conv2d):
        """Nothing but another name."""

    class Other(nn.Conv2d):
        def forward(self, images):
            return -super().forward(images)

    layer, images = Mine(2, 4, 3), torch.randn(1, 2, 9, 9)
    assert type(pack_and_unpack(layer)) is nn.Conv2d
    assert torch.equal(pack_and_unpack(layer)(images), layer(images))
    assert not isinstance(pack_and_unpack(Other(2, 4, 3)), nn.Conv2d)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, 3))
        self.blocks = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.norm = nn.LayerNorm(3)


def test_a_model_comes_by_its_named_parameters():
    model = Model()
    got = pack_and_unpack(model)
    assert type(got).__name__ == "Model"
    assert isinstance(got.blocks[1], nn.Linear)
    assert list(got.state_dict()) == list(model.state_dict())
    assert all(torch.equal(got.state_dict()[name], tensor) for name, tensor in model.state_dict().items())


def test_a_record_of_the_course_is_made_by_the_other_side():
    config = ViTConfig(image_size=(8, 4), patch_size=2)
    made = pack_and_unpack(
        config, ["ViTConfig"], as_record=lambda name, fields: {"ViTConfig": ViTConfig}[name](**fields)
    )
    assert made == config
    assert pack_and_unpack(config, ["ViTConfig"]).text == "a ViTConfig"
    assert pack_and_unpack(config).text == repr(config)[:200]


def test_a_function_becomes_a_number_where_that_is_wanted():
    packer = Packer(with_callables=True)
    packed = packer.pack([len, abs])
    assert packer.callables == [len, abs]
    assert Unpacker([], as_function=lambda number: f"function {number}").unpack(packed) == ["function 0", "function 1"]


IMPOSSIBLE_NAMES = ("a..b", "", "forward", "a.__class__", "training", "x y", "_parameters.a")


@pytest.mark.parametrize(
    "packed",
    [
        {},
        {"nonsense": 1},
        {"tensor": 5},
        {"tensor": -1},
        {"tensor": True},
        {"tensor": 0, "device": "nonsense"},
        {"tensor": 0, "device": 3},
        {"tensor": 1, "grad": True},
        {"tuple": 3},
        {"dict": [[1, 2]]},
        {"dict": [["a"]]},
        {"dtype": "object"},
        {"float": "1"},
        {"layer": "Linear", "in_features": 1 << 40, "out_features": 1, "weights": {"weight": {"tensor": 0}}},
        {"layer": "Linear", "in_features": 2, "out_features": 1, "weights": {}},
        {"layer": "Linear", "in_features": 2, "out_features": 1, "hidden": 3, "weights": {"weight": {"tensor": 0}}},
        {"layer": "Sequential", "weights": {"weight": {"tensor": 0}}},
        {"layer": "Conv2d", "weights": {"weight": {"tensor": 0}}},
        *({"model": {name: {"tensor": 0}}, "kind": "M"} for name in IMPOSSIBLE_NAMES),
        {"model": {"a": {"tensor": 0}, "a.b": {"tensor": 0}}, "kind": "M"},
        {"model": {"a": {"tensor": 0}}, "kind": 3},
        {"other": 3, "text": ""},
        {"other": "a"},
    ],
    ids=repr,
)
def test_what_is_no_packed_value_is_refused(packed):
    with pytest.raises(WireError):
        Unpacker([torch.ones(2), torch.ones(2, dtype=torch.int64)]).unpack(packed)
