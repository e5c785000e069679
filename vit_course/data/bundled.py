"""Data that need no download: real handwriting, two photographs to look at, and 32x32 drawings of ten plain shapes.

Each drawing holds one shape at a random place, size and angle, in one color on a shaded ground of another, under a
little noise. A shape is a signed distance: negative inside, zero on the outline, positive outside. Signed distances
make outlines smooth at any size and unite shapes by a minimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_course.data.image_dataset import ImageDataset

CHUNK = 512  # pictures drawn at once: the working set stays below a hundred megabytes

Distance = Callable[[Tensor, Tensor], Tensor]


def draw_shapes(labels: Tensor, generator: torch.Generator, image_size: int = 32) -> Tensor:
    """Draw one picture for each label.

    Args:
        labels: (batch,) int64, indices into `SHAPES`.
        generator: where all randomness comes from; the same state gives the same pictures.
        image_size: height and width in pixels.

    Returns:
        (batch, 3, image_size, image_size) uint8.
    """
    chunks = [_draw_some_shapes(chunk, generator, image_size) for chunk in labels.split(CHUNK)]
    return torch.cat(chunks)


def _draw_some_shapes(labels: Tensor, generator: torch.Generator, image_size: int) -> Tensor:
    """Draw (batch,) labels as (batch, 3, image_size, image_size) uint8."""
    batch = len(labels)

    def draw_uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(batch, *shape, 1, 1, generator=generator)

    half = image_size / 2
    radius = draw_uniform(0.5, 0.85) * half  # (batch, 1, 1), pixels
    angle = draw_uniform(-0.7, 0.7)
    room = half - 0.9 * radius
    across, down = draw_uniform(-1, 1) * room, draw_uniform(-1, 1) * room
    ticks = torch.arange(image_size) + 0.5 - half
    x, y = ticks - across, ticks[:, None] - down  # (batch, 1, width), (batch, height, 1)
    cosine, sine = torch.cos(angle) / radius, torch.sin(angle) / radius
    distance = _measure_distance_to_shape(x * cosine + y * sine, y * cosine - x * sine, labels)
    coverage = (0.5 - distance * radius).clamp(0, 1)[:, None]  # share of each pixel that the shape covers

    ground, ink = draw_uniform(0, 0.4, 3), draw_uniform(0.55, 1, 3)  # (batch, 3, 1, 1)
    slope_x, slope_y = draw_uniform(-0.2, 0.2, 1), draw_uniform(-0.2, 0.2, 1)
    shade = (ticks * slope_x + ticks[:, None] * slope_y) / half  # (batch, 1, height, width)
    noise = torch.randn(batch, 3, image_size, image_size, generator=generator) * draw_uniform(0, 0.1, 1)
    picture = torch.lerp(ground + shade, ink, coverage) + noise
    return (picture.clamp(0, 1) * 255).round().to(torch.uint8)


def _measure_distance_to_shape(x: Tensor, y: Tensor, labels: Tensor) -> Tensor:
    """Signed distance of every pixel to its picture's shape; coordinates and result (batch, height, width)."""
    x, y = torch.broadcast_tensors(x, y)
    distance = torch.empty(x.shape)
    for label, shape in enumerate(SHAPES.values()):
        chosen = (labels == label).nonzero().squeeze(1)
        distance[chosen] = shape(x[chosen], y[chosen])
    return distance


def _measure_distance_to_disc(x: Tensor, y: Tensor, radius: float = 0.9) -> Tensor:
    return torch.hypot(x, y) - radius


def _measure_distance_to_ring(x: Tensor, y: Tensor) -> Tensor:
    return (torch.hypot(x, y) - 0.72).abs() - 0.2


def _measure_distance_to_crescent(x: Tensor, y: Tensor) -> Tensor:
    return torch.maximum(_measure_distance_to_disc(x, y, 0.95), -_measure_distance_to_disc(x - 0.45, y, 0.72))


def _measure_distance_to_heart(x: Tensor, y: Tensor) -> Tensor:
    y = y - 0.15
    lobes = torch.minimum(
        _measure_distance_to_disc(x - 0.42, y + 0.42, 0.594), _measure_distance_to_disc(x + 0.42, y + 0.42, 0.594)
    )
    return torch.minimum(lobes, (x.abs() + y.abs() - 0.84) / math.sqrt(2))


def _make_distance_to_polygon(*corners: tuple[float, float]) -> Distance:
    """Signed distance to the polygon with these corners, in order."""

    def measure_distance_to_polygon(x: Tensor, y: Tensor) -> Tensor:
        squared = torch.full_like(x, torch.inf)
        inside = torch.zeros_like(x, dtype=torch.bool)
        for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True):
            edge_x, edge_y, dx, dy = x1 - x0, y1 - y0, x - x0, y - y0
            along = ((dx * edge_x + dy * edge_y) / (edge_x**2 + edge_y**2)).clamp(0, 1)
            squared = torch.minimum(squared, (dx - along * edge_x).square() + (dy - along * edge_y).square())
            if edge_y:  # a ray to the right crosses this edge: even crossings are outside, odd ones inside
                crosses = ((y < y0) != (y < y1)) & (dx < dy * (edge_x / edge_y))
                inside ^= crosses
        return torch.where(inside, -1.0, 1.0) * squared.sqrt()

    return measure_distance_to_polygon


