from __future__ import annotations

import pytest
import torch

from vit_course.training.hardware import autocast, choose_precision, measure_bfloat16_speedup, wrap_in_precision

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(("gain", "chosen"), [(2.5, "bf16"), (1.0, "fp32"), (0.1, "fp32")])
def test_a_cpu_takes_bf16_where_it_multiplies_faster_so(gain: float, chosen: str, monkeypatch) -> None:
    monkeypatch.setattr("vit_course.training.hardware.measure_bfloat16_speedup", lambda: gain)
    assert choose_precision("auto", CPU) == chosen


def test_the_gain_is_found_by_trying() -> None:
    assert 0.001 < measure_bfloat16_speedup() < 1000
    assert measure_bfloat16_speedup() is measure_bfloat16_speedup(), "tried once"


@pytest.mark.parametrize(("native", "chosen"), [(True, "bf16"), (False, "fp16")])
def test_a_gpu_takes_bf16_where_it_is_not_emulated(native: bool, chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: native or including_emulation)
    assert choose_precision("auto", CUDA) == chosen


def test_what_is_requested_is_taken() -> None:
    assert choose_precision("bf16", CPU) == "bf16"
    assert choose_precision("fp32", CUDA) == "fp32"


def test_fp16_is_refused_on_a_cpu() -> None:
    with pytest.raises(ValueError, match='"fp16" is for GPUs'):
        choose_precision("fp16", CPU)


def test_on_a_cpu_the_whole_model_is_in_bfloat16_and_learns_in_float32(tiny_model) -> None:
    model, seen = tiny_model(), []
    images = torch.randn(2, 1, 8, 8)
    for module in model.modules():
        module.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    narrow = wrap_in_precision(model, "bf16", CPU)
    with autocast("bf16", CPU):
        logits = narrow(images)
    assert logits.dtype == torch.float32
    assert set(seen) == {torch.bfloat16}
    logits.sum().backward()
    assert {each.grad.dtype for each in model.parameters()} == {torch.float32}
    torch.testing.assert_close(logits, model(images), rtol=0.05, atol=0.05)


@pytest.mark.parametrize(("precision", "device"), [("fp32", CPU), ("bf16", CUDA), ("fp16", CUDA)])
def test_elsewhere_the_model_is_as_it_is(precision: str, device: torch.device, tiny_model) -> None:
    model = tiny_model()
    assert wrap_in_precision(model, precision, device) is model
