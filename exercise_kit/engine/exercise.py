"""An exercise: its public checks, its worked examples and its known mistakes."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from exercise_kit.engine.course_named import read_package_name
from exercise_kit.engine.examples import EXAMPLES, expect_docstring_example
from exercise_kit.engine.in_training import NOT_MEASURED, InTraining, TrainingEffect, find_training_effect
from exercise_kit.engine.probes import Probe, use_fresh_settings
from exercise_kit.engine.program import Program
from exercise_kit.engine.verdict import Cause
from exercise_kit.engine.watchdog import TimeIsUpError

if TYPE_CHECKING:
    from exercise_kit.engine.student import Student

CheckFunction = Callable[..., None]  # of (student, probe)
Needs = CheckFunction | tuple[CheckFunction, ...]
Points = float | Mapping[str, float]
First = CheckFunction | str | None
Given = Mapping[str, Callable[[], object]]
NOTHING: Given = MappingProxyType({})
Holds = Callable[["Student", Probe], bool]
Implementation = TypeVar("Implementation", bound=Callable[..., Any])


@dataclass(frozen=True)
class Check:
    """One check: a claim about the student's code, and the function that raises Failure where it is false.

    Attributes:
        name: of the check.
        claim: its docstring.
        function: of (student, probe), and of what else it names: ``device``, ``reference``, ``results``, ``exercise``.
        needs: the checks that have to pass before this one can decide anything.
        worth: its weight among the exercise's checks.
        guard: whether an answer can pass it without doing what the exercise asks for.
        points: exercise → what it is worth there in grading.
        first: what grading asks before it, unless that has passed already. Code that does nothing leaves its input
            alone, and earns nothing for it.
        graded_only: whether only grading asks it.
    """

    name: str
    claim: str
    function: CheckFunction
    needs: tuple[str, ...] = ()
    worth: float = 1.0
    guard: bool = False
    points: Mapping[str, float] = field(default_factory=dict, hash=False)
    first: First = None
    graded_only: bool = False

    @property
    def is_decisive(self) -> bool:
        """Whether nobody passes it who does not do what the exercise asks for, as far as that is known."""
        return not (self.guard or self.graded_only)

    @property
    def file(self) -> Path:
        """The file in which it is written."""
        return Path(inspect.unwrap(self.function).__code__.co_filename)

    @property
    def line(self) -> int:
        """At which line of the file."""
        return inspect.unwrap(self.function).__code__.co_firstlineno

    @property
    def place(self) -> str:
        """hidden/test_one_hot.py:12: test_each_label_is_a_row."""
        return f"{self.file.parent.name}/{self.file.name}:{self.line}: {self.name}"

    @property
    def names_device(self) -> bool:
        """Whether it puts what it draws where it is told to."""
        return "device" in inspect.signature(self.function).parameters

    def skip_passed_first(self, passed: Iterable[Check]) -> Check:
        """The same, without what comes first where that has passed: by itself, or before one of these checks."""
        if not callable(self.first):
            return self
        known = {claim for check in passed for claim in (check.function, check.first)}
        return self if known.isdisjoint((self.first, inspect.unwrap(self.first))) else replace(self, first=None)


@dataclass(frozen=True)
class Misconception:
    """A mistake with a name, as the wrong implementation that makes it.

    Attributes: ``cause`` (name, explanation, question, section), ``objects``, one for each object of the
    exercise, its ``effect`` in training, the ``place`` among the objects of the one that is wrong, and ``holds``:
    whether its sentence is true of a student, where that takes more than the answers that a check compares.
    """

    cause: Cause
    objects: Sequence[Callable[..., Any]]
    effect: TrainingEffect = NOT_MEASURED
    place: int = 0
    holds: Holds | None = None

    @property
    def name(self) -> str:
        """The misconception's name: "column order"."""
        return self.cause.name

    @property
    def page(self) -> str:
        """The path of its page on the course's site, without ".html"; "" where it is not the course's own."""
        return dict(self.cause.pages).get(self.name, "")

    def is_true_of(self, student: Student) -> bool:
        """Say whether what its sentence says is seen in a student's code; False where that cannot be called so."""
        if self.holds is None:
            return True
        with use_fresh_settings():
            try:
                return self.holds(student, Probe(self.name))
            except (KeyboardInterrupt, TimeIsUpError):
                raise
            except BaseException:  # an odd answer, or none
                return False


