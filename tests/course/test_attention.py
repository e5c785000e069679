from __future__ import annotations

import pytest
import torch
from torch import Tensor

from vit_course.attention import MultiHeadSelfAttention, split_heads

pytestmark = pytest.mark.usefixtures("seed_torch")


@torch.no_grad()
def randomize_parameters(module: MultiHeadSelfAttention) -> MultiHeadSelfAttention:
    for parameter in module.parameters():
        parameter.normal_(std=0.4)
    return module


# tolerances: a few units in the last place of each type
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 0.1), (torch.float16, 0.02)],
)
def test_fused_and_explicit_attention_agree(dtype: torch.dtype, tolerance: float) -> None:
    attention = randomize_parameters(MultiHeadSelfAttention(12, 3)).to(dtype).eval()
    x = torch.randn(2, 7, 12).to(dtype)
    with torch.no_grad():
        output, weights = attention(x, return_weights=True)
        torch.testing.assert_close(attention(x), output, atol=tolerance, rtol=tolerance)
    assert output.dtype == weights.dtype == dtype


@torch.no_grad()
def make_weight_counting_attention(rate: float, tokens: int) -> tuple[MultiHeadSelfAttention, Tensor]:
    """All weights 1 / tokens and all values 1, so that an output counts the weights that were kept."""
    attention = MultiHeadSelfAttention(12, 3, attention_dropout=rate)
    attention.qkv.weight.zero_()
    attention.qkv.bias.zero_()
    attention.qkv.bias[24:] = 1
    attention.projection.weight.copy_(torch.eye(12))
    attention.projection.bias.zero_()
    return attention, torch.randn(2, tokens, 12)


@pytest.mark.parametrize("return_weights", [False, True])
def test_attention_dropout_drops_weights_in_training_only(return_weights: bool) -> None:
    tokens, rate = 16, 0.25
    attention, x = make_weight_counting_attention(rate, tokens)
    output = attention(x, return_weights)
    output = output[0] if return_weights else output
    kept = output * tokens * (1 - rate)
    torch.testing.assert_close(kept, kept.round(), atol=1e-4, rtol=0)
    by_head = split_heads(kept, 3)
    assert torch.equal(by_head, by_head[..., :1].expand_as(by_head))
    assert 0.65 < kept.mean() / tokens < 0.85
    assert by_head[..., 0].unique().numel() > 2
    attention.eval()
    output = attention(x, return_weights)
    torch.testing.assert_close(output[0] if return_weights else output, torch.ones(2, tokens, 12))


def test_weights_are_returned_before_dropout() -> None:
    attention, x = make_weight_counting_attention(0.5, 4)
    torch.testing.assert_close(attention(x, return_weights=True)[1], torch.full((2, 3, 4, 4), 0.25))


@pytest.mark.parametrize("return_weights", [False, True])
def test_projection_dropout_drops_the_output_in_training_only(return_weights: bool) -> None:
    attention = randomize_parameters(MultiHeadSelfAttention(12, 3, projection_dropout=0.5))
    x = torch.randn(4, 16, 12)

    def compute_output() -> Tensor:
        result = attention(x, return_weights)
        return result[0] if return_weights else result

    trained, evaluated = compute_output(), (attention.eval(), compute_output())[1]
    dropped = trained == 0
    assert 0.4 < dropped.float().mean() < 0.6
    torch.testing.assert_close(trained[~dropped], 2 * evaluated[~dropped], atol=1e-5, rtol=1e-5)
