"""Hidden checks of ``train_one_epoch``, and of ``fix_training``, which mends a broken one.

Every epoch runs on a linear classifier behind a dropout without chance, with SGD; the right weights and losses are
those that the reference leaves on the same classifier.
"""

import pytest
import torch

from exercise_kit.engine.compare import close
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l06_training.loop_cases import Setting, expect_on_the_device, number_in
from vit_course.exercises.l06_training.train_one_epoch.claims import expect_float


def _fields(probe, sizes=None, **changed):
    """The fixture's arguments: drawn weights, batches of drawn sizes with a short last one, rate and momentum."""
    channels, height, width, classes = probe.sizes(4, high=6)
    features = channels * height * width
    weights = probe.weights({"classifier.weight": (classes, features), "classifier.bias": (classes,)})
    weights["dropout.keep"] = 2.0 * (probe.uniform(features) < 0.5)
    weights["dropout.keep"][:2] = torch.tensor([0.0, 2.0])
    full, rest = probe.sizes(2, low=2, high=7)
    full, rest = max(full, rest), min(full, rest)
    batches = []
    for number, size in enumerate(sizes or (full, full, full, rest)):
        images = (1 + number) * probe.images(size, channels, height, width)
        batches.append((images, probe.integers(size, high=classes)))
    settings = {"training": True, "momentum": probe.choice((0.0, 0.5, 0.9)), "device": "cpu"}
    settings["learning_rate"] = float(probe.uniform(1, low=0.2, high=0.6))
    return {"weights": weights, "batches": batches, **settings} | changed


def _stale(probe, fields):
    names = ("classifier.weight", "classifier.bias")
    return {name: probe.normal(*fields["weights"][name].shape, scale=0.5) for name in names}


def _right(reference, fields):
    return Student({"reference": reference.train_one_epoch}).run_fixture("loop", **fields)


def _expect_weights(student, reference, fields, look, *judged):
    """Fail unless an epoch leaves the weights that the reference leaves; what was noted."""
    notes = student.run_fixture("loop", "weights", *judged, **fields)
    student.record.append(tuple(each for each in notes["events"] if each != "zero_grad"))
    right = _right(reference, fields)["weights"]
    for name, wanted in right.items():
        found = notes["weights"][name]
        if not close(found, wanted):
            unmoved = torch.equal(found, fields["weights"][name])
            seen = (
                f"`{name}` of the model has not moved"
                if unmoved
                else f"`{name}` of the model is not where it should be"
            )
            order = ", ".join(map(str, notes["events"][:8])) or "nothing"
            raise Failure(f"{seen}; your loop began with: {order}", "one step of SGD for every batch", look)
    return notes


def _expect_loss(student, reference, fields, look):
    """Fail unless the number that comes back is the mean loss of the reference; it is given back as it came."""
    returned = student.run_fixture("loop", "returned", **fields)["returned"]
    found = number_in(returned, f"{student.name} gave", "one number, the mean loss")
    right = _right(reference, fields)["returned"]
    if not close(torch.tensor(found), torch.tensor(float(right))):
        sizes = ", ".join(str(len(labels)) for _, labels in fields["batches"])
        raise Failure(f"for batches of {sizes} images {student.name} gave {found:.4f}", f"{right:.4f}", look)
    return returned


@pytest.mark.exercise("train_one_epoch", points=1)
@pytest.mark.exercise("fix_training", points=0.75)
def test_every_batch_makes_its_own_step(student, reference, probe, device):
    """Every batch moves the weights by one step against its own gradient, taken in training mode."""
    look = "What happens to weights and gradients between one batch and the next?"
    _expect_weights(student, reference, _fields(probe, device=str(device)), look)


@pytest.mark.exercise("train_one_epoch", points=0.5)
@pytest.mark.exercise("fix_training", points=0.5)
def test_older_gradients_do_not_count(student, reference, probe):
    """Gradients from before the epoch change no weights."""
    fields = _fields(probe)
    look = "Which gradient does the first step see, if somebody has left one behind?"
    _expect_weights(student, reference, fields | {"stale": _stale(probe, fields)}, look)


@pytest.mark.exercise("train_one_epoch", points=0.5)
@pytest.mark.exercise("fix_training", points=0.25)
def test_training_mode_is_switched_on(student, reference, probe):
    """A model that comes in evaluation mode trains like any other: with its dropout on."""
    look = "Who tells the model that it is being trained?"
    _expect_weights(student, reference, _fields(probe, training=False), look)


@pytest.mark.exercise("train_one_epoch", points=0.75)
@pytest.mark.exercise("fix_training", points=0.875)
def test_the_mean_is_over_images(student, reference, probe):
    """It gives the mean loss over all images, each before the step that it makes; a short batch counts for less."""
    look = "Over what is the mean: batches or images, and which loss belongs into it?"
    _expect_loss(student, reference, _fields(probe), look)


@pytest.mark.exercise("train_one_epoch", points=0.25)
@pytest.mark.exercise("fix_training", points=0.25)
def test_every_batch_is_used_once(student, reference, probe):
    """The model sees every batch once, to the end of the loader: batches of any size, those of one image too."""
    sizes = (1, *probe.sizes(2, high=6), 1)
    look = "Which batches are left out, or repeated?"
    notes = _expect_weights(student, reference, _fields(probe, sizes), look, "forwards")
    seen = [count for _, _, count in notes["forwards"]]
    if seen != list(sizes):
        sizes_seen, wanted = (", ".join(map(str, each)) for each in (seen, sizes))
        raise Failure(f"the model saw batches of {sizes_seen} images", wanted, look)


@pytest.mark.exercise("train_one_epoch", points=0.25)
@pytest.mark.exercise("fix_training", points=0.125)
def test_the_number_is_a_plain_float(student, reference, probe):
    """The right number comes back, as a plain float and not as a tensor that holds the graphs of the batches."""
    look = "Over what is the mean: batches or images, and which loss belongs into it?"
    expect_float(student, _expect_loss(student, reference, _fields(probe), look))


@pytest.mark.exercise("train_one_epoch", points=0.25)
@pytest.mark.exercise("fix_training", points=0.125)
def test_batches_go_to_the_device(student, reference, probe):
    """An epoch leaves the right weights, and images and labels go to the device of the model, wherever they lay."""
    fields = _fields(probe)
    look = "What is the argument `device` for?"
    _expect_weights(student, reference, fields, look)
    expect_on_the_device(student, Setting(fields["weights"], fields["batches"]), fields["learning_rate"])


@pytest.mark.exercise("train_one_epoch", points=0.25)
def test_one_batch_is_an_epoch_too(student, reference, probe):
    """With a single batch there is one step, and the loss is that of the images before it."""
    fields = _fields(probe, probe.sizes(1))
    look = "When is the loss noted, and of which model?"
    _expect_loss(student, reference, fields, look)
    _expect_weights(student, reference, fields, look)


@pytest.mark.exercise("train_one_epoch", points=0.25)
@pytest.mark.exercise("fix_training", points=0.125)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    _expect_loss(student, reference, _fields(probe), "Which loss, and which mean?")
    expect_example(student)
