"""Wrong answers that no known mistake describes, each with the hidden check that a statement needs for it.

They earned full marks once. A hidden check that no known mistake fails is proven by one of these.
"""

import copy

import torch
from torch import nn

from vit_course.staff.references import REFERENCE

UNLISTED = []  # (exercise, hidden check, answer)


def register_as_failing(exercise, check):
    """A function or class is a wrong answer to ``exercise`` that ``check`` has to catch."""

    def add_answer(answer):
        UNLISTED.append((exercise, check, answer))
        return answer

    return add_answer


def find_reference(exercise):
    """The reference of an exercise with one object."""
    return REFERENCE[exercise][0]


def _register_start(describe, change):
    """A VisionTransformer whose numbers start otherwise."""

    class Starts(find_reference("VisionTransformer")):
        def __init__(self, config):
            super().__init__(config)
            with torch.no_grad():
                change(self)

    Starts.__name__ = describe
    register_as_failing("VisionTransformer", "test_class_token_and_positions_start_as_asked")(Starts)


_register_start("positions_of_ones", lambda model: model.positions.fill_(1))
_register_start("positions_of_zeros", lambda model: model.positions.zero_())
_register_start("positions_as_large_as_tokens", lambda model: model.positions.normal_())
_register_start("positions_evenly_distributed", lambda model: model.positions.uniform_(-0.0346, 0.0346))
_register_start(
    "one_position_for_all", lambda model: model.positions.copy_(model.positions[:, :1].expand_as(model.positions))
)
_register_start("positions_around_a_tenth", lambda model: model.positions.add_(0.1))
_register_start("a_huge_class_token", lambda model: model.class_token.normal_().mul_(100))
_register_start("a_class_token_of_ones", lambda model: model.class_token.fill_(1))


def _register_new_head(check):
    def add_answer(change):
        def replace_head(model, num_classes):
            other = find_reference("replace_head")(model, num_classes)
            return change(other, model) or other

        replace_head.__name__ = change.__name__
        register_as_failing("replace_head", check)(replace_head)

    return add_answer


@_register_new_head("test_the_head_starts_as_pytorch_starts_one")
def a_head_of_zeros(other, _):
    nn.init.zeros_(other.head.weight)


@_register_new_head("test_the_head_starts_as_pytorch_starts_one")
def a_bias_of_zeros(other, _):
    nn.init.zeros_(other.head.bias)


@_register_new_head("test_the_head_starts_as_pytorch_starts_one")
def a_head_of_large_numbers(other, _):
    nn.init.normal_(other.head.weight)


@_register_new_head("test_what_learns_goes_on_learning")
def a_head_as_frozen_as_the_old_one(other, model):
    other.head.requires_grad_(model.head.weight.requires_grad)


@_register_new_head("test_the_copy_is_of_the_models_class_and_device")
def no_bias_where_the_old_head_had_none(other, model):
    other.head.bias = None if model.head.bias is None else other.head.bias


@_register_new_head("test_the_copy_is_of_the_models_class_and_device")
def a_module_with_the_same_parts(other, _):
    plain = nn.Module()
    plain._modules, plain._parameters = other._modules, other._parameters
    return plain


@register_as_failing("replace_head", "test_the_copy_is_of_the_models_class_and_device")
def a_head_on_the_cpu(model, num_classes):
    other = copy.deepcopy(model)
    other.head = nn.Linear(model.head.in_features, num_classes, dtype=model.head.weight.dtype)
    return other


@register_as_failing("evaluate", "test_nothing_is_learned")
def all_learn_afterward(model, loader, device):
    measured = find_reference("evaluate")(model, loader, device)
    model.requires_grad_(True)
    return measured


