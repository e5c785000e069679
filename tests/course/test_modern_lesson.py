"""Lesson 10's model out of parts is the ViT of lesson 05 with every part off, and timm's with parts on."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from exercise_kit.authoring.lesson import Role, read_lesson
from exercise_kit.engine.lesson_answers import load_right_objects
from vit_course.config import ViTConfig
from vit_course.training import parameter_groups, warmup_cosine
from vit_course.vit import VisionTransformer

ROOT = Path(__file__).parents[2]
LESSON = ROOT / "solutions" / "10_modern.py"
CELLS = read_lesson(ROOT, LESSON).cells
SIZES = {"image_size": (8, 12), "patch_size": 4, "embed_dim": 32, "depth": 3, "num_heads": 2}
CONFIG = ViTConfig(num_classes=7, **SIZES)


@pytest.fixture(scope="module")
def lesson_names() -> dict[str, Any]:
    """The names of the lesson's own model, and of the parts that it is built from."""
    model_class, *_ = load_right_objects(LESSON, ("ModernViT", "Parts", "BASE"), "vit_course")
    return model_class.__init__.__globals__


FIRST = "block.drop_path(block.scale1(block.attention(block.norm1(x))))"
SECOND = "block.drop_path(block.scale2(block.mlp(block.norm2(x))))"
WIRINGS = {
    "right": (FIRST, SECOND),
    "as in lesson 04": ("block.attention(block.norm1(x))", "block.mlp(block.norm2(x))"),
    "no drop path": (FIRST, "block.scale2(block.mlp(block.norm2(x)))"),
    "one scale for both": (FIRST, SECOND.replace("scale2", "scale1")),
}


@pytest.mark.parametrize("name", WIRINGS)
def test_the_student_s_wiring_is_taken_where_it_is_right(lesson_names, capsys, monkeypatch, name):
    lesson_names, ours = lesson_names.copy(), lesson_names["ModernBlock"].forward
    monkeypatch.setattr(lesson_names["ModernBlock"], "forward", ours)  # and after the test it is ours again
    exec("def wired(block, x):\n    x = x + {}\n    return x + {}".format(*WIRINGS[name]), lesson_names)
    (cell,) = [each for each in CELLS if each.role is Role.CODE and "is_wired" in each.source]
    exec(cell.source, lesson_names)
    assert lesson_names["is_wired"] == (name == "right")
    assert ("Not yet" in capsys.readouterr().out) == (name != "right")
    assert (lesson_names["ModernBlock"].forward is ours) == (name != "right")


def test_both_groups_of_the_optimizer_follow_one_schedule():
    (follow_schedule,) = load_right_objects(LESSON, ("follow_schedule",), "vit_course")
    model = nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(parameter_groups(model, 0.05), lr=0.1)
    follow_schedule(optimizer, total_steps=20)
    for step in range(20):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        assert [group["lr"] for group in optimizer.param_groups] == [0.1 * warmup_cosine(step, 2, 20)] * 2


def randomize_weights(model: nn.Module) -> nn.Module:
    """The model, in evaluation mode, no two of its parameters alike: fresh norms and zero heads would hide mistakes."""
    torch.manual_seed(0)
    for name, parameter in model.named_parameters():
        is_matrix = parameter.ndim >= 2 and name.endswith("weight")
        nn.init.normal_(parameter, std=1 / math.sqrt(parameter.shape[-1]) if is_matrix else 0.5)
    return model.eval()