def _make_star_corners(points: int, inner: float) -> list[tuple[float, float]]:
    """Corners of a star; inner is the radius of its notches, 1 that of its points."""
    angles = [math.pi * corner / points for corner in range(2 * points)]
    radii = [1.0, inner] * points
    return [(radius * math.sin(a), -radius * math.cos(a)) for radius, a in zip(radii, angles, strict=True)]


def _add_mirrored_corners(*right: tuple[float, float]) -> list[tuple[float, float]]:
    """The corners of a right half, top to bottom, and those of its mirror image on the left."""
    return [*right, *((-x, y) for x, y in reversed(right) if x)]


SHAPES: dict[str, Distance] = {
    "disc": _measure_distance_to_disc,
    "ring": _measure_distance_to_ring,
    "square": _make_distance_to_polygon(*_add_mirrored_corners((0.75, -0.75), (0.75, 0.75))),
    "triangle": _make_distance_to_polygon((0, -1), (0.866, 0.5), (-0.866, 0.5)),
    "cross": _make_distance_to_polygon(
        *_add_mirrored_corners((0.28, -0.95), (0.28, -0.28), (0.95, -0.28), (0.95, 0.28), (0.28, 0.28), (0.28, 0.95))
    ),
    "star": _make_distance_to_polygon(*_make_star_corners(5, 0.42)),
    "crescent": _measure_distance_to_crescent,
    "bar": _make_distance_to_polygon(*_add_mirrored_corners((0.26, -1), (0.26, 1))),
    "arrow": _make_distance_to_polygon(*_add_mirrored_corners((0, -1), (0.75, -0.1), (0.25, -0.1), (0.25, 1))),
    "heart": _measure_distance_to_heart,
}


def shapes(num_images: int = 10_000, seed: int = 0, image_size: int = 32) -> ImageDataset:
    """Our own drawings of ten shapes: (num_images, 3, image_size, image_size), equally many of each.

    The same seed draws the same pictures; see `vit_course.data.bundled`.
    """
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(num_images) % len(SHAPES)
    labels = labels[torch.randperm(num_images, generator=generator)]
    return ImageDataset(draw_shapes(labels, generator, image_size), labels, tuple(SHAPES), "shapes")


def digits() -> ImageDataset:
    """scikit-learn's 1,797 handwritten digits: (1797, 1, 8, 8), the 17 gray levels spread over 0 to 255.

    Source: Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI repository, 1998.

    Raises:
        ImportError: naming the extra to install when scikit-learn is missing.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError(
            'the digits come with scikit-learn, which is missing: pip install "vit-course[train]"'
        ) from error
    pixels, labels = load_digits(return_X_y=True)
    images = (torch.from_numpy(pixels) * (255 / 16)).round().to(torch.uint8).view(-1, 1, 8, 8)
    return ImageDataset(images, torch.from_numpy(labels).long(), tuple("0123456789"), "digits")


def cat() -> Tensor:
    """Chelsea, a cat: (3, 128, 128) uint8, a square of the photograph, made smaller.

    Taken by Stéfan van der Walt, who has waived all rights (CC0); from scikit-image, `skimage.data.chelsea`.
    """
    from matplotlib.image import imread

    pixels = torch.from_numpy(imread(Path(__file__).with_name("cat.png"))[:, :, :3].copy())  # (height, width, channels)
    return (255 * pixels).round().to(torch.uint8).permute(2, 0, 1).contiguous()


def cats(classes: Sequence[str], count: int = 200) -> ImageDataset:
    """Cut-outs of `cat`, where there are no other photos: each of another place and size, every second one mirrored.

    Args:
        classes: of a model that has "cat" among them.
        count: how many.

    Raises:
        ValueError: no class is called "cat".
    """
    whole, generator = cat().float(), torch.Generator().manual_seed(0)
    images = []
    for number in range(count):
        side = int(torch.randint(96, 129, (), generator=generator))
        top, left = (int(torch.randint(129 - side, (), generator=generator)) for _ in range(2))
        cut = F.interpolate(whole[None, :, top : top + side, left : left + side], size=(32, 32), mode="area")
        images.append(cut.flip(3) if number % 2 else cut)
    labels = torch.full((count,), list(classes).index("cat"))
    return ImageDataset(torch.cat(images).round().to(torch.uint8), labels, tuple(classes), "cut-outs of a cat")


def photo() -> Tensor:
    """A photograph of Grace Hopper in uniform, about 1984: (3, 600, 512) uint8.

    Taken by James S. Davis for the US Navy, public domain, shipped with matplotlib. Among ImageNet's
    classes it is a "military uniform".
    """
    from matplotlib.cbook import get_sample_data
    from matplotlib.image import imread

    pixels = imread(get_sample_data("grace_hopper.jpg", asfileobj=False))  # (height, width, channels)
    return torch.from_numpy(pixels.copy()).permute(2, 0, 1).contiguous()
