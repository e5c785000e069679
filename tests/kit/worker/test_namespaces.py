"""Entering namespaces: what is there inside, who dies with whom, and what happens where they are refused."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exercise_kit.worker import namespaces, seccomp
from exercise_kit.worker.linux import PR_SET_NO_NEW_PRIVS, find_architecture, prctl
from tests.machine import CAPABILITIES
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(not CAPABILITIES.namespaces, reason="namespaces are refused here")
UNSHARE = {"x86_64": 272, "aarch64": 97}


def run_in_child_process(function: Callable[[], Any]) -> tuple[Any, int]:
    """Return what the function gives in a forked process (as JSON), and how the process ended."""
    answer, reply = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(reply, json.dumps(function()).encode())
            os._exit(0)
        except BaseException as error:
            os.write(reply, json.dumps(repr(error)).encode())
            os._exit(99)
    os.close(reply)
    with open(answer, "rb") as pipe:
        said = pipe.read()
    return json.loads(said or b"null"), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_inside_there_is_what_was_named_and_a_writable_folder(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "file.txt").write_text("read me")
    (tmp_path / "hidden.txt").write_text("secret")

    def enter_and_look_around() -> dict[str, Any]:
        inside = namespaces.enter_namespaces([tmp_path / "given"], 1 << 20, 65534)
        assert inside
        (inside.scratch / "new").write_text("written")
        refused = {}
        for path in (tmp_path / "given" / "new", tmp_path / "new", Path("/new"), Path("/dev/new")):
            try:
                path.write_text("written")
            except OSError as error:
                refused[str(path)] = error.strerror
        interfaces = os.listdir("/sys/class/net") if Path("/sys/class").exists() else []
        return {
            "pid": os.getpid(),
            "root": sorted(os.listdir("/")),
            "beside": os.listdir(tmp_path),
            "text": (tmp_path / "given" / "file.txt").read_text(),
            "refused": len(refused),
            "interfaces": interfaces,
            "devices": sorted(os.listdir("/dev")),
        }

    found, code = run_in_child_process(enter_and_look_around)
    assert code == 0, found
    assert found["pid"] == 1
    assert found["root"] == sorted({"dev", "student", tmp_path.parts[1]})
    assert found["beside"] == ["given"]
    assert found["text"] == "read me"
    assert found["refused"] == 4
    assert found["interfaces"] == []
    assert found["devices"] == ["null", "urandom", "zero"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["given", "hidden.txt"]


@pytest.mark.parametrize("code", [0, 3])
def test_the_process_outside_ends_as_the_one_inside(code: int) -> None:
    def enter_and_exit() -> None:
        namespaces.enter_namespaces([], 1 << 20, 65534)
        os._exit(code)

    assert run_in_child_process(enter_and_exit) == (None, code)


def test_where_they_are_refused_nothing_has_changed() -> None:
    def try_behind_a_filter() -> list[Any]:
        steps = [
            (seccomp.LOAD, 0, 0, seccomp.AT_NUMBER),
            (seccomp.JUMP_EQUAL, 0, 1, UNSHARE[find_architecture()]),
            (seccomp.RETURN, 0, 0, seccomp.REFUSE),
            (seccomp.RETURN, 0, 0, seccomp.ALLOW),
        ]
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        seccomp.restrict_calls(b"".join(struct.pack("=HBBI", *step) for step in steps))
        before = (os.getpid(), os.getuid(), os.listdir("/proc/self/fd"), os.listdir("/"))
        inside = namespaces.enter_namespaces([], 1 << 20, 65534)
        after = (os.getpid(), os.getuid(), os.listdir("/proc/self/fd"), os.listdir("/"))
        return [inside, before == after]

    assert run_in_child_process(try_behind_a_filter) == ([None, True], 0)


JUDGE = """
import os, subprocess, sys
warm = '''
import os, sys, time
from exercise_kit.worker.namespaces import enter_namespaces
enter_namespaces([], 1 << 20, 65534)
os.write(1, b"in")
time.sleep(60)
'''
process = subprocess.Popen([sys.executable, "-c", warm], stdout=subprocess.PIPE)
assert os.read(process.stdout.fileno(), 2) == b"in"
print(process.pid, flush=True)
input()
"""


def list_descendants(pid: int) -> list[int]:
    try:
        found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []
    return found + [grandchild for child in found for grandchild in list_descendants(child)]


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize("victim", ["judge", "outer", "inner"])
def test_all_die_together(victim: str) -> None:
    judge = subprocess.Popen([sys.executable, "-c", JUDGE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert judge.stdout is not None
    outer = int(judge.stdout.readline())
    family = [outer, *list_descendants(outer)]
    assert len(family) == 3
    os.kill({"judge": judge.pid, "outer": outer, "inner": family[-1]}[victim], signal.SIGKILL)
    try:
        wait_until(lambda: all(map(is_gone, family)))
    finally:
        judge.kill()
        judge.communicate()
