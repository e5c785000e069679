"""The judge: takes a submission, gives a result, and never fails for anything that a student did."""

from __future__ import annotations

import time
import traceback
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import torch

from exercise_kit.engine.course import course
from exercise_kit.hidden_checks.checks import HiddenChecks
from exercise_kit.judge.result import OUT_OF_MEMORY, Result
from exercise_kit.judge.session import GradingSession
from exercise_kit.sandbox.limits import GraderFailed, Limits
from exercise_kit.sandbox.package_view import get_or_build_view
from exercise_kit.sandbox.sandbox import Sandbox
from exercise_kit.sandbox.warm_process import WarmProcess
from exercise_kit.submission.submission import Submission


class Judge(AbstractContextManager["Judge"]):
    """Grades submissions one after another; a context manager that holds the hidden checks and a sandbox open.

    Args:
        checks: the folder of hidden checks.
        secret: the grader's; without it nobody can tell on which sizes and numbers a submission is evaluated.
        limits: what a submission may use, and where it computes.
        sandboxed: run the students' code in the sandbox.
        warm: the process of which the workers are made, where it was started already; the judge ends it.

    Raises:
        HiddenChecksError: with file and line, when the hidden checks cannot be used.
    """

    def __init__(
        self,
        checks: Path,
        secret: bytes,
        limits: Limits | None = None,
        sandboxed: bool = True,
        warm: WarmProcess | None = None,
    ) -> None:
        torch.set_num_threads(1)  # its tensors are tiny: more threads take ten times as long, and another job's core
        self._secret = secret
        # by number: the class of an earlier release may have another name for the lesson
        self._views = {lesson[:2]: get_or_build_view(lesson) for lesson in course().lessons}
        views = list(self._views.values())
        self._sandbox = Sandbox(limits or Limits(), sandboxed=sandboxed, views=views, warm=warm)
        try:
            self._sandbox.start()
            results = course().results
            self._checks = HiddenChecks(checks, measure=results.measure(secret) if results else None)
        except BaseException:
            self._sandbox.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the sandbox."""
        self._sandbox.close()

    def grade(self, submission: Submission, key: bytes | None = None) -> Result:
        """Grade a submission; a rejected one gets its reason as the result, and where the grader fails, an "error".

        Args:
            submission: what was handed in.
            key: of the submission, as :meth:`Submission.derive_key` makes it of a secret that is elsewhere; None: it is
                here.
        """
        began = time.perf_counter()
        view = self._views.get((submission.lesson or "")[:2])
        session = GradingSession(
            submission, self._checks, key or submission.derive_key(self._secret), self._sandbox, view
        )
        try:
            result = session.grade()
        except GraderFailed as failure:
            result = session.fail(f"{failure}; it has no score until a person has read the log", failure.details)
        except MemoryError:
            result = session.fail(OUT_OF_MEMORY, traceback.format_exc())
        except Exception as error:
            result = session.fail(f"the grader failed: {type(error).__name__}: {error}", traceback.format_exc())
        return replace(result, seconds=time.perf_counter() - began)
