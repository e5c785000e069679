"""The still picture of a figure with controls, as a student handed it in, for the page with their feedback.

The judge does not run such a cell, and the student's own output is hostile until it is shown to be a picture. So of
what should be a PNG only the chunks that hold pixels are kept, each with a right checksum; nothing is decompressed.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any
from zlib import crc32

from nbformat.v4 import new_output

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_NEEDED = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")
MOST_PIXELS = 4000  # on a side: what a browser decodes without pain


def still_outputs(still: object) -> list[dict[str, Any]]:
    """The outputs of a cell with that picture; none where it is no picture.

    Args:
        still: base64 of a PNG, or anything else.
    """
    picture = base64_png(still)
    return [new_output("display_data", data={"image/png": picture})] if picture else []


def base64_png(text: object) -> str | None:
    """The PNG that a base64 text holds, made anew of what it needs; None where it is none."""
    if not isinstance(text, str):
        return None
    try:
        parts = _needed_chunks(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return None
    return base64.b64encode(b"".join(parts)).decode()


def _needed_chunks(picture: bytes) -> list[bytes]:
    """The signature and the chunks that hold pixels; ValueError where it is no PNG, or a large one."""
    if not picture.startswith(_SIGNATURE):
        raise ValueError
    parts, place = [_SIGNATURE], len(_SIGNATURE)
    while not parts[-1][4:].startswith(b"IEND"):
        size = int.from_bytes(picture[place : place + 4])
        chunk = picture[place : place + 12 + size]
        place += len(chunk)
        kind = chunk[4:8]
        if len(chunk) != 12 + size or crc32(chunk[4:-4]) != int.from_bytes(chunk[-4:]):
            raise ValueError
        if (len(parts) == 1) != (kind == b"IHDR"):
            raise ValueError
        if kind == b"IHDR" and max(int.from_bytes(chunk[8:12]), int.from_bytes(chunk[12:16])) > MOST_PIXELS:
            raise ValueError
        if kind in _NEEDED:
            parts.append(chunk)
    return parts
