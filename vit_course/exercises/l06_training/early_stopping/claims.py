"""`EarlyStopping`: when to stop.

Each check is a short story of validation losses; a reader can tell without a computer when it ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

from torch import Tensor

from exercise_kit.engine.compare import describe_kind
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_value_error
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l06_training import LESSON

NAN = math.nan
HOPELESS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
Story = tuple[int, Sequence[float], str]
DrawnStory = tuple[int, Sequence[float]]

EarlyStopping = Exercise("EarlyStopping", LESSON, is_class=True, in_training=InTraining.UNSEEN)


def _run_on_losses(
    student: Student, patience: int, losses: Sequence[float], beside: Sequence[float] = ()
) -> dict[str, Any]:
    """Return what the fixture notes; nothing goes on record yet."""
    notes = student.run_fixture("stopping", patience=patience, losses=list(losses), beside=list(beside))
    student.forget()
    return notes


def compute_expected_stops(patience: int, losses: Sequence[float]) -> str:
    """The oracle: for each loss "x" to stop, where the lowest came ``patience`` losses ago or more, "." to go on."""
    stops = ""
    for place in range(len(losses)):
        numbers = [(loss, number) for number, loss in enumerate(losses[: place + 1]) if not math.isnan(loss)]
        best = min(numbers)[1] if numbers else -1
        stops += "x" if place - best >= patience else "."
    return stops


def draw_losses(probe: Probe, *steps: float) -> list[float]:
    """Drawn losses: each step is a factor on the lowest so far, below 1 for progress, or NaN."""
    best, losses = float(probe.uniform(1, low=2.0, high=60.0)), []
    for step in steps:
        losses.append(round(best * step, 4))
        best = best if math.isnan(step) else min(best, losses[-1])
    return losses


def _expect_stops_in_stories(
    student: Student, probe: Probe, shown: Sequence[Story], drawn: Iterable[DrawnStory], look: str
) -> None:
    """Fail unless step answers as the stories have it: those that are shown, or in grading those that are drawn.

    Args:
        shown: a patience, losses, and for each loss what step says: "." is to go on, "x" to stop, and "?" either of
            them; at one or more of the "~" it has to stop.
        drawn: a patience and losses; step answers as the oracle says. Every such story both goes on and stops.
        look: where to look next.
    """
    for patience, losses, stops in (
        shown if not probe.is_secret else ((*each, compute_expected_stops(*each)) for each in drawn)
    ):
        expect_stops_on_losses(student, patience, losses, stops, look)


def expect_stops_on_losses(
    student: Student, patience: int, losses: Sequence[float], stops: str, look: str, beside: Sequence[float] = ()
) -> None:
    """Fail unless step answers as ``stops`` says, while a second object gets the losses ``beside``."""
    found = _run_and_read_stops(student, patience, losses, beside)
    student.note((found, "x" in _run_and_read_stops(student, 2, HOPELESS)))  # or silence would pass for patience
    wrong = [place for place, there in enumerate(stops) if there in ".x" and there != found[place]]
    somewhere = [found[place] for place, there in enumerate(stops) if there == "~"]
    if wrong or (somewhere and "x" not in somewhere):
        place = wrong[0] if wrong else len(stops) - 1
        also = f", while another one gets {_format_losses(beside)}," if beside else ""
        raise Failure(
            f"with patience {patience}, after the losses {_format_losses(losses[: place + 1])}{also} step says "
            f"{'stop' if found[place] == 'x' else 'go on'}",
            "go on" if stops[place] == "." else "stop",
            look,
        )


def _run_and_read_stops(student: Student, patience: int, losses: Sequence[float], beside: Sequence[float] = ()) -> str:
    answers = _run_on_losses(student, patience, losses, beside)["answers"]
    return "".join("x" if each is not None and bool(each) else "." for each in answers)


def _format_losses(losses: Sequence[float]) -> str:
    return ", ".join(f"{loss:.8g}" for loss in losses)


@EarlyStopping.check(guard=True)
def step_gives_a_bool(student: Student, probe: Probe) -> None:
    """`step` gives True or False, every time."""
    losses = draw_losses(probe, 0.9, 0.8, 1.2, 1.1, 0.7) if probe.is_secret else (1.0, 0.9, 1.1, 1.2)
    answers = _run_on_losses(student, 2, losses)["answers"]
    kinds = ["bool" if _is_bool(each) else "None" if each is None else type(each).__name__ for each in answers]
    student.note(tuple(kinds))
    for number, (kind, answer) in enumerate(zip(kinds, answers, strict=True)):
        if kind != "bool":
            look = (
                "Does every path through `step` end in a `return`?" if answer is None else "Which comparison gives it?"
            )
            raise Failure(f"step gave {describe_kind(answer)} for loss number {number}", "True or False", look)


def _is_bool(answer: object) -> bool:
    return type(answer).__name__ in ("bool", "bool_") or (isinstance(answer, Tensor) and answer.numel() == 1)


@EarlyStopping.check(guard=True)
def falling_losses_go_on(student: Student, probe: Probe) -> None:
    """While every loss is lower than all before it, it does not say stop."""
    expect_stops_on_losses(student, 2, (3.0, 2.5, 2.0, 1.0, 0.5), ".....", "Which losses does your counter count?")


@EarlyStopping.check(guard=True)
def the_first_loss_is_always_the_best(student: Student, probe: Probe) -> None:
    """The first loss is the best so far, however large it is."""
    expect_stops_on_losses(student, 1, (250.0, 240.0), "..", "With what do you compare the first loss?")


@EarlyStopping.check(points=0.15)
def it_waits_exactly_as_long_as_its_patience(student: Student, probe: Probe) -> None:
    """It says stop at the loss number `patience` in a row that is no better, not one sooner and not one later."""
    drawn = [
        (patience, draw_losses(probe, *[0.9] * probe.choice((2, 3, 4)), *[1.1] * patience))
        for patience in (1, *probe.sizes(2, low=2, high=5))
    ]
    shown = (3, (1.0, 1.1, 1.2, 1.3), "...x"), (1, (1.0, 1.1), ".x")
    look = "Write the counter beside each loss. At which number is it enough?"
    _expect_stops_in_stories(student, probe, shown, drawn, look)


@EarlyStopping.check(guard=True, points=0.3)
def a_better_loss_starts_the_count_anew(student: Student, probe: Probe) -> None:
    """Only losses in a row count: a new best one starts the count anew."""
    (patience,) = probe.sizes(1, low=2, high=4)
    bad = [1.2] * (patience - 1)
    drawn = draw_losses(probe, 1.0, *bad, 0.9, *bad, 0.8, *bad, 1.3, 1.1, 0.7)
    shown = 3, (1.0, 1.2, 0.9, 1.1, 0.8, 1.0, 0.7), "......."
    look = "What happens to your counter when a loss is better?"
    _expect_stops_in_stories(student, probe, [shown], [(patience, drawn)], look)


@EarlyStopping.check(points=0.1)
def losses_are_compared_with_the_best(student: Student, probe: Probe) -> None:
    """A loss has to be below the best one so far; being below the last one is not enough."""
    (patience,) = probe.sizes(1, low=3, high=5)
    drawn = draw_losses(probe, 0.9, 0.8, *(1.9 - 0.1 * number for number in range(patience)))
    shown = (
        (3, (1.0, 1.6, 1.5, 1.4, 1.3, 1.2, 1.1), ".~~~~~~"),
        (3, (1.0, 0.5, 0.9, 0.8, 0.7, 0.6, 0.55), "..~~~~~"),
    )
    look = "Which of the losses so far do you keep?"
    _expect_stops_in_stories(student, probe, shown, [(patience, drawn)], look)
    expect_stops_on_losses(student, 2, (1.0, 0.0, 0.9, 0.8, 0.7), "..~~~", "Is 0 a loss like any other in your `if`?")


@EarlyStopping.check(points=0.2)
def an_equal_loss_is_no_progress(student: Student, probe: Probe) -> None:
    """A loss as low as the best one is no progress."""
    (patience,) = probe.sizes(1, low=3, high=5)
    drawn, shown = draw_losses(probe, 0.9, *[1.0] * patience), (2, (1.0, 1.0, 1.0, 1.0, 1.0), ".~~~~")
    _expect_stops_in_stories(
        student, probe, [shown], [(patience, drawn)], "What do `<` and `<=` say of two equal numbers?"
    )


@EarlyStopping.check(guard=True, points=0.2)
def the_smallest_progress_counts(student: Student, probe: Probe) -> None:
    """A loss that is lower by only a tiny bit is a new best, too."""
    (patience,) = probe.sizes(1, low=2, high=3)
    first = float(probe.uniform(1, low=0.3, high=2.0))
    falling = [first * (1 - 1e-6 * number) for number in range(patience + 3)]
    shown = 2, (1.0, 0.999999, 0.999998, 0.999997, 0.999996), "....."
    look = "By how much must a loss be lower, as the exercise has it?"
    _expect_stops_in_stories(student, probe, [shown], [(patience, falling + falling[-1:] * patience)], look)


@EarlyStopping.check(points=0.2)
def each_has_a_memory_of_its_own(student: Student, probe: Probe) -> None:
    """Two objects of the class that are used side by side share no memory."""
    (patience,) = probe.sizes(1, low=2, high=3, shown=(2,))
    falling, rising = [3.0, 2.8, 2.6, 2.4, 2.2], [1.0, 1.1, 1.2]
    below, lower = [0.5, 0.6, 0.7, 0.8, 0.9], [0.5, 0.4, 0.3]
    if probe.is_secret:
        falling = draw_losses(probe, *[0.9] * (patience + 2))
        below = rising = [falling[-1] / 4 * (1.1 + 0.1 * number) for number in range(len(falling))]
        lower = [each / 100 for each in falling]
        falling = falling + falling[-1:] * patience
    look = "Where is each number kept: in self, or in something that both have in common?"
    expect_stops_on_losses(student, patience, falling, compute_expected_stops(patience, falling), look, below)
    expect_stops_on_losses(student, patience, rising, compute_expected_stops(patience, rising), look, lower)


@EarlyStopping.check(points=0.2)
def nan_is_no_progress(student: Student, probe: Probe) -> None:
    """A loss that is NaN is no progress, and is never the best."""
    (patience,) = probe.sizes(1, low=2, high=4)
    end = draw_losses(probe, 0.9, 0.8, 0.7, *[1.1] * patience)
    # the last of so many NaN in a row says stop, and a number then starts the count anew
    drawn = [draw_losses(probe, 0.9, *[NAN] * patience, 0.8), [NAN, *end], [NAN] * patience + end]
    shown = (2, (1.0, NAN, NAN, NAN, NAN), ".~~~~"), (2, (NAN, 0.9, 0.8, 0.7, 0.6), "?....")
    look = "What do `<` and `>=` say when one of the two numbers is NaN?"
    _expect_stops_in_stories(student, probe, shown, [(patience, each) for each in drawn], look)


def nan_starts_the_count_anew(student: Student, probe: Probe) -> bool:
    """Say whether a NaN between two losses that are no better sets the counter back, as progress does."""
    return _run_on_losses(student, 2, (1.0, 1.1, NAN, 1.1))["answers"] == [False] * 4


@EarlyStopping.check(points=0.2)
def it_says_so_again_when_asked_again(student: Student, probe: Probe) -> None:
    """If training goes on after it has said stop, it says stop again, until there is a new best loss."""
    (patience,) = probe.sizes(1, low=1, high=3)
    drawn = draw_losses(probe, 0.9, *[1.1] * (patience + 3), 0.8, 1.1)
    look = "What does your comparison say when the counter is larger than patience?"
    again = 2, (1.0, 1.1, 1.2, 1.3, 1.4, 1.5), ".???xx"
    _expect_stops_in_stories(student, probe, [again], [(patience, drawn)], look)
    look = "What happens to your counter when a loss is the best so far?"
    _expect_stops_in_stories(student, probe, [(2, (1.0, 1.1, 1.2, 1.3, 0.5), ".???.")], [], look)


@EarlyStopping.check(guard=True)
def best_is_the_lowest_loss_so_far(student: Student, probe: Probe) -> None:
    """`best` is the lowest loss so far, and infinite before the first."""
    losses: Sequence[float] = (3.0, 2.0, 2.5, 1.0, 1.5)
    if probe.is_secret:
        losses = draw_losses(probe, 1.0, 0.9, 1.1, 0.8, 1.2, 1.2, 0.7)
    found = _run_on_losses(student, 2, losses)["best"]
    wanted = [math.inf, *(min(losses[: place + 1]) for place in range(len(losses)))]
    student.note(tuple(_format_value(each) for each in found))
    for number, (here, there) in enumerate(zip(found, wanted, strict=True)):
        if _format_value(here) != _format_value(there):
            when = f"after the losses {_format_losses(losses[:number])}" if number else "before the first loss"
            seen = "there is no attribute `best`" if here == "missing" else f"`best` is {_format_value(here)}"
            raise Failure(f"{when} {seen}", f"{there:g}", "When does your code write into `self.best`?")


def _format_value(value: object) -> str:
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    return f"{float(value):g}" if isinstance(value, Real) else describe_kind(value)


@EarlyStopping.check(guard=True)
def no_patience_is_refused(student: Student, probe: Probe) -> None:
    """A patience below 1 raises a ValueError that names its value."""
    for patience in (0, -probe.choice(range(2, 11), shown=3)):
        expect_value_error(student, (patience,), [patience], f"patience={patience}")


EarlyStopping.example(
    """
>>> stopping = EarlyStopping(2)
>>> [stopping.step(loss) for loss in (2.0, 1.5, 1.6, 1.4, 1.5, 1.4)]
[False, False, False, False, False, True]
>>> stopping.best
1.4
""",
    points=0.1,
    first=it_waits_exactly_as_long_as_its_patience,
)


read_mistakes(EarlyStopping, __name__)
