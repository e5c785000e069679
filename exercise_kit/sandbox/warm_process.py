"""The judge's hold on a warm process: started by exec with a clean environment, asked for children, ended."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

from exercise_kit.engine.course import course
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.sandbox.limits import Limits
from exercise_kit.worker import fork_server, readable_paths
from exercise_kit.worker.namespaces import clear_folder

_START = (
    "import sys; sys.path.insert(0, {home!r}); from worker.fork_server import main; del sys.path[0]; main({number})"
)
_HERE = Path(__file__).parents[1]
_FOR_CUDA = ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
_SECONDS_TO_START = 120.0
_SECONDS_TO_OBEY = 60.0
_WORDS_OF_FAILURE = 600
_HOME, _YOUNG_SECONDS = "vit-course-worker-", 60.0


class WarmProcessLost(Exception):
    """The warm process did not start, or is gone."""


class WarmProcess:
    """A process that has imported torch and forks a child for each submission; it starts while the caller goes on.

    Args:
        limits: what a child may use, and where it computes.
        views: folders of which a child may read one.
        sandboxed: apply the sandbox policy.

    Attributes: ``is_lost``, that it can make no more children, and ``views``.

    Raises:
        WarmProcessLost: it did not even begin; the text says why.
    """

    def __init__(self, limits: Limits, views: Sequence[Path], *, sandboxed: bool) -> None:
        self.views = tuple(views)
        self.is_lost = False
        remove_abandoned_homes()
        self._home = tempfile.TemporaryDirectory(prefix=_HOME, ignore_cleanup_errors=True)
        self._lock = _try_to_lock_folder(Path(self._home.name))
        scratch = Path(self._home.name, "scratch")
        Path(self._home.name).chmod(0o711)  # a worker may be of another user
        scratch.mkdir(mode=0o700)
        self._complaints = Path(self._home.name, "stderr")
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, self._complaints.open("wb") as complaints:
            self._process = _launch_process(theirs.fileno(), scratch, complaints.fileno(), limits.device)
        try:
            self._send_message(_make_setup_message(limits, views, scratch, sandboxed))
        except BaseException:
            self.close()
            raise

    @cached_property
    def protections(self) -> tuple[str, ...]:
        """The names of the protections in force; waits until the process is ready.

        Raises:
            WarmProcessLost: it did not start; the text says why.
        """
        try:
            answer = self._receive_answer(_SECONDS_TO_START)
            if "refused" in answer:
                raise WarmProcessLost(f"no sandbox can be set up here: {answer['refused']}")
        except BaseException:
            self.is_lost = True
            self.close()
            raise
        return tuple(answer["protections"])

    def fork(
        self,
        channel: socket.socket,
        view: Path | None,
        limits: Limits,
        packages_used: Sequence[str] | None,
        withheld: str = "",
    ) -> int:
        """Make a child that talks over ``channel``, and give its number; the one before it is ended.

        Args:
            channel: the child's end.
            view: the folder of packages that it may read.
            limits: what it may use.
            packages_used: those that the first child waits for, as :mod:`worker.preload` names them; None: all of them.
            withheld: what cannot be computed there, as :mod:`worker.withheld` has it.
        """
        message = {
            "do": "fork",
            "packages_used": None if packages_used is None else list(packages_used),
            "view": str(view) if view else None,
            "limits": asdict(limits),
            "withheld": withheld,
            "packages": [read_package_name(), __name__.partition(".")[0]],
            "records": dict(course().records),
            "training_fixtures": list(course().training_fixtures),
        }
        self._send_message(message, [channel.fileno()])
        number: int = self._receive_answer(_SECONDS_TO_START)["forked"]
        return number

    def end_child(self, number: int, patience: float = 0.0) -> tuple[int | None, bool]:
        """End the child of that number, leaving it ``patience`` seconds to end by itself.

        Returns:
            its exit status, minus a signal's number, or None when it was gone before; whether it ended by itself.
        """
        self._send_message({"do": "end", "child": number, "patience": patience})
        reply = self._receive_answer(_SECONDS_TO_OBEY + patience)
        self.is_lost |= reply.get("clean") is False  # the next child must not see what this one left
        return reply["ended"], bool(reply.get("by_itself"))

    def ask_queued_seconds(self, number: int) -> float:
        """Seconds for which the child of that number has stood in line for a core; 0 where nobody knows."""
        self._send_message({"do": "waited", "child": number})
        return float(self._receive_answer(_SECONDS_TO_OBEY)["waited"])

    def interrupt(self, number: int) -> None:
        """Stop the cell that runs in the child of that number: see :func:`worker.bounds.time_limit`."""
        self._send_message({"do": "interrupt", "child": number})
        self._receive_answer(_SECONDS_TO_OBEY)

    def close(self) -> None:
        """End it and its child."""
        self._control.close()
        try:
            self._process.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        shutil.rmtree(self._home.name, ignore_errors=True)
        self._home.cleanup()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _send_message(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        data = json.dumps(message).encode()
        try:
            socket.send_fds(self._control, [data], list(descriptors))
        except OSError:
            raise self._make_end_error() from None

    def _receive_answer(self, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        while not poller.poll(max(0, int((deadline - time.monotonic()) * 1000))):
            if time.monotonic() > deadline:
                self.is_lost = True
                raise WarmProcessLost("the warm process does not answer")
        try:
            data = self._control.recv(fork_server.MESSAGE_BYTES)
        except OSError:
            data = b""
        if not data:
            raise self._make_end_error()
        answer: dict[str, Any] = json.loads(data)
        return answer

    def _make_end_error(self) -> WarmProcessLost:
        self.is_lost = True
        stderr = self._complaints.read_text(errors="replace").strip() if self._complaints.exists() else ""
        return WarmProcessLost(f"the warm process ended: {stderr[-_WORDS_OF_FAILURE:]}".rstrip(": "))


def remove_abandoned_homes() -> None:
    """Remove the folders that judges of this account have left in the folder for temporary files: they were killed.

    A judge holds a lock on its own folder for as long as it lives; one that is young may have none yet.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_HOME}*"):
        with suppress(OSError):
            facts = folder.lstat()
            if facts.st_uid == os.getuid() and time.time() - facts.st_mtime > _YOUNG_SECONDS:
                lock = _try_to_lock_folder(folder)
                if lock is not None:
                    clear_folder(str(folder))
                    folder.rmdir()
                    os.close(lock)