@register_as_failing("rotary_2d", "test_angles_are_computed_in_float64")
def angles_in_the_dtype_of_the_query(query, key, grid_size):
    (rows, columns), head_dim = grid_size, query.shape[-1]
    find_reference("rotary_2d")(query, key, grid_size)  # which refuses what does not fit
    pairs = torch.arange(head_dim // 4).to(query)
    places = (torch.arange(rows).repeat_interleave(columns), torch.arange(columns).repeat(rows))
    angles = torch.cat([each.to(query)[:, None] / 100 ** (pairs / len(pairs)) for each in places], dim=1)
    cos, sin = angles.cos(), angles.sin()

    def turn(x):
        front, patches = x[..., : -rows * columns, :], x[..., -rows * columns :, :]
        a, b = patches[..., 0::2], patches[..., 1::2]
        return torch.cat([front, torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)], dim=-2)

    return turn(query), turn(key)


@register_as_failing("QKNormAttention", "test_one_image_keeps_its_axis")
class ABatchOfOneIsLost(find_reference("QKNormAttention")):
    def forward(self, x):
        return super().forward(x).squeeze(0)


def _register_group_choice(exercise, check, is_head):
    def fine_tuning_groups(model, backbone_lr, head_lr):
        named = list(model.named_parameters())
        chosen = [is_head(place, name, each, model) for place, (name, each) in enumerate(named)]
        groups = [
            [each for (_, each), here in zip(named, chosen, strict=True) if here is want] for want in (False, True)
        ]
        return [{"params": groups[0], "lr": backbone_lr}, {"params": groups[1], "lr": head_lr}]

    register_as_failing(exercise, check)(fine_tuning_groups)


_AS_NAMED = ("fine_tuning_groups", "test_the_head_is_what_the_model_calls_head")
_register_group_choice(*_AS_NAMED, lambda place, name, each, model: name.startswith("head"))
_register_group_choice(*_AS_NAMED, lambda place, name, each, model: "head" in name.split("."))
_register_group_choice(*_AS_NAMED, lambda place, name, each, model: "head." in name)
_register_group_choice(*_AS_NAMED, lambda place, name, each, model: place >= len(list(model.parameters())) - 2)
_register_group_choice(*_AS_NAMED, lambda place, name, each, model: name in ("head.weight", "head.bias"))
_register_group_choice(
    *_AS_NAMED, lambda place, name, each, model: each.shape in {part.shape for part in model.head.parameters()}
)


class _Dropping(find_reference("DropPath")):
    """Draws its mask itself."""

    def forward(self, branch):
        if not self.training or self.probability == 0:
            return branch
        return self.drop_branches(branch, [-1] + [1] * (branch.ndim - 1))


@register_as_failing("DropPath", "test_chance_decides_anew_in_every_call")
class AnExactNumberIsDropped(_Dropping):
    def drop_branches(self, branch, axes):
        order = torch.randperm(len(branch)).to(branch.device)
        kept = (order >= round(len(branch) * self.probability)).to(branch.dtype)
        return branch * kept.reshape(axes) / (1 - self.probability)


@register_as_failing("DropPath", "test_the_gradient_goes_with_the_branch")
class DroppedImagesGetAGradient(_Dropping):
    def drop_branches(self, branch, axes):
        gone = (torch.rand(len(branch), device=branch.device) < self.probability).to(branch.dtype).reshape(axes)
        return (branch - (branch * gone).detach()) / (1 - self.probability)


@register_as_failing("is_layer_norm", "test_it_catches_look_alikes")
def looks_at_moments_alone(norm):
    """Mean and variance of the result are those of any layer norm whose sign is turned, too."""
    generator = torch.Generator().manual_seed(0)
    spread, mean = torch.rand(2, 2, 3, 5, 1, generator=generator)
    x = 2 * mean + (0.3 + spread) * torch.randn(2, 3, 5, 7, generator=generator)
    weight, bias = torch.randn(2, 7, generator=generator)
    given = x.clone()
    result = norm(given, weight, bias, 0.5)
    if result.shape != x.shape or not torch.equal(given, x):
        return False
    variance, mean = torch.var_mean((result - bias) / weight, -1, correction=0)
    before = x.var(-1, correction=0)
    wanted = before / (before + 0.5)
    return torch.allclose(mean, torch.zeros_like(mean), atol=1e-4) and torch.allclose(variance, wanted, atol=1e-3)
