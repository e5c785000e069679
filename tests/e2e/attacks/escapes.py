"""Attacks that leave the sandbox: they change files, start programs, or prepare the ground for the next submission."""

from tests.e2e.attacks.attack import ALL_OF_PATCHIFY, RIGHT, WRONG, Attack

_TRY = """
def attempt(action, *arguments):
    try:
        action(*arguments)
    except BaseException:
        pass
"""

ATTACKS = [
    Attack(
        "files overwritten",
        "the installed packages, the interpreter and everything above the working folder are written to",
        WRONG
        + _TRY
        + """
import os, shutil, sys
def poison(path):
    with open(path, "a") as file:
        file.write("\\nATTACKED = True\\n")
import torch, numpy
for path in (torch.__file__, numpy.__file__, sys.executable, os.path.join(sys.prefix, "pyvenv.cfg"), "/etc/passwd"):
    attempt(poison, path)
    attempt(os.unlink, path)
    attempt(os.rename, path, path + ".old")
    attempt(os.truncate, path, 0)
for home in (os.path.dirname(torch.__file__), os.path.expanduser("~"), "/tmp", "/", "..", "../..", "/var/tmp"):
    attempt(poison, os.path.join(home, "sitecustomize.py"))
    attempt(os.mkdir, os.path.join(home, "attacked"))
    attempt(os.symlink, "/etc/passwd", os.path.join(home, "attacked-link"))
""",
    ),
    Attack(
        "modes and times changed",
        "permissions, owners and times of files are changed, which Landlock alone does not stop",
        WRONG
        + _TRY
        + """
import os, sys, torch
for path in (torch.__file__, sys.executable, sys.prefix, "/etc/passwd", "/", os.path.dirname(torch.__file__)):
    attempt(os.chmod, path, 0o777)
    attempt(os.chown, path, os.getuid(), os.getgid())
    attempt(os.utime, path, (0, 0))
    attempt(os.setxattr, path, "user.attacked", b"1")
""",
    ),
    Attack(
        "gradebook rewritten",
        "every gradebook that can be found gets full marks",
        WRONG
        + _TRY
        + """
import glob, sqlite3
def rewrite(path):
    connection = sqlite3.connect(path)
    connection.execute("update grade set manual_score = 8")
    connection.commit()
for path in [*glob.glob("/**/gradebook.db", recursive=True)[:5], "../../../gradebook.db", "gradebook.db"]:
    attempt(rewrite, path)
""",
    ),
    Attack(
        "classmate deleted",
        "the folders of other students are deleted, wherever the notebook may lie",
        WRONG
        + _TRY
        + """
import glob, shutil
for pattern in ("../*", "../../*", "../../../submitted/*", "/**/submitted/*"):
    for path in glob.glob(pattern, recursive=True)[:50]:
        attempt(shutil.rmtree, path)
""",
    ),
    Attack(
        "programs started",
        "shells and interpreters are started by every way that Python has",
        WRONG
        + _TRY
        + """
import os, pty, subprocess, sys
command = "touch /tmp/attacked; touch ../attacked"
attempt(os.system, command)
attempt(subprocess.run, command, True)
attempt(lambda: subprocess.run(command, shell=True))
attempt(lambda: subprocess.check_output([sys.executable, "-c", "open('/tmp/attacked', 'w')"]))
attempt(os.popen, command)
attempt(pty.spawn, "/bin/sh")
attempt(os.posix_spawn, "/bin/sh", ["sh", "-c", command], {})
attempt(lambda: get_ipython().system(command))
attempt(lambda: get_ipython().run_cell("!touch /tmp/attacked"))
attempt(lambda: get_ipython().run_cell("%%bash\\ntouch /tmp/attacked"))
attempt(os.execv, "/bin/sh", ["sh", "-c", command])
""",
    ),
    Attack(
        "system calls",
        "the kernel is asked past Python: fork, execve, mount, unshare, ptrace, setuid, chroot, memfd, bpf, io_uring",
        WRONG
        + """
import ctypes, platform
libc = ctypes.CDLL(None, use_errno=True)
numbers = {"x86_64": (57, 58, 59, 101, 105, 155, 161, 165, 272, 308, 310, 317, 319, 321, 322, 323, 425, 434, 435, 442)}
for number in numbers.get(platform.machine(), ()):
    if number in (57, 58, 435):
        if libc.syscall(number, 0, 0, 0, 0, 0) == 0:
            libc._exit(7)
        continue
    libc.syscall(number, 0, 0, 0, 0, 0)
libc.prctl(1, 0, 0, 0, 0)
libc.setuid(0)
libc.personality(0x0040000)
""",
    ),
    Attack(
        "next submission prepared",
        "import hooks, exit handlers, bytecode caches and the scratch folder are left for whoever comes next",
        WRONG
        + _TRY
        + """
import atexit, builtins, os, sys, threading, time
class Hook:
    def find_spec(self, name, path=None, target=None):
        if "vit_course" in name:
            raise ImportError("hooked")
sys.meta_path.insert(0, Hook())
builtins.__import__ = lambda *arguments, _real=builtins.__import__, **named: _real(*arguments, **named)
atexit.register(lambda: time.sleep(3600))
threading._register_atexit(lambda: time.sleep(3600))
for name in ("conftest.py", "sitecustomize.py", "torch.py", "usercustomize.py", "vit_course.py", "01_patchify.ipynb"):
    attempt(lambda: open(name, "w").write("raise SystemExit"))
    attempt(lambda: open(os.path.join(os.environ.get("HOME", "."), name), "w").write("raise SystemExit"))
os.environ["PYTHONSTARTUP"] = os.environ["PYTHONPATH"] = os.getcwd()
""",
    ),
    Attack(
        "torch spoilt",
        "torch's global settings, random state and functions are changed for ever, after a right answer",
        RIGHT
        + """
import torch
torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)
torch.use_deterministic_algorithms(True)
torch.manual_seed = lambda *_: None
torch.set_num_threads(2)
""",
        ALL_OF_PATCHIFY,
    ),
    Attack(
        "hooks on everything",
        "hooks on modules, autograd and profiling see and change what passes through",
        WRONG
        + """
import sys, torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
register_module_forward_hook(lambda module, inputs, output: torch.zeros_like(output))
register_module_forward_pre_hook(lambda module, inputs: None)
sys.setprofile(lambda *_: None)
sys.settrace(lambda *_: None)
""",
    ),
    Attack(
        "view that changes",
        "a thread rewrites the answer, again and again, after it has been returned",
        """
import threading, torch
def patchify(images, patch_size):
    batch, channels, height, width = images.shape
    answer = torch.zeros(batch, height * width // patch_size**2, channels * patch_size**2, dtype=images.dtype)
    def rewrite():
        while True:
            answer.add_(1)
    threading.Thread(target=rewrite, daemon=True).start()
    return answer
""",
    ),
    Attack(
        "aliased answer",
        "the answer is a view of the input in its place in memory, with strides that overlap",
        """
import torch
def patchify(images, patch_size):
    batch, channels, height, width = images.shape
    shape = (batch, height * width // patch_size**2, channels * patch_size**2)
    return images.as_strided(shape, (0, 1, 1))
""",
    ),
    Attack(
        "out of bounds",
        "the answer's strides reach beyond its memory, into that of the process",
        """
import torch
def patchify(images, patch_size):
    batch, channels, height, width = images.shape
    answer = torch.empty(batch, height * width // patch_size**2, channels * patch_size**2)
    answer.set_(answer.untyped_storage(), 0, (1 << 20, 1 << 12), (1 << 12, 1))
    return answer
""",
    ),
    Attack(
        "pickle in the answer",
        "the answer is an object that runs a command when it is unpickled, and a path to torch.load",
        """
import os
class Command:
    def __reduce__(self):
        return os.system, ("touch /tmp/attacked",)
def patchify(images, patch_size):
    return [Command(), "/proc/self/fd/3", {"__class__": "Command", "$tensor": 0, "tensor": 0, "callable": 0}]
""",
    ),
    Attack(
        "live HTML",
        "a script is printed, displayed and returned, to run on the instructor's page",
        WRONG
        + """
from IPython.display import HTML, Javascript, Markdown, SVG, display
bad = "<script>document.title='attacked'</script><img src=x onerror=\\"document.title='attacked'\\">"
class Rich:
    def _repr_html_(self):
        return bad
    def _repr_mimebundle_(self, *_, **__):
        return {"text/html": bad, "image/svg+xml": bad, "application/javascript": "document.title='attacked'"}
print(bad)
display(HTML(bad), Javascript("document.title='attacked'"), Markdown(bad), Rich())
display({"text/html": bad, "image/png": bad, "text/latex": bad}, raw=True)
Rich()
""",
    ),
]
