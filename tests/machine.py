"""What this machine can do, found out once in each process: to try it forks, and there are hundreds of tests."""

import pytest

from exercise_kit.worker.capabilities import available

CAPABILITIES = available()
needs_sandbox = pytest.mark.skipif(
    not CAPABILITIES.enough, reason="this machine has no sandbox: see `vit-course doctor`"
)
