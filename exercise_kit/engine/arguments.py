"""What ``check`` was called with: the exercise and the objects written for it, or a sentence on what is wrong."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from exercise_kit.engine.compare import describe_kind
from exercise_kit.engine.course import course
from exercise_kit.engine.exercise import Exercise
from exercise_kit.quoting import quote_first_line


def find_exercise_ignoring_case(name: object) -> Exercise | None:
    """The exercise called ``name``, in whatever case."""
    return _map_lower_case_names_to_exercises().get(name.strip().lower()) if isinstance(name, str) else None


def _map_lower_case_names_to_exercises() -> dict[str, Exercise]:
    return {name.lower(): exercise for name, exercise in course().exercises.items()}


def describe_unknown_exercise(name: object, objects: tuple[object, ...] = (), function_name: str = "check") -> str:
    """Say that ``name``, given to the function ``function_name``, is no exercise, and which one was meant."""
    if not isinstance(name, str):
        meant = next(
            filter(None, map(find_exercise_ignoring_case, (*objects, getattr(name, "__name__", None)))),
            _get_first_exercise(),
        )
        first = f"The name of the exercise comes first, in quotes: {_write_example_call(function_name, meant)}."
        return f"{first} This is {describe_kind(name)}."
    if not name.strip():
        wanted = "its name, and what you wrote for it" if function_name == "check" else "its name"
        return f"Which exercise? Give {wanted}: {_write_example_call(function_name, _get_first_exercise())}."
    known = _map_lower_case_names_to_exercises()
    near = difflib.get_close_matches(name.strip().lower(), known, n=1, cutoff=0.5)
    all_of_them = ", ".join(each.name for each in known.values())
    hint = (
        f"Did you mean {_write_example_call(function_name, known[near[0]])}?" if near else f"There are: {all_of_them}."
    )
    return f"There is no exercise called {quote_first_line(name, 60)}. {hint}"


def _write_example_call(function_name: str, exercise: Exercise) -> str:
    return write_check_call(exercise) if function_name == "check" else f'`{function_name}("{exercise.name}")`'


def _get_first_exercise() -> Exercise:
    return next(iter(course().exercises.values()))


def write_check_call(exercise: Exercise) -> str:
    """The call that checks ``exercise``, as code."""
    if exercise.file:
        return f'`check("{exercise.name}", "{exercise.file.name}")`'
    return f'`check("{exercise.name}", {", ".join(exercise.objects)})`'


def find_problem_with_objects(exercise: Exercise, objects: tuple[object, ...]) -> str | None:
    """Say why these objects cannot be checked; None when they can."""
    if exercise.problem:
        return f"{exercise.name} cannot be checked until its author has repaired it: {exercise.problem}"
    wanted = len(exercise.objects)
    if len(objects) != wanted:
        count = "Nothing was" if not objects else "Only one was" if len(objects) == 1 else f"{len(objects)} were"
        needs = f"{exercise.name} needs {_describe_wanted_objects(wanted, exercise)}."
        return f"{needs} {count} given. Write {write_check_call(exercise)}."
    names = [getattr(each, "__name__", None) for each in objects]
    if names != list(exercise.objects) and set(names) == set(exercise.objects):
        return f"These are the right ones in the wrong order. Write {write_check_call(exercise)}."
    if exercise.file:
        wrong = f"The name of a file is asked for, and this is {describe_kind(objects[0])}."
        wrong = f"{wrong} Write {write_check_call(exercise)}."
        return None if isinstance(objects[0], str | Path) or inspect.isfunction(objects[0]) else wrong
    for index, given in enumerate(objects):
        if problem := _describe_wrong_kind(exercise, index, given) or _describe_wrong_parameters(
            exercise, index, given
        ):
            return problem
    return None


def _describe_wanted_objects(count: int, exercise: Exercise) -> str:
    if exercise.file:
        return "the name of your file"
    kind = ("class", "classes") if exercise.is_class else ("function", "functions")
    return f"one {kind[0]} to check" if count == 1 else f"{count} {kind[1]} to check"


def _describe_wrong_kind(exercise: Exercise, index: int, value: object) -> str | None:
    kind = "class" if exercise.is_class else "function"
    if inspect.isclass(value) if exercise.is_class else callable(value) and not inspect.isclass(value):
        return None
    advice = "Write"
    if isinstance(value, str):
        advice = "Leave out the quotes:"
    elif not callable(value) and value is not None:
        advice = f"Give the {kind} itself, without calling it:"
    elif exercise.is_class and isinstance(value, nn.Module):
        advice = "Give the class itself, without building it:"
    wrong = f"{exercise.objects[index]} has to be a {kind}, and this is {describe_kind(value)}."
    return f"{wrong} {advice} {write_check_call(exercise)}."


def _describe_wrong_parameters(exercise: Exercise, index: int, value: object) -> str | None:
    """Say which parameters the exercise's own has, where ``value`` cannot be called with as many; None where it can."""
    expected = _list_required_parameters(exercise, index)
    try:
        signature = inspect.signature(value)  # type: ignore[arg-type]  # _describe_wrong_kind let callables pass only
    except (TypeError, ValueError):  # some callables do not tell
        return None
    if expected is None or _accepts_argument_count(signature, len(expected)):
        return None
    name = exercise.objects[index]
    verb = "is built" if exercise.is_class else "is called"
    bare = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    yours = quote_first_line(signature.replace(parameters=bare, return_annotation=signature.empty))
    return f"{name} {verb} as `{name}({', '.join(expected)})`, but yours takes {yours}."


def _accepts_argument_count(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _list_required_parameters(exercise: Exercise, index: int) -> list[str] | None:
    """Names of the parameters without a default, as the wrong implementations have them too."""
    for wrong in exercise.misconceptions:
        parameters = _list_signature_parameters(wrong.objects[index])
        if parameters and all(each.kind is each.POSITIONAL_OR_KEYWORD for each in parameters):
            return [each.name for each in parameters if each.default is each.empty]
    return None


def _list_signature_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())
