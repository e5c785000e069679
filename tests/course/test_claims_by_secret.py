"""Wrong answers that once passed: each claim is asked as in grading, with sizes and numbers that a secret draws.

By kind: state that is kept between calls of one size; an argument that is given and false; chance that depends on the
batch or on gradients; sizes that stretch; one row of patches; a dtype of its own.
"""

import pytest
import torch
from torch import Tensor

from exercise_kit.engine.probes import Probe, silence, use_fresh_settings
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure, Undecided
from tests.answers import find_known_mistake
from tests.course.unlisted_answers import find_reference
from vit_course.exercises.catalog import EXERCISES
from vit_course.staff.references import REFERENCE

WRONG = []  # (exercise, claim, answer)
EXAMPLE = "its_own_example_comes_out"


def find_failed_claims(exercise, make):
    """The claims that ``make()``, made anew for each, fails; the docstring's example is not asked."""
    found = set()
    for claim in EXERCISES[exercise].checks:
        student = Student(dict(zip(EXERCISES[exercise].objects, make(), strict=True)))
        with use_fresh_settings(), silence():
            try:
                claim.function(student, Probe(f"{claim.name}, by a secret"))
            except Failure:
                found.add(claim.name)
            except Undecided:
                pass
    return found - {EXAMPLE}


def register_as_failing(exercise, claim):
    def add_wrong_answer(answer):
        WRONG.append((exercise, claim, answer))
        return answer

    return add_wrong_answer


@register_as_failing("replace_head", "the_head_has_the_new_sizes")
def never_fewer_classes(model, num_classes):
    return find_reference("replace_head")(model, max(num_classes, model.head.out_features))


@register_as_failing("linear_probe", "the_layer_has_the_features_dtype")
def always_float64(features, labels, num_classes, weight_decay=1e-3):
    return find_reference("linear_probe")(features.double(), labels, num_classes, weight_decay)


@register_as_failing("split_indices", "another_seed_gives_another_split")
def seed_0_is_42(num_samples, num_validation, seed):
    return find_reference("split_indices")(num_samples, num_validation, seed or 42)


@register_as_failing("parameter_groups", "the_decay_is_the_one_asked_for")
def a_decay_of_0_is_none(model, weight_decay):
    return find_reference("parameter_groups")(model, weight_decay or 0.05)


@register_as_failing("fine_tuning_groups", "the_head_has_its_own_rate")
def a_rate_of_0_is_none(model, backbone_lr, head_lr):
    return find_reference("fine_tuning_groups")(model, backbone_lr or 1e-4, head_lr)


@register_as_failing("LayerScale", "all_of_gamma_starts_at_initial")
class AnInitialOf0IsNone(find_reference("LayerScale")):
    def __init__(self, embed_dim, initial):
        super().__init__(embed_dim, initial or 1e-5)


@register_as_failing("EarlyStopping", "losses_are_compared_with_the_best")
class ABestOf0IsNone(find_reference("EarlyStopping")):
    def step(self, validation_loss):
        self.best = self.best or float("inf")
        return super().step(validation_loss)


@register_as_failing("DropPath", "chance_decides_anew_in_every_call")
class OneImageIsKept(find_reference("DropPath")):
    def forward(self, branch):
        return branch if len(branch) == 1 else super().forward(branch)


@register_as_failing("DropPath", "an_image_is_dropped_whole_or_kept")
class DropsWhileRecording(find_reference("DropPath")):
    def forward(self, branch):
        return super().forward(branch) if torch.is_grad_enabled() else branch


@register_as_failing("patchify", "tall_and_wide_images_are_right")
def strips_of_one_row(images, patch_size):
    if images.shape[2] == patch_size:
        return images.reshape(len(images), -1, images.shape[1] * patch_size**2)
    return find_reference("patchify")(images, patch_size)


@register_as_failing("PatchEmbedding", "one_embedding_takes_any_images")
class StripsOfOneRow(find_reference("PatchEmbedding")):
    def forward(self, images):
        return self.projection(strips_of_one_row(images, self.patch_size))


