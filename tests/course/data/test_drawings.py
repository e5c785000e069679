from __future__ import annotations

import pytest
import torch

from vit_course.data.bundled import SHAPES

AREAS = {  # by hand, in units of the radius squared
    "disc": 2.545,
    "ring": 1.810,
    "square": 2.25,
    "triangle": 1.299,
    "cross": 1.814,
    "star": 1.234,
    "crescent": 1.449,
    "bar": 1.04,
    "arrow": 1.225,
    "heart": 2.519,
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_covers_its_area(name: str) -> None:
    ticks = torch.linspace(-1.4985, 1.4985, 300)  # off the outlines
    distance = SHAPES[name](ticks.expand(300, -1), ticks[:, None].expand(-1, 300))
    area = (distance < 0).float().mean().item() * 3.0**2
    assert distance.isfinite().all()
    assert area == pytest.approx(AREAS[name], abs=0.03)  # an outline crosses a few hundred cells of 1e-4
