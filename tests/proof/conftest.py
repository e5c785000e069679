"""What the proof by mutants shares."""

import pytest

from tests.conftest import SHARE


@pytest.fixture
def part(request: pytest.FixtureRequest) -> int | None:
    """Which part of the mutants is evaluated; None: every one."""
    return None if request.config.getoption("--all") else request.config.getoption("--part") % SHARE
