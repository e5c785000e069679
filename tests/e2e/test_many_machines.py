"""`vit-course grade --scheduler`, each machine in a network namespace of its own: one dies, one joins, links are cut.

No worker sees the class folder, one has other checks, and one a full disk: what ``mount`` does in a namespace, other
machines' disks do.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from exercise_kit.batch.locations import find_place
from exercise_kit.sandbox.package_view import find_views_folder
from tests.e2e.commands import ROOT, make_command
from tests.e2e.test_grade import list_kept_results, make_class, read_results
from tests.waiting import GIVE_UP, wait_until

pytestmark = pytest.mark.proof

STUDENTS = 12
SCHEDULER = "tcp://10.77.0.1:8786"
MACHINES = {"scheduler": 1, "grader": 2, "first": 3, "second": 4, "other": 5, "third": 6, "full": 7}
SMALL = "-t tmpfs -o size=512k tmpfs"
SHORT = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "12s"}  # dask takes no less than 11


@pytest.fixture(autouse=True, scope="module")
def _require_distributed():
    pytest.importorskip("distributed", reason="dask is an extra")


def run_ip(*arguments):
    subprocess.run(["ip", *map(str, arguments)], check=True, capture_output=True)


class Machines:
    """Network namespaces on one switch, and what runs in them."""

    def __init__(self, folder):
        self.folder, self.mark, self.running = folder, f"vit{os.getpid()}", {}

    def connect(self):
        run_ip("netns", "add", self.name("switch"))
        run_ip("-n", self.name("switch"), "link", "add", "br0", "type", "bridge")
        run_ip("-n", self.name("switch"), "link", "set", "br0", "up")
        for machine, number in MACHINES.items():
            run_ip("netns", "add", self.name(machine))
            here = ("netns", self.name("switch"), "type", "veth")
            run_ip("link", "add", machine, *here, "peer", "name", "eth0", "netns", self.name(machine))
            run_ip("-n", self.name(machine), "addr", "add", f"10.77.0.{number}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                run_ip("-n", self.name(machine), "link", "set", device, "up")
            run_ip("-n", self.name("switch"), "link", "set", machine, "master", "br0")
            self.set_link(machine, "up")

    def set_link(self, machine, state):
        run_ip("-n", self.name("switch"), "link", "set", machine, state)

    def name(self, machine):
        return f"{self.mark}{machine}"

    def start(self, machine, command, *mounts, **options):
        """Start a command on a machine, on which something else lies in the places of some folders: (it, place)."""
        over = "".join(f"mount {what} '{place}' && " for what, place in mounts)
        order = ["ip", "netns", "exec", self.name(machine), "sh", "-c", f'{over}exec "$@"', "sh", *command]
        log = open(self.folder / f"{machine}.log", "ab")  # noqa: SIM115  # as long as the machine
        options = {"stdout": log, "stderr": log, "env": os.environ | SHORT, "start_new_session": True, **options}
        self.running[machine] = subprocess.Popen(order, **options)
        return self.running[machine]

    def kill(self, machine):
        with suppress(ProcessLookupError):
            os.killpg(self.running[machine].pid, signal.SIGKILL)
        self.running.pop(machine).wait()

    def remove(self):
        for machine in list(self.running):
            self.kill(machine)
        for machine in (*MACHINES, "switch"):
            subprocess.run(["ip", "netns", "del", self.name(machine)], check=False, capture_output=True)


def reason_to_skip():
    if os.geteuid() or not shutil.which("ip"):
        return "network namespaces need root and iproute2"
    tried = subprocess.run(["ip", "netns", "add", f"vit{os.getpid()}"], check=False, capture_output=True, text=True)
    subprocess.run(["ip", "netns", "del", f"vit{os.getpid()}"], check=False, capture_output=True)
    return f"this machine makes no network namespaces: {tried.stderr.strip()}" if tried.returncode else None


@pytest.fixture
def machines(tmp_path):
    if why := reason_to_skip():
        pytest.skip(why)
    found = Machines(tmp_path)
    try:
        found.connect()
        yield found
    finally:
        found.remove()


@pytest.fixture
def class_dir(tmp_path):
    return make_class(tmp_path / "a class", STUDENTS, wrong=1)


def make_grade_command(target, *options):
    return make_command("grade", "submitted", "--json", target, *options)


def make_dask_command(*arguments):
    return [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]


def read_scores(path):
    """All that is published but the time that it took."""
    return [entry | {"seconds": None} for entry in read_results(path)]


class Grading:
    """A class, the machines that grade it, and what they say."""

    def __init__(self, machines, class_dir, folder):
        self.machines, self.class_dir, self.folder = machines, class_dir, folder
        self.words, self.empty = folder / "grader.txt", folder / "empty"
        self.empty.mkdir()
        machines.start("scheduler", make_dask_command("scheduler", "--host", "10.77.0.1"))
        wait_until(lambda: b"Scheduler at:" in (folder / "scheduler.log").read_bytes())

    def start_worker(self, machine, *mounts):
        """Start a worker, which does not see the class folder."""
        disk = self.folder / f"disk of {machine}"
        order = make_dask_command("worker", SCHEDULER, "--nthreads", "1", "--local-directory", str(disk))
        self.machines.start(machine, order, (f"--bind '{self.empty}'", self.class_dir), *mounts)

    def grade(self, target, *options):
        """Start `grade --scheduler` on the grader's machine."""
        order = make_grade_command(target, "--scheduler", SCHEDULER, *options)
        with self.words.open("wb") as log:
            settings = {"cwd": self.class_dir, "stdout": subprocess.DEVNULL, "stderr": log}
            return self.machines.start("grader", order, **settings)

    def read_output(self):
        return self.words.read_text("utf-8")

    def read_kept_times(self):
        return {path: path.stat().st_mtime_ns for path in list_kept_results(self.class_dir)}

    def wait_for_more_results(self):
        already = len(self.read_kept_times())
        wait_until(lambda: len(self.read_kept_times()) > already)


