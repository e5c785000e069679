"""What a recipe is: a data set, a model, a way to train it, and what somebody reached with it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vit_course.config import ViTConfig
from vit_course.data import ImageDataset
from vit_course.recipes.deviations import Deviation
from vit_course.training import TrainingSettings
from vit_course.training.mimetic import initialise_mimetically
from vit_course.training.whitening import initialise_whitened
from vit_course.vit import VisionTransformer

WHITENED_BY = 5_000  # images: 320,000 patches tell the covariance of 48 numbers


class RecipeError(ValueError):
    """A recipe cannot be run as asked; the message says why and what to do."""


@dataclass(frozen=True)
class Published:
    """What the author of a notebook reports.

    Attributes:
        accuracy: top-1, in [0, 1].
        of: the images that it was measured on, "test" or "validation".
        epochs: how many, or None where the notebook does not say.
        device: in words, or None.
        seconds: of training, or None.
    """

    accuracy: float
    of: str = "test"
    epochs: int | None = None
    device: str | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Recipe:
    """A named experiment that one command runs.

    Attributes:
        name: what `vit-course train` calls it.
        summary: one sentence.
        dataset: the name of a data set, for `vit_course.data.load_dataset`.
        config: the model; its image size, channels and classes follow the data when these are others.
        settings: the training. Seed, device and precision may be chosen anew for a run.
        num_validation: images kept back from training to choose the best epoch by.
        hardware: what it is meant for, in words, for instance "2 CPU cores".
        seeds: those that its figures are quoted over.
        published: what the notebook reports that this recipe repeats or mends; None for a recipe of ours.
        deviations: deviations of that notebook that this recipe repeats.
        mimetic: whether attention starts as in trained models, see `vit_course.training.mimetic`.
        whitened: whether the embedding starts as a whitening of the patches, see `vit_course.training.whitening`.
        differences: where a repetition departs from the notebook, and why; a sentence each.
    """

    name: str
    summary: str
    dataset: str
    config: ViTConfig
    settings: TrainingSettings
    num_validation: int
    hardware: str
    seeds: tuple[int, ...] = (0, 1, 2)
    published: Published | None = None
    deviations: tuple[Deviation, ...] = ()
    mimetic: bool = False
    whitened: bool = False
    differences: tuple[str, ...] = ()

    def config_for(self, data: ImageDataset) -> ViTConfig:
        """The model's sizes with image size, channels and classes of these images.

        Raises:
            RecipeError: when the patches do not fit the images.
        """
        channels, height, width = data.images.shape[1:]
        try:
            return replace(self.config, image_size=(height, width), in_channels=channels, num_classes=len(data.classes))
        except ValueError as error:
            side = self.config.patch_size
            raise RecipeError(
                f"{self.name} cuts images into patches of {side} x {side} pixels, and the images of {data.name} are "
                f"{height} x {width}: {error}. Resize them (class folders: --image-size), or choose another recipe "
                "(vit-course recipes)"
            ) from None

    def build(self, config: ViTConfig, data: ImageDataset | None = None) -> VisionTransformer:
        """A model of these sizes with the recipe's slips, started from torch's global generator.

        Args:
            config: its sizes.
            data: whose patches the embedding whitens, where the recipe asks for that; None leaves it out.
        """
        model = VisionTransformer(config)
        if self.mimetic:
            initialise_mimetically(model)
        if self.whitened and data is not None:
            initialise_whitened(model, data.normalize(data.images[:WHITENED_BY]))
        for deviation in self.deviations:
            deviation.apply(model)
        return model
