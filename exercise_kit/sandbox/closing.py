"""What holds a process, and ends it at the end of a ``with``."""

from __future__ import annotations

from typing import Self


class Closing:
    """A context manager that is closed at the end."""

    def close(self) -> None:
        """End what it holds."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
