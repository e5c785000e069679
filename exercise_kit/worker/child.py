"""A child: one submission's process, from the fork to its end."""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

from . import audit, policy, requests
from . import device as compute
from .call_trace import Watch
from .limits import BROKEN, OUT_OF_MEMORY, Bounds
from .syscalls import die_with
from .wire import Closed, Wire, WireError


def live(
    readable: list[str], shell: Any, channel: int, scratch: str, fence: policy.Fence | None, asked: dict[str, Any]
) -> NoReturn:
    """Apply this child's sandbox policy, then answer the judge until it hangs up."""
    status = BROKEN
    try:
        _enclose(channel, scratch, fence, asked)
        if asked["view"]:
            sys.path.insert(0, asked["view"])
            for module in asked["records"].values():  # before a student's cell can change what imports
                importlib.import_module(module)
            importlib.import_module("exercise_kit.engine.training_fixtures").add(asked["practices"])
        noticed = audit.watch_attempts([*readable, *sys.path, scratch])
        os.register_at_fork(after_in_child=lambda: os.close(channel))  # only this process answers
        wire = Wire(channel, patient=True)
        device = compute.started(asked["device"])
        wire.send({"ready": True})
        watch = Watch(asked["view"], asked["packages"])
        requests.Answers(wire, shell, noticed, watch, asked["limits"], device, asked["records"]).serve()
    except (Closed, WireError):
        status = 0
    except MemoryError:
        status = OUT_OF_MEMORY
    except BaseException:
        traceback.print_exc()  # visible as long as the sandbox is not in place
    finally:
        os._exit(status)


def _enclose(channel: int, scratch: str, fence: policy.Fence | None, asked: dict[str, Any]) -> None:
    limits = asked["limits"]
    if fence is None:
        parent = os.getppid()
        os.setsid()
        os.chdir(scratch)
        with contextlib.suppress(OSError, AttributeError):
            die_with(parent)
        _keep_only(channel)
        return
    bounds = Bounds(
        memory_bytes=limits["memory_bytes"],
        cpu_seconds=math.ceil(limits["total_seconds"]),
        file_bytes=limits["scratch_bytes"],
        gpu=fence.gpu,
    )
    policy.confine(fence, bounds, [channel], Path(asked["view"]) if asked["view"] else None)


def _keep_only(channel: int) -> None:
    """Close every descriptor but ``channel``; nothing can be read, and what is printed goes nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.closerange(3, channel)
    os.closerange(channel + 1, os.sysconf("SC_OPEN_MAX"))
