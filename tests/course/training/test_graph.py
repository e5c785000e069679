"""A training whose steps are recorded and replayed has the numbers of one whose steps are not.

On a CPU by a stand-in (`fake_graph`), which repeats operations and runs no Python, as a CUDA graph does.
"""

from __future__ import annotations

import math
from dataclasses import replace
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor, nn

from tests.course.training.fake_graph import FakeGraph
from vit_course.data import Augmentation, ImageDataset, shapes
from vit_course.data.randaugment import apply_operations_at_once
from vit_course.training import History, TrainingDivergedError, TrainingSettings, fit
from vit_course.training.graph import Replayed
from vit_course.training.hardware import Processes
from vit_course.training.trainer import Trainer

EVERYTHING = Augmentation(
    max_shift=1, flip=True, erase=2, mixup=0.8, cutmix=1.0, randaugment=True, affine=1.0, color=1.0
)
SETTINGS = TrainingSettings(
    epochs=5,
    batch_size=16,
    learning_rate=4e-3,
    muon_learning_rate=0.02,
    label_smoothing=0.1,
    augmentation=EVERYTHING,
    ema_decay=0.9,
    compile=True,
)  # of 75 images four whole batches an epoch, so 20 steps, and a short one
DRAWN = {"mlp_dropout": 0.2, "in_channels": 3}


@pytest.fixture(autouse=True)
def _skip_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled, which takes a while, and RandAugment reads nothing of what it draws."""
    monkeypatch.setattr("vit_course.data.randaugment.apply_operations_in_groups", apply_operations_at_once)
    monkeypatch.setattr(torch, "compile", lambda model, dynamic: model)


@pytest.fixture
def fake_graph(monkeypatch: pytest.MonkeyPatch) -> FakeGraph:
    made = FakeGraph()
    monkeypatch.setattr("vit_course.training.trainer.make_recorder", lambda processes: made)
    return made


def make_dataset() -> ImageDataset:
    return shapes(75, image_size=8)


def run_steps_by_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every step by Python, on a GPU, too."""
    monkeypatch.setattr(Replayed, "__call__", lambda self, *inputs: self.step(*inputs))


def train_model(model: nn.Module, settings: TrainingSettings = SETTINGS, **keywords: object) -> History:
    return fit(model, make_dataset(), make_dataset().subset(slice(40)), settings, **keywords)


def assert_same_weights(one: nn.Module, other: nn.Module, tolerance: float = 1e-5) -> None:
    for mine, theirs in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=tolerance, atol=tolerance)  # rates are float32 in a graph


