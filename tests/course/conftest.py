"""What the tests of the reference share."""

import pytest
import torch


@pytest.fixture
def seed_torch() -> None:
    """torch draws the same in every test."""
    torch.manual_seed(0)
