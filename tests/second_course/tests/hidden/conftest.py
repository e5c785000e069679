"""Fixtures of the hidden checks. ``pytest tests/hidden`` asks every one of them of the reference."""

from exercise_kit.judge.fixtures import (  # noqa: F401  # pytest finds them by their names here
    _fresh_settings,
    device,
    exercise,
    probe,
    pytest_addoption,
    pytest_configure,
    pytest_generate_tests,
    reference,
    results,
    student,
)
