"""What a cell showed, made into nbformat's outputs from what a worker says it was."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from exercise_kit.quoting import make_legible_in_color
from exercise_kit.sandbox.limits import Limits

_PNG = b"\x89PNG\r\n\x1a\n"
_MOST_OUTPUTS, _MOST_LINES = 400, 40


@dataclass(frozen=True)
class CellRun:
    """One cell that has run.

    Attributes:
        index: of the cell.
        outputs: nbformat's dicts: stream, error, and display_data or execute_result with only text/plain and image/png.
        seconds: that it took.
        stopped: whether it was stopped because its time was over; it keeps what it had defined.
        at: the place of the statement at which it broke off.
        passed: whether it went on behind a statement that broke off.
    """

    index: int
    outputs: tuple[dict[str, Any], ...]
    seconds: float
    stopped: bool = False
    at: int = 0
    passed: bool = False

    @property
    def error(self) -> tuple[str, str] | None:
        """Class and words of the exception that ended the cell, or None."""
        failed = (each for each in self.outputs if each["output_type"] == "error")
        return next(((each["ename"], each["evalue"]) for each in failed), None)


def validate_outputs(claimed: Any, limits: Limits) -> tuple[dict[str, Any], ...]:
    """nbformat's outputs of what a worker says that a cell showed; ValueError when it cannot be that."""
    if not isinstance(claimed, list) or len(claimed) > _MOST_OUTPUTS:
        raise ValueError("a cell's outputs are no list, or too many")
    outputs = tuple(_validate_output(each, limits) for each in claimed)
    if sum(map(count_output_characters, outputs)) > 3 * limits.cell_chars:  # notes and tracebacks come on top
        raise OverflowError("more output than a cell may have")
    return outputs


def _validate_output(claimed: Any, limits: Limits) -> dict[str, Any]:
    kind = claimed.get("output_type") if isinstance(claimed, dict) else None
    if kind == "stream" and claimed.get("name") in ("stdout", "stderr"):
        return {"output_type": kind, "name": claimed["name"], "text": _validate_text(claimed.get("text"))}
    if kind == "error":
        lines = claimed.get("traceback")
        traceback = [_validate_text(line) for line in lines[:_MOST_LINES]] if isinstance(lines, list) else []
        words = {name: _validate_text(claimed.get(name)) for name in ("ename", "evalue")}
        return {"output_type": kind, **words, "traceback": traceback}
    if kind in ("display_data", "execute_result") and isinstance(claimed.get("data"), dict):
        shown: dict[str, Any] = {
            "output_type": kind,
            "data": _validate_display_data(claimed["data"], limits),
            "metadata": {},
        }
        return {**shown, "execution_count": None} if kind == "execute_result" else shown
    raise ValueError("an output of no known kind")


def _validate_display_data(claimed: dict[str, Any], limits: Limits) -> dict[str, str]:
    data = {"text/plain": _validate_text(claimed["text/plain"])} if "text/plain" in claimed else {}
    picture = claimed.get("image/png")
    if picture is not None:
        if not isinstance(picture, Tensor) or picture.dtype != torch.uint8 or picture.ndim != 1:
            raise ValueError("a picture is not made of bytes")
        if picture.numel() > limits.picture_bytes:
            raise OverflowError("a picture is too big")
        data |= _encode_png(picture.numpy().tobytes())
    return data


def _encode_png(picture: bytes) -> dict[str, str]:
    return {"image/png": base64.b64encode(picture).decode()} if picture.startswith(_PNG) else {}


def _validate_text(claimed: Any) -> str:
    if not isinstance(claimed, str):
        raise ValueError("an output's text is none")
    return make_legible_in_color(claimed)


def count_output_characters(output: dict[str, Any]) -> int:
    """Return how much text an output holds."""
    parts: Sequence[str] = (
        *(output.get(name, "") for name in ("text", "ename", "evalue")),
        *output.get("traceback", ()),
        output.get("data", {}).get("text/plain", ""),
    )
    return sum(map(len, parts))
