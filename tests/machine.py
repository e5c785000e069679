"""What this machine can do, found out once in each process: to try it forks, and there are hundreds of tests."""

import pytest

from exercise_kit.worker.capabilities import probe_capabilities

CAPABILITIES = probe_capabilities()
needs_sandbox = pytest.mark.skipif(
    not CAPABILITIES.is_sufficient, reason="this machine has no sandbox: see `vit-course doctor`"
)
