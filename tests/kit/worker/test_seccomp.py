"""The filter of system calls: its numbers are the kernel's, and its program is well formed."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from exercise_kit.worker import linux, seccomp
from exercise_kit.worker.seccomp import ABSENT, ALLOWED, FILTERED, FOR_GPU, NEWEST, UNSUPPORTED

# where a compiler's headers are installed; aarch64 takes the numbers that new architectures share
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


@pytest.mark.parametrize("machine", HEADERS)
def test_numbers_are_those_of_the_kernel_s_headers(machine: str) -> None:
    header = HEADERS[machine]
    if not header.exists():
        pytest.skip(f"no {header} on this machine")
    text = header.read_text("utf-8")
    true = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    newest = max(true.values())
    for name, numbers in (ALLOWED | FILTERED | FOR_GPU | ABSENT | UNSUPPORTED).items():
        number = getattr(numbers, machine)
        if number is None or number <= newest:
            assert true.get(name) == number, name


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_program_is_one_that_the_kernel_takes(machine: str, gpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp, "find_architecture", lambda: machine)
    steps = list(struct.iter_unpack("=HBBI", seccomp.compile_filter(123, gpu=gpu)))
    assert len(steps) < 4096
    assert steps[-1] == (seccomp.RETURN, 0, 0, seccomp.REFUSE)
    for position, (_, when_true, when_false, _) in enumerate(steps):
        assert position + max(when_true, when_false) + 1 <= len(steps)
    assert (seccomp.JUMP_GREATER, 0, 1, NEWEST) in steps


def test_a_call_stands_in_one_table() -> None:
    tables = (ALLOWED, FILTERED, FOR_GPU, ABSENT, UNSUPPORTED)
    assert len({name for table in tables for name in table}) == sum(map(len, tables))
    for machine in HEADERS:
        numbers = [getattr(number, machine) for table in tables for number in table.values()]
        known = [number for number in numbers if number is not None]
        assert len(known) == len(set(known))


def test_other_processors_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(linux.ProtectionError, match="x86_64 and aarch64; this is linux on riscv64"):
        seccomp.compile_filter(1)
