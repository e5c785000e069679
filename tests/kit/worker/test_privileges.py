"""Root in name alone is treated like anybody else."""

import os

import pytest

from exercise_kit.worker.linux import can_change_user, drop_privileges


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities to lose, or can become somebody else")
@pytest.mark.parametrize("user", [None, 65534], ids=["root without capabilities", "another user"])
def test_who_has_lost_root_s_capabilities_cannot_change_its_user(user):
    child = os.fork()
    if child == 0:
        before = can_change_user()
        drop_privileges(user)
        os._exit(0 if before and os.geteuid() == (user or 0) and not can_change_user() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
