"""Frames between the judge and a worker: a JSON header and raw tensor bytes, checked on receipt.

A frame is 4 bytes that name the protocol, the header's length (4 bytes), the payload's length (8 bytes), the header
as UTF-8 JSON ``{"tensors": [[dtype, [sizes]], ...], "body": ...}``, and the bytes of those tensors one after another.
Nothing is ever unpickled. Whatever does not fit this to the letter is a :class:`WireError`.
"""

from __future__ import annotations

import json
import math
import os
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor

from . import torch_internals

MAGIC = b"VCW1"
_PREFIX = len(MAGIC) + 4 + 8
_MOST_DIMENSIONS = 16
_MOST_BUFFERS_AT_ONCE = 64  # of one writev; Linux allows 1024
DTYPES: dict[str, torch.dtype] = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128),
    )
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class WireError(Exception):
    """What came over the wire is no frame of this protocol, or is too big for it."""


class Closed(Exception):
    """The other end is gone."""


class Late(Exception):
    """The other end neither wrote nor read in time."""


@dataclass(frozen=True)
class Caps:
    """How much a frame may hold: bytes of header and payload, tensors, and levels of nesting in its body."""

    header_bytes: int = 4 << 20
    payload_bytes: int = 1 << 40
    tensors: int = 4096
    depth: int = 32


class Wire:
    """One end of the connection, over a descriptor that can be read and written.

    Args:
        descriptor: one end of a socket pair; stays the caller's to close.
        caps: what a received frame may hold.
        blocking: wait for ever (the worker's end); otherwise every call has a deadline, and the descriptor must not
            block.

    Attributes: ``more_time``, asked for another deadline when one has passed; it raises Late where there is none.
    """

    def __init__(self, descriptor: int, caps: Caps | None = None, *, blocking: bool) -> None:
        self._descriptor = descriptor
        self._caps = caps or Caps()
        self._blocking = blocking
        self._deadline = math.inf
        self.more_time: Callable[[], float] = _refuse_more_time

    def send(
        self,
        body: Any,
        tensors: Sequence[Tensor] = (),
        deadline: float = math.inf,
        noted: Callable[[], dict[str, Any]] | None = None,
    ) -> None:
        """Write one frame; ``tensors`` are plain and contiguous, on the CPU, and of a dtype in :data:`DTYPES`.

        Args:
            body: JSON.
            tensors: what it refers to.
            deadline: of time.monotonic.
            noted: asked when all the rest is bytes that nothing can change; the body, an object, gets it as "noted".

        Raises:
            Closed: nobody is left to read it.
            Late: it was not taken before ``deadline`` (of time.monotonic).
        """
        self._deadline = deadline
        with torch_internals.Unseen():
            layout = [[_NAMES[torch_internals.dtype(each)], list(torch_internals.shape(each))] for each in tensors]
            pieces = [
                memoryview(torch_internals.view_as_bytes(each)) for each in tensors if torch_internals.numel(each)
            ]
        text = _write_json({"tensors": layout, "body": body})
        if noted:
            pieces = [memoryview(piece.tobytes()) for piece in pieces]
            # both the body and the frame end in a brace: the names go into the body, which is text already
            text = f'{text[:-2]},"noted":{_write_json(noted())}}}}}'
        header, payload = text.encode(), sum(piece.nbytes for piece in pieces)
        prefix = MAGIC + len(header).to_bytes(4, "big") + payload.to_bytes(8, "big")
        self._write_bytes([memoryview(prefix + header), *pieces])

    def receive(self, deadline: float = math.inf) -> tuple[Any, list[Tensor]]:
        """Read one frame: its body, and its tensors as plain contiguous CPU copies.

        Raises:
            WireError: it is malformed or beyond the caps.
            Closed: the other end closed before the frame was whole.
            Late: it was not whole before ``deadline`` (of time.monotonic).
        """
        self._deadline = deadline
        prefix = self._read_bytes(_PREFIX)
        if prefix[: len(MAGIC)] != MAGIC:
            raise WireError("a frame does not begin as one")
        size = int.from_bytes(prefix[4:8], "big")
        payload = int.from_bytes(prefix[8:16], "big")
        if size > self._caps.header_bytes or payload > self._caps.payload_bytes:
            raise WireError(f"a frame of {size} + {payload} bytes is too big")
        body, layout = self._parse_header(self._read_bytes(size), payload)
        data = [self._read_bytes(_count_bytes(dtype, sizes)) for dtype, sizes in layout]
        with torch_internals.Unseen():
            return body, [_make_tensor(*layout[place], each) for place, each in enumerate(data)]

    def has_nothing_to_read(self) -> bool:
        """Say whether nothing waits to be read: neither a frame that nobody asked for nor the other's farewell."""
        return not _poll(self._descriptor, select.POLLIN, 0)

    def _parse_header(self, header: bytes | bytearray, payload: int) -> tuple[Any, list[tuple[torch.dtype, list[int]]]]:
        try:
            parsed = json.loads(header.decode(), parse_constant=_refuse_json_constant, parse_float=_parse_finite)
        except (ValueError, RecursionError) as error:
            raise WireError(f"a header is no JSON: {type(error).__name__}") from None
        if not isinstance(parsed, dict) or parsed.keys() != {"tensors", "body"}:
            raise WireError("a header lacks its two parts")
        layout = self._parse_tensor_layout(parsed["tensors"])
        if sum(_count_bytes(dtype, sizes) for dtype, sizes in layout) != payload:
            raise WireError("a payload is not as long as its tensors")
        return _validate_value(parsed["body"], self._caps.depth), layout

    def _parse_tensor_layout(self, listed: Any) -> list[tuple[torch.dtype, list[int]]]:
        if not isinstance(listed, list) or len(listed) > self._caps.tensors:
            raise WireError("a header lists no tensors, or too many")
        layout = []
        for entry in listed:
            if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], str):
                raise WireError("a tensor is not described by dtype and sizes")
            name, sizes = entry
            if name not in DTYPES or not are_valid_sizes(sizes):
                raise WireError("a tensor has an unknown dtype or impossible sizes")
            layout.append((DTYPES[name], sizes))
        return layout

    def _read_bytes(self, size: int) -> bytearray:
        data = bytearray(size)
        view, done = memoryview(data), 0
        while done < size:
            try:
                count = os.readv(self._descriptor, [view[done : done + (1 << 20)]])
            except BlockingIOError:
                self._wait_until_ready(select.POLLIN)
                continue
            except ConnectionError:
                raise Closed from None
            if count == 0:
                raise Closed
            done += count
            self._extend_deadline()
        return data

    def _write_bytes(self, pieces: list[memoryview]) -> None:
        while pieces:
            try:
                count = os.writev(self._descriptor, pieces[:_MOST_BUFFERS_AT_ONCE])
            except BlockingIOError:
                self._wait_until_ready(select.POLLOUT)
                continue
            except ConnectionError:
                raise Closed from None
            while pieces and count >= pieces[0].nbytes:
                count -= pieces.pop(0).nbytes
            if pieces:
                pieces[0] = pieces[0][count:]
            self._extend_deadline()

    def _wait_until_ready(self, event: int) -> None:
        while not _poll(self._descriptor, event, None if self._blocking else self._deadline - time.monotonic()):
            self._extend_deadline()

    def _extend_deadline(self) -> None:
        if time.monotonic() > self._deadline:
            self._deadline = self.more_time()


