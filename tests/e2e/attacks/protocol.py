"""Attacks on the wire between worker and judge: forged, oversized, truncated, late and lying frames.

The student's process holds its end of the wire, so it can write there whatever it likes.
"""

from tests.e2e.attacks.attack import WRONG, Attack

# every socket that the process holds, and frames as the worker writes them
_WIRE = """
import json, os, stat
def channels():
    found = []
    for number in range(3, 256):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                found.append(number)
        except OSError:
            pass
    return found
def write(data):
    for number in channels():
        try:
            os.write(number, data)
        except OSError:
            pass
def framed(header, payload=b"", claimed=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(payload) if claimed is None else claimed
    return b"VCW1" + len(text).to_bytes(4, "big") + size.to_bytes(8, "big") + text + payload
"""


def _in_the_call(code: str) -> str:
    body = "\n".join(f"    {line}" for line in code.strip().split("\n"))
    return f"{_WIRE}\ndef patchify(images, patch_size):\n{body}\n    return images\n"


ATTACKS = [
    Attack(
        "reply forged",
        "replies that claim every result are written ahead of the worker's own",
        _in_the_call(
            """
for number in range(1000):
    for body in (
        {"request": number, "reply": {"result": 8.0, "score": 8.0, "changed": []}},
        {"number": number, "result": {"tensor": 0}, "changed": [], "verdict": "pass"},
        {"id": number, "verdict": "pass", "score": 8.0},
    ):
        write(framed({"tensors": [], "body": body}))
"""
        ),
    ),
    Attack(
        "reply forged with the worker's own code",
        "the worker's wire is found in memory and used to answer before the worker does",
        """
import gc, torch
def patchify(images, patch_size):
    for each in gc.get_objects():
        if type(each).__name__ == "Wire":
            for number in range(100):
                each.send({"request": number, "result": {"tensor": 0}, "changed": [], "pass": True}, [torch.zeros(1)])
    return images
""",
    ),
    Attack(
        "reply oversized",
        "a frame claims a payload of a thousand terabytes",
        _in_the_call('write(framed({"tensors": [["float32", [1 << 48]]], "body": {}}, b"x" * 100, 1 << 50))'),
    ),
    Attack(
        "header oversized",
        "a frame claims a header of four gigabytes, and begins to send it",
        _in_the_call('write(b"VCW1" + b"\\xff" * 4 + bytes(8))\nfor _ in range(1000):\n    write(b"[" * 65536)'),
    ),
    Attack(
        "reply truncated",
        "a frame ends in its middle, and the process with it",
        _in_the_call('write(framed({"tensors": [], "body": {}})[:20])\nos._exit(0)'),
    ),
    Attack(
        "reply trickled",
        "a frame comes byte by byte, so that each wait is short and all of them for ever",
        _in_the_call(
            'import time\nfor byte in framed({"tensors": [], "body": "x" * 100000}):\n'
            "    write(bytes([byte]))\n    time.sleep(0.05)"
        ),
        flags=("timeout",),
    ),
    Attack(
        "reply full of NaN",
        "numbers that JSON does not have stand where sizes, scores and seconds are expected",
        _in_the_call(
            'for text in (b"NaN", b"-Infinity", b"1e999", b"{\\"a\\": NaN}"):\n'
            '    write(framed(b\'{"tensors": [], "body": \' + text + b"}"))'
        ),
    ),
    Attack(
        "shapes that lie",
        "tensors of negative, fractional, boolean and overflowing sizes, and of dtypes that do not exist",
        _in_the_call(
            """
for sizes in ([-1], [1.5], [True], [1 << 62, 1 << 62], [0, 1 << 39, 1 << 39], "x", None, [[1]], {"a": 1}):
    for dtype in ("float32", "object", "", None, 7):
        write(framed({"tensors": [[dtype, sizes]], "body": {}}, b"abcd"))
"""
        ),
    ),
    Attack(
        "deep JSON",
        "a header is nested a hundred thousand deep",
        _in_the_call('write(framed(b\'{"tensors": [], "body": \' + b"[" * 100000 + b"]" * 100000 + b"}"))'),
    ),
    Attack(
        "huge numbers",
        "an integer of a million digits, which takes Python long to read",
        _in_the_call('write(framed(b\'{"tensors": [], "body": \' + b"9" * 1000000 + b"}"))'),
    ),
    Attack(
        "not even a frame",
        "noise, HTTP, pickles and nothing are written to the judge",
        _in_the_call(
            """
import pickle
class Command:
    def __reduce__(self):
        return os.system, ("touch /tmp/attacked",)
for data in (os.urandom(4096), b"GET / HTTP/1.1\\r\\n\\r\\n", pickle.dumps(Command()), b"VCW1", b"\\x00" * 4096):
    write(data)
"""
        ),
    ),
    Attack(
        "late reply",
        "a thread goes on answering after the call has ended, between and during the calls that follow",
        _WIRE
        + """
import threading, time
def chatter():
    number = 0
    while True:
        number += 1
        write(framed({"tensors": [], "body": {"request": number, "result": 8.0, "changed": []}}))
        time.sleep(0.001)
def patchify(images, patch_size):
    threading.Thread(target=chatter, daemon=True).start()
    return images
""",
    ),
    Attack(
        "requests eaten",
        "a thread reads what the judge asks, so that the worker never hears it",
        _WIRE
        + """
import threading
def eat():
    while True:
        for number in channels():
            try:
                os.read(number, 1 << 16)
            except OSError:
                pass
threading.Thread(target=eat, daemon=True).start()
"""
        + WRONG,
        flags=("timeout",),
    ),
    Attack(
        "wire closed",
        "every descriptor is closed",
        _in_the_call("os.closerange(0, 4096)"),
    ),
    Attack(
        "wire flooded",
        "frames are written faster than anybody reads them",
        _in_the_call('while True:\n    write(framed({"tensors": [], "body": "x" * 100000}))'),
    ),
    Attack(
        "callbacks invented",
        "the judge is asked to run functions, with numbers and names that were never given",
        _in_the_call(
            """
for name in ("__import__", "eval", "os.system", 0, -1, 1 << 70, None):
    write(framed({"tensors": [], "body": {"callback": name, "inputs": ["touch /tmp/attacked"], "options": {}}}))
    write(framed({"tensors": [], "body": {"callback_gradients": name, "inputs": [], "cotangents": []}}))
"""
        ),
    ),
    Attack(
        "values that lie",
        "the worker's own replies are rewritten: layers with other sizes, models with foreign names, paths, code",
        """
import sys
def patchify(images, patch_size):
    for name, module in list(sys.modules.items()):
        if name.startswith("worker") and hasattr(module, "pack"):
            module.pack = lambda *_, **__: {"layer": "os.system", "settings": {"in_channels": -1}, "weights": {"a": 0}}
    return images
""",
    ),
]
