"""What becomes of a training where torch.compile works, and where it does not."""

from __future__ import annotations

import warnings
from dataclasses import replace
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor, nn

from vit_course.data import Augmentation
from vit_course.training import OutOfMemoryError, TrainingSettings, fit
from vit_course.training.hardware import Fusible, Processes

SETTINGS = TrainingSettings(epochs=2, batch_size=16, augmentation=Augmentation(max_shift=1), compile=True)
FAILURE = RuntimeError("no Python.h\nand a long log")


class Breaking(torch.autograd.Function):
    """Code that was compiled for the forward pass only."""

    @staticmethod
    def forward(ctx, logits: Tensor) -> Tensor:
        return logits.clone()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        raise FAILURE


class Late(nn.Module):
    """What torch.compile makes: it compiles when it is called."""

    def __init__(self, model: nn.Module, error: BaseException | None = None) -> None:
        super().__init__()
        self.model, self.error = model, error

    def forward(self, images: Tensor) -> Tensor:
        if self.error is not None:
            raise self.error
        return Breaking.apply(self.model(images))


def make_late_compiler(error: BaseException | None = None):
    return lambda model, dynamic: Late(model, error)


@pytest.mark.parametrize("growth", [(), ((0.5, 0.5),)], ids=["whole", "growing"])
def test_a_compiled_model_learns_the_same(growth, tiny_model, random_dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    compilation = torch.compile
    monkeypatch.setattr(torch, "compile", lambda model, dynamic: compilation(model, backend="eager"))
    weights = []
    for compiles in (True, False):
        model = tiny_model(mlp_dropout=0.1)
        settings = replace(SETTINGS, compile=compiles, growth=growth)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            history = fit(model, random_dataset(), random_dataset(), settings)
        assert (history.compile_seconds > 0) is compiles
        weights.append(model.head.weight)
    assert torch.equal(*weights)


@pytest.mark.parametrize(
    "compilation",
    [Mock(side_effect=FAILURE), make_late_compiler(FAILURE), make_late_compiler()],
    ids=["call", "forward", "back"],
)
def test_where_it_fails_training_goes_on_without(compilation, tiny_model, random_dataset, monkeypatch) -> None:
    plain, model = tiny_model(mlp_dropout=0.1), tiny_model(mlp_dropout=0.1)
    fit(plain, random_dataset(), random_dataset(), replace(SETTINGS, compile=False))
    monkeypatch.setattr(torch, "compile", compilation)
    words = r"^torch\.compile cannot compile here \(RuntimeError: no Python\.h\); training goes on without it$"
    with pytest.warns(UserWarning, match=words) as warned:
        history = fit(model, random_dataset(), random_dataset(), SETTINGS)
    assert len(warned) == 1
    assert (history.ending, history.compile_seconds) == ("finished", 0.0)
    assert torch.equal(model.head.weight, plain.head.weight)


def test_where_it_fails_in_one_process_all_go_on_without(tiny_model, monkeypatch) -> None:
    monkeypatch.setattr(torch, "compile", make_late_compiler(RuntimeError("never called")))
    monkeypatch.setattr(Processes, "sum_over_processes", lambda self, failed: failed + 1)  # the other one failed
    model, images = tiny_model(), torch.zeros(2, 1, 8, 8)
    fusible = Fusible(model)
    with pytest.warns(UserWarning, match="cannot compile here; training goes on"):
        assert fusible.compile_or_leave(Processes(torch.device("cpu"), count=2), lambda: None) == 0.0
    assert torch.equal(fusible(images), model(images))


def test_a_batch_that_does_not_fit_is_reported_as_such(tiny_model, random_dataset, monkeypatch) -> None:
    monkeypatch.setattr(torch, "compile", make_late_compiler(torch.OutOfMemoryError("CUDA out of memory")))
    with pytest.raises(OutOfMemoryError, match="with 16 images a step; 8 fit"):
        fit(tiny_model(), random_dataset(), random_dataset(), SETTINGS)


def test_ctrl_c_while_it_compiles_ends_the_run(tiny_model, random_dataset, monkeypatch) -> None:
    monkeypatch.setattr(torch, "compile", make_late_compiler(KeyboardInterrupt()))
    assert fit(tiny_model(), random_dataset(), random_dataset(), SETTINGS).ending == "interrupted"


@pytest.mark.filterwarnings("ignore:torch.compile cannot compile")
def test_a_fault_of_the_model_itself_is_raised(random_dataset, monkeypatch) -> None:
    compilation = torch.compile
    monkeypatch.setattr(torch, "compile", lambda model, dynamic: compilation(model, backend="eager"))
    wrong = nn.Sequential(nn.Flatten(), nn.Linear(63, 10))
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        fit(wrong, random_dataset(), random_dataset(), SETTINGS)
