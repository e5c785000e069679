"""The workers of a cluster: who may judge, who is lost, what becomes of a submission. Most replies are made up."""

from __future__ import annotations

import json
import shutil
import threading
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from exercise_kit.batch.batch import Grader
from exercise_kit.batch.job import Task
from exercise_kit.batch.locations import Place
from exercise_kit.cluster import executor as cluster
from exercise_kit.cluster import worker as cluster_worker
from exercise_kit.cluster.executor import Cluster, ClusterError, merge_remote_and_local_results
from exercise_kit.cluster.worker import Needs, make_request, reply_to_request
from exercise_kit.judge.result import ExerciseResult, Result
from exercise_kit.reasons import Reason
from exercise_kit.sandbox import devices
from exercise_kit.sandbox.limits import Limits
from exercise_kit.submission.find import FoundFile
from exercise_kit.submission.submission import CellSource, ExerciseAnswer, Part, Submission
from exercise_kit.worker import capabilities
from tests.waiting import GIVE_UP, wait_until

ROOT = Path(__file__).parents[3]
HIDDEN = ROOT / "tests" / "hidden"
SECRET = b"the secret of the class"
REPLIES = {}  # a worker's name → what it replies to a submission, or raises; it may also refuse the question before it
BLOCKED, GO_ON = threading.Event(), threading.Event()


@pytest.fixture(autouse=True, scope="module")
def distributed():
    return pytest.importorskip("distributed", reason="dask is an extra")


def reply_as_worker(request):
    from distributed import get_worker

    worker, content = get_worker(), json.loads(request)
    found = (
        REPLIES[worker.name](content) if "submission" in content or REPLIES[worker.name] is reply_with_refusal else {}
    )
    return json.dumps({"host": "there", **found}).encode()


def reply_with_grade(request):
    score = ExerciseResult("patchify", 8.0, 8.0)
    return {"result": Result("", None, None, "graded", score=8.0, max_score=8.0, exercises=(score,)).to_store()}


def reply_with_refusal(request):
    return {"refused": "it has other hidden checks"}


def reply_with_failure(request):
    return {"failed": "its process was stopped"}


def reply_with_full_disk(request):
    return {"result": Result("", None, None, "error", "the judge failed: No space left on device").to_store()}


def reply_with_nonsense(request):
    return {"result": {"score": 3}}


def hang_then_grade(request):
    BLOCKED.set()
    GO_ON.wait(GIVE_UP)
    return reply_with_grade(request)


@pytest.fixture
def workers(monkeypatch, distributed):
    """A scheduler and two workers in this process."""
    monkeypatch.setattr(cluster, "reply_to_request", reply_as_worker)
    monkeypatch.setattr(cluster, "LOOK", 0.02)
    BLOCKED.clear()
    GO_ON.clear()
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as found:
        yield found
        GO_ON.set()


@pytest.fixture
def task(tmp_path):
    return Task(FoundFile(tmp_path / "ada" / "a.ipynb"), Place(None, HIDDEN, SECRET, tmp_path / "results"))


def make_submission(number=0):
    part = Part("unpatchify", "def unpatchify(): ...")
    answer = ExerciseAnswer("patchify", 8.0, "x = 1", 0, "It is empty.", Reason.NOT_RUN, parts=(part,))
    cells = (CellSource(0, "x = 1"),)
    return Submission("ada/a.ipynb", "ada", "01_patchify", "01_patchify", f"{number:064}", cells, (answer,))


def judge_all(workers, task, count=6):
    """The results of some submissions, judged at a time, and what was said of workers."""
    reported = []
    connected = Cluster(workers.scheduler_address, task, reported.append)
    try:
        wait_until(
            lambda: len(connected._workers) == 2 and not any(each.question for each in connected._workers.values())
        )
        with ThreadPoolExecutor(count) as threads:
            return list(threads.map(lambda n: connected.judge(task, make_submission(n)), range(count))), reported
    finally:
        connected.close()


def test_a_worker_that_refuses_is_named_and_others_do_its_work(workers, task):
    REPLIES.update({0: reply_with_refusal, 1: reply_with_grade})
    results, reported = judge_all(workers, task)
    assert [each.score for each in results] == [8.0] * 6
    assert [(each.path, each.student) for each in results] == [("ada/a.ipynb", "ada")] * 6
    refused = next(each.address for each in workers.workers.values() if each.name == 0)
    assert reported == [f"the worker at {refused} (on there) grades nothing: it has other hidden checks."]


