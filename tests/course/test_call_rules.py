"""What an answer may call, as ``check`` says it in the student's own process."""

import gc
import inspect
import re
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis.internal.conjecture import junkdrawer
from torch import nn

from exercise_kit.engine import check
from exercise_kit.engine.call_rules import describe_forbidden_call, is_tensor_operation
from exercise_kit.engine.call_trace import OPERATORS, Watch
from exercise_kit.engine.local_backend import LocalBackend
from vit_course import encoder
from vit_course.attention import MultiHeadSelfAttention
from vit_course.exercises.forbidden_calls import RULES
from vit_course.training import loop
from vit_course.vit import VisionTransformer

ROOT = Path(__file__).parents[2]
WRAPPINGS = ("plain", "compiled", "scripted")


def plain(x, weight, bias, eps: float):
    centered = x - x.mean(-1, keepdim=True)
    return centered / (centered.square().mean(-1, keepdim=True) + eps).sqrt() * weight + bias


def ready_made(x, weight, bias, eps):
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def of_responses(x, weight, bias, eps):
    return F.local_response_norm(x, 3) * weight + bias


@pytest.mark.parametrize(
    ("answer", "called"),
    [
        (ready_made, "`torch.nn.functional.layer_norm` was called. "),
        (lambda *inputs: ready_made(*inputs), "`torch.nn.functional.layer_norm` was called. "),
        (of_responses, "`torch.nn.functional.local_response_norm` was called. "),
        (lambda x, *rest: torch.layer_norm(x, x.shape[-1:], *rest), "`torch.layer_norm` was called. "),
        (lambda x, *rest: nn.LayerNorm(x.shape[-1])(x), "`torch.nn.LayerNorm` was called. "),
    ],
)
def test_what_may_not_be_called_earns_nothing_and_is_named(answer, called):
    before = sys.getprofile()
    report = check("layer_norm", answer, points=5)
    assert report.problem.startswith(called)
    assert "This exercise asks you to write layer_norm yourself" in report.problem
    assert (report.score, report.passed) == (0, False)
    assert sys.getprofile() == before


@pytest.mark.parametrize("wrapping", [lambda answer: answer, torch.compile, torch.jit.script], ids=WRAPPINGS)
def test_a_right_answer_passes_in_whatever_wrapping(wrapping):
    report = check("layer_norm", wrapping(plain), points=5)
    assert (report.problem, report.score) == (None, 5), str(report)


def list_noted_calls(watch, answer):
    watch.wrap(answer)(torch.ones(2, 3), torch.ones(3), torch.zeros(3), 1e-6)
    return watch.names()


def collecting(x, weight, bias, eps):
    gc.collect()
    return plain(x, weight, bias, eps)


def test_what_runs_because_garbage_is_collected_is_not_the_answer_s(monkeypatch):
    """A library may have Python call it back at every collection: a right answer is not to be blamed for that."""
    monkeypatch.setattr(junkdrawer, "_gc_initialized", False)
    before = list(gc.callbacks)
    watch = Watch(None, ())
    junkdrawer.gc_cumulative_time()  # which adds such a function
    try:
        assert any(name.startswith("hypothesis.") for name in list_noted_calls(watch, collecting)), "it is called"
        assert not any(name.startswith("hypothesis.") for name in list_noted_calls(Watch(None, ()), collecting))
    finally:
        gc.callbacks[:] = before


def test_a_compiled_module_is_the_module():
    class Compiled(MultiHeadSelfAttention):
        def __new__(cls, *sizes, **options):
            return torch.compile(MultiHeadSelfAttention(*sizes, **options))

    assert check("MultiHeadSelfAttention", Compiled).passed


def patchify(images, patch_size):
    return F.unfold(images, patch_size, stride=patch_size).mT


class EncoderBlock(encoder.EncoderBlock):
    def forward(self, x):
        return super().forward(x)


def train_one_epoch(*everything):
    return loop.train_one_epoch(*everything)


def test_ones_own_answer_to_another_exercise_is_named():
    def fix_patchify(images, patch_size):
        try:
            return patchify(images, patch_size)
        finally:
            pass

    class FixedBlock(EncoderBlock):
        def forward(self, x):
            return super().forward(x)

    def fix_training(model, loader, optimizer, device):
        return train_one_epoch(model, loader, optimizer, device)

    for answer, called in (
        (fix_patchify, "patchify"),
        (FixedBlock, "EncoderBlock.forward"),
        (fix_training, "train_one_epoch"),
    ):
        exercise = {"FixedBlock": "fix_block"}.get(answer.__name__, answer.__name__)
        report = check(exercise, answer, points=5)
        assert (report.problem or "").startswith(f"Your own `{called}` was called. This exercise asks"), str(report)
        assert report.score == 0


