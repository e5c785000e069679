"""Attacks on what comes after: odd things left in the scratch folder and in the process, for whoever clears up."""

from tests.e2e.attacks.attack import ALL_OF_PATCHIFY, RIGHT, Attack

ATTACKS = [
    Attack(
        "folders without a bottom",
        "folders of long names lie in one another until no more can be made, so that no path reaches the last",
        RIGHT
        + """
import os
try:
    while True:
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
except OSError:
    pass
""",
        ALL_OF_PATCHIFY,
    ),
    Attack(
        "names that nobody can write",
        "links in a circle are named with line ends, escapes, half characters and two hundred letters",
        RIGHT
        + """
import os
try:
    for number in range(10000):
        os.symlink("../student/..", os.fsencode(f"l\\n\\x1b[2J{number}") + b"\\xff\\xfe" + b"x" * 200)
except OSError:
    pass
""",
        ALL_OF_PATCHIFY,
    ),
    Attack(
        "disk held by the dead",
        "the scratch folder is filled by a file that is mapped, deleted and still written to",
        RIGHT
        + """
import mmap, os
descriptor = os.open("held", os.O_CREAT | os.O_RDWR)
os.ftruncate(descriptor, 60 << 20)
held = mmap.mmap(descriptor, 60 << 20)
os.unlink("held")
held[:] = b"x" * (60 << 20)
""",
        ALL_OF_PATCHIFY,
    ),
    Attack(
        "answer that changes while it is sent",
        "threads resize the answer and fill it, while the worker writes it to the wire",
        """
import threading, torch
def patchify(images, patch_size):
    answer = torch.zeros(1 << 16)
    def late():
        while True:
            answer.resize_(1)
            answer.resize_(1 << 16)
    for _ in range(4):
        threading.Thread(target=late, daemon=True).start()
    return answer
""",
    ),
    Attack(
        "module that lies",
        "the answer is a module whose parameters, state and attributes are no such things",
        """
import torch
class Lie(torch.nn.Module):
    def __getattr__(self, name):
        raise SystemExit
    def named_parameters(self, *_, **__):
        return iter([("a", 1), (2, None)])
    def state_dict(self, *_, **__):
        return 5
def patchify(images, patch_size):
    return Lie()
""",
    ),
    Attack(
        "class of classes",
        "the answer's class answers every question about itself with an interrupt",
        """
class Kind(type):
    def __instancecheck__(cls, other):
        return True
    def __getattribute__(cls, name):
        raise KeyboardInterrupt
    def mro(cls):
        return [cls, object]
class Answer(metaclass=Kind):
    pass
def patchify(images, patch_size):
    return Answer()
""",
    ),
    Attack(
        "alarm in the worker",
        "a timer raises SystemExit wherever the worker is, a thousand times a second",
        """
import signal
def patchify(images, patch_size):
    def stop(*_):
        raise SystemExit
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    return images
""",
    ),
]
