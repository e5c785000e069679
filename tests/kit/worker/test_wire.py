"""Frames cross whole, and nothing else does."""

from __future__ import annotations

import json
import os
import socket
import threading
import time

import pytest
import torch

from exercise_kit.worker.wire import MAGIC, Caps, Closed, Late, Wire, WireError
from tests.waiting import GIVE_UP


@pytest.fixture
def socket_pair():
    near, far = socket.socketpair()
    near.setblocking(False)
    with near, far:
        yield near, far


def compute_deadline():
    return time.monotonic() + GIVE_UP


def make_frame(header, payload=b"", claimed_length=None):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    length = len(payload) if claimed_length is None else claimed_length
    return MAGIC + len(header).to_bytes(4, "big") + length.to_bytes(8, "big") + header + payload


def receive_bytes(ends, data, caps=None):
    near, far = ends
    writer = threading.Thread(target=lambda: (far.sendall(data), far.shutdown(socket.SHUT_WR)))
    writer.start()
    try:
        return Wire(near.fileno(), caps, blocking=False).receive(compute_deadline())
    finally:
        near.close()
        writer.join()


def test_a_large_frame_goes_through_a_small_pipe(socket_pair):
    near, far = socket_pair
    sent = torch.randn(1 << 20)
    writer = threading.Thread(target=lambda: Wire(far.fileno(), blocking=True).send("big", [sent] * 100))
    writer.start()
    body, got = Wire(near.fileno(), blocking=False).receive(compute_deadline())
    writer.join()
    assert body == "big"
    assert len(got) == 100
    assert torch.equal(got[-1], sent)


LONG = {"tensors": [["float32", [2]]], "body": 0}
BAD = {
    "another protocol": b"GET / HTTP/1.1\r\n\r\n",
    "no JSON": make_frame(b"{"),
    "no UTF-8": make_frame(b'{"tensors":[],"body":"\xff"}'),
    "NaN": make_frame(b'{"tensors":[],"body":NaN}'),
    "infinity": make_frame(b'{"tensors":[],"body":-Infinity}'),
    "a float too large": make_frame(b'{"tensors":[],"body":1e999}'),
    "an int too large": make_frame(b'{"tensors":[],"body":' + b"9" * 30 + b"}"),
    "an int of many digits": make_frame(b'{"tensors":[],"body":' + b"9" * 5000 + b"}"),
    "nested deeply": make_frame(b'{"tensors":[],"body":' + b"[" * 40 + b"]" * 40 + b"}"),
    "nested beyond Python": make_frame(b'{"tensors":[],"body":' + b"[" * 200_000 + b"]" * 200_000 + b"}"),
    "a list": make_frame([]),
    "no body": make_frame({"tensors": []}),
    "a third part": make_frame({"tensors": [], "body": 0, "more": 1}),
    "tensors are no list": make_frame({"tensors": {}, "body": 0}),
    "too many tensors": make_frame({"tensors": [["bool", [0]]] * 5000, "body": 0}),
    "an unknown dtype": make_frame({"tensors": [["object", [1]]], "body": 0}, b"12345678"),
    "a dtype that is no text": make_frame({"tensors": [[["float32"], [1]]], "body": 0}, b"1234"),
    "a negative size": make_frame({"tensors": [["uint8", [-4]], ["uint8", [8]]], "body": 0}, b"1234"),
    "two negative sizes": make_frame({"tensors": [["uint8", [-2, -2]]], "body": 0}, b"1234"),
    "a size that is a bool": make_frame({"tensors": [["uint8", [True]]], "body": 0}, b"1"),
    "a size that is a float": make_frame({"tensors": [["uint8", [4.0]]], "body": 0}, b"1234"),
    "a huge size beside zero": make_frame({"tensors": [["uint8", [0, 1 << 39, 1 << 39]]], "body": 0}),
    "many axes": make_frame({"tensors": [["uint8", [1] * 17]], "body": 0}, b"1"),
    "fewer bytes than the tensors": make_frame(LONG, b"1234"),
    "more bytes than the tensors": make_frame(LONG, b"123456789012"),
    "a payload beyond the cap": make_frame(LONG, claimed_length=1 << 60),
    "a header beyond the cap": MAGIC + b"\xff" * 4 + bytes(8),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_what_is_no_frame_is_refused(socket_pair, data):
    with pytest.raises(WireError):
        receive_bytes(socket_pair, data, Caps(header_bytes=1 << 20, payload_bytes=1 << 20))


@pytest.mark.parametrize("length", [0, 3, 10, 40, 70])
def test_a_truncated_frame_is_a_hang_up(socket_pair, length):
    whole = make_frame({"tensors": [["float32", [4]]], "body": 0}, bytes(16))
    assert len(whole) > 70
    with pytest.raises(Closed):
        receive_bytes(socket_pair, whole[:length])


def test_equal_keys_are_harmless(socket_pair):
    body, _ = receive_bytes(socket_pair, make_frame(b'{"tensors":[],"body":1,"body":{"a":1,"a":2}}'))
    assert body == {"a": 2}


def test_text_can_be_written_down(socket_pair):
    body, _ = receive_bytes(socket_pair, make_frame(b'{"tensors":[],"body":["\\ud800",{"\\udfff":"\\u00e9"}]}'))
    assert json.dumps(body, ensure_ascii=False).encode() == '["?", {"?": "é"}]'.encode()


def test_a_bool_is_zero_or_one(socket_pair):
    _, (flags,) = receive_bytes(socket_pair, make_frame({"tensors": [["bool", [3]]], "body": 0}, b"\x00\x02\xff"))
    assert flags.view(torch.uint8).tolist() == [0, 1, 1]


@pytest.mark.parametrize("said", [b"", MAGIC, make_frame(LONG)[:-2], make_frame(LONG, b"1234", 8)])
def test_silence_is_late(socket_pair, said):
    near, far = socket_pair
    far.sendall(said)
    with pytest.raises(Late):
        Wire(near.fileno(), blocking=False).receive(time.monotonic() + 0.05)


def test_a_trickle_is_late(socket_pair):
    near, far = socket_pair
    done = threading.Event()

    def send_byte_by_byte():
        for byte in make_frame({"tensors": [["uint8", [500]]], "body": 0}, bytes(500)):
            if done.wait(0.005):
                return
            far.send(bytes([byte]))

    writer = threading.Thread(target=send_byte_by_byte)
    writer.start()
    with pytest.raises(Late):
        Wire(near.fileno(), blocking=False).receive(time.monotonic() + 0.1)
    done.set()
    writer.join()


def test_nobody_reads(socket_pair):
    near, _ = socket_pair
    with pytest.raises(Late):
        Wire(near.fileno(), blocking=False).send(0, [torch.zeros(1 << 22)], time.monotonic() + 0.1)


def test_nobody_is_there(socket_pair):
    near, far = socket_pair
    far.close()
    wire = Wire(near.fileno(), blocking=False)
    with pytest.raises(Closed):
        wire.send(0, [torch.zeros(1 << 20)], compute_deadline())
    with pytest.raises(Closed):
        wire.receive(compute_deadline())


def test_descriptors_that_come_along_are_not_taken(socket_pair):
    near, far = socket_pair
    before = len(os.listdir("/dev/fd"))
    socket.send_fds(far, [make_frame({"tensors": [], "body": 1})], [0, 1, 2])
    assert Wire(near.fileno(), blocking=False).receive(compute_deadline())[0] == 1
    assert len(os.listdir("/dev/fd")) == before