def _try_to_lock_folder(folder: Path) -> int | None:
    """A descriptor that holds the lock on a folder; None: another process holds it, or it can have none."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _make_setup_message(limits: Limits, views: Sequence[Path], scratch: Path, sandboxed: bool) -> dict[str, Any]:
    gpu = limits.device.startswith("cuda")
    own = [*readable_paths.list_readable_paths([read_package_name()]), _HERE / "worker"]
    own += readable_paths.list_gpu_readable_paths() if gpu else ()
    return {
        "packages": [str(folder) for folder in readable_paths.list_package_folders()],
        "readable": [str(path) for path in own],
        "listable": [str(path) for path in readable_paths.list_listable_folders()],
        "views": [str(view) for view in views],
        "scratch": str(scratch),
        "confined": sandboxed,
        "namespaces": True,
        "device": limits.device,
        "devices": [str(path) for path in readable_paths.list_gpu_devices()] if gpu else [],
        "scratch_bytes": limits.scratch_bytes,
    }


def _launch_process(control: int, scratch: Path, complaints: int, device: str) -> subprocess.Popen[bytes]:
    environment = {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "TORCHDYNAMO_DISABLE": "1",
        "PYTORCH_JIT": "0",  # scripted functions run as Python, where what they call is seen
        "PYTHONHASHSEED": "0",
    }
    if device.startswith("cuda"):
        environment |= {name: os.environ[name] for name in _FOR_CUDA if name in os.environ}
        environment["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # asking whether there is a GPU must not initialize CUDA
    else:
        environment["CUDA_VISIBLE_DEVICES"] = ""  # else torch makes threads for GPUs, which no fork survives
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", "-c", _START.format(home=str(_HERE), number=control)],
        env=environment,
        cwd=scratch,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=complaints,
        pass_fds=(control,),
        start_new_session=True,
    )
