"""Properties of which the library's mistakes break none: each with a model that breaks it, beside the right one."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from vit_course import VisionTransformer, ViTConfig, diagnose
from vit_course.modern import rotary_2d
from vit_course.positions import sinusoidal_positions_2d

SIZES = {"image_size": 32, "patch_size": 8, "embed_dim": 48, "depth": 2, "num_heads": 4}
IMAGES = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))


class Tokens(nn.Module):
    """A ViT without limits on the image's size, to which ``positions`` gives positions from its tokens and grid."""

    def __init__(self, positions):
        super().__init__()
        torch.manual_seed(0)
        inner = VisionTransformer(ViTConfig(**SIZES))
        self.blocks, self.norm, self.head = inner.blocks, inner.norm, inner.head
        self.patches = nn.Conv2d(3, 48, 8, 8)
        self.table = nn.Parameter(torch.randn(1, 16, 48) * 0.02)
        self.positions = positions

    def forward(self, images: Tensor) -> Tensor:
        grid = self.patches(images)
        tokens = grid.flatten(2).mT
        tokens = tokens + self.positions(self, tokens, grid.shape[-2:])
        for block in self.blocks:
            tokens = block(tokens)
        return self.head(self.norm(tokens.mean(1)))


def make_sinusoidal_positions(base: float = 1e4, scale: float = 1.0, cosine=torch.cos) -> Tensor:
    angles = torch.arange(16)[:, None] / base ** (scale * torch.arange(0, 48, 2) / 48)
    return torch.stack([angles.sin(), cosine(angles)], -1).flatten(1)


def cut_to_size(self, tokens, grid):
    return self.table[:, : tokens.shape[1]]


def resize_table(self, tokens, grid):
    table = self.table.mT.unflatten(2, (4, 4))
    return nn.functional.interpolate(table, grid).flatten(2).mT


CASES = {
    "resized": (resize_table, "other_sizes", "holds", ""),
    "cut to size": (cut_to_size, "other_sizes", "unusual", "running number"),
    "waves": (lambda *_: make_sinusoidal_positions(), "table_of_waves", "holds", ""),
    "waves of rows and columns": (lambda *_: sinusoidal_positions_2d((4, 4), 48), "table_of_waves", "holds", ""),
    "another base": (
        lambda *_: make_sinusoidal_positions(base=2.718281828),
        "table_of_waves",
        "unusual",
        "base e for 10000",
    ),
    "half the exponent": (
        lambda *_: make_sinusoidal_positions(scale=0.5),
        "table_of_waves",
        "unusual",
        "exponent half as large",
    ),
    "no cosine": (lambda *_: make_sinusoidal_positions(cosine=torch.sin), "table_of_waves", "unusual", "sines only"),
    "a drawn table": (
        lambda *_: torch.randn(16, 48, generator=torch.Generator().manual_seed(1)),
        "table_of_waves",
        "unusual",
        "no table of sines",
    ),
    "learned": (lambda self, *_: self.table, "table_of_waves", "holds", ""),
    "no order": (lambda self, *_: self.table, "tokens_have_no_order", "holds", ""),
    "in use": (lambda self, *_: self.table, "used", "holds", ""),
    "out of use": (
        lambda self, *_: self.table * 0 + make_sinusoidal_positions(),
        "used",
        "wrong",
        "`table` does not change",
    ),
    "a shift that the norms take off": (
        lambda self, *_: self.table.mean(-1, keepdim=True) + make_sinusoidal_positions(),
        "used",
        "wrong",
        "`table` does not change",
    ),
}


def find_finding(model: nn.Module, asked: str):
    (only,) = [each for each in diagnose(model, IMAGES).findings if each.asked == asked]
    return only


@pytest.mark.parametrize("name", CASES)
def test_positions(name):
    positions, asked, answer, words = CASES[name]
    finding = find_finding(Tokens(positions), asked)
    assert finding.answer == answer, finding
    assert words in f"{finding.seen} {finding.mistake}"


@pytest.fixture
def right_model():
    torch.manual_seed(0)
    return VisionTransformer(ViTConfig(**SIZES))


def test_an_order_of_tokens_is_seen(right_model):
    class Mixed(nn.Module):
        def __init__(self, mlp):
            super().__init__()
            self.mlp, self.rows = mlp, nn.Conv1d(48, 48, 3, padding=1, groups=48)

        def forward(self, tokens):
            return self.mlp(self.rows(tokens.mT).mT)

    right_model.blocks[1].mlp = Mixed(right_model.blocks[1].mlp)
    finding = find_finding(right_model, "tokens_have_no_order")
    assert finding.answer == "unusual"
    assert "depends on their order" in finding.seen


class OwnAttention(nn.Module):
    def __init__(self, width, turned=False):
        super().__init__()
        self.maps, self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(3)), nn.Linear(48, 48)
        self.width, self.turned = width, turned

    def forward(self, x):
        parts = x.unflatten(-1, (48 // self.width, self.width))
        q, k, v = (each(parts).reshape(*x.shape[:2], 4, 12).transpose(1, 2) for each in self.maps)
        if self.turned:
            q, k = rotary_2d(q, k, (4, 4))
        weights = (q @ k.mT / 12**0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


def test_positions_inside_attention_are_recognized():
    model = Tokens(lambda self, *_: self.table)
    for block in model.blocks:
        block.attention = OwnAttention(48, turned=True)
    finding = find_finding(model, "tokens_have_no_order")
    assert (finding.answer, "inside attention" in finding.seen) == ("unusual", True)


def test_one_projection_for_all_heads(right_model):
    right_model.blocks[0].attention = OwnAttention(48)
    assert find_finding(right_model, "heads_projected_apart").answer == "holds"
    right_model.blocks[0].attention = OwnAttention(12)
    assert find_finding(right_model, "heads_projected_apart").mistake == (
        "MultiHeadSelfAttention",
        "same weights for every head",
    )


@pytest.mark.parametrize(
    ("labels", "asked"),
    [(torch.tensor([3, 10]), ("step_changes_all", "learns_by_heart")), (torch.tensor([3]), ("learns_by_heart",))],
)
def test_labels_that_do_not_fit_are_told_once(right_model, labels, asked):
    optimizer = torch.optim.SGD(copy.deepcopy(right_model).parameters(), lr=0.1)
    findings = {each.asked: each for each in diagnose(right_model, IMAGES, labels=labels, optimizer=optimizer).findings}
    assert findings["labels_in_range"].answer == "wrong"
    for each in asked:
        assert (findings[each].answer, findings[each].seen) == ("not asked", "the labels do not fit the logits")
