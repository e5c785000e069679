from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_course.attention import (
    MultiHeadSelfAttention,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)

pytestmark = pytest.mark.usefixtures("seeded")


@torch.no_grad()
def randomize(module: MultiHeadSelfAttention) -> MultiHeadSelfAttention:
    for parameter in module.parameters():
        parameter.normal_(std=0.4)
    return module


@pytest.mark.parametrize("leading", [(), (2,), (2, 3), (2, 3, 4)])
def test_attention_equals_that_of_torch(leading: tuple[int, ...]) -> None:
    query = torch.randn(*leading, 5, 8)
    key, value = torch.randn(*leading, 7, 8), torch.randn(*leading, 7, 6)
    output, weights = scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(output, F.scaled_dot_product_attention(query, key, value))
    assert weights.shape == (*leading, 5, 7)
    torch.testing.assert_close(weights.sum(-1), torch.ones(*leading, 5))


def test_attention_of_two_keys_by_hand() -> None:
    query = torch.tensor([[2.0, 0.0, 0.0, 0.0]])
    key = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    output, weights = scaled_dot_product_attention(query, key, torch.tensor([[10.0], [0.0]]))
    share = torch.tensor(1.0).exp() / (torch.tensor(1.0).exp() + 1)  # scores 2 / √4 = 1, and 0
    torch.testing.assert_close(weights, torch.stack([share, 1 - share])[None])
    torch.testing.assert_close(output, 10 * share.reshape(1, 1))


def test_large_scores_do_not_overflow() -> None:
    output, weights = scaled_dot_product_attention(*torch.full((3, 2, 4), 1e4))
    assert bool(weights.isfinite().all())
    assert bool(output.isfinite().all())


def test_each_head_holds_its_own_slice_of_the_token() -> None:
    x = torch.randn(2, 5, 12)
    heads = split_heads(x, 3)
    assert heads.shape == (2, 3, 5, 4)
    for head in range(3):
        assert torch.equal(heads[:, head], x[:, :, 4 * head : 4 * head + 4])
    assert torch.equal(merge_heads(heads), x)
    assert torch.equal(merge_heads(heads.contiguous()), x)


@pytest.mark.parametrize("make", [lambda: split_heads(torch.zeros(2, 5, 10), 3), lambda: MultiHeadSelfAttention(10, 3)])
def test_heads_that_do_not_divide_are_refused_with_both_numbers(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="embed_dim 10 is not divisible by num_heads 3"):
        make()


@pytest.mark.parametrize("num_heads", [1, 3, 12])
@pytest.mark.parametrize("bias", [True, False])
def test_self_attention_equals_multihead_attention_of_torch(num_heads: int, bias: bool) -> None:
    ours = randomize(MultiHeadSelfAttention(12, num_heads, qkv_bias=bias))
    theirs = nn.MultiheadAttention(12, num_heads, batch_first=True)
    theirs.load_state_dict(
        {
            "in_proj_weight": ours.qkv.weight,
            "in_proj_bias": ours.qkv.bias if bias else torch.zeros(36),
            "out_proj.weight": ours.projection.weight,
            "out_proj.bias": ours.projection.bias,
        }
    )
    x = torch.randn(2, 7, 12)
    expected, expected_weights = theirs(x, x, x, average_attn_weights=False)
    output, weights = ours(x, return_weights=True)
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weights, expected_weights, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(ours(x), expected, atol=1e-5, rtol=1e-5)


def test_parameters_have_the_names_of_the_syllabus() -> None:
    names = ["qkv.weight", "qkv.bias", "projection.weight", "projection.bias"]
    assert list(MultiHeadSelfAttention(12, 3).state_dict()) == names
    names.remove("qkv.bias")
    assert list(MultiHeadSelfAttention(12, 3, False).state_dict()) == names


# tolerances: a few units in the last place of each type
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 0.1), (torch.float16, 0.02)],
)
def test_fused_and_explicit_attention_agree(dtype: torch.dtype, tolerance: float) -> None:
    attention = randomize(MultiHeadSelfAttention(12, 3)).to(dtype).eval()
    x = torch.randn(2, 7, 12).to(dtype)
    with torch.no_grad():
        output, weights = attention(x, return_weights=True)
        torch.testing.assert_close(attention(x), output, atol=tolerance, rtol=tolerance)
    assert output.dtype == weights.dtype == dtype


def test_fused_and_explicit_attention_have_the_same_gradients() -> None:
    attention = randomize(MultiHeadSelfAttention(12, 3)).double()
    x = torch.randn(2, 7, 12, dtype=torch.float64)
    gradients = []
    for output in (attention(x), attention(x, return_weights=True)[0]):
        gradients.append(torch.autograd.grad(output.square().sum(), list(attention.parameters())))
    for fused, explicit in zip(*gradients, strict=True):
        torch.testing.assert_close(fused, explicit)
        assert bool(fused.any())


def test_strided_input_and_a_batch_of_one_pass() -> None:
    attention = randomize(MultiHeadSelfAttention(12, 3))
    x = torch.randn(3, 12, 7).transpose(1, 2)
    torch.testing.assert_close(attention(x), attention(x.contiguous()))
    torch.testing.assert_close(attention(x[:1]), attention(x)[:1], atol=1e-5, rtol=1e-5)


def test_moving_the_tokens_moves_the_output() -> None:
    attention = randomize(MultiHeadSelfAttention(12, 3)).double()
    x, order = torch.randn(2, 7, 12, dtype=torch.float64), torch.randperm(7)
    torch.testing.assert_close(attention(x[:, order]), attention(x)[:, order])


@torch.no_grad()
def counting_attention(rate: float, tokens: int) -> tuple[MultiHeadSelfAttention, Tensor]:
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
    attention, x = counting_attention(rate, tokens)
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
    attention, x = counting_attention(0.5, 4)
    torch.testing.assert_close(attention(x, return_weights=True)[1], torch.full((2, 3, 4, 4), 0.25))


@pytest.mark.parametrize("return_weights", [False, True])
def test_projection_dropout_drops_the_output_in_training_only(return_weights: bool) -> None:
    attention = randomize(MultiHeadSelfAttention(12, 3, projection_dropout=0.5))
    x = torch.randn(4, 16, 12)

    def output() -> Tensor:
        result = attention(x, return_weights)
        return result[0] if return_weights else result

    trained, evaluated = output(), (attention.eval(), output())[1]
    dropped = trained == 0
    assert 0.4 < dropped.float().mean() < 0.6
    torch.testing.assert_close(trained[~dropped], 2 * evaluated[~dropped], atol=1e-5, rtol=1e-5)
