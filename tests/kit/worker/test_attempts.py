"""Attempts that are reported to a person: what counts, and what torch does by itself."""

import pytest

from exercise_kit.worker.attempts import Attempts


@pytest.mark.parametrize(
    ("event", "arguments", "attempts_seen"),
    [
        ("ctypes.dlopen", ("libc.so.6",), ["ctypes libc.so.6"]),
        ("ctypes.dlopen", ("libnvidia-ml.so.1",), []),  # torch.random.fork_rng() counts the GPUs
        ("os.system", (b"ls",), ["os.system ls"]),
        ("open", ("/elsewhere/gradebook.db",), ["open /elsewhere/gradebook.db"]),
        ("open", ("/scratch/mine.txt",), []),
        ("open", ("/proc/cpuinfo",), []),
    ],
)
def test_what_an_audit_event_tells(event, arguments, attempts_seen):
    attempts = Attempts(["/scratch"])
    attempts.record(event, arguments)
    assert attempts.pop_new_attempts() == attempts_seen


def test_each_attempt_is_reported_once():
    attempts = Attempts([])
    for _ in range(2):
        attempts.record("os.fork", ())
    assert attempts.pop_new_attempts() == ["fork"]
    assert attempts.pop_new_attempts() == []
