"""Attacks on the machine: processes, threads, memory, output, disk, time, signals."""

from tests.e2e.attacks.attack import ALL_OF_PATCHIFY, RIGHT, WRONG, Attack

ATTACKS = [
    Attack(
        "fork bomb",
        "the cell forks for ever after a right answer",
        RIGHT
        + """
import os
while True:
    os.fork()
""",
        ALL_OF_PATCHIFY,
    ),
    Attack(
        "daemon left behind",
        "a child detaches itself to outlive the grading",
        WRONG
        + """
import os, subprocess, multiprocessing
for start in (
    lambda: os.fork() or (os.setsid(), __import__("time").sleep(3600)),
    lambda: subprocess.Popen(["sleep", "3600"], start_new_session=True),
    lambda: multiprocessing.Process(target=__import__("time").sleep, args=(3600,)).start(),
    lambda: os.posix_spawn("/bin/sleep", ["sleep", "3600"], {}),
):
    try:
        start()
    except BaseException:
        pass
""",
    ),
    Attack(
        "thread bomb",
        "threads are started until no more can be",
        RIGHT
        + """
import threading, time
threading.stack_size(32768)
while True:
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
""",
        ALL_OF_PATCHIFY,
    ),
    Attack(
        "memory bomb",
        "memory is taken until no more can be had, and kept",
        WRONG
        + """
import torch
held = []
while True:
    held.append(torch.ones(1 << 24))
""",
    ),
    Attack(
        "memory bomb in the call",
        "each call takes all the memory that it can get and swallows the error",
        """
held = []
def patchify(images, patch_size):
    try:
        while True:
            held.append(bytearray(1 << 26))
    except MemoryError:
        pass
    return images
""",
    ),
    Attack(
        "virtual giant",
        "the answer is a tensor of a trillion numbers that shares one",
        """
import torch
def patchify(images, patch_size):
    return torch.zeros(1).expand(10**12)
""",
    ),
    Attack(
        "output flood",
        "print never ends",
        WRONG
        + """
while True:
    print("x" * 100000)
""",
    ),
    Attack(
        "output flood past Python",
        "the descriptors of stdout and stderr are written to, and every other one",
        WRONG
        + """
import os
block = b"x" * (1 << 16)
for _ in range(2000):
    for descriptor in (1, 2):
        try:
            os.write(descriptor, block)
        except OSError:
            pass
""",
    ),
    Attack(
        "figure flood",
        "a thousand large figures are shown",
        WRONG
        + """
import matplotlib.pyplot as plt
for number in range(1000):
    plt.figure(figsize=(50, 50))
    plt.plot([number])
    plt.show()
""",
    ),
    Attack(
        "disk bomb",
        "files are written wherever that is possible until the disk is full",
        RIGHT
        + """
import itertools, os
block = b"x" * (1 << 20)
for home in ("/tmp", "/var/tmp", "/dev/shm", os.getcwd(), os.path.expanduser("~"), "/"):
    try:
        for number in itertools.count():
            with open(os.path.join(home, f"bomb-{number}"), "wb") as file:
                for _ in range(16):
                    file.write(block)
    except OSError:
        pass
""",
        ALL_OF_PATCHIFY,
    ),
    Attack(
        "endless loop",
        "the cell never ends, after a right answer",
        RIGHT + "\nwhile True:\n    pass\n",
        ALL_OF_PATCHIFY,
        flags=("timeout",),
    ),
    Attack(
        "endless call",
        "patchify never returns",
        """
def patchify(images, patch_size):
    while True:
        pass
""",
        flags=("timeout",),
    ),
    Attack(
        "endless call in C",
        "patchify is inside one call of C that never ends and sees no signal",
        """
import signal
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
def patchify(images, patch_size):
    return sum(iter(int, 1))
""",
        flags=("timeout",),
    ),
    Attack(
        "sleeper",
        "patchify sleeps for an hour and costs no processor time",
        """
import time
def patchify(images, patch_size):
    time.sleep(3600)
""",
        flags=("timeout",),
    ),
    Attack(
        "quick exit",
        "the process ends itself with status 0, as if all were well",
        """
import os
def patchify(images, patch_size):
    os._exit(0)
""",
    ),
    Attack(
        "exit in the cell",
        "the cell ends the process, by three ways",
        WRONG
        + """
import os, sys
try:
    sys.exit(0)
except SystemExit:
    pass
try:
    get_ipython().ask_exit()
except Exception:
    pass
os._exit(0)
""",
    ),
    Attack(
        "segmentation fault",
        "the process reads from address 0",
        """
import ctypes
def patchify(images, patch_size):
    return ctypes.string_at(0)
""",
    ),
    Attack(
        "stopped process",
        "the process stops itself, so that nobody can wait for it",
        """
import os, signal
def patchify(images, patch_size):
    os.kill(os.getpid(), signal.SIGSTOP)
    return images
""",
        flags=("timeout",),
    ),
    Attack(
        "signal storm",
        "every process that can be reached gets every signal",
        WRONG
        + """
import os, signal
for target in (os.getppid(), 1, 0, -1, *range(2, 400)):
    if target == os.getpid():
        continue
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL, signal.SIGUSR1):
        try:
            os.kill(target, number)
        except OSError:
            pass
""",
    ),
    Attack(
        "bottomless recursion",
        "the stack overflows in Python and in C",
        """
import sys
def patchify(images, patch_size):
    sys.setrecursionlimit(10**9)
    class Deep:
        def __repr__(self):
            return repr(self)
    return repr(Deep())
""",
    ),
    Attack(
        "deep answer",
        "the answer is a list in a list, a hundred thousand deep, and one that holds itself",
        """
def patchify(images, patch_size):
    deep = []
    for _ in range(100000):
        deep = [deep]
    deep.append(deep)
    return deep
""",
    ),
    Attack(
        "endless answer",
        "the answer is a generator and a dict without end",
        """
import itertools
class Endless(dict):
    def items(self):
        return ((number, number) for number in itertools.count())
    def __len__(self):
        return 2**62
    def __iter__(self):
        return itertools.count()
def patchify(images, patch_size):
    return Endless()
""",
    ),
    Attack(
        "lock held",
        "every file that can be opened is locked, and never let go",
        WRONG
        + """
import fcntl, os, sys
held = []
for home, _, names in os.walk(sys.prefix):
    for name in names[:5]:
        try:
            file = open(os.path.join(home, name), "rb")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held.append(file)
        except OSError:
            pass
    if len(held) > 100:
        break
""",
    ),
    Attack(
        "exception that bites",
        "the exception raised has a __str__ that never ends, and attributes that raise",
        """
class Bite(BaseException):
    def __str__(self):
        while True:
            pass
    __repr__ = __str__
    @property
    def __traceback__(self):
        raise SystemExit
def patchify(images, patch_size):
    raise Bite
""",
    ),
    Attack(
        "regular expression that never ends",
        "one call of re takes longer than the universe",
        """
import re
def patchify(images, patch_size):
    return re.match("(a+)+$", "a" * 60 + "b")
""",
        flags=("timeout",),
    ),
    Attack(
        "convolution bomb",
        "the Conv2d that is handed over has a padding and a kernel that take whoever runs it gigabytes, or minutes",
        """
import torch
from torch import nn
def conv_from_linear(projection, in_channels, patch_size):
    made = nn.Conv2d(in_channels, projection.out_features, 1, padding=(20000, 20000))
    made.weight = nn.Parameter(torch.ones(projection.out_features, in_channels, patch_size, patch_size))
    made.kernel_size = made.stride = (patch_size, patch_size)
    made.padding = (20000 + patch_size, 20000)
    return made
""",
        exercise="conv_from_linear",
    ),
    Attack(
        "questions of a giant",
        "the test asks the judge's attention with inputs whose output and products take gigabytes, again and again",
        """
import torch
def is_attention(attend):
    for shapes in (((1 << 19, 1, 1), (1 << 19, 1, 1), (1, 1, 1 << 19)), ((1, 1000, 1000),) * 3):
        query, key, value = (torch.ones(shape, requires_grad=True) for shape in shapes)
        try:
            for _ in range(20):
                attend(query, key, value)[0].sum().backward()
        except ValueError:
            pass
    return True
""",
        honest=0.0,
        lesson="03_attention",
        exercise="is_attention",
    ),
]
