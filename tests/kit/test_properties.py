"""What holds for any input, tried on inputs that nobody wrote down: the wire, packed values, the notebook readers."""

from __future__ import annotations

import contextlib
import json
import math
import socket
import struct

import torch
from hypothesis import given
from hypothesis import strategies as st

from exercise_kit.submission.notebook_file import (
    Unreadable,
    parse_notebook_cells,
    parse_notebook_json,
    parse_script_cells,
)
from exercise_kit.worker.values import Packer, Unpacker
from exercise_kit.worker.wire import DTYPES, MAGIC, Caps, Closed, Late, Wire, WireError

WHOLE = st.integers(-(1 << 63), (1 << 64) - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | WHOLE | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
# as deep as a packed value may be; NaN is no answer that equals itself and has a test of its own
VALUES = st.recursive(
    st.none() | st.booleans() | WHOLE | st.floats(allow_nan=False) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple) | st.dictionaries(TEXT, inner, max_size=4)
    ),
    max_leaves=8,
)


@st.composite
def draw_tensor(draw):
    sizes = draw(st.lists(st.integers(0, 4), max_size=4))
    dtype = draw(st.sampled_from(list(DTYPES.values())))
    raw = draw(st.binary(min_size=math.prod(sizes) * dtype.itemsize, max_size=math.prod(sizes) * dtype.itemsize))
    if dtype is torch.bool:
        raw = bytes(each & 1 for each in raw)
    return torch.frombuffer(bytearray(raw), dtype=dtype).reshape(sizes) if raw else torch.empty(sizes, dtype=dtype)


def list_bits(tensor):
    """Return what a tensor holds, to the bit: a NaN equals itself here."""
    return tensor.dtype, tuple(tensor.shape), tensor.contiguous().flatten().view(torch.uint8).tolist()


def receive_bytes(data, caps=None):
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.sendall(data)
        far.shutdown(socket.SHUT_WR)
        return Wire(near.fileno(), caps, blocking=False).receive(deadline=math.inf)


def make_frame(header, payload):
    return MAGIC + struct.pack(">IQ", len(header), len(payload)) + header + payload


@given(JSON, st.lists(draw_tensor(), max_size=3))
def test_any_frame_arrives_as_it_was_sent(body, sent):
    near, far = socket.socketpair()
    with near, far:
        Wire(far.fileno(), blocking=True).send(body, sent)
        arrived, got = Wire(near.fileno(), blocking=True).receive()
    assert arrived == body
    assert [*map(list_bits, got)] == [*map(list_bits, sent)]


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_a_frame_or_are_refused(data, begins_as_one):
    with contextlib.suppress(WireError, Closed, Late):
        receive_bytes(MAGIC + data if begins_as_one else data, Caps(header_bytes=1 << 12, payload_bytes=1 << 12))


@given(JSON, JSON, st.binary(max_size=40))
def test_any_header_is_a_frames_or_is_refused(listed, body, payload):
    header = json.dumps({"tensors": listed, "body": body}).encode()
    try:
        _, got = receive_bytes(make_frame(header, payload))
    except (WireError, Closed):
        return
    assert sum(each.numel() * each.itemsize for each in got) == len(payload)


@given(VALUES)
def test_any_value_comes_back(value):
    packer = Packer()
    packed = json.loads(json.dumps(packer.pack(value), allow_nan=False))
    got = Unpacker(packer.tensors).unpack(packed)
    assert got == value
    assert repr(got) == repr(value), "True is no 1, and a tuple no list"


@given(st.lists(draw_tensor(), min_size=1, max_size=3), st.booleans())
def test_any_tensors_come_back_to_the_bit(sent, twice):
    complex_ones = [each for each in sent if each.is_complex()]
    sent = [each for each in sent if not each.is_complex()]
    packer = Packer()
    packed = json.loads(json.dumps(packer.pack(sent * 2 if twice else sent), allow_nan=False))
    got = Unpacker(packer.tensors).unpack(packed)
    assert [*map(list_bits, got)] == [*map(list_bits, sent * 2 if twice else sent)]
    assert len(packer.tensors) == len(sent), "a tensor travels once"
    assert all("other" in Packer().pack(each) for each in complex_ones), "described, as no answer is complex"


@given(JSON)
def test_any_json_is_a_packed_value_or_is_refused(packed):
    with contextlib.suppress(WireError):
        Unpacker([torch.zeros(2)]).unpack(packed)


CELLS = st.lists(
    st.fixed_dictionaries(
        {"cell_type": st.sampled_from(["code", "markdown", "raw"]), "source": TEXT | st.lists(TEXT, max_size=3)},
        optional={"metadata": JSON, "id": JSON, "outputs": st.lists(JSON, max_size=2), "attachments": JSON},
    ),
    max_size=4,
)


@given(CELLS, st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"]), st.booleans())
def test_any_cells_are_read_in_their_order(cells, encoding, escaped):
    text = json.dumps({"nbformat": 4, "metadata": {}, "cells": cells}, ensure_ascii=escaped)
    read = parse_notebook_cells(text.encode(encoding))
    expected = ["".join(each["source"]).replace("\r\n", "\n") for each in cells]
    assert [each.source for each in read.cells] == expected
    assert [each.code for each in read.cells] == [each["cell_type"] == "code" for each in cells]


@given(JSON)
def test_the_scan_changes_nothing_but_outputs(value):
    """What is left out stands under three keys; everything else is as Python's own reader finds it."""
    text = json.dumps(value)
    if any(f'"{key}"' in text for key in ("outputs", "widgets", "attachments")):
        return
    assert parse_notebook_json(text.encode()) == value


def read_cells(reader, content):
    """Return what a reader finds; None when it refuses the file, which it has to do in words."""
    try:
        return reader(content).cells
    except Unreadable as error:
        reason = error
    assert str(reason)
    return None


@given(st.binary(max_size=200) | JSON.map(lambda each: json.dumps(each).encode()))
def test_any_file_is_read_or_refused_in_words(content):
    for reader in (parse_notebook_cells, parse_script_cells):
        for cell in read_cells(reader, content) or ():
            assert cell.source.encode("utf-8").decode("utf-8") == cell.source


@given(CELLS, st.data())
def test_half_a_notebook_is_refused(cells, data):
    text = json.dumps({"nbformat": 4, "metadata": {}, "cells": cells}).encode()
    cut = data.draw(st.integers(1, len(text) - 1))
    assert read_cells(parse_notebook_cells, text[:cut]) is None
