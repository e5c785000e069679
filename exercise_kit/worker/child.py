"""A child: one submission's process, from the fork to its end."""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from . import attempts, outputs, policy, requests, withheld
from . import device as compute
from .bounds import BROKEN, OUT_OF_MEMORY, Bounds
from .linux import die_with_parent
from .wire import Closed, Wire, WireError

MOST_WORDS = 300  # characters of an error


def serve_until_closed(
    readable: list[str],
    shell: Any,
    channel: int,
    scratch: str,
    sandbox_policy: policy.SandboxPolicy | None,
    request: dict[str, Any],
) -> NoReturn:
    """Apply this child's sandbox policy, then answer the judge until it hangs up."""
    status = BROKEN
    wire = Wire(channel, blocking=True)
    try:
        with _report_setup_error(wire):
            _apply_sandbox(channel, scratch, sandbox_policy, request)
            _import_course(request)
            noticed = attempts.watch_attempts([*readable, *sys.path, scratch])
            os.register_at_fork(after_in_child=lambda: os.close(channel))  # only this process answers
            device = compute.start_device(request["limits"]["device"])
        wire.send({"ready": True})
        requests.RequestServer(wire, shell, noticed, request["limits"], device, request["records"]).serve()
    except (Closed, WireError):
        status = 0
    except MemoryError:
        status = OUT_OF_MEMORY
    except BaseException:
        traceback.print_exc()  # visible as long as the sandbox is not in place
    finally:
        os._exit(status)


@contextlib.contextmanager
def _report_setup_error(wire: Wire) -> Iterator[None]:
    """Send the judge the error that keeps this child from being ready, which no student's code has touched."""
    try:
        yield
    except Exception as error:
        first = (str(error).strip() or "no words").splitlines()[0]
        wire.send({"failed": f"{type(error).__name__}: {first[:MOST_WORDS]}"})
        raise


def _import_course(request: dict[str, Any]) -> None:
    """Import what a submission may use of the course, before a student's cell can change what imports."""
    outputs.set_shown_packages(request["packages"])
    if request["view"]:
        sys.path.insert(0, request["view"])
        for module in request["records"].values():
            importlib.import_module(module)
        importlib.import_module("exercise_kit.engine.training_fixtures").add_fixtures(request["training_fixtures"])
    if request["withheld"]:
        withheld.withhold(request["withheld"])


def _apply_sandbox(
    channel: int, scratch: str, sandbox_policy: policy.SandboxPolicy | None, request: dict[str, Any]
) -> None:
    limits = request["limits"]
    if sandbox_policy is None:
        parent = os.getppid()
        os.setsid()
        os.chdir(scratch)
        with contextlib.suppress(OSError, AttributeError):
            die_with_parent(parent)
        _close_other_descriptors(channel)
        return
    bounds = Bounds(
        memory_bytes=limits["memory_bytes"],
        cpu_seconds=math.ceil(limits["total_seconds"] + limits["start_seconds"] * sandbox_policy.gpu),
        file_bytes=limits["scratch_bytes"],
        gpu=sandbox_policy.gpu,
    )
    policy.apply_policy(sandbox_policy, bounds, [channel], Path(request["view"]) if request["view"] else None)


def _close_other_descriptors(channel: int) -> None:
    """Close every descriptor but ``channel``; nothing can be read, and what is printed goes nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.closerange(3, channel)
    os.closerange(channel + 1, os.sysconf("SC_OPEN_MAX"))
