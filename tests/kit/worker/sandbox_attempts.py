"""A warm process for test_policy.py: forks, confines, tries one thing in each child, and prints what came of it.

Called with JSON: uid (become this user first, or null), namespaces, scratch, and the places of things that the test
watches from outside. Everything is imported before the user changes, for that user may see no Python at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import fcntl
import importlib
import io
import json
import mmap
import multiprocessing
import os
import platform
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import numpy as np
import safetensors.torch
import torch
import torch._dynamo  # the first step of an optimizer imports it
import torch.utils.checkpoint
import torch.utils.data
from matplotlib import pyplot

from exercise_kit.worker import policy, readable_paths
from exercise_kit.worker.linux import LIBC, prctl, syscall
from exercise_kit.worker.namespaces import clear_folder

PLACES: dict[str, str] = json.loads(sys.argv[1]) if __name__ == "__main__" else {}
TEMPORARY = tempfile.gettempdir()
ARM = platform.machine() == "aarch64"
ATTEMPTS: dict[str, Callable[[], Any]] = {}


def register_attempt(function: Callable[[], Any]) -> Callable[[], Any]:
    ATTEMPTS[function.__name__] = function
    return function


def register_attempts(**functions: Callable[[], Any]) -> None:
    ATTEMPTS.update(functions)


def write(path: str, text: str = "changed") -> int:
    return Path(path).write_text(text)


def connect(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def make_socket_pair() -> tuple[socket.socket, socket.socket]:
    """As the judge's channel is one."""
    return socket.socketpair()


def ptrace_parent() -> int:
    return syscall(117 if ARM else 101, 16, os.getppid(), 0, 0)  # PTRACE_ATTACH


def outside() -> int:
    return int(PLACES["bystander"])


