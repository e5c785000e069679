"""Grades one submission: its cells are run in a worker, then the checks of every exercise are evaluated there."""

from __future__ import annotations

import time
import traceback
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from exercise_kit.engine.call_rules import describe_forbidden_call
from exercise_kit.engine.carry_forward import describe_parts_carried_forward
from exercise_kit.engine.compare import join_names
from exercise_kit.engine.course import FileBytes, NotMeasured, course
from exercise_kit.engine.evaluate_check import Outcome, make_check_result
from exercise_kit.engine.exercise import Check
from exercise_kit.engine.name_failures import name_failures
from exercise_kit.engine.python_slips import parse_definitions
from exercise_kit.engine.slip_searches import Definition
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure, Verdict
from exercise_kit.hidden_checks import HiddenChecksError
from exercise_kit.hidden_checks.checks import HiddenChecks
from exercise_kit.judge.replays import Replays
from exercise_kit.judge.result import (
    ExerciseResult,
    Findings,
    LogEntry,
    LogKind,
    Result,
    Status,
    join_reason_clauses,
    replace_exercises,
)
from exercise_kit.judge.scoring import OUR_ERROR, fail_all_checks, merge_outcomes, score_checks
from exercise_kit.judge.submission_workers import SubmissionWorkers, WorkerUnavailable
from exercise_kit.reasons import Reason
from exercise_kit.sandbox.limits import GraderFailed, WorkerLost
from exercise_kit.sandbox.remote_backend import RemoteStudent
from exercise_kit.sandbox.sandbox import Sandbox, Worker
from exercise_kit.submission.flags import FORBIDDEN_FUNCTION, OTHER_CODE
from exercise_kit.submission.result_file import ResultFile, read_contents
from exercise_kit.submission.shown_code import find_code_that_answered_instead
from exercise_kit.submission.submission import ExerciseAnswer, Submission

# checks of one submission that may stay undecided because the grader itself failed; a score from fewer checks would be
# none, and whoever found a way to make the grader fail could choose the checks that count
MOST_FAILURES = 1