def write_lost_worker_pattern(number):
    return rf"the worker at tcp://10\.77\.0\.{number}:\d+ \(on .+\) was lost; what it had in hand goes to others"


def grade_until_cut_off(grading, target):
    """Grade until four have come and gone: one with other checks, one killed, one without its link, the grader's."""
    changed = shutil.copytree(ROOT / "tests" / "hidden", grading.folder / "changed")
    (changed / "test_patchify.py").open("a", encoding="utf-8").write("\n# another version\n")
    grading.start_worker("first")
    grading.start_worker("other", (f"--bind '{changed}'", ROOT / "tests" / "hidden"))
    running = grading.grade(target)
    wait_until(lambda: len(grading.read_kept_times()) >= 2)
    grading.machines.kill("first")
    grading.start_worker("second")
    grading.wait_for_more_results()
    grading.machines.set_link("second", "down")
    wait_until(lambda: re.search(write_lost_worker_pattern(4), grading.read_output()))
    grading.machines.set_link("second", "up")  # its worker gives up, or finishes what another one has by now
    grading.start_worker("third")
    grading.wait_for_more_results()
    grading.machines.set_link("grader", "down")
    assert running.wait(GIVE_UP) == 1
    grading.machines.set_link("grader", "up")


def test_machines_that_die_join_differ_or_are_cut_off_lose_nothing(machines, class_dir, tmp_path):
    find_place(class_dir)  # makes the secret
    alone = shutil.copytree(class_dir, tmp_path / "alone")
    grading, target = Grading(machines, class_dir, tmp_path), tmp_path / "many.json"
    grade_until_cut_off(grading, target)
    said, before = grading.read_output(), grading.read_kept_times()
    assert re.search(r"the worker at tcp://10\.77\.0\.5:\d+ \(on .+\) grades nothing: it has other hidden checks", said)
    assert re.search(write_lost_worker_pattern(3), said)
    assert f"the scheduler at {SCHEDULER} does not answer any more. What was graded is kept" in said
    assert "Traceback" not in said
    assert 4 <= len(before) < STUDENTS - 1
    assert {each["status"] for each in read_results(target)} == {"graded", "rejected", "error"}
    assert {each["student"] for each in read_results(target) if each["status"] == "graded"} == {
        json.loads(path.read_bytes())["result"]["student"] for path in before
    }

    done = subprocess.run(
        make_grade_command(target, "--resume"), cwd=class_dir, capture_output=True, text=True, check=False
    )
    assert f"{len(before)} of {STUDENTS} results were taken over" in done.stderr
    assert grading.read_kept_times().items() >= before.items(), "nothing was graded twice"
    assert len(grading.read_kept_times()) == STUDENTS - 1

    again = tmp_path / "again.json"
    resume_with_two_workers(grading, again)
    one_machine = tmp_path / "one.json"
    subprocess.run(make_grade_command(one_machine), cwd=alone, capture_output=True, check=False)
    assert read_scores(target) == read_scores(again) == read_scores(one_machine)
    assert [each["score"] < each["max_score"] for each in read_scores(target)].count(True) == 1


def resume_with_two_workers(grading, target):
    """Two results are lost; a worker with a full disk gives nobody one, and another worker gives them again."""
    for machine in ("second", "third"):
        grading.machines.kill(machine)
    before = grading.read_kept_times()
    for path in sorted(before)[:2]:
        path.unlink()
        del before[path]
    grading.start_worker("full", (SMALL, find_views_folder()))  # where the judge writes most
    grading.grade(target, "--resume").wait(GIVE_UP)
    reasons = [each["reason"] for each in read_results(target) if each["status"] == "error"]
    assert len(reasons) == 2
    assert all("No space left on device" in reason for reason in reasons), reasons
    assert grading.read_kept_times() == before
    grading.machines.kill("full")
    grading.start_worker("third")
    grading.grade(target, "--resume").wait(GIVE_UP)
    assert f"{len(before)} of {STUDENTS} results were taken over" in grading.read_output()
    assert grading.read_kept_times().items() > before.items(), "nothing was graded twice"
    assert len(grading.read_kept_times()) == STUDENTS - 1
