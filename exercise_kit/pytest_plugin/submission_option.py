"""The option ``--submission`` of ``pytest tests/hidden``: a plugin that pytest finds by the package's entry point.

For an option that pytest does not know yet, it takes the value for a folder to collect from, and imports the
``conftest.py`` of every such folder: here a student's. So this plugin is loaded before any ``conftest.py`` is read. It
takes part in every run of pytest wherever this package is installed, and so its option has a name that no other project
is likely to use.
"""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Of whom the hidden checks are asked."""
    group = parser.getgroup("vit_course", "hidden checks of vit_course")
    group.addoption("--submission", help="a notebook or .py file to evaluate; without it the reference is evaluated")


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark of a teacher's own functions."""
    words = "the exercise that a graded check belongs to, and what it is worth"
    config.addinivalue_line("markers", f"exercise(name, points): {words}")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Refuse to go on where pytest took its settings from beside the submission."""
    submission = early_config.known_args_namespace.submission
    settings = early_config.inipath
    if submission and settings and settings.parent in Path(submission).absolute().parents:
        raise pytest.UsageError(
            f"--submission: pytest took its settings from {settings}, which lies beside the submission, so the "
            "result of this run cannot be trusted; name the folder of the hidden checks first: "
            f"pytest tests/hidden --submission {submission}"
        )
