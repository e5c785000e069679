"""Class folders, one folder of image files for each class as torchvision's ImageFolder takes them: found, and loaded.

`DIR/train/<class>/*.png` and `DIR/test/<class>/*.png` ("val" will do for "test"); or `DIR/<class>/*.png`, from which a
fifth is held back to test on. Images too large or too many for memory are read, cropped and changed while a model
learns.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from vit_course.data.augmentation import Augmentation, augment, mix, use_as_global_generator
from vit_course.data.decoding import fit_to_square, read_image, read_images
from vit_course.data.image_dataset import (
    Channels,
    DatasetError,
    ImageDataset,
    MissingDatasetError,
    channel_statistics,
    make_generator,
)

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".gif", ".ppm", ".pgm", ".tif", ".tiff")
TEST_NAMES = ("test", "val", "valid", "validation")


@dataclass(frozen=True)
class Files:
    """The image files of a split, and the class of each, as an index into the names of the classes."""

    paths: tuple[Path, ...]
    labels: tuple[int, ...]


@dataclass(frozen=True)
class ClassFolder:
    """What lies where: nothing but names has been read."""

    name: str
    classes: tuple[str, ...]
    train: Files
    test: Files


def load_folder(root: Path | str, image_size: int | None = None) -> tuple[ImageDataset, ImageDataset]:
    """Read class folders of small images whole: the training and the test images.

    The images have one channel when all of them are gray, otherwise three: gray ones among colored ones get
    three equal channels. What is transparent becomes white, and photographs are turned upright.

    Args:
        root: see above.
        image_size: side in pixels: the shorter side of each image is scaled to it and the middle cut out. None
            takes images as they are.

    Raises:
        MissingDatasetError: when there are no class folders.
        DatasetError: for splits without class folders, a class without images or in one split only, files that
            cannot be read, images of different sizes, or ones larger than 64 pixels.
    """
    found = find_images(root)
    images = read_images(found.train.paths + found.test.paths, image_size)
    labels = torch.tensor(found.train.labels + found.test.labels)
    count = len(found.train.paths)
    train = ImageDataset(images[:count], labels[:count], found.classes, found.name)
    return train, ImageDataset(images[count:], labels[count:], found.classes, found.name, train.mean, train.std)


def is_class_folder(path: Path | str) -> bool:
    """Say whether there are folders with image files in them in `path`, or in `path`/train."""
    path = Path(path)
    return any(
        _list_images(folder, deep=False) for parent in (path / "train", path) for folder in _list_subfolders(parent)
    )


def find_images(root: Path | str) -> ClassFolder:
    """List class folders; raises as `load_folder` does for what names alone tell."""
    root = Path(root).expanduser()
    if not is_class_folder(root):
        raise MissingDatasetError(
            f"There are no class folders in {root}: expected image files in {root.name}/train/<class>/ and "
            f"{root.name}/test/<class>/, or in {root.name}/<class>/."
        )
    if not (root / "train").is_dir():
        return _hold_back_test_images(root)
    test = next((root / name for name in TEST_NAMES if (root / name).is_dir()), None)
    if test is None:
        raise DatasetError(f"{root} holds train/, but no test/ (or {'/, '.join(TEST_NAMES[1:])}/) beside it")
    classes, test_classes = _list_classes(root / "train"), _list_classes(test)
    if not classes and not test_classes:
        raise DatasetError(
            f"{root}: train/ and {test.name}/ hold no class folders: expected image files in "
            f"{root.name}/train/<class>/ and {root.name}/{test.name}/<class>/"
        )
    if classes != test_classes:
        only_train, only_test = set(classes) - set(test_classes), set(test_classes) - set(classes)
        raise DatasetError(
            f"{root}: train/ and {test.name}/ must hold the same classes, but only train/ has "
            f"{_join_some_names(only_train)}, and only {test.name}/ has {_join_some_names(only_test)}"
        )
    return ClassFolder(
        root.name, classes, _list_labeled_files(root / "train", classes), _list_labeled_files(test, classes)
    )


def _hold_back_test_images(root: Path) -> ClassFolder:
    """Class folders without train and test: a fifth of the images is drawn to test on."""
    from vit_course.data.splits import split_indices

    classes = _list_classes(root)
    files = _list_labeled_files(root, classes)
    if len(files.paths) < 5:
        raise DatasetError(f"{root} holds {len(files.paths)} images: too few to hold a fifth back to test on")
    parts = split_indices(len(files.paths), len(files.paths) // 5, seed=0)
    print(f"{root} has no train/ and test/: a fifth of its images, always the same, is held back to test on.")
    train, test = (
        Files(tuple(files.paths[i] for i in part), tuple(files.labels[i] for i in part))
        for part in (sorted(indices.tolist()) for indices in parts)
    )
    return ClassFolder(root.name, classes, train, test)


def _list_subfolders(path: Path) -> list[Path]:
    """Folders, sorted by name, without hidden ones such as Jupyter's checkpoints or __MACOSX."""
    if not path.is_dir():
        return []
    return sorted(each for each in path.iterdir() if each.is_dir() and not each.name.startswith((".", "__")))


