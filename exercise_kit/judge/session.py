"""Grades one submission: its cells are run in a worker, then the checks of every exercise are evaluated there."""

from __future__ import annotations

import time
import traceback
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from exercise_kit.engine.call_rules import describe_forbidden_call
from exercise_kit.engine.carry_forward import describe_parts
from exercise_kit.engine.compare import listed
from exercise_kit.engine.course import FileBytes, NotMeasured, course
from exercise_kit.engine.evaluate_check import Outcome, make_line
from exercise_kit.engine.exercise import Check
from exercise_kit.engine.name_failures import name_failures
from exercise_kit.engine.python_slips import parse_definitions
from exercise_kit.engine.slip_searches import Definition
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure, Verdict
from exercise_kit.judge.findings import Findings
from exercise_kit.judge.hidden import HiddenChecks
from exercise_kit.judge.own_functions import HiddenChecksError
from exercise_kit.judge.replays import Replays
from exercise_kit.judge.result import CellOutputs, ExerciseResult, LogEntry, LogKind
from exercise_kit.judge.scoring import merge, not_graded, score_checks, unevaluated
from exercise_kit.judge.submission_workers import SubmissionWorkers, WorkerUnavailable
from exercise_kit.reasons import Reason
from exercise_kit.sandbox.limits import GraderFailed, WorkerLost
from exercise_kit.sandbox.remote_backend import RemoteStudent
from exercise_kit.sandbox.sandbox import Sandbox, Worker
from exercise_kit.submission.flags import FORBIDDEN_FUNCTION, OTHER_CODE
from exercise_kit.submission.result_file import ResultFile, read_contents
from exercise_kit.submission.shown_code import find_other_code
from exercise_kit.submission.submission import ExerciseAnswer, Submission

# checks of one submission that may stay undecided because the grader itself failed; a score from fewer checks would be
# none, and whoever found a way to make the grader fail could choose the checks that count
MOST_FAILURES = 1


