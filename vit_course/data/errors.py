"""What can be wrong with a data set."""

from __future__ import annotations


class DatasetError(ValueError):
    """A data set that cannot be used; the message says what is wrong, where, and what to do about it."""


class MissingDatasetError(DatasetError):
    """A data set that is not there and could not be fetched either."""
