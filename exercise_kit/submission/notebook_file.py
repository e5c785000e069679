"""A notebook that a stranger handed in, opened within limits: its cells, or a sentence on why there are none.

Nothing in the file is believed: neither that it is JSON, nor that a field has the type that the format requires.
``json.loads`` makes objects of up to a hundred times a file's size (``{},{},…``). So one pass over the bytes first
counts strings, numbers and brackets, and leaves out what no grader reads: cells' outputs, and the state of widgets. An
honest notebook with 60 MB of pictures in its outputs then needs no more memory than its text. One kind of output may
stay: the still picture of a figure with controls, for the page that shows the cell.
"""

from __future__ import annotations

import codecs
import errno
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exercise_kit.conventions import EXPERIMENT_TAG, STILL

MAX_PIECES = 3_000_000  # strings and brackets in all; a large interactive figure has some 100 000
MAX_KEPT_PIECES = 300_000  # strings, numbers and brackets outside of outputs; a lesson has 2 000
MAX_KEPT_BYTES = 32 << 20  # outside of outputs; a lesson with its pictures has 2 MB
MAX_ATTACHED_BYTES = 16 << 20  # what is pasted into cells beyond that is left out
MAX_STILLS, MAX_STILL_CHARACTERS = 4, 1 << 20
MAX_DEPTH = 60  # nbformat's own parts are eight deep
MAX_NUMBER = 400  # characters
_CHUNK = 1 << 20
TOO_MANY = "it holds more pieces of data than any notebook; clear its outputs and hand it in again"

# possessive, and an unclosed string ends with the file: each byte is looked at once, and nothing is kept of it
_STRING = rb'"(?:[^"\\]++|\\.)*+(?:"|\\?+\Z)'
_PIECE = re.compile(
    rb'"(outputs|widgets|attachments)"\s*+:\s*+[\[{]|[\[{]|[\]}]|' + _STRING + rb'|[^\s"{}\[\],:]++', re.S
)
_SKIPPED = re.compile(rb"[\[{]|[\]}]|" + _STRING, re.S)
# as it stands in a notebook, HTML in a string of JSON; atomic, so that each byte is looked at twice at most
_STILL_BEGINS = re.compile(rb'<div class=\\"%b[0-9a-f]{32}\\">' % STILL.encode())
_STILL = re.compile(
    rb'(?>.{0,4000}?<img )(?>[^>]{0,1000}?src=\\"data:image/png;base64,)([A-Za-z0-9+/=]{1,%d}+)\\"'
    % MAX_STILL_CHARACTERS,
    re.S,
)


class Unreadable(Exception):
    """A file cannot be graded; the message is a clause that tells why."""


class Unreachable(Unreadable):
    """A file that was handed in cannot be reached now, which is no fault of a student's."""


_OF_STUDENTS = {errno.ELOOP, errno.ENAMETOOLONG}  # a link that took a file's place, and chains of folders


def make_unreadable_error(error: OSError, subject: str = "it") -> Unreadable:
    """The exception for a file or folder that the system refuses; :class:`Unreachable` if no student can cause it."""
    if error.errno in _OF_STUDENTS:
        return Unreadable(f"{subject} cannot be read: {error.strerror}")
    may = error.errno in (errno.EACCES, errno.EPERM)
    question = "may the account that grades read it?" if may else "is the disk or the shared folder still there?"
    return Unreachable(f"{subject} cannot be reached ({error.strerror}): {question}")


def parse_notebook_json(content: bytes, keep_stills: bool = False) -> Any:
    """Return what a notebook's JSON says, without the outputs of its cells.

    Args:
        content: UTF-8, with or without a byte-order mark, UTF-16 or UTF-32.
        keep_stills: leave in the place of some outputs the base64 text of what they claim to be a still picture.

    Raises:
        Unreadable: it is no text, no JSON, or exceeds a limit.
    """
    kept = _Scan(_convert_to_utf8(content), MAX_STILLS if keep_stills else 0).strip_outputs()
    try:
        return json.loads(kept)
    except RecursionError:
        raise Unreadable("it is nested deeper than any notebook") from None
    except ValueError as error:
        raise Unreadable(f"it is no notebook, for it is not JSON ({_describe_error(error)})") from None