# refused with EPERM by seccomp
REFUSED = {
    "fork": os.fork,
    "execute": lambda: os.execv("/bin/true", ["true"]),
    "internet": lambda: socket.socket().connect(("127.0.0.1", 80)),
    "unix_socket": lambda: connect(PLACES["socket"]),
    "datagram_pair": lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM),
    "kill_parent": lambda: os.kill(os.getppid(), signal.SIGKILL),
    "kill_everybody": lambda: os.kill(-1, 0),
    "kill_group": lambda: os.killpg(0, signal.SIGKILL),
    "kill_bystander": lambda: os.kill(outside(), signal.SIGKILL),
    "ptrace": ptrace_parent,
    "limit_of_parent": lambda: resource.prlimit(os.getppid() or 1, resource.RLIMIT_CPU, (1, 1)),
    "memory_file": lambda: os.memfd_create("x"),
    "shared_memory": lambda: syscall(194 if ARM else 29, 0, 4096, 0o1600),
    "message_queue": lambda: syscall(186 if ARM else 68, 0, 0o1600),
    "unshare": lambda: syscall(97 if ARM else 272, 0x10000000),
    "mount": lambda: syscall(40 if ARM else 165, b"none", b"/student", b"tmpfs", 0, 0),
    "unmount": lambda: syscall(39 if ARM else 166, b"/student", 2),
    "chroot": lambda: os.chroot("/"),
    "change_mode": lambda: os.chmod(PLACES["own"], 0o777),
    "change_times": lambda: os.utime(PLACES["own"], (1, 1)),
    "change_owner": lambda: os.chown(PLACES["own"], 1, 1),
    "change_attribute": lambda: os.setxattr(PLACES["own"], "user.x", b"1"),
    "shorten": lambda: os.truncate(PLACES["own"], 0),
    "become_root": lambda: os.setuid(0),
    "change_groups": lambda: os.setgroups([0]),
    "bpf": lambda: syscall(280 if ARM else 321, 0, 0, 0),
    "io_uring": lambda: syscall(425, 1, 0),
    "user_faults": lambda: syscall(282 if ARM else 323, 0),
    "performance_events": lambda: syscall(241 if ARM else 298, 0, 0, -1, -1, 0),
    "keys": lambda: syscall(219 if ARM else 250, 0, 0),
    "read_memory_of_parent": lambda: syscall(270 if ARM else 310, os.getppid() or 1, 0, 0, 0, 0, 0),
    "watch_process": lambda: os.pidfd_open(os.getpid()),
    "priority": lambda: os.setpriority(os.PRIO_PROCESS, os.getppid() or 1, 19),
    "processors_of_parent": lambda: os.sched_setaffinity(os.getppid() or 1, {0}),
    "owner_of_signals": lambda: fcntl.fcntl(0, fcntl.F_SETOWN, outside()),
    "live_on": lambda: prctl(1, 0),
    "be_dumped": lambda: prctl(4, 1),
    "clock": lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()),
    "host_name": lambda: socket.sethostname("mine"),
    "node": lambda: os.mknod("node"),
    # calls that a list of forbidden ones had left open
    "splice": lambda: os.splice(0, 0, 1),
    "give_pages": lambda: syscall(75 if ARM else 278, 0, 0, 0, 0),
    "place_memory": lambda: syscall(235 if ARM else 237, 0, 0, 0, 0, 0, 0),
    "lock_file": lambda: fcntl.flock(0, fcntl.LOCK_SH),
    "lock_memory": lambda: syscall(228 if ARM else 149, 0, 0),
    "receive_descriptors": lambda: socket.recv_fds(make_socket_pair()[0], 1, 1),
    "pass_descriptors": lambda: socket.send_fds(make_socket_pair()[0], [b"x"], [0]),
    "out_of_band": lambda: make_socket_pair()[0].send(b"x", socket.MSG_OOB),
    "receive_out_of_band": lambda: make_socket_pair()[0].recv(1, socket.MSG_OOB | socket.MSG_DONTWAIT),
    "pidfd_of_the_other_end": lambda: make_socket_pair()[0].getsockopt(socket.SOL_SOCKET, 77),
    "credentials_of_the_other_end": lambda: make_socket_pair()[0].getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12),
    "pass_credentials": lambda: make_socket_pair()[0].setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1),
    "size_of_buffer": lambda: make_socket_pair()[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 26),
    "socket_by_ioctl": lambda: fcntl.ioctl(
        make_socket_pair()[0], 0x8901, os.getppid().to_bytes(4, "little")
    ),  # FIOSETOWN
    "file_behind_socket": lambda: fcntl.ioctl(make_socket_pair()[0], 0x89E0),  # SIOCUNIXFILE
    "type_into_terminal": lambda: fcntl.ioctl(0, 0x5412, b"x"),  # TIOCSTI
    "async_signals": lambda: fcntl.fcntl(make_socket_pair()[0], fcntl.F_SETFL, os.O_ASYNC),
    "lease": lambda: fcntl.fcntl(0, fcntl.F_SETLEASE, fcntl.F_RDLCK),
    "notices": lambda: fcntl.fcntl(0, fcntl.F_NOTIFY, fcntl.DN_ACCESS),
    "large_pipe": lambda: fcntl.fcntl(os.pipe()[1], 1031, 1 << 20),
    "thread_with_pidfd": lambda: syscall(220 if ARM else 56, 0x3D0F00 | 0x1000, 0, 0, 0, 0),
    "thread_in_namespaces": lambda: syscall(220 if ARM else 56, 0x3D0F00 | 0x10000000, 0, 0, 0, 0),
    "personality": lambda: syscall(92 if ARM else 135, 0x0040000),
    "descriptor_of_process": lambda: syscall(438, 0, 0, 0),
    "secret_memory": lambda: syscall(447, 0),
    "timer": lambda: syscall(107 if ARM else 222, 0, 0, 0),
    "own_filter": lambda: syscall(277 if ARM else 317, 1, 0, 0),
    "hold_files_in_cache": lambda: syscall(451, 0, 0, 0, 0),
}

