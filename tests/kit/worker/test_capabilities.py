"""The probe tries the protections for real, and names a remedy for each that is missing."""

from __future__ import annotations

import errno
import os
import platform

import pytest

from exercise_kit.worker import capabilities, landlock, linux


def test_it_finds_what_there_is_and_changes_nothing() -> None:
    before, files = (os.getpid(), os.getuid()), {*os.listdir("/proc/self/fd")}
    found = capabilities.probe_capabilities()
    assert (os.getpid(), os.getuid()) == before
    assert {*os.listdir("/proc/self/fd")} <= files  # those of earlier tests may be collected meanwhile
    assert found.landlock == landlock.read_landlock_version()
    there = {"landlock": bool(found.landlock), "seccomp": found.seccomp, "namespaces": found.namespaces}
    assert set(found.missing) == {name for name, is_there in there.items() if not is_there}
    assert found.is_sufficient == (there["landlock"] and there["seccomp"])


def test_another_system_is_reported_to_grade_on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    found = capabilities.probe_capabilities()
    assert not found.is_sufficient
    assert all("Grade on Linux" in remedy for remedy in found.missing.values())


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.EOPNOTSUPP, "lsm="), (errno.ENOSYS, "older than 5.13"), (errno.EPERM, "--security-opt")],
)
def test_a_missing_landlock_has_a_remedy(number: int, remedy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> int:
        raise OSError(number, os.strerror(number))

    for module in (landlock, capabilities):
        monkeypatch.setattr(module, "syscall", refuse)
    found = capabilities.probe_capabilities()
    assert found.landlock == 0
    assert not found.is_sufficient
    assert platform.release() in found.missing["landlock"]
    assert remedy in found.missing["landlock"]


def test_the_machine_is_known_by_both_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for machine, name in (("arm64", "aarch64"), ("AMD64", "x86_64")):
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        assert linux.find_architecture() == name
