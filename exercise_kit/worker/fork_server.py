"""The warm process: imports torch once, then forks a child for every submission, and sees to its end.

It is started by the judge with a clean environment and one end of a socket pair, runs no student's code itself, and
ends when the judge does. Only the standard library is imported here before the sandbox is in place.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from . import bounds, namespaces, policy, preload
from .bounds import OUT_OF_DISK
from .linux import ProtectionError, prctl

MESSAGE_BYTES = 1 << 20
SET_CHILD_SUBREAPER = 36
_MANY = 20  # children from which on memory is gathered into large pages, which pays after some forty
_POLL_SECONDS = 0.0005  # seconds between two looks at a child that is ending


class _JudgeDisconnected(Exception):
    pass


def main(descriptor: int) -> None:
    """Serve the judge at the other end of ``descriptor`` until it goes away."""
    control = socket.socket(fileno=descriptor)
    _, highest = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (highest, highest))  # the judge's own limit is not for a worker
    os.umask(0o022)  # the judge's may shut the folders of the new root to a child, which is another user
    gc.disable()  # what is imported stays, so that nobody has to look for garbage in it
    try:
        setup, _ = _receive_message(control)
        sys.path[:] = [*sys.path, *setup["packages"]]
        sandbox_policy = _prepare_policy(setup)
        scratch = str(sandbox_policy.scratch) if sandbox_policy else setup["scratch"]
        _use_scratch_as_home(scratch)
        from . import child

        shell = preload.preload_first(setup["device"])
        gc.freeze()
        _send_message(control, {"ready": True, "protections": sandbox_policy.names if sandbox_policy else []})
        _ChildManager(
            control,
            scratch,
            sandbox_policy,
            partial(child.serve_until_closed, [*setup["listable"], *setup["readable"]], shell),
        ).serve()
    except ProtectionError as error:
        _send_message(control, {"refused": str(error)})
    except _JudgeDisconnected:
        pass
    except BaseException:
        traceback.print_exc()  # the judge keeps what stands on stderr, and reports it
    finally:
        os._exit(0)


def _prepare_policy(setup: dict[str, Any]) -> policy.SandboxPolicy | None:
    """Prepare the policy, and enter the namespaces, which enclose this process too; None when none is wanted."""
    if not setup["confined"]:
        with contextlib.suppress(OSError, AttributeError):
            prctl(SET_CHILD_SUBREAPER, 1)
        return None
    return policy.prepare_policy(
        [Path(path) for path in setup["readable"]],
        [Path(path) for path in setup["listable"]],
        [Path(path) for path in setup["views"]],
        scratch_bytes=setup["scratch_bytes"],
        scratch=Path(setup["scratch"]),
        namespaces_wanted=setup["namespaces"],
        devices=[Path(path) for path in setup["devices"]],
    )


def _use_scratch_as_home(scratch: str) -> None:
    """Make the scratch folder the home of whatever wants to write a file."""
    os.chdir(scratch)
    for name in ("HOME", "TMPDIR", "MPLCONFIGDIR", "IPYTHONDIR", "XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR"):
        os.environ[name] = scratch


class _ChildManager:
    """Makes one child at a time, and ends it."""

    def __init__(
        self,
        control: socket.socket,
        scratch: str,
        sandbox_policy: policy.SandboxPolicy | None,
        live: Callable[..., NoReturn],
    ) -> None:
        self._control = control
        self._scratch = scratch
        self._policy = sandbox_policy
        self._live = live
        self._child = 0
        self._watcher: int | None = None
        self._forks = 0
        self._has_all = False  # the later packages

    def serve(self) -> None:
        """Do what the judge asks, until it is gone."""
        try:
            while True:
                request, descriptors = _receive_message(self._control)
                if request["do"] == "fork":
                    self._end_child(patience=0.0)
                    self._fork_child(request, descriptors[0])
                elif request["do"] == "end":
                    is_there = request["child"] == self._child
                    _send_message(self._control, self._end_child(request["patience"]) if is_there else {"ended": None})
                else:
                    is_there = request["child"] == self._child
                    _send_message(self._control, _KINDS[request["do"]](self) if is_there else {"waited": 0.0})
        finally:
            self._end_child(patience=0.0)

    def _fork_child(self, request: dict[str, Any], channel: int) -> None:
        self._forks += 1
        if not self._has_all:
            packages = request["packages_used"] if self._forks == 1 else None
            self._has_all = packages is None
            preload.preload_later(packages)
            gc.freeze()
        if self._forks == _MANY:
            preload.move_into_large_pages(self._policy.proc if self._policy else None)
        self._child = os.fork()
        if self._child == 0:
            gc.enable()
            self._control.close()
            self._live(channel, self._scratch, self._policy, request)
        os.close(channel)
        self._watcher = policy.start_scratch_watcher(self._policy, self._child) if self._policy else None
        _send_message(self._control, {"forked": self._child})

    def _read_queued_seconds(self) -> dict[str, Any]:
        """For how many seconds the child has been ready to run while the machine was busy with others."""
        proc = self._policy.proc if self._policy else None
        path = f"{self._child}/schedstat"
        try:
            descriptor = os.open(path if self._policy else f"/proc/{path}", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
            with open(descriptor, encoding="ascii") as opened:
                return {"waited": int(opened.read().split()[1]) / 1e9}
        except (OSError, IndexError, ValueError):
            return {"waited": 0.0}

    def _interrupt_child(self) -> dict[str, Any]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGALRM)
        return {"interrupted": True}

    def _end_child(self, patience: float) -> dict[str, Any]:
        """See the child end, by itself within ``patience`` seconds or by force, and clear away what it left."""
        if not self._child:
            return {"ended": None}
        by_itself, status = self._wait_for_child(patience)
        if not by_itself:
            os.kill(self._child, signal.SIGKILL)
            _, status = os.waitpid(self._child, 0)
        self._child = 0
        ended = OUT_OF_DISK if self._was_killed_for_files() else os.waitstatus_to_exitcode(status)
        _kill_orphans()
        clean = namespaces.clear_folder(self._scratch)
        return {"ended": ended, "by_itself": by_itself, "clean": clean}

    def _was_killed_for_files(self) -> bool:
        """Say whether the child that has ended was ended for its files; the process that watched it ends with it."""
        watcher, self._watcher = self._watcher, None
        if watcher is None:
            return False
        _, status = os.waitpid(watcher, 0)
        return os.waitstatus_to_exitcode(status) == bounds.TOO_MUCH

    def _wait_for_child(self, patience: float) -> tuple[bool, int]:
        limit = time.monotonic() + patience
        while True:
            ended, status = os.waitpid(self._child, os.WNOHANG)
            if ended or time.monotonic() > limit:
                return bool(ended), status
            time.sleep(_POLL_SECONDS)


_KINDS: dict[str, Callable[[_ChildManager], dict[str, Any]]] = {
    "waited": _ChildManager._read_queued_seconds,
    "interrupt": _ChildManager._interrupt_child,
}


def _kill_orphans() -> None:
    """End what a child left behind: its own children have come to this process, which is their reaper."""
    if os.getpid() == 1:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
    while orphans := _list_children():
        for orphan in orphans:
            os.kill(orphan, signal.SIGKILL)
            os.waitpid(orphan, 0)


def _list_children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as listed:
            return [int(number) for number in listed.read().split()]
    except OSError:
        return []


def _receive_message(control: socket.socket) -> tuple[dict[str, Any], list[int]]:
    data, descriptors, _, _ = socket.recv_fds(control, MESSAGE_BYTES, 1)
    if not data:
        raise _JudgeDisconnected
    return json.loads(data), descriptors


def _send_message(control: socket.socket, message: dict[str, Any]) -> None:
    try:
        control.sendall(json.dumps(message).encode())
    except ConnectionError:
        raise _JudgeDisconnected from None