# refused by Landlock, or not there
SHUT = {
    "read_passwords": lambda: Path("/etc/passwd").read_text(),
    "read_secret": lambda: Path(PLACES["secret"]).read_text(),
    "read_other_view": lambda: (Path(PLACES["other_view"]) / "answer.py").read_text(),
    "read_process": lambda: Path("/proc/self/environ").read_bytes(),
    "read_memory_of_process": lambda: Path("/proc/1/maps").read_bytes(),
    "list_root": lambda: os.listdir("/"),
    "list_home": lambda: os.listdir(PLACES["home"]),
    "write_readable": lambda: write(PLACES["own"]),
    "write_beside": lambda: write(PLACES["own"] + ".new"),
    "write_temp": lambda: write(f"{TEMPORARY}/vit_course_test"),
    "write_home": lambda: write(PLACES["home"] + "/new"),
    "make_folder": lambda: os.mkdir(str(Path(PLACES["own"]).parent / "new")),
    "remove": lambda: os.remove(PLACES["own"]),
    "rename": lambda: os.rename(PLACES["own"], PLACES["own"] + ".moved"),
    "link_into_scratch": lambda: os.link(PLACES["own"], "linked"),
    "make_pipe": lambda: os.mkfifo("pipe"),
}

register_attempts(
    **REFUSED,
    **SHUT,
    run_program=lambda: subprocess.run(["true"], check=False),
    clone3=lambda: syscall(435, 0, 0),
    call_of_the_future=lambda: syscall(5000),
    other_architecture=lambda: LIBC.syscall(ctypes.c_long(0x40000000 + 39)),
    four_gigabytes=lambda: torch.ones(1 << 30).sum().item(),
    four_gigabytes_of_bytes=lambda: len(bytearray(1 << 32)),
)


@register_attempt
def symlink_out() -> str:
    os.symlink(PLACES["secret"], "secret_link")
    return Path("secret_link").read_text()


@register_attempt
def endless_loop() -> None:
    while True:
        pass


@register_attempt
def endless_loop_that_will_not_stop() -> None:
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    while True:
        pass


@register_attempt
def ten_thousand_threads() -> int:
    threading.stack_size(32768)
    hold = threading.Event()
    started = 0
    try:
        for _ in range(10_000):
            threading.Thread(target=hold.wait, daemon=True).start()
            started += 1
    except RuntimeError:
        pass
    return started


def fill_disk(write_some: Callable[[int], object]) -> list[int]:
    """Count how often 4 MB could be written, and the errno at the end; stays until it is ended where nothing did."""
    for number in range(40):
        try:
            write_some(number)
        except OSError as error:
            return [number, error.errno or 0]
    time.sleep(20)
    return [40, 0]


@register_attempt
def fill_scratch() -> list[int]:
    return fill_disk(lambda number: Path(f"big{number}").write_bytes(bytes(4 << 20)))


@register_attempt
def fill_scratch_deep_down() -> list[int]:
    def down(number: int) -> None:
        os.mkdir("down")
        os.chdir("down")
        Path("big").write_bytes(bytes(4 << 20))

    return fill_disk(down)


@register_attempt
def fill_scratch_without_names() -> list[int]:
    held = []

    def nameless(number: int) -> None:
        held.append(os.open("nameless", os.O_CREAT | os.O_RDWR))
        os.unlink("nameless")
        if os.write(held[-1], bytes(4 << 20)) < 4 << 20:
            raise OSError(errno.ENOSPC, "half of it")

    return fill_disk(nameless)


@register_attempt
def fill_scratch_behind_mappings() -> list[int]:
    held = []

    def map_nameless(number: int) -> None:
        with open("mapped", "w+b") as file:
            file.write(bytes(4 << 20))
            file.flush()
            held.append(mmap.mmap(file.fileno(), mmap.PAGESIZE))
        os.unlink("mapped")

    return fill_disk(map_nameless)


@register_attempt
def fill_scratch_out_of_sight() -> list[int]:
    os.mkdir("unlisted", 0o300)
    return fill_disk(lambda number: Path(f"unlisted/{number}").write_bytes(bytes(4 << 20)))


@register_attempt
def many_files() -> list[int]:
    return fill_disk(lambda number: [Path(f"{number}-{each}").touch() for each in range(250)])