class _Asked(NamedTuple):
    """What checks found; what the answer called, where its exercise has a rule about that; whose code it was."""

    outcomes: list[Outcome]
    called: Collection[str]
    answered: list[str]


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
        self._sandbox = sandbox
        self._workers = SubmissionWorkers(submission, sandbox, view, self.findings)
        self._failures = 0
        self._evaluated: dict[str, tuple[list[Outcome], str | None, Reason | None]] = {}

    def grade(self) -> Result:
        """Grade every exercise; a rejected submission has its reason as the result.

        Raises:
            HiddenChecksError: there are no checks for one of them.
            GraderFailed: the grader's own code failed too often for a score.
            WarmProcessLost: no worker can be made.
        """
        submission, found, results = self._submission, self.findings, dict[str, ExerciseResult]()
        if submission.rejected:
            return self._make_result("rejected", submission.reason)
        try:
            for answer in sorted(submission.exercises, key=lambda each: _describe_withheld(each.name)):
                began = time.perf_counter()
                result = self._grade_answer(answer)
                results[answer.name] = replace(result, seconds=time.perf_counter() - began)
            wrong = {name for name, each in results.items() if each.score < each.max_score and not each.waits}
            for answer in submission.exercises:
                better = self._carry_errors_forward(answer, results[answer.name], wrong - {answer.name})
                results[answer.name] = better
                if better.score == better.max_score:
                    wrong.discard(answer.name)
        finally:
            self._workers.close()
        return replace(
            replace_exercises(self._make_result("graded"), (results[each.name] for each in submission.exercises)),
            reason=join_reason_clauses(submission.reason, *found.reasons),
            flags=tuple(dict.fromkeys((*submission.flags, *found.flags, *self._sandbox.flags))),
            notes=(*submission.notes, *found.notes),
            runs=self._workers.outputs,
            log=tuple(found.log),
        )

    def fail(self, reason: str, details: str) -> Result:
        """The result where grading broke off for a reason that is none of the student's, with details for the log."""
        entries = [LogEntry(LogKind.GRADER_FAILED, details)] if details else []
        return replace(self._make_result("error", reason), log=(*self.findings.log, *entries))

    def _make_result(self, status: Status, reason: str | None = None) -> Result:
        of, worth = self._submission, self._submission.max_score
        return Result(of.path, of.student, of.assignment, status, reason, max_score=worth, flags=of.flags)

    def _grade_answer(self, answer: ExerciseAnswer) -> ExerciseResult:
        name, worth = answer.name, answer.max_score
        if problem := self._checks.problems.get(name):
            words = OUR_ERROR.format(name)
            return ExerciseResult(name, 0.0, worth or 0.0, problem=words, reason=Reason.OUR_ERROR, waits_for=problem)
        checks = self._checks.exercises().get(name)
        if not checks or name not in course().exercises:
            raise HiddenChecksError(f"there are no hidden checks of {name}")
        if answer.file and not answer.problem:
            return self._grade_result_file(answer, answer.file, checks)
        if answer.file or answer.source is None:
            return fail_all_checks(name, worth, checks, answer.problem, answer.reason, answer.kind)
        try:
            worker = self._workers.ready(_describe_withheld(name))
            undefined, kind, nothing = self._describe_undefined_names(answer, worker)
            asked = None if nothing else self._ask_checks(name, checks, worker)
        except (WorkerLost, WorkerUnavailable) as error:
            words = error.words if isinstance(error, WorkerLost) else str(error)
            if isinstance(error, WorkerLost):
                self._workers.record_loss(error, name)
            whole, kind = (f"{each} was not evaluated: the submission {words}" for each in (name, "the answer"))
            return fail_all_checks(name, worth, checks, whole, Reason.NOT_RUN, kind)
        problem = " ".join(filter(None, (answer.problem, undefined))) or None
        reason = Reason.NOT_DEFINED if undefined else answer.reason
        if asked is None:
            return fail_all_checks(name, worth, checks, problem, reason, kind)
        return self._score_answer(answer, checks, asked, problem, reason)

    def _score_answer(
        self, answer: ExerciseAnswer, checks: Sequence[Check], asked: _Asked, problem: str | None, reason: Reason | None
    ) -> ExerciseResult:
        """The result of an answer that was evaluated; it earns nothing where something else has answered."""
        name, worth = answer.name, answer.max_score
        if why := describe_forbidden_call(course().rules.get(name), asked.called):
            self.findings.flag(FORBIDDEN_FUNCTION, name, why)
            return fail_all_checks(name, worth, checks, why, Reason.FORBIDDEN, course().rules[name].why.rstrip("."))
        if why := self._find_other_code(name, asked.answered):
            return fail_all_checks(name, worth, checks, why, Reason.FORBIDDEN, "other code answers")
        if self._workers.is_alive:  # an answer that has ended its worker gets no second run
            self._evaluated[name] = asked.outcomes, problem, reason
        return score_checks(name, worth, asked.outcomes, problem, reason, written=_read_definitions(answer))

    def _grade_result_file(self, answer: ExerciseAnswer, file: ResultFile, checks: Sequence[Check]) -> ExerciseResult:
        """Grade a result that lies beside the notebook: read here as numbers, nothing of it runs."""
        handed_in = read_contents(file)
        objects = {answer.name: lambda: handed_in}
        outcomes = [self._checks.evaluate(answer.name, each, Student(objects), self._key) for each in checks]
        for each in outcomes:
            self._log_details(answer.name, each)
        remark = self._measure_accuracy(answer.name, handed_in)
        reason = Reason.REMARK if remark else None
        return score_checks(answer.name, answer.max_score, self._name_failures(answer.name, outcomes), remark, reason)

    def _measure_accuracy(self, name: str, handed_in: FileBytes) -> str | None:
        """The accuracy in words, where it was measured; where it could not be, the instructor reads why."""
        try:
            return f"It is right on {self._checks.measure.measure(handed_in)}." if self._checks.measure else None
        except Failure:
            return None
        except NotMeasured as lack:
            self.findings.reasons.append(f"{name} could not be measured: {lack.advice}")
            return f"{name} could not be measured"

    def _find_other_code(self, exercise: str, answered: Sequence[str]) -> str | None:
        """Flag code that answered and is not the code that the page shows; a sentence where that is certain."""
        for name in course().exercises[exercise].objects:
            found = find_code_that_answered_instead(name, *self._workers.cells_run, answered)
            if found:
                self.findings.flag(OTHER_CODE, exercise, found.words)
                if found.is_certain:
                    return f"{found.words[0].upper()}{found.words[1:]}. An answer is what its own cell shows."
        return None

    def _carry_errors_forward(
        self, answer: ExerciseAnswer, result: ExerciseResult, wrong_exercises: Collection[str]
    ) -> ExerciseResult:
        """The result with what passes once the answer's parts are right: an error costs points once."""
        first, problem, reason = self._evaluated.get(answer.name, ((), None, None))
        failed = [each.check for each in first if each.result.verdict == Verdict.FAIL]
        if not answer.parts or not failed or self._workers.is_out_of_time:
            return result
        began = time.perf_counter()
        merged = merge_outcomes(first, self._ask_with_model_parts(answer, failed))
        if merged is None:
            return result
        outcomes, gained = merged
        parts = [part.exercise for part in answer.parts]
        note = describe_parts_carried_forward(answer.name, parts, wrong_exercises, gained, len(failed) - gained)
        named = self._name_failures(answer.name, outcomes)
        words = " ".join(filter(None, (problem, note)))
        reason = reason or Reason.REMARK
        better = score_checks(answer.name, answer.max_score, named, words, reason, written=_read_definitions(answer))
        return replace(better, seconds=result.seconds + time.perf_counter() - began)

    def _ask_with_model_parts(self, answer: ExerciseAnswer, checks: Sequence[Check]) -> list[Outcome]:
        """What checks find in a separate worker, in which the answer calls the model solutions of its parts."""
        outcomes, rule = list[Outcome](), course().rules.get(answer.name)
        lent = self._workers.with_model_parts(answer, _describe_withheld(answer.name))
        with suppress(WorkerLost, GraderFailed), lent as worker:
            worker.apply_rule(rule)
            for check in checks:
                student = RemoteStudent(worker, course().exercises[answer.name].objects)
                outcome = self._checks.evaluate(answer.name, check, student, self._key)
                if worker.lost or worker.failure or describe_forbidden_call(rule, worker.called):
                    break
                if self._find_other_code(answer.name, worker.answered):
                    break
                outcomes.append(outcome)
        return outcomes

    def _ask_checks(self, name: str, checks: Sequence[Check], worker: Worker) -> _Asked:
        """Ask the checks in turn.

        Once the worker is lost, the check that was running and all the others fail; where the grader itself fails, the
        check decides nothing, and the next one is evaluated in a fresh worker.
        """
        outcomes: list[Outcome] = []
        called: dict[str, None] = {}
        answered: list[str] = []
        worker.apply_rule(course().rules.get(name))
        for check in checks:
            student = RemoteStudent(worker, course().exercises[name].objects)
            check = check.skip_passed_first(each.check for each in outcomes if each.result.verdict == Verdict.PASS)
            outcomes.append(self._checks.evaluate(name, check, student, self._key))
            called |= dict.fromkeys(worker.called)
            answered += worker.answered
            self._log_details(name, outcomes[-1])
            if worker.failure:
                worker = self._log_failure_and_restart(name, check, worker.failure)
                worker.apply_rule(course().rules.get(name))
            elif worker.lost:
                named = self._name_failures(name, outcomes[:-1])
                return _Asked(
                    [*named, *self._fail_remaining_checks(name, outcomes[-1], checks, worker.lost)], called, answered
                )
        worker.apply_rule(None)
        if self._failures and all(each.result.verdict == Verdict.UNDECIDED for each in outcomes):
            raise GraderFailed(f"the grader failed, and so nothing could be decided about {name}")
        return _Asked(self._name_failures(name, outcomes, worker), called, answered)

    def _log_details(self, name: str, outcome: Outcome) -> None:
        if outcome.log:
            broke = outcome.result.verdict == Verdict.UNDECIDED
            kind = LogKind.BROKEN_CHECK if broke else LogKind.DETAIL
            text = "\n".join(filter(None, (outcome.broke, outcome.log)))
            self.findings.log.append(LogEntry(kind, text, name, outcome.check.name))

    def _log_failure_and_restart(self, name: str, check: Check, failure: GraderFailed) -> Worker:
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
            return self._workers.replace_after_failure()
        except WorkerUnavailable as reason:
            raise GraderFailed(f"the grader failed in {check.name} of {name}, and could not go on: {reason}") from None

    def _name_failures(self, name: str, outcomes: Sequence[Outcome], worker: Worker | None = None) -> list[Outcome]:
        """The outcomes with the misconceptions that explain them; without, where the grader fails at that.

        Args:
            name: of the exercise.
            outcomes: of its checks.
            worker: where the answer can be asked more; None: nowhere.
        """
        exercise = course().exercises[name]
        student = (lambda: RemoteStudent(worker, exercise.objects)) if worker else None
        try:
            replays = Replays(self._checks, name, self._key, [each.check for each in outcomes])
            return name_failures(exercise, outcomes, replays, student)
        except MemoryError:
            raise
        except Exception as error:
            text = "".join(["while it looked for the mistake's name:\n", *traceback.format_exception(error)])
            self.findings.log.append(LogEntry(LogKind.GRADER_FAILED, text, name))
            return list(outcomes)

    def _fail_remaining_checks(
        self, name: str, running: Outcome, checks: Sequence[Check], lost: WorkerLost
    ) -> Iterator[Outcome]:
        """The check that was ``running`` and those behind it: what it says of the loss goes for all of them."""
        self._workers.record_loss(lost, name)
        first = running.result
        if first.verdict != Verdict.FAIL:
            first = make_check_result(running.check, Failure(f"the code {lost.words}"))
        for check in checks[[each.name for each in checks].index(running.check.name) :]:
            yield Outcome(check, replace(first, name=check.name, claim=check.claim))

    def _describe_undefined_names(self, answer: ExerciseAnswer, worker: Worker) -> tuple[str, str, bool]:
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
            names = join_names([f"`{name}`" for name in missing])
            failure, words = self._workers.describe_cell_failure(answer.cell)
            problems.insert(0, f"{names} {verb} not defined{failure}{words}.")
            kind = f"the answer is not defined{failure}"
        return " ".join(problems), kind, len(missing) + len(other) == len(exercise.objects)


def _describe_withheld(name: str) -> str:
    """What is not there where an exercise's answer is evaluated; empty: nothing is withheld."""
    return course().rules[name].withheld if name in course().rules else ""


def _read_definitions(answer: ExerciseAnswer) -> list[Definition]:
    """What the answer's cell defines for the exercise; it is read, and not run."""
    return parse_definitions(answer.source or "", course().exercises[answer.name].objects)
