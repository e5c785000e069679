from __future__ import annotations

import pytest

from vit_course.training import TrainingSettings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", 0),
        ("batch_size", 0),
        ("patience", 0),
        ("learning_rate", 0.0),
        ("learning_rate", float("nan")),
        ("muon_learning_rate", -1.0),
        ("gradient_clip", 0.0),
        ("warmup", 1.0),
        ("ema_decay", 1.0),
        ("label_smoothing", -0.1),
        ("weight_decay", -0.1),
    ],
)
def test_numbers_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must .*{value}"):
        TrainingSettings(**{name: value})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("precision", "fp8", "'auto', 'fp32', 'bf16', 'fp16', not 'fp8'"),
        ("schedule", "linear", "'cosine', 'constant', not 'linear'"),
        ("device", "gpu", '"cpu", "cuda" or "auto", not \'gpu\''),
    ],
)
def test_unknown_words_are_refused(name: str, value: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be.*{words}"):
        TrainingSettings(**{name: value})
