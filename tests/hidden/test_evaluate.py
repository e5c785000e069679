"""Hidden checks of ``evaluate``.

The right loss and accuracy are those of the reference on the same classifier, behind a dropout without chance.
"""

import pytest
import torch

from exercise_kit.engine.compare import close, kind_of
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l06_training.evaluate.claims import expect_floats
from vit_course.exercises.l06_training.loop_cases import Setting, expect_on_the_device, number_in

EITHER = "one of both"  # a slip in one number costs its own check, and not those of all else


def _fields(probe, sizes=None, **changed):
    """Drawn weights and batches, about half of whose images the model is right on, in each batch another share."""
    channels, height, width, classes = probe.sizes(4, low=3, high=7)
    features = channels * height * width
    weights = probe.weights({"classifier.weight": (classes, features), "classifier.bias": (classes,)})
    weights["dropout.keep"] = 2.0 * (probe.uniform(features) < 0.5)
    weights["dropout.keep"][:2] = torch.tensor([0.0, 2.0])
    batches = []
    for number, size in enumerate(sizes or (7, 7, probe.choice((2, 3, 4)))):
        images = (1 + number) * probe.images(size, channels, height, width)
        order = (images.flatten(1) @ weights["classifier.weight"].T + weights["classifier.bias"]).argsort(dim=-1)
        right = (5, 3, 2)[number % 3]
        labels = torch.cat([order[:right, -1], order[right:, probe.choice((0, 1))]])
        batches.append((images, labels))
    return {"weights": weights, "batches": batches, "training": False, "device": "cpu"} | changed


def _measured(student, fields, *judged):
    """What was noted, and the pair of numbers that came back."""
    notes = student.run_fixture("loop", "returned", *judged, **fields)
    returned = notes["returned"]
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        look = "What does your `return` line give back?"
        raise Failure(f"{student.name} gave {kind_of(returned)}", "a pair: the mean loss and the accuracy", look)
    names = ("the first of the pair, the mean loss, is", "the second, the accuracy, is")
    loss, accuracy = (number_in(each, name, "a number") for each, name in zip(returned, names, strict=True))
    return notes, loss, accuracy


def _expect_right(student, reference, fields, look, *judged, only=None):
    notes, *found = _measured(student, fields, *judged)
    right = Student({"reference": reference.evaluate}).run_fixture("loop", **fields)["returned"]
    sizes = ", ".join(str(len(labels)) for _, labels in fields["batches"])
    wrong = [
        Failure(f"for batches of {sizes} images the {name} is {here:.4f}", f"{there:.4f}", look)
        for name, here, there in zip(("loss", "accuracy"), found, right, strict=True)
        if only in (None, EITHER, name) and not close(torch.tensor(here), torch.tensor(float(there)))
    ]
    if len(wrong) > (only == EITHER):
        raise wrong[0]
    return notes


@pytest.mark.exercise("evaluate", points=0.75)
def test_the_loss_is_a_mean_over_images(student, reference, probe):
    """The loss, the first of the pair, is the mean over all images, in whatever batch each came."""
    look = "Which loss is it, over how many images, and does a short batch count for as much as a full one?"
    _expect_right(student, reference, _fields(probe), look, only="loss")


@pytest.mark.exercise("evaluate", points=0.5)
def test_the_accuracy_is_a_share_of_images(student, reference, probe):
    """The accuracy, the second of the pair, is the share of images that are classified correctly, from 0 to 1."""
    look = "Along which axis are the classes, and by what do you divide?"
    _expect_right(student, reference, _fields(probe), look, only="accuracy")


@pytest.mark.exercise("evaluate", points=0.5)
def test_it_measures_in_evaluation_mode(student, reference, probe, device):
    """A model that is in training is measured as it will be used: with its dropout off, on every batch."""
    look = "Who tells the model that it is being measured?"
    fields = _fields(probe, training=True, device=str(device))
    notes = _expect_right(student, reference, fields, look, "forwards", only=EITHER)
    modes = [training for training, _, _ in notes["forwards"]]
    if any(modes):
        seen = f"the model was in training mode for {sum(modes)} of {len(modes)} batches"
        raise Failure(seen, "evaluation mode", look)


