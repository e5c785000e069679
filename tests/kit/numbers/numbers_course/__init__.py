"""A second course, of three exercises that know nothing of Vision Transformers."""

from typing import Any

__all__ = ["borrow", "check", "reset"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'numbers_course' has no attribute {name!r}")
    from exercise_kit import engine

    return getattr(engine, name)
