from __future__ import annotations

import pytest
import torch
from torch import nn

from vit_course.training.hardware import autocast, choose_precision, has_bf16_core, width

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(
    ("has_bf16", "embed_dim", "chosen"), [(True, 128, "bf16"), (True, 96, "fp32"), (False, 128, "fp32")]
)
def test_a_cpu_takes_bf16_where_its_cores_have_it_and_the_model_is_wide(
    has_bf16: bool, embed_dim: int, chosen: str, tiny_model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vit_course.training.hardware.has_bf16_core", lambda: has_bf16)
    assert choose_precision("auto", CPU, tiny_model(embed_dim=embed_dim, num_heads=4)) == chosen


@pytest.mark.parametrize(
    ("abilities", "has_it"), [({"avx512_bf16": True}, True), ({"amx_bf16": True}, True), ({"avx2": True}, False)]
)
def test_a_core_is_evaluated_what_it_has(abilities: dict[str, bool], has_it: bool, monkeypatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: abilities, raising=False)
    assert has_bf16_core() is has_it


def test_with_a_torch_that_cannot_tell_a_cpu_takes_fp32(tiny_model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert choose_precision("auto", CPU, tiny_model(embed_dim=256, num_heads=4)) == "fp32"


@pytest.mark.parametrize(("native", "chosen"), [(True, "bf16"), (False, "fp16")])
def test_a_gpu_takes_bf16_where_it_is_not_emulated(
    native: bool, chosen: str, tiny_model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: native or including_emulation)
    assert choose_precision("auto", CUDA, tiny_model()) == chosen


def test_what_is_requested_is_taken(tiny_model) -> None:
    assert choose_precision("bf16", CPU, tiny_model()) == "bf16"
    assert choose_precision("fp32", CUDA, tiny_model()) == "fp32"


def test_fp16_is_refused_on_a_cpu(tiny_model) -> None:
    with pytest.raises(ValueError, match='"fp16" is for GPUs'):
        choose_precision("fp16", CPU, tiny_model())


def test_the_width_is_that_of_the_tokens(tiny_model) -> None:
    assert width(tiny_model(embed_dim=36)) == 36
    assert width(nn.ReLU()) == 0


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_products_are_computed_in_it(precision: str, dtype: torch.dtype) -> None:
    with autocast(precision, CPU):
        assert (torch.eye(2) @ torch.eye(2)).dtype == dtype