@pytest.mark.exercise("evaluate", points=0.5)
def test_the_mode_is_put_back(student, reference, probe):
    """The numbers are right, and the model is in the mode that it had before, training or evaluation."""
    for training in (True, False):
        look = "What do you know of the model's mode before you change it?"
        notes = _expect_right(student, reference, _fields(probe, training=training), look, "training", only=EITHER)
        if notes["training"] is not training:
            was, now = ("training", "evaluation") if training else ("evaluation", "training")
            raise Failure(f"a model that came in {was} mode is in {now} mode afterward", f"{was} mode", look)


@pytest.mark.exercise("evaluate", points=0.5)
def test_nothing_is_learned_or_recorded(student, reference, probe):
    """No graph is made while it measures, afterward torch records as before; weights, their dtype and gradients stay,
    no hook does, and the model can go on learning."""
    fields = _fields(probe)
    names = ("classifier.weight", "classifier.bias")
    stale = {name: probe.normal(*fields["weights"][name].shape) for name in names}
    look = "Which lines of a training loop have no business here, and what tells torch that no gradient is wanted?"
    judged = ("weights", "gradients", "recording", "forwards", "frozen", "hooks")
    notes = _expect_right(student, reference, fields | {"stale": stale}, look, *judged, only=EITHER)
    moved = [name for name in names if not _same(notes["weights"][name], fields["weights"][name])]
    added = [name for name in names if not _same(notes["gradients"][name], stale[name])]
    if moved or added:
        what = f"the weight `{moved[0]}`" if moved else f"the gradient of `{added[0]}`"
        raise Failure(f"{what} is another one after the call", "everything as it was", look)
    if notes["frozen"]:
        seen = f"`{notes['frozen'][0]}` no longer requires a gradient after the call"
        raise Failure(seen, "parameters that go on learning", "Which line changes the parameters, and what undoes it?")
    if notes["hooks"]:
        raise Failure("a hook stays behind on the model", "the model as it came", "Who takes a hook away again?")
    if any(recorded for _, recorded, _ in notes["forwards"]) or not notes["recording"]:
        seen = (
            "torch recorded a graph while it measured" if notes["recording"] else "torch records no gradients any more"
        )
        raise Failure(seen, "none while it measures, and as before afterward", look)


def _same(found, before):
    return found is not None and found.dtype == before.dtype and torch.equal(found, before)


@pytest.mark.exercise("evaluate", points=0.25)
def test_batches_go_to_the_device(student, reference, probe):
    """The numbers are right, and images and labels go to the device of the model, wherever they lay."""
    fields = _fields(probe)
    _expect_right(student, reference, fields, "What is the argument `device` for?", only=EITHER)
    expect_on_the_device(student, Setting(fields["weights"], fields["batches"]))


@pytest.mark.exercise("evaluate", points=0.25)
def test_any_batch_sizes_do(student, reference, probe):
    """One batch alone, batches of one image, a single image, and many uneven ones give the right pair too."""
    look = "Which of your numbers supposes that all batches are alike?"
    for sizes in (probe.sizes(1), (1, 1, 3), (1,), (2, 6, 5, 1)):
        _expect_right(student, reference, _fields(probe, sizes), look)


@pytest.mark.exercise("evaluate", points=0.25)
def test_both_are_plain_floats(student, reference, probe):
    """A number is right, and both are plain floats."""
    look = "Which loss, and which share?"
    notes = _expect_right(student, reference, _fields(probe), look, only=EITHER)
    expect_floats(student, notes["returned"])


@pytest.mark.exercise("evaluate", points=0.25)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    _expect_right(student, reference, _fields(probe), "Which loss, and which share?", only=EITHER)
    expect_example(student)


@pytest.mark.exercise("evaluate", points=0.25)
def test_what_is_frozen_stays_frozen(student, reference, probe):
    """The numbers are right, and a parameter that was frozen before is frozen afterward, and no other."""
    look = "Which line says of all parameters at once whether they learn? Who knows how it was before?"
    frozen = [probe.choice(("classifier.weight", "classifier.bias"))]
    notes = _expect_right(student, reference, _fields(probe, frozen=frozen), look, "frozen", only=EITHER)
    if notes["frozen"] != frozen:
        seen = f"`{frozen[0]}` came frozen, and afterward {' and '.join(notes['frozen']) or 'nothing'} is"
        raise Failure(seen, "frozen what was frozen before", look)
