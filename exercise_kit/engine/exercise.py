"""An exercise: its public checks, its worked examples, its known mistakes, and how each of these looks in training.

A course may have trained its model with each mistake in turn; its package then holds the results in
``exercises/in_training.json``. For every other mistake somebody decided how it looks.
"""

from __future__ import annotations

import ast
import doctest
import json
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np
import torch
from torch import Tensor

from exercise_kit.engine.course import course, package
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.program import Program
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Cause, Failure
from exercise_kit.quoting import quoted

TIE = 0.02  # twice the standard error of the difference between two models on 5,000 images
STANDSTILL = 0.1  # of the way that the right model's loss falls from guessing


class InTraining(StrEnum):
    """What the one who looks at the loss and the accuracy sees of a mistake."""

    UNSEEN = "no curve shows it: training never meets it, or goes exactly as it should"
    HIDDEN = "the loss falls as usual, and the accuracy is about the same"
    BETTER = "the loss falls, and the accuracy is even higher"
    WORSE = "the loss falls all the same, and the accuracy is lower"
    STUCK = "the loss hardly falls"
    STOPS = "training stops with an error"
    MISREAD = "training goes as it should, and the numbers that are shown of it are wrong"
    FLATTERED = "the numbers that are shown look better than the model is"
    UNMEASURED = "not measured yet"


@dataclass(frozen=True)
class Trained:
    """What a course has trained with each mistake, in words, as its in_training.json says under "trained".

    Attributes:
        model: as "a small model".
        data: the data set's name.
        test_data: the images that accuracies are counted on.
        bugs_in: what the mistakes are bugs in.
        guessing: the accuracy of guesses.
    """

    model: str
    data: str
    test_data: str
    bugs_in: str
    guessing: float


def what_was_trained() -> Trained | None:
    """What the course has trained; None where nobody has measured."""
    found = _findings()
    return Trained(**found["trained"], guessing=1 / found["right"]["classes"]) if "right" in found else None


@dataclass(frozen=True)
class Looks:
    """How one mistake looks in training.

    Attributes:
        kind: of look.
        accuracy: on test data, from 0 to 1, of a model trained with the mistake; None: nobody trained one.
        right: the accuracy of the right model, trained in the same way.
    """

    kind: InTraining
    accuracy: float | None = None
    right: float | None = None

    @property
    def sentence(self) -> str:
        """A sentence for the one who made the mistake; empty where training shows nothing, or nobody has measured."""
        trained = what_was_trained()
        if trained is None or self.accuracy is None or self.right is None or self.kind not in _SHOWN:
            return ""
        reached = f"{trained.model} reached {self.accuracy:.1%} on {trained.data}; without the bug, {self.right:.1%}"
        return f"With this bug, {reached} (one run each, ± {100 * TIE:g} points)."


# a single run that ends within chance of the right one, or above it, tells nobody that a bug is harmless
_SHOWN = (InTraining.WORSE, InTraining.STUCK)
NOT_MEASURED = Looks(InTraining.UNMEASURED)


def looks(key: str, known: dict[str, Any] | None = None) -> Looks:
    """What a training run with a mistake in it has shown.

    Args:
        key: the name of its exercise and its own, as "moving_average: summed up".
        known: what was found, by the course's package unless given.
    """
    known = _findings() if known is None else known
    found = known["mistakes"].get(key, {})
    if "stops" in found:
        return Looks(InTraining.STOPS)
    if found.get("same_as") == "right":
        return Looks(InTraining.UNSEEN)
    if "same_as" in found:
        return looks(found["same_as"], known)
    if "accuracy" not in found:
        return NOT_MEASURED
    return Looks(_kind(found, known["right"]), found["accuracy"], known["right"]["accuracy"])


def _kind(found: dict[str, float], right: dict[str, float]) -> InTraining:
    guessing = math.log(right["classes"])
    if guessing - found["loss"] < STANDSTILL * (guessing - right["loss"]):
        return InTraining.STUCK
    gain = found["accuracy"] - right["accuracy"]
    if abs(gain) <= TIE:
        return InTraining.HIDDEN
    return InTraining.BETTER if gain > 0 else InTraining.WORSE


@cache
def _findings() -> dict[str, Any]:
    path = Path(str(files(package()))) / "exercises" / "in_training.json"
    findings: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {"mistakes": {}}
    return findings


EXAMPLES: dict[str, str] = {}
"""The doctest in the docstring of the object of that name."""
# examples print four decimals at least where they do not round themselves
_ROUNDING = 1e-4
_LONGEST = 160


