"""Bypasses of the rules on forbidden functions: each an answer that computes what is asked for, and earns nothing."""

from __future__ import annotations

from tests.e2e.attacks.attack import Attack

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


def case(
    name: str,
    answer: str,
    exercise: str = "scaled_dot_product_attention",
    lesson: str = "03_attention",
    first: str = "",
    then: str = "",
    honest: float = 0.0,
) -> Attack:
    """An answer that bypasses a rule, or one that looks as if it did."""
    return Attack(name, "", answer, honest, first, then, lesson=lesson, exercise=exercise)


def _attention(name: str, *lines: str, first: str = "") -> Attack:
    return case(name, _HEAD + "\n".join(lines) + "\n" + _TWICE, first=_HEAD + first if first else "")


def _norm(name: str, *lines: str) -> Attack:
    return case(name, _HEAD + "\n".join(lines) + "\n" + _OVER_LAST, "layer_norm", "04_block")


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
    _attention("the profile function taken away", "import sys",
               "def f(*a):", "    sys.setprofile(None)", "    return F.scaled_dot_product_attention(*a)"),
    _attention("the profile function taken away for a while", "import sys",
               "def f(*a):", "    kept = sys.getprofile()", "    sys.setprofile(None)",
               "    try: return F.scaled_dot_product_attention(*a)", "    finally: sys.setprofile(kept)"),
    _attention("the modes taken away", "import torch.utils._python_dispatch as modes",
               "def f(*a):", "    try: modes._pop_mode(), torch.overrides._pop_mode()", "    except Exception: pass",
               "    return torch._C._nn.scaled_dot_product_attention(*a)"),
    _attention("without functions' modes", "def f(*a):",
               "    with torch._C.DisableTorchFunction(): return F.scaled_dot_product_attention(*a)"),
    _attention("in another thread", "from concurrent.futures import ThreadPoolExecutor",
               "def f(*a):", "    with ThreadPoolExecutor(1) as pool:",
               "        return pool.submit(F.scaled_dot_product_attention, *a).result()"),
    _attention("in a thread of threading", "import threading", "def f(*a):", "    got = []",
               "    def work(): got.append(F.scaled_dot_product_attention(*a))",
               "    thread = threading.Thread(target=work); thread.start(); thread.join()", "    return got[0]"),
    _attention("mapped", "f = lambda *a: next(map(F.scaled_dot_product_attention, *([each] for each in a)))"),
    _attention("a partial of it", "import functools", "f = functools.partial(F.scaled_dot_product_attention)"),
    _attention("an object that calls it", "class Attend:",
               "    def __call__(self, *a): return F.scaled_dot_product_attention(*a)", "f = Attend()"),
    _attention("in a checkpoint", "from torch.utils.checkpoint import checkpoint",
               "f = lambda *a: checkpoint(F.scaled_dot_product_attention, *a, use_reentrant=False)"),
    _attention("in a forward of autograd's", "class G(torch.autograd.Function):",
               "    @staticmethod", "    def forward(ctx, *a): return F.scaled_dot_product_attention(*a)",
               "    @staticmethod", "    def backward(ctx, *a): return a", "f = G.apply"),
    _attention("scripted", "@torch.jit.script", "def f(q, k, v):",
               "    return F.scaled_dot_product_attention(q, k, v)"),
    _attention("traced by torch.fx", "g = lambda q, k, v: F.scaled_dot_product_attention(q, k, v)",
               "f = torch.fx.symbolic_trace(g)"),
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
               "torch._C._nn.scaled_dot_product_attention(q, k, v)\\n')", "f = cu.f"),
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
    case("an answer under a magic", f"%%time\n{_HEAD}f = F.scaled_dot_product_attention\n{_TWICE}"),
    _attention("a method put on tensors", "f = lambda q, k, v: q.attend(k, v)",
               first="torch.Tensor.attend = lambda q, k, v: getattr(F, 'scaled_dot_' + 'product_attention')(q, k, v)"),
    _attention("a list filled elsewhere", "f = lambda *a: found[0](*a)",
               first="found = []\nfor n in dir(F):\n    if n.startswith('scaled_dot'): found.append(getattr(F, n))"),
    _attention("a getter", "from operator import attrgetter", "f = attrgetter('scaled_dot_product_attention')(F)"),
    _attention("reduced getattr", "import functools",
               "f = functools.reduce(getattr, ['nn', 'functional', 'scaled_dot_' + 'product_attention'], torch)"),
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
    _attention("code in a pickle", "import pickle", "f = pickle.loads(b'cbuiltins\\ngetattr\\n.')"
               "(F, 'scaled_dot_' + 'product_attention')"),
]  # fmt: skip
NORMS = [
    _norm("a norm among the garbage collector's callbacks", "import gc", "g = getattr(F, 'layer' + '_norm')",
          "gc.callbacks.append(g)", "f = lambda x, eps: g(x, x.shape[-1:], eps=eps)"),
    _norm("torch's own module function, found by a search",
          "cm = [v for k, v in vars(nn.modules._functions).items() if k.startswith('CrossMap')][0]", """
def f(x, eps):
    c = x - x.mean(-1, keepdim=True)
    d = x.shape[-1]
    return cm.apply(c.reshape(-1, d, 1, 1), 2 * d - 1, (2 * d - 1) / d, 0.5, eps).reshape(x.shape)
"""),
    _norm("the gradient of a norm", "op = torch.ops.aten.native_batch_norm_backward", """
def f(x, eps):
    d = x.shape[-1]
    c = (x - x.mean(-1, keepdim=True)).reshape(1, -1, d)
    v = c.square().mean(-1).reshape(-1)
    mask = [True, False, False]
    return op(c, c, None, c.new_zeros(v.shape), v, None, None, False, eps, mask)[0].reshape(x.shape)
"""),
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
    _norm("local_response_norm", """f = lambda x, eps: F.local_response_norm(
    (x - x.mean(-1, keepdim=True)).movedim(-1, 1), 2 * x.shape[-1] - 1, alpha=(2 * x.shape[-1] - 1) / x.shape[-1],
    beta=0.5, k=eps).movedim(1, -1)"""),
    _norm("its module", "f = lambda x, eps: nn.LocalResponseNorm(2 * x.shape[-1] - 1, k=eps)(x)"),
    _norm("torch.rms_norm", "f = lambda x, eps: torch.rms_norm(x - x.mean(-1, True), x.shape[-1:], eps=eps)"),
    _norm("torch.rms_norm in a partial", "import functools",
          "f = lambda x, eps: functools.partial(torch.rms_norm, eps=eps)(x - x.mean(-1, True), x.shape[-1:])"),
    _norm("GroupNorm", "f = lambda x, eps: nn.GroupNorm(1, x.shape[-1], eps, False)(x.reshape(-1, x.shape[-1]))"),
    _norm("LayerNorm", "f = lambda x, eps: nn.LayerNorm(x.shape[-1], eps, False)(x)"),
    _norm("LayerNorm made elsewhere", "n = nn.LayerNorm(4)",
          "def f(x, eps):", "    n.normalized_shape, n.eps, n.weight, n.bias = x.shape[-1:], eps, None, None",
          "    return n(x)"),
    _norm("a subclass of LayerNorm", "class N(nn.LayerNorm): pass",
          "f = lambda x, eps: N(x.shape[-1], eps, False)(x)"),
    _norm("torch's reference in Python", "import torch._refs.nn.functional as refs",
          "f = lambda x, eps: refs.layer_norm(x, x.shape[-1:], None, None, eps)"),
    _norm("torch's decomposition", "import torch._decomp.decompositions", "import torch._refs as refs",
          "f = lambda x, eps: refs.native_layer_norm(x, x.shape[-1:], None, None, eps)[0]"),
    _norm("mapped over tokens",
          "f = lambda x, eps: torch.func.vmap(lambda t: F.layer_norm(t, t.shape, eps=eps))(x[0])"),
    _norm("in a Sequential",
          "f = lambda x, eps: nn.Sequential(nn.Identity(), nn.LayerNorm(x.shape[-1], eps, False))(x)"),
    _norm("by functional_call",
          "f = lambda x, eps: torch.func.functional_call(nn.LayerNorm(x.shape[-1], eps), {}, (x,))"),
    _norm("torchvision's LayerNorm2d", "from torchvision.models.convnext import LayerNorm2d as Norm",
          "f = lambda x, eps: Norm((x.shape[-1],), eps, False)(x.movedim(-1, 1)[..., None])[..., 0].movedim(1, -1)"),
    _norm("caught and gone on", "def f(x, eps):", "    try: F.layer_norm(x, x.shape[-1:]); 1 / 0",
          "    except ZeroDivisionError: pass", "    c = x - x.mean(-1, True)",
          "    return c / (c.square().mean(-1, True) + eps).sqrt()"),
    _norm("by a module's module", "f = lambda x, eps: nn.modules.normalization.F.layer_norm(x, x.shape[-1:], eps=eps)"),
]  # fmt: skip
LAYERS = [
    case(
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
_WINDOW = """
from torchvision.models.swin_transformer import shifted_window_attention
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim {embed_dim} is not divisible by num_heads {num_heads}")
        self.heads, self.qkv = num_heads, nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.projection = nn.Linear(embed_dim, embed_dim)
    def forward(self, x, return_weights=False):
        nothing = torch.zeros(1, self.heads, x.shape[1], x.shape[1])
        output = shifted_window_attention(x[:, None], self.qkv.weight, self.projection.weight, nothing,
                                          [1, x.shape[1]], self.heads, [0, 0], qkv_bias=self.qkv.bias,
                                          proj_bias=self.projection.bias)[:, 0]
        return (output, None) if return_weights else output
"""
_BY_SEARCH = "g = [v for k, v in vars(F).items() if k.startswith('layer_n')][0]"
_COUNTED = "def count_parameters(config):\n    with torch.device('meta'):\n        "
READY_MADE = [
    _norm("called by the course's own code", "from types import SimpleNamespace", "from functools import partial",
          "from vit_course.patches import PatchEmbedding", _BY_SEARCH, """
def f(x, eps):
    part = partial(g, normalized_shape=x.shape[-1:], eps=eps)
    own = SimpleNamespace(projection=part, in_channels=1, patch_size=1)
    return PatchEmbedding.forward(own, x.reshape(1, 1, -1, x.shape[-1])).reshape(x.shape)
"""),
    case("the course's block counted", """
import inspect, math
from vit_course.encoder import EncoderBlock
def held(module):
    own = module.__dict__
    mine = sum(math.prod(each.shape) for each in own['_parameters'].values() if each is not None)
    return mine + sum(map(held, own['_modules'].values()))
def count_parameters(c):
    taken = {name: getattr(c, name) for name in inspect.signature(EncoderBlock.__init__).parameters if hasattr(c, name)}
    patches = (c.in_channels * c.patch_size ** 2 + 1) * c.embed_dim
    rest = c.embed_dim * (c.num_patches + 2) + 2 * c.embed_dim + (c.embed_dim + 1) * c.num_classes
    return c.depth * held(EncoderBlock(**taken)) + patches + rest
""", "count_parameters", "05_vit"),
    _attention("a pattern of torch's compiler", "from torch._inductor.fx_passes import fuse_attention",
               "f = lambda q, k, v: fuse_attention._sfdp_pattern_1(q, k, v, q.shape[-1] ** 0.5)"),
    case("torchvision's attention in windows", _HEAD + _WINDOW, "MultiHeadSelfAttention"),
    case("nn.MultiheadAttention", _HEAD + """
class MultiHeadSelfAttention(nn.MultiheadAttention):
    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__(embed_dim, num_heads, batch_first=True)
    def forward(self, x, return_weights=False):
        output, weights = super().forward(x, x, x, average_attn_weights=False)
        return (output, weights) if return_weights else output
""", "MultiHeadSelfAttention"),
    case("torch's attention as an oracle", _HEAD + """
def is_attention(attend):
    q, k, v = torch.randn(2, 5, 4), torch.randn(2, 7, 4), torch.randn(2, 7, 6)
    output, weights = attend(q, k, v)
    return output.shape == (2, 5, 6) and torch.allclose(output, F.scaled_dot_product_attention(q, k, v), atol=1e-5)
""", "is_attention"),
    case("torchvision's block", _HEAD + """
from torchvision.models.vision_transformer import EncoderBlock as Theirs
class EncoderBlock(nn.Module):
    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__()
        self.block = Theirs(num_heads, embed_dim, int(embed_dim * mlp_ratio), 0.0, 0.0)
    def forward(self, x):
        return self.block(x)
""", "EncoderBlock", "04_block"),
    case("torchvision's model", _HEAD + """
import torchvision
class VisionTransformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.model = torchvision.models.VisionTransformer(config.image_size[0], config.patch_size, config.depth,
            config.num_heads, config.embed_dim, 4 * config.embed_dim, num_classes=config.num_classes)
    def forward(self, images):
        return self.model(images)
""", "VisionTransformer", "05_vit"),
    case("nn.TransformerEncoder", _HEAD + """
class VisionTransformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        layer = nn.TransformerEncoderLayer(config.embed_dim, config.num_heads, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, config.depth)
    def forward(self, images):
        return self.blocks(images)
""", "VisionTransformer", "05_vit"),
    *(
        case(f"a model counted by {name}", _HEAD + "from vit_course.encoder import EncoderBlock\n" + _COUNTED + count,
             "count_parameters", "05_vit")
        for name, count in (
            ("its layers on meta", "return sum(p.numel() for p in nn.Linear(3, config.embed_dim).parameters())"),
            ("the course's block", "return sum(map(torch.numel, EncoderBlock(config.embed_dim, 1).parameters()))"),
            ("a tensor on meta", "return torch.empty(config.embed_dim, 3).numel()"),
            ("nn.Transformer", "return sum(p.numel() for p in nn.TransformerEncoderLayer(4, 1).parameters())"),
        )
    ),
]  # fmt: skip
# a library's own text, executed as the student's: nothing of the library runs, and it is flagged
FLAGGED = [
    _norm("its source executed", "import inspect", "exec(inspect.getsource(F.local_response_norm))",
          "f = lambda x, eps: x"),
    _norm("variables of the watch", "import sys", "w = sys.modules['worker.call_trace']", "f = lambda x, eps: w and x"),
    _norm("objects of the garbage collector", "import gc", "found = gc.get_objects()[:1]",
          "f = lambda x, eps: found and x"),
]  # fmt: skip
_ANSWER = """
def scaled_dot_product_attention(query, key, value):
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    return weights @ value, weights
"""
_NORM = """
def layer_norm(x, weight, bias, eps):
    centered = x - x.mean(-1, keepdim=True)
    return centered / (centered.square().mean(-1, keepdim=True) + eps).sqrt() * weight + bias
"""
_LATE_NORM = """
class Late(torch.Tensor):
    @property
    def __class__(self):
        while todo:
            out, x, eps = todo.pop()
            out.copy_(g(x, x.shape[-1:], None, None, eps))
        return Late
todo = []
def f(x, eps):
    out = torch.zeros_like(x)
    todo.append((out, x, eps))
    return out.as_subclass(Late)
"""
# what goes on where the watch cannot look: flagged
FLAGGED += [
    _norm("found by a search", _BY_SEARCH, "f = lambda x, eps: g(x, x.shape[-1:], None, None, eps)"),
    _norm("a thread that was there before", "from concurrent.futures import ThreadPoolExecutor",
          "pool = ThreadPoolExecutor(1)", "f = lambda x, eps: pool.submit(int).result() or x"),
    _norm("code under the course's file name", "import vit_course", "def f(x, eps): return x",
          'setattr(f, "__code__", getattr(f, "__code__").replace(co_filename=vit_course.__file__))'),
    _norm("the watch imported", "import worker.call_trace as w", "w.Watch.note = lambda *a: None",
          "f = lambda x, eps: w and x"),
    _norm("a name that is got", "from operator import attrgetter", "c = attrgetter('_' + 'C')(torch)",
          "f = lambda x, eps: c and x"),
    _norm("a name put together", "c = getattr(torch, '_' + 'C')", "f = lambda x, eps: c and x"),
    _norm("ctypes through numpy", "import numpy as np", "api = np.ctypeslib.ctypes.pythonapi",
          "f = lambda x, eps: api and x"),
    _norm("computed when the result is looked at", "g = abs", _LATE_NORM),
]  # fmt: skip
# right answers in notebooks where the same words stand for something harmless
HONEST = [
    case("plain", _HEAD + _ANSWER),
    case("plain norm", _HEAD + _NORM, "layer_norm", "04_block"),
    case("under a magic", "%%time\n" + _HEAD + _ANSWER),
    case("modules imported beside it", _HEAD + _ANSWER,
         first="import gc, inspect, sys, types, pickle\nimport os, importlib, ctypes\n%matplotlib inline\n"
         "print(sys.version, len(sys.path))\ngc.collect()\nif 'x' not in globals():\n    x = 3\n"
         "print(vars().keys() - set())"),
    case("one import for all", "import math, sys, torch\n" + _ANSWER, first="import gc, torch, inspect"),
    case("compared with torch's own", _HEAD + _ANSWER, first=_HEAD + "from torch.nn.functional import softmax, "
         "scaled_dot_product_attention\nexpected = scaled_dot_product_attention(*torch.rand(3, 2, 5, 4))\n"
         "def same(f, *x): return torch.allclose(f(*x)[0], F.scaled_dot_product_attention(*x))"),
    # where attention is withheld, cells run again, and what is refused there is passed over
    case("behind an empty line", "\n" + _HEAD + "\n" + _ANSWER),
    case("behind a comparison and what follows from it", _HEAD + "expected = F.scaled_dot_product_attention("
         "*torch.rand(3, 2, 5, 4))\nfirst = expected[0]\nassert not (first != first).any()\ndel expected\n" + _ANSWER),
    case("behind two statements on a line", _HEAD + "torch.manual_seed(0); shown = F.scaled_dot_product_attention("
         "*torch.rand(3, 2, 5, 4)); print(shown)\n" + _ANSWER),
    case("behind an attempt with an import", _HEAD + "try:\n    from torch.nn.functional import relu\n    "
         "shown = F.scaled_dot_product_attention(*torch.rand(3, 2, 5, 4))\nexcept ImportError:\n    pass\n" + _ANSWER),
    case("before a line that raises", _HEAD + "shown = F.scaled_dot_product_attention(*torch.rand(3, 2, 5, 4))\n"
         + _ANSWER + "\nraise ValueError('a test of mine')\n"),
    case("a few words", _HEAD + """
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
    case("settings of torch", _HEAD + _ANSWER, first=_HEAD + "torch.manual_seed(1)\n"
         "torch.set_printoptions(precision=3)\n"
         "torch.backends.cudnn.deterministic = True\nnet = nn.Linear(2, 2)\nnet.eval()\n"
         "for name in ('a', 'b'): setattr(net, name + '1', 3)\n"
         "print(net.__dict__.keys(), net.forward.__code__.co_varnames)"),
    case("a decorator of its own", _HEAD + """
import functools
def wrapped(f):
    @functools.wraps(f)
    def inner(*inputs, **options):
        return f(*inputs, **options)
    return inner

@wrapped
""" + _ANSWER.lstrip()),
    case("einops and numpy", "import numpy as np\nfrom einops import rearrange\n" + _HEAD + _ANSWER.replace(
        "key.mT", 'rearrange(key, "... t d -> ... d t")').replace("** 0.5", "** float(np.float64(0.5))")),
]  # fmt: skip
HONEST += [
    case("scripted", _HEAD + "@torch.jit.script" + _ANSWER.replace("key.mT", "key.transpose(-2, -1)")
         .replace("query.shape[-1] ** 0.5", "float(query.size(-1)) ** 0.5")),
    case("compiled", _HEAD + "@torch.compile(dynamic=True, fullgraph=True)" + _ANSWER),
    case("compiled norm", _HEAD + _NORM + "layer_norm = torch.compile(layer_norm, backend='eager')\n", "layer_norm",
         "04_block"),
    case("a scripted norm", _HEAD + "@torch.jit.script" + _NORM.replace("eps)", "eps: float)", 1), "layer_norm",
         "04_block"),
    case("a partial", _HEAD + "import functools\ndef attend(power, query, key, value):\n"
         "    weights = (query @ key.mT * query.shape[-1] ** power).softmax(-1)\n"
         "    return weights @ value, weights\nscaled_dot_product_attention = functools.partial(attend, -0.5)\n"),
    case("a module", _HEAD + """
class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.softmax, self.drop = nn.Softmax(dim=-1), nn.Dropout(0.0)

    def forward(self, query, key, value):
        weights = self.drop(self.softmax(query @ key.mT / query.shape[-1] ** 0.5))
        return weights @ value, weights
scaled_dot_product_attention = Attend()
"""),
    case("vmap", _HEAD + """
def one(query, key, value):
    weights = torch.softmax(key @ query / query.shape[-1] ** 0.5, -1)
    return weights @ value, weights
def scaled_dot_product_attention(query, key, value):
    attend = torch.func.vmap(one, in_dims=(0, None, None))
    for _ in range(query.ndim - 2):
        attend = torch.func.vmap(attend)
    return attend(query, key, value)
"""),
    case("norm by einsum and linear", _HEAD + """
def layer_norm(x, weight, bias, eps):
    mean = torch.einsum("...d->...", x)[..., None] / x.shape[-1]
    variance = torch.linalg.vector_norm(x - mean, dim=-1, keepdim=True) ** 2 / x.shape[-1]
    return F.linear((x - mean) * torch.rsqrt(variance + eps), torch.diag(weight), bias)
""", "layer_norm", "04_block"),
    case("counted with math", """
import functools, math
@functools.lru_cache
def count_parameters(config):
    dim, hidden = config.embed_dim, config.hidden_dim
    block = 4 * dim + 3 * dim * dim + config.qkv_bias * 3 * dim + (dim + 1) * dim + 2 * dim * hidden + hidden + dim
    patches = (math.prod((config.in_channels, config.patch_size, config.patch_size)) + 1) * dim
    return patches + (2 + config.num_patches) * dim + config.depth * block + 2 * dim + (dim + 1) * config.num_classes
""", "count_parameters", "05_vit"),
    case("a subclass of Conv2d", _HEAD + """
class Patches(nn.Conv2d):
    pass
def conv_from_linear(linear, in_channels, patch_size):
    conv = Patches(in_channels, linear.out_features, patch_size, patch_size, bias=linear.bias is not None)
    with torch.no_grad():
        conv.weight.copy_(linear.weight.reshape(conv.weight.shape))
        if linear.bias is not None:
            conv.bias.copy_(linear.bias)
    return conv
""", "conv_from_linear", "01_patchify"),
]  # fmt: skip
# a student's own answer to another exercise, where this one asks for another way
OWN = [
    case("their own patchify for the repaired one", _HEAD + """
def patchify(images, patch_size):
    return F.unfold(images.float(), patch_size, stride=patch_size).mT.to(images.dtype)
def fix_patchify(images, patch_size):
    repaired = patchify
    return repaired(images, patch_size)
""", "fix_patchify", "01_patchify"),
    case("their own attention in a test, where nobody hears it fail", _HEAD + _ANSWER + """
def is_attention(attend):
    try:
        inputs = torch.randn(2, 5, 6), torch.randn(2, 7, 6), torch.randn(2, 7, 3)
        pairs = list(zip(attend(*inputs), scaled_dot_product_attention(*inputs)))
        return all(a.shape == b.shape and torch.allclose(a, b, atol=1e-5) for a, b in pairs)
    except Exception:
        return False
""", "is_attention"),
    case("their own epoch for the repaired one", _HEAD + """
def train_one_epoch(model, loader, optimizer, device):
    return 0.0
def fix_training(*everything):
    return train_one_epoch(*everything)
""", "fix_training", "06_training"),
]  # fmt: skip
BYPASSES = [*ATTENTION, *NORMS, *LAYERS, *READY_MADE, *OWN]
