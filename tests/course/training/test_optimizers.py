from __future__ import annotations

import pytest

from vit_course.training import TrainingSettings, build_optimizers, parameter_groups, warmup_cosine


class TestParameterGroups:
    def test_only_matrices_decay(self, tiny_model) -> None:
        model = tiny_model(patch_embedding="convolution")
        names = {parameter: name for name, parameter in model.named_parameters()}
        decayed, plain = parameter_groups(model, 0.1)
        assert [decayed["weight_decay"], plain["weight_decay"]] == [0.1, 0.0]
        decayed_names = [names[parameter] for parameter in decayed["params"]]
        plain_names = [names[parameter] for parameter in plain["params"]]
        assert {"patch_embedding.projection.weight", "blocks.1.mlp.fc2.weight", "head.weight"} <= set(decayed_names)
        assert {"class_token", "positions", "norm.weight", "blocks.0.norm1.weight", "head.bias"} <= set(plain_names)
        assert sorted(decayed_names + plain_names) == sorted(names.values())


class TestBuildOptimizers:
    def test_matrices_of_blocks_go_to_muon(self, tiny_model) -> None:
        model = tiny_model()
        names = {parameter: name for name, parameter in model.named_parameters()}
        adamw, muon = build_optimizers(model, TrainingSettings(muon_learning_rate=0.02, weight_decay=0.1))
        decayed, plain = ({names[p] for p in group["params"]} for group in adamw.param_groups)
        inner = {names[p] for p in muon.param_groups[0]["params"]}
        assert decayed == {"patch_embedding.projection.weight", "head.weight"}
        assert inner == {
            f"blocks.{number}.{part}.weight"
            for number in range(2)
            for part in ("attention.qkv", "attention.projection", "mlp.fc1", "mlp.fc2")
        }
        assert decayed | plain | inner == set(names.values())

    def test_without_a_rate_for_muon_adamw_takes_all(self, tiny_model) -> None:
        (adamw,) = build_optimizers(tiny_model(), TrainingSettings())
        assert sum(len(group["params"]) for group in adamw.param_groups) == len(list(tiny_model().parameters()))

    def test_a_model_without_blocks_gets_no_muon(self, tiny_model) -> None:
        (adamw,) = build_optimizers(tiny_model().head, TrainingSettings(muon_learning_rate=0.02))
        assert sum(len(group["params"]) for group in adamw.param_groups) == 2


class TestWarmupCosine:
    def test_the_rate_rises_in_a_line_and_falls_in_a_cosine(self) -> None:
        factors = [warmup_cosine(step, 4, 12) for step in range(13)]
        assert factors[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
        assert factors[8] == pytest.approx(0.5)
        assert factors[12] == pytest.approx(0.0)
        assert warmup_cosine(0, 0, 1) == 1.0
