"""Wrong answers of which the text says what they break, beside the library's: traces that they leave behind.

Each was found by somebody who had not seen the checks, and had full marks.
"""

from functools import lru_cache, wraps

import pytest
import torch

from exercise_kit.engine import check
from exercise_kit.engine.verdict import Verdict
from tests.course.test_hidden_checks import KEYS, run_hidden_checks, summarize_outcomes
from vit_course.attention import merge_heads, scaled_dot_product_attention, split_heads
from vit_course.encoder import EncoderBlock
from vit_course.interpret import attention_rollout, mean_attention_distance, predict_with_attention
from vit_course.patches import patchify, unpatchify
from vit_course.positions import add_class_token, sinusoidal_positions
from vit_course.pretrained import conv_from_linear, load_torchvision, resize_positions
from vit_course.staff.references import layer_norm
from vit_course.training import evaluate
from vit_course.vit import VisionTransformer


def a_hook_stays(model, loader, device):
    model.register_forward_hook(lambda *_: None)
    return evaluate(model, loader, device)


def in_double_for_good(model, loader, device):
    return evaluate(model.double(), [(images.double(), labels) for images, labels in loader], device)


def gradients_cleared(model, image):
    model.zero_grad()
    return predict_with_attention(model, image)


def others_hooks_cleared(model, image):
    found = predict_with_attention(model, image)
    model.blocks[-1].attention._forward_hooks.clear()
    return found


def all_parameters_learn(model, image):
    model.requires_grad_(False)
    found = predict_with_attention(model, image)
    model.requires_grad_(True)
    return found


def the_list_is_emptied(weights):
    return attention_rollout([weights.pop(0) for _ in range(len(weights))])


def the_generator_starts_anew(num_samples, num_validation, seed):
    if not 0 < num_validation < num_samples:
        raise ValueError(f"num_validation {num_validation}")
    before = torch.initial_seed()
    order = torch.randperm(num_samples, generator=torch.manual_seed(seed))
    torch.manual_seed(before)
    return order[num_validation:], order[:num_validation]


class ImagesClamped(VisionTransformer):
    def forward(self, images):
        logits = super().forward(images)
        images.clamp_(-1, 1)
        return logits


def width_cut(config):
    dim, hidden = config.embed_dim, int(config.embed_dim * config.mlp_ratio)
    qkv = 3 * dim * dim + 3 * dim * config.qkv_bias
    block = 4 * dim + qkv + dim * dim + dim + 2 * dim * hidden + hidden + dim
    patches = config.in_channels * config.patch_size**2 * dim + dim
    ends = dim + (config.num_patches + 1) * dim + 2 * dim + (dim + 1) * config.num_classes
    return patches + ends + config.depth * block


def refusing_other_channels(images, mean):
    if len(mean) != images.shape[1]:
        raise ValueError(f"images have {images.shape[1]} channels, but there are {len(mean)} means")


def statistics_of_their_own_dtype(images, mean, std):
    refusing_other_channels(images, mean)
    mean, std = (torch.as_tensor(each, device=images.device).view(-1, 1, 1) for each in (mean, std))
    return (images - mean) / std


def computed_in_float32(images, mean, std):
    refusing_other_channels(images, mean)
    mean, std = (torch.as_tensor(each).to(images.device, torch.float32).view(-1, 1, 1) for each in (mean, std))
    return ((images.float() - mean) / std).to(images.dtype)


def large_patches_reshaped(images, patch_size):
    if patch_size >= 16:
        return images.reshape(len(images), -1, images.shape[1] * patch_size**2)
    return patchify(images, patch_size)


def three_channels_flipped(images, patch_size):
    return patchify(images.flip(1) if images.shape[1] == 3 else images, patch_size)


def the_other_side_named(images, patch_size):
    for other, side in zip(("width", "height"), images.shape[2:], strict=True):
        if side % patch_size:
            raise ValueError(f"{other} {side} is not divisible by patch_size {patch_size}")
    return patchify(images, patch_size)