def expect_example(student: Student) -> None:
    """Fail unless the example in the docstring of each of the exercise's objects gives the result that it shows."""
    for name in student.names:
        steps = list(doctest.DocTestParser().get_examples(EXAMPLES[name]))
        source = "".join(each.source for each in steps)
        others = {**course().records, **course().examples}
        used = {each: module for each, module in others.items() if each != name and re.search(rf"\b{each}\b", source)}
        found = student.example(name, source, used)
        shown = [each for each in steps if each.want]
        for step, value in zip(shown, found, strict=True):
            if not _alike(_described(value), _read(step.want)):
                source, wanted, gave = (" ".join(text.split()) for text in (step.source, step.want, _shown(value)))
                seen = f"the docstring's example {quoted(source)} gave {quoted(gave, _LONGEST)}"
                look = "Run that example in a cell, line by line. Which number is the first that you do not expect?"
                if _lost_ones(_described(value), _read(step.want)):
                    look = "The numbers are right, and an axis with one entry is lost. Which line drops it?"
                raise Failure(seen, f"`{wanted}`, as the docstring says", look)


def _lost_ones(found: Any, wanted: Any) -> bool:
    """Whether a value is the expected one but for axes with one entry, which are missing."""
    while isinstance(wanted, list | tuple) and len(wanted) == 1:
        wanted = wanted[0]
        if _alike(found, wanted):
            return True
    if isinstance(wanted, list | tuple) and isinstance(found, list | tuple) and len(wanted) == len(found):
        return all(_alike(*each) or _lost_ones(*each) for each in zip(found, wanted, strict=True))
    return False


def _shown(value: Any) -> str:
    """A value as Python prints it; of what no example gives, the type alone."""
    if type(value) in (list, tuple):
        left, right = "[]" if type(value) is list else "()"
        return f"{left}{', '.join(map(_shown, value))}{right}"
    plain = value is None or isinstance(value, bool | int | float | str | Tensor)
    return repr(value) if plain else f"<{type(value).__name__}>"


def _read(want: str) -> Any:
    """What an example prints as a value; a tensor as ("tensor", its numbers)."""
    bare = re.sub(r",\s*(grad_fn=<\w+>|dtype=torch\.\w+)", "", want)
    return ast.literal_eval(bare.replace("tensor(", "('tensor', ").strip())


def _described(value: Any) -> Any:
    """A value of a student's in the form of :func:`_read`."""
    if isinstance(value, Tensor):
        is_answer = value.dtype == torch.bool and not value.dim()  # tensor(True) is as good an answer as True
        return value.item() if is_answer else ("tensor", value.tolist())
    if isinstance(value, np.generic):  # np.float64(0.5) is as good a number as 0.5
        return value.item()
    return type(value)(map(_described, value)) if type(value) in (list, tuple) else value