def _write_json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def _refuse_more_time() -> NoReturn:
    raise Late


def _poll(descriptor: int, event: int, seconds: float | None) -> bool:
    poller = select.poll()
    poller.register(descriptor, event)
    limit = None if seconds is None or math.isinf(seconds) else math.ceil(max(0.0, seconds) * 1000)
    return bool(poller.poll(limit))


def _count_bytes(dtype: torch.dtype, sizes: Sequence[int]) -> int:
    return math.prod(sizes) * dtype.itemsize


def are_valid_sizes(sizes: Any) -> bool:
    """Say whether these are the sizes of a tensor that can cross: a list, not too long, of numbers not too large."""
    if not isinstance(sizes, list) or len(sizes) > _MOST_DIMENSIONS:
        return False
    fine = all(type(size) is int and 0 <= size < 1 << 40 for size in sizes)
    return fine and math.prod(max(1, size) for size in sizes) < 1 << 48  # strides of an empty tensor must fit too


def _make_tensor(dtype: torch.dtype, sizes: list[int], data: bytearray) -> Tensor:
    if not data:
        return torch.empty(sizes, dtype=dtype)
    if dtype is torch.bool:  # a byte that is neither 0 nor 1 is no bool that torch could rely on
        return torch.frombuffer(data, dtype=torch.uint8).ne(0).reshape(sizes)
    return torch.frombuffer(data, dtype=dtype).reshape(sizes)


def _refuse_json_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _parse_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _validate_value(value: Any, depth: int) -> Any:
    """``value`` with text that can be written as UTF-8; WireError beyond ``depth`` or for a giant number."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, list | dict) and depth == 0:
        raise WireError("a body is nested too deeply")
    if isinstance(value, list):
        return [_validate_value(each, depth - 1) for each in value]
    if isinstance(value, dict):
        return {_validate_value(key, 0): _validate_value(each, depth - 1) for key, each in value.items()}
    if type(value) is int and not -(1 << 63) <= value < 1 << 64:
        raise WireError("a number is too big")
    return value
