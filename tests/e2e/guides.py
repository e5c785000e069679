"""What a guide tells its reader to type, and what it says that they will see."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

GUIDES = Path(__file__).parents[2] / "docs" / "instructors"
_FENCE = re.compile(r"(?:<!-- ([^\n]*) -->\n)?^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block of commands.

    Attributes: ``commands``; ``mark``, the comment above it that no reader sees (``not run in tests: WHY``, or
    ``as WHOM``); the lines that are ``shown`` below it as what the reader will see.
    """

    commands: str
    mark: str
    shown: tuple[str, ...]

    @property
    def is_run(self) -> bool:
        return not self.mark.startswith("not run in tests: ")

    def find_unseen_lines(self, output: str) -> list[str]:
        """The shown lines that an output does not have, however wide its columns are."""
        words = {" ".join(line.split()) for line in output.splitlines()}
        return [line for line in self.shown if " ".join(line.split()) not in words]


def read_blocks(guide: str) -> list[Block]:
    """The blocks of a guide, in order; every fence in it is one of commands, or of what they show."""
    text = (GUIDES / guide).read_text(encoding="utf-8")
    blocks: list[Block] = []
    for fence in _FENCE.finditer(text):
        mark, kind, content = fence.groups()
        assert kind in ("bash", "text", "python"), f"{guide}: a fence of {kind!r}"
        if kind == "bash":
            blocks.append(Block(content, mark or "", ()))
        elif kind == "text":
            assert blocks, f"{guide}: shown by no command: {content}"
            assert not blocks[-1].shown, f"{guide}: shown by no command: {content}"
            blocks[-1] = Block(blocks[-1].commands, blocks[-1].mark, tuple(content.splitlines()))
    return blocks