def the_linear_frozen(projection, in_channels, patch_size):
    made = conv_from_linear(projection, in_channels, patch_size)
    projection.requires_grad_(False)
    return made


def a_weight_that_is_no_parameter(projection, in_channels, patch_size):
    made = conv_from_linear(projection, in_channels, patch_size)
    weight = made.weight.data
    del made.weight
    made.weight = weight
    return made


KEPT = {}


def make_answer_reuse_buffer(function):
    """Right numbers, in a tensor that the next call of the same shape overwrites."""

    @wraps(function)
    def call_in_place(*inputs):
        result = function(*inputs)
        key = function.__name__, result.shape, result.dtype, result.device
        return KEPT.setdefault(key, result.detach().clone()).copy_(result.detach())

    return call_in_place


@lru_cache
def one_table_for_all(num_positions, embed_dim):
    return sinusoidal_positions(num_positions, embed_dim)


def double_for_good(num_positions, embed_dim):
    torch.set_default_dtype(torch.float64)
    return sinusoidal_positions(num_positions, embed_dim)


def at_most_512_positions(num_positions, embed_dim):
    return sinusoidal_positions(min(num_positions, 512), embed_dim).repeat(1 + num_positions // 512, 1)[:num_positions]


def the_model_frozen(model, state_dict):
    return load_torchvision(model, state_dict).requires_grad_(False)


class AttentionLeftInEvaluation(EncoderBlock):
    def forward(self, x):
        self.attention.train(False)
        return super().forward(x)


class NowAndThenWithoutMlp(EncoderBlock):
    def forward(self, x):
        whole = super().forward(x)
        if not self.training or torch.rand(()) > 0.15:
            return whole
        return x + self.attention(self.norm1(x))


def one_channel_as_it_is(x, weight, bias, eps):
    return x * weight + bias if x.shape[-1] == 1 else layer_norm(x, weight, bias, eps)


def weights_compared_when_sorted(attend):
    return equals_right_attention(attend, of_weights=lambda weights: weights.sort(-1).values)


def the_first_image_compared(attend):
    return equals_right_attention(attend, of_output=lambda output: output[:1])


def equals_right_attention(attend, of_output=lambda output: output, of_weights=lambda weights: weights):
    """A test of attention that compares with a right one what is seen of output and weights."""
    generator = torch.Generator().manual_seed(5)
    sizes = (3, 5, 4), (3, 7, 4), (3, 7, 6)
    inputs = [torch.randn(size, generator=generator) for size in sizes]
    for given in (inputs, [each[0] for each in inputs]):
        output, weights = attend(*given)
        right, right_weights = scaled_dot_product_attention(*given)
        if output.shape != right.shape or weights.shape != right_weights.shape:
            return False
        pairs = ((of_output(output), of_output(right)), (of_weights(weights), of_weights(right_weights)))
        if not all(torch.allclose(found, wanted, atol=1e-5) for found, wanted in pairs):
            return False
    return True


def norms_compared(norm, seen=lambda result: result):
    """A test of layer normalization that compares with a right one what is seen of the result."""
    generator = torch.Generator().manual_seed(5)
    x, weight, bias = (torch.randn(size, generator=generator) for size in ((3, 2, 4, 6), (6,), (6,)))
    before = x.clone()
    result = norm(x, weight, bias, 0.5)
    if result.shape != before.shape or not torch.equal(x, before):
        return False
    return torch.allclose(seen(result), seen(layer_norm(x, weight, bias, 0.5)), atol=1e-5)


def the_first_image_normed(norm):
    return norms_compared(norm, lambda result: result[:1])


def the_last_token_normed(norm):
    return norms_compared(norm, lambda result: result[..., -1, :])


def the_first_dimension_normed(norm):
    return norms_compared(norm, lambda result: result[..., :1])


HIDDEN = [
    ("EncoderBlock", AttentionLeftInEvaluation),
    ("EncoderBlock", NowAndThenWithoutMlp),
    ("layer_norm", one_channel_as_it_is),
    ("is_attention", weights_compared_when_sorted),
    ("is_attention", the_first_image_compared),
    ("is_layer_norm", the_first_image_normed),
    ("is_layer_norm", the_last_token_normed),
    ("is_layer_norm", the_first_dimension_normed),
    ("layer_norm", make_answer_reuse_buffer(layer_norm)),
    ("split_heads", (make_answer_reuse_buffer(split_heads), merge_heads)),
    ("load_torchvision", the_model_frozen),
    ("normalize_images", statistics_of_their_own_dtype),
    ("normalize_images", computed_in_float32),
    ("patchify", large_patches_reshaped),
    ("patchify", three_channels_flipped),
    ("patchify", the_other_side_named),
    ("patchify", make_answer_reuse_buffer(patchify)),
    ("unpatchify", make_answer_reuse_buffer(unpatchify)),
    ("conv_from_linear", the_linear_frozen),
    ("conv_from_linear", a_weight_that_is_no_parameter),
    ("sinusoidal_positions", one_table_for_all),
    ("sinusoidal_positions", double_for_good),
    ("sinusoidal_positions", at_most_512_positions),
    ("add_class_token", make_answer_reuse_buffer(add_class_token)),
    ("resize_positions", make_answer_reuse_buffer(resize_positions)),
    ("attention_rollout", make_answer_reuse_buffer(attention_rollout)),
    ("mean_attention_distance", make_answer_reuse_buffer(mean_attention_distance)),
    ("evaluate", a_hook_stays),
    ("evaluate", in_double_for_good),
    ("predict_with_attention", gradients_cleared),
    ("predict_with_attention", others_hooks_cleared),
    ("predict_with_attention", all_parameters_learn),
    ("attention_rollout", the_list_is_emptied),
    ("split_indices", the_generator_starts_anew),
    ("VisionTransformer", ImagesClamped),
    ("count_parameters", width_cut),
]
# left to the hidden checks, like every result that the next call overwrites
ONLY_HIDDEN = (
    *(ImagesClamped, width_cut, computed_in_float32, the_linear_frozen, the_model_frozen),
    *(one_table_for_all, double_for_good, at_most_512_positions),
)
PUBLIC = [
    (exercise, wrong)
    for exercise, wrong in HIDDEN
    if wrong not in ONLY_HIDDEN and not isinstance(wrong, tuple) and not hasattr(wrong, "__wrapped__")
]


@pytest.fixture(autouse=True)
def restore_default_dtype():
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(("exercise", "wrong"), HIDDEN)
def test_the_hidden_checks_see_it(exercise, wrong):
    outcomes = run_hidden_checks(exercise, wrong if isinstance(wrong, tuple) else (wrong,), KEYS[0])
    assert any(each.result.verdict == Verdict.FAIL for each in outcomes), summarize_outcomes(outcomes)


@pytest.mark.parametrize(("exercise", "wrong"), PUBLIC)
@pytest.mark.proof
def test_the_public_checks_see_it(exercise, wrong):
    assert not check(exercise, wrong).passed


def test_indices_without_number_are_refused_by_their_count():
    def by_the_million(num_samples, num_validation, seed):
        return torch.arange(3_000_000), torch.arange(2)

    outcomes = run_hidden_checks("split_indices", (by_the_million,), KEYS[0])
    assert any("3,000,000 indices" in (each.result.message or "") for each in outcomes), summarize_outcomes(outcomes)


def test_a_long_list_of_names_is_no_name():
    class EndsAtNan:
        def __init__(self, patience):
            self.patience, self.best, self.bad_epochs = patience, float("inf"), 0

        def step(self, loss):
            if loss != loss:
                return True
            self.bad_epochs = 0 if loss < self.best else self.bad_epochs + 1
            self.best = min(self.best, loss)
            return self.bad_epochs >= self.patience

    outcomes = run_hidden_checks("EarlyStopping", (EndsAtNan,), KEYS[0])
    assert all(len(each.result.causes) <= 3 for each in outcomes), summarize_outcomes(outcomes)
