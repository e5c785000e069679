"""How accurate a handed-in model is: measured once on held-out images, and given to every check.

The images are CIFAR-10's test images; the class's secret draws the same ones for everybody. Nothing is ever downloaded
for it: where the images are missing, nothing is decided. The hidden checks themselves can be tested without a data set:
then a made-up model, the reference of the exercise, labels the images, so that it alone is right on all of them.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from exercise_kit.engine.course import FileBytes, NotMeasured
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.config import ViTConfig
from vit_course.data.image_dataset import ImageDataset
from vit_course.data.sources import data_folder
from vit_course.exercises.l07_experiments.vit_cifar.claims import (
    BY_CHANCE,
    call_and_note_refusal,
    call_and_read_file,
    describe_model,
)
from vit_course.exercises.l07_experiments.weights_file import (
    CLASSES,
    Refused,
    SavedModel,
    check_and_make_model,
    list_state_shapes,
    make_weights_file,
    read_weights,
)
from vit_course.metrics import operations_of
from vit_course.vit import VisionTransformer

NAME = "cifar10"
MOST_IMAGES, LEAST_IMAGES = 1000, 250
# in all; about 7 seconds of one core
OPERATIONS = 2e11
# of the largest tensor of a batch, 32 MB
_NUMBERS = 8_000_000


@dataclass(frozen=True)
class Measured:
    """What was measured: ``right`` answers to ``count`` images."""

    right: int
    count: int

    @property
    def share(self) -> float:
        """The accuracy, from 0 to 1."""
        return self.right / self.count

    def __str__(self) -> str:
        """As "72.3 % of 1000 held-out images (± 2.8 %)": half a 95 % interval, as in the lesson."""
        half = 1.96 * math.sqrt(self.share * (1 - self.share) / self.count)
        return f"{self.share:.1%} of {self.count} held-out images (± {half:.1%})".replace("%", " %")


def _make_no_images_error(advice: str) -> NotMeasured:
    return NotMeasured("the grader has no images of CIFAR-10 to measure it with; your instructor is informed", advice)


class ModelAccuracy:
    """Measures models; the same file is measured once.

    Args:
        images: gives the labeled images, drawn in an order in which the first ones are as good as any; NoImages
            where there are none.
        fingerprint: of these images; another one when they change.
    """

    def __init__(self, images: Callable[[], ImageDataset], fingerprint: Callable[[], object] = lambda: None) -> None:
        self._images = images
        self._fingerprint = fingerprint
        self._last_fingerprint: object = None
        self._held: ImageDataset | None = None
        self._known: dict[bytes, Measured | Refused] = {}

    def _load_images_once(self) -> ImageDataset:
        if self._held is None:
            self._held = self._images()
        return self._held

    def measure(self, handed_in: FileBytes) -> Measured:
        """The accuracy of the model in a weights file.

        Raises:
            Refused: it cannot be used.
            NotMeasured: there is nothing to measure with.
        """
        content, beside = handed_in
        if (fingerprint := self._fingerprint()) != self._last_fingerprint:
            self._last_fingerprint, self._held, self._known = fingerprint, None, {}
        digest = hashlib.sha256(content if isinstance(content, bytes) else b"").digest() + (beside or b"")
        if digest not in self._known:
            try:
                model = check_and_make_model(read_weights(content, beside))
                found: Measured | Refused = _measure_accuracy(model, self._load_images_once())
            except Refused as reason:
                found = reason
            self._known = {digest: found}  # of the last alone, for all checks of one file come after each other
        known = self._known[digest]
        if isinstance(known, Refused):
            raise known.with_traceback(None)
        return known


def make_accuracy_for_secret(secret: bytes) -> ModelAccuracy:
    """The accuracy measure of all who are graded with this secret."""

    def load_held_out_images() -> ImageDataset:
        test = _load_test_images(data_folder())
        seed = int.from_bytes(hmac.new(secret, b"held-out images", hashlib.sha256).digest()[:7], "big")
        order = torch.randperm(len(test), generator=torch.Generator().manual_seed(seed))
        return test.subset(order[:MOST_IMAGES])

    return ModelAccuracy(load_held_out_images, read_fingerprint_of_images)


def read_fingerprint_of_images() -> tuple[object, ...]:
    """Return what changes when test images come, go, or are replaced."""
    folder = data_folder()
    paths = [folder / f"{NAME}.npz", folder / "cifar-10-batches-py" / "test_batch", folder / NAME]
    facts = ((path.name, path.stat()) for path in paths if path.exists())
    return tuple((name, fact.st_size, fact.st_mtime_ns) for name, fact in facts)


def _load_test_images(folder: Path) -> ImageDataset:
    from vit_course.data.folder import is_class_folder
    from vit_course.data.sources import load_dataset, load_npz
    from vit_course.data.torchvision_sets import is_complete

    try:
        if (folder / f"{NAME}.npz").is_file():
            test = load_npz(folder / f"{NAME}.npz", "test")
        elif is_complete(NAME, folder) or is_class_folder(folder / NAME):
            test = load_dataset(NAME, folder)[1]
        else:
            raise _make_no_images_error(
                f"there are no test images of CIFAR-10 in {folder}, and none are fetched while grading; "
                "name the folder that has them in VIT_COURSE_DATA, and grade again"
            )
    except (ValueError, OSError) as error:
        raise _make_no_images_error(f"the test images of CIFAR-10 cannot be read: {error}") from None
    if tuple(test.images.shape[1:]) != (3, 32, 32) or len(test.classes) != 10:
        raise _make_no_images_error(f"the images in {folder} are none of CIFAR-10: {test!r}")
    return test


@torch.inference_mode()
def _measure_accuracy(model: SavedModel, images: ImageDataset) -> Measured:
    """Return how many of the first images the reference is right on with these weights: as many as can be afforded."""
    config = model.config
    count = round(min(MOST_IMAGES, max(LEAST_IMAGES, OPERATIONS / operations_of(config))))
    sample = images.subset(slice(0, count))
    with torch.device("meta"):
        reference = VisionTransformer(config)
    reference.load_state_dict(dict(model.weights), assign=True)
    reference.eval()
    scores = config.num_heads * config.num_tokens
    batch = max(1, _NUMBERS // (config.num_tokens * max(config.hidden_dim, 3 * config.embed_dim, scores)))
    mean, std = (torch.tensor(each).reshape(-1, 1, 1) for each in (model.mean, model.std))
    right = 0
    for pixels, labels in zip(sample.images.split(batch), sample.labels.split(batch), strict=True):
        logits: Tensor = reference((pixels / 255 - mean) / std)
        if not logits.isfinite().all():
            look = "Do its weights grow without bounds?"
            raise Refused("finite", "its model gives logits that are not finite", "finite numbers", look)
        right += int((logits.argmax(dim=1) == labels).sum())
    return Measured(right, len(sample))


CONFIG = ViTConfig(patch_size=16, embed_dim=16, depth=1, num_heads=2)
_IMAGES = 300


def vit_cifar() -> FileBytes:
    """A weights file whose model labels the images of :func:`make_accuracy_for_probe`."""
    return make_weights_file(_make_model_of_ten_classes().state_dict(), describe_model(CONFIG)), None


def make_accuracy_for_probe(probe: Probe) -> ModelAccuracy:
    """Images drawn from ``probe``, all of which the reference is right on."""
    images = draw_colored_squares(probe, _IMAGES)
    return ModelAccuracy(lambda: label_by_reference(images))


@torch.no_grad()
def label_by_reference(images: Tensor) -> ImageDataset:
    """Images (num_images, 3, 32, 32) uint8 with the labels that the reference gives them."""
    labels: Tensor = _make_model_of_ten_classes()(_normalize(images)).argmax(dim=1)
    return ImageDataset(images, labels, tuple(f"class {number}" for number in range(CLASSES)), "made up")


def draw_colored_squares(probe: Probe, count: int) -> Tensor:
    """Images (count, 3, 32, 32) uint8 of four squares, each of one color."""
    colors = probe.integers(count, 3, 2, 2, high=256).to(torch.uint8)
    return colors.repeat_interleave(16, dim=2).repeat_interleave(16, dim=3)


def _normalize(images: Tensor) -> Tensor:
    return (images / 255 - 0.5) / 0.25


@cache
@torch.no_grad()
def _make_model_of_ten_classes() -> VisionTransformer:
    """A model to which ten images that differ much are the classes, and all others belong to the nearest of them."""
    probe = Probe("a made-up model of ten classes")
    weights = probe.weights(list_state_shapes(CONFIG))
    weights["class_token"] *= 0.1
    weights["positions"][:, :1] *= 0.1
    weights["patch_embedding.projection.weight"] *= 3
    model = VisionTransformer(CONFIG).eval()
    model.load_state_dict(weights)
    head, model.head = model.head, nn.Sequential()  # hands on what the head reads
    features = model(_normalize(draw_colored_squares(probe, 200)))  # (images, embed_dim)
    model.head = head
    chosen = [0]
    while len(chosen) < CLASSES:
        chosen.append(int(torch.cdist(features, features[chosen]).amin(dim=1).argmax()))
    weights["head.weight"] = features[chosen]
    weights["head.bias"] = -features[chosen].square().sum(dim=1) / 2
    model.load_state_dict(weights)
    return model


# of ten classes; whoever knows nothing is right on a tenth
_CHANCE = 0.2


class Results:
    """What a student handed in, and the measure of its accuracy.

    Args:
        student: gives the file when called.
        accuracy: measures the model in it.
    """

    def __init__(self, student: Student, accuracy: ModelAccuracy) -> None:
        self._student = student
        self._accuracy_measure = accuracy

    def measure_accuracy(self) -> Measured:
        """The accuracy of the model.

        Raises:
            Failure: the file cannot be used.
            Undecided: the grader has no images.
        """
        file = call_and_read_file(self._student)
        return call_and_note_refusal(self._student, lambda: self._accuracy_measure.measure(file))

    def expect_accuracy_at_least(self, percent: float) -> None:
        """Fail unless the model is right on so many percent of the held-out images."""
        measured = self.measure_accuracy()
        self._student.note(("measured", BY_CHANCE if measured.share < _CHANCE else str(measured)))
        if measured.share < percent / 100:
            look = "What changed the validation accuracy most in your experiments, and what have you not tried yet?"
            raise Failure(f"it is right on {measured}", f"at least {percent:g} %", look)
