"""`linear_probe`: the best linear classifier of features.

The oracle is the objective itself: it is convex, so an answer near its minimum is right, however it was found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import format_dtype
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_no_device_mismatch
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l09_fine_tuning import LESSON

# how far above the lowest objective an answer may be: as the exercise says
ALLOWED = 0.01
# how many times longer the weights are than at the minimum where nothing holds them back, and classes are apart
BOUNDLESS = 7
DEFAULT = 1e-3
# of Newton's method, which needs about ten steps, and where a slope counts as none
_MOST_NEWTON_STEPS, _MOST_HALVES, _FLAT = 100, 40, 1e-10

linear_probe = Exercise("linear_probe", LESSON, in_training=InTraining.HIDDEN)


@dataclass(frozen=True)
class Task:
    """Features of images, their labels, and how to classify them; ``weight_decay`` None where it is not given."""

    features: Tensor
    labels: Tensor
    num_classes: int
    weight_decay: float | None = None

    def compute_objective(self, weight: Tensor, bias: Tensor) -> float:
        """Compute what is to be as low as possible."""
        decay = DEFAULT if self.weight_decay is None else self.weight_decay
        features, weight, bias = (each.double() for each in (self.features, weight, bias))
        loss = F.cross_entropy(F.linear(features, weight, bias), self.labels)
        return float(loss + decay / 2 * weight.square().sum())

    def find_minimum(self) -> tuple[Tensor, Tensor]:
        """Weight and bias at the objective's minimum, in float64: by Newton's steps, halved where they lead up."""
        decay = DEFAULT if self.weight_decay is None else self.weight_decay
        inputs = F.pad(self.features.double(), (0, 1), value=1.0)  # (rows, features + 1): the last is for the bias
        rows, width = inputs.shape
        one_hot = F.one_hot(self.labels, self.num_classes).double()
        held_back = torch.full((width,), decay, dtype=torch.float64)
        held_back[-1] = 0.0
        found = inputs.new_zeros(self.num_classes, width)  # weight and bias, side by side
        for _ in range(_MOST_NEWTON_STEPS):
            guess = (inputs @ found.T).softmax(dim=1)
            slope = (guess - one_hot).T @ inputs / rows + held_back * found
            if slope.abs().max() < _FLAT:
                break
            spread = torch.diag_embed(guess) - guess.unsqueeze(2) * guess.unsqueeze(1)  # (rows, classes, classes)
            curvature = torch.einsum("rik,ra,rb->iakb", spread, inputs, inputs).flatten(2).flatten(0, 1) / rows
            curvature.diagonal().add_(held_back.repeat(self.num_classes))
            # a number that is added to every bias changes nothing: of all ways down the shortest
            step = (torch.linalg.pinv(curvature, hermitian=True) @ slope.flatten()).view_as(found)
            found = self._step_downhill(found, step)
        return found[:, :-1].contiguous(), found[:, -1].contiguous()

    def _step_downhill(self, found: Tensor, step: Tensor) -> Tensor:
        """The first of ``found - step``, half of the step and so on that lies no higher than ``found``."""
        now = self.compute_objective(found[:, :-1], found[:, -1])
        for _ in range(_MOST_HALVES):
            if self.compute_objective((found - step)[:, :-1], (found - step)[:, -1]) <= now:
                return found - step
            step = step / 2
        return found


def draw_clouds_of_points(
    probe: Probe, count: int, dim: int, num_classes: int, weight_decay: float | None = None, apart: float = 1.5
) -> Task:
    """A cloud of points for each class, which overlap; class 0 has most of them. In grading these sizes are drawn."""
    count, dim = probe.choice(range(60, 100), shown=count), probe.choice(range(3, 7), shown=dim)
    num_classes = probe.choice(range(3, 6), shown=num_classes)
    labels = (probe.integers(count, high=2 * num_classes) - num_classes).clamp(min=0)
    labels[:num_classes] = torch.arange(num_classes)
    centers = apart * probe.normal(num_classes, dim)
    return Task(probe.normal(count, dim) + centers[labels] + 0.5, labels, num_classes, weight_decay)


def call_and_expect_linear(student: Student, task: Task) -> tuple[Tensor, Tensor]:
    """Weight and bias that came back, of which nothing goes on record; Failure where it is no such nn.Linear."""
    fields = {"features": task.features, "labels": task.labels, "num_classes": task.num_classes}
    if task.weight_decay is not None:
        fields["weight_decay"] = task.weight_decay
    notes = student.run_fixture("probing", **fields)
    student.forget()
    weight, bias = notes["weight"], notes["bias"]
    facts = (notes["kind"], tuple(weight.shape), tuple(bias.shape), str(weight.dtype))
    wanted = (task.num_classes, task.features.shape[1])
    student.note(facts)
    if facts[:3] != ("Linear", wanted, wanted[:1]):
        seen = f"{student.name} gave {facts[0]}" if facts[0] != "Linear" else f"its weight has shape {facts[1]}"
        if facts[0] == "Linear" and facts[1] == wanted:
            seen = "the nn.Linear has no bias"
        look = "Which layer turns a row of features into logits?"
        raise Failure(seen, f"an nn.Linear with a weight of shape {wanted} and a bias", look)
    if not (weight.isfinite().all() and bias.isfinite().all()):
        raise Failure("the classifier holds numbers that are not finite", "finite ones", "How large are your steps?")
    return weight, bias


def expect_minimum(student: Student, task: Task, what: str, look: str) -> None:
    """Fail unless the objective of what came back is at most ``ALLOWED`` above its minimum."""
    weight, bias = call_and_expect_linear(student, task)
    best = task.find_minimum()
    found, lowest = task.compute_objective(weight, bias), task.compute_objective(*best)
    # how large weights get that nothing holds back depends on the way there: it is no trace of the mistake
    boundless = bool(weight.norm() > BOUNDLESS * best[0].norm())
    student.note(("objective", "boundless" if boundless else _round_objective(found), _round_objective(lowest)))
    if found > lowest + ALLOWED:
        seen = f"{what} the objective is {found:.3f}"
        raise Failure(seen, f"{lowest:.3f}, the lowest there is, or at most {ALLOWED} more", look)


def _round_objective(number: float) -> float:
    """A hundredth more or less is the way there, and more is the mistake."""
    return round(number, 1 if number < 100 else -1)


@linear_probe.check(guard=True, points=0.3, first="it_finds_the_minimum")
def a_linear_layer_comes_back(student: Student, probe: Probe) -> None:
    """It gives an nn.Linear with a bias, from features to logits."""
    first, second = draw_clouds_of_points(probe, 40, 5, 3), draw_clouds_of_points(probe, 30, 3, 6)
    unseen = replace(first, num_classes=first.num_classes + 2)  # classes of which there is no image
    for task in (first, second, unseen):
        call_and_expect_linear(student, task)


@linear_probe.check(needs=a_linear_layer_comes_back, guard=True, points=0.14, first="it_finds_the_minimum")
def what_went_in_is_left_alone(student: Student, probe: Probe) -> None:
    """The features and labels that go in are not changed."""
    task = draw_clouds_of_points(probe, 40, 5, 3)
    notes = student.run_fixture("probing", features=task.features, labels=task.labels, num_classes=task.num_classes)
    changed = [str(each) for each in notes["changed"]]
    student.note_instead(("changed", tuple(changed)))
    if changed:
        look = "Which of your operations writes in place?"
        raise Failure(f"the call changed the {changed[0]} that it was given", "new tensors", look)


@linear_probe.check(needs=a_linear_layer_comes_back, points=0.4)
def it_finds_the_minimum(student: Student, probe: Probe) -> None:
    """It minimizes the mean cross-entropy plus half the weight decay times the sum of the squared weights."""
    look = "What do you minimize, and have you reached its minimum?"
    for shown in ((80, 6, 4), (60, 3, 3)):
        task = draw_clouds_of_points(probe, *shown)
        count, dim = task.features.shape
        expect_minimum(student, task, f"for {count} rows of {dim} numbers", look)


@linear_probe.check(needs=a_linear_layer_comes_back, points=1)
def the_weight_decay_counts(student: Student, probe: Probe) -> None:
    """The sum of the squared weights is multiplied by half of the weight decay that was given."""
    for weight_decay in (probe.choice((0.03, 0.05), shown=0.03), probe.choice((0.3, 0.4), shown=0.3)):
        task = draw_clouds_of_points(probe, 90, 5, 3, weight_decay)
        look = "Write your loss beside the formula of the exercise: which term has which factor?"
        expect_minimum(student, task, f"with weight_decay={weight_decay}", look)


@linear_probe.check(needs=a_linear_layer_comes_back, points=1.67)
def the_bias_is_free(student: Student, probe: Probe) -> None:
    """The bias is not decayed: even with a huge weight decay it shows how common each class is."""
    # classes that overlap hold the weights back by themselves: here it hardly matters how much of a decay they feel
    task = draw_clouds_of_points(probe, 120, 4, 3, float(probe.choice(range(15, 25), shown=20)), apart=0.5)
    look = "Which parameters are in the term with the squares?"
    expect_minimum(student, task, f"with weight_decay={task.weight_decay:g}", look)


@linear_probe.check(needs=it_finds_the_minimum, points=1.22)
def features_may_be_large(student: Student, probe: Probe) -> None:
    """Features that are larger, or far from zero, are classified as well."""
    # five classes that overlap: else steps too large, or too few, may by chance end low enough
    small = draw_clouds_of_points(probe, 80, 6, 5, apart=0.5)
    task = Task(8 * small.features + 4, small.labels, small.num_classes)
    look = "Does your optimizer need features of size 1? Then the layer that comes back has to make up for that."
    expect_minimum(student, task, "for features eight times as large", look)


@linear_probe.check(needs=it_finds_the_minimum, worth=0.5, guard=True, points=0.14, first=it_finds_the_minimum)
def the_layer_has_the_features_dtype(student: Student, probe: Probe) -> None:
    """The layer has the dtype of the features, so float64 features can be given to it."""
    task = draw_clouds_of_points(probe, 40, 5, 3)
    for features in (task.features.double(), task.features):
        weight, _ = call_and_expect_linear(student, Task(features, task.labels, task.num_classes))
        if weight.dtype != features.dtype:
            look = "Which dtype does nn.Linear choose when you name none, and which one do the features have?"
            seen = f"for {format_dtype(features.dtype)} features the layer is {format_dtype(weight.dtype)}"
            raise Failure(seen, format_dtype(features.dtype), look)


@linear_probe.check(needs=it_finds_the_minimum, worth=0.5, guard=True, points=0.18, first=it_finds_the_minimum)
def it_computes_where_the_features_are(student: Student, probe: Probe) -> None:
    """If the features are on another device, the layer is made there, as far as a check without numbers can see."""
    # whoever minimizes looks at a number sooner or later, and there are none: what came before has not mixed devices
    task = draw_clouds_of_points(probe, 40, 5, 3)
    fields = {"features": task.features, "labels": task.labels, "num_classes": task.num_classes}
    notes = student.run_fixture("probing_elsewhere", **fields)
    expect_no_device_mismatch(student, notes | ({"raised": ""} if notes["read"] is True else {}))


linear_probe.example(
    """
>>> features = torch.tensor([[-1.0], [1.0]])
>>> probe = linear_probe(features, torch.tensor([0, 1]), 2, weight_decay=0.5)
>>> (probe(features).softmax(dim=1) * 10).round().tolist()
[[7.0, 3.0], [3.0, 7.0]]
""",
    points=0.25,
    first=it_finds_the_minimum,
)


read_mistakes(linear_probe, __name__)
