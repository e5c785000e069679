"""A course, as the kit that checks, grades and reports knows it: all that the one has to hand to the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from exercise_kit.engine.class_exercises import ClassExercises, ClassFiles, get_class_files_in_use, load_class_exercises
from exercise_kit.engine.course_named import DEFAULT, VARIABLE, read_course_location, read_package_name
from exercise_kit.engine.verdict import Undecided

if TYPE_CHECKING:
    from exercise_kit.engine.call_rules import Rule
    from exercise_kit.engine.exercise import Exercise
    from exercise_kit.engine.pace import Pace
    from exercise_kit.engine.probes import Probe
    from exercise_kit.engine.student import Student

# the bytes of such a file, or a clause on why there are none; and those of the JSON file beside it, where one is
FileBytes = tuple[bytes | str, bytes | None]
Item = TypeVar("Item")


class CourseError(Exception):
    """The operator has named a course that is not there; the message says what was wrong, and what to write."""


class NotMeasured(Undecided):
    """A result could not be measured.

    Args:
        words: for students; they name no folder.
        advice: a clause for the instructor, with what to do.
    """

    def __init__(self, words: str, advice: str) -> None:
        super().__init__(words)
        self.advice = advice


class Measure(Protocol):
    """Measures what students hand in as a file."""

    def measure(self, handed_in: FileBytes) -> object:
        """Tell how good it is; ``str`` of it reads on behind "It is right on".

        Raises:
            Failure: it cannot be used.
            NotMeasured: there is nothing to measure it with.
        """


@dataclass(frozen=True)
class Results:
    """How to measure the results that exercises ask for as a file.

    Attributes:
        measure: gives, for a secret, the measure of everybody who is graded with that secret.
        fingerprint: of the data that results are measured with.
        fixture: gives, for (student, probe, measure), what hidden checks get as ``results``; for a measure that is
            None it makes one up.
        readme: paragraphs for a class folder's README.md: what is handed in, and what is needed to measure it.
    """

    measure: Callable[[bytes], Measure]
    fingerprint: Callable[[], object]
    fixture: Callable[[Student, Probe, Measure | None], object]
    readme: str = ""


@dataclass(frozen=True)
class Modules:
    """The modules and packages of a course that its students may import, by their paths without ".py".

    Attributes:
        shared: what every lesson may import.
        answers: module → the lesson whose answers it holds; only later lessons may import it.
        tools: module → the lesson whose answers it holds; every other lesson may import it.
        fixtures: module with training fixtures → the first lesson that uses it.
        stand_ins: file → the text that replaces it while the judge grades.
    """

    shared: tuple[str, ...]
    answers: Mapping[str, int]
    tools: Mapping[str, int]
    fixtures: Mapping[str, int]
    stand_ins: Mapping[str, str]

    def are_there(self, name: str, lesson: int) -> bool:
        """Say whether the module of that path is there for a lesson, by its number, while the judge grades."""
        if name in self.tools:
            return self.tools[name] != lesson
        if name in self.answers:
            return self.answers[name] < lesson
        return name in self.shared or name.partition("/")[0] in self.shared


@dataclass(frozen=True)
class Simulation:
    """What simulated students of a course write.

    Attributes:
        stand_ins: exercise → call that an answer to it may not make ("F.relu") → the source of the function that
            students' cells define and call instead.
        short_answers: to questions.
    """

    stand_ins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    short_answers: tuple[str, ...] = ("I did not get that far.", "Не уверена.", "no idea, sorry")


class Deferred(Mapping[str, Item]):
    """A mapping that is loaded when it is first looked into: to name a course imports neither it nor torch."""

    def __init__(self, load: Callable[[], Mapping[str, Item]]) -> None:
        self._load = load

    @cached_property
    def _loaded_items(self) -> Mapping[str, Item]:
        return self._load()

    def __getitem__(self, name: str) -> Item:
        return self._loaded_items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded_items)

    def __len__(self) -> int:
        return len(self._loaded_items)


class NamedArgument(str):
    """Something that a training fixture makes, as a message names it: without quotes."""

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Course:
    """One course.

    Attributes:
        exercises: by name, in the order of the course.
        rules: exercise → what an answer to it may call.
        modules: that lessons may import.
        reference_modules: exercise whose answer other exercises call → the module that holds a right one.
        references: gives exercise → its right objects; for the judge alone.
        results: how to measure results that exercises ask for as files; None: no exercise does.
        records: class → its module; objects of these classes cross between judge and worker field by field.
        examples: other names that docstrings' examples use → the module that holds each ("": a module of that name).
        training_fixtures: the modules of the course's own (see :mod:`exercise_kit.engine.training_fixtures`).
        fixture_inputs: gives the arguments that such a fixture makes of its fields, as messages name them; None: the
            fields themselves.
        load_graded: adds the checks that only grading asks to the exercises; ImportError where they are not installed.
        copied_from: the modules from which an answer may have been copied, by their paths without ".py".
        prescribed: exercises whose lesson gives the code, or every line of it.
        own_parts: the name of the file in which students keep their answers.
        built_upon: the lessons whose answers students keep, since later lessons use them.
        title: of the course.
        highlights: prediction → what a student's card says of its result, as "{:.1f} % right".
        assembled: what students put together from lesson to lesson → the exercises that are its parts, as progress
            counts them.
        own: the class's own exercises, which are among ``exercises`` and ``references()`` too.
        site: the address, with a slash at its end, of a site with a page for each known mistake ("": there is none).
        quoted: name → what pages of the clone quote under it (see :mod:`exercise_kit.authoring.quoted`).
        simulation: what a simulated class writes.
        paces: exercise → inputs of a middle size, with which a right answer is told how fast it is.
    """

    exercises: Mapping[str, Exercise]
    rules: Mapping[str, Rule]
    modules: Modules
    reference_modules: Mapping[str, str]
    references: Callable[[], Mapping[str, tuple[Callable[..., Any], ...]]]
    results: Results | None = None
    records: Mapping[str, str] = field(default_factory=dict)
    examples: Mapping[str, str] = field(default_factory=dict)
    training_fixtures: tuple[str, ...] = ()
    fixture_inputs: Callable[[Mapping[str, Any]], Sequence[object] | None] = lambda fields: None
    load_graded: Callable[[], None] = lambda: None
    copied_from: tuple[str, ...] = ()
    prescribed: frozenset[str] = frozenset()
    own_parts: str = "my_parts.py"
    built_upon: frozenset[str] = frozenset()
    title: str = ""
    highlights: Mapping[str, str] = field(default_factory=dict)
    assembled: Mapping[str, Sequence[str]] = field(default_factory=dict)
    own: ClassExercises | None = None
    site: str = ""
    quoted: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    simulation: Simulation = field(default_factory=Simulation)
    paces: Mapping[str, Pace] = field(default_factory=dict)

    @property
    def lessons(self) -> tuple[str, ...]:
        """The lessons that have exercises, in order."""
        return tuple(sorted({each.lesson for each in self.exercises.values()}))

    def find_exercise_of(self, name: str) -> Exercise | None:
        """The exercise that asks for an object of this name; None: no exercise does."""
        return next((each for each in self.exercises.values() if name in each.objects), None)


def course() -> Course:
    """The course of this process, with the exercises of the class that it serves.

    Raises:
        CourseError: what the operator has named cannot be imported, or is no course.
    """
    return _make_course_with_class(read_course_location(), get_class_files_in_use())


@lru_cache(maxsize=1)
def _make_course_with_class(location: str, class_files: ClassFiles) -> Course:
    known = _import_course(location)
    own = load_class_exercises(read_package_name(), class_files, known.exercises)
    if own is None:
        return known

    def rules() -> dict[str, Rule]:
        origins = {name: each.variant_of for name, each in own.exercises.items()}
        return {**known.rules, **{name: known.rules[each] for name, each in origins.items() if each in known.rules}}

    return replace(
        known,
        exercises=Deferred(lambda: {**known.exercises, **own.exercises}),
        rules=Deferred(rules),
        references=lambda: {**own.answers, **known.references()},
        own=own,
    )


def _import_course(location: str) -> Course:
    module, _, name = location.partition(":")
    said = f"{VARIABLE} is {location!r}" if VARIABLE in os.environ else f"{VARIABLE} is not set"
    advice = f'{said}; it names a module and a Course in it, as "{DEFAULT}" does'
    try:
        found = getattr(import_module(module), name, None)
    except (ImportError, ValueError) as error:
        raise CourseError(f"{advice}: {error}") from error
    if not isinstance(found, Course):
        raise CourseError(f"{advice}: there is no Course of that name")
    return found
