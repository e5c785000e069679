"""The sandbox policy for a student's code: prepared once in the warm process, applied in each child that it forks.

In the child: its own session, death with the warm process, no descriptor but the judge's, an unprivileged user, no
capabilities, limits of the kernel, Landlock, seccomp. Around the warm process: namespaces, where they are allowed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .bounds import Bounds, apply_process_limits, kill_when_files_exceed
from .landlock import allow_naming_threads, make_ruleset, read_landlock_version, restrict_files
from .linux import (
    DAC_READ_SEARCH,
    PR_SET_DUMPABLE,
    PR_SET_NO_NEW_PRIVS,
    ProtectionError,
    can_change_user,
    die_with_parent,
    drop_privileges,
    prctl,
    syscall,
)
from .namespaces import enter_namespaces
from .seccomp import compile_filter, restrict_calls

NOBODY = 65534
CLOSE_RANGE = 436
LAST_DESCRIPTOR = 0xFFFFFFFF
# room for what else a user runs, where the kernel counts all of it together
TASKS_HEADROOM = 512


@dataclass(frozen=True)
class SandboxPolicy:
    """What the warm process has made ready for its children.

    Attributes:
        scratch: the only folder that a child may write into; its working folder.
        names: the protections that are in force: "namespaces" (not everywhere), "landlock", "seccomp".
        uid: the user that a child becomes; None: it stays what it is.
        rules: descriptors of Landlock's rules, for each view and for none.
        proc: descriptor of /proc.
        other_tasks: how many tasks of that user the kernel counts beside a child's own.
        capabilities: which capabilities a child keeps (a bit mask).
        scratch_bytes: what a child's files may take in all, to be watched; None: a file system holds it to that.
        gpu: whether a child may use a GPU.
    """

    scratch: Path
    names: tuple[str, ...]
    uid: int | None
    rules: Mapping[Path | None, int]
    proc: int
    other_tasks: int
    capabilities: int
    scratch_bytes: int | None = None
    gpu: bool = False


def prepare_policy(
    readable: Sequence[Path],
    listable: Sequence[Path],
    views: Sequence[Path] = (),
    *,
    scratch_bytes: int = 64 << 20,
    scratch: Path | None = None,
    uid: int = NOBODY,
    namespaces_wanted: bool = True,
    devices: Sequence[Path] = (),
) -> SandboxPolicy:
    """Prepare the policy in the warm process, before or after its imports; enters namespaces where it can.

    Args:
        readable: files and folders that every child may read (``readable_paths.list_readable_paths()``).
        listable: folders whose names a child may list (``readable_paths.list_listable_folders()``).
        views: folders of which a child may read one, or none.
        scratch_bytes: the size of the writable folder.
        scratch: an existing folder to write in, where there are none.
        uid: the unprivileged user of the children, when this process may change its user.
        namespaces_wanted: False leaves them out, to see what the other protections do without them.
        devices: those of a GPU, which every child may use. There are no namespaces then, since a driver needs files
            outside of them; and Landlock may be missing where children can be another user.

    Raises:
        ProtectionError: no Landlock or no seccomp, or a scratch folder is needed and none is named.
    """
    compile_filter(1)
    if not read_landlock_version() and not (devices and can_change_user()):
        raise ProtectionError("this kernel has no Landlock")
    inside = enter_namespaces([*readable, *views], scratch_bytes, uid) if namespaces_wanted and not devices else None
    if inside:
        return SandboxPolicy(
            inside.scratch,
            ("namespaces", "landlock", "seccomp"),
            inside.uid,
            _make_rulesets(readable, listable, views, inside.scratch),
            inside.proc,
            3,
            _find_capability_to_read([*readable, *views]) if inside.uid is not None else 0,
        )
    if scratch is None:
        raise ProtectionError("namespaces are refused here, and no scratch folder is named")
    child_uid = uid if can_change_user() and _change_owner(scratch, uid) else None
    has_landlock = bool(read_landlock_version())
    capabilities = _find_capability_to_read([*readable, *views]) if child_uid is not None and has_landlock else 0
    proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    tasks = _count_tasks(os.getuid() if child_uid is None else child_uid) + TASKS_HEADROOM
    rules = _make_rulesets(readable, listable, views, scratch, devices) if has_landlock else {}
    names = ("landlock", "seccomp") if has_landlock else ("seccomp",)
    return SandboxPolicy(scratch, names, child_uid, rules, proc, tasks, capabilities, scratch_bytes, bool(devices))


def apply_policy(policy: SandboxPolicy, bounds: Bounds, keep: Sequence[int], view: Path | None = None) -> None:
    """Apply every protection to this process, freshly forked from the warm one; it cannot be undone.

    Args:
        policy: what ``prepare_policy`` gave.
        bounds: how much of the machine the process may use.
        keep: descriptors that stay open; 0, 1 and 2 become /dev/null unless they are among them.
        view: which of the views may be read.

    Raises:
        OSError: a protection could not be applied; the process must then end without running anything.
    """
    parent = os.getppid()
    rules = policy.rules[view] if policy.rules else None
    os.setsid()
    os.chdir(policy.scratch)
    _close_all_but({*keep, policy.proc, *([] if rules is None else [rules])})
    apply_process_limits(bounds, policy.proc, policy.other_tasks)
    if rules is not None and policy.gpu:
        allow_naming_threads(rules, policy.proc)
    os.close(policy.proc)
    drop_privileges(policy.uid, policy.capabilities)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_DUMPABLE, int(policy.scratch_bytes is not None))  # else its open files could not be watched
    die_with_parent(parent)
    if rules is not None:
        restrict_files(rules)
        os.close(rules)
    restrict_calls(compile_filter(os.getpid(), gpu=policy.gpu))


def start_scratch_watcher(policy: SandboxPolicy, child: int) -> int | None:
    """Start the process that holds a child to the size of its files; its number, None where none is needed."""
    if policy.scratch_bytes is None:
        return None
    parent, watcher = os.getpid(), os.fork()
    if watcher:
        return watcher
    try:
        os.chdir(policy.scratch)
        _close_all_but(set())
        drop_privileges(policy.uid, policy.capabilities)
        die_with_parent(parent)
        kill_when_files_exceed(child, policy.scratch_bytes)
    finally:
        os._exit(1)


def _make_rulesets(
    readable: Sequence[Path],
    listable: Sequence[Path],
    views: Sequence[Path],
    scratch: Path,
    steered: Sequence[Path] = (),
) -> dict[Path | None, int]:
    devices = [Path("/dev/zero"), Path("/dev/urandom")]
    writable = [scratch, Path("/dev/null")]
    return {
        view: make_ruleset([*readable, *devices, *([view] if view else [])], listable, writable, steered)
        for view in (None, *views)
    }


def _close_all_but(kept_descriptors: set[int]) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in {0, 1, 2} - kept_descriptors:
        os.dup2(null, descriptor)
    first = 3
    for descriptor in sorted(kept_descriptors - {0, 1, 2}):
        if descriptor > first:
            syscall(CLOSE_RANGE, first, descriptor - 1, 0)
        first = descriptor + 1
    syscall(CLOSE_RANGE, first, LAST_DESCRIPTOR, 0)


def _change_owner(folder: Path, uid: int) -> bool:
    """Make a folder a user's own; False where there is no such user, as in some containers."""
    try:
        os.chown(folder, uid, uid)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return False
        raise
    return True


def _find_capability_to_read(paths: Iterable[Path]) -> int:
    """The capability with which another user reads all of these, of which Landlock leaves them alone in reach."""
    return 0 if all(map(_is_world_readable, paths)) else 1 << DAC_READ_SEARCH


def _is_world_readable(path: Path) -> bool:
    """Say whether a user who owns nothing comes to this path and reads it."""
    try:
        folders = all(parent.stat().st_mode & stat.S_IXOTH for parent in path.resolve().parents)
        return bool(folders and path.stat().st_mode & stat.S_IROTH)
    except OSError:
        return True  # what is not there is not read


def _count_tasks(uid: int) -> int:
    return sum(tasks for owner, tasks in _list_tasks() if owner == uid)


def _list_tasks() -> Iterator[tuple[int, int]]:
    """Owner and number of threads of every process in sight."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                yield process.stat().st_uid, len(os.listdir(process / "task"))