def test_where_all_refuse_nothing_is_graded(workers, task, monkeypatch):
    monkeypatch.setattr(cluster, "BEGINNING", 1)
    REPLIES.update({0: reply_with_refusal, 1: reply_with_refusal})
    with pytest.raises(ClusterError, match="every worker there refused to grade"):
        judge_all(workers, task)


@pytest.mark.parametrize(
    "broken", [reply_with_failure, reply_with_full_disk, reply_with_nonsense], ids=lambda each: each.__name__
)
def test_a_worker_that_always_fails_costs_nobody_a_grade(workers, task, broken):
    REPLIES.update({0: broken, 1: reply_with_grade})
    results, reported = judge_all(workers, task, 12)
    assert {(each.status, each.score) for each in results} == {("graded", 8.0)}
    assert len(reported) <= 1
    assert all("it failed 3 times, and others do not" in each for each in reported)


def test_a_submission_with_which_workers_fail_three_times_is_our_error(workers, task):
    REPLIES.update({0: reply_with_failure, 1: reply_with_failure})
    (result,), _ = judge_all(workers, task, 1)
    assert result.status == "error"
    assert result.student == "ada"
    assert "given up after 3 attempts" in result.reason
    assert "its process was stopped" in result.reason


async def start_new_worker(address):
    from distributed import Worker

    return await Worker(address, name="new", nthreads=1)


def test_what_a_lost_worker_had_in_hand_goes_to_one_that_joins(workers, task):
    REPLIES.update({0: hang_then_grade, 1: reply_with_refusal, "new": reply_with_grade})
    reported = []
    connected = Cluster(workers.scheduler_address, task, reported.append)
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(connected.judge, task, make_submission())
        assert BLOCKED.wait(GIVE_UP)
        lost = workers.workers[0].address
        workers.sync(workers.workers[0].close, executor_wait=False, nanny=False)
        joined = workers.sync(start_new_worker, workers.scheduler_address)
        assert found.result(GIVE_UP).score == 8.0
    connected.close()
    workers.sync(joined.close)
    assert f"the worker at {lost} (on there) was lost; what it had in hand goes to others." in reported


def test_a_worker_that_comes_after_one_that_refuses_is_waited_for(workers, task):
    REPLIES.update({0: reply_with_refusal, 1: reply_with_refusal, "new": reply_with_grade})
    connected, looks = Cluster(workers.scheduler_address, task, lambda text: None), []
    update = connected._update_workers
    connected._update_workers = lambda present: (update(present), looks.append(len(present)))
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(connected.judge, task, make_submission())
        wait_until(lambda: len(looks) > 4 and not any(each.question for each in connected._workers.values()))
        joined = workers.sync(start_new_worker, workers.scheduler_address)
        assert found.result(GIVE_UP).score == 8.0
    connected.close()
    workers.sync(joined.close)


def test_a_scheduler_that_falls_silent_is_reported(workers, task, monkeypatch):
    def raise_os_error(*_):
        raise OSError

    monkeypatch.setattr(cluster, "_read_connection_timeout", lambda: 0.1)
    REPLIES.update({0: hang_then_grade, 1: hang_then_grade})
    connected = Cluster(workers.scheduler_address, task, lambda text: None)
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(connected.judge, task, make_submission())
        assert BLOCKED.wait(GIVE_UP)
        monkeypatch.setattr(cluster, "_query_scheduler", raise_os_error)
        with pytest.raises(ClusterError, match=r"does not answer any more\. What was graded is kept"):
            found.result(GIVE_UP)
    GO_ON.set()
    connected.close()


def test_a_scheduler_of_another_version_is_refused(workers, task, monkeypatch):
    monkeypatch.setattr(cluster, "version", lambda package: "2020.1.0")
    with pytest.raises(ClusterError, match=r"runs distributed 20\S+, and this machine 2020\.1\.0; install the same"):
        Cluster(workers.scheduler_address, task, print)


def test_a_request_tells_neither_the_secret_nor_whose_it_is(task):
    request = make_request(task, make_submission())
    whose = b'"ada"', b"ada/", str(task.handed_in.path).encode()  # of letters alone, a key's hexadecimal digits may be
    assert not [word for word in (SECRET, SECRET.hex().encode(), *whose) if word in request]
    content = json.loads(request)
    received = cluster_worker._parse_submission(content["submission"])
    assert replace(received, path="ada/a.ipynb", student="ada", assignment="01_patchify") == make_submission()
    assert bytes.fromhex(content["key"]) == make_submission().derive_key(SECRET)