def rename_weights_for_timm(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The lesson's weights under timm's names; its table has a row for each register, here zeros."""
    dim, registers = CONFIG.embed_dim, weights.pop("registers")
    positions, table = weights.pop("positions"), torch.zeros(1, registers.shape[1], CONFIG.embed_dim)
    kernel = weights.pop("patch_embedding.projection.weight").reshape(dim, 3, CONFIG.patch_size, CONFIG.patch_size)
    found = {
        "cls_token": weights.pop("class_token"),
        "reg_token": registers,
        "pos_embed": torch.cat([positions[:, :1], table, positions[:, 1:]], dim=1),
        "patch_embed.proj.weight": kernel,
        "patch_embed.proj.bias": weights.pop("patch_embedding.projection.bias"),
    }
    renamed = {"attention.": "attn.", "projection": "proj", "query_norm": "q_norm", "key_norm": "k_norm"}
    for name, value in weights.items():
        for ours, theirs in (renamed | {"scale1": "ls1", "scale2": "ls2"}).items():
            name = name.replace(ours, theirs)
        found[name] = value
    return found


def test_with_every_part_off_it_is_the_vit_of_lesson_05(lesson_names):
    plain = randomize_weights(VisionTransformer(CONFIG))
    model = lesson_names["ModernViT"](CONFIG, lesson_names["Parts"]()).eval()
    missing, unexpected = model.load_state_dict(plain.state_dict(), strict=False)
    assert (missing, unexpected) == (["registers"], [])
    images = torch.randn(2, 3, 8, 12)
    assert torch.equal(model(images), plain(images))


@pytest.mark.parametrize("norm", ["LayerNorm and QK-norm", "RMSNorm"])
def test_with_registers_layer_scale_and_norms_it_is_timms(lesson_names, norm):
    from timm.layers import RmsNorm
    from timm.models.vision_transformer import VisionTransformer as TimmVisionTransformer

    parts = lesson_names["Parts"](registers=3, layer_scale=0.1, qk_norm=norm != "RMSNorm", rms_norm=norm == "RMSNorm")
    ours = randomize_weights(lesson_names["ModernViT"](CONFIG, parts))
    theirs = TimmVisionTransformer(
        img_size=CONFIG.image_size,
        num_classes=CONFIG.num_classes,
        reg_tokens=3,
        init_values=0.1,
        qk_norm=parts.qk_norm,
        norm_layer=RmsNorm if parts.rms_norm else None,
        **{name: size for name, size in SIZES.items() if name != "image_size"},
    ).eval()
    theirs.load_state_dict(rename_weights_for_timm(ours.state_dict()))
    assert_same_logits(ours, theirs)


def test_with_rotation_too_it_is_timms_eva(lesson_names):
    """Every part but RMSNorm; timm's Eva has the rotation, and timm's other ViT has not."""
    from timm.models.eva import Eva

    parts = lesson_names["Parts"](registers=3, rotary=True, qk_norm=True, layer_scale=0.1, drop_path=0.2)
    ours = randomize_weights(lesson_names["ModernViT"](CONFIG, parts))
    theirs = Eva(
        img_size=CONFIG.image_size,
        num_classes=CONFIG.num_classes,
        global_pool="token",
        num_reg_tokens=3,
        init_values=0.1,
        qk_norm=True,
        use_rot_pos_emb=True,
        rope_temperature=100.0,
        **{name: size for name, size in SIZES.items() if name != "image_size"},
    ).eval()
    weights = rename_weights_for_timm(ours.state_dict())
    for number, block in enumerate(theirs.blocks):
        query, key, value = weights.pop(f"blocks.{number}.attn.qkv.bias").chunk(3)
        block.attn.k_bias.copy_(key)  # a buffer of zeros, which timm does not save
        weights |= {f"blocks.{number}.attn.q_bias": query, f"blocks.{number}.attn.v_bias": value}
        for branch in (1, 2):
            weights[f"blocks.{number}.gamma_{branch}"] = weights.pop(f"blocks.{number}.ls{branch}.gamma")
    theirs.load_state_dict(weights)
    assert_same_logits(ours, theirs)


def assert_same_logits(ours: nn.Module, theirs: nn.Module) -> None:
    """float32, and an eps of 1e-5 in our QK-norm where timm has 1e-6."""
    images = torch.randn(4, 3, 8, 12)
    with torch.no_grad():
        assert torch.allclose(ours(images), theirs(images), atol=2e-3)
