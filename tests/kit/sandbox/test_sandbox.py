"""Whatever a worker does, the judge gets a reply or WorkerLost, in time, and the next worker is as new."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from exercise_kit.sandbox import warm_process
from exercise_kit.sandbox.limits import Limits, WorkerLost
from exercise_kit.sandbox.sandbox import Sandbox
from exercise_kit.sandbox.warm_process import _HOME, WarmProcessLost, _try_to_lock_folder, remove_abandoned_homes
from exercise_kit.submission.submission import CellSource
from tests.kit.conftest import limit_sandbox
from tests.machine import CAPABILITIES
from tests.waiting import wait_until

LIMITS = Limits(cell_seconds=1.0, call_seconds=1.0, total_seconds=20.0, memory_bytes=512 << 20, reply_bytes=1 << 20)
FIND_WIRE = """
import gc, json, os, time
from worker.wire import Wire, MAGIC
from worker.requests import RequestServer
answers = next(each for each in gc.get_objects() if type(each) is RequestServer)
wire, channel = answers._wire, answers._wire._descriptor

def raw(header, payload=b"", said=None):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    length = len(payload) if said is None else said
    os.write(channel, MAGIC + len(header).to_bytes(4, "big") + length.to_bytes(8, "big") + header + payload)

def reply(packed, number=None):
    raw({"tensors": [], "body": {"number": answers._number if number is None else number, "reply": packed}})