def test_a_helper_of_another_name_may_be_called():
    def fix_patchify(images, patch_size):
        def patchify(images, side):  # of the answer itself
            for pixels in images.shape[2:]:
                if pixels % side:
                    raise ValueError(f"{pixels} is not divisible by {side}")
            patches = images.unfold(2, side, side).unfold(3, side, side)
            return patches.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)

        return patchify(images, patch_size)

    report = check("fix_patchify", fix_patchify, points=5)
    assert report.problem is None
    assert report.passed, str(report)


def test_other_exercises_are_not_watched():
    assert check("Mlp", nn.Linear).problem is None


def test_counting_is_arithmetic():
    def count_parameters_by_building(config):
        with torch.device("meta"):
            return sum(each.numel() for each in VisionTransformer(config).parameters())

    report = check("count_parameters", count_parameters_by_building, points=3)
    assert "was called. This exercise asks for arithmetic" in report.problem
    assert report.score == 0


ALLOWED = """
torch.typename torch._tensor.Tensor torch.functional.einsum torch.nn.functional.softmax torch.nn.functional.normalize
torch.nn.modules.linear.Linear torch.nn.modules.module.Module torch.nn.modules.container.Sequential
torch.nn.parameter.Parameter torch.nn.init.trunc_normal_ torch._functorch.apis.vmap torch.autograd.function.Function
torch.utils.checkpoint.checkpoint torch.ops.aten.bmm torch.ops.aten._softmax torch.ops.aten.add_ torch.ops.aten.cumsum
torch.ops.aten._fft_r2c torch.ops.aten.convolution torch.ops.aten.gelu_backward torch.random.manual_seed
einops.einops.rearrange numpy.linalg.norm vit_course.config.ViTConfig torch.xpu.is_available
"""
NOT_ALLOWED = """
torch.nn.functional.layer_norm torch.nn.modules.normalization.LayerNorm torch.nn.modules.batchnorm._NormBase
torch.nn.functional.scaled_dot_product_attention torch.nn.modules.activation.MultiheadAttention
torch.nn.attention.flex_attention.flex_attention torch.nn.modules.transformer.TransformerEncoderLayer
torch.nn.functional.local_response_norm torch.ops.aten.native_layer_norm torch.ops.aten.rms_norm
torch.ops.aten._scaled_dot_product_flash_attention torch.ops.aten._transformer_encoder_layer_fwd
torch._refs.nn.functional.layer_norm torch._decomp.decompositions.native_layer_norm
torchvision.models.swin_transformer.shifted_window_attention timm.layers.attention.Attention
transformers.models.vit.modeling_vit.eager_attention_forward
torch.ao.nn.quantizable.modules.activation.MultiheadAttention
torch.onnx.ops.attention torch.ops.quantized.layer_norm torch.nn.functional.some_new_attention
"""


@pytest.mark.parametrize("name", ALLOWED.split())
def test_operations_on_tensors_are_allowed_in_every_exercise_but_one(name):
    assert all(rule.allows(name) for exercise, rule in RULES.items() if exercise != "count_parameters")


@pytest.mark.parametrize("name", NOT_ALLOWED.split())
def test_what_is_ready_made_is_not_allowed_where_norms_are_written(name):
    assert describe_forbidden_call(RULES["layer_norm"], ["torch.ops.aten.add", name])


@pytest.mark.parametrize("exercise", [name for name, rule in RULES.items() if rule.withheld])
def test_nothing_is_withheld_that_a_rule_allows(exercise):
    rule = RULES[exercise]
    found = {name for name in OPERATORS if re.search(rule.withheld, name)}
    assert found or exercise == "is_rotary"
    assert not {name for name in found if rule.allows(f"torch.ops.aten.{name}")}


def test_every_method_of_a_tensor_is_an_operation():
    watched = {name for name in dir(torch.Tensor) if not name.startswith("_") and name in OPERATORS}
    machinery = ("q_", "qscheme", "int_repr", "dequantize", "sparse", "smm", "indices", "addmm", "pin_memory", "to_")
    odd = {name for name in watched if not is_tensor_operation(name)}
    assert not {name for name in odd if not any(word in name for word in (*machinery, "dense_dim"))}


def test_what_a_check_gives_to_an_answer_is_not_noted_and_keeps_its_signature():
    def norm(x, weight, bias, eps):
        return ready_made(x, weight, bias, eps)

    def answer(given):
        assert inspect.signature(given) == inspect.signature(norm)
        return given(torch.ones(2, 3), torch.ones(3), torch.zeros(3), 1e-6).exp()

    watch = Watch(str(ROOT), ("vit_course", "exercise_kit"))
    assert LocalBackend({"answer": answer}, watch).call("answer", (norm,)).raised is None
    names = watch.names()
    assert "torch.ops.aten.exp" in names
    assert not any("layer_norm" in name for name in names)
