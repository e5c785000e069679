"""Which protections this machine offers, found by applying each of them in a forked process."""

from __future__ import annotations

import errno
import os
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .landlock import CREATE_RULESET, VERSION_FLAG, read_landlock_version
from .linux import (
    PR_SET_NO_NEW_PRIVS,
    ProtectionError,
    can_change_user,
    find_architecture,
    prctl,
    syscall,
)
from .namespaces import enter_namespaces
from .seccomp import compile_filter, restrict_calls

ELSEWHERE = "Grade on Linux (x86_64 or aarch64), in a virtual machine, a container or WSL 2"
IN_A_CONTAINER = (
    "in a container, start it with a seccomp profile that allows it (docker run --security-opt seccomp=FILE)"
)
NO_SUCH_CALL = "this kernel is older than 5.13, or was built without Landlock: use a newer one"
LANDLOCK_REMEDIES = {
    errno.EOPNOTSUPP: "Landlock is switched off: add landlock to the kernel's lsm= boot parameter and restart",
    errno.ENOSYS: f"{NO_SUCH_CALL}; {IN_A_CONTAINER}",
    errno.EPERM: f"something forbids it: {IN_A_CONTAINER}",
}
NAMESPACE_SWITCHES = {
    "/proc/sys/kernel/unprivileged_userns_clone": ("0", "sysctl kernel.unprivileged_userns_clone=1"),
    "/proc/sys/user/max_user_namespaces": ("0", "sysctl user.max_user_namespaces=10000"),
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": (
        "1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
}


@dataclass(frozen=True)
class SandboxCapabilities:
    """What the sandbox can be built of here.

    Attributes:
        landlock: version of Landlock's ABI; 0 where there is none.
        seccomp: whether a filter of system calls can be put up.
        namespaces: whether a worker can have a file system, network and processes of its own.
        missing: what to do about each protection that is missing.
    """

    landlock: int
    seccomp: bool
    namespaces: bool
    missing: Mapping[str, str]

    @property
    def is_sufficient(self) -> bool:
        """Whether strangers' code may be run: namespaces are a second layer, the others are required."""
        return bool(self.landlock and self.seccomp)

    @property
    def is_sufficient_for_gpu(self) -> bool:
        """Whether strangers' code may be run as another user, on a machine that is thrown away as Colab's is."""
        return self.seccomp and can_change_user()


def probe_capabilities() -> SandboxCapabilities:
    """Try every protection; changes nothing in this process."""
    try:
        find_architecture()
    except ProtectionError as error:
        remedy = f"{error}. {ELSEWHERE}"
        return SandboxCapabilities(0, False, False, dict.fromkeys(("landlock", "seccomp", "namespaces"), remedy))
    abi, filters, has_namespaces = (
        read_landlock_version(),
        _succeeds_in_child(_try_seccomp),
        _succeeds_in_child(_try_namespaces),
    )
    missing = {}
    if not abi:
        missing["landlock"] = _suggest_landlock_remedy()
    if not filters:
        missing["seccomp"] = f"the kernel refuses filters of system calls; {IN_A_CONTAINER}"
    if not has_namespaces:
        missing["namespaces"] = _suggest_namespaces_remedy()
    return SandboxCapabilities(abi, filters, has_namespaces, missing)


def _succeeds_in_child(attempt: Callable[[], bool]) -> bool:
    """Say whether the attempt succeeds in a process of its own."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if attempt() else 1)
        except BaseException:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _try_seccomp() -> bool:
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    restrict_calls(compile_filter(os.getpid()))
    return True


def _try_namespaces() -> bool:
    return enter_namespaces([], 1 << 20, 65534) is not None


def _suggest_landlock_remedy() -> str:
    try:
        syscall(CREATE_RULESET, 0, 0, VERSION_FLAG)
    except OSError as error:
        release = platform.release()
        return f"Linux {release}: {LANDLOCK_REMEDIES.get(error.errno or 0, error.strerror)}"
    return "try again"


def _suggest_namespaces_remedy() -> str:
    for place, (bad, remedy) in NAMESPACE_SWITCHES.items():
        path = Path(place)
        if path.exists() and path.read_text("ascii").strip() == bad:
            return f"this machine's settings refuse them; as root: {remedy}"
    return f"something forbids them: {IN_A_CONTAINER}"
