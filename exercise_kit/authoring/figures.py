"""Put a lesson's figures inside its notebooks.

A figure becomes a PNG in a `data:` address, in Markdown's own picture syntax: the one form that JupyterLab,
nbconvert and Colab all show. Colab shows neither cell attachments (googlecolab/colabtools issue 3836) nor SVG
in a `data:` address (issue 2092). So a lesson names `../figures/name.svg`, and what goes in is the
`figures/name.png` beside it, drawn by the same script.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PICTURE = re.compile(r"!\[(?P<alt>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<target>[^)\s]+)\)", re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\[\]]*\]\((?P<target>[^)\s]+)[^)]*\)")
HTML_PICTURE = re.compile(r"<(?:img|svg|iframe|video|object|embed)\b", re.IGNORECASE)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
MEDIA_TYPES = {".png": "image/png", ".jpg": "image/jpeg"}


class FigureError(ValueError):
    """A picture or link that fails in a notebook opened alone; `line` counts the cell's lines from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Figure:
    """A picture in a Markdown cell: its alternative text, the file to inline, and its place in the text."""

    alt: str
    file: Path
    start: int
    end: int


def figures_in(source: str, folder: Path) -> Iterator[Figure]:
    """The pictures of a Markdown cell.

    Args:
        source: the cell's text.
        folder: the folder of the lesson's source, from which targets are counted.

    Raises:
        FigureError: a picture without alternative text, outside `../figures/`, or whose file is missing.
    """
    for match in PICTURE.finditer(source):
        alt, target = " ".join(match["alt"].split()), match["target"]
        line = _line_of(source, match)
        if not alt:
            raise FigureError(f"{target} has no alternative text; say in the brackets what it shows", line)
        if not re.fullmatch(r"\.\./figures/[\w-]+\.(svg|png|jpg)", target):
            raise FigureError(f"{target} is not a figure of ours; refer to ../figures/name.svg", line)
        named = folder / target
        file = named.with_suffix(".png") if named.suffix == ".svg" else named
        for needed in (named, file):
            if not needed.is_file():
                message = f"{needed.name} is missing from figures/; draw it with its script there"
                raise FigureError(message, line)
        yield Figure(alt, file, match.start(), match.end())


def inline_figures(source: str, folder: Path) -> str:
    """The cell's text with every picture's data in the place of its address."""
    parts, done = [], 0
    for figure in figures_in(source, folder):
        parts += [source[done : figure.start], f"![{figure.alt}]({data_address(figure.file)})"]
        done = figure.end
    return "".join([*parts, source[done:]])


def data_address(file: Path) -> str:
    """A picture file as a `data:` address."""
    content = base64.b64encode(file.read_bytes()).decode("ascii")
    return f"data:{MEDIA_TYPES[file.suffix]};base64,{content}"


def check_links(source: str) -> None:
    """Raise FigureError where a Markdown cell shows or links what a notebook opened alone does not have."""
    source = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), source)
    for link in LINK.finditer(source):
        if not link["target"].startswith(("https://", "http://", "#", "mailto:")):
            message = f"a link to the file {link['target']}, which a notebook on Colab lacks; name it in words"
            raise FigureError(message, _line_of(source, link))
    if picture := HTML_PICTURE.search(source):
        message = f"{picture[0]}...> in prose; write ![what it shows](../figures/name.svg)"
        raise FigureError(message, _line_of(source, picture))


def _line_of(source: str, match: re.Match[str]) -> int:
    return 1 + source.count("\n", 0, match.start())
