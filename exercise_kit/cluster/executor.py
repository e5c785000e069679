"""The workers of a dask cluster, as ``vit-course grade --scheduler`` uses them: who may judge, and who judges what.

One submission is one task for one worker, which is asked beforehand whether it judges as this machine would. What a
lost worker had in hand goes to another one; a submission is given up after three such attempts, as our error.
Results come back here, and are kept here alone.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import warnings
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from exercise_kit.batch.job import Task
from exercise_kit.batch.locations import GradeError
from exercise_kit.batch.result_cache import copy_result_for_submission
from exercise_kit.cluster.worker import make_request, reply_to_request
from exercise_kit.judge.result import Result, join_reason_clauses, replace_exercises
from exercise_kit.quoting import make_one_line
from exercise_kit.submission.submission import Submission

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_SECONDS = 10.0
LOOK = 0.5  # seconds between two looks at the cluster
PATIENCE = 60.0  # seconds without any worker that may judge
BEGINNING = 15.0  # seconds for others to come, where all that are there refuse: they were started at the same time
# attempts at a submission with which a worker is lost or fails, and that end in an error of the grader's
MOST_LOSSES, MOST_ERRORS = 3, 2
MOST_FAILURES = 3  # of a worker, one after another, while others have none
GOES_ON = "What was graded is kept: the same command goes on from there, with --scheduler or without"


class ClusterError(GradeError):
    """Nothing can be graded on the cluster, or no more; the message says why, and what to do."""


@dataclass(eq=False)
class _Worker:
    """A dask worker: its ``address`` and how many tasks it takes at once, and what is known of it.

    Attributes: ``busy`` (how many it has in hand), ``question`` (its reply is awaited), ``may_judge``, ``gone``,
    ``streak`` (how many it has judged since it last failed; below 0, how often it has failed since it last judged one).
    """

    address: str
    seats: int
    busy: int = 0
    question: Future[bytes] | None = None
    host: str = ""
    may_judge: bool = False
    gone: bool = False
    streak: int = 0

    def __str__(self) -> str:
        return make_one_line(f"the worker at {self.address}" + (f" (on {self.host})" if self.host else ""))


class Cluster:
    """A connection to a dask scheduler.

    Args:
        address: the scheduler's.
        task: any of those to come; it says what a worker needs.
        report: gets a sentence on each worker that refuses or is lost, in any thread.

    Raises:
        ClusterError: dask is not installed, there is no scheduler at the address, or one of another version.
    """

    def __init__(self, address: str, task: Task, report: Callable[[str], None]) -> None:
        self._address, self._task, self._report = address, task, report
        self._client = _connect_to_scheduler(address)
        self._workers: dict[str, _Worker] = {}
        self._freed = threading.Condition()  # a seat
        self._ended: str | None = None
        self._had_any = False  # a worker that may judge
        self._closing = threading.Event()
        self._watch = threading.Thread(target=self._keep_workers_updated, name="cluster", daemon=True)
        self._watch.start()

    def judge(self, task: Task, submission: Submission) -> Result:
        """The result of a submission, from whichever worker is free.

        Raises:
            ClusterError: the scheduler does not answer any more, or no worker may judge.
        """
        request, tried = make_request(task, submission), list[str]()
        while True:
            worker = self._reserve_worker(tried)
            reply = self._ask_worker(worker, request)
            result = self._process_reply(worker, reply)
            if result or "failed" in reply:
                tried.append(worker.address)
            if "failed" in reply and len(tried) >= MOST_LOSSES:
                why = (
                    f"it was given up after {len(tried)} attempts, in each of which a worker was lost or failed (the "
                    f"last: {reply['failed']}); it has no score until a person has looked at it"
                )
                result = Result("", None, None, "error", why)
            if result and (result.status != "error" or len(tried) >= MOST_ERRORS):
                return copy_result_for_submission(result, submission)

    def stop(self) -> None:
        """Wait for no worker any more."""
        self._record_end_reason("it was stopped")

    def close(self) -> None:
        """End the connection; the workers stay."""
        self._closing.set()
        self._watch.join()
        with suppress(Exception):  # nobody answers, or it was closed before
            self._client.close(timeout=2)

    def _record_end_reason(self, reason: str) -> None:
        self._ended = self._ended or reason

    def _raise_if_connection_ended(self) -> None:
        if self._ended:
            raise ClusterError(self._ended)

    def _reserve_worker(self, tried_addresses: Collection[str]) -> _Worker:
        """A worker that has a seat for the caller; one of those that were tried only where there is no other."""
        with self._freed:
            while True:
                self._raise_if_connection_ended()
                judging = self._list_judging_workers()
                wanted = [each for each in judging if each.address not in tried_addresses] or judging
                worker = max(wanted, key=lambda each: each.seats - each.busy, default=None)
                if worker and worker.busy < worker.seats:
                    worker.busy += 1
                    return worker
                self._freed.wait(LOOK)

    def _ask_worker(self, worker: _Worker, request: bytes) -> Mapping[str, Any]:
        """Ask a worker; nothing where only the connection was lost, and ``failed`` where the worker was."""
        done = threading.Event()
        try:
            future = self._submit_request(worker, request)
            future.add_done_callback(lambda _: done.set())
            while not done.wait(LOOK):
                self._raise_if_connection_ended()
                if worker.gone:
                    return {"failed": f"{worker} was lost"}
            return _read_reply(future)
        except ClusterError:
            raise
        except Exception:  # the connection, which comes back or is given up for lost by whoever watches it
            time.sleep(LOOK)
            return {}

    def _submit_request(self, worker: _Worker, request: bytes) -> Future[bytes]:
        # dask's own executor of concurrent.futures leaves a Future pending for ever where the result of a task that
        # has ended is lost with the connection
        return self._client.submit(
            reply_to_request, request, workers=[worker.address], allow_other_workers=False, pure=False, retries=0
        )

    def _process_reply(self, worker: _Worker, reply: Mapping[str, Any]) -> Result | None:
        """The result in a reply, if there is one; the worker can get another task, unless it should not."""
        result: Result | None = reply.get("result")
        if "refused" in reply:
            self._exclude_worker(worker, reply["refused"])
        if result and result.status != "error":
            worker.streak = max(worker.streak, 0) + 1
        elif result or "failed" in reply:
            worker.streak = min(worker.streak, 0) - 1
            why = result.reason if result else reply["failed"]
            if worker.streak <= -MOST_FAILURES and any(each.streak > 0 for each in self._list_judging_workers()):
                self._exclude_worker(worker, f"it failed {-worker.streak} times, and others do not ({why})")
        with self._freed:
            worker.busy -= 1
            self._freed.notify_all()
        return result

    def _exclude_worker(self, worker: _Worker, reason: str) -> None:
        is_news, worker.may_judge = worker.may_judge or worker.question, False
        if is_news:
            self._report(make_one_line(f"{worker} grades nothing: {reason}."))

    def _list_judging_workers(self) -> list[_Worker]:
        return [each for each in list(self._workers.values()) if each.may_judge and not each.gone]

    def _keep_workers_updated(self) -> None:
        """Keep the list of workers; end all where the scheduler is silent, or nobody may judge."""
        heard = useful = time.monotonic()
        silence = _read_connection_timeout()
        while not self._closing.wait(LOOK) and not self._ended:
            try:
                self._update_workers(_query_scheduler(self._client, "ncores", silence))
                heard = time.monotonic()
            except Exception:  # whatever a connection that is lost, or half lost, raises
                if self._client.status == "closed" or time.monotonic() - heard > silence:
                    self._record_end_reason(f"the scheduler at {self._address} does not answer any more. {GOES_ON}")
                continue
            here = [each for each in self._workers.values() if not each.gone]
            if any(each.may_judge or each.question for each in here):
                useful = heard
            elif heard - useful > (BEGINNING if here and not self._had_any else PATIENCE):
                what = "every worker there refused to grade" if here else "no worker is connected to it"
                self._record_end_reason(f"the scheduler at {self._address} is of no use: {what}. {GOES_ON}")

    def _update_workers(self, present: Mapping[str, int]) -> None:
        """Ask workers that are new whether they may judge; note which were lost, and what the others reply."""
        for address, seats in present.items():
            if address not in self._workers or self._workers[address].gone:
                worker = self._workers[address] = _Worker(address, seats)
                worker.question = self._submit_request(worker, make_request(self._task))
        for worker in list(self._workers.values()):
            if worker.address not in present and not worker.gone:
                worker.gone, worker.question = True, None
                if worker.may_judge:
                    self._report(f"{worker} was lost; what it had in hand goes to others.")
            elif worker.question and worker.question.done():
                reply = _read_reply(worker.question)
                self._accept_worker_if_suitable(worker, reply)

    def _accept_worker_if_suitable(self, worker: _Worker, reply: Mapping[str, Any]) -> None:
        """Let a worker judge, if its reply speaks for it; where the reply was lost, ask again."""
        if not reply:
            worker.question = self._submit_request(worker, make_request(self._task))
            return
        worker.host = str(reply.get("host", ""))
        lack = reply.get("refused")
        if failed := reply.get("failed"):
            lack = (
                f"it does not say what it has installed ({failed}); is the same version of the course installed there?"
            )
        if lack:
            self._exclude_worker(worker, lack)
        else:
            worker.may_judge = self._had_any = True
        worker.question = None


def _read_reply(future: Future[bytes]) -> Mapping[str, Any]:
    """The reply of a task that has ended; nothing where the connection to it was lost."""
    if future.status == "error":
        error = future.exception(timeout=CONNECT_SECONDS)
        return {"failed": f"{type(error).__name__}: {error}"}
    if future.status != "finished":
        return {}
    try:
        reply: dict[str, Any] = json.loads(future.result(timeout=CONNECT_SECONDS))
        return reply | {"result": Result.from_dict(reply["result"])} if "result" in reply else reply
    except (KeyError, TypeError, ValueError) as error:
        return {"failed": f"its reply cannot be read ({type(error).__name__}: {error})"}


def _connect_to_scheduler(address: str) -> Client:
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        if error.name != "distributed":
            raise
        raise ClusterError('--scheduler needs dask: pip install "vit-course[cluster]"') from None
    for name in [each for each in logging.root.manager.loggerDict if each.startswith("distributed")]:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # we say in our own words what is lost
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
            theirs = _query_scheduler(client, "versions", CONNECT_SECONDS)["packages"]
    except Exception as error:  # a server that is none of dask's, or of an old dask, can be wrong in every way
        raise ClusterError(f"there is no scheduler at {address}: {type(error).__name__}: {error}") from None
    ours = version("distributed")
    if theirs.get("distributed") != ours:
        client.close(timeout=2)
        raise ClusterError(
            f"the scheduler at {address} runs distributed {theirs.get('distributed')}, and this machine {ours}; "
            "install the same version on all machines"
        )
    return client


def _query_scheduler(client: Client, method: str, seconds: float) -> Any:
    """Ask the scheduler, and wait so many seconds."""
    return client.sync(getattr(client.scheduler, method), callback_timeout=seconds)


def _read_connection_timeout() -> float:
    """For how many seconds a scheduler may not answer: what dask's own connections allow."""
    import dask

    seconds: float = dask.utils.parse_timedelta(dask.config.get("distributed.comm.timeouts.tcp"))
    return seconds


def merge_remote_and_local_results(worker_result: Result | None, local_result: Result | None) -> Result:
    """One result of exercises that were judged on a worker, and of those that were judged on this machine."""
    results = [each for each in (worker_result, local_result) if each]
    failed = [each for each in results if each.status != "graded"]
    first = (failed or results)[0]
    if failed or len(results) == 1:
        return first
    whole = replace(
        first,
        reason=join_reason_clauses(*(each.reason for each in results)),
        seconds=sum(each.seconds for each in results),
        flags=tuple(dict.fromkeys(flag for each in results for flag in each.flags)),
        notes=tuple(note for each in results for note in each.notes),
        log=tuple(entry for each in results for entry in each.log),
    )
    return replace_exercises(whole, [exercise for each in results for exercise in each.exercises])