def find_encoding(content: bytes) -> str:
    """The encoding of JSON text by its first bytes, as ``json`` itself finds it."""
    return json.detect_encoding(content[:4])


def _convert_to_utf8(content: bytes) -> bytes:
    """The text as UTF-8 without a mark; decoded in parts, since a whole text can take four times its bytes."""
    encoding = find_encoding(content)
    parts = (content[start : start + _CHUNK] for start in range(0, len(content), _CHUNK))
    try:
        if encoding == "utf-8":
            for _ in codecs.iterdecode(parts, encoding):
                pass
            return content
        return b"".join(part.encode() for part in codecs.iterdecode(parts, encoding))
    except UnicodeError:
        raise Unreadable("it is no text: neither UTF-8 nor UTF-16") from None


def _describe_error(error: ValueError) -> str:
    words = str(error)
    return words[0].lower() + words[1:120] if words else "unreadable"


class _Scan:
    """One pass over a text; it makes nothing of what it finds but the places where to cut."""

    def __init__(self, text: bytes, stills: int) -> None:
        self.text, self.stills = text, stills
        self.pieces = self.attached = 0

    def strip_outputs(self) -> bytes:
        """The text with empty outputs, some of them with a picture.

        Raises:
            Unreadable: a limit is exceeded.
        """
        parts = list(self._iterate_kept_pieces())
        if sum(map(len, parts)) > MAX_KEPT_BYTES:
            much = f"it has more than {MAX_KEPT_BYTES >> 20} MB beside its outputs"
            raise Unreadable(f"{much}; remove what is pasted into its cells and hand it in again")
        return b"".join(parts)

    def _iterate_kept_pieces(self) -> Iterator[memoryview | bytes]:
        text, start, place, depth, kept = memoryview(self.text), 0, 0, 0, 0
        while (piece := _PIECE.search(self.text, place)) is not None:
            place, kept = piece.end(), kept + 1
            if kept > MAX_KEPT_PIECES:
                raise Unreadable(TOO_MANY)
            first = self.text[piece.start()]
            if piece[1] or first in b"[{":
                depth += 1
            elif first in b"]}":
                depth -= 1
            elif first != ord('"') and place - piece.start() > MAX_NUMBER:
                words = f"not JSON (a word or number has more than {MAX_NUMBER} characters)"
                raise Unreadable(f"it is no notebook, for it is {words}")
            if depth > MAX_DEPTH:
                raise Unreadable("it is nested deeper than any notebook")
            if piece[1] and self._is_key_omitted(piece[1], place):
                yield text[start:place]
                start = self._find_closing_bracket(place)
                if piece[1] == b"outputs" and piece[0].endswith(b"["):
                    yield self._find_still_picture(place, start)
                place = start
        yield text[start:]

    def _is_key_omitted(self, key: bytes, place: int) -> bool:
        if key == b"attachments":
            size = self._find_closing_bracket(place) - place
            if self.attached + size <= MAX_ATTACHED_BYTES:
                self.attached += size
                return False
        return True

    def _find_still_picture(self, place: int, end: int) -> bytes:
        """The first still picture in an output, as a string of JSON; nothing where there is none."""
        begins = _STILL_BEGINS.search(self.text, place, end) if self.stills else None
        found = _STILL.match(self.text, begins.end(), end) if begins else None
        if found is None:
            return b""
        self.stills -= 1
        return b'"%b"' % found[1]

    def _find_closing_bracket(self, place: int) -> int:
        """Where the bracket stands that closes the one before ``place``."""
        depth = 1
        while (piece := _SKIPPED.search(self.text, place)) is not None:
            place = piece.end()
            self.pieces += 1
            if self.pieces > MAX_PIECES:
                raise Unreadable(TOO_MANY)
            first = self.text[piece.start()]
            depth += (first in b"[{") - (first in b"]}")
            if not depth:
                return piece.start()
        raise Unreadable("it is no notebook, for it is not JSON (it ends in the middle of an output)")


