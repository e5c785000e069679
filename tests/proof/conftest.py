"""What the proof by mutants shares."""

import pytest


@pytest.fixture
def everyone(request: pytest.FixtureRequest) -> bool:
    """Whether every mutant is evaluated, and not a sample."""
    return bool(request.config.getoption("--all"))