@register_attempt
def work_with_files() -> int:
    """As much as honest code does: a few files, one of them without a name, one mapped, over and over."""
    for _ in range(30):
        Path("weights").write_bytes(bytes(20 << 20))
        os.replace("weights", "kept")
        with tempfile.TemporaryFile(dir=".") as file, tempfile.TemporaryDirectory(dir=".") as folder:
            file.write(bytes(4 << 20))
            Path(folder, "mapped").write_bytes(bytes(4 << 20))
            mapped = np.memmap(Path(folder, "mapped"), mode="r")
            os.remove(Path(folder, "mapped"))
            assert mapped.sum() == 0
    return Path("kept").stat().st_size


@register_attempt
def one_big_file() -> None:
    with open("big", "wb") as file:
        for _ in range(40):
            file.write(bytes(1 << 20))


@register_attempt
def open_descriptors() -> list[int]:
    found = []
    for descriptor in range(1024):
        try:
            os.fstat(descriptor)
        except OSError:
            continue
        found.append(descriptor)
    return found


@register_attempt
def who_am_i() -> dict[str, Any]:
    sets = ctypes.create_string_buffer(24)
    head = ctypes.create_string_buffer((0x20080522).to_bytes(4, "little") + bytes(4), 8)
    syscall(90 if ARM else 125, head, sets)
    null = os.stat("/dev/null").st_rdev
    return {
        "uid": os.getuid(),
        "capabilities": any(sets.raw),
        "bounding": sum(prctl(23, number) for number in range(40)),
        "parent": os.getppid(),
        "folder": os.getcwd(),
        "leader": os.getsid(0) == os.getpid(),
        "null": [os.fstat(descriptor).st_rdev == null for descriptor in range(3)],
    }


@register_attempt
def train() -> bool:
    layer = torch.nn.Linear(4, 1)
    optimiser = torch.optim.AdamW(layer.parameters())
    before = layer.weight.detach().clone()
    layer(torch.ones(3, 4)).sum().backward()
    optimiser.step()
    return not torch.equal(before, layer.weight)


@register_attempt
def save_and_load() -> bool:
    torch.save({"weight": torch.ones(3)}, "weights.pt")
    loaded = torch.load("weights.pt")
    return bool(torch.equal(loaded["weight"], torch.ones(3)))


@register_attempt
def draw() -> int:
    figure, axes = pyplot.subplots()
    axes.plot([1, 2], [3, 4])
    axes.set_title("A title with letters: é ß")
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return len(picture.getvalue())


