"""Reading attention: what is refused, and what the model tells of its own inner life."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from exercise_kit.engine.lesson_answers import load_right_objects
from vit_course.config import ViTConfig
from vit_course.interpret import (
    attention_rollout,
    class_token_maps,
    patch_filters,
    patch_weights,
    position_similarity,
    record,
)
from vit_course.patches import patchify
from vit_course.vit import VisionTransformer

CONFIG = ViTConfig(image_size=(12, 20), patch_size=4, in_channels=2, num_classes=7, embed_dim=12, depth=3, num_heads=2)


def make_attention_weights(*leading: int, tokens: int) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(*leading, tokens, tokens, generator=generator).softmax(-1)


@pytest.fixture
def model() -> VisionTransformer:
    torch.manual_seed(0)
    made = VisionTransformer(CONFIG)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return made


@pytest.fixture
def image() -> Tensor:
    return torch.randn(2, 12, 20, generator=torch.Generator().manual_seed(1))


class TestRollout:
    def test_layers_may_have_different_numbers_of_heads(self) -> None:
        layers = [make_attention_weights(2, 4, tokens=5), make_attention_weights(2, 3, tokens=5)]
        means = [layer.mean(1, keepdim=True) for layer in layers]
        assert torch.allclose(attention_rollout(layers), attention_rollout(means))

    def test_misfits_are_refused_in_words(self) -> None:
        with pytest.raises(ValueError, match="at least one layer"):
            attention_rollout([])
        with pytest.raises(ValueError, match=r"layer 1 has the shape \(2, 3, 5, 5\), layer 0 \(2, 3, 4, 4\)"):
            attention_rollout([make_attention_weights(2, 3, tokens=4), make_attention_weights(2, 3, tokens=5)])
        with pytest.raises(ValueError, match="layer 0 is not"):
            attention_rollout([torch.ones(2, 3, 4, 5)])


def test_patch_weights_are_the_patches_own() -> None:
    weights = make_attention_weights(1, 2, tokens=7)
    assert torch.equal(patch_weights(weights, (2, 3)), weights[..., 1:, 1:])
    assert torch.equal(patch_weights(weights[..., 1:, 1:], (2, 3)), weights[..., 1:, 1:])


def count_hooks(model: nn.Module) -> int:
    return sum(len(part._forward_pre_hooks) + len(part._forward_hooks) for part in model.modules())


class TestRecord:
    def test_stages_of_a_block_belong_together(self, model: VisionTransformer, image: Tensor) -> None:
        stages = record(model.double(), image[None].double())
        before = stages["embedding"]
        for number, block in enumerate(model.blocks):
            name = f"blocks.{number}"
            attended, weights = block.attention(block.norm1(before), return_weights=True)
            torch.testing.assert_close(stages[f"{name}.attention.weights"], weights)
            torch.testing.assert_close(stages[f"{name}.attention"], attended)
            torch.testing.assert_close(stages[f"{name}.mlp"], block.mlp(block.norm2(before + attended)))
            before = stages[f"{name}.output"]
            torch.testing.assert_close(before, block(stages[f"blocks.{number - 1}.output" if number else "embedding"]))

    def test_mode_gradients_and_dropout_are_the_caller_s(self, image: Tensor) -> None:
        model = VisionTransformer(replace(CONFIG, attention_dropout=0.5, embedding_dropout=0.5))
        nn.init.normal_(model.head.weight)
        trained = record(model, image[None])
        assert model.training
        assert trained["blocks.0.attention.weights"].requires_grad
        assert (trained["embedding"] == 0).any()
        assert not torch.equal(record(model, image[None])["logits"], trained["logits"])
        with torch.no_grad():
            evaluated = record(model.eval(), image[None])
        assert not evaluated["logits"].requires_grad
        assert torch.equal(record(model, image[None])["logits"], evaluated["logits"])
        assert not (evaluated["embedding"] == 0).any()

    def test_the_model_is_left_as_it_was_even_when_it_refuses(self, model: VisionTransformer, image: Tensor) -> None:
        before = model(image[None])
        record(model, image[None])
        assert count_hooks(model) == 0
        with pytest.raises(ValueError, match="images must be"):
            record(model, torch.randn(1, 2, 12, 16))
        assert count_hooks(model) == 0
        assert torch.equal(model(image[None]), before)

    def test_hooks_of_others_stay_and_see_what_they_always_see(self, model: VisionTransformer, image: Tensor) -> None:
        seen: list[Any] = []
        handle = model.blocks[0].attention.register_forward_hook(lambda _, __, output: seen.append(output))
        record(model, image[None])
        model(image[None])
        handle.remove()
        assert len(seen) == 2

    def test_a_model_without_blocks_has_its_other_stages(self, image: Tensor) -> None:
        model = VisionTransformer(replace(CONFIG, depth=0))
        names = ["patch_embedding", "class_token", "embedding", "norm", "pooled", "logits"]
        assert list(record(model, image[None])) == names

    def test_a_whole_model_of_a_lesson_can_be_recorded(self, image: Tensor) -> None:
        """Lesson 05's solution has the parts' names, and neither a dropout nor an encoder of ours."""
        (whole,) = load_right_objects(
            Path(__file__).parents[2] / "solutions" / "05_vit.py", ("VisionTransformer",), "vit_course"
        )
        assert list(record(whole(CONFIG), image[None])) == list(record(VisionTransformer(CONFIG), image[None]))


def test_class_token_maps_are_row_0_without_its_first_entry() -> None:
    weights = make_attention_weights(2, 3, tokens=7)
    maps = class_token_maps(weights, (2, 3))
    assert maps.shape == (2, 3, 2, 3)
    assert torch.equal(maps[1, 2, 1, 0], weights[1, 2, 0, 4])
    with pytest.raises(ValueError, match="should have 10 tokens"):
        class_token_maps(weights, (3, 3))


def test_position_similarity_is_a_cosine() -> None:
    positions = torch.randn(1, 7, 8, generator=torch.Generator().manual_seed(0))
    similarity = position_similarity(positions, (2, 3))
    expected = torch.cosine_similarity(positions[0, 1 + 2], positions[0, 1 + 4], dim=0)
    assert similarity[0, 2, 1, 1].item() == pytest.approx(expected.item(), abs=1e-6)
    with pytest.raises(ValueError, match="7 positions do not fit a grid of 2 x 2"):
        position_similarity(positions, (2, 2))


class TestFilters:
    def test_a_pattern_that_the_embedding_looks_for_comes_first(self) -> None:
        pattern = torch.randn(2, 3, 3, generator=torch.Generator().manual_seed(0))
        strengths = torch.arange(1.0, 6.0)
        noise = 0.01 * torch.randn(5, 18, generator=torch.Generator().manual_seed(1))
        weight = strengths[:, None] * patchify(pattern[None], 3)[0] + noise
        filters, shares = patch_filters(weight, in_channels=2, count=3)
        assert filters.shape == (3, 2, 3, 3)
        alike = torch.cosine_similarity(filters[0].flatten(), pattern.flatten(), dim=0).abs()
        assert alike.item() == pytest.approx(1, abs=1e-2)
        assert shares[0] > 0.99
        assert torch.all(shares.diff() <= 0)

    def test_a_convolution_gives_the_same_as_its_linear(self) -> None:
        kernels = torch.randn(5, 2, 3, 3)
        for found, right in zip(patch_filters(kernels, 2, 4), patch_filters(kernels.flatten(1), 2, 4), strict=True):
            assert torch.equal(found, right)

    def test_misfits_are_refused(self) -> None:
        with pytest.raises(ValueError, match="count 6 is not between 1 and 5"):
            patch_filters(torch.randn(5, 18), 2, 6)
        with pytest.raises(ValueError, match="18 numbers are no square patch of 3 channels"):
            patch_filters(torch.randn(5, 18), 3, 2)