def _alike(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, list | tuple):
        same = type(found) is type(wanted) and len(found) == len(wanted)
        return same and all(map(_alike, found, wanted))
    if isinstance(wanted, float) and isinstance(found, float | int) and not isinstance(found, bool):
        return math.isclose(found, wanted, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
    return type(found) is type(wanted) and bool(found == wanted)


CheckFunction = Callable[[Student, Probe], None]
Needs = CheckFunction | tuple[CheckFunction, ...]
Implementation = TypeVar("Implementation", bound=Callable[..., Any])


@dataclass(frozen=True)
class PublicCheck:
    """One check: a claim about the student's code, and the function that raises Failure where it is false.

    Attributes:
        name: of the check.
        claim: its docstring.
        function: of (student, probe).
        needs: the checks that have to pass before this one can decide anything.
        worth: its weight among the exercise's checks.
        guard: whether an answer can pass it without doing what the exercise asks for.
    """

    name: str
    claim: str
    function: CheckFunction
    needs: tuple[str, ...] = ()
    worth: float = 1.0
    guard: bool = False


@dataclass(frozen=True)
class Misconception:
    """A mistake with a name, as the wrong implementation that makes it.

    Attributes: ``cause`` (name, explanation, question, section), ``objects``, one for each object of the
    exercise, how it ``looks`` in training, and the ``place`` among the objects of the one that is wrong.
    """

    cause: Cause
    objects: Sequence[Callable[..., Any]]
    looks: Looks = NOT_MEASURED
    place: int = 0

    @property
    def name(self) -> str:
        """The misconception's name: "column order"."""
        return self.cause.name

    @property
    def page(self) -> str:
        """The path of its page on the course's site, without ".html"; "" where it is not the course's own."""
        return dict(self.cause.pages).get(self.name, "")


@dataclass(frozen=True)
class FileAnswer:
    """A file that an exercise asks for.

    Attributes: ``name``, as students call it; ``opened(path)``, what checks are given in the place of a path.
    """

    name: str
    opened: Callable[[object], object]


def its_own_example_comes_out(student: Student, probe: Probe) -> None:
    """The docstring's example gives the result that it shows."""
    expect_example(student)


@dataclass
class Exercise:
    """What a student writes in one cell.

    Attributes:
        name: exact, as in ``check("one_hot", one_hot)``.
        lesson: where it is.
        objects: names of what ``check`` is given; by default the exercise's own name.
        is_class: whether the objects are nn.Module classes.
        checks: in the order in which a student reads them.
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
    checks: list[PublicCheck] = field(default_factory=list)
    misconceptions: list[Misconception] = field(default_factory=list)
    file: FileAnswer | None = None
    in_training: InTraining | None = None
    variant_of: str = ""
    problem: str = ""
    package: str = ""
    program: Program | None = None

    def __post_init__(self) -> None:
        self.objects = self.objects or (self.name,)

    def share_checks(self, name: str, lesson: str | None = None, objects: tuple[str, ...] = ()) -> Exercise:
        """Another exercise with the same checks and misconceptions, and its own ``objects``: a bug hunt."""
        return Exercise(name, lesson or self.lesson, objects, self.is_class, self.checks, self.misconceptions)

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

    def example(self, text: str, of: str = "") -> None:
        """Make the worked example of a docstring a check, once for an exercise.

        Args:
            text: the doctest, to the letter as in the lesson.
            of: the object in whose docstring it stands; the exercise's first unless named.
        """
        EXAMPLES[of or self.objects[0]] = text
        if not any(each.function is its_own_example_comes_out for each in self.checks):
            first = self.checks[0].function if self.checks else ()
            # of a class it shows shapes
            self.check(needs=first, worth=0.5, guard=self.is_class)(its_own_example_comes_out)

    @overload
    def check(self, function: CheckFunction) -> CheckFunction: ...
    @overload
    def check(
        self, *, needs: Needs = (), worth: float = 1.0, guard: bool = False
    ) -> Callable[[CheckFunction], CheckFunction]: ...
    def check(
        self, function: CheckFunction | None = None, *, needs: Needs = (), worth: float = 1.0, guard: bool = False
    ) -> Any:
        """Decorate a public check; its docstring is the sentence that the student reads.

        Args:
            needs: the check, or the checks, that have to pass first; they come before this one.
            worth: its weight among the exercise's checks; 0 where a later one earns for it.
            guard: whether an answer can pass it without doing what the exercise asks for; one that returns nothing, for
                instance, leaves its input unchanged. A guard earns the share of its points that the other checks earn.
        """

        def register(checked: CheckFunction) -> CheckFunction:
            claim = " ".join((checked.__doc__ or "").split())
            names = tuple(each.__name__ for each in (needs if isinstance(needs, tuple) else (needs,)))
            self.checks.append(PublicCheck(checked.__name__, claim, checked, names, worth, guard))
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
            section: where it is treated, as "00_numbers, What a window is".
            in_training: how it looks in training, where that is not what holds for most of the exercise.
            before: right implementations of the exercise's objects that come before this one.
            after: right implementations of those that come after it.
        """

        def register(wrong: Implementation) -> Implementation:
            name, explanation = _readable_name(wrong.__name__), " ".join((wrong.__doc__ or "").split())
            cause, seen = self.cause_of(name, explanation, question, section, in_training, wrong.__module__)
            self.misconceptions.append(Misconception(cause, (*before, wrong, *after), seen, len(before)))
            return wrong

        return register

    def cause_of(
        self, name: str, explanation: str, question: str, section: str, training: InTraining | None, module: str = ""
    ) -> tuple[Cause, Looks]:
        """The words of a known mistake, and how it looks in training.

        Args:
            name, explanation, question, section: of the mistake.
            training: how it looks, where the exercise's own default does not fit.
            module: where it is written; by default beside the exercise.
        """
        known = training or self.in_training
        seen = Looks(known) if known else looks(f"{self.name}: {name}")
        page = name, f"mistakes/{self.name}/{name.replace(' ', '-')}"
        pages = (page,) if _is_of_the_course(module or f"{self.package}.claims") else ()
        return Cause(name, explanation, question, section, seen.sentence, pages), seen


def _is_of_the_course(module: str) -> bool:
    """Whether a module is of the course's package, and not a class's own file or a notebook."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and Path(file).is_relative_to(str(files(package())))


def _readable_name(name: str) -> str:
    """ColumnOrder and column_order → "column order"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).strip("_").replace("_", " ").lower()
