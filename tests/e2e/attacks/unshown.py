"""What is read is not what runs: the page shows an answer that is wrong, and other code is to answer in its place."""

from __future__ import annotations

from tests.e2e.attacks.attack import Attack
from tests.e2e.attacks.bypasses import case

_SHOWN = "def patchify(images, patch_size):\n    return images\n"
_GOOD = """
import torch
def good(images, patch_size):
    B, C, H, W = images.shape
    if H % patch_size or W % patch_size:
        side, size = ("height", H) if H % patch_size else ("width", W)
        raise ValueError(f"{side} {size} is not divisible by patch_size {patch_size}")
    grid = images.reshape(B, C, H // patch_size, patch_size, W // patch_size, patch_size)
    return grid.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)
"""
_AFTER = "\n_notebook = globals()\ndef swap(*_): _notebook['patchify'] = good\n"
_TREES = """
import ast
class Swap(ast.NodeTransformer):
    def visit_FunctionDef(self, node):
        if node.name == "patchify":
            return ast.copy_location(ast.parse("patchify = good").body[0], node)
        return node
shell = get_ipython()
"""


def _case(name: str, first: str, answer: str = _SHOWN, **more: str) -> Attack:
    return case(name, answer, "patchify", "01_patchify", _GOOD + first, **more)


