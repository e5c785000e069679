"""A small repository with one good lesson, for tests to break."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

ADDRESS = "https://github.com/someone/some_course"

GOOD = dedent('''\
    # %% [markdown]
    # # Doubling
    #
    # What a number does when it is doubled.

    # %%
    numbers = [1, 2, 3]

    # %% [markdown]
    # ![A dot, alone](../figures/dot.svg)

    # %% exercise="double"
    def double(number):
        """Twice the number."""
        ### BEGIN SOLUTION
        secret_factor = 2
        return secret_factor * number
        ### END SOLUTION

    # %% check="double" points=3
    check("double", double)

    # %% question="why-two" points=1.5
    # Why two?
    #
    # ### BEGIN SOLUTION
    # A pair has two.
    #
    # **Rubric.** 1.5 points for the pair.
    # ### END SOLUTION

    # %% tags=["experiment"]
    print([double(number) for number in numbers])
    ''')

# the smallest PNG: one transparent pixel
DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)


class Repository:
    """A repository on disk; `write` puts a lesson into it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "solutions").mkdir()
        (root / "figures").mkdir()
        (root / "figures" / "dot.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>", encoding="utf-8")
        (root / "figures" / "dot.png").write_bytes(DOT)
        (root / "pyproject.toml").write_text(f'[project.urls]\nRepository = "{ADDRESS}"\n', encoding="utf-8")

    def write(self, text: str = GOOD, name: str = "01_double") -> Path:
        path = self.root / "solutions" / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    root = tmp_path / "a course"
    root.mkdir()
    made = Repository(root)
    made.write()
    return made
