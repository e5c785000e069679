"""Forbidden functions reached by another door: each an answer that computes what is asked for, and earns nothing."""

from __future__ import annotations

from dataclasses import dataclass

_HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
_EYE = "torch.eye(key.shape[-2], dtype=query.dtype).expand(*key.shape[:-2], -1, -1)"
# an answer that has some `f(query, key, value)` of torch's gets the weights from it too
_TWICE = f"""
def scaled_dot_product_attention(query, key, value):
    return f(query, key, value), f(query, key, {_EYE})
"""
_OVER_LAST = """
def layer_norm(x, weight, bias, eps):
    return f(x.reshape(1, -1, x.shape[-1]), eps).reshape(x.shape) * weight + bias
"""
_FUSED = '"scaled_dot_product" + "_attention"'


@dataclass(frozen=True)
class Door:
    """An answer that goes round a rule.

    Attributes: ``name``, ``answer`` (the exercise's cell), ``exercise``, ``lesson`` and ``first`` (a cell before it).
    """

    name: str
    answer: str
    exercise: str = "scaled_dot_product_attention"
    lesson: str = "03_attention"
    first: str = ""


def _attention(name: str, *lines: str, first: str = "") -> Door:
    return Door(name, _HEAD + "\n".join(lines) + "\n" + _TWICE, first=_HEAD + first if first else "")


def _norm(name: str, *lines: str) -> Door:
    return Door(name, _HEAD + "\n".join(lines) + "\n" + _OVER_LAST, "layer_norm", "04_block")