@dataclass(frozen=True)
class FileAnswer:
    """A file that an exercise asks for.

    Attributes: ``name``, as students call it; ``opened(path)``, what checks are given in the place of a path.
    """

    name: str
    opened: Callable[[object], object]


def its_own_example_comes_out(student: Student, probe: Probe) -> None:
    """The docstring's example gives the result that it shows."""
    expect_docstring_example(student)


def is_example_check(check: str) -> bool:
    """Say whether a check of this name, of ``check`` or of grading, is the docstring's example."""
    return check.removeprefix("test_") == its_own_example_comes_out.__name__


@dataclass
class Exercise:
    """What a student writes in one cell.

    Attributes:
        name: exact, as in ``check("one_hot", one_hot)``.
        lesson: where it is.
        objects: names of what ``check`` is given; by default the exercise's own name.
        is_class: whether the objects are nn.Module classes.
        checks: in the order in which a student reads them.
        graded_only: the checks that only grading asks; one with the name of another takes its place there.
        misconceptions: its known mistakes.
        file: the file that it asks for instead of code; such an exercise has no cell to write.
        in_training: how most of its mistakes look in training; None: as was measured.
        variant_of: for an exercise of a class's own, the course's exercise that it replaces.
        problem: why an exercise of a class's own cannot be used.
        package: the dotted name of the folder in which its claims, its program and its mistakes stand.
        program: a right answer of which most known mistakes are edits; None where it has none.
    """

    name: str
    lesson: str
    objects: tuple[str, ...] = ()
    is_class: bool = False
    checks: list[Check] = field(default_factory=list)
    misconceptions: list[Misconception] = field(default_factory=list)
    file: FileAnswer | None = None
    in_training: InTraining | None = None
    variant_of: str = ""
    problem: str = ""
    package: str = ""
    program: Program | None = None
    graded_only: list[Check] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.objects = self.objects or (self.name,)

    def share_checks(self, name: str, lesson: str | None = None, objects: tuple[str, ...] = ()) -> Exercise:
        """Another exercise with the same checks and misconceptions, and its own ``objects``: a bug hunt."""
        lists = self.checks, self.misconceptions
        return Exercise(name, lesson or self.lesson, objects, self.is_class, *lists, graded_only=self.graded_only)

    def list_graded_checks(self, original: Exercise | None = None) -> tuple[Check, ...]:
        """List what grading asks, as it asks it: by names that begin with "test_", each ``worth`` its points here.

        In the order of ``check``, and behind that what grading alone asks. A check without points is asked as well, so
        that a graded report tells what ``check`` tells.

        Args:
            original: the exercise that this one is a variant of.
        """
        alone = {each.name: each for each in (*(original.graded_only if original else ()), *self.graded_only)}
        found = []
        for each in self.checks:
            if stronger := alone.pop(each.name, None):
                each = replace(stronger, needs=each.needs, guard=each.guard, graded_only=False)
            found.append(each)
        return tuple(self._make_graded_check(each) for each in (*found, *alone.values()))

    def _make_graded_check(self, check: Check) -> Check:
        points = check.points.get(self.name, check.points.get(self.variant_of, 0.0))
        needs = tuple(f"test_{each}" for each in check.needs)
        first = check.first
        if isinstance(first, str):
            first = next(each.function for each in self.checks if each.name == first)
        return replace(check, name=f"test_{check.name}", needs=needs, worth=points, first=first)

    def mistake(self, name: str) -> Misconception:
        """The known mistake of that name.

        Raises:
            KeyError: there is none.
        """
        for each in self.misconceptions:
            if each.name == name:
                return each
        raise KeyError(f"{self.name} has no known mistake called {name!r}")

    def variant(self, name: str, lesson: str) -> Exercise:
        """An exercise of another name that begins with this one's objects, checks and misconceptions.

        What an answer may not call is forbidden to its answers, too.
        """
        known = list(self.checks), list(self.misconceptions)
        return Exercise(
            name, lesson, self.objects, self.is_class, *known, in_training=self.in_training, variant_of=self.name
        )

    def example(self, text: str, of: str = "", points: Points = 0.0, first: First = None) -> None:
        """Make the worked example of a docstring a check, once for an exercise.

        Args:
            text: the doctest, to the letter as in the lesson.
            of: the object in whose docstring it stands; the exercise's first unless named.
            points, first: of the check, as :meth:`check` has them.
        """
        EXAMPLES[of or self.objects[0]] = text
        if not any(each.function is its_own_example_comes_out for each in self.checks):
            needs = self.checks[0].function if self.checks else ()
            # of a class it shows shapes
            make = self.check(needs=needs, worth=0.5, guard=self.is_class, points=points, first=first)
            make(its_own_example_comes_out)

    @overload
    def check(self, function: CheckFunction) -> CheckFunction: ...
    @overload
    def check(
        self,
        *,
        needs: Needs = (),
        worth: float = 1.0,
        guard: bool = False,
        points: Points = 0.0,
        first: First = None,
        graded_only: bool = False,
    ) -> Callable[[CheckFunction], CheckFunction]: ...
    def check(
        self,
        function: CheckFunction | None = None,
        *,
        needs: Needs = (),
        worth: float = 1.0,
        guard: bool = False,
        points: Points = 0.0,
        first: First = None,
        graded_only: bool = False,
    ) -> Any:
        """Decorate a check; its docstring is the sentence that the student reads.

        Args:
            needs: the check, or the checks, that have to pass first; they come before this one.
            worth: its weight among the exercise's checks; 0 where a later one earns for it.
            guard: whether an answer can pass it without doing what the exercise asks for; one that returns nothing, for
                instance, leaves its input unchanged. A guard earns the share of its points that the other checks earn.
            points: what it is worth in grading, as a share of the lesson's points: a number, or exercise → number
                where others share it.
            first: the check that grading asks before it, or its name where it stands below; where that one fails, this
                one earns nothing.
            graded_only: whether ``check`` leaves it out.
        """

        def register_check(checked: CheckFunction) -> CheckFunction:
            claim = " ".join((checked.__doc__ or "").partition("\n\n")[0].split())
            names = tuple(each.__name__ for each in (needs if isinstance(needs, tuple) else (needs,)))
            shares = points if isinstance(points, Mapping) else {self.name: points} if points else {}
            made = Check(checked.__name__, claim, checked, names, worth, guard, shares, first, graded_only)
            (self.graded_only if graded_only else self.checks).append(made)
            return checked

        return register_check(function) if function else register_check

    def misconception(
        self,
        question: str,
        section: str,
        in_training: InTraining | None = None,
        *,
        before: tuple[Callable[..., Any], ...] = (),
        after: tuple[Callable[..., Any], ...] = (),
        holds: Holds | None = None,
    ) -> Callable[[Implementation], Implementation]:
        """Decorate a wrong implementation; its name in words is the misconception's, its docstring explains.

        Args:
            question: what the student should ask themselves; never the answer.
            section: where it is treated, as "00_numbers, What a window is".
            in_training: what is seen in training, where that is not what holds for most of the exercise.
            before: right implementations of the exercise's objects that come before this one.
            after: right implementations of those that come after it.
            holds: whether its sentence is true of a student, where answers that are alike do not show that.
        """

        def register_mistake(wrong: Implementation) -> Implementation:
            name, explanation = _split_name_into_words(wrong.__name__), " ".join((wrong.__doc__ or "").split())
            cause, seen = self.make_cause_and_effect(
                name, explanation, question, section, in_training, wrong.__module__
            )
            self.misconceptions.append(Misconception(cause, (*before, wrong, *after), seen, len(before), holds))
            return wrong

        return register_mistake

    def make_cause_and_effect(
        self, name: str, explanation: str, question: str, section: str, training: InTraining | None, module: str = ""
    ) -> tuple[Cause, TrainingEffect]:
        """The words of a known mistake, and what is seen of it in training.

        Args:
            name, explanation, question, section: of the mistake.
            training: what is seen, where the exercise's own default does not fit.
            module: where it is written; by default beside the exercise.
        """
        known = training or self.in_training
        seen = TrainingEffect(known) if known else find_training_effect(f"{self.name}: {name}")
        page = name, f"mistakes/{self.name}/{name.replace(' ', '-')}"
        pages = (page,) if _belongs_to_course(module or f"{self.package}.claims") else ()
        return Cause(name, explanation, question, section, seen.sentence, pages), seen


def _belongs_to_course(module: str) -> bool:
    """Say whether a module is of the course's package, and not a class's own file or a notebook."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and Path(file).is_relative_to(str(files(read_package_name())))


def _split_name_into_words(name: str) -> str:
    """ColumnOrder and column_order → "column order"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).strip("_").replace("_", " ").lower()
