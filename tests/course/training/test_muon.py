from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from vit_course.training import Muon
from vit_course.training.muon import choose_product_dtype, orthogonalize


def test_it_equals_torchs_matrix_by_matrix() -> None:
    torch.manual_seed(0)
    shapes = [(24, 24), (72, 24), (24, 48), (48, 24), (72, 24), (24, 48), (5, 7)]  # tall, wide and square ones
    ours = [nn.Parameter(torch.randn(shape)) for shape in shapes]
    theirs = copy.deepcopy(ours)
    mine, torchs = Muon(ours, lr=0.05, weight_decay=0.1), torch.optim.Muon(theirs, lr=0.05, weight_decay=0.1)
    for _ in range(5):
        for one, other in zip(ours, theirs, strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        mine.step()
        torchs.step()
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=2e-3)  # 5 steps of 0.05, rounded in bfloat16


def test_a_matrix_without_a_gradient_stays() -> None:
    moved, still = nn.Parameter(torch.eye(3)), nn.Parameter(torch.eye(3))
    moved.grad = torch.ones(3, 3)
    Muon([moved, still], lr=0.1).step()
    assert torch.equal(still, torch.eye(3))
    assert not torch.equal(moved, torch.eye(3))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])  # of gradients, beyond what float16 holds
def test_singular_values_come_near_one(dtype: torch.dtype, size: float) -> None:
    torch.manual_seed(0)
    values = torch.linalg.svdvals(orthogonalize(size * torch.randn(3, 16, 40), dtype).float())
    assert values.min() > 0.6
    assert values.max() < 1.3


@pytest.mark.parametrize(("native", "dtype"), [(True, torch.bfloat16), (False, torch.float16)])
def test_a_gpu_without_bfloat16_of_its_own_multiplies_in_float16(
    native: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: native)
    assert choose_product_dtype(torch.device("cuda")) == dtype


def test_a_vector_is_refused() -> None:
    with pytest.raises(ValueError, match=r"matrices, not a parameter of shape \(3,\)"):
        Muon([nn.Parameter(torch.zeros(3))])


def test_a_closure_is_called_once_and_its_loss_comes_back() -> None:
    weight = nn.Parameter(torch.eye(2))

    def closure() -> torch.Tensor:
        loss = weight.sum()
        loss.backward()
        return loss

    assert Muon([weight], lr=0.1).step(closure) == 2.0