@register_attempt
def thread() -> list[int]:
    done: list[int] = []
    threads = [threading.Thread(target=done.append, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sorted(done)


@register_attempt
def random_bytes() -> int:
    with open("/dev/urandom", "rb") as device:
        return len(device.read(8))


@register_attempt
def wait_for_coroutine() -> int:
    async def seven() -> int:
        await asyncio.sleep(0)
        return 7

    return asyncio.run(seven())


@register_attempt
def call_of_a_32_bit_program() -> int:
    """getpid as i386 makes it: the interrupt 0x80."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    place = ctypes.addressof(ctypes.c_char.from_buffer(code))
    return int(ctypes.CFUNCTYPE(ctypes.c_int)(place)())


@register_attempt
def talk_to_myself() -> list[object]:
    """What asyncio and multiprocessing do with a pair of sockets and a pipe."""
    one, other = make_socket_pair()
    one.setblocking(False)
    one.send(b"abc")
    received = other.recv(2, socket.MSG_PEEK) + other.recv(3)
    reader, writer = multiprocessing.Pipe()
    writer.send({"a": 1})
    return [received.decode(), one.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE), reader.recv()]


@register_attempt
def keep_a_database() -> list[object]:
    """sqlite locks parts of its file."""
    with contextlib.closing(sqlite3.connect("kept.db")) as kept, kept:
        kept.execute("create table rows (x)")
        kept.execute("insert into rows values (7)")
        return list(kept.execute("select x from rows").fetchone())


@register_attempt
def copy_a_file() -> str:
    Path("here.txt").write_text("text")
    shutil.copyfile("here.txt", "there.txt")
    os.replace("there.txt", "moved.txt")
    with tempfile.TemporaryDirectory(dir=".") as folder, tempfile.NamedTemporaryFile(dir=folder) as file:
        file.write(Path("moved.txt").read_bytes())
        file.flush()
        return Path(file.name).read_text()


@register_attempt
def train_with_threads() -> bool:
    """Several threads of torch, a scripted function, a loader in this process, a checkpointed block."""
    torch.set_num_threads(2)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten(), torch.nn.LazyLinear(2))
    images, labels = torch.rand(32, 3, 16, 16), torch.zeros(32, dtype=torch.long)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images, labels), batch_size=8, shuffle=True)
    scripted = torch.jit.script(_import_double())
    for batch, targets in loader:
        found = torch.utils.checkpoint.checkpoint(model, scripted(batch), use_reentrant=False)
        torch.nn.functional.cross_entropy(found, targets).backward()
    return bool(torch.isfinite(torch.linalg.svd(torch.rand(64, 64))[1]).all())


def _import_double() -> Callable[[torch.Tensor], torch.Tensor]:
    """A function whose source can be read, in a world that has no such file as this one."""
    Path("doubled.py").write_text("from torch import Tensor\ndef doubled(x: Tensor) -> Tensor:\n    return x * 2\n")
    sys.path.insert(0, os.getcwd())
    return importlib.import_module("doubled").doubled


@register_attempt
def store_weights() -> bool:
    safetensors.torch.save_file({"weight": torch.arange(4.0)}, "weights.safetensors")
    mapped = np.lib.format.open_memmap("array.npy", mode="w+", dtype="float32", shape=(4,))
    mapped[:] = safetensors.torch.load_file("weights.safetensors")["weight"].numpy()
    mapped.flush()
    torch.save({"weight": torch.from_numpy(np.array(mapped))}, "again.pt")
    return bool(torch.load("again.pt", mmap=True)["weight"].sum() == 6)


register_attempts(
    read_package=lambda: "numpy" in Path(np.__file__).read_text(),
    read_view=lambda: (Path(PLACES["view"]) / "given.py").read_text(),
    read_own=lambda: Path(PLACES["own"]).read_text(),
    write_null=lambda: write("/dev/null"),
    interrupt_myself=lambda: os.kill(os.getpid(), signal.SIGTERM),
)


def run_in_confined_child(sandbox_policy: policy.SandboxPolicy, function: Callable[[], Any]) -> dict[str, Any]:
    """Run one attempt in a confined child: its value, or error and errno; and how the child ended."""
    answer, reply = os.pipe()
    child = os.fork()
    if child == 0:
        bounds = policy.Bounds(1 << 30, cpu_seconds=1 if "endless" in function.__name__ else 20, file_bytes=32 << 20)
        policy.apply_policy(sandbox_policy, bounds, keep=[reply], view=Path(PLACES["view"]))
        try:
            came = {"value": function()}
        except BaseException as error:
            came = {"error": type(error).__name__, "errno": getattr(error, "errno", None), "words": str(error)}
        os.write(reply, json.dumps(came).encode())
        os._exit(0)
    os.close(reply)
    watcher = policy.start_scratch_watcher(sandbox_policy, child)
    with open(answer, "rb") as pipe:
        text = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    watched = os.waitstatus_to_exitcode(os.waitpid(watcher, 0)[1]) if watcher else None
    assert clear_folder(str(sandbox_policy.scratch))
    return {"exit": status, "watched": watched, **json.loads(text or b"{}")}


def main() -> None:
    torch.set_num_threads(1)
    draw()  # finds its fonts
    paths, folders = readable_paths.list_readable_paths(), readable_paths.list_listable_folders()
    if PLACES["uid"] is not None:
        user = int(PLACES["uid"])
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    sandbox_policy = policy.prepare_policy(
        [*paths, Path(PLACES["own"]).parent],
        folders,
        [Path(PLACES["view"]), Path(PLACES["other_view"])],
        scratch_bytes=64 << 20,
        scratch=Path(PLACES["scratch"]),
        namespaces_wanted=bool(PLACES["namespaces"]),
    )
    results = {name: run_in_confined_child(sandbox_policy, attempt) for name, attempt in ATTEMPTS.items()}
    print(
        json.dumps(
            {
                "names": sandbox_policy.names,
                "scratch": str(sandbox_policy.scratch),
                "pid": os.getpid(),
                "results": results,
            }
        )
    )


if __name__ == "__main__":
    main()
