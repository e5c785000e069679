"""What a student reads of the arguments with which a training fixture called their code."""

import pytest

from exercise_kit.engine.course import course


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"batches": [1], "weights": {}, "training": True}, "a small model, 1 batch of images"),
        ({"parts": [], "weight_decay": 0.1}, "a small model, 0.1"),
        ({"parts": [], "head_lr": 3, "backbone_lr": 2}, "a small model, 2, 3"),
        ({"config": None, "weights": {}, "num_classes": 7}, "a small model, 7"),
        ({"images": "two", "alpha": 0.2, "seed": 1, "calls": 2}, "'two', 0.2, a generator"),
        ({"weights": {}, "config": None, "image": "one"}, "a small model, 'one'"),
        ({"probability": 0.3, "branch": 2.5, "training": True, "calls": 1}, "0.3, and given 2.5"),
        ({"patience": 2, "losses": [1.0]}, "2, and given a few losses"),
    ],
)
def test_what_a_fixture_makes_is_named(fields, shown):
    assert ", ".join(map(repr, course().fixture_inputs(fields))) == shown


def test_other_fields_are_the_arguments():
    assert course().fixture_inputs({"inputs": [1, 2]}) is None