"""


@pytest.fixture(scope="module", params=["confined", "open"])
def sandbox(request):
    if request.param == "confined" and CAPABILITIES.is_sufficient:
        with Sandbox(LIMITS) as opened:
            yield opened
    else:
        with limit_sandbox(request.getfixturevalue("warm_sandbox"), LIMITS) as opened:
            yield opened


def run_and_call(worker, source, calls):
    list(worker.run([CellSource(4, source)]))
    for _ in range(calls):
        worker.request("call", name="f", inputs=())


def lose_worker(worker, source="", calls=0):
    """Return how the worker is lost when it runs ``source`` and is then asked to call f."""
    with pytest.raises(WorkerLost) as caught:
        run_and_call(worker, source, calls)
    assert worker.lost is caught.value
    with pytest.raises(WorkerLost):
        worker.request("call", name="f", inputs=())
    return caught.value


def is_alive(sandbox):
    with sandbox.worker() as worker:
        list(worker.run([CellSource(0, "def f(x): return x + 1")]))
        return worker.request("call", name="f", inputs=(1,))["result"] == 2


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("sum(range(10**12))", "time"),
        ("import signal\nfor n in (2, 15, 14): signal.signal(n, signal.SIG_IGN)\nwhile True: pass", "time"),
        ("import os; os._exit(0)", "ended"),
        ("import os; os._exit(3)", "ended"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended"),
        ("import faulthandler; faulthandler._sigsegv()", "ended"),
        ("import os; os.abort()", "ended"),
        ("import os\nfor n in range(4000):\n    try: os.close(n)\n    except OSError: pass", "ended"),
        ("import os; os.kill(os.getpid(), 9)", "memory"),
    ],
)
@pytest.mark.proof
def test_a_cell_that_does_not_come_back(sandbox, source, kind):
    with sandbox.worker() as worker:
        error = lose_worker(worker, source)
    assert (error.kind, error.cell) == (kind, 4)
    assert error.words.split()[0] in ("did", "ended", "crashed", "broke", "ran", "hung")
    assert is_alive(sandbox)


@pytest.mark.parametrize(
    "source",
    [
        "while True: pass",
        "import time; time.sleep(100)",
        "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
        "while True: print('x' * 10**6)",
        "import re; re.match('(a*)*b', 'a' * 100)",
    ],
)
@pytest.mark.proof
def test_a_cell_that_is_stopped_keeps_what_it_defined(sandbox, source):
    with sandbox.worker() as worker:
        (run,) = worker.run([CellSource(4, f"def f(x): return x + 1\n{source}")])
        assert run.stopped
        assert run.error == ("TimeoutError", "stopped after 1 seconds")
        assert worker.request("call", name="f", inputs=(1,))["result"] == 2
        (run,) = worker.run([CellSource(5, "import time; time.sleep(0.1)")])
        assert not run.stopped


def test_words_name_the_signal_of_a_crash(sandbox):
    with sandbox.worker() as worker:
        assert "SIGSEGV" in lose_worker(worker, "import os; os.kill(os.getpid(), 11)").words


@pytest.mark.parametrize(
    "body",
    ["while True: pass", "import time; time.sleep(50)", "import os; os._exit(0)", "import os; os.abort()"],
)
def test_a_call_that_does_not_come_back(sandbox, body):
    with sandbox.worker() as worker:
        assert lose_worker(worker, f"def f():\n    {body}", calls=1).cell is None
    assert is_alive(sandbox)


FORGED = {
    "bytes": "os.write(channel, b'nonsense' * 9)",
    "no JSON": "raw(b'{')",
    "NaN": 'raw(b\'{"tensors":[],"body":NaN}\')',
    "no object": "raw({'tensors': [], 'body': 3})",
    "another number": "reply({'dict': []}, 10**6)",
    "a number of text": "raw({'tensors': [], 'body': {'number': 'x', 'reply': 1}})",
    "an older number": "reply({'dict': []}, answers._number - 1)",
    "no reply": "raw({'tensors': [], 'body': {'number': answers._number}})",
    "both": "raw({'tensors': [], 'body': {'number': answers._number, 'reply': 1, 'question': 1}})",
    "a reply that is a list": "reply([])",
    "a reply of nothing": "reply(None)",
    "a packed value that is none": "reply({'dict': [['a', {'tensor': 7}]]})",
    "deep nesting": "raw(b'{\"tensors\":[],\"body\":' + b'[' * 99999 + b']' * 99999 + b'}')",
    "a question that is none": "raw({'tensors': [], 'body': {'number': answers._number, 'question': 5}})",
    "an early reply": "reply({'dict': []}); reply({'dict': []})",
    "a giant header": "os.write(channel, MAGIC + b'\\xff' * 12)",
    "a giant payload": "raw({'tensors': [['uint8', [1 << 40]]], 'body': 0}, said=1 << 40)",
    "a payload beyond the limit": "raw({'tensors': [['uint8', [1 << 21]]], 'body': 0}, said=1 << 21)",
    "a payload beyond the limit that comes": "raw({'tensors': [['uint8', [1 << 21]]], 'body': 0}, bytes(1 << 21))",
    "a flood": "[os.write(channel, bytes(1 << 20)) for _ in range(100)]",
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_a_forged_answer_ends_the_worker(sandbox, forge):
    source = f"{FIND_WIRE}\ndef f():\n    {forge}\n    return 1"
    with sandbox.worker() as worker:
        assert lose_worker(worker, source, calls=2).kind == "protocol"
    assert is_alive(sandbox)


def test_an_answer_that_nobody_requested_ends_the_worker(sandbox):
    later = "import threading\nthreading.Timer(0.05, lambda: reply({'dict': []})).start()"
    with sandbox.worker() as worker:
        list(worker.run([CellSource(0, f"{FIND_WIRE}\n{later}")]))
        wait_until(lambda: not worker._wire.has_nothing_to_read())
        assert lose_worker(worker).kind == "protocol"


@pytest.mark.parametrize(
    "forge", ["os.write(channel, MAGIC)", "raw({'tensors': []}, said=9)", "os.write(channel, b'V')"]
)
def test_half_an_answer_is_late_or_a_hang_up(sandbox, forge):
    for end, kind in (("time.sleep(60)", "time"), ("os._exit(0)", "ended")):
        with sandbox.worker() as worker:
            found = lose_worker(worker, f"{FIND_WIRE}\ndef f():\n    {forge}\n    {end}", calls=1).kind
            assert found in (kind, "protocol")


def test_a_result_beyond_the_limit_comes_in_words(sandbox):
    with sandbox.worker() as worker:
        list(worker.run([CellSource(4, "import torch\ndef f(): return torch.ones(1 << 20)")]))
        assert "too large" in worker.request("call", name="f", inputs=())["result"].text


def test_memory_has_an_end(sandbox):
    if "landlock" not in sandbox.protections:
        return  # a machine, or a mode, without the sandbox bounds nothing
    with sandbox.worker() as worker:
        source = "import torch\ndef f(): return torch.ones(1 << 40)\ndef g(): return bytearray(1 << 32)"
        (run,) = worker.run([CellSource(0, source)])
        assert run.error is None
        assert worker.request("call", name="f", inputs=())["raised"]["kinds"][0] == "RuntimeError"
        assert worker.request("call", name="g", inputs=())["raised"]["kinds"][0] == "MemoryError"


def test_a_worker_that_took_all_memory_still_ends_in_words(sandbox):
    if "landlock" not in sandbox.protections:
        return
    source = "kept = []\ntry:\n    while True: kept.append(bytearray(1 << 16))\nexcept MemoryError: pass"
    with limit_sandbox(sandbox, replace(LIMITS, cell_seconds=15.0)) as patient:
        with patient.worker() as worker:
            list(worker.run([CellSource(4, source)]))
            with pytest.raises(WorkerLost) as caught:
                worker.request("call", name="f", inputs=(torch.ones(1 << 22),))
        assert caught.value.kind == "memory"
        assert is_alive(patient)


def test_workers_do_not_see_each_other(sandbox):
    with sandbox.worker() as worker:
        spoil = "import torch, builtins\nopen('left', 'w').write('x')\ntorch.relu = None\nbuiltins.left = 1"
        list(worker.run([CellSource(0, spoil)]))
    with sandbox.worker() as worker:
        see = "import torch, builtins, os\n(torch.relu is None, hasattr(builtins, 'left'), os.listdir('.'))"
        (run,) = worker.run([CellSource(0, see)])
    assert run.outputs[0]["data"]["text/plain"] == "(False, False, [])"


def test_a_deep_and_locked_scratch_folder_is_emptied(sandbox):
    dig = (
        "import os\nfor _ in range(1200):\n    os.mkdir('d'); os.chdir('d')\n"
        "open('file', 'w').close(); os.symlink('/', 'link')\n"
        "for _ in range(1200):\n    os.chdir('..')\n"
        "os.mkdir('locked'); open('locked/x', 'w').close(); os.chmod('locked', 0)"
    )
    with sandbox.worker() as worker:
        list(worker.run([CellSource(0, dig)]))
    with sandbox.worker() as worker:
        (run,) = worker.run([CellSource(0, "import os\nos.listdir('.')")])
    assert run.outputs[0]["data"]["text/plain"] == "[]"


def test_closing_an_old_worker_leaves_the_new_one_alone(sandbox):
    old = sandbox.worker()
    with sandbox.worker() as new:
        old.close()
        with pytest.raises(WorkerLost):
            old.request("defined", names=[])
        assert new.request("defined", names=["x"]) == {"defined": {"x": None}}


def test_attempts_are_noted(sandbox):
    with sandbox.worker() as worker:
        tries = (
            "import subprocess, socket, os\n"
            "for attempt in (lambda: open('/etc/shadow-'), lambda: subprocess.run(['true']),\n"
            "                lambda: socket.create_connection(('127.0.0.1', 9), 0.1), lambda: open('mine', 'w')):\n"
            "    try: attempt()\n    except Exception: pass\n"
        )
        list(worker.run([CellSource(0, tries)]))
        assert {"open /etc/shadow-", "subprocess true"} <= set(worker.attempts)
        assert any(attempt.startswith("socket") for attempt in worker.attempts)
        assert not any("mine" in attempt for attempt in worker.attempts)
        list(worker.run([CellSource(1, "for n in range(99):\n    try: open(f'/etc/no{n}')\n    except OSError: pass")]))
        assert len(worker.attempts) == 20


def test_an_honest_notebook_attempts_nothing(sandbox):
    cells = [
        "import torch, numpy, matplotlib.pyplot as plt\nplt.plot([1]); plt.show()",
        "torch.nn.Linear(2, 2)",
        "%%time\n1",
    ]
    with sandbox.worker() as worker:
        runs = list(worker.run([CellSource(number, cell) for number, cell in enumerate(cells)]))
        assert [run.error for run in runs] == [None] * 3
        assert worker.attempts == ()


def test_time_is_limited_altogether(warm_sandbox):
    limits = Limits(cell_seconds=5, total_seconds=1.0)
    with limit_sandbox(warm_sandbox, limits) as sandbox, sandbox.worker() as worker:
        with pytest.raises(WorkerLost) as caught:
            list(worker.run([CellSource(number, "import time; time.sleep(0.3)") for number in range(9)]))
        assert caught.value.kind == "time"
        assert caught.value.cell in range(9), "though each has time enough"
        assert worker.lost is caught.value


def test_nothing_is_left_behind():
    with Sandbox(LIMITS, sandboxed=False) as sandbox:
        worker = sandbox.worker()
        daemon = (
            "import os, time\nif os.fork() == 0:\n    os.setsid()\n    os.fork() or time.sleep(60)\n    os._exit(0)"
        )
        (run,) = worker.run([CellSource(0, daemon)])
        assert run.error is None
        home = Path(sandbox._warm._home.name)
        assert list_processes_in(home)
    assert not home.exists()
    assert not list_processes_in(home)


def list_processes_in(folder):
    """The processes that work there."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(process / "cwd").startswith(str(folder)):
                found.append(process.name)
    return found


