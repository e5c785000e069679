"""Waiting for what another process or thread does."""

import time

# seconds: so many that a slow machine never comes near them; a test that hangs ends all the same
GIVE_UP = 1800


def wait_until(true):
    """Go on as soon as ``true()`` is; a test that waits for ever fails."""
    end = time.monotonic() + GIVE_UP
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.02)
