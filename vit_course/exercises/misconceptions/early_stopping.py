"""Known mistakes of lesson 06: when to stop. Each keeps all losses that it has heard, and looks back over them."""

from __future__ import annotations

import math
from typing import Any

from exercise_kit.engine.exercise import InTraining
from vit_course.exercises.checks.early_stopping import EarlyStopping

STOP = "06_cifar, When to stop"


class _Stopper:
    """What the wrong ones have in common: a memory, and a look back at every loss."""

    first_rival = math.inf

    def __init__(self, patience: int) -> None:
        self.patience = self.checked(patience)
        self.heard: list[float] = []

    def checked(self, patience: int) -> int:
        if patience < 1:
            raise ValueError(f"a patience of {patience}")
        return patience

    def beats(self, loss: float, rival: float) -> bool:
        return loss < rival

    def rivals(self) -> list[float]:
        """What each loss had to beat."""
        rivals, rival = [], self.first_rival
        for loss in self.heard:
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
        for loss, rival in zip(self.heard, self.rivals(), strict=False):
            count = 0 if self.beats(loss, rival) else count + 1
        return count

    def step(self, validation_loss: float) -> Any:
        self.heard.append(validation_loss)
        return self.stops(self.bad_epochs)

    def stops(self, bad_epochs: int) -> Any:
        return bad_epochs >= self.patience


@EarlyStopping.misconception("What do < and <= say of two equal numbers?", STOP, InTraining.HIDDEN)
class EqualIsProgress(_Stopper):
    """A loss that equals the best one counts as progress, so a loss that stands still is waited for without end."""

    def beats(self, loss: float, rival: float) -> bool:
        return loss <= rival


@EarlyStopping.misconception("What happens to the counter when a loss is better?", STOP, InTraining.WORSE)
class NeverStartsAnew(_Stopper):
    """The counter is never set back, so bad epochs count even when good ones lie between them."""

    @property
    def bad_epochs(self) -> int:
        return sum(not self.beats(*pair) for pair in zip(self.heard, self.rivals(), strict=False))


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
        return [self.first_rival, *self.heard]


@EarlyStopping.misconception("When is the best loss written down?", STOP, InTraining.HIDDEN)
class ComparedWithTheFirst(_Stopper):
    """The best loss is written down once and never again, so each loss has to beat only the first one."""

    def rivals(self) -> list[float]:
        return [self.first_rival, *self.heard[:1] * len(self.heard)]


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
        return [math.nan if any(map(math.isnan, self.heard[:place])) else rival for place, rival in enumerate(rivals)]


@EarlyStopping.misconception("By how much has a loss to be lower?", STOP, InTraining.HIDDEN)
class ProgressHasToBeLarge(_Stopper):
    """A loss has to be lower by a margin such as 1e-3, as with min_delta elsewhere; here any lower one is a best."""

    def beats(self, loss: float, rival: float) -> bool:
        return loss < rival - 1e-3


@EarlyStopping.misconception("Where is each number kept: in self, or in the class?", STOP, InTraining.UNSEEN)
class MemoryKeptInTheClass(_Stopper):
    """The losses are remembered in the class, not in self, so two of them disturb each other."""

    memory: list[float]
    limit: int

    def __init__(self, patience: int) -> None:
        super().__init__(patience)
        type(self).memory, type(self).limit = self.heard, patience

    def step(self, validation_loss: float) -> Any:
        self.heard, self.patience = self.memory, self.limit
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
    """It says stop only when the counter equals patience, so whoever misses it hears no second warning."""

    def stops(self, bad_epochs: int) -> bool:
        return bad_epochs == self.patience


@EarlyStopping.misconception("What does a function give that ends without a return?", STOP)
class NothingInsteadOfFalse(_Stopper):
    """It returns True when it is time, and nothing at all before."""

    def stops(self, bad_epochs: int) -> bool | None:
        return True if bad_epochs >= self.patience else None


@EarlyStopping.misconception("How does whoever calls step learn that it is time?", STOP, InTraining.HIDDEN)
class StopKeptToItself(_Stopper):
    """It notes for itself that it is time to stop, and step says nothing about it."""

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
        return len(self.heard)


@EarlyStopping.misconception("Which line makes the counter larger, and when does it run?", STOP)
class NothingIsCounted(_Stopper):
    """The counter stays at 0 however many bad epochs there are, so it never stops."""

    @property
    def bad_epochs(self) -> int:
        return 0


@EarlyStopping.misconception("What would a patience of 0 mean?", STOP)
class PatienceNotChecked(_Stopper):
    """A patience below 1, with which it would stop at once, is accepted without a word."""

    def checked(self, patience: int) -> int:
        return patience


@EarlyStopping.misconception("What becomes of an assert when Python runs with -O?", STOP)
class PatienceAsserted(_Stopper):
    """A patience below 1 ends in an AssertionError, where a ValueError with a text is asked for."""

    def checked(self, patience: int) -> int:
        if patience < 1:
            raise AssertionError(patience)
        return patience


@EarlyStopping.misconception("Under which name does the exercise keep the best loss?", STOP, InTraining.STOPS)
class BestUnderAnotherName(_Stopper):
    """The best loss is kept under another name than `best`, where nobody finds it."""

    def __getattribute__(self, name: str) -> Any:
        if name == "best":
            raise AttributeError(name)
        return super().__getattribute__(name)
