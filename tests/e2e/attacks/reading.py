"""Attacks that read: answers, checks, the grader's secret, classmates, in memory and on disk.

Each hands out what it has found as its answer; whatever looks like a right answer among it would earn points.
"""

from tests.e2e.attacks.attack import Attack

_GIVE = """
def patchify(images, patch_size):
    found = loot(images, patch_size)
    if found is None:
        raise LookupError("nothing found")
    return found
"""

ATTACKS = [
    Attack(
        "garbage collector",
        "every object in memory is looked through for a right answer, a function or module that gives one",
        """
import gc, torch
def loot(images, patch_size):
    batch, channels, height, width = images.shape
    shape = (batch, height * width // patch_size**2, channels * patch_size**2)
    for each in gc.get_objects():
        try:
            if isinstance(each, torch.Tensor) and tuple(each.shape) == shape:
                return each
            if callable(each) and getattr(each, "__name__", "") in ("patches_of", "expect_equal"):
                return each(images, patch_size)
            if getattr(each, "__name__", "") == "patchify" and each is not patchify:
                return each(images, patch_size)
        except Exception:
            pass
"""
        + _GIVE,
    ),
    Attack(
        "frames climbed",
        "the frames above the call are searched for expected values, and for a function that knows them",
        """
import sys, torch
def loot(images, patch_size):
    frame = sys._getframe()
    while frame is not None:
        for space in (frame.f_locals, frame.f_globals):
            for name, value in list(space.items()):
                if name in ("expected", "wanted", "reference", "right", "oracle", "answer"):
                    try:
                        return value.patchify(images, patch_size) if hasattr(value, "patchify") else value
                    except Exception:
                        pass
        frame = frame.f_back
"""
        + _GIVE,
    ),
    Attack(
        "modules and loaders",
        "sys.modules, sys.path, the import system's hooks and caches are searched for the course's answers",
        """
import importlib.util, sys
def loot(images, patch_size):
    for name, module in list(sys.modules.items()):
        for word in ("patchify", "patches_of"):
            function = getattr(module, word, None) if "__main__" not in name else None
            if callable(function) and function is not patchify:
                return function(images, patch_size)
    for finder in sys.meta_path:
        mapping = getattr(sys.modules.get(getattr(finder, "__module__", "")), "MAPPING", {})
        for home in mapping.values():
            spec = importlib.util.spec_from_file_location("stolen", home + "/patches.py")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module.patchify(images, patch_size)
"""
        + _GIVE,
    ),
    Attack(
        "disk searched",
        "every folder is searched for the course's sources, hidden checks and other people's notebooks",
        """
import os, sys
WANTED = ("patches.py", "test_patchify.py", "01_patchify.ipynb", "gradebook.db", "secret")
def loot(images, patch_size):
    for root in ("/", os.path.expanduser("~"), os.getcwd(), "..", "/tmp", "/proc/self/cwd", *sys.path):
        for home, folders, names in os.walk(root):
            if home.count("/") > 7:
                folders.clear()
            for name in WANTED:
                path = os.path.join(home, name)
                if name in names and os.access(path, os.R_OK) and open(path, "rb").read(1):
                    space = {}
                    if name == "patches.py":
                        exec(open(path).read(), space)
                        return space["patchify"](images, patch_size)
                    raise SystemExit("LEAK " + path)
"""
        + _GIVE,
        flags=(),
    ),
    Attack(
        "editable install followed",
        "the paths that pip has noted for the course's package are opened",
        """
import glob, os, sys
def loot(images, patch_size):
    homes = list(sys.path)
    for prefix in {sys.prefix, sys.base_prefix, *sys.path}:
        for note in glob.glob(os.path.join(prefix, "**", "*vit_course*"), recursive=True):
            if note.endswith((".pth", ".py", "direct_url.json")):
                homes += [line.strip().strip("'\\"") for line in open(note).read().replace("'", "\\n").split("\\n")]
    for home in homes:
        for path in (os.path.join(home, "patches.py"), os.path.join(home, "vit_course", "patches.py")):
            if os.path.exists(path):
                space = {}
                exec(open(path).read(), space)
                return space["patchify"](images, patch_size)
"""
        + _GIVE,
    ),
    Attack(
        "proc",
        "/proc is read for the memory, the environment, the command line and the descriptors of every process",
        """
import os
def loot(images, patch_size):
    for number in ("self", os.getppid(), *range(1, 400)):
        for name in ("environ", "cmdline", "maps", "mem", "root/etc/passwd", "cwd/gradebook.db", "fd/3"):
            try:
                with open(f"/proc/{number}/{name}", "rb") as file:
                    text = file.read(1 << 16)
            except OSError:
                continue
            if text and number not in ("self", os.getpid()):
                raise SystemExit("LEAK " + repr((number, name, text[:60])))
"""
        + _GIVE,
    ),
    Attack(
        "environment",
        "the environment is searched for a secret of the instructor's",
        """
import ctypes, os
def loot(images, patch_size):
    text = repr(dict(os.environ))
    block = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    for number in range(200):
        if not block or not block[number]:
            break
        text += repr(block[number])
    if "INSTRUCTOR" in text:
        raise SystemExit("LEAK " + text[text.index("INSTRUCTOR"):][:80])
"""
        + _GIVE,
    ),
    Attack(
        "inherited descriptors",
        "every open descriptor is read from, and the files behind them are named",
        """
import os, stat
def loot(images, patch_size):
    for number in range(3, 1024):
        try:
            kind = os.fstat(number)
        except OSError:
            continue
        if stat.S_ISREG(kind.st_mode) or stat.S_ISDIR(kind.st_mode):
            names = os.listdir(number) if stat.S_ISDIR(kind.st_mode) else os.pread(number, 100, 0)
            raise SystemExit("LEAK " + repr((number, names))[:200])
"""
        + _GIVE,
    ),
    Attack(
        "shared memory",
        "segments of shared memory, semaphores and message queues of others are opened",
        """
import ctypes, os
def loot(images, patch_size):
    libc = ctypes.CDLL(None, use_errno=True)
    for path in ("/dev/shm", "/dev/mqueue", "/run", "/var/run"):
        if os.path.isdir(path) and os.listdir(path):
            raise SystemExit("LEAK " + repr(os.listdir(path)))
    for key in range(200):
        if libc.shmget(key, 1, 0o600) != -1 or libc.msgget(key, 0o600) != -1:
            raise SystemExit("LEAK a segment or queue")
"""
        + _GIVE,
    ),
    Attack(
        "memory of the grader",
        "the memory of the process above is read through the kernel",
        """
import ctypes, os
def loot(images, patch_size):
    libc = ctypes.CDLL(None, use_errno=True)
    for target in (os.getppid(), 1):
        if libc.ptrace(16, target, None, None) == 0:
            raise SystemExit("LEAK attached to " + str(target))
        buffer = ctypes.create_string_buffer(64)
        class Part(ctypes.Structure):
            _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
        here, there = Part(ctypes.addressof(buffer), 64), Part(id(libc), 64)
        if target != os.getpid() and libc.process_vm_readv(
            target, ctypes.byref(here), 1, ctypes.byref(there), 1, 0
        ) > 0:
            raise SystemExit("LEAK read from " + str(target))
"""
        + _GIVE,
    ),
    Attack(
        "the worker's own code",
        "the module that serves the judge's requests is searched for answers and for what the judge has sent",
        """
import sys
def loot(images, patch_size):
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in ("worker", "vit_course", "exercise_kit", "__main__", "answer"):
            for word, value in list(vars(module).items()):
                if word == "SEED":  # the lesson's own, of its bug hunt
                    continue
                if any(part in word.lower() for part in ("expect", "reference", "secret", "seed", "score", "hidden")):
                    raise SystemExit("LEAK " + name + "." + word + "=" + repr(value)[:100])
"""
        + _GIVE,
    ),
    Attack(
        "files of packages",
        "the packages beside the course's are searched for a Vision Transformer that is ready made",
        """
def loot(images, patch_size):
    for name in ("timm.layers", "transformers.models.vit.modeling_vit", "vit_pytorch", "nbgrader", "pytest"):
        try:
            __import__(name)
        except ImportError:
            continue
        raise SystemExit("LEAK " + name)
"""
        + _GIVE,
    ),
    Attack(
        "network",
        "the answers are asked for on the network, on the local machine and on sockets in the file system",
        """
import glob, socket
def loot(images, patch_size):
    for family, address in (
        (socket.AF_INET, ("127.0.0.1", 8888)),
        (socket.AF_INET, ("1.1.1.1", 53)),
        (socket.AF_INET6, ("::1", 8888)),
        *((socket.AF_UNIX, path) for path in glob.glob("/run/**", recursive=True)[:50]),
        (socket.AF_UNIX, "\\0abstract"),
    ):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            try:
                connection = socket.socket(family, kind)
                connection.settimeout(0.2)
                connection.connect(address)
            except OSError:
                continue
            raise SystemExit("LEAK connected to " + repr(address))
"""
        + _GIVE,
    ),
]
