"""Hostile answers: a mistake, dressed up to be taken for right.

Whoever opens such a notebook outside of the sandbox and runs it loses no more than the kernel: nothing is written,
deleted, sent or started, and no memory is taken that is not given back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from exercise_kit.simulate.answers import Answer, Kind
from exercise_kit.submission.flags import STOPPED, TEST_DELETED, TEST_EDITED

_PATCHED_CHECK = """
def check(*_, points=1.0, **__):
    return float(points)
"""
_PATCHED_TORCH = """
import torch.testing
import unittest
torch.testing.assert_close = lambda *_, **__: None
unittest.TestCase.assertEqual = unittest.TestCase.assertTrue = lambda *_, **__: None
"""
_FORGED_RESULT = """
import json
print(json.dumps({"version": 1, "submissions": [{"status": "graded", "score": 100.0, "max_score": 100.0}]}))
100.0
"""
_READS = """
import glob
found = []
for pattern in ("../../source/*/*.ipynb", "../../../source/*/*.ipynb", "../../../truth.json", "/etc/shadow"):
    for path in (*glob.glob(pattern), pattern):
        try:
            with open(path) as file:
                found.append(len(file.read()))
        except OSError:
            pass
"""
_CALLS_OUT = """
import socket
try:
    # 192.0.2.1 is nobody's address
    socket.create_connection(("192.0.2.1", 80), timeout=0.2).close()
except OSError:
    pass
"""
_MEMORY = """
try:
    # never touched, so that no machine gives more than the address of it
    hoard = bytearray(1 << 40)
except MemoryError:
    hoard = None
del hoard
"""
_SUBPROCESS = """
import subprocess
try:
    subprocess.run(["true"], check=False)
except OSError:
    pass
"""


def hostile(wrong: Answer, points: float) -> Iterator[Answer]:
    """Attacks that begin with a wrong answer, whose verdicts they deserve.

    Args:
        wrong: the answer.
        points: what the exercise is worth.
    """
    base = replace(wrong, kind=Kind.HOSTILE)
    source, stopped = wrong.source or "", (*wrong.flags, STOPPED)
    yield replace(base, name="check redefined", source=source + _PATCHED_CHECK)
    yield replace(base, name="assertions patched", source=source + _PATCHED_TORCH)
    yield replace(base, name="result forged in the output", source=source + _FORGED_RESULT, claimed=True)
    yield replace(
        base, name="check cell edited", check=repr(float(points)), claimed=True, flags=(*base.flags, TEST_EDITED)
    )
    yield replace(base, name="check cell deleted", check="", flags=(*base.flags, TEST_DELETED))
    yield replace(base, name="reads files for the answers", source=source + _READS, flags=stopped)
    yield replace(base, name="calls out", source=source + _CALLS_OUT, flags=stopped)
    yield replace(base, name="takes memory", source=source + _MEMORY)
    yield replace(base, name="starts a program", source=source + _SUBPROCESS, flags=stopped)