class GradingSession:
    """Grades one submission.

    Args:
        submission: what was handed in.
        checks: the hidden checks.
        key: the submission's secret, from which the checks' draws come.
        sandbox: makes its workers.
        view: the package as the submission's lesson sees it.

    Attributes:
        findings: what was found on the way.
    """

    def __init__(
        self, submission: Submission, checks: HiddenChecks, key: bytes, sandbox: Sandbox, view: Path | None
    ) -> None:
        self._submission = submission
        self._checks = checks
        self._key = key
        self.findings = Findings()
        self._workers = SubmissionWorkers(submission, sandbox, view, self.findings)
        self._failures = 0
        self._evaluated: dict[str, tuple[list[Outcome], str | None, Reason | None]] = {}

    @property
    def runs(self) -> tuple[CellOutputs, ...]:
        """What the cells showed, in the notebook's order."""
        return self._workers.outputs

    def exercises(self) -> tuple[ExerciseResult, ...]:
        """Grade every exercise, in the order of the lesson.

        Raises:
            HiddenChecksError: there are no checks for one of them.
            GraderFailed: the grader's own code failed too often for a score.
            WarmProcessLost: no worker can be made.
        """
        try:
            answers = self._submission.exercises
            timed = {each.name: self._timed(each) for each in sorted(answers, key=lambda each: _withheld(each.name))}
            results = [timed[each.name] for each in answers]
            wrong = {each.name for each in results if each.score < each.max_score and not each.waits}
            for place, answer in enumerate(self._submission.exercises):
                results[place] = self._carried(answer, results[place], wrong - {answer.name})
                if results[place].score == results[place].max_score:
                    wrong.discard(answer.name)
            return tuple(results)
        finally:
            self._workers.close()

    def _timed(self, answer: ExerciseAnswer) -> ExerciseResult:
        began = time.perf_counter()
        result = self._exercise(answer)
        return replace(result, seconds=time.perf_counter() - began)

    def _exercise(self, answer: ExerciseAnswer) -> ExerciseResult:
        if problem := self._checks.problems.get(answer.name):
            return not_graded(answer.name, answer.max_score, problem)
        checks = self._checks.exercises().get(answer.name)
        if not checks or answer.name not in course().exercises:
            raise HiddenChecksError(f"there are no hidden checks of {answer.name}")
        if answer.file:
            return self._of_file(answer, answer.file, checks)
        if answer.source is None:
            return _unevaluated(answer, checks)
        try:
            return self._evaluate(answer, checks, self._workers.ready(_withheld(answer.name)))
        except WorkerLost as lost:
            self._workers.record_loss(lost, answer.name)
            words = lost.words
        except WorkerUnavailable as lack:
            words = str(lack)
        problem, kind = (f"{whose} was not evaluated: the submission {words}" for whose in (answer.name, "the answer"))
        return unevaluated(answer.name, answer.max_score, checks, problem, Reason.NOT_RUN, kind)

    def _of_file(self, answer: ExerciseAnswer, file: ResultFile, checks: Sequence[Check]) -> ExerciseResult:
        """Grade a result that lies beside the notebook: read here as numbers, nothing of it runs."""
        if answer.problem:
            return _unevaluated(answer, checks)
        handed_in = read_contents(file)
        objects = {answer.name: lambda: handed_in}
        outcomes = [self._checks.evaluate(answer.name, each, Student(objects), self._key) for each in checks]
        for each in outcomes:
            self._log_details(answer.name, each)
        remark = self._accuracy(answer.name, handed_in)
        reason = Reason.REMARK if remark else None
        return score_checks(answer.name, answer.max_score, self._named(answer.name, outcomes), remark, reason)

    def _accuracy(self, name: str, handed_in: FileBytes) -> str | None:
        """The accuracy in words, where it was measured; where it could not be, the instructor reads why."""
        try:
            return f"It is right on {self._checks.measure.measure(handed_in)}." if self._checks.measure else None
        except Failure:
            return None
        except NotMeasured as lack:
            self.findings.reasons.append(f"{name} could not be measured: {lack.advice}")
            return f"{name} could not be measured"

    def _evaluate(self, answer: ExerciseAnswer, checks: Sequence[Check], worker: Worker) -> ExerciseResult:
        undefined, kind, nothing = self._undefined(answer, worker)
        problem = " ".join(filter(None, (answer.problem, undefined))) or None
        reason = Reason.NOT_DEFINED if undefined else answer.reason
        if nothing:
            return unevaluated(answer.name, answer.max_score, checks, problem, reason, kind)
        outcomes, called, answered = self._outcomes(answer.name, checks, worker)
        if why := describe_forbidden_call(course().rules.get(answer.name), called):
            self.findings.flag(FORBIDDEN_FUNCTION, answer.name, why)
            kind = course().rules[answer.name].why.rstrip(".")
            return unevaluated(answer.name, answer.max_score, checks, why, Reason.FORBIDDEN, kind)
        if why := self._unlike_shown(answer.name, answered):
            return unevaluated(answer.name, answer.max_score, checks, why, Reason.FORBIDDEN, "other code answers")
        if self._workers.is_alive:  # an answer that has ended its worker gets no second run
            self._evaluated[answer.name] = outcomes, problem, reason
        return score_checks(answer.name, answer.max_score, outcomes, problem, reason, written=self._written(answer))

    def _unlike_shown(self, exercise: str, answered: Sequence[str]) -> str | None:
        """Flag code that answered and is not the code that the page shows; a sentence where that is certain."""
        for name in course().exercises[exercise].objects:
            found = find_other_code(name, *self._workers.cells_run, answered)
            if found:
                self.findings.flag(OTHER_CODE, exercise, found.words)
                if found.is_certain:
                    return f"{found.words[0].upper()}{found.words[1:]}. An answer is what its own cell shows."
        return None

    def _carried(self, answer: ExerciseAnswer, result: ExerciseResult, wrong: Collection[str]) -> ExerciseResult:
        """The result with what passes once the answer's parts are right: an error costs points once."""
        first, problem, reason = self._evaluated.get(answer.name, ((), None, None))
        failed = [each.check for each in first if each.result.verdict == Verdict.FAIL]
        if not answer.parts or not failed or self._workers.is_out_of_time:
            return result
        began = time.perf_counter()
        outcomes, gained = merge(first, self._with_model_parts(answer, failed))
        if not gained:
            return result
        parts = [part.exercise for part in answer.parts]
        note = describe_parts(answer.name, parts, wrong, gained, len(failed) - gained)
        named = self._named(answer.name, outcomes)
        words = " ".join(filter(None, (problem, note)))
        reason = reason or Reason.REMARK
        better = score_checks(answer.name, answer.max_score, named, words, reason, written=self._written(answer))
        return replace(better, seconds=result.seconds + time.perf_counter() - began)

    def _written(self, answer: ExerciseAnswer) -> list[Definition]:
        """What the answer's cell defines for the exercise; it is read, and not run."""
        return parse_definitions(answer.source or "", course().exercises[answer.name].objects)

    def _with_model_parts(self, answer: ExerciseAnswer, checks: Sequence[Check]) -> list[Outcome]:
        """What checks find in a separate worker, in which the answer calls the model solutions of its parts."""
        outcomes: list[Outcome] = []
        lent = self._workers.with_model_parts(answer, _withheld(answer.name))
        with suppress(WorkerLost, GraderFailed), lent as worker:
            worker.hold_to(course().rules.get(answer.name))
            for check in checks:
                student = RemoteStudent(worker, course().exercises[answer.name].objects)
                outcome = self._checks.evaluate(answer.name, check, student, self._key)
                if (
                    worker.lost
                    or worker.failure
                    or describe_forbidden_call(course().rules.get(answer.name), worker.called)
                ):
                    break
                if self._unlike_shown(answer.name, worker.answered):
                    break
                outcomes.append(outcome)
        return outcomes

    def _outcomes(
        self, name: str, checks: Sequence[Check], worker: Worker
    ) -> tuple[list[Outcome], Collection[str], list[str]]:
        """What the checks find; what the answer called, where its exercise has a rule about that; whose code it was.

        Once the worker is lost, the check that was running and all the others fail; where the grader itself fails, the
        check decides nothing, and the next one is evaluated in a fresh worker.
        """
        outcomes: list[Outcome] = []
        called: dict[str, None] = {}
        answered: list[str] = []
        worker.hold_to(course().rules.get(name))
        for check in checks:
            student = RemoteStudent(worker, course().exercises[name].objects)
            outcomes.append(self._checks.evaluate(name, check, student, self._key))
            called |= dict.fromkeys(worker.called)
            answered += worker.answered
            self._log_details(name, outcomes[-1])
            if worker.failure:
                worker = self._after_failure(name, check, worker.failure)
                worker.hold_to(course().rules.get(name))
            elif worker.lost:
                return (
                    [
                        *self._named(name, outcomes[:-1]),
                        *self._lost_checks(name, outcomes[-1], checks, worker.lost),
                    ],
                    called,
                    answered,
                )
        worker.hold_to(None)
        if self._failures and all(each.result.verdict == Verdict.UNDECIDED for each in outcomes):
            raise GraderFailed(f"the grader failed, and so nothing could be decided about {name}")
        return self._named(name, outcomes, worker), called, answered

    def _log_details(self, name: str, outcome: Outcome) -> None:
        if outcome.log:
            broke = outcome.result.verdict == Verdict.UNDECIDED
            kind = LogKind.BROKEN_CHECK if broke else LogKind.DETAIL
            text = "\n".join(filter(None, (outcome.broke, outcome.log)))
            self.findings.log.append(LogEntry(kind, text, name, outcome.check.name))

    def _after_failure(self, name: str, check: Check, failure: GraderFailed) -> Worker:
        """Tell the instructor how the grader failed in a check; a fresh worker for the next.

        Raises:
            GraderFailed: it has failed too often, or no fresh worker can be had.
        """
        self.findings.log.append(LogEntry(LogKind.GRADER_FAILED, f"{failure}\n{failure.details}", name, check.name))
        self._failures += 1
        if self._failures > MOST_FAILURES:
            raise GraderFailed(f"the grader failed in {self._failures} checks, the last of them {check.name} of {name}")
        self.findings.reasons.append(f"the grader failed in {check.name} of {name}, which does not count")
        try:
            return self._workers.after_failure()
        except WorkerUnavailable as reason:
            raise GraderFailed(f"the grader failed in {check.name} of {name}, and could not go on: {reason}") from None

    def _named(self, name: str, outcomes: Sequence[Outcome], worker: Worker | None = None) -> list[Outcome]:
        """The outcomes with the misconceptions that explain them; without, where the grader fails at that.

        Args:
            name: of the exercise.
            outcomes: of its checks.
            worker: where the answer can be asked more; None: nowhere.
        """
        exercise = course().exercises[name]
        student = (lambda: RemoteStudent(worker, exercise.objects)) if worker else None
        try:
            return name_failures(exercise, outcomes, Replays(self._checks, name, self._key), student)
        except MemoryError:
            raise
        except Exception as error:
            text = "".join(["while it looked for the mistake's name:\n", *traceback.format_exception(error)])
            self.findings.log.append(LogEntry(LogKind.GRADER_FAILED, text, name))
            return list(outcomes)

    def _lost_checks(self, name: str, running: Outcome, checks: Sequence[Check], lost: WorkerLost) -> Iterator[Outcome]:
        """The check that was ``running`` and those behind it: what it says of the loss goes for all of them."""
        self._workers.record_loss(lost, name)
        first = running.result
        if first.verdict != Verdict.FAIL:
            first = make_line(running.check, Failure(f"the code {lost.words}"))
        for check in checks[checks.index(running.check) :]:
            yield Outcome(check, replace(first, name=check.name, claim=check.claim))

    def _undefined(self, answer: ExerciseAnswer, worker: Worker) -> tuple[str, str, bool]:
        """What is wrong with the names that the exercise asks for, its kind, and whether none can be evaluated."""
        exercise = course().exercises[answer.name]
        wanted = "class" if exercise.is_class else "function"
        kinds = worker.request("defined", names=list(exercise.objects)).get("defined")
        found: dict[str, Any] = kinds if isinstance(kinds, dict) else {}
        missing = [name for name in exercise.objects if found.get(name) is None]
        other = [name for name in exercise.objects if name not in missing and found[name] != wanted]
        problems = [f"`{name}` has to be a {wanted}." for name in other]
        kind = f"the answer has to be a {wanted}" if other else ""
        if missing:
            verb = "is" if len(missing) == 1 else "are"
            names = listed([f"`{name}`" for name in missing])
            failure, words = self._workers.cell_failure(answer.cell)
            problems.insert(0, f"{names} {verb} not defined{failure}{words}.")
            kind = f"the answer is not defined{failure}"
        return " ".join(problems), kind, len(missing) + len(other) == len(exercise.objects)


def _withheld(name: str) -> str:
    """What is not there where an exercise's answer is evaluated; empty: nothing is withheld."""
    return course().rules[name].withheld if name in course().rules else ""


def _unevaluated(answer: ExerciseAnswer, checks: Sequence[Check]) -> ExerciseResult:
    """The result of an answer that was found to be none when it was read."""
    return unevaluated(answer.name, answer.max_score, checks, answer.problem, answer.reason, answer.kind)
