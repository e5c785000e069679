"""What a confined child can and cannot do: as root and as an ordinary user, with and without namespaces."""

from __future__ import annotations

import ast
import ctypes
import errno
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from exercise_kit.worker import bounds, policy
from exercise_kit.worker.linux import ProtectionError
from tests.machine import CAPABILITIES, needs_sandbox
from tests.waiting import GIVE_UP

WARM = Path(__file__).with_name("sandbox_attempts.py")
NOBODY = 65534
BOUNDS = policy.Bounds(memory_bytes=1 << 30, cpu_seconds=60, file_bytes=64 << 20)
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
SCENES = [
    *(pytest.param((user, "namespaces"), id=f"{user}-namespaces") for user in ("as_is", "nobody")),
    *(
        pytest.param((user, "no_namespaces"), id=f"{user}-no_namespaces", marks=pytest.mark.proof)
        for user in ("as_is", "nobody")
    ),
]


@dataclass
class Scene:
    """What came of every attempt under one configuration, and what the attempts were aimed at."""

    namespaces: bool
    uid: int | None
    said: dict[str, Any]
    own: Path
    before: os.stat_result
    listener: socket.socket
    bystander: subprocess.Popen[bytes]

    def __getitem__(self, name: str) -> dict[str, Any]:
        return self.said["results"][name]


@pytest.fixture(scope="module", params=SCENES)
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    user, world = request.param
    found = CAPABILITIES
    if not found.is_sufficient:
        pytest.skip(f"no sandbox here: {found.missing}")
    if world == "namespaces" and not found.namespaces:
        pytest.skip(found.missing["namespaces"])
    if user == "nobody" and not IS_ROOT:
        pytest.skip("only root can become another user")
    uid = NOBODY if user == "nobody" else None
    folder = Path(tempfile.mkdtemp())
    bystander = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        yield from _run_attempts(folder, uid, world == "namespaces", bystander)
    finally:
        bystander.kill()
        bystander.wait()
        shutil.rmtree(folder)


def _run_attempts(
    folder: Path, uid: int | None, namespaces: bool, bystander: subprocess.Popen[bytes]
) -> Iterator[Scene]:
    folder.chmod(0o755)
    for name in ("open", "scratch", "view", "other_view", "home"):
        (folder / name).mkdir()
    (folder / "open" / "own.txt").write_text("own")
    (folder / "secret.txt").write_text("secret")
    (folder / "view" / "given.py").write_text("given")
    (folder / "other_view" / "answer.py").write_text("answer")
    if uid is not None:
        for path in folder.rglob("*"):
            os.chown(path, uid, uid)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
        listener.listen()
        listener.setblocking(False)
        (folder / "socket").chmod(0o777)
        own = folder / "open" / "own.txt"
        places = {name: str(folder / name) for name in ("scratch", "view", "other_view", "home", "socket")}
        places |= {"own": str(own), "secret": str(folder / "secret.txt"), "bystander": str(bystander.pid)}
        before = own.stat()
        warm = subprocess.run(
            [sys.executable, str(WARM), json.dumps({**places, "uid": uid, "namespaces": namespaces})],
            capture_output=True,
            text=True,
            timeout=GIVE_UP,
            env={**os.environ, "MPLCONFIGDIR": str(folder / "matplotlib")},
        )
        assert warm.returncode == 0, warm.stderr
        yield Scene(namespaces, uid, json.loads(warm.stdout), own, before, listener, bystander)


def test_the_protections_are_those_that_were_requested(scene: Scene) -> None:
    expected = ["namespaces"] if scene.namespaces else []
    assert scene.said["names"] == [*expected, "landlock", "seccomp"]
    assert (scene.said["pid"] == 1) == scene.namespaces


def read_attempt_names(table: str) -> list[str]:
    """Of the attempts in a table of the warm process, which imports what no other process of the tests needs."""
    lines = ast.parse(WARM.read_text("utf-8")).body
    (found,) = (each.value for each in lines if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == table)
    assert isinstance(found, ast.Dict)
    return [each.value for each in found.keys if isinstance(each, ast.Constant)]


@pytest.mark.parametrize("name", read_attempt_names("REFUSED"))
def test_system_calls_that_reach_out_are_not_permitted(scene: Scene, name: str) -> None:
    assert scene[name].get("errno") == errno.EPERM, scene[name]
    assert scene[name]["exit"] == 0


def test_no_program_can_be_run(scene: Scene) -> None:
    assert scene["run_program"].get("error") in ("PermissionError", "FileNotFoundError", "BlockingIOError")


@pytest.mark.parametrize("name", [*read_attempt_names("SHUT"), "symlink_out"])
def test_files_outside_are_shut_or_not_there(scene: Scene, name: str) -> None:
    """Landlock answers EACCES (EXDEV for a link across folders); a world of its own has no such file."""
    answers = {errno.EACCES, errno.EXDEV, errno.EPERM}
    if scene.namespaces:
        answers |= {errno.ENOENT, errno.EROFS}
    assert scene[name].get("errno") in answers, scene[name]


