"""Waiting for what another process or thread does."""

import time


def wait_until(true, seconds=120):
    """Go on as soon as ``true()`` is; after so many seconds the test fails."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.02)
