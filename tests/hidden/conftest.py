"""``pytest tests/hidden`` asks every graded check of the reference, and of a homework with ``--submission FILE``."""

from exercise_kit.pytest_plugin.plugin import (  # noqa: F401  # pytest finds them by their names here
    pytest_addoption,
    pytest_collect_file,
    pytest_configure,
    pytest_pycollect_makemodule,
    pytest_terminal_summary,
)