def test_unknown_calls_are_unknown(scene: Scene) -> None:
    assert scene["clone3"]["errno"] == scene["call_of_the_future"]["errno"] == errno.ENOSYS


@pytest.mark.skipif("x86_64" not in os.uname().machine, reason="x32 is a part of x86_64")
def test_another_architecture_s_calls_kill(scene: Scene) -> None:
    assert scene["other_architecture"]["exit"] == -signal.SIGSYS
    assert scene["call_of_a_32_bit_program"]["exit"] == -signal.SIGSYS


def test_memory_processor_threads_and_disk_are_bounded(scene: Scene) -> None:
    assert scene["four_gigabytes"]["error"] == "RuntimeError"
    assert "allocate" in scene["four_gigabytes"]["words"]
    assert scene["four_gigabytes_of_bytes"]["error"] == "MemoryError"
    assert scene["endless_loop"]["exit"] == -signal.SIGXCPU
    assert scene["endless_loop_that_will_not_stop"]["exit"] == -signal.SIGKILL
    assert 10 < scene["ten_thousand_threads"]["value"] < 700
    assert scene["one_big_file"]["errno"] == errno.EFBIG


@pytest.mark.parametrize(
    "name",
    [
        "fill_scratch",
        "fill_scratch_deep_down",
        "fill_scratch_without_names",
        "fill_scratch_behind_mappings",
        "fill_scratch_out_of_sight",
        "many_files",
    ],
)
def test_the_scratch_folder_is_of_limited_size(scene: Scene, name: str) -> None:
    if scene.namespaces:
        written, number = scene[name]["value"]
        assert number == errno.ENOSPC
        assert written <= 17
    else:
        assert (scene[name]["exit"], scene[name]["watched"]) == (-signal.SIGKILL, bounds.TOO_MUCH)


def test_a_child_is_nobody_in_particular(scene: Scene) -> None:
    me = scene["who_am_i"]["value"]
    assert me["uid"] == (NOBODY if IS_ROOT else os.getuid())
    assert me["leader"]
    assert me["folder"] == scene.said["scratch"]
    assert me["null"] == [True, True, True]
    if scene.namespaces or scene.uid is not None:
        assert not me["capabilities"]
    if scene.namespaces:
        assert me["bounding"] == 0
        assert me["parent"] == 1


def test_no_descriptor_is_left_but_the_judge_s(scene: Scene) -> None:
    descriptors = scene["open_descriptors"]["value"]
    assert descriptors[:3] == [0, 1, 2]
    assert len(descriptors) == 4


WORKS = {
    "train": True,
    "save_and_load": True,
    "thread": [0, 1, 2, 3],
    "wait_for_coroutine": 7,
    "read_package": True,
    "read_view": "given",
    "read_own": "own",
    "write_null": 7,
    "random_bytes": 8,
    "talk_to_myself": ["ababc", 1, {"a": 1}],
    "keep_a_database": [7],
    "copy_a_file": "text",
    "train_with_threads": True,
    "store_weights": True,
    "work_with_files": 20 << 20,
}


@pytest.mark.parametrize("name", WORKS)
def test_honest_work_goes_on(scene: Scene, name: str) -> None:
    assert scene[name].get("value") == WORKS[name], scene[name]


def test_figures_are_drawn(scene: Scene) -> None:
    assert scene["draw"]["value"] > 1000


def test_a_child_may_end_itself(scene: Scene) -> None:
    assert scene["interrupt_myself"]["exit"] == -signal.SIGTERM


def test_nothing_outside_has_changed(scene: Scene) -> None:
    after = scene.own.stat()
    assert scene.own.read_text() == "own"
    assert (after.st_mode, after.st_mtime, after.st_uid) == (
        scene.before.st_mode,
        scene.before.st_mtime,
        scene.before.st_uid,
    )
    assert [path.name for path in scene.own.parent.iterdir()] == ["own.txt"]
    assert not list((scene.own.parents[1] / "home").iterdir())
    assert scene.bystander.poll() is None
    with pytest.raises(BlockingIOError):
        scene.listener.accept()


@needs_sandbox
@pytest.mark.parametrize("namespaces", [True, False])
def test_a_child_dies_with_its_warm_process(tmp_path: Path, namespaces: bool) -> None:
    answer, reply = os.pipe()
    warm = os.fork()
    if warm == 0:
        try:
            sandbox_policy = policy.prepare_policy([], [], scratch=tmp_path, namespaces_wanted=namespaces)
            if os.fork() == 0:
                policy.apply_policy(sandbox_policy, BOUNDS, keep=[reply])
                os.write(reply, b"up")
            time.sleep(60)
        finally:
            os._exit(1)
    os.close(reply)
    assert os.read(answer, 2) == b"up"
    os.kill(warm, signal.SIGKILL)
    os.waitpid(warm, 0)
    with open(answer, "rb") as pipe:
        assert pipe.read() == b""  # the last to hold the other end is gone