FILE_BYTES = 100 << 20  # a lesson with all its pictures has less than 2 MB, with outputs seldom more than 10
SCRIPT_BYTES = 4 << 20
MAX_CELLS = 2000
# the longest cell of a lesson has 2 500, all of its code 19 000; what reads code costs time and memory for each
CELL_CHARACTERS = 50_000
ALL_CHARACTERS = 300_000
ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".zst")
# where a percent-format file, or one that a notebook was exported to, begins a new cell
CELL_MARK = re.compile(r"^# (?:%%|In\[[ \d]*\]:)", re.MULTILINE)
ADVICE = {
    "archive": "it is an archive; unpack it and hand in the notebook",
    "link": "it is a symbolic link, and links are not followed; hand in the file itself",
    "folder": "it is a folder; hand in the file itself",
    "special": "it is no ordinary file",
    "large": "it has more than {most} MB; {advice}hand it in again",
    "empty": "the file is empty",
}


@dataclass(frozen=True)
class SubmittedCell:
    """A cell as it was handed in: its ``index`` among all cells, ``code`` or not, and what it says of itself.

    ``markdown``, ``attachments`` and ``still`` (base64 of what should be a PNG), as found, are for the pages that show
    it.
    """

    index: int
    code: bool
    source: str
    grade_id: str | None = None
    checksum: str | None = None
    id: str | None = None
    experiment: bool = False
    markdown: bool = False
    attachments: object = field(default=None, compare=False)
    still: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class SubmittedFile:
    """The cells of a file, and sentences on what is odd about it though it can be read."""

    cells: tuple[SubmittedCell, ...]
    oddities: tuple[str, ...] = ()


def read_bytes(path: Path, max_bytes: int = FILE_BYTES) -> bytes:
    """A file's content, of at most ``max_bytes`` bytes; links are not followed, devices and pipes not opened.

    Raises:
        Unreadable: it is no ordinary file, too large or empty.
        Unreachable: it is gone or may not be read, or the disk or the shared folder that it lies on is gone.
    """
    if path.suffix.lower() in ARCHIVES:
        raise Unreadable(ADVICE["archive"])
    try:
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode):
            kind = "link" if stat.S_ISLNK(mode) else "folder" if stat.S_ISDIR(mode) else "special"
            raise Unreadable(ADVICE[kind])
        # never wait for a pipe's other end; and a link that took the file's place meanwhile is refused
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                raise Unreadable(ADVICE["special"])
            content = b"" if facts.st_size > max_bytes else file.read(max_bytes + 1)
    except OSError as error:
        raise make_unreadable_error(error) from None
    if facts.st_size > max_bytes or len(content) > max_bytes:
        advice = "clear its outputs and " if path.suffix.lower() == ".ipynb" else "make it smaller and "
        raise Unreadable(ADVICE["large"].format(most=max_bytes >> 20, advice=advice))
    if not content.strip():
        raise Unreadable(ADVICE["empty"])
    return content


def parse_script_cells(content: bytes) -> SubmittedFile:
    """A Python file's cells: as it is divided by ``# %%`` or ``# In[3]:``, else one.

    Raises:
        Unreadable: it is no text, or too much of it.
    """
    if len(content) > SCRIPT_BYTES:
        raise Unreadable(ADVICE["large"].format(most=SCRIPT_BYTES >> 20, advice="make it smaller and "))
    text = _decode_text(content)
    if "\0" in text:
        raise Unreadable("it is no text file")
    starts = [0, *(mark.start() for mark in CELL_MARK.finditer(text) if mark.start())]
    pieces = [text[start:stop] for start, stop in zip(starts, [*starts[1:], len(text)], strict=True)]
    pieces = [piece.partition("\n")[2] if CELL_MARK.match(piece) else piece for piece in pieces]
    cells = [SubmittedCell(index, code=True, source=piece) for index, piece in enumerate(pieces) if piece.strip()]
    return SubmittedFile(_require_within_limits(cells))


