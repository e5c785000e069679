"""Where a course is: its repository and its site, from the one line of `pyproject.toml` where they stand."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from exercise_kit.authoring.lesson import AuthoringError, Lesson, Problem

_PROJECT = Path("pyproject.toml")
_COLAB = "https://colab.research.google.com/github"


@dataclass(frozen=True)
class Addresses:
    """Where a course is: the one line ``urls`` of its `pyproject.toml`.

    Args:
        repository: without a slash at its end.
        site: with a slash at its end; "" where the course has none.
    """

    repository: str
    site: str = ""

    def make_colab_address(self, path: str) -> str:
        """The address that opens a notebook of the repository on Colab."""
        return f"{_COLAB}/{'/'.join(self.repository.split('/')[-2:])}/blob/main/{path}"


def read_addresses(root: Path) -> Addresses:
    """Read the addresses of the course in a clone.

    Raises:
        AuthoringError: `pyproject.toml` is missing or does not name them.
    """
    try:
        settings = tomllib.loads((root / _PROJECT).read_text(encoding="utf-8"))
        urls = settings["project"]["urls"]
        site = str(urls.get("Homepage", "")).rstrip("/")
        return Addresses(str(urls["Repository"]).rstrip("/"), f"{site}/" if site else "")
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        message = "cannot read the repository's address; it stands in [project] as urls = { Repository = ... }"
        raise AuthoringError([Problem(_PROJECT, message)]) from error


def fill_in_site_address(lesson: Lesson, addresses: Addresses) -> Lesson:
    """A lesson whose links to the site, written as ``](/notes/lora.html)``, have its address."""
    cells = (replace(each, source=each.source.replace("](/", f"]({addresses.site}")) for each in lesson.cells)
    return replace(lesson, cells=tuple(cells))
