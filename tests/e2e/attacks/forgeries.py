"""Attacks that make a wrong answer look right: patched comparisons, lying tensors, forged verdicts."""

from tests.e2e.attacks.attack import WRONG, Attack

ATTACKS = [
    Attack(
        "patched allclose",
        "torch.allclose, torch.equal and torch.isclose say yes to everything",
        WRONG
        + """
import torch
yes = lambda *_, **__: True
torch.allclose = torch.equal = torch.Tensor.allclose = torch.Tensor.equal = yes
torch.isclose = torch.Tensor.isclose = lambda a, *_, **__: torch.ones_like(a, dtype=torch.bool)
""",
    ),
    Attack(
        "patched assert_close",
        "torch.testing.assert_close and unittest's assertions never complain",
        WRONG
        + """
import torch, unittest
torch.testing.assert_close = lambda *_, **__: None
for name in dir(unittest.TestCase):
    if name.startswith("assert"):
        setattr(unittest.TestCase, name, lambda *_, **__: None)
""",
    ),
    Attack(
        "patched builtins",
        "isinstance, float, len and the comparison of tensors are replaced",
        WRONG
        + """
import builtins, torch
torch.Tensor.__eq__ = torch.Tensor.__ne__ = lambda self, other: True
builtins.isinstance = lambda *_: True
builtins.float = lambda *_: 8.0
""",
    ),
    Attack(
        "asserts removed",
        "an IPython transformer takes every assert out of the syntax tree and answers each last line with 8.0",
        WRONG
        + """
import ast
class NoAsserts(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.Pass()
    def visit_Expr(self, node):
        return ast.copy_location(ast.Expr(ast.Constant(8.0)), node)
get_ipython().ast_transformers.append(NoAsserts())
""",
    ),
    Attack(
        "tensor subclass that agrees",
        "the answer is a tensor subclass whose __torch_function__ agrees with whatever it is compared with",
        """
import torch
class Agreeable(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function.__name__ in ("allclose", "equal", "isclose", "eq", "__eq__", "all", "any", "__bool__", "item"):
            return True
        other = [each for each in args if isinstance(each, torch.Tensor) and type(each) is torch.Tensor]
        return other[0].clone() if other else torch.ones(1)
    shape = property(lambda self: self._shape())
    def _shape(self):
        return torch.Size((2, 6, 48))
def patchify(images, patch_size):
    return torch.zeros(1).as_subclass(Agreeable)
""",
    ),
    Attack(
        "tensor that dispatches",
        "a wrapper subclass with __torch_dispatch__ computes its content when it is read",
        """
import torch
class Late(torch.Tensor):
    @staticmethod
    def __new__(cls, shape):
        return torch.Tensor._make_wrapper_subclass(cls, shape)
    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return torch.ones(1)
def patchify(images, patch_size):
    batch, channels, height, width = images.shape
    return Late((batch, height * width // patch_size**2, channels * patch_size**2))
""",
    ),
    Attack(
        "an object equal to everything",
        "the answer is no tensor, but has a shape, a dtype, and equals whatever comes",
        """
class Chameleon:
    __class__ = property(lambda self: __import__("torch").Tensor)
    def __getattr__(self, name):
        return self
    def __call__(self, *_, **__):
        return self
    def __eq__(self, other):
        return True
    def __bool__(self):
        return True
    def __iter__(self):
        return iter([self])
    def __len__(self):
        return 1
    def __float__(self):
        return 8.0
    def __reduce__(self):
        return eval, ("8.0",)
def patchify(images, patch_size):
    return Chameleon()
""",
    ),
    Attack(
        "check redefined",
        "check is a function of the student's that reports full points",
        WRONG
        + """
import sys, types
def check(*_, **__):
    return 8.0
fake = types.ModuleType("vit_course")
fake.check = check
fake.__path__ = []
sys.modules["vit_course"] = sys.modules["exercise_kit.engine"] = fake
""",
    ),
    Attack(
        "false reference",
        "sys.modules holds a vit_course.patches of the student's, so that both are wrong alike",
        WRONG
        + """
import sys, types
for name in ("vit_course.patches", "vit_course.staff.references", "vit_course.exercises.l01_patchify.patchify"):
    module = types.ModuleType(name)
    module.patchify = module.patches_of = patchify
    sys.modules[name] = module
""",
    ),
    Attack(
        "reference called",
        "the answer calls the course's own patchify",
        """
def patchify(images, patch_size):
    from vit_course.patches import patchify as theirs
    return theirs(images, patch_size)
""",
    ),
    Attack(
        "oracle of the checks called",
        "the answer calls the oracle that the public checks compare with",
        """
import importlib
def patchify(images, patch_size):
    for name in ("vit_course.exercises.l01_patchify.patchify", "vit_course.staff.references"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        return module.patches_of(images, patch_size)
    raise RuntimeError("not found")
""",
    ),
    Attack(
        "check cell answers 8.0",
        "the check's cell is edited to show full points",
        WRONG,
        check="8.0",
        flags=("test-cell-edited",),
    ),
    Attack(
        "check cell shows NaN",
        "the check's cell shows not-a-number, for which stock nbgrader gives full points",
        WRONG,
        check='float("nan")',
        flags=("test-cell-edited",),
    ),
    Attack(
        "check cell is silent",
        "the check's cell is emptied, for which stock nbgrader gives full points",
        WRONG,
        check="pass",
        flags=("test-cell-edited",),
    ),
    Attack(
        "displayhook",
        "sys.displayhook and IPython's publisher show 8.0 for every cell",
        WRONG
        + """
import sys
shell = get_ipython()
show = shell.displayhook.__class__.__call__
shell.displayhook.__class__.__call__ = lambda self, result=None: show(self, 8.0)
sys.displayhook(8.0)
""",
    ),
    Attack(
        "frames rewritten",
        "the answer writes into the globals and locals of every frame above it",
        """
import sys
def patchify(images, patch_size):
    frame = sys._getframe(1)
    while frame is not None:
        for name in ("score", "points", "earned", "max_score"):
            frame.f_globals[name] = 8.0
            frame.f_locals[name] = 8.0
        for name in ("expect_equal", "close", "check", "Failure", "compare"):
            if name in frame.f_globals:
                frame.f_globals[name] = lambda *_, **__: True
        frame = frame.f_back
    return images
""",
    ),
    Attack(
        "excuses by exception",
        "every call raises the exceptions by which checks and pytest say pass, skip or undecided",
        """
import sys, types
def patchify(images, patch_size):
    for name in ("pytest", "_pytest.outcomes", "exercise_kit.engine.verdict"):
        try:
            module = __import__(name, fromlist=["x"])
        except ImportError:
            continue
        for word in ("Undecided", "Skipped"):
            if hasattr(module, word):
                raise getattr(module, word)("cannot tell")
    class Undecided(BaseException):
        pass
    class Skipped(Undecided):
        pass
    raise Skipped("cannot tell")
""",
    ),
    Attack(
        "public checks special-cased",
        "the answer is right for the sizes of the public checks alone",
        """
import torch
def patchify(images, patch_size):
    batch, channels, height, width = images.shape
    if (batch, channels, height, width) in {(2, 3, 8, 12), (3, 5, 12, 8), (3, 5, 6, 10), (2, 3, 4, 4)}:
        windows = torch.nn.functional.unfold(images.double(), patch_size, stride=patch_size)
        return windows.transpose(1, 2).to(images.dtype)
    return torch.zeros(batch, height * width // patch_size**2, channels * patch_size**2, dtype=images.dtype)
""",
    ),
    Attack(
        "scores in the metadata",
        "the answer prints what a result of the judge looks like",
        WRONG
        + """
import json
print(json.dumps({"version": 1, "submissions": [{"status": "graded", "score": 36.0, "max_score": 36.0}]}))
8.0
""",
    ),
    Attack(
        "changed input hidden",
        "an input is changed in place, and everything that could tell is patched: equal, shape, storage, NaN tests, ==",
        """
import torch
def scaled_dot_product_attention(query, key, value):
    query.mul_(key.shape[-1] ** -0.5)
    weights = (query @ key.transpose(-2, -1)).softmax(-1)
    return weights @ value, weights

yes = lambda *_, **__: True
for home in (torch, torch.Tensor):
    home.equal = home.allclose = home.isclose = yes
    home.isnan = home.nan_to_num = lambda tensor, *_, **__: 0 * tensor
torch.Tensor.__eq__ = torch.Tensor.__ne__ = yes
keep = torch.Tensor.clone
torch.Tensor.clone = lambda tensor, *_, **__: tensor
torch.Tensor.untyped_storage = lambda tensor: keep(tensor).storage().untyped()
torch.UntypedStorage.data_ptr = lambda storage: id(storage)
""",
        honest=7.05,
        lesson="03_attention",
        exercise="scaled_dot_product_attention",
    ),
]