def test_a_dead_warm_process_is_replaced(sandbox):
    worker = sandbox.worker()
    os.killpg(sandbox._warm._process.pid, signal.SIGKILL)
    while worker.lost is None:
        with contextlib.suppress(WorkerLost):
            worker.request("call", name="f", inputs=())
    assert is_alive(sandbox)


def test_a_warm_process_that_cannot_start_says_why(monkeypatch):
    monkeypatch.setattr(warm_process, "_START", "raise SystemExit('out of order')")
    with Sandbox(sandboxed=False) as sandbox, pytest.raises(WarmProcessLost, match="out of order"):
        sandbox.worker()


def test_the_environment_is_clean(sandbox, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_GRADER", "1")
    with sandbox.worker() as worker:
        source = "import os, sys\nprint('SECRET_OF_THE_GRADER' in os.environ, 'vit_course' in sys.modules)"
        (run,) = worker.run([CellSource(0, source)])
    assert run.outputs[0]["text"] == "False False\n"


def test_the_judge_s_own_limit_is_none_of_the_worker_s():
    limits = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (64 << 30, limits[1]))
    try:
        with Sandbox(sandboxed=False) as sandbox, sandbox.worker() as worker:
            (run,) = worker.run([CellSource(0, "import resource\nresource.getrlimit(resource.RLIMIT_DATA)")])
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, limits)
    assert run.outputs[0]["data"]["text/plain"] == f"({limits[1]}, {limits[1]})"


