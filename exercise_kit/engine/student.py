"""A student's functions and classes, as a check sees them: called, built, loaded, and written down.

Every call gets copies of its inputs, an exception becomes a failure in words, and all that came back is
recorded, so that it can be compared with what a misconception gives on the same inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.answers import LONGEST, numbers_in, plain, snapshot
from exercise_kit.engine.calls import NO_OPTIONS, Answer, Objects, ObjectsHere
from exercise_kit.engine.errors import Raised, fingerprint, in_words
from exercise_kit.engine.student_module import StudentModule
from exercise_kit.engine.verdict import Failure
from exercise_kit.engine.words import kind_of, shape


@dataclass(frozen=True)
class Seen:
    """A call and what it left behind.

    Attributes: ``result``; ``inputs``, of which models and dicts are as they are after the call: ``seen.result is
    seen.inputs[0]`` where the first of them came back; ``shares_memory``, whether the result, or a model among the
    inputs, has memory in common with another input.
    """

    result: Any
    inputs: tuple[Any, ...]
    shares_memory: bool


class Student:
    """The objects of one exercise under their names.

    Args:
        objects: name → the student's function or class; calling the Student calls the first.
        held: where they are held; in this process unless told.

    Attributes: ``names`` of the objects, and the first of them, ``name``; ``record``, what they gave so far.
    """

    def __init__(self, objects: Mapping[str, Any], held: Objects | None = None) -> None:
        self._held = held or ObjectsHere(objects)
        # a misconception's class has a name of its own, a student's the exercise's
        self._classes = {*objects, *(each.__name__ for each in objects.values() if isinstance(each, type))}
        self.names = tuple(objects)
        self.name = self.names[0]
        self.record: list[object] = []
        self.changed_inputs: list[str] = []

    def __call__(self, *inputs: Any) -> Any:
        """Call the exercise's (first) function with copies of ``inputs``."""
        return self.call(self.name, *inputs)

    def call(self, name: str, *inputs: Any) -> Any:
        """Call the function ``name`` with copies of ``inputs``; Failure when it raises."""
        return self.read(name, self._held.call(name, inputs), inputs)

    def see(self, *inputs: Any) -> Seen:
        """Call the first function with copies of ``inputs``, and look at those afterwards too."""
        answer = self._held.call(self.name, inputs)
        result = self.read(self.name, answer, inputs)
        seen = Seen(result, answer.inputs, answer.shares)
        self.record.append(("left behind", tuple(map(numbers_in, seen.inputs))))
        return seen

    def input_gradients(self, *inputs: Any, of: str = "") -> tuple[Tensor | None, ...]:
        """The gradient for every input, None for those that have none, by a backward pass of random cotangents.

        The pass starts from every tensor of the result that depends on the inputs; the cotangents are the same for
        every implementation that gives the same shapes. ``of``: the function, the first unless named.
        """
        name = of or self.name
        answer = self._held.call(name, inputs, gradients=True)
        self.read(name, answer, inputs)
        gradients = tuple(plain(each, f"the gradient of {name}", inputs) for each in answer.gradients)
        self.record.append(("gradients", snapshot(gradients)))
        return gradients

    def error_of(self, *inputs: Any) -> Raised | None:
        """The exception that the (first) function raises on ``inputs``, None when it returns."""
        answer = self._held.call(self.name, inputs)
        if answer.raised is None:
            self._keep(answer.result, self.name, inputs)
            return None
        if answer.raised.is_a("NotImplementedError"):
            raise in_words(self.name, answer.raised, inputs, NO_OPTIONS)
        self.record.append(("raised", fingerprint(answer.raised)))
        return answer.raised

    def build(self, *arguments: Any, **options: Any) -> StudentModule:
        """Make a module of the student's class; Failure when that raises or gives no nn.Module."""
        answer = self._held.build(self.name, arguments, options)
        if answer.module is None:
            result = self.read(self.name, answer, arguments, options)
            look = "What stands in brackets after the class's name?"
            raise Failure(f"{self.name}(...) gives {kind_of(result)}", "a torch.nn.Module", look)
        self.record.append(("built",))
        return StudentModule(self, answer.module)

    def practise(self, practice: str, *judged: str, **fields: Any) -> dict[str, Any]:
        """Let the first object work as a practice of that name asks it to; Failure when it raises.

        Args:
            practice: see :mod:`vit_course.exercises.practice`.
            judged: the keys of the notes that the check looks at, which go on record; all of them unless told.
            fields: what the practice is made of.

        Returns:
            The practice's notes.
        """
        answer = self._practised(self.name, practice, fields)
        notes = {name: self._noted(each, fields) for name, each in answer.result.items()}
        self.record.append(tuple((name, _written(notes[name])) for name in judged or notes))
        return notes

    def example(self, name: str, source: str, homes: Mapping[str, str]) -> list[Any]:
        """The values of the expressions in a docstring's example of the object ``name``; Failure when it raises.

        On record an int counts as a float of its size: other checks tell the two apart.

        Args:
            name: the object's.
            source: the example.
            homes: by the other names that it uses the modules that hold them.
        """
        answer = self._practised(name, "example", {"name": name, "source": source, "homes": dict(homes)})
        begin = len(self.record)
        values = [self._keep(each, name, ()) for each in answer.result["values"]]
        self.record[begin:] = map(_with_floats, self.record[begin:])
        return values

    def _practised(self, name: str, practice: str, fields: Mapping[str, Any]) -> Answer:
        answer = self._held.practise(name, practice, fields)
        if answer.raised is not None:
            self.record.append(("raised", fingerprint(answer.raised)))
            raise in_words(name, answer.raised, _given(fields), NO_OPTIONS)
        return answer

    def read(self, name: str, answer: Answer, inputs: tuple[Any, ...], options: Mapping[str, Any] = NO_OPTIONS) -> Any:
        """The result of a call of ``name``, written down and made plain; Failure when it raised."""
        if answer.raised is not None:
            self.record.append(("raised", fingerprint(answer.raised)))
            raise in_words(name, answer.raised, inputs, options)
        self.changed_inputs += [shape(inputs[number]) for number in answer.changed]
        return self._keep(answer.result, name, inputs)

    def _noted(self, note: Any, fields: Mapping[str, Any]) -> Any:
        if isinstance(note, dict):
            return {name: self._noted(each, fields) for name, each in note.items()}
        try:
            return plain(note, self.name, (torch.empty(0, device=fields.get("device", "cpu")),))
        except Failure as odd:
            self.record.append(("returned", odd.seen))
            raise

    def _keep(self, result: Any, name: str, inputs: tuple[Any, ...]) -> Any:
        """Write an answer down and give it back with plain tensors; Failure when those cannot be compared."""
        try:
            answer = plain(result, name, inputs)
        except Failure as odd:
            self.record.append(("returned", odd.seen))
            raise
        is_made = type(answer).__name__ in self._classes
        self.record.append(("returned", "an object of the class" if is_made else snapshot(answer)))
        return answer