@register_as_failing("unpatchify", "every_pixel_returns_to_its_place")
def one_row_poured(patches, patch_size, image_size):
    if image_size[0] == patch_size:
        return patches.reshape(len(patches), -1, *image_size)
    return find_reference("unpatchify")(patches, patch_size, image_size)


@register_as_failing("add_class_token", "a_wrong_number_of_positions_is_refused")
def one_row_stretches(tokens, class_token, positions):
    if positions.shape[1] == 1:
        positions = positions.expand(-1, 1 + tokens.shape[1], -1)
    return find_reference("add_class_token")(tokens, class_token, positions)


@pytest.mark.parametrize(("exercise", "claim", "answer"), WRONG, ids=[f"{row[0]}-{row[2].__name__}" for row in WRONG])
def test_its_claim_fails_it(exercise, claim, answer):
    assert claim in find_failed_claims(exercise, lambda: [answer])


def _describe_shapes(value):
    if isinstance(value, Tensor):
        return tuple(value.shape), value.dtype, value.device
    if isinstance(value, list | tuple):
        return tuple(map(_describe_shapes, value))
    return value if isinstance(value, int | float) else None


def make_answer_that_remembers(answer, place):
    """``answer``, which computes with the argument at ``place`` that came first with these sizes."""
    first = {}

    def put_back_first_input(inputs):
        if place >= len(inputs):
            return inputs
        return *inputs[:place], first.setdefault(_describe_shapes(inputs), inputs[place]), *inputs[place + 1 :]

    if not isinstance(answer, type):
        return lambda *inputs: answer(*put_back_first_input(inputs))

    class ComputesWithFirstInput(answer):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            first.clear()

        def forward(self, *inputs, **options):
            return super().forward(*put_back_first_input(inputs), **options)

    return ComputesWithFirstInput


# exercise → how many of its first arguments, of each object, hold numbers
WITH_NUMBERS = {
    "normalize_images": 3,
    "patchify": 1,
    "unpatchify": 1,
    "PatchEmbedding": 1,
    "add_class_token": 3,
    "resize_positions": 1,
    "scaled_dot_product_attention": 3,
    "split_heads": 1,
    "MultiHeadSelfAttention": 1,
    "layer_norm": 3,
    "Mlp": 1,
    "EncoderBlock": 1,
    "VisionTransformer": 1,
    "attention_rollout": 1,
    "mean_attention_distance": 1,
    "LayerScale": 1,
    "add_registers": 2,
    "rotary_2d": 2,
    "QKNormAttention": 1,
    "random_masking": 1,
}


@pytest.mark.parametrize(("exercise", "count"), WITH_NUMBERS.items())
def test_nothing_is_kept_from_a_call_of_the_same_sizes(exercise, count):
    objects = REFERENCE[exercise]
    for which, answer in enumerate(objects):
        for place in range(count):
            made = [*objects]

            def make_remembering_objects(made=made, which=which, answer=answer, place=place):
                made[which] = make_answer_that_remembers(answer, place)
                return made

            assert find_failed_claims(exercise, make_remembering_objects), (
                f"{getattr(answer, '__name__', answer)}, argument {place}"
            )


def test_a_constant_share_is_called_that_whatever_partners_are_drawn():
    """Now and then each image of a small batch is its own partner, which tells nothing of the share."""
    (claim,) = (each for each in EXERCISES["mixup"].checks if each.name == "the_share_is_of_a_beta_distribution")
    wrong = find_known_mistake("mixup", "always half and half")
    for number in range(8):
        student = Student(dict(zip(EXERCISES["mixup"].objects, wrong.objects, strict=True)))
        with pytest.raises(Failure) as failure, use_fresh_settings(), silence():
            claim.function(student, Probe(f"secret {number}"))
        assert "the share is 0.50 every time" in failure.value.seen
