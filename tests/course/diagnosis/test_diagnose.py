"""diagnose: what it says of models with one mistake, in which of its four words, and that it changes nothing."""

from __future__ import annotations

import copy
import importlib
import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import SGD
from typer.testing import CliRunner
from wrong_models import iterate_wrong_models

from vit_course import VisionTransformer, ViTConfig, diagnose, diagnosis
from vit_course.cli import app
from vit_course.exercises.catalog import EXERCISES

CONFIG = ViTConfig(image_size=32, patch_size=8, embed_dim=48, depth=2, num_heads=4)
IMAGES = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
WRONG = {each.key: each for each in iterate_wrong_models()}
NAMED = {
    "MultiHeadSelfAttention: softmax down the queries": "wrong",
    "MultiHeadSelfAttention: heads split by view": "wrong",
    "MultiHeadSelfAttention: heads merged by view": "wrong",
    "MultiHeadSelfAttention: heads see slices of the input": "wrong",
    "MultiHeadSelfAttention: attention over the batch": "wrong",
    "MultiHeadSelfAttention: root of embed dim": "unusual",
    "MultiHeadSelfAttention: no projection": "unusual",
    "EncoderBlock: no residual": "wrong",
    "EncoderBlock: norm2 forgotten": "wrong",
    "EncoderBlock: norm1 used twice": "wrong",
    "EncoderBlock: post norm": "unusual",
    "EncoderBlock: both branches from the input": "unusual",
    "VisionTransformer: no final norm": "wrong",
    "VisionTransformer: first patch pooled": "wrong",
    "VisionTransformer: softmax in the head": "wrong",
    "VisionTransformer: mean of all tokens": "unusual",
    "VisionTransformer: positions never added": "wrong",
    "VisionTransformer: class token cut from the graph": "wrong",
    "Mlp: no activation": "wrong",
    "Mlp: activation after the last layer": "wrong",
    "Mlp: relu for gelu": "unusual",
    "PatchEmbedding: embedding of strips": "wrong",
    "PatchEmbedding: reshaped where transposed": "wrong",
    "PatchEmbedding: embedding in column order": "unusual",
    "layer_norm: statistics over the tokens": "wrong",
    "layer_norm: squares summed not averaged": "wrong",
}


@pytest.fixture(scope="module")
def right_model():
    torch.manual_seed(0)
    return VisionTransformer(CONFIG)


def test_every_name_that_can_be_told_is_one_of_the_library():
    told = set()
    for file in Path(diagnosis.__file__).parent.glob("*.py"):
        module = importlib.import_module(f"{diagnosis.__name__}.{file.stem}")
        prefixes = {name: each for name, each in vars(module).items() if isinstance(each, str) and each.endswith(": ")}
        text = file.read_text("utf-8")
        for name, prefix in prefixes.items():
            text = text.replace(f"{{{name}}}", prefix)
        told |= set(re.findall(r'"((?:\w+): [a-z][^"{}]*)"', text))
    known = {f"{name}: {each.name}" for name, exercise in EXERCISES.items() for each in exercise.misconceptions}
    names = {each for each in told if each.partition(": ")[0] in EXERCISES}
    assert len(names) > 60
    assert names <= known


@pytest.mark.parametrize("key", NAMED)
def test_a_known_mistake_is_seen_and_named(right_model, key):
    report = diagnose(WRONG[key].build(right_model), IMAGES)
    named = {": ".join(each.mistake) for each in report.of(NAMED[key]) if each.mistake}
    assert key in named, str(report)
    assert key.partition(": ")[2] in str(report)


def test_a_pass_that_gradients_stop_is_asked_without_them(right_model):
    report = diagnose(WRONG["scaled_dot_product_attention: query scaled in place"].build(right_model), IMAGES)
    assert [each.asked for each in report.of("wrong")] == ["gradient_flows"]
    assert "image_alone" in {each.asked for each in report.of("holds")}


def test_of_what_is_no_vit_only_what_any_classifier_has_is_asked():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))
    report = diagnose(model, IMAGES)
    assert report.of("wrong") == report.of("unusual") == ()
    assert [each.asked for each in report.of("not asked")] == ["attention_there"]
    assert {"image_alone", "used", "dropout_used"} <= {each.asked for each in report.of("holds")}
    assert "no attention was found" in str(report)
    assert report.ran


def test_a_slip_is_seen_in_what_is_no_vit():
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.head, self.idle = nn.Conv2d(3, 8, 32), nn.Linear(3072, 8), nn.Linear(8, 8)

        def forward(self, images):
            with torch.no_grad():
                features = self.conv(images).flatten(1)
            return features + self.head(images.flatten(1))

    found = diagnose(Half(), IMAGES).of("wrong")
    assert [(each.asked, each.mistake) for each in found] == [("used", None), ("used", None), ("gradient_whole", None)]
    assert "no gradient comes back to `conv.weight`, `conv.bias`" in found[0].seen
    assert "`idle.weight`, `idle.bias` do not change the logits" in found[1].seen


