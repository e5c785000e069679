"""The exam of a trained model: how many held-out images it is right on, measured once and told to every check.

The images are CIFAR-10's test images, of which the class's secret draws the same for everybody. Nothing is ever
downloaded for it: where they are not, nothing is decided.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from exercise_kit.engine.course import HandedIn, NotMeasured
from vit_course.data.image_dataset import ImageDataset
from vit_course.data.sources import data_folder
from vit_course.exercises.weights_file import Refused, read_weights
from vit_course.exercises.weights_model import SavedModel, saved_model
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
    """What came of an exam: ``right`` answers to ``count`` images."""

    right: int
    count: int

    @property
    def share(self) -> float:
        """The accuracy, from 0 to 1."""
        return self.right / self.count

    def __str__(self) -> str:
        """As "72.3 % of 1000 held-out images (± 1.4 %)": one standard deviation, as other images would give it."""
        spread = math.sqrt(self.share * (1 - self.share) / self.count)
        return f"{self.share:.1%} of {self.count} held-out images (± {spread:.1%})".replace("%", " %")


def _no_images(advice: str) -> NotMeasured:
    return NotMeasured("the grader has no images of CIFAR-10 to measure it with; your instructor is told", advice)


class Exam:
    """Measures models; the same file is measured once.

    Args:
        images: gives the labelled images, drawn in an order in which the first ones are as good as any; NoImages
            where there are none.
        stamp: what changes when there are others.
    """

    def __init__(self, images: Callable[[], ImageDataset], stamp: Callable[[], object] = lambda: None) -> None:
        self._images = images
        self._stamp = stamp
        self._stamped: object = None
        self._held: ImageDataset | None = None
        self._known: dict[bytes, Measured | Refused] = {}

    def _held_out(self) -> ImageDataset:
        if self._held is None:
            self._held = self._images()
        return self._held

    def measure(self, handed_in: HandedIn) -> Measured:
        """The accuracy of the model in a weights file.

        Raises:
            Refused: it cannot be used.
            NotMeasured: there is nothing to measure with.
        """
        content, beside = handed_in
        if (stamp := self._stamp()) != self._stamped:
            self._stamped, self._held, self._known = stamp, None, {}
        digest = hashlib.sha256(content if isinstance(content, bytes) else b"").digest() + (beside or b"")
        if digest not in self._known:
            try:
                model = saved_model(read_weights(content, beside))
                found: Measured | Refused = _accuracy(model, self._held_out())
            except Refused as reason:
                found = reason
            self._known = {digest: found}  # of the last alone, for all checks of one file come after each other
        known = self._known[digest]
        if isinstance(known, Refused):
            raise known.with_traceback(None)
        return known


def exam_of_class(secret: bytes) -> Exam:
    """The exam of all who are graded with this secret."""

    def images() -> ImageDataset:
        test = _test_images(data_folder())
        seed = int.from_bytes(hmac.new(secret, b"held-out images", hashlib.sha256).digest()[:7], "big")
        order = torch.randperm(len(test), generator=torch.Generator().manual_seed(seed))
        return test.subset(order[:MOST_IMAGES])

    return Exam(images, stamp_of_images)


def stamp_of_images() -> tuple[object, ...]:
    """What changes when test images come, go, or are replaced."""
    folder = data_folder()
    paths = [folder / f"{NAME}.npz", folder / "cifar-10-batches-py" / "test_batch", folder / NAME]
    facts = ((path.name, path.stat()) for path in paths if path.exists())
    return tuple((name, fact.st_size, fact.st_mtime_ns) for name, fact in facts)


def _test_images(folder: Path) -> ImageDataset:
    from vit_course.data.folder import is_class_folder
    from vit_course.data.npz import load_npz
    from vit_course.data.sources import load_dataset
    from vit_course.data.torchvision_sets import is_complete

    try:
        if (folder / f"{NAME}.npz").is_file():
            test = load_npz(folder / f"{NAME}.npz", "test")
        elif is_complete(NAME, folder) or is_class_folder(folder / NAME):
            test = load_dataset(NAME, folder)[1]
        else:
            raise _no_images(
                f"there are no test images of CIFAR-10 in {folder}, and none are fetched while grading; "
                "name the folder that has them in VIT_COURSE_DATA, and grade again"
            )
    except (ValueError, OSError) as error:
        raise _no_images(f"the test images of CIFAR-10 cannot be read: {error}") from None
    if tuple(test.images.shape[1:]) != (3, 32, 32) or len(test.classes) != 10:
        raise _no_images(f"the images in {folder} are none of CIFAR-10: {test!r}")
    return test


@torch.inference_mode()
def _accuracy(model: SavedModel, images: ImageDataset) -> Measured:
    """How many of the first images the reference is right on with these weights: as many as can be afforded."""
    config = model.config
    count = round(min(MOST_IMAGES, max(LEAST_IMAGES, OPERATIONS / operations_of(config))))
    asked = images.subset(slice(0, count))
    with torch.device("meta"):
        reference = VisionTransformer(config)
    reference.load_state_dict(dict(model.weights), assign=True)
    reference.eval()
    scores = config.num_heads * config.num_tokens
    batch = max(1, _NUMBERS // (config.num_tokens * max(config.hidden_dim, 3 * config.embed_dim, scores)))
    mean, std = (torch.tensor(each).reshape(-1, 1, 1) for each in (model.mean, model.std))
    right = 0
    for pixels, labels in zip(asked.images.split(batch), asked.labels.split(batch), strict=True):
        logits: Tensor = reference((pixels / 255 - mean) / std)
        if not logits.isfinite().all():
            look = "Do its weights grow without bounds?"
            raise Refused("finite", "its model gives logits that are not finite", "finite numbers", look)
        right += int((logits.argmax(dim=1) == labels).sum())
    return Measured(right, len(asked))