def _list_images(folder: Path, deep: bool = True) -> list[Path]:
    found = folder.rglob("*") if deep else folder.glob("*")
    return sorted(path for path in found if path.suffix.lower() in SUFFIXES and path.name[0] != "." and path.is_file())


def _list_classes(split: Path) -> tuple[str, ...]:
    return tuple(folder.name for folder in _list_subfolders(split))


def _list_labeled_files(split: Path, classes: tuple[str, ...]) -> Files:
    by_class = [_list_images(split / name) for name in classes]
    empty = [name for name, paths in zip(classes, by_class, strict=True) if not paths]
    if empty:
        raise DatasetError(
            f"{split}: there is no image in {_join_some_names(set(empty))}; put some in ({', '.join(SUFFIXES[:3])}, …) "
            "or delete the folder"
        )
    labels = [label for label, paths in enumerate(by_class) for _ in paths]
    return Files(tuple(path for paths in by_class for path in paths), tuple(labels))


def _join_some_names(names: set[str]) -> str:
    first = sorted(names)[:3]
    return (", ".join(first) + (f" and {len(names) - 3} more" if len(names) > 3 else "")) or "none"


STATISTICS_FROM = 500  # images, spread over the training set

Ticket = tuple[int, int]  # the pass, and the number of the image


@dataclass(frozen=True)
class FolderImages(Dataset[tuple[Tensor, int]]):
    """Image files as a torch Dataset: (image (3, image_size, image_size) uint8, label).

    Attributes:
        files: which images.
        image_size: side in pixels.
        augmentation: what happens to each image after the crop.
        min_crop: least share of the area that a random crop keeps; 1 takes the middle square instead.
        seed: of crops and changes, which follow from it, the pass and the image's number alone.
    """

    files: Files
    image_size: int
    augmentation: Augmentation
    min_crop: float = 1.0
    seed: int = 0

    def __len__(self) -> int:
        return len(self.files.paths)

    def __getitem__(self, ticket: int | Ticket) -> tuple[Tensor, int]:
        epoch, index = ticket if isinstance(ticket, tuple) else (0, ticket)
        image = read_image(self.files.paths[index]).expand(3, -1, -1)
        generator = make_generator(self.seed, epoch, index)
        image = self._crop_randomly(image, generator)
        return augment(image[None], self.augmentation, generator)[0], self.files.labels[index]

    def collate_samples(self, samples: list[tuple[Tensor, int]]) -> tuple[Tensor, Tensor]:
        """Images (batch, 3, image_size, image_size) uint8 and labels (batch,) int64; an empty share is a batch too."""
        images = torch.empty(len(samples), 3, self.image_size, self.image_size, dtype=torch.uint8)
        for place, (image, _) in zip(images, samples, strict=True):
            place.copy_(image)
        return images, torch.tensor([label for _, label in samples], dtype=torch.int64)

    def _crop_randomly(self, image: Tensor, generator: torch.Generator) -> Tensor:
        from torchvision.transforms import v2

        if self.min_crop == 1:
            return fit_to_square(image, self.image_size)
        with use_as_global_generator(generator):
            cropped: Tensor = v2.RandomResizedCrop(self.image_size, scale=(self.min_crop, 1.0), antialias=True)(image)
        return cropped


