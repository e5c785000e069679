"""What a Python object is by its real type: nothing that its class, or the class of its class, defines is run.

``isinstance``, ``type(x).__name__`` and ``x.__dict__`` ask a student's class, which may answer with code of its own;
``kind in (int, str)`` asks the class of that class for its ``__eq__``.
"""

from __future__ import annotations

from types import GetSetDescriptorType
from typing import Any

mro = type.__dict__["__mro__"].__get__
_name = type.__dict__["__name__"].__get__
namespace_of = type.__dict__["__dict__"].__get__
_MISSING = object()


def is_a(value: object, *kinds: type) -> bool:
    """Say whether it is of one of these classes, or of one that inherits from them."""
    for each in mro(type(value)):  # no generator: whoever watches a student's code is called for each of its steps
        for kind in kinds:
            if each is kind:
                return True
    return False


def read_class_name(kind: type, longest: int = 80) -> str:
    """The name of a class, shortened."""
    return _name(kind)[:longest]


def find_class_attribute(kind: type, name: str) -> Any:
    """Find what stands under ``name`` in a class or in those that it inherits from, unbound; None if nothing does."""
    found = (each for entry in mro(kind) if (each := namespace_of(entry).get(name, _MISSING)) is not _MISSING)
    return next(found, None)


def read_attributes(value: object) -> dict[str, Any]:
    """The attributes that an object holds itself; empty where it holds none."""
    for entry in mro(type(value)):
        held = namespace_of(entry).get("__dict__")
        if type(held) is GetSetDescriptorType:
            return dict(dict.items(held.__get__(value)))
    return {}