LYING = {
    "text": "{'output_type': 'stream', 'name': 'stdout', 'text': 'x' * 25_000}",
    "pictures": "{'output_type': 'display_data', 'data': {'image/png': "
    "torch.tensor(list(b'\\x89PNG\\r\\n\\x1a\\n'), dtype=torch.uint8)}}",
}


@pytest.mark.parametrize("output", LYING.values(), ids=LYING)
def test_output_is_limited_by_the_judge_too(sandbox, output):
    lie = (
        "import torch\nfrom worker.requests import _KINDS\n"
        f"_KINDS['cell'] = lambda *_, **__: {{'outputs': [{output}], 'seconds': 0}}\n"
        "from worker.requests import RequestServer\nimport gc\n"
        "next(each for each in gc.get_objects() if type(each) is RequestServer)._longest = 10**6"
    )
    with sandbox.worker() as worker, pytest.raises(WorkerLost) as caught:
        list(worker.run([CellSource(0, lie), *(CellSource(number, "1") for number in range(1, 60))]))
    assert caught.value.kind == "output"
    assert caught.value.cell > 1


def test_the_folders_of_judges_that_were_killed_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    abandoned, young, alive, other = (tmp_path / f"{_HOME}{name}" for name in ("a", "b", "c", "d"))
    for folder in (abandoned, young, alive):
        (folder / "scratch" / "deep").mkdir(parents=True)
    (abandoned / "scratch" / "deep").chmod(0)
    other.symlink_to(young)
    lock = _try_to_lock_folder(alive)
    for folder in (abandoned, alive):
        os.utime(folder, (0, 0))
    remove_abandoned_homes()
    assert sorted(tmp_path.iterdir()) == [young, alive, other]
    os.close(lock)
    remove_abandoned_homes()
    assert sorted(tmp_path.iterdir()) == [young, other]
