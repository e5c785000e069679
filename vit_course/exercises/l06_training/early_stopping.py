"""`EarlyStopping`: when to stop.

Each check is a short story of validation losses; a reader can tell without a computer when it ends. The known mistakes
keep all losses that they have seen, and look back over them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

from torch import Tensor

from exercise_kit.engine.compare import kind_of
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_value_error
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l06_training import LESSON

NAN = math.nan
HOPELESS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)

EarlyStopping = Exercise("EarlyStopping", LESSON, is_class=True, in_training=InTraining.UNSEEN)


def _described(
    student: Student, patience: int, losses: Sequence[float], beside: Sequence[float] = ()
) -> dict[str, Any]:
    """What the fixture notes; nothing goes on record yet."""
    notes = student.run_fixture("stopping", patience=patience, losses=list(losses), beside=list(beside))
    del student.record[-1]
    return notes


def _expect_stops(
    student: Student, patience: int, losses: Sequence[float], stops: str, look: str, beside: Sequence[float] = ()
) -> None:
    """Fail unless step answers as ``stops`` says for each loss, while a second object gets the losses ``beside``.

    In ``stops``, "." is to go on, "x" to stop, and "?" either of them; at one or more of the "~" it has to stop.
    """
    found = _answers(student, patience, losses, beside)
    student.record.append((found, "x" in _answers(student, 2, HOPELESS)))  # or silence would pass for patience
    wrong = [place for place, there in enumerate(stops) if there in ".x" and there != found[place]]
    somewhere = [found[place] for place, there in enumerate(stops) if there == "~"]
    if wrong or (somewhere and "x" not in somewhere):
        place = wrong[0] if wrong else len(stops) - 1
        also = f", while another one gets {_listed(beside)}," if beside else ""
        raise Failure(
            f"with patience {patience}, after the losses {_listed(losses[: place + 1])}{also} step says "
            f"{'stop' if found[place] == 'x' else 'go on'}",
            "go on" if stops[place] == "." else "stop",
            look,
        )


def _answers(student: Student, patience: int, losses: Sequence[float], beside: Sequence[float] = ()) -> str:
    answers = _described(student, patience, losses, beside)["answers"]
    return "".join("x" if each is not None and bool(each) else "." for each in answers)


def _listed(losses: Sequence[float]) -> str:
    return ", ".join(f"{loss:.8g}" for loss in losses)


@EarlyStopping.check(guard=True)
def step_gives_a_bool(student: Student, probe: Probe) -> None:
    """`step` gives True or False, every time."""
    answers = _described(student, 2, (1.0, 0.9, 1.1, 1.2))["answers"]
    kinds = ["bool" if _is_bool(each) else "None" if each is None else type(each).__name__ for each in answers]
    student.record.append(tuple(kinds))
    for number, (kind, answer) in enumerate(zip(kinds, answers, strict=True)):
        if kind != "bool":
            look = (
                "Does every path through `step` end in a `return`?" if answer is None else "Which comparison gives it?"
            )
            raise Failure(f"step gave {kind_of(answer)} for loss number {number}", "True or False", look)


def _is_bool(answer: object) -> bool:
    return type(answer).__name__ in ("bool", "bool_") or (isinstance(answer, Tensor) and answer.numel() == 1)


@EarlyStopping.check(guard=True)
def falling_losses_go_on(student: Student, probe: Probe) -> None:
    """While every loss is lower than all before it, it does not say stop."""
    look = "Which losses does your counter count?"
    _expect_stops(student, 2, (3.0, 2.5, 2.0, 1.0, 0.5), ".....", look)


@EarlyStopping.check(guard=True)
def the_first_loss_is_always_the_best(student: Student, probe: Probe) -> None:
    """The first loss is the best so far, however large it is."""
    look = "With what do you compare the first loss?"
    _expect_stops(student, 1, (250.0, 240.0), "..", look)


@EarlyStopping.check
def it_waits_exactly_as_long_as_its_patience(student: Student, probe: Probe) -> None:
    """It says stop at the loss number `patience` in a row that is no better, not one sooner and not one later."""
    look = "Write the counter beside each loss. At which number is it enough?"
    _expect_stops(student, 3, (1.0, 1.1, 1.2, 1.3), "...x", look)
    _expect_stops(student, 1, (1.0, 1.1), ".x", look)


@EarlyStopping.check(guard=True)
def a_better_loss_starts_the_count_anew(student: Student, probe: Probe) -> None:
    """Only losses in a row count: a new best one starts the count anew."""
    look = "What happens to your counter when a loss is better?"
    _expect_stops(student, 3, (1.0, 1.2, 0.9, 1.1, 0.8, 1.0, 0.7), ".......", look)


@EarlyStopping.check
def losses_are_compared_with_the_best(student: Student, probe: Probe) -> None:
    """A loss has to be below the best one so far; being below the last one is not enough."""
    look = "Which of the losses so far do you keep?"
    _expect_stops(student, 3, (1.0, 1.6, 1.5, 1.4, 1.3, 1.2, 1.1), ".~~~~~~", look)
    _expect_stops(student, 3, (1.0, 0.5, 0.9, 0.8, 0.7, 0.6, 0.55), "..~~~~~", look)


@EarlyStopping.check
def an_equal_loss_is_no_progress(student: Student, probe: Probe) -> None:
    """A loss as low as the best one is no progress."""
    look = "What do `<` and `<=` say of two equal numbers?"
    _expect_stops(student, 2, (1.0, 1.0, 1.0, 1.0, 1.0), ".~~~~", look)


@EarlyStopping.check(guard=True)
def the_smallest_progress_counts(student: Student, probe: Probe) -> None:
    """A loss that is lower by only a tiny bit is a new best, too."""
    look = "By how much must a loss be lower, as the exercise has it?"
    _expect_stops(student, 2, (1.0, 0.999999, 0.999998, 0.999997, 0.999996), ".....", look)


@EarlyStopping.check
def each_has_a_memory_of_its_own(student: Student, probe: Probe) -> None:
    """Two objects of the class that are used side by side share no memory."""
    look = "Where is each number kept: in self, or in something that both have in common?"
    _expect_stops(student, 2, (3.0, 2.8, 2.6, 2.4, 2.2), ".....", look, beside=(0.5, 0.6, 0.7, 0.8, 0.9))
    _expect_stops(student, 2, (1.0, 1.1, 1.2), "..x", look, beside=(0.5, 0.4, 0.3))


@EarlyStopping.check
def nan_is_no_progress(student: Student, probe: Probe) -> None:
    """A loss that is NaN is no progress, and is never the best."""
    look = "What do `<` and `>=` say when one of the two numbers is NaN?"
    _expect_stops(student, 2, (1.0, NAN, NAN, NAN, NAN), ".~~~~", look)
    _expect_stops(student, 2, (NAN, 0.9, 0.8, 0.7, 0.6), "?....", look)


@EarlyStopping.check
def it_says_so_again_when_asked_again(student: Student, probe: Probe) -> None:
    """If training goes on after it has said stop, it says stop again, until there is a new best loss."""
    look = "What does your comparison say when the counter is larger than patience?"
    _expect_stops(student, 2, (1.0, 1.1, 1.2, 1.3, 1.4, 1.5), ".???xx", look)
    look = "What happens to your counter when a loss is the best so far?"
    _expect_stops(student, 2, (1.0, 1.1, 1.2, 1.3, 0.5), ".???.", look)


@EarlyStopping.check(guard=True)
def best_is_the_lowest_loss_so_far(student: Student, probe: Probe) -> None:
    """`best` is the lowest loss so far, and infinite before the first."""
    losses = (3.0, 2.0, 2.5, 1.0, 1.5)
    found = _described(student, 2, losses)["best"]
    wanted = [math.inf, 3.0, 2.0, 2.0, 1.0, 1.0]
    student.record.append(tuple(_figure(each) for each in found))
    for number, (here, there) in enumerate(zip(found, wanted, strict=True)):
        if _figure(here) != _figure(there):
            when = f"after the losses {_listed(losses[:number])}" if number else "before the first loss"
            seen = "there is no attribute `best`" if here == "missing" else f"`best` is {_figure(here)}"
            raise Failure(f"{when} {seen}", f"{there:g}", "When does your code write into `self.best`?")


def _figure(value: object) -> str:
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    return f"{float(value):g}" if isinstance(value, Real) else kind_of(value)


@EarlyStopping.check(guard=True)
def no_patience_is_refused(student: Student, probe: Probe) -> None:
    """A patience below 1 raises a ValueError that names its value."""
    for patience in (0, -3):
        expect_value_error(student, (patience,), [patience], f"patience={patience}")


EarlyStopping.example("""
>>> stopping = EarlyStopping(2)
>>> [stopping.step(loss) for loss in (2.0, 1.5, 1.6, 1.4, 1.5, 1.4)]
[False, False, False, False, False, True]
>>> stopping.best
1.4
""")


STOP = "06_training, When to stop"


class _Stopper:
    """What the wrong ones have in common: a memory, and a look back at every loss."""

    first_rival = math.inf

    def __init__(self, patience: int) -> None:
        self.patience = self.checked(patience)
        self.recorded: list[float] = []

    def checked(self, patience: int) -> int:
        if patience < 1:
            raise ValueError(f"a patience of {patience}")
        return patience

    def beats(self, loss: float, rival: float) -> bool:
        return loss < rival

    def rivals(self) -> list[float]:
        """What each loss had to beat."""
        rivals, rival = [], self.first_rival
        for loss in self.recorded:
            rivals.append(rival)
            rival = loss if self.beats(loss, rival) else rival
        return [*rivals, rival]

    @property
    def best(self) -> float:
        return self.rivals()[-1]

    @property
    def bad_epochs(self) -> int:
        """How many losses in a row, up to the last one, beat nothing."""
        count = 0
        for loss, rival in zip(self.recorded, self.rivals(), strict=False):
            count = 0 if self.beats(loss, rival) else count + 1
        return count

    def step(self, validation_loss: float) -> Any:
        self.recorded.append(validation_loss)
        return self.stops(self.bad_epochs)

    def stops(self, bad_epochs: int) -> Any:
        return bad_epochs >= self.patience


@EarlyStopping.misconception("What do < and <= say of two equal numbers?", STOP, InTraining.HIDDEN)
class EqualIsProgress(_Stopper):
    """A loss that equals the best one counts as progress, so with a constant loss it never stops."""

    def beats(self, loss: float, rival: float) -> bool:
        return loss <= rival


@EarlyStopping.misconception("What happens to the counter when a loss is better?", STOP, InTraining.WORSE)
class NeverStartsAnew(_Stopper):
    """The counter is never set back to 0, so bad epochs count even when good ones lie between them."""

    @property
    def bad_epochs(self) -> int:
        return sum(not self.beats(*pair) for pair in zip(self.recorded, self.rivals(), strict=False))


@EarlyStopping.misconception("How many bad epochs in a row are too many when patience is 1?", STOP, InTraining.HIDDEN)
class OneTooLate(_Stopper):
    """It waits for one epoch more than its patience."""

    def stops(self, bad_epochs: int) -> bool:
        return bad_epochs > self.patience


@EarlyStopping.misconception("How many bad epochs in a row are too many when patience is 3?", STOP, InTraining.HIDDEN)
class OneTooSoon(_Stopper):
    """It stops one epoch before its patience is over."""

    def stops(self, bad_epochs: int) -> bool:
        return bad_epochs > 0 and bad_epochs >= self.patience - 1


@EarlyStopping.misconception("Where is patience used?", STOP, InTraining.WORSE)
class NoPatience(_Stopper):
    """It stops at the first loss that is no better, whatever its patience."""

    def stops(self, bad_epochs: int) -> bool:
        return bad_epochs > 0


@EarlyStopping.misconception(
    "Which of the losses so far has to be beaten: the last, or the lowest?", STOP, InTraining.HIDDEN
)
class ComparedWithTheLast(_Stopper):
    """Each loss is compared with the one before it, so a slow recovery looks like progress."""

    def rivals(self) -> list[float]:
        return [self.first_rival, *self.recorded]


@EarlyStopping.misconception("When is the best loss written down?", STOP, InTraining.HIDDEN)
class ComparedWithTheFirst(_Stopper):
    """The best loss is written down once and never again, so each loss has to beat only the first one."""

    def rivals(self) -> list[float]:
        return [self.first_rival, *self.recorded[:1] * len(self.recorded)]


@EarlyStopping.misconception("Which loss is below 0?", STOP, InTraining.WORSE)
class BestStartsAtZero(_Stopper):
    """The best loss is 0 at the start, which no loss ever beats."""

    first_rival = 0.0


@EarlyStopping.misconception("Is a loss always below the number that you started with?", STOP, InTraining.WORSE)
class BestStartsTooLow(_Stopper):
    """The best loss is a number such as 1 or 100 at the start, and larger losses never beat it."""

    first_rival = 1.0


@EarlyStopping.misconception("What do < and >= say when one of the two numbers is NaN?", STOP)
class NanIsProgress(_Stopper):
    """The comparison asks whether a loss is worse, and NaN never is, so a broken run looks like a good one."""

    def beats(self, loss: float, rival: float) -> bool:
        return not loss >= rival


@EarlyStopping.misconception("Can anything be lower than NaN?", STOP)
class NanBecomesTheBest(_Stopper):
    """A NaN is kept as the best loss, and from then on no loss is ever lower."""

    def rivals(self) -> list[float]:
        rivals = super().rivals()
        return [
            math.nan if any(map(math.isnan, self.recorded[:place])) else rival for place, rival in enumerate(rivals)
        ]


@EarlyStopping.misconception("By how much must a loss be lower?", STOP, InTraining.HIDDEN)
class ProgressHasToBeLarge(_Stopper):
    """A loss has to be lower by a margin such as 1e-3, as with min_delta elsewhere; here any lower one is a best."""

    def beats(self, loss: float, rival: float) -> bool:
        return loss < rival - 1e-3


@EarlyStopping.misconception("Where is each number kept: in self, or in the class?", STOP, InTraining.UNSEEN)
class MemoryKeptInTheClass(_Stopper):
    """The losses are remembered in the class, not in self, so two objects disturb each other."""

    memory: list[float]
    limit: int

    def __init__(self, patience: int) -> None:
        super().__init__(patience)
        type(self).memory, type(self).limit = self.recorded, patience

    def step(self, validation_loss: float) -> Any:
        self.recorded, self.patience = self.memory, self.limit
        return super().step(validation_loss)


@EarlyStopping.misconception("How many bad epochs are there after a new best?", STOP, InTraining.HIDDEN)
class CountsFromOne(_Stopper):
    """The counter begins with 1 where it should begin with 0, so it stops one epoch too soon, or at once."""

    def stops(self, bad_epochs: int) -> bool:
        return bad_epochs + 1 >= self.patience


@EarlyStopping.misconception("What does a comparison give, and what does int() make of it?", STOP)
class NumbersForTruth(_Stopper):
    """It returns 1 and 0, where True and False are asked for."""

    def stops(self, bad_epochs: int) -> int:
        return int(bad_epochs >= self.patience)


@EarlyStopping.misconception("What does == say when the counter has gone past patience?", STOP)
class SaysItOnce(_Stopper):
    """It says stop only when the counter equals patience, so a loop that goes on gets no second warning."""

    def stops(self, bad_epochs: int) -> bool:
        return bad_epochs == self.patience


@EarlyStopping.misconception("What does a function return if it ends without a return statement?", STOP)
class NothingInsteadOfFalse(_Stopper):
    """It returns True when it is time to stop, and nothing at all before."""

    def stops(self, bad_epochs: int) -> bool | None:
        return True if bad_epochs >= self.patience else None


@EarlyStopping.misconception("How does the code that calls step learn that it is time?", STOP, InTraining.HIDDEN)
class StopKeptToItself(_Stopper):
    """It stores that it is time to stop, and step does not return it."""

    def stops(self, bad_epochs: int) -> None:
        self.early_stop = bad_epochs >= self.patience


@EarlyStopping.misconception("Is a high loss good or bad?", STOP, InTraining.WORSE)
class HigherIsBetter(_Stopper):
    """A higher number counts as progress, as it would for an accuracy."""

    first_rival = -math.inf

    def beats(self, loss: float, rival: float) -> bool:
        return loss > rival


@EarlyStopping.misconception("Which epochs does the counter count?", STOP, InTraining.WORSE)
class EveryEpochCounts(_Stopper):
    """Every epoch is counted, the good ones too, so it stops after a fixed number of them."""

    @property
    def bad_epochs(self) -> int:
        return len(self.recorded)


@EarlyStopping.misconception("Which line makes the counter larger, and when does it run?", STOP)
class NothingIsCounted(_Stopper):
    """The counter stays at 0 however many bad epochs there are, so it never stops."""

    @property
    def bad_epochs(self) -> int:
        return 0


@EarlyStopping.misconception("What would a patience of 0 mean?", STOP)
class PatienceNotChecked(_Stopper):
    """A patience below 1, with which it would stop at once, is accepted without an error."""

    def checked(self, patience: int) -> int:
        return patience


@EarlyStopping.misconception("What does Python do with an assert when it runs with -O?", STOP)
class PatienceAsserted(_Stopper):
    """A patience below 1 ends in an AssertionError, where a ValueError with a text is asked for."""

    def checked(self, patience: int) -> int:
        if patience < 1:
            raise AssertionError(patience)
        return patience


@EarlyStopping.misconception("Under which name does the exercise keep the best loss?", STOP, InTraining.STOPS)
class BestUnderAnotherName(_Stopper):
    """The best loss is kept under another name than `best`, where the loop does not find it."""

    def __getattribute__(self, name: str) -> Any:
        if name == "best":
            raise AttributeError(name)
        return super().__getattribute__(name)