def test_the_report_counts_in_its_own_words(right_model):
    broken = copy.deepcopy(right_model)
    broken.norm, broken.blocks[0].norm1 = nn.Identity(), nn.Identity()
    text = " ".join(str(diagnose(broken, IMAGES, labels=torch.tensor([1, 2]))).split())
    assert "2 wrong, 3 not asked, " in text
    assert re.search(r"✓ \d+ hold$", text)
    assert "○ 1 more for the same reason." in text
    assert "check" not in text
    assert "wait" not in text


def test_nothing_is_changed():
    torch.manual_seed(0)
    model = VisionTransformer(ViTConfig(image_size=16, patch_size=8, embed_dim=16, depth=1, num_heads=2)).train()
    calls: list[nn.Module] = []
    hook = model.head.register_forward_hook(lambda module, *_: calls.append(module))
    before = copy.deepcopy(model.state_dict())
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    fast = torch.backends.mha.get_fastpath_enabled()
    images = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    kept, labels = images.clone(), torch.tensor([0, 1])
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.0)
    with torch.no_grad():
        report = diagnose(model, images, labels=labels, optimizer=optimizer)
        assert not torch.is_grad_enabled()
    assert report.of("wrong") == (), str(report)
    assert model.training
    assert calls == []
    assert hook.id in model.head._forward_hooks
    assert all(torch.equal(before[name], each) for name, each in model.state_dict().items())
    assert all(each.grad is None for each in model.parameters())
    assert torch.equal(images, kept)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert (random.getstate(), np.random.get_state()[1].tolist()) == states[1:]
    assert torch.backends.mha.get_fastpath_enabled() == fast
    assert optimizer.state == {}


def test_an_error_of_the_model_is_told_with_its_line(right_model):
    class Raises(VisionTransformer):
        def _embed(self, patches):
            raise ValueError("no such thing")

    (only,) = diagnose(Raises(CONFIG), IMAGES).findings
    assert only.answer == "not asked"
    assert "ValueError: no such thing" in only.seen
    assert (Path(only.file).name, only.line) == (Path(__file__).name, Raises._embed.__code__.co_firstlineno + 1)


@pytest.mark.parametrize(
    ("change", "asked", "words"),
    [
        (lambda model: {"labels": torch.tensor([0, 10])}, "labels_in_range", "0 to 10"),
        (
            lambda model: {"optimizer": SGD(model.head.parameters(), lr=0.1)},
            "optimizer_holds_all",
            "not in the optimizer",
        ),
        (lambda model: {"loss": lambda logits, labels: logits.sum() * float("nan")}, "step_changes_all", "nan"),
    ],
)
def test_a_step_of_learning(right_model, change, asked, words):
    model = copy.deepcopy(right_model)
    given = {"labels": torch.tensor([0, 1]), "optimizer": SGD(model.parameters(), lr=0.1), "loss": None}
    found = [each for each in diagnose(model, IMAGES, **(given | change(model))).of("wrong") if each.asked == asked]
    assert len(found) == 1
    assert words in found[0].seen


@pytest.mark.parametrize(
    ("model", "images", "error"),
    [(3, IMAGES, TypeError), (nn.Identity(), [1], TypeError), (nn.Identity(), torch.ones(3, 32, 32), ValueError)],
)
def test_bad_input_is_refused(model, images, error):
    with pytest.raises(error, match="must be"):
        diagnose(model, images)


FILE = """
print("running")
class needs:
    def __init__(self, size): ...
from vit_course import VisionTransformer, ViTConfig
class ViT(VisionTransformer):
    def __init__(self, dim=16):
        super().__init__(ViTConfig(image_size=16, patch_size=8, embed_dim=dim, depth=1, num_heads=2))
    def forward(self, images):
        return super().forward(images).softmax(-1)
"""


def test_the_command_runs_a_file(tmp_path):
    (tmp_path / "mine.py").write_text(FILE)
    result = CliRunner().invoke(
        app, ["diagnose", f"{tmp_path}/mine.py:ViT", "--call", "ViT(dim=24)", "--images", "3x16x16", "--json", "-"]
    )
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    wrong = [each for each in found["findings"] if each["answer"] == "wrong"]
    assert [(each["property"], each["mistake"]) for each in wrong] == [
        ("logits_no_probabilities", "softmax in the head")
    ]
    assert wrong[0]["pages"].keys() == {"softmax in the head"}
    assert wrong[0]["file"].endswith("mine.py")
    assert "Running" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mine.py"], "FILE:MODEL"),
        (["none.py:ViT"], "there is no file"),
        (["mine.py:Vit"], "it has ViT, VisionTransformer"),
        (["mine.py:ViT", "--call", "ViT(dim='a')"], "ViT(dim='a') raises TypeError: '<' not supported"),
        (["mine.py:ViT", "--call", "ViT(dim=7)"], "(config.py, line "),
        (["mine.py:needs"], "say with --call how to make needs: needs() raises TypeError"),
        (["mine.py:ViT", "--images", "3x20x20"], "nothing could be asked: the model raises ValueError"),
        (["mine.py:ViT", "--call", "3"], "not a torch.nn.Module"),
        (["mine.py:ViT", "--images", "32"], "CxHxW"),
    ],
)
def test_the_command_says_what_is_missing(tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FILE)
    result = CliRunner().invoke(app, ["diagnose", *arguments])
    assert result.exit_code != 0
    assert words in " ".join(result.output.split())
    assert "Traceback" not in result.output
