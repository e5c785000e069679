"""Wrong answers of which the text says what they break, beside the library's: traces that they leave behind.

Each was found by somebody who had not seen the checks, and had full marks.
"""

import pytest
import torch

from tests.course.test_hidden_checks import KEYS, ask, told
from vit_course.checks import check
from vit_course.checks.verdict import Verdict
from vit_course.interpret import attention_rollout, predict_with_attention
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


HIDDEN = [
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
PUBLIC = [each for each in HIDDEN if each[0] not in ("VisionTransformer", "count_parameters")]


@pytest.mark.parametrize(("exercise", "wrong"), HIDDEN)
def test_the_hidden_checks_see_it(exercise, wrong):
    outcomes = ask(exercise, (wrong,), KEYS[0])
    assert any(each.result.verdict == Verdict.FAIL for each in outcomes), told(outcomes)


@pytest.mark.parametrize(("exercise", "wrong"), PUBLIC)
def test_the_public_checks_see_it(exercise, wrong):
    assert not check(exercise, wrong).passed


def test_indices_without_number_are_refused_by_their_count():
    def by_the_million(num_samples, num_validation, seed):
        return torch.arange(3_000_000), torch.arange(2)

    outcomes = ask("split_indices", (by_the_million,), KEYS[0])
    assert any("3,000,000 indices" in (each.result.message or "") for each in outcomes), told(outcomes)


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

    outcomes = ask("EarlyStopping", (EndsAtNan,), KEYS[0])
    assert all(len(each.result.causes) <= 3 for each in outcomes), told(outcomes)
