"""A second course, of three exercises that know nothing of Vision Transformers."""

from typing import Any

__all__ = ["check"]


def __getattr__(name: str) -> Any:
    if name != "check":
        raise AttributeError(f"module 'numbers_course' has no attribute {name!r}")
    from exercise_kit.engine import check

    return check