def parse_notebook_cells(content: bytes) -> SubmittedFile:
    """A notebook's cells.

    Raises:
        Unreadable: it is no notebook, or one that is too large to be anybody's work.
    """
    notebook, oddities = parse_notebook_json(content, keep_stills=True), []
    encoding = find_encoding(content)
    if not encoding.startswith("utf-8"):
        oddities.append(f"it was saved as {encoding[:6].upper()}, where notebooks are UTF-8")
    if not isinstance(notebook, dict):
        raise Unreadable("it is JSON, but no notebook")
    if "worksheets" in notebook or notebook.get("nbformat") in (1, 2, 3):
        notebook = _upgrade_notebook(parse_notebook_json(content))
        oddities.append("it is in an old notebook format (before version 4) and was converted")
    cells = notebook.get("cells")
    if not isinstance(cells, list):
        raise Unreadable("it is JSON, but no notebook: it has no list of cells")
    read = [_read_cell(index, cell) for index, cell in enumerate(cells[: MAX_CELLS + 1])]
    broken = len(read) - sum(cell is not None for cell in read)
    if broken:
        oddities.append(f"{broken} of its cells {'is' if broken == 1 else 'are'} not what a cell should be, left out")
    return SubmittedFile(_require_within_limits([cell for cell in read if cell]), tuple(oddities))


def _decode_text(content: bytes) -> str:
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        raise Unreadable("it is no text: neither UTF-8 nor UTF-16") from None


def _upgrade_notebook(notebook: dict[str, Any]) -> dict[str, Any]:
    import nbformat
    from nbformat.notebooknode import from_dict

    notebook = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}} | notebook
    try:
        upgraded: dict[str, Any] = nbformat.convert(from_dict(notebook), 4)
    except Exception as error:  # nbformat trips over anything that is not as it expects
        words = f"it is in an old notebook format, and converting it failed ({type(error).__name__})"
        raise Unreadable(words) from None
    return upgraded


def _read_cell(index: int, cell: object) -> SubmittedCell | None:
    if not isinstance(cell, dict):
        return None
    source = cell.get("source")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        return None
    # half a surrogate pair is no text: Python cannot encode it, and so neither hash nor send it
    source = source.encode("utf-8", "replace").decode("utf-8").replace("\r\n", "\n")
    metadata = cell.get("metadata")
    mark = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    mark = mark if isinstance(mark, dict) else {}
    names = (
        _read_short_string(mark.get("grade_id")),
        _read_short_string(mark.get("checksum")),
        _read_short_string(cell.get("id")),
    )
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    experiment = isinstance(tags, list) and EXPERIMENT_TAG in tags
    kind, still = cell.get("cell_type"), cell.get("outputs")
    return SubmittedCell(
        index,
        kind == "code",
        source,
        *names,
        experiment,
        kind == "markdown",
        cell.get("attachments"),
        still[0] if isinstance(still, list) and still and isinstance(still[0], str) else None,
    )


def _read_short_string(value: object) -> str | None:
    return value[:1000] if isinstance(value, str) and value else None


def _require_within_limits(cells: list[SubmittedCell]) -> tuple[SubmittedCell, ...]:
    if len(cells) > MAX_CELLS:
        raise Unreadable(f"it has more than {MAX_CELLS} cells")
    code = [len(cell.source) for cell in cells if cell.code]
    if max(code, default=0) > CELL_CHARACTERS or sum(code) > ALL_CHARACTERS:
        raise Unreadable("it has more code than anybody writes: is there data in a code cell?")
    return tuple(cells)
