"""The grader's right answers against torch's own functions, and one for every exercise."""

import pytest
import torch
import torch.nn.functional as F

from exercise_kit.engine.probes import Probe
from exercise_kit.hidden_checks.checks import reference_student, right_objects
from vit_course import PRESETS
from vit_course.config import ViTConfig
from vit_course.exercises.catalog import EXERCISES
from vit_course.exercises.l03_attention.is_attention import suspects as of_attention
from vit_course.exercises.l04_block.is_layer_norm import suspects as of_layer_norm
from vit_course.exercises.l10_modern.is_rotary import suspects as of_rotary
from vit_course.staff.references import REFERENCE
from vit_course.vit import VisionTransformer


def test_every_exercise_has_its_objects():
    assert {name: len(objects) for name, objects in REFERENCE.items()} == {
        name: len(exercise.objects) for name, exercise in EXERCISES.items()
    }


@pytest.mark.parametrize("kind", [torch.tensor, list, tuple])
def test_normalize_images(kind):
    images = torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    mean, std = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.5, 1.0, 2.0])
    expected = F.batch_norm(images, mean, std.square(), eps=0.0)
    given = right_objects().normalize_images(images, kind(mean.tolist()), kind(std.tolist()))
    assert torch.allclose(given, expected, atol=1e-6)


def test_normalize_images_counts_the_statistics():
    with pytest.raises(ValueError, match="3 channels, but there are 1 means"):
        right_objects().normalize_images(torch.zeros(1, 3, 2, 2), [0.5], [0.5])
    with pytest.raises(ValueError, match="3 channels, but there are 2 standard deviations"):
        right_objects().normalize_images(torch.zeros(1, 3, 2, 2), [0.5] * 3, [0.5] * 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_layer_norm(dtype):
    x, weight, bias = (torch.randn(*size, dtype=dtype) for size in ((2, 3, 7), (7,), (7,)))
    expected = F.layer_norm(x, (7,), weight, bias, 0.1)
    assert torch.allclose(right_objects().layer_norm(x, weight, bias, 0.1), expected, atol=1e-5)


@pytest.mark.parametrize(
    "config",
    [
        PRESETS["vit_base_16"],
        ViTConfig((6, 9), 3, in_channels=2, num_classes=5, embed_dim=8, depth=3, num_heads=2, qkv_bias=False),
        ViTConfig((4, 8), 2, in_channels=1, num_classes=3, embed_dim=6, depth=0, num_heads=1, mlp_ratio=2.5),
    ],
    ids=["ViT-B/16", "without qkv_bias", "without blocks"],
)
def test_count_parameters(config):
    with torch.device("meta"):
        built = sum(each.numel() for each in VisionTransformer(config).parameters())
    assert right_objects().count_parameters(config) == built


TABLES = {"is_attention": of_attention, "is_layer_norm": of_layer_norm, "is_rotary": of_rotary}
SUSPECTS = [
    pytest.param(exercise, suspect.function, is_right, id=f"{exercise}-{suspect.described}")
    for exercise, table in TABLES.items()
    for is_right, found in (
        (True, (*table.RIGHT, *table.MORE_RIGHT)),
        (False, [suspect for draw in table.WRONG.values() for suspect in draw(Probe(0))]),
    )
    for suspect in found
]


@pytest.mark.parametrize(("exercise", "function", "is_right"), SUSPECTS)
def test_a_right_test_tells_right_suspects_from_wrong_ones(exercise, function, is_right):
    (is_one,) = REFERENCE[exercise]
    assert is_one(function) is is_right


def test_a_student_with_the_right_answer():
    split, merge = REFERENCE["split_heads"]
    student, x = reference_student("split_heads"), torch.randn(2, 3, 8)
    assert torch.equal(student(x, 4), split(x, 4))
    assert torch.equal(student.call("merge_heads", split(x, 4)), merge(split(x, 4)))
    with pytest.raises(KeyError):
        reference_student("no_such_exercise")