class _Word(str):
    """Something that a practice makes, as a message names it."""

    def __repr__(self) -> str:
        return str(self)


def _given(fields: Mapping[str, Any]) -> tuple[object, ...]:
    """What a practice of these fields hands to a student's code."""
    if "batches" in fields:
        count = len(fields["batches"])
        return _Word("a small model"), _Word(f"{count} batch{'' if count == 1 else 'es'} of images")
    if "parts" in fields:
        return _Word("a small model"), fields["weight_decay"]
    if "image" in fields:
        return _Word("a small model"), fields["image"]
    if "source" in fields:
        return (_Word("what the docstring's example gives it"),)
    if "losses" in fields:
        return fields["patience"], _Word("and told a few losses")
    return tuple(fields.get("inputs", fields.values()))


def _with_floats(entry: object) -> object:
    if isinstance(entry, tuple):
        return tuple(map(_with_floats, entry))
    return float(entry) if type(entry) is int and abs(entry) < 1 << 53 else entry


def _written(note: object) -> object:
    """A note of a practice for the record: names and what stands under them."""
    if isinstance(note, dict):
        return tuple((name, _written(each)) for name, each in note.items())
    if isinstance(note, list | tuple) and len(note) <= LONGEST:
        return tuple(map(_written, note))
    return snapshot(note)