class FolderBatches:
    """`FolderImages` in batches, again and again, with the protocol of `Batches`.

    With several processes each reads its share only; blending then stays inside a share.

    Attributes:
        images: the Dataset.
        name, classes, mean, std: as those of an `ImageDataset`.
        epoch: number of the next pass, from 0; counts up by itself, and may be set.
    """

    def __init__(
        self,
        images: FolderImages,
        name: str,
        classes: tuple[str, ...],
        statistics: tuple[Channels, Channels],
        batch_size: int,
        *,
        shuffle: bool = False,
        device: torch.device | str = "cpu",
        num_workers: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self.images, self.name, self.classes = images, name, classes
        self.mean, self.std = statistics
        self.batch_size, self.shuffle, self.device, self.num_workers = batch_size, shuffle, device, num_workers
        self.rank, self.world_size = rank, world_size
        self.epoch = 0

    def __len__(self) -> int:
        return math.ceil(len(self.images) / self.batch_size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        epoch, self.epoch = self.epoch, self.epoch + 1
        return self._iterate_once(epoch)

    def choices(self, generator: torch.Generator) -> Iterator[tuple[Tensor, ...]]:
        """The batches of the next pass as they are: images are read and changed elsewhere, and draw by themselves."""
        del generator
        return iter(self)

    def prepare(self, generator: torch.Generator, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        """What `Batches.prepare` does is done."""
        del generator
        images, labels = inputs
        return images, labels

    def to(self, device: torch.device | str) -> FolderBatches:
        """The same batches, from the next pass on, for another device."""
        moved = copy.copy(self)
        moved.device = device
        return moved

    def _iterate_once(self, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        generator = make_generator(self.images.seed, epoch)
        count = len(self.images)
        order = torch.randperm(count, generator=generator) if self.shuffle else torch.arange(count)
        shares = [chosen[self.rank :: self.world_size] for chosen in order.split(self.batch_size)]
        tickets = [[(epoch, index) for index in share.tolist()] for share in shares]
        mean, std = torch.tensor([self.mean, self.std], device=self.device)[..., None, None]
        pinned = torch.device(self.device).type == "cuda"
        loader = DataLoader(
            self.images,
            batch_sampler=tickets,
            num_workers=self.num_workers,
            pin_memory=pinned,
            collate_fn=self.images.collate_samples,
        )
        for pixels, labels in loader:
            images = pixels.to(self.device, non_blocking=True) / 255
            images, labels = images.sub_(mean).div_(std), labels.to(self.device, non_blocking=True)
            if self.images.augmentation.mixes:
                images, labels = mix(images, labels, len(self.classes), self.images.augmentation, generator)
            yield images, labels


def folder_batches(
    root: Path | str,
    image_size: int,
    batch_size: int,
    augmentation: Augmentation | None = None,
    *,
    min_crop: float = 0.35,
    seed: int = 0,
    device: torch.device | str = "cpu",
    num_workers: int = 0,
    rank: int = 0,
    world_size: int = 1,
) -> tuple[FolderBatches, FolderBatches]:
    """Training and test batches from class folders, for images of any size.

    Training images are cropped at random (Inception's crop, torchvision's RandomResizedCrop) and augmented, each
    by itself; test images are scaled and their middle is cut out. Gray images get three equal channels.

    Args:
        root: class folders, as `vit_course.data.folder` describes them.
        image_size: side in pixels of what the model sees.
        batch_size: of all processes together.
        augmentation: of the training images; None for nothing but the crop.
        min_crop: least share of the area that a random crop keeps; 1 for no random crop.
        seed: of the order, the crops and the augmentation.
        device: where the batches go; `fit` sends them to that of its settings.
        num_workers: processes that read files beside this one.
        rank, world_size: which of how many training processes this is.

    Raises:
        DatasetError: as `load_folder` does, but for sizes; a broken file is found when its turn comes.
        ValueError: for a size below 1, or min_crop outside (0, 1].
    """
    if min(image_size, batch_size) < 1 or not 0 < min_crop <= 1:
        raise ValueError(
            "image_size and batch_size must be at least 1, and min_crop above 0 and at most 1, "
            f"not {image_size}, {batch_size} and {min_crop}"
        )
    found = find_images(root)
    plain = FolderImages(found.train, image_size, Augmentation())
    step = math.ceil(len(plain) / STATISTICS_FROM)
    statistics = channel_statistics(torch.stack([plain[index][0] for index in range(0, len(plain), step)]))
    changed = replace(plain, augmentation=augmentation or Augmentation(), min_crop=min_crop, seed=seed)
    batches = partial(
        FolderBatches,
        name=found.name,
        classes=found.classes,
        statistics=statistics,
        batch_size=batch_size,
        device=device,
        num_workers=num_workers,
        rank=rank,
        world_size=world_size,
    )
    return batches(changed, shuffle=True), batches(replace(plain, files=found.test), shuffle=False)
