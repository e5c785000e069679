"""An error is carried forward: an answer that calls another exercise's is also evaluated with the reference there."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib import import_module
from types import CodeType
from typing import Any

from exercise_kit.engine.compare import join_names
from exercise_kit.engine.course import course
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.engine.exercise import Exercise


def find_called_parts(exercise: Exercise, objects: Sequence[object]) -> dict[str, dict[str, Any]]:
    """The other exercises' answers that these objects call: exercise → the student's objects by name.

    Args:
        exercise: what the objects were written for.
        objects: functions and classes; what calls by other ways than a global name is not seen.
    """
    functions = [function for each in objects for function in _iterate_student_functions(each)]
    names = {name for function in functions for name in _iterate_global_names(function.__code__)}
    found: dict[str, dict[str, Any]] = {}
    for part in course().reference_modules:
        known = course().exercises[part]
        if known.lesson != exercise.lesson or known.checks is exercise.checks or names.isdisjoint(known.objects):
            continue
        held = {name: function.__globals__[name] for name in known.objects for function in functions
                if name in function.__globals__}  # fmt: skip
        if held.keys() == set(known.objects):
            found[part] = held
    return found


@contextlib.contextmanager
def replace_by_reference(parts: Mapping[str, Mapping[str, Any]], objects: Sequence[object]) -> Iterator[None]:
    """Inside, the functions of ``objects`` find the reference under the names of ``parts``; then all is as before."""
    module_of = course().reference_modules
    right = {name: getattr(import_module(module_of[part]), name) for part, held in parts.items() for name in held}
    namespaces = {
        id(function.__globals__): function.__globals__
        for each in objects
        for function in _iterate_student_functions(each)
    }
    kept = [(each, {name: each[name] for name in right if name in each}) for each in namespaces.values()]
    try:
        for namespace, before in kept:
            namespace.update({name: right[name] for name in before})
        yield
    finally:
        for namespace, before in kept:
            namespace.update(before)


def describe_parts_carried_forward(
    name: str, parts: Sequence[str], wrong_parts: Collection[str], gained_count: int, failed_count: int
) -> str:
    """Tell the student about the parts.

    Args:
        name: of the exercise.
        parts: the names of the exercises whose answers it calls.
        wrong_parts: those of which checks of their own fail; empty where these were not evaluated.
        gained_count: how many checks pass only with right answers to the parts.
        failed_count: how many checks fail all the same.
    """
    names = [f"`{part}`" for part in parts if part in wrong_parts] or [f"`{part}`" for part in parts]
    calls = f"calls your {join_names(names)}, which {'is' if len(names) == 1 else 'are'} not right"
    if not failed_count:
        return f"{name} is right. It {calls}: the mistake is there, and costs points there alone."
    if not gained_count:
        return f"{name} {calls}. What fails below fails with right ones in their places, too."
    more = "1 more check passes and counts" if gained_count == 1 else f"{gained_count} more checks pass and count"
    return f"{name} {calls}. With right ones in their places {more}; what fails below is the mistake of {name}."


def _iterate_student_functions(value: object) -> Iterator[Callable[..., Any]]:
    """The student's functions in an object: itself, or the methods of a class; none of the course's own."""
    ours = f"{read_package_name()}."
    held = vars(value).values() if inspect.isclass(value) else (value,)
    for each in map(inspect.unwrap, filter(callable, held)):
        if inspect.isfunction(each) and not str(each.__globals__.get("__name__")).startswith(ours):
            yield each


def _iterate_global_names(code: CodeType) -> Iterator[str]:
    """The names that a function looks up, in the functions inside it too."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _iterate_global_names(each)
