"""Which part of the sandbox keeps CUDA from starting: a child for each part left out, each call and folder allowed.

    python benchmarks/gpu_sandbox.py [cuda:0]

Run where `vit-course grade --device cuda` fails in the sandbox and succeeds with --no-sandbox.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from exercise_kit.sandbox import warm_process
from exercise_kit.sandbox.limits import Limits
from exercise_kit.worker import device, policy, readable_paths, seccomp
from exercise_kit.worker.bounds import Bounds

PARTS = ("apply_process_limits", "drop_privileges", "restrict_files", "restrict_calls", "prctl", "die_with_parent")
# what CUDA's libraries are known to ask of a kernel beyond other programs; x86-64's numbers
CALLS = {
    "mincore": 27,
    "socket and connect": (41, 42),
    "memfd_create": 319,
    "mlock": (149, 151, 325),
    "memory policy": (237, 238, 239, 256, 279),
    "sched_setscheduler": (142, 144, 314, 315),
    "pidfd_open": 434,
    "process_vm_readv": 310,
    "perf_event_open": 298,
    "fork and exec": (57, 58, 59),
    "chmod and mknod": (90, 91, 133, 259, 268),
    "shared memory": (29, 30, 31, 67),
    "userfaultfd": 323,
    "setpriority": 141,
    "personality": 135,
}

FOLDERS = ("/proc", "/sys", "/dev", "/etc", "/run", "/tmp", "/usr", "/opt", "/var", "/")


def prepare_policy(scratch: Path, *more: str) -> policy.SandboxPolicy:
    """The policy that graders have for a GPU; more folders may be read."""
    setup = warm_process._make_setup_message(Limits().on("cuda:0"), [], scratch, True)
    return policy.prepare_policy(
        [Path(path) for path in (*setup["readable"], *more)],
        [Path(path) for path in setup["listable"]],
        [],
        scratch_bytes=setup["scratch_bytes"],
        scratch=scratch,
        devices=readable_paths.list_gpu_devices() or [Path(os.devnull)],
    )


def try_in_child(prepared: policy.SandboxPolicy, name: str, prepare: Callable[[], None]) -> bool:
    """Start the device in a child under the policy, changed by `prepare`; print how that went."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        words = b"started"
        try:
            prepare()
            bounds = Bounds(memory_bytes=1 << 30, cpu_seconds=60, file_bytes=64 << 20, gpu=True)
            policy.apply_policy(prepared, bounds, [writing])
            device.start_device(sys.argv[1] if len(sys.argv) > 1 else "cuda:0")
        except BaseException as error:
            words = f"{type(error).__name__}: {error}".strip().splitlines()[0][:300].encode()
        os.write(writing, words)
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as said:
        words = said.read().decode()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(f"{name:36} {words or f'ended with status {status}'}", flush=True)
    return words == "started"


def leave_out(*parts: str) -> None:
    """Let these parts of the policy do nothing in this process."""
    for part in parts:
        setattr(policy, part, lambda *_, **__: None)


def allow_calls(numbers: tuple[int, ...]) -> None:
    """Let the filter of this process pass more calls."""
    seccomp.ALLOWED |= {f"call {number}": seccomp.Number(number, None) for number in numbers}


def list_calls() -> dict[str, tuple[int, ...]]:
    return {name: numbers if isinstance(numbers, tuple) else (numbers,) for name, numbers in CALLS.items()}


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        prepared = prepare_policy(Path(scratch))
        if try_in_child(prepared, "the whole sandbox", lambda: None):
            return
        for part in PARTS:
            try_in_child(prepared, f"without {part}", lambda: leave_out(part))  # noqa: B023
            try_in_child(
                prepared,
                f"{part} alone",
                lambda: leave_out(*(each for each in PARTS if each != part)),  # noqa: B023
            )
        every = tuple(number for numbers in list_calls().values() for number in numbers)
        try_in_child(prepared, "all calls below allowed", lambda: allow_calls(every))
        for name, numbers in list_calls().items():
            try_in_child(prepared, f"{name} allowed", lambda: allow_calls(numbers))  # noqa: B023
        for folder in FOLDERS:
            try_in_child(prepare_policy(Path(scratch), folder), f"{folder} may be read", lambda: None)


if __name__ == "__main__":
    main()
