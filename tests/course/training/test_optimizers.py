from __future__ import annotations

from vit_course.training import TrainingSettings, build_optimizers


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
