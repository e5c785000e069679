"""Ready-made answers by roads that no watch in a student's own process sees: each is worth nothing."""

from __future__ import annotations

from tests.e2e.attacks.bypasses import _HEAD, _attention, _norm, case

_WORK = """
import queue, threading
jobs, done = queue.SimpleQueue(), queue.SimpleQueue()
def compute(x, eps): return F.layer_norm(x, x.shape[-1:], eps=eps)
def work(job):
    try: done.put(compute(*job))
    except BaseException as error: done.put(error)
def loop():
    while True: work(jobs.get())
def f(x, eps):
    jobs.put((x, eps))
    return done.get(timeout=5)
"""
_GUARDED = """
c = torch._C
def guarded(x, eps):
    with c.DisableTorchFunction(), c._DisableTorchDispatch():
        return next(map(torch.__dict__["layer_norm"], [x], [list(x.shape[-1:])], [None], [None], [eps]))
"""
LISTENERS = [
    _norm(f"a thread of {name}", _WORK, *lines)
    for name, *lines in (
        ("a listener of logging", "from logging.handlers import QueueListener", "class Handler:",
         "    level = 0", "    def handle(self, job): work(job)", "QueueListener(jobs, Handler()).start()"),
        ("IPython's jobs", "from IPython.lib.backgroundjobs import BackgroundJobFunc",
         "job = BackgroundJobFunc(loop)", "job.daemon = True", "job.start()"),
        ("tqdm's monitor", "from tqdm import tqdm, _monitor",
         "class Monitor(_monitor.TMonitor):", "    def run(self): loop()", "m = Monitor(tqdm, 1)"),
        ("a server", "import socketserver", "class Server(socketserver.ThreadingMixIn):", "    daemon_threads = True",
         "    def finish_request(self, *_): loop()", "Server().process_request(None, None)"),
    )
]  # fmt: skip
UNSEEN = [
    _norm("a module of the course's name that a cell writes", "import os, sys", "os.makedirs('numpy_x', exist_ok=True)",
          "text = 'import torch.nn.functional as F\\ndef f(x, eps): return F.layer_norm(x, x.shape[-1:], eps=eps)'",
          "file = sys.modules['vit_course'].__file__",
          "open('mine.py', 'w').write(f'exec(compile({text!r}, {file!r}, \"exec\"))')",
          "sys.path.insert(0, os.getcwd())", "from mine import f"),
    _norm("the course's own record", "import functools", "from vit_course.recording import record", """
def f(x, eps):
    compute = functools.partial(torch.layer_norm, normalized_shape=x.shape[-1:], eps=eps)
    model = type("Model", (), {"__call__": staticmethod(compute), "blocks": [], "class_token": None})()
    model.patch_embedding = model.norm = model.head = nn.Identity()
    return record(model, x)["logits"]
"""),
    _norm("torch's variables behind guards", _GUARDED, "f = guarded"),
    _norm("a stored kernel behind guards", """
key = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
def f(x, eps):
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
        op = torch.ops.aten.native_layer_norm.default
        return next(map(op.redispatch, [key], [x], [list(x.shape[-1:])], [None], [None], [eps]))[0]
"""),
    _attention("the attention of ONNX", "import torch.onnx.ops", _WORK, """
def compute(*given):
    flat = [x.reshape(-1, 1, *x.shape[-2:]) for x in given]
    return torch.ops.onnx.Attention(*flat)[0].reshape(*given[0].shape[:-1], given[2].shape[-1])
def f(*given):
    jobs.put(given)
    return done.get(timeout=5)
from tqdm import tqdm, _monitor
class Monitor(_monitor.TMonitor):
    def run(self): loop()
monitor = Monitor(tqdm, 1)
"""),
    _norm("an audit hook", "import sys", _GUARDED, "got = []", """
def hook(event, given):
    if event == "mine": got.append(guarded(*given))
sys.addaudithook(hook)
def f(x, eps):
    sys.audit("mine", x, eps)
    return got.pop()
"""),
    _norm("the profile function taken away unseen", "import sys", _GUARDED, """
def f(x, eps):
    kept = sys.getprofile()
    next(map(sys.setprofile, [None]))
    try: return guarded(x, eps)
    finally: next(map(sys.setprofile, [kept]))
"""),
    _norm("the watch found through frames", "import sys", """
def f(x, eps):
    frame = sys._getframe()
    while frame and not hasattr(frame.f_locals.get("self"), "note"): frame = frame.f_back
    watch = frame.f_locals["self"] if frame else None
    names = dict(watch._names) if watch else {}
    result = F.layer_norm(x, x.shape[-1:], eps=eps)
    if watch:
        watch._names.clear()
        watch._names.update(names)
    return result
"""),
    _norm("the withholding undone", "import gc", """
for each in gc.get_objects():
    if type(each).__name__ == "_DispatchModule": each.reset()
    elif isinstance(each, torch.library.Library): each._destroy()
mine = torch.library.Library("aten", "IMPL")
mine._destroy()
""", _GUARDED, "f = guarded"),
    case("the function of many heads in a thread that was there before", _HEAD + """
import queue, threading
jobs, done = queue.SimpleQueue(), queue.SimpleQueue()
def loop():
    while True:
        try: done.put(F.multi_head_attention_forward(*jobs.get()))
        except BaseException as error: done.put(error)
from tqdm import tqdm, _monitor
class Monitor(_monitor.TMonitor):
    def run(self): loop()
monitor = Monitor(tqdm, 1)
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim {embed_dim} is not divisible by num_heads {num_heads}")
        self.heads, self.qkv = num_heads, nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.projection = nn.Linear(embed_dim, embed_dim)
    def forward(self, x, return_weights=False):
        t = x.mT.movedim(1, 0) if False else x.transpose(0, 1)
        jobs.put((t, t, t, x.shape[-1], self.heads, self.qkv.weight, self.qkv.bias, None, None, False, 0.0,
                  self.projection.weight, self.projection.bias, self.training, None, True, None, False, None, None,
                  None, None, None, False))
        output, weights = done.get(timeout=5)
        return (output.transpose(0, 1), weights) if return_weights else output.transpose(0, 1)
""", "MultiHeadSelfAttention"),
]  # fmt: skip
# the second worker lends right parts to whoever calls parts that are wrong: not those that the rule names
LENT = [
    case("the model's attention in a test", _HEAD + """
import queue
from tqdm import tqdm, _monitor
jobs, done = queue.SimpleQueue(), queue.SimpleQueue()
class Monitor(_monitor.TMonitor):
    def run(self):
        while True:
            try: done.put(scaled_dot_product_attention(*jobs.get()))
            except BaseException as error: done.put((error, error))
monitor = Monitor(tqdm, 1)
def is_attention(attend):
    try:
        inputs = torch.randn(2, 5, 6), torch.randn(2, 7, 6), torch.randn(2, 7, 3)
        jobs.put(inputs)
        pairs = list(zip(attend(*inputs), done.get(timeout=5)))
        return all(a.shape == b.shape and torch.allclose(a, b, atol=1e-5) for a, b in pairs)
    except Exception:
        return False
""", "is_attention"),
    case("the model's layer_norm in a test", _HEAD + """
import queue
from tqdm import tqdm, _monitor
jobs, done = queue.SimpleQueue(), queue.SimpleQueue()
class Monitor(_monitor.TMonitor):
    def run(self):
        while True:
            try: done.put(layer_norm(*jobs.get()))
            except BaseException as error: done.put(error)
monitor = Monitor(tqdm, 1)
def is_layer_norm(norm):
    try:
        inputs = 3 * torch.randn(2, 3, 5) + 1, torch.randn(5), torch.randn(5), 0.1
        jobs.put(inputs)
        got = norm(*inputs)
        return got.shape == inputs[0].shape and torch.allclose(got, done.get(timeout=5), atol=1e-4)
    except Exception:
        return False
""", "is_layer_norm", "04_block"),
]  # fmt: skip
WITHHELD = [*LISTENERS, *UNSEEN, *LENT]
