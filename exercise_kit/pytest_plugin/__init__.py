"""A plugin of pytest: every graded check as a test, by `pytest tests/hidden`."""
