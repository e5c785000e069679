"""The commonest accidents in a real kernel: an endless loop, the interrupt button, a cell that runs too early."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

from tests.e2e.submissions import read_released_cell
from tests.waiting import GIVE_UP

CHECK = read_released_cell("check-patchify")
IMPATIENT = """
from functools import partial
from exercise_kit.engine import run
from exercise_kit.engine.watchdog import Patience, Watchdog
run.Watchdog = partial(Watchdog, patience=Patience(notice=0.3, call={call}))
"""


class Kernel:
    """Runs cells, and gives what a notebook would show."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager, self.client = manager, client

    def run(self, code: str, interrupt_at: str = "") -> dict[str, str]:
        """The text of every kind of output; the kernel is interrupted when stdout holds ``interrupt_at``."""
        request_id, shown = self.client.execute(code), dict.fromkeys(("stdout", "stderr", "error", "result"), "")
        while True:
            message: dict[str, Any] = self.client.get_iopub_msg(timeout=GIVE_UP)
            content, kind = message["content"], message["msg_type"]
            if message["parent_header"].get("msg_id") != request_id:
                continue
            if kind == "status" and content["execution_state"] == "idle":
                return shown
            if kind == "stream":
                shown[content["name"]] += content["text"]
                if interrupt_at and interrupt_at in shown["stdout"]:
                    interrupt_at = ""
                    self.manager.interrupt_kernel()
            elif kind == "error":
                shown["error"] += "\n".join(content["traceback"])
            elif kind == "execute_result":
                shown["result"] += content["data"].get("text/html", content["data"]["text/plain"])


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    manager, client = start_new_kernel()
    try:
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.mark.proof
def test_accidents_in_the_order_in_which_they_happen(kernel: Kernel) -> None:
    restarted = kernel.run(CHECK)
    assert restarted["error"].startswith(
        "`patchify` is not defined: the kernel is new. Run the cells above from the top"
    )
    assert "NameError" not in restarted["error"]

    too_early = kernel.run(CHECK)
    assert too_early["error"] == (
        "`patchify` is not defined yet. Run the cell that begins with `def patchify`, then this one again."
    )

    kernel.run(IMPATIENT.format(call=1) + "def patchify(images, patch_size):\n    while True: pass")
    endless = kernel.run(CHECK)
    assert "did not come back within 1 seconds" in endless["result"]
    line, blank, rest = endless["stdout"].rsplit("\r", 2)
    assert "patchify has been running" in line
    assert (blank, rest) == (" " * len(line.splitlines()[-1]), ""), "the line goes again"
    assert endless["stderr"] == endless["error"] == ""
    assert kernel.run("1 + 1")["result"] == "2"

    kernel.run(IMPATIENT.format(call=600))
    interrupted = kernel.run(CHECK, interrupt_at="has been running")
    assert interrupted["error"].startswith("You interrupted the check of patchify, at “Every patch becomes")
    assert "\n" not in interrupted["error"]
    assert kernel.run("1 + 1")["result"] == "2"

    kernel.run("def patchify(images, patch_size):\n    return None")
    kernel.run("def patchify(images, patch_size):\n    return (images")
    older = kernel.run(CHECK)
    assert "Line 2 of the last cell with <code>def patchify</code> has a syntax error" in older["result"]
    assert "<code>patchify</code> from before" in older["result"]
    kernel.run("def patchify(images, patch_size):\n    return None")
    assert "syntax error" not in kernel.run(CHECK)["result"]
