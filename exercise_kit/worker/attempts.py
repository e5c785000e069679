"""What a child tried although no submission needs it, from Python's audit events.

This is a hint for a person: the sandbox prevents, this list only names, and a student's code could silence it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

_MOST, _LONGEST = 20, 120
_EVENT_MESSAGES = {
    "subprocess.Popen": "subprocess",
    "os.fork": "fork",
    "os.forkpty": "fork",
    "os.exec": "exec",
    "os.posix_spawn": "posix_spawn",
    "os.system": "os.system",
    "os.kill": "kill",
    "os.killpg": "kill",
    "pty.spawn": "pty",
    "ctypes.dlopen": "ctypes",
    "gc.get_objects": "gc.get_objects",
    "gc.get_referrers": "gc.get_referrers",
    "socket.connect": "socket",
    "socket.bind": "socket",
    "socket.sendto": "socket",
    "socket.getaddrinfo": "socket",
    "socket.gethostbyname": "socket",
}
_READING = ("open", "os.listdir", "os.scandir")
_WRITE_EVENTS = ("os.chmod", "os.chown", "os.remove", "os.rename", "os.symlink", "os.link", "os.rmdir", "os.mkdir")
_ON_PATHS = {event: event.removeprefix("os.") for event in (*_READING, *_WRITE_EVENTS)}
_ALWAYS_ALLOWED = (
    *("/dev/null", "/dev/urandom", "/dev/zero", "/proc/cpuinfo", "/proc/meminfo", "/proc/self/", "/etc/localtime"),
    *("/usr/share/zoneinfo/", "/usr/share/fonts/", "/sys/devices/system/cpu/"),
)
_TORCHS = ("ctypes libnvidia-ml.so.1",)  # torch counts the GPUs with it, for torch.random.fork_rng() as for others


class Attempts:
    """The attempts so far, each reported once."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = tuple(path.rstrip("/") for path in allowed if path.strip("/"))
        self._found: dict[str, None] = {}
        self._described = 0
        self._listening = True

    @contextlib.contextmanager
    def pause_listening(self) -> Iterator[None]:
        """While this process itself does what a submission has no business with."""
        self._listening = False
        try:
            yield
        finally:
            self._listening = True

    def pop_new_attempts(self) -> list[str]:
        """Those that this has not given yet."""
        found = list(self._found)[self._described :]
        self._described += len(found)
        return found

    def record(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note an audit event when it is an attempt."""
        if not self._listening:
            return
        if event in _EVENT_MESSAGES and len(self._found) < _MOST:
            if (attempt := _describe_event(event, arguments)) not in _TORCHS:
                self._found[attempt] = None
        elif event in _ON_PATHS and len(self._found) < _MOST and arguments and type(arguments[0]) in (str, bytes):
            path = os.path.abspath(os.fsdecode(arguments[0]))
            if not self._is_allowed(path):
                self._found[f"{_ON_PATHS[event]} {path}"[:_LONGEST]] = None

    def _is_allowed(self, path: str) -> bool:
        if path == "/" or path.startswith(_ALWAYS_ALLOWED):  # importlib.metadata looks for packages there too
            return True
        return any(path == allowed or path.startswith(allowed + "/") for allowed in self._allowed)


def watch_attempts(allowed: Sequence[str]) -> Attempts:
    """Begin to listen in this process, for as long as it lives; paths under ``allowed`` are nobody's concern."""
    attempts = Attempts(allowed)
    record = attempts.record
    sys.addaudithook(lambda event, arguments: record(event, arguments))
    return attempts


def _describe_event(event: str, arguments: tuple[Any, ...]) -> str:
    what = _EVENT_MESSAGES[event]
    details = {"subprocess": 0, "os.system": 0, "exec": 0, "ctypes": 0, "socket": 1 if event == "socket.connect" else 0}
    detail = arguments[details[what]] if what in details and len(arguments) > details[what] else ""
    if type(detail) is tuple:
        detail = ":".join(str(each) for each in detail if type(each) in (str, int))
    text = os.fsdecode(detail) if type(detail) in (str, bytes) else ""
    return f"{what} {text}".strip()[:_LONGEST]
