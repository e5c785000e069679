"""A real sandbox, with the protections that this machine offers, and its workers."""

from __future__ import annotations

import pytest

from exercise_kit.sandbox.package_view import get_or_build_view
from exercise_kit.sandbox.sandbox import Sandbox
from exercise_kit.submission.submission import CellSource
from tests.machine import CAPABILITIES


class WorkerHarness:
    """Workers for tests: one at a time, made with ``source`` as their only cell."""

    def __init__(self, sandbox, view):
        self.sandbox, self.view, self.worker, self.index = sandbox, view, None, 2

    def with_cell(self, source):
        self.worker = self.sandbox.worker(self.view)
        self.cell(source)
        return self.worker

    def cell(self, source):
        """Return what one more cell shows; the first has the index 3."""
        self.index += 1
        (run,) = self.worker.run([CellSource(self.index, source)])
        return run

    def text(self, source):
        """Return what a cell prints and shows as text, an error as its traceback."""
        return "".join(map(_read_text, self.cell(source).outputs))


def _read_text(output):
    if output["output_type"] == "error":
        return "\n".join(output["traceback"]) + "\n"
    return output.get("text") or output["data"]["text/plain"] + "\n"


@pytest.fixture(scope="package")
def sandbox():
    with Sandbox(sandboxed=CAPABILITIES.is_sufficient, views=[get_or_build_view("03_attention")]) as opened:
        yield opened


@pytest.fixture
def harness(sandbox):
    made = WorkerHarness(sandbox, get_or_build_view("03_attention"))
    made.worker = sandbox.worker(made.view)
    yield made
    made.worker.close()
