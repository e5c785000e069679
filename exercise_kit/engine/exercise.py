"""An exercise: its name, its public checks, and the misconceptions that are known of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from exercise_kit.engine.examples import EXAMPLES, expect_example
from exercise_kit.engine.in_training import NOT_MEASURED, InTraining, Looks, looks
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Cause

CheckFunction = Callable[[Student, Probe], None]
Needs = CheckFunction | tuple[CheckFunction, ...]
Implementation = TypeVar("Implementation", bound=Callable[..., Any])


@dataclass(frozen=True)
class PublicCheck:
    """One check: a claim about the student's code, and the function that raises Failure where it is false.

    Attributes: ``name``, ``claim`` (its docstring), ``function(student, probe)``, ``needs``, the names of the
    checks that have to pass before this one can tell anything, and ``worth``, its weight among the exercise's checks.
    """

    name: str
    claim: str
    function: CheckFunction
    needs: tuple[str, ...] = ()
    worth: float = 1.0


@dataclass(frozen=True)
class Misconception:
    """A mistake with a name, as the wrong implementation that makes it.

    Attributes: ``cause`` (name, explanation, question, section), ``objects``, one for each object of the
    exercise, and how it ``looks`` in training.
    """

    cause: Cause
    objects: tuple[Callable[..., Any], ...]
    looks: Looks = NOT_MEASURED

    @property
    def name(self) -> str:
        """The misconception's name: "column order"."""
        return self.cause.name


@dataclass(frozen=True)
class FileAnswer:
    """A file that an exercise asks for.

    Attributes: ``name``, as students call it; ``opened(path)``, what checks are given in the place of a path.
    """

    name: str
    opened: Callable[[object], object]


def its_own_example_comes_out(student: Student, probe: Probe) -> None:
    """The example in the docstring comes out as it stands there."""
    expect_example(student)


@dataclass
class Exercise:
    """What a student writes in one cell.

    Attributes: ``name`` (exact, as in ``check("patchify", patchify)``), ``lesson``, ``objects`` (names of what
    ``check`` is given, the exercise's own name unless told), ``is_class`` (the objects are nn.Module classes),
    ``file`` (what is asked for in the place of code, where there is no cell to write), ``checks`` in the order in which
    a student reads them, ``misconceptions``, and how most of these look ``in_training`` (None: as was measured).
    """

    name: str
    lesson: str
    objects: tuple[str, ...] = ()
    is_class: bool = False
    checks: list[PublicCheck] = field(default_factory=list)
    misconceptions: list[Misconception] = field(default_factory=list)
    file: FileAnswer | None = None
    in_training: InTraining | None = None

    def __post_init__(self) -> None:
        self.objects = self.objects or (self.name,)

    def again(self, name: str, lesson: str | None = None, objects: tuple[str, ...] = ()) -> Exercise:
        """Another exercise with the same checks and misconceptions, and its own ``objects``: a bug hunt."""
        return Exercise(name, lesson or self.lesson, objects, self.is_class, self.checks, self.misconceptions)

    def example(self, text: str, of: str = "") -> None:
        """Make the worked example of a docstring a check, once for an exercise.

        Args:
            text: the doctest, to the letter as in the lesson.
            of: the object in whose docstring it stands; the exercise's first unless named.
        """
        EXAMPLES[of or self.objects[0]] = text
        if not any(each.function is its_own_example_comes_out for each in self.checks):
            first = self.checks[0].function if self.checks else ()
            self.check(needs=first, worth=0.5)(its_own_example_comes_out)

    @overload
    def check(self, function: CheckFunction) -> CheckFunction: ...
    @overload
    def check(self, *, needs: Needs = (), worth: float = 1.0) -> Callable[[CheckFunction], CheckFunction]: ...
    def check(self, function: CheckFunction | None = None, *, needs: Needs = (), worth: float = 1.0) -> Any:
        """Decorate a public check; its docstring is the sentence that the student reads.

        Args:
            needs: the check, or the checks, that have to pass first; they come before this one.
            worth: its weight among the exercise's checks; 0 where a later one earns for it.
        """

        def register(checked: CheckFunction) -> CheckFunction:
            claim = " ".join((checked.__doc__ or "").split())
            names = tuple(each.__name__ for each in (needs if isinstance(needs, tuple) else (needs,)))
            self.checks.append(PublicCheck(checked.__name__, claim, checked, names, worth))
            return checked

        return register(function) if function else register

    def misconception(
        self,
        question: str,
        section: str,
        in_training: InTraining | None = None,
        *,
        before: tuple[Callable[..., Any], ...] = (),
        after: tuple[Callable[..., Any], ...] = (),
    ) -> Callable[[Implementation], Implementation]:
        """Decorate a wrong implementation; its name in words is the misconception's, its docstring explains.

        Args:
            question: what the student should ask themselves; never the answer.
            section: where it is treated, as "01_patchify, What a token is".
            in_training: how it looks in training, where that is not what holds for most of the exercise.
            before: right implementations of the exercise's objects that come before this one.
            after: right implementations of those that come after it.
        """

        def register(wrong: Implementation) -> Implementation:
            explanation = " ".join((wrong.__doc__ or "").split())
            name, known = _in_words(wrong.__name__), in_training or self.in_training
            seen = Looks(known) if known else looks(f"{self.name}: {name}")
            cause = Cause(name, explanation, question, section, seen.told)
            self.misconceptions.append(Misconception(cause, (*before, wrong, *after), seen))
            return wrong

        return register


def _in_words(name: str) -> str:
    """ColumnOrder and column_order → "column order"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).strip("_").replace("_", " ").lower()
