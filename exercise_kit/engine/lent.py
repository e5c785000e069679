"""The course's parts as they are lent: they work, and show nothing of how they are written.

A lent part calls the right one. What ``inspect.getsource`` and Jupyter's ``??`` show of it is the call in this file,
and an exception that leaves it begins here. The wheel of a release holds the right parts as plain files, and says so:
this keeps an answer from a student who did not ask for it, and hides nothing from one who goes looking.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any
from weakref import WeakSet

from exercise_kit.engine.course import course
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.engine.exercise import Exercise

_lent: WeakSet[Any] = WeakSet()


def hide_source(implementation: Any) -> Any:
    """A right function, or class, as one that shows nothing of its source; :func:`is_lent_part` knows it."""
    lent = (
        _hide_source_of_class(implementation)
        if inspect.isclass(implementation)
        else _hide_source_of_function(implementation)
    )
    _lent.add(lent)
    return lent


def is_lent_part(value: object) -> bool:
    """Say whether this is a lent part, or a class made from one."""
    if inspect.isclass(value):
        return any(each in _lent for each in value.__mro__)
    return inspect.isfunction(value) and value in _lent


def _hide_source_of_function(function: Callable[..., Any]) -> Callable[..., Any]:
    def call_right(*inputs: Any, **options: Any) -> Any:
        try:
            return function(*inputs, **options)
        except Exception as error:  # its traceback would show lines of the answer
            raise error.with_traceback(None) from None

    functools.update_wrapper(call_right, function)
    del call_right.__wrapped__  # type: ignore[attr-defined]  # by which getsource would find the answer
    call_right.__module__ = read_package_name()
    call_right.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return call_right


def _hide_source_of_class(implementation: type) -> type:
    """A class made from the right one whose methods show nothing; parameters keep their names."""
    own: dict[str, Any] = {
        "__module__": read_package_name(),
        "__doc__": implementation.__doc__,
        "__qualname__": implementation.__qualname__,
    }
    for name, value in vars(implementation).items():
        if inspect.isfunction(value):
            own[name] = _hide_source_of_function(value)
        elif isinstance(value, property) and value.fget:
            own[name] = property(_hide_source_of_function(value.fget))
    return type(implementation)(implementation.__name__, (implementation,), own)


def load_right_parts(exercise: Exercise) -> Mapping[str, Any]:
    """The course's own parts of an exercise by name; empty where students' package has none."""
    if exercise.file:
        return {}
    modules = course().modules
    places = [
        read_package_name(),
        *(f"{read_package_name()}.{each.replace('/', '.')}" for each in (*modules.answers, *modules.tools)),
    ]
    for place in places:
        module = import_module(place)
        if all(hasattr(module, each) for each in exercise.objects):
            return {each: getattr(module, each) for each in exercise.objects}
    return {}
