"""Right ViTs in many styles: none is told wrong, in each attention and stream are found, and a slip in each is seen."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from styles_of_vit import WAYS, Block, ListedHeads, MhaBlock, Vit
from torch import nn

from vit_course import diagnose

IMAGES = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
STYLES = {
    **{name: lambda way=way: Vit(lambda: Block(way)) for name, way in WAYS.items()},
    "MultiheadAttention": lambda: Vit(lambda: MhaBlock(need_weights=False)),
    "MultiheadAttention with weights": lambda: Vit(lambda: MhaBlock(need_weights=True)),
    "a list of heads": lambda: Vit(ListedHeads),
    "a tuple": lambda: Vit(lambda: Block(WAYS["by_fused"]), lambda logits: (logits, None)),
    "a dict": lambda: Vit(lambda: Block(WAYS["by_fused"]), lambda logits: {"logits": logits}),
    "an object": lambda: Vit(lambda: Block(WAYS["by_fused"]), lambda logits: SimpleNamespace(logits=logits)),
    "compiled": lambda: torch.compile(Vit(lambda: Block(WAYS["by_functions"]))),
}
# a pass under torch's other device is told nothing by these
_NOT_ASKED = {"device_follows", "with_biases"}


@pytest.mark.parametrize("name", STYLES)
def test_a_right_model_is_asked_everything_and_told_nothing(name):
    model = STYLES[name]()
    model(IMAGES)
    report = diagnose(model, IMAGES)
    assert [each.seen for each in report.of("wrong") + report.of("unusual")] == []
    assert {each.asked for each in report.of("not asked")} <= _NOT_ASKED, str(report)
    assert len(report.of("holds")) > 40


@pytest.mark.parametrize("name", STYLES)
def test_a_slip_is_seen_in_every_style(name):
    model = STYLES[name]()
    inner = getattr(model, "_orig_mod", model)
    inner.norm = nn.Identity()
    found = diagnose(model, IMAGES).of("wrong")
    assert [(each.asked, each.mistake) for each in found] == [("final_norm", ("VisionTransformer", "no final norm"))]


def test_values_that_are_added_to_what_attention_gives_are_no_stream():
    class Skipping(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(48), nn.LayerNorm(48)
            self.qkv, self.out = nn.Linear(48, 144), nn.Linear(48, 48)
            self.mlp = nn.Sequential(nn.Linear(48, 96), nn.GELU(), nn.Linear(96, 48))

        def forward(self, x):
            q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, 4, 12)).permute(2, 0, 3, 1, 4)
            given = (q @ k.mT * 12**-0.5).softmax(-1) @ v
            given, v = (each.transpose(1, 2).flatten(2) for each in (given, v))
            x = x + (v + self.out(given))
            return x + self.mlp(self.norm2(x))

    report = diagnose(Vit(Skipping), IMAGES)
    assert report.of("wrong") == (), str(report)


def test_a_fast_path_does_not_hide_the_encoder():
    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(48, 4, 96, activation="gelu", batch_first=True, norm_first=True)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def forward(self, x, mask=None, scale_residual=1):
            return self.layers(x)

    report = diagnose(Vit(Wrapped), IMAGES)
    assert report.of("wrong") == ()
    # torch makes all layers as copies of one
    assert [each.asked for each in report.of("unusual")] == ["blocks_start_apart"]


def test_a_scripted_model_is_asked_from_outside():
    class Small(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(3 * 32 * 32, 10)

        def forward(self, images):
            return self.head(images.flatten(1))

    report = diagnose(torch.jit.script(Small()), IMAGES)
    assert report.of("wrong") == ()
    assert "image_alone" in {each.asked for each in report.of("holds")}
    assert "attention_there" in {each.asked for each in report.of("not asked")}
