"""Image files into tensors, and what to say of those that are broken or unlike the others."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from vit_course.data.image_dataset import DatasetError

if TYPE_CHECKING:
    from PIL import Image

SMALL = 64  # pixels along an axis: up to here all images of a set lie in memory at once
LITTLE = 8  # pixels along an axis: below, somebody's own picture is hardly one
GREY_MODES = ("L", "LA", "1")
DEEP_MODES = ("I", "F")  # Pillow's names for more than 8 bits a pixel begin like this


def read_images(paths: Sequence[Path], image_size: int | None = None) -> Tensor:
    """Decode small images of one size.

    Args:
        paths: at least one file.
        image_size: see `fit_to_square`; None takes images as they are.

    Returns:
        (num_images, channels, height, width) uint8; one channel when every image is gray, otherwise three.

    Raises:
        DatasetError: naming the files that are broken, of another size, or larger than `SMALL`.
    """
    if image_size is not None and not 0 < image_size <= SMALL:
        raise DatasetError(f"image size {image_size} is not between 1 and {SMALL}; {_OTHER_WAY}")
    images: list[Tensor] = []
    broken: list[DatasetError] = []
    for path in paths:
        try:
            image = read_image(path)
        except DatasetError as error:
            broken.append(error)
            continue
        image = image if image_size is None else fit_to_square(image, image_size)
        _check_image_size(path, image, images)
        images.append(image)
    if broken:
        more = f" (and {len(broken) - 1} more files)" if len(broken) > 1 else ""
        raise DatasetError(f"{broken[0]}{more}") from broken[0]
    channels = max(len(image) for image in images)
    return torch.stack([image.expand(channels, -1, -1) for image in images])


def read_image(path: Path) -> Tensor:
    """The first picture in a file, upright, and on white where it is transparent: (1 or 3, height, width) uint8.

    Raises:
        DatasetError: when the file cannot be read, or holds more than 8 bits a pixel and channel.
    """
    with _raise_dataset_errors(path):
        image = _open_upright_picture(path)
        if not image.mode.startswith(DEEP_MODES):
            return _read_pixels(image)
    raise DatasetError(f"{path} holds more than 8 bits a pixel (mode {image.mode}); save it with 8")


def own_picture(path: Path | str, otherwise: Tensor, largest: int = 512) -> Tensor:
    """The middle square of a picture that somebody has, in whatever kind of file: (3, side, side) uint8.

    As `read_image` takes it, but more than 8 bits a pixel will do: the brightest pixel becomes white.

    Args:
        path: of the file; empty for none.
        otherwise: (1 or 3, height, width) uint8: taken when there is no path, or no picture at its end, which a
            printed sentence says, as it does of a picture that is hardly a pixel wide.
        largest: the most pixels a side; a larger square is scaled down to it.
    """
    image, path = otherwise, os.path.expanduser(path)
    if path:
        try:
            with _raise_dataset_errors(Path(path)), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Pillow takes 100 megapixels for an attack
                image = _read_pixels(_convert_to_8_bits(_open_upright_picture(Path(path), largest)))
            if min(image.shape[1:]) < LITTLE:
                print(
                    f"{path} is {image.shape[1]} pixels high and {image.shape[2]} wide: there is little to see in it."
                )
        except DatasetError as error:
            print(f"{error}. Going on without it.")
    return fit_to_square(image.expand(3, -1, -1), min(largest, *image.shape[1:]))


def fit_to_square(image: Tensor, image_size: int) -> Tensor:
    """Scale the shorter side of (channels, height, width) uint8 to image_size, and cut the middle square out."""
    from torchvision.transforms.v2 import functional

    if image.shape[1:] == (image_size, image_size):
        return image
    return functional.center_crop(functional.resize(image, [image_size], antialias=True), [image_size])


@contextmanager
def _raise_dataset_errors(path: Path) -> Iterator[None]:
    """Whatever Pillow finds wrong in a file becomes a DatasetError."""
    from PIL import Image

    try:
        yield
    except FileNotFoundError as error:
        raise DatasetError(f"There is no file {path.absolute()}") from error
    except Image.DecompressionBombError as error:
        raise DatasetError(f"{path} is too large ({error}); save a smaller copy") from error
    except (OSError, ValueError, SyntaxError, EOFError, RuntimeError) as error:
        raise DatasetError(f"{path} cannot be read ({error}); save it as PNG or JPEG, or leave it out") from error


def _open_upright_picture(path: Path, least: int | None = None) -> Image.Image:
    """The first picture in a file, upright; a JPEG may come scaled down, but with no side below `least`."""
    from PIL import Image, ImageOps

    with Image.open(path) as file:
        if least is not None:
            file.draft(None, (least, least))
        return ImageOps.exif_transpose(file)


def _convert_to_8_bits(image: Image.Image) -> Image.Image:
    import numpy as np
    from PIL import Image

    if not image.mode.startswith(DEEP_MODES):
        return image
    values = np.nan_to_num(np.asarray(image, dtype=np.float32), posinf=0, neginf=0).clip(min=0)
    return Image.fromarray((values * (255 / max(values.max(), 1e-30))).astype(np.uint8))


def _read_pixels(image: Image.Image) -> Tensor:
    """(1 or 3, height, width) uint8."""
    import numpy as np
    from PIL import Image

    mode = "L" if image.mode in GREY_MODES else "RGB"
    if image.has_transparency_data:
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
    pixels = np.array(image.convert(mode))
    return torch.from_numpy(pixels).view(*pixels.shape[:2], -1).permute(2, 0, 1).contiguous()


_OTHER_WAY = "larger ones can be trained on in Python (vit_course.data.folder_batches)"


def _check_image_size(path: Path, image: Tensor, images: list[Tensor]) -> None:
    _, height, width = image.shape
    if max(height, width) > SMALL:
        raise DatasetError(
            f"{path} is {height}x{width}, larger than {SMALL}x{SMALL}: scale the images down by --image-size "
            f"{SMALL} or less (in Python: image_size); {_OTHER_WAY}"
        )
    if images and images[0].shape[1:] != image.shape[1:]:
        first_height, first_width = images[0].shape[1:]
        raise DatasetError(
            f"{path} is {height}x{width}, the images before it {first_height}x{first_width}: scale all of "
            "them to one size by --image-size (in Python: image_size)"
        )