class TestTheSameNumbers:
    def test_over_twenty_steps_and_five_short_ones(
        self, fake_graph: FakeGraph, tiny_model, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        replayed, ordinary = tiny_model(**DRAWN), tiny_model(**DRAWN)
        with_graph = train_model(replayed)
        assert fake_graph.recorded == 4  # whole batches and short ones, to learn from and to measure
        assert fake_graph.replayed == 17 + 2 + (5 - 3) * 2
        run_steps_by_python(monkeypatch)
        without = train_model(ordinary)
        assert with_graph.train_loss == pytest.approx(without.train_loss, rel=1e-5)
        assert with_graph.train_accuracy == without.train_accuracy
        assert with_graph.validation_loss == pytest.approx(without.validation_loss, rel=1e-5)
        assert_same_weights(replayed, ordinary)

    def test_of_images_that_grow(self, fake_graph: FakeGraph, tiny_model, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each of their sizes has recordings of its own."""
        growing = replace(SETTINGS, growth=((0.4, 0.5),))
        replayed, ordinary = tiny_model(**DRAWN), tiny_model(**DRAWN)
        train_model(replayed, growing)
        assert fake_graph.recorded == 2 + 2  # whole batches, small and large, to learn from; and to measure
        run_steps_by_python(monkeypatch)
        train_model(ordinary, growing)
        assert_same_weights(replayed, ordinary)

    def test_scaled_gradients(self, fake_graph: FakeGraph, tiny_model, monkeypatch: pytest.MonkeyPatch) -> None:
        """A step that overflows is left out in a replay as well, with no number read."""
        scale_every_gradient(monkeypatch)
        replayed, ordinary = tiny_model(**DRAWN), tiny_model(**DRAWN)
        train_model(replayed)
        assert fake_graph.replayed > 0
        run_steps_by_python(monkeypatch)
        train_model(ordinary)
        assert_same_weights(replayed, ordinary)

    def test_a_run_goes_on(self, fake_graph: FakeGraph, tiny_model, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
        whole, resumed = tiny_model(**DRAWN), tiny_model(**DRAWN)
        train_model(whole)
        began = Trainer._train_one_epoch

        def interrupt_epoch_2(self: Trainer, epoch: int, bar: object) -> object:
            if epoch == 2:
                raise KeyboardInterrupt
            return began(self, epoch, bar)

        with monkeypatch.context() as patch:
            patch.setattr(Trainer, "_train_one_epoch", interrupt_epoch_2)
            assert train_model(tiny_model(**DRAWN), folder=tmp_path, trackers=()).ending == "interrupted"
        assert len(train_model(resumed, folder=tmp_path, resume=True, trackers=()).seconds) == 5
        assert_same_weights(whole, resumed)


def scale_every_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in fp16, which a CPU has not: gradients overflow at the first steps, until the scale has come down."""
    scaler = torch.amp.GradScaler
    monkeypatch.setattr("vit_course.training.trainer.choose_precision", lambda *_: "fp16")
    monkeypatch.setattr("vit_course.training.trainer.autocast", lambda *_: torch.enable_grad())
    monkeypatch.setattr(torch.amp, "GradScaler", lambda device, enabled: scaler(device, 2.0**124, enabled=enabled))


class TestReplays:
    def test_dropout_and_changes_are_drawn_anew(self, fake_graph: FakeGraph) -> None:
        model = nn.Sequential(nn.Flatten(), nn.Dropout(0.1), nn.Linear(192, 10))
        still = replace(SETTINGS, epochs=12, batch_size=75, learning_rate=1e-9, muon_learning_rate=None, ema_decay=None)
        assert len(set(train_model(model, still).train_loss)) == 12
        assert fake_graph.replayed >= 9

    def test_a_loss_that_is_nan_names_the_step(self, fake_graph: FakeGraph, tiny_model) -> None:
        model = tiny_model(**DRAWN)
        model.register_buffer("steps", torch.zeros(()))

        def spoil(module: nn.Module, inputs: object, logits: Tensor) -> Tensor:
            if not module.training:
                return logits
            module.steps += 1
            return torch.where(module.steps == 13 + 2, math.nan, logits)  # two before the first step, to compile

        model.register_forward_hook(spoil)
        with pytest.raises(TrainingDivergedError, match="loss is nan at step 13 of 25"):
            train_model(model)
        assert fake_graph.recorded > 0


class TestWhereItCannotBeRecorded:
    def test_one_sentence_and_the_ordinary_road(
        self, fake_graph: FakeGraph, tiny_model, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ordinary, model = tiny_model(**DRAWN), tiny_model(**DRAWN)

        def read_logits(module: nn.Module, inputs: object, logits: Tensor) -> Tensor:
            assert not module.training or logits.sum().item() < math.inf
            return logits

        model.register_forward_hook(read_logits)
        with pytest.warns(UserWarning, match=r"^the step cannot be recorded as a CUDA graph here \(") as warned:
            history = train_model(model)
        assert len(warned) == 1
        assert history.ending == "finished"
        run_steps_by_python(monkeypatch)
        train_model(ordinary)
        assert_same_weights(model, ordinary)

    def test_memory_that_a_graph_would_need(self, tiny_model, fake_graph: FakeGraph, monkeypatch) -> None:
        monkeypatch.setattr(fake_graph, "record", Mock(side_effect=torch.OutOfMemoryError("CUDA out of memory")))
        with pytest.warns(UserWarning, match="OutOfMemoryError: CUDA out of memory"):
            assert train_model(tiny_model(**DRAWN)).ending == "finished"


def test_several_processes_and_a_cpu_go_without() -> None:
    from vit_course.training.graph import make_recorder

    assert make_recorder(Processes(torch.device("cpu"))) is None
    assert make_recorder(Processes(torch.device("cuda"), count=2)) is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="records a CUDA graph, and there is no GPU")
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_a_cuda_graph_computes_what_python_does(
    precision: str, tiny_model, recwarn: pytest.WarningsRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(SETTINGS, device="cuda", precision=precision)
    replayed, ordinary = tiny_model(**DRAWN), tiny_model(**DRAWN)
    with_graph = train_model(replayed, settings)
    assert not [each for each in recwarn if "cannot be recorded" in str(each.message)]
    run_steps_by_python(monkeypatch)
    without = train_model(ordinary, settings)
    tolerance = 1e-4 if precision == "fp32" else 3e-2  # sums in another order, lifted by Muon's bfloat16
    assert with_graph.train_loss == pytest.approx(without.train_loss, rel=tolerance)
    assert_same_weights(replayed, ordinary, tolerance)
