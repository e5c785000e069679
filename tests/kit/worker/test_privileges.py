"""Root in name alone is treated like anybody else."""

import os

import pytest

from exercise_kit.worker.linux import can_change_user, drop_privileges


def run_in_fork(act) -> int:
    """The exit status of a child that runs ``act``."""
    child = os.fork()
    if child == 0:
        os._exit(act())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities to lose")
def test_root_that_has_lost_its_capabilities_cannot_change_its_user():
    def drop_and_check_privileges() -> int:
        before = can_change_user()
        drop_privileges(None)
        return 0 if before and os.geteuid() == 0 and not can_change_user() else 1

    assert run_in_fork(drop_and_check_privileges) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_user_cannot_change_its_user():
    def become_nobody() -> int:
        drop_privileges(65534)
        return 0 if os.geteuid() == 65534 and not can_change_user() else 1

    assert run_in_fork(become_nobody) == 0
