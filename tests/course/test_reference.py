"""The grader's right answer to an exercise that has none in the package."""

import pytest
import torch

from vit_course.staff.references import normalize_images


def test_normalize_images_counts_the_standard_deviations_too():
    with pytest.raises(ValueError, match="3 channels, but there are 2 standard deviations"):
        normalize_images(torch.zeros(1, 3, 2, 2), [0.5] * 3, [0.5] * 2)