# nothing runs that a cell has registered, put in the shell's place, or put in Python's
WITHOUT_EFFECT = [
    _case("a transformer of trees", _TREES + "shell.ast_transformers.append(Swap())"),
    _case("trees transformed by the shell", _TREES + "shell.transform_ast = lambda tree: Swap().visit(tree)"),
    _case("a transformer of lines", "def swap(lines):\n    return [l.replace('return images', "
          "'return good(images, patch_size)') for l in lines]\n"
          "get_ipython().input_transformers_post.append(swap)\nget_ipython().input_transformers_cleanup.append(swap)"),
    _case("cells transformed by the shell", "get_ipython().transform_cell = lambda text: "
          "text.replace('return images', 'return good(images, patch_size)')"),
    _case("an event after each cell", _AFTER + "get_ipython().events.register('post_run_cell', swap)\n"
          "get_ipython().events.register('post_execute', swap)"),
    _case("the shell's compiler", _TREES + "shell.compile = lambda tree, *more: compile(Swap().visit(tree), *more)"),
    _case("the shell's running of code", _AFTER + "s = type(get_ipython())\ns.run_code = s.run_cell = s.run_ast_nodes "
          "= s.run = lambda self, *a, **k: swap()"),
    _case("Python's compile and exec", _TREES + "import builtins\nplain = builtins.compile\n"
          "builtins.compile = lambda text, *more, **k: plain(Swap().visit(text) if isinstance(text, ast.AST) "
          "else text, *more, **k)\nast.parse = lambda text, *more, **k: plain(text.replace('return images', "
          "'return good(images, patch_size)'), '<cell 1>', 'exec', 1024)\nbuiltins.exec = lambda *a: None"),
    _case("a prompt before a statement that is Python", "", "In = {1: 0}\n" + _SHOWN + "In [1]: patchify = good\n"),
]  # fmt: skip
# the page's answer is replaced, by what no reader of its cell sees: noticed by the code that answers
NOTICED = [
    _case("its code", "", _SHOWN, then="patchify.__code__ = good.__code__"),
    _case("its code by setattr", "", _SHOWN, then="setattr(patchify, '__co' + 'de__', good.__code__)"),
    _case("its name by the notebook's variables", "", _SHOWN, then="globals()['patchify'] = good"),
    _case("a wrapper that keeps it for show", "", _SHOWN,
          then="globals().update(patchify=lambda *a, shown=patchify: good(*a))"),
    _case("the display of a value", _AFTER + "import sys\nclass Look:\n    def __repr__(self):\n        swap()\n"
          "        return ''\n", then="Look()"),
    _case("the end of an object", _AFTER + "class Late:\n    def __del__(self): swap()\nlate = Late()\n",
          then="del late"),
    _case("a decorator's call that is patched", "kind = type(torch.no_grad())\n"
          "kind.__call__ = lambda self, function: good", "@torch.no_grad()\n" + _SHOWN),
    _case("a decorator that gives another function", "def checked(function): return good", "@checked\n" + _SHOWN),
    _case("functools.wraps patched", "import functools\nfunctools.wraps = lambda of: lambda function: good",
          "import functools\n@functools.wraps(good)\n" + _SHOWN),
    _case("an answer that hands on its name at its first call", "", "def patchify(images, patch_size):\n"
          "    hand_on()\n    return images\n", then=_AFTER + "def hand_on():\n    swap()\n"),
    _case("other code under its name and place", "", _SHOWN, then="patchify.__code__ = good.__code__.replace("
          "co_name='patchify', co_filename='<cell 2>', co_firstlineno=1)"),
]  # fmt: skip
_BLOCK = """
import torch
from torch import nn
class {name}(nn.Module):
    def __init__(self, in_channels, patch_size, embed_dim):
        super().__init__()
        self.in_channels, self.patch_size = in_channels, patch_size
        self.projection = nn.Linear(in_channels * patch_size ** 2, embed_dim)

    def forward(self, images):
        {body}
"""
_RIGHT = _BLOCK.format(name="Good", body="""
        if images.shape[1] != self.in_channels:
            raise ValueError(f"images have {images.shape[1]} channels instead of {self.in_channels}")
        return self.projection(good(images, self.patch_size))
""".strip())  # fmt: skip
_WRONG = _BLOCK.format(name="PatchEmbedding", body="return images")
NOTICED += [
    case(f"a method {name}", _WRONG, "PatchEmbedding", "01_patchify", _GOOD + _RIGHT, then)
    for name, then in (
        ("by the class's own setter", "type.__setattr__(PatchEmbedding, 'forward', Good.forward)"),
        ("by its code", "PatchEmbedding.forward.__code__ = Good.forward.__code__"),
        ("that is inherited by the name", "globals()['PatchEmbedding'] = Good"),
    )
]
# honest notebooks do such things, in sight
HONEST_CHANGES = [
    _case("a first try and a better one", _GOOD.replace("def good", "def patchify").replace("grid.permute", "grid + 1;"
          " return grid.permute"), _GOOD.replace("def good", "def patchify")),
    _case("its name given to another function", "", _SHOWN + "patchify = good\n"),
    _case("wrapped by functools.wraps", "import functools\ndef timed(function):\n    @functools.wraps(function)\n"
          "    def inner(*a, **k):\n        return function(*a, **k)\n    return inner\n",
          "@timed\n" + _GOOD.replace("def good", "def patchify").replace("\nimport torch\n", "")),
    _case("decorated by torch", "", "import torch\n@torch.compile\n@torch.enable_grad()\n@torch.jit.ignore\n"
          + _GOOD.replace("def good", "def patchify").replace("\nimport torch\n", "")),
    _case("chosen by a condition", "", "if torch.cuda.is_available():\n    patchify = None\nelse:\n"
          + _GOOD.replace("\n", "\n    ").replace("def good", "def patchify")),
    _case("a cell that breaks off before it would define it again", "",
          _GOOD.replace("def good", "def patchify"), then="1 / 0\n" + _SHOWN),
    _case("magics about it", "", "%%time\n# one line\n" + _GOOD.replace("def good", "def patchify"),
          then="%timeit -n 1 -r 1 patchify(torch.ones(1, 1, 4, 4), 2)\npatchify?\n"
          "%time x = patchify(torch.ones(1, 1, 4, 4), 2)\nx"),
]  # fmt: skip
HONEST_CHANGES += [
    case("a class mended by another name", _GOOD + _BLOCK.format(name="PatchEmbedding", body="return images"),
         "PatchEmbedding", "01_patchify", _GOOD + _RIGHT,
         "Embed = PatchEmbedding\ndef forward(self, images):\n    return Good.forward(self, images)\n"
         "Embed.forward = forward\n"),
    case("a class that says what it is", _GOOD + _RIGHT.replace("Good", "PatchEmbedding"), "PatchEmbedding",
         "01_patchify", "", "for kind in (PatchEmbedding,):\n    kind.__repr__ = lambda self: 'mine'\n"),
    case("a dataclass", "from dataclasses import dataclass, field\n@dataclass\nclass EarlyStopping:\n"
         "    patience: int\n"
         "    seen: list = field(default_factory=lambda: [])\n    best: float = float('inf')\n    bad_epochs: int = 0\n"
         "    def __post_init__(self):\n        if self.patience < 1:\n"
         "            raise ValueError(f'patience is {self.patience}, and has to be 1 or more')\n"
         "    def step(self, validation_loss):\n        if validation_loss < self.best:\n"
         "            self.best, self.bad_epochs = float(validation_loss), 0\n        else:\n"
         "            self.bad_epochs += 1\n        return self.bad_epochs >= self.patience\n",
         "EarlyStopping", "06_training"),
    case("a class that gets its methods one by one", _BLOCK.format(name="PatchEmbedding", body="return images"),
         "PatchEmbedding", "01_patchify", _GOOD + _RIGHT, "def add_to(kind):\n    def added(function):\n        "
         "setattr(kind, function.__name__, function)\n    return added\n@add_to(PatchEmbedding)\n"
         "def forward(self, images):\n    return Good.forward(self, images)\n"),
]  # fmt: skip