def test_checks_are_found_in_the_clone_where_the_grader_s_folder_is_not_seen(task, tmp_path):
    place = replace(task.place, checks=Path(shutil.copytree(HIDDEN, tmp_path / "hidden")))
    needs = Needs.of(replace(task, place=place))
    assert cluster_worker._find_checks_folder(needs) == tmp_path / "hidden"
    assert cluster_worker._find_checks_folder(replace(needs, folder="/nowhere")) == HIDDEN
    (tmp_path / "hidden" / "test_patchify.py").write_text("", encoding="utf-8")
    assert cluster_worker._find_checks_folder(needs) == HIDDEN
    assert cluster_worker._find_checks_folder(replace(needs, checks="0" * 64)) is None


def test_other_checks_are_refused_by_name(task, tmp_path):
    own = Path(shutil.copytree(HIDDEN, tmp_path / "hidden"))
    (own / "test_patchify.py").write_text("", encoding="utf-8")
    request = make_request(replace(task, place=replace(task.place, checks=own)), make_submission())
    shutil.rmtree(own)
    reply = json.loads(reply_to_request(request))
    assert reply["host"]
    assert f"it has other hidden checks: those of this run are not in {own} or {HIDDEN} there" in reply["refused"]


def test_a_process_that_dies_is_a_failure(task, monkeypatch):
    def raise_broken_executor(*_):
        raise BrokenExecutor

    monkeypatch.setattr(cluster_worker.JobProcess, "call", raise_broken_executor)
    assert (
        json.loads(reply_to_request(make_request(task, make_submission())))["failed"]
        == "its process was stopped (BrokenExecutor)"
    )


def test_another_version_code_or_device_is_refused(task, monkeypatch):
    needs = Needs.of(task)
    assert cluster_worker._find_unmet_need(replace(needs, sandboxed=False)) is None
    other = tuple((name, "9.9" if name == "torch" else number) for name, number in needs.versions)
    assert "where the grader has 9.9; install the same versions" in cluster_worker._find_unmet_need(
        replace(needs, versions=other)
    )
    assert "another one than the grader's" in cluster_worker._find_unmet_need(replace(needs, code="0" * 64))
    elsewhere = replace(needs, limits=Limits(device="cuda:99"))
    assert "it cannot compute on cuda:99: " in cluster_worker._find_unmet_need(elsewhere)
    lacking = capabilities.SandboxCapabilities(0, False, False, {"landlock": "use Linux 5.13 or newer"})
    monkeypatch.setattr(capabilities, "probe_capabilities", lambda: lacking)
    words = "it cannot keep students' code apart (landlock: use Linux 5.13 or newer)"
    assert cluster_worker._find_unmet_need(replace(needs, folder="/elsewhere")) == words
    assert devices.list_missing_protections("cpu") == lacking.missing


def test_what_was_judged_on_two_machines_is_one_result():
    there = Result("a", "ada", None, "graded", "odd", 8.0, 8.0, 1.0, ("timeout",), (ExerciseResult("a", 8.0, 8.0),))
    here = Result("", None, None, "graded", "no images", 1.0, 3.0, 2.0, (), (ExerciseResult("b", 1.0, 3.0),))
    both = merge_remote_and_local_results(there, here)
    assert (both.score, both.max_score, both.seconds, both.reason) == (9.0, 11.0, 3.0, "odd; no images")
    assert [each.name for each in both.exercises] == ["a", "b"]
    failed = replace(here, status="error")
    assert (
        merge_remote_and_local_results(there, failed),
        merge_remote_and_local_results(None, here),
        merge_remote_and_local_results(there, None),
    ) == (failed, here, there)


@pytest.mark.proof
def test_a_cluster_grades_as_this_machine_does(work, tmp_path, distributed):
    """In real processes: the judge, the sandbox and dask's own daemons; asked again, nobody is asked but the store."""
    right, broken = work(solved=True).write(), tmp_path / "b.ipynb"
    broken.write_text("{", encoding="utf-8")
    there, here = (Place(None, HIDDEN, SECRET, tmp_path / name / "results") for name in ("there", "here"))
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as workers,
        Grader(there, scheduler=workers.scheduler_address) as grader,
    ):
        done = list(grader.run([FoundFile(right, "ada"), FoundFile(broken), FoundFile(tmp_path / "gone.ipynb")]))
    with Grader(here) as grader:
        local = next(iter(grader.run([FoundFile(right, "ada")]))).result
    with Grader(there) as grader:
        again = next(iter(grader.run([FoundFile(right, "ada")])))
    assert [each.result.status for each in done] == ["graded", "rejected", "error"], done
    assert drop_seconds(done[0].result) == drop_seconds(local) == drop_seconds(again.result)
    assert again.from_cache
    assert not done[0].from_cache
    assert local.score == local.max_score > 0


def drop_seconds(result):
    return result.as_dict() | {"seconds": None}
