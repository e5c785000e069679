"""A notebook's JSON within limits: it is measured byte by byte before any object is made of it.

``json.loads`` makes objects of up to a hundred times a file's size (``{},{},…``). So one pass over the bytes counts
strings, numbers and brackets and leaves out what no grader reads: cells' outputs, and the state of widgets. An honest
notebook with 60 MB of pictures in its outputs is read within the memory of its text.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

MAX_PIECES = 3_000_000  # strings and brackets in all; a large interactive figure has some 100 000
MAX_KEPT_PIECES = 300_000  # strings, numbers and brackets outside of outputs; a lesson has 2 000
MAX_KEPT_BYTES = 32 << 20  # outside of outputs; a lesson with its pictures has 2 MB
MAX_ATTACHED_BYTES = 16 << 20  # what is pasted into cells beyond that is left out
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


class Unreadable(Exception):
    """A file cannot be graded; the message is a clause that tells why."""


def load(content: bytes) -> Any:
    """What a notebook's JSON says, without the outputs of its cells.

    Args:
        content: UTF-8, with or without a byte-order mark, UTF-16 or UTF-32.

    Raises:
        Unreadable: it is no text, no JSON, or exceeds a limit.
    """
    kept = _Scan(_utf8(content)).kept()
    try:
        return json.loads(kept)
    except RecursionError:
        raise Unreadable("it is nested deeper than any notebook") from None
    except ValueError as error:
        raise Unreadable(f"it is no notebook, for it is not JSON ({_clause(error)})") from None


def encoding_of(content: bytes) -> str:
    """The encoding of JSON text by its first bytes, as ``json`` itself finds it."""
    return json.detect_encoding(content[:4])


def _utf8(content: bytes) -> bytes:
    """The text as UTF-8 without a mark; decoded in parts, since a whole text can take four times its bytes."""
    encoding = encoding_of(content)
    parts = (content[start : start + _CHUNK] for start in range(0, len(content), _CHUNK))
    try:
        if encoding == "utf-8":
            for _ in codecs.iterdecode(parts, encoding):
                pass
            return content
        return b"".join(part.encode() for part in codecs.iterdecode(parts, encoding))
    except UnicodeError:
        raise Unreadable("it is no text: neither UTF-8 nor UTF-16") from None


def _clause(error: ValueError) -> str:
    words = str(error)
    return words[0].lower() + words[1:120] if words else "unreadable"


class _Scan:
    """One pass over a text; it makes nothing of what it finds but the places where to cut."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.pieces = self.attached = 0

    def kept(self) -> bytes:
        """The text with empty outputs.

        Raises:
            Unreadable: a limit is exceeded.
        """
        parts = list(self._parts())
        if sum(map(len, parts)) > MAX_KEPT_BYTES:
            much = f"it has more than {MAX_KEPT_BYTES >> 20} MB beside its outputs"
            raise Unreadable(f"{much}; remove what is pasted into its cells and hand it in again")
        return b"".join(parts)

    def _parts(self) -> Iterator[memoryview]:
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
            if piece[1] and self._is_left_out(piece[1], place):
                yield text[start:place]
                start = place = self._closing(place)
        yield text[start:]

    def _is_left_out(self, key: bytes, place: int) -> bool:
        if key == b"attachments":
            size = self._closing(place) - place
            if self.attached + size <= MAX_ATTACHED_BYTES:
                self.attached += size
                return False
        return True

    def _closing(self, place: int) -> int:
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