@needs_sandbox
def test_a_user_that_this_machine_does_not_have_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose users are only a few: root there is root in name, and stays itself."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "chown", refuse)
    assert policy.prepare_policy([], [], scratch=tmp_path, namespaces_wanted=False).uid is None


@needs_sandbox
def test_without_namespaces_a_scratch_folder_must_be_named() -> None:
    with pytest.raises(ProtectionError, match="no scratch folder is named"):
        policy.prepare_policy([], [], namespaces_wanted=False)


def _name_thread(process: str) -> None:
    """Name a thread as CUDA's driver does, one that began after the sandbox was in place."""
    came: list[OSError] = []

    def write_name() -> None:
        own = threading.get_native_id() if process == "self" else process
        try:
            os.write(os.open(f"/proc/{process}/task/{own}/comm", os.O_RDWR), b"cuda")
        except OSError as error:
            came.append(error)

    thread = threading.Thread(target=write_name)
    thread.start()
    thread.join()
    if came:
        raise came[0]


def _listen() -> str:
    """Bind and listen as CUDA's driver does, and look whom that lets in."""
    name = f"\0cuda-uvmfd-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(name)
        listener.listen()
        refused = []
        for act in (listener.accept, lambda: socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(name)):
            try:
                act()
            except OSError as error:
                refused.append(errno.errorcode[error.errno or 0])
    return ", ".join(refused)


def _try_with_device(reply: int) -> None:
    """Return what a child finds that may use /dev/full, as one with a GPU may use its devices."""
    came: dict[str, object] = {}
    for name, act in {
        "its device": lambda: os.close(os.open("/dev/full", os.O_RDWR)),
        "another device": lambda: os.open("/dev/tty", os.O_RDWR),
        "a driver's ioctl": lambda: fcntl.ioctl(reply, 0xC0484600),
        "typing into a terminal": lambda: fcntl.ioctl(reply, termios.TIOCSTI, b"x"),
        "addresses": lambda: ctypes.CDLL(None).mmap(None, ctypes.c_size_t(1 << 40), 0, 0x4022, -1, 0),
        "memory": lambda: len(bytearray(8 << 30)),
        "memory that is a file": lambda: os.close(os.memfd_create("cuda")),
        "a thread's name": lambda: _name_thread("self"),
        "another's name": lambda: _name_thread("1"),
        "another's memory": lambda: os.open("/proc/1/maps", os.O_RDONLY),
        "a socket's name": _listen,
        "a stream": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
        "the network": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
    }.items():
        try:
            came[name] = act()
        except (OSError, MemoryError) as error:
            came[name] = errno.errorcode[getattr(error, "errno", None) or errno.ENOMEM]
    os.write(reply, json.dumps(came).encode())


@needs_sandbox
def test_a_gpu_opens_its_own_devices_alone(tmp_path: Path) -> None:
    answer, reply = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            tmp_path.chmod(0o755)
            sandbox_policy = policy.prepare_policy([], [], scratch=tmp_path, devices=[Path("/dev/full")])
            policy.apply_policy(sandbox_policy, replace(BOUNDS, gpu=sandbox_policy.gpu), keep=[reply])
            _try_with_device(reply)
        finally:
            os._exit(0)
    os.close(reply)
    with open(answer, "rb") as pipe:
        came = json.loads(pipe.read())
    os.waitpid(child, 0)
    assert came.pop("addresses") != -1
    assert came.pop("another device") in ("EACCES", "ENXIO", "ENOENT")
    assert came.pop("another's name") == came.pop("another's memory") == "EACCES"
    assert came == {
        "its device": None,
        "a driver's ioctl": "ENOTTY",
        "typing into a terminal": "EPERM",
        "memory": "ENOMEM",
        "memory that is a file": None,
        "a thread's name": None,
        "a socket's name": "EPERM, EPERM",
        "a stream": "EPERM",
        "the network": "EPERM",
    }


@pytest.mark.skipif(not IS_ROOT or not CAPABILITIES.is_sufficient, reason="only root can become another user")
def test_without_landlock_a_gpu_is_used_as_another_user_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "read_landlock_version", lambda: 0)
    sandbox_policy = policy.prepare_policy([], [], scratch=tmp_path, devices=[Path("/dev/full")])
    assert (sandbox_policy.names, sandbox_policy.uid, sandbox_policy.capabilities) == (("seccomp",), NOBODY, 0)
    monkeypatch.setattr(policy, "can_change_user", lambda: False)
    with pytest.raises(ProtectionError, match="no Landlock"):
        policy.prepare_policy([], [], scratch=tmp_path, devices=[Path("/dev/full")])