_RESHAPED = """
def f(q, k, v):
    parts = [x.reshape(-1, 1, *x.shape[-2:]) for x in (q, k, v)]
    return g(*parts).reshape(*q.shape[:-1], v.shape[-1])
"""
ATTENTION = [
    _attention("the function itself", "f = F.scaled_dot_product_attention"),
    _attention("a name put together", f"f = getattr(F, {_FUSED})"),
    _attention("a name spelt backwards", "f = getattr(F, 'noitnetta_tcudorp_tod_delacs'[::-1])"),
    _attention("a name found in dir", "f = getattr(F, [n for n in dir(F) if n.startswith('scaled_dot')][0])"),
    _attention("the namespace", "f = vars(F)['scaled_dot_' + 'product_attention']"),
    _attention("the namespace of torch's module", "f = F.__dict__['scaled_dot_' + 'product_attention']"),
    _attention("the state of the stand-ins", "import sys", "s = sys.modules['worker.forbidden']._STATE",
               "def f(*a):", "    s.exercise = None", f"    return getattr(F, {_FUSED})(*a)"),
    _attention("the originals of the stand-ins", "import sys",
               "f = next(v for k, v in sys.modules['worker.forbidden']._ORIGINALS.items() if '._nn.' in k)"),
    _attention("the closure", f"c = getattr(F, {_FUSED}).__closure__",
               "f = [e.cell_contents for e in c if callable(e.cell_contents)][0]"),
    _attention("the closure by a computed name", f"c = getattr(getattr(F, {_FUSED}), '__clo' + 'sure__')",
               "f = [e.cell_contents for e in c if callable(e.cell_contents)][0]"),
    _attention("the globals of the stand-in", f"g = getattr(F, {_FUSED}).__globals__",
               "f = g['_ORIGINALS']['torch._C._nn.scaled_dot_product_attention']"),
    _attention("an operation by its name", "f = torch._C._jit_get_operation('aten::scaled_dot_product_attention')[0]"),
    _attention("its mathematics by its name",
               "g = torch._C._jit_get_operation('aten::_scaled_dot_product_attention_math')[0]",
               "f = lambda *a: g(*a)[0]"),
    _attention("an operator's overload", "f = torch.ops.aten.scaled_dot_product_attention.default"),
    _attention("the mathematics' overload",
               "f = lambda *a: torch.ops.aten._scaled_dot_product_attention_math.default(*a)[0]"),
    _attention("the fused operator", _RESHAPED,
               "g = lambda *x: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*x)[0]"),
    _attention("operators by a computed name", "o = getattr(torch, 'o' + 'ps')",
               "f = o.aten.scaled_dot_product_attention"),
    _attention("torch inside torch", "f = F.torch.ops.aten.scaled_dot_product_attention"),
    _attention("a module in a list", "f = [torch][0].ops.aten.scaled_dot_product_attention"),
    _attention("a module handed on", "def h(m, n): return getattr(m, n)", f"f = h(F, {_FUSED})"),
    _attention("self that is a module", "class H:\n    def get(self, n): return getattr(self, n)",
               f"f = H.get(F, {_FUSED})"),
    _attention("the self of a builtin", "f = F.gelu.__self__.scaled_dot_product_attention"),
    _attention("the functions of torch's C", "f = torch._C._nn.scaled_dot_product_attention"),
    _attention("C under another name", "from torch import _C as c", "f = c._nn.scaled_dot_product_attention"),
    _attention("TorchScript", "cu = torch.jit.CompilationUnit('def f(q, k, v):\\n    return "
               "torch._C._nn.scaled_dot_product_attention(q, k, v)')", "f = cu.f"),
    _attention("TorchScript of an operator", "cu = torch.jit.CompilationUnit('def f(q, k, v):\\n    return "
               "torch.scaled_dot_product_attention(q, k, v)')", "f = cu.f"),
    _attention("flexible attention", "from torch.nn.attention.flex_attention import flex_attention as g", _RESHAPED),
    _attention("a compiled function", "@torch.compile",
               "def f(q, k, v): return F.scaled_dot_product_attention(q, k, v)"),
    _attention("code in a text", "f = eval('F.scaled_dot_' + 'product_attention')"),
    _attention("code executed", "exec('f = F.scaled_dot_' + 'product_attention')"),
    _attention("code executed in another cell", first="exec('f = F.scaled_dot_' + 'product_attention')"),
    _attention("a global set in another cell",
               first="globals()['f'] = [v for k, v in F.__dict__.items() if k.startswith('scaled_dot')][0]"),
    _attention("the notebook's namespace", 
               first="get_ipython().user_ns['f'] = getattr(F, 'scaled_dot_' + 'product_attention')"),
    _attention("a magic", first="%time f = getattr(F, 'scaled_dot_' + 'product_attention')"),
    Door("an answer under a magic", f"%%time\n{_HEAD}f = F.scaled_dot_product_attention\n{_TWICE}"),
    _attention("a method put on tensors", "f = lambda q, k, v: q.attend(k, v)",
               first="torch.Tensor.attend = lambda q, k, v: getattr(F, 'scaled_dot_' + 'product_attention')(q, k, v)"),
    _attention("a list filled elsewhere", "f = lambda *a: found[0](*a)",
               first="found = []\nfor n in dir(F):\n    if n.startswith('scaled_dot'): found.append(getattr(F, n))"),
    _attention("a getter", "from operator import attrgetter", "f = attrgetter('scaled_dot_product_attention')(F)"),
    _attention("reduced getattr", "import functools",
               "f = functools.reduce(getattr, ['nn', 'functional', 'scaled_dot_' + 'product_attention'], torch)"),
    _attention("the garbage collector", "import gc",
               "f = [o for o in gc.get_objects() if getattr(o, '__name__', '') == 'scaled_dot_product_attention'][0]"),
    _attention("an import by text", "import importlib",
               "f = getattr(importlib.import_module('torch.nn.functional'), 'scaled_dot_' + 'product_attention')"),
    _attention("the importing builtin",
               "f = getattr(__import__('torch._C')._C._nn, 'scaled_dot_' + 'product_attention')"),
    _attention("a class's subclasses", "f = [c for c in nn.Module.__subclasses__() if c.__name__ == 'Softmax'][0]",
               "f = f.forward.__globals__['F'].scaled_dot_product_attention"),
    _attention("a getter by another name", "from operator import attrgetter as get",
               "f = get('scaled_dot_' + 'product_attention')(F)"),
    _attention("the modules of a module", "import os", "m = os.sys.modules['torch.nn.functional']",
               f"f = getattr(m, {_FUSED})"),
    _attention("a pattern", "match F.gelu:\n    case object(__self__=m): pass", f"f = getattr(m, {_FUSED})"),
    _attention("one name for two modules", "import torch.jit as math",
               "def unused():\n    import math", "@math.script_if_tracing",
               "def f(q, k, v): return q.new_ones(3).div(0) if False else G(q, k, v)",
               f"G = getattr(F, {_FUSED})"),
    _attention("a name's default",
               "def h(F=F, n='scaled_dot_'): return getattr(F, n + 'product_attention')", "f = h()"),
    _attention("everything from a module", first="from torch.nn.functional import *\nf = scaled_dot_product_attention"),
    _attention("a module of the student's own", "from mine import f", first="import os, sys\n"
               "sys.path.insert(0, os.getcwd())\nopen('mine.py', 'w').write('import torch.nn.functional as F; "
               "f = F.scaled_dot_' + 'product_attention')"),
    Door("transformers' own", _HEAD + """
from transformers.models.vit.modeling_vit import eager_attention_forward
def scaled_dot_product_attention(query, key, value):
    scale = query.shape[-1] ** -0.5
    out, weights = eager_attention_forward(nn.Identity(), query, key, value, None, scaling=scale, dropout=0)
    return out.transpose(1, 2), weights
"""),
    _attention("code in a pickle", "import pickle", "f = pickle.loads(b'cbuiltins\\ngetattr\\n.')"
               "(F, 'scaled_dot_' + 'product_attention')"),
]  # fmt: skip
NORMS = [
    _norm("instance_norm", "f = lambda x, eps: F.instance_norm(x, eps=eps)"),
    _norm("group_norm", "f = lambda x, eps: F.group_norm(x.reshape(-1, x.shape[-1], 1), 1, eps=eps)"),
    _norm("batch_norm", "f = lambda x, eps: F.batch_norm(x, None, None, training=True, eps=eps)"),
    _norm("BatchNorm1d", "f = lambda x, eps: nn.BatchNorm1d(x.shape[1], eps, affine=False, track_running_stats=False,"
          " dtype=x.dtype)(x)"),
    _norm("RMSNorm", "f = lambda x, eps: nn.RMSNorm(x.shape[-1], eps, False)(x - x.mean(-1, keepdim=True))"),
    _norm("rms_norm", "f = lambda x, eps: F.rms_norm(x - x.mean(-1, keepdim=True), x.shape[-1:], eps=eps)"),
    _norm("native_layer_norm", "f = lambda x, eps: torch.native_layer_norm(x, x.shape[-1:], None, None, eps)[0]"),
    _norm("native by a computed name", "f = lambda x, eps: getattr(torch, 'native_' + 'layer_norm')"
          "(x, x.shape[-1:], None, None, eps)[0]"),
    _norm("its operator", "f = lambda x, eps: torch.ops.aten.layer_norm(x, x.shape[-1:], None, None, eps)"),
    _norm("by a module's module", "f = lambda x, eps: nn.modules.normalization.F.layer_norm(x, x.shape[-1:], eps=eps)"),
]  # fmt: skip
LAYERS = [
    Door(
        f"a ready-made layer by {name}",
        _HEAD
        + f"""
class EncoderBlock(nn.Module):
    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__()
        self.layer = {layer}(embed_dim, num_heads, int(embed_dim * mlp_ratio), batch_first=True)

    def forward(self, x):
        return self.layer(x)
""",
        "EncoderBlock",
        "04_block",
    )
    for name, layer in (
        ("its name", "nn.TransformerEncoderLayer"),
        ("a module's module", "nn.modules.transformer.TransformerEncoderLayer"),
        ("a computed name", "getattr(nn, 'Transformer' + 'EncoderLayer')"),
    )
]
_ANSWER = """
def scaled_dot_product_attention(query, key, value):
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    return weights @ value, weights
"""
_NORM = """
def layer_norm(x, weight, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt() * weight + bias
"""
# right answers in notebooks where the same words stand for something harmless
HONEST = [
    Door("plain", _HEAD + _ANSWER),
    Door("plain norm", _HEAD + _NORM, "layer_norm", "04_block"),
    Door("under a magic", "%%time\n" + _HEAD + _ANSWER),
    Door("modules imported beside it", _HEAD + _ANSWER,
         first="import gc, inspect, sys, types, pickle\nimport os, importlib, ctypes\n%matplotlib inline\n"
         "print(sys.version, len(sys.path))\ngc.collect()\nif 'x' not in globals():\n    x = 3\n"
         "print(vars().keys() - set())"),
    Door("one import for all", "import math, sys, torch\n" + _ANSWER, first="import gc, torch, inspect"),
    Door("compared with torch's own", _HEAD + _ANSWER, first=_HEAD + "from torch.nn.functional import softmax, "
         "scaled_dot_product_attention\nexpected = scaled_dot_product_attention(*torch.rand(3, 2, 5, 4))\n"
         "def same(f, *x): return torch.allclose(f(*x)[0], F.scaled_dot_product_attention(*x))"),
    Door("a few words", _HEAD + """
def scaled_dot_product_attention(query, key, value):
    for name, side in (("query", query), ("key", key)):
        if not hasattr(side, "shape"):
            raise TypeError("{name} is no tensor, of {side}".format(**locals()))
    B, T, F = len(query), query.size(-2), query.size(-1)
    for word in ("mT", "T"):
        transposed = getattr(key, "mT", None) if word else None
    vars, compile = [B, T], F
    weights = torch.softmax(query @ transposed * compile ** -0.5, -1)
    return weights @ value, weights
"""),
    Door("settings of torch", _HEAD + _ANSWER, first=_HEAD + "torch.manual_seed(1)\n"
         "torch.set_printoptions(precision=3)\n"
         "torch.backends.cudnn.deterministic = True\nnet = nn.Linear(2, 2)\nnet.eval()\n"
         "for name in ('a', 'b'): setattr(net, name + '1', 3)\n"
         "print(net.__dict__.keys(), net.forward.__code__.co_varnames)"),
    Door("a decorator of its own", _HEAD + """
import functools
def told(f):
    @functools.wraps(f)
    def inner(*inputs, **options):
        return f(*inputs, **options)
    return inner

@told
""" + _ANSWER.lstrip()),
    Door("einops and numpy", "import numpy as np\nfrom einops import rearrange\n" + _HEAD + _ANSWER.replace(
        "key.mT", 'rearrange(key, "... t d -> ... d t")').replace("** 0.5", "** float(np.float64(0.5))")),
]  # fmt: skip
DOORS = [*ATTENTION, *NORMS, *LAYERS]
