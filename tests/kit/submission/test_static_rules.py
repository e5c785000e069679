"""Answers that a person should look at, read off the code, and those that only resemble them."""

import inspect
import json
import time
from pathlib import Path

import pytest

from exercise_kit.simulate.modules import is_variant, load_right_variants
from exercise_kit.submission.possible_bypass import find_possible_bypass
from exercise_kit.submission.submission import CellSource
from tests.e2e.attacks.corpus import read_attacks
from vit_course.exercises.forbidden_calls import RULES

SOLUTIONS = Path(__file__).parents[3] / "solutions"
HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
BODY = "def scaled_dot_product_attention(query, key, value):\n    return "


def find_suspect(exercise, name, *sources):
    cells = [CellSource(index, source) for index, source in enumerate(sources)]
    suspect = find_possible_bypass(exercise, (name,), cells)
    return suspect and suspect.used


def find_suspect_in_attention(*sources):
    return find_suspect("scaled_dot_product_attention", "scaled_dot_product_attention", HEAD, *sources)


@pytest.mark.parametrize("case", read_attacks("flagged"), ids=lambda each: each.name)
def test_what_hides_its_calls_is_seen(case):
    assert find_suspect(case.exercise, case.exercise, case.first, case.answer)


@pytest.mark.parametrize("case", read_attacks("odd_company"), ids=lambda each: each.name)
def test_the_same_words_in_a_right_notebook_are_not(case):
    assert find_suspect(case.exercise, case.exercise, case.first, case.answer) is None


@pytest.mark.parametrize(
    ("head", "hides"),
    [
        ("class Meta(type): pass\nclass Odd(metaclass=Meta): pass", "metaclass"),
        ("import abc\nclass Odd(metaclass=abc.ABCMeta): pass", None),
        ("from abc import ABCMeta\nclass Odd(metaclass=ABCMeta): pass", None),
        ("class Odd:\n    def __getattribute__(self, name): return 3", "__getattribute__"),
        ("class Odd:\n    def __getattr__(self, name): return 3", None),
    ],
)
def test_classes_that_answer_for_themselves(head, hides):
    assert find_suspect_in_attention(head, BODY + "Odd and query") == hides


@pytest.mark.parametrize("exercise", RULES)
def test_no_right_variant_is_suspected(exercise):
    for (each,) in load_right_variants().get(exercise, ()):
        if is_variant(each):
            source = Path(inspect.getfile(each)).read_text(encoding="utf-8")
            assert find_suspect(exercise, each.__name__, source) is None, each.__name__


@pytest.mark.parametrize("path", sorted(SOLUTIONS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_no_model_answer_is_suspected(path):
    cells = json.loads(path.read_bytes())["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for exercise in RULES:
        assert find_suspect(exercise, exercise, *sources) is None


@pytest.mark.parametrize(
    "sources",
    [
        [BODY + "F.scaled_dot_product_attention(query, key, value)"],
        ["from torch.nn.functional import scaled_dot_product_attention as sdpa", BODY + "sdpa(query, key, value)"],
        ["import torch.nn as layers", BODY + "layers.MultiheadAttention(4, 1)(query, key, value)"],
        [BODY + "getattr(F, 'scaled_dot_product_attention')(query, key, value)"],
        ["def helper(*x): return F.scaled_dot_product_attention(*x)", BODY + "helper(query, key, value)"],
        ["from torchvision.models.swin_transformer import shifted_window_attention as s", BODY + "s(query)"],
        [BODY + "__import__('torch').ops.aten.scaled_dot_product_attention(query, key, value)"],
        ["import sys", BODY + "sys.setprofile(None)"],
    ],
)
def test_a_name_that_is_not_allowed_is_found(sources):
    assert find_suspect_in_attention(*sources)


@pytest.mark.parametrize(
    "sources",
    [
        [BODY + "(query @ key.mT).softmax(-1) @ value"],
        [BODY + "F.softmax(query @ key.mT, -1) @ nn.Dropout(0.0)(value)"],
        ["expected = F.scaled_dot_product_attention", BODY + "query"],
        [BODY + "query  # not F.scaled_dot_product_attention", "other = nn.MultiheadAttention(4, 1)"],
        ["x = F.scaled_dot_product_attention", "def scaled_dot_product_attention(q, k, v):\n    x = q\n    return x"],
        ["import sys", BODY + "query.clamp(max=sys.maxsize)"],
        ["@torch.jit.script\n" + BODY + "query"],
        ["@torch.compile(dynamic=True)\n" + BODY + "query"],
    ],
)
def test_code_that_the_answer_does_not_reach_or_that_is_allowed_is_not(sources):
    assert find_suspect_in_attention(*sources) is None


def test_an_exercise_without_a_rule_allows_all_that_libraries_compute():
    assert find_suspect("patchify", "patchify", HEAD, "def patchify(x, p): return F.unfold(x, p)") is None


UNUSUAL = [
    ("import logging.handlers as h", "l = h.QueueListener(q)"),
    ("from IPython.lib.backgroundjobs import BackgroundJobManager", "BackgroundJobManager().new(print)"),
    ("from tqdm import TMonitor", "TMonitor(tqdm, 1)"),
    ("import socketserver", "socketserver.ThreadingTCPServer"),
    ("open('mine.py', 'w').write('x = 1')", "import mine\nmine.x"),
    ("torch.Tensor.requires_grad_ = lambda self, on=True: self", ""),
    ("setattr(torch, 'is_grad_enabled', lambda: False)", ""),
    ("import sys", "sys.addaudithook(print)"),
    ("import sys", "sys.setprofile(None)"),
    ("try: 1 / 0\nexcept Exception as e: frame = e.__traceback__.tb_frame", ""),
    ("import os", "os.sys.modules['torch']"),
    ("shell = get_ipython()", "shell.ast_transformers.append(3)"),
    ("", "get_ipython().events.register('post_run_cell', print)"),
    ("import builtins", "builtins.compile = print"),
    ("patchify.__code__ = other.__code__", ""),
    ("globals()['patchify'] = other", ""),
    ("import numpy as np", "np.ctypeslib.ctypes.pythonapi"),
    ("import ctypes", "ctypes.pythonapi"),
    ("import vit_course.patches as p", "p.patchify = print"),
    ("import asyncio", "asyncio.get_event_loop()"),
    ("import linecache", "linecache.getlines('x')"),
    ("object.__setattr__(torch, 'mean', print)", ""),
]


@pytest.mark.parametrize(("first", "then"), UNUSUAL)
def test_what_could_change_how_answers_run_is_seen_anywhere(first, then):
    answer = "def patchify(images, patch_size):\n    return images"
    assert find_suspect("patchify", "patchify", HEAD, first, answer, then)


@pytest.mark.parametrize(
    "line",
    [
        *("return getattr(torch, name)(images)", "return images.__reduce_ex__(4)", "return globals()['f'](images)"),
        *("return (lambda m: m)(sys)", "return vars(F)['unfold'](images)", "return map(getattr, [F], ['unfold'])"),
        *("return type(images).__torch_function__", "return torch.__dict__['nn']"),
    ],
)
def test_what_no_answer_needs_is_seen_in_an_answer(line):
    assert find_suspect("patchify", "patchify", HEAD + "import sys", f"def patchify(images, name):\n    {line}")


def test_rules_are_of_exercises_that_there_are(lessons):
    assert set(RULES) <= {name for lesson in lessons for name in lesson.names}


def test_an_answer_is_flagged_and_graded_all_the_same(work):
    submission = work("03_attention").answer(scaled_dot_product_attention="import gc\n" + BODY + "gc, query").read()
    assert submission.flags == ("possible-bypass",)
    assert "scaled_dot_product_attention uses `gc`, in the line `return (gc, query)`" in submission.reason
    assert submission.exercises[0].problem is None


def test_a_long_chain_of_names_is_followed_at_once():
    chain = "".join(f"a{place} = a{place + 1}\n" for place in range(5000))
    began = time.process_time()
    source = f"def layer_norm(x): return a0(x)\n{chain}a5000 = F.layer_norm"
    assert find_suspect("layer_norm", "layer_norm", HEAD, source) == "torch.nn.functional.layer_norm"
    assert time.process_time() - began < 60  # quadratic, it took minutes


@pytest.mark.parametrize("depth", [100, 400, 900])
def test_a_deep_tree_is_read_or_named(depth):
    deep = f"def layer_norm(x): return near(x){' + 1' * depth}"
    assert find_suspect("layer_norm", "layer_norm", HEAD, "def near(x): return F.layer_norm(x, (3,))", deep)


def test_a_bug_hunt_that_calls_ones_own_answer_is_seen():
    own = "def patchify(images, patch_size):\n    return images"
    hands_on = "def fix_patchify(images, patch_size):\n    return patchify(images, patch_size)"
    compares = "assert fix_patchify(images, 2).equal(patchify(images, 2))"
    assert find_suspect("fix_patchify", "fix_patchify", own, hands_on) == "patchify"
    by_itself = hands_on.replace("return patchify", "return len")
    assert find_suspect("fix_patchify", "fix_patchify", own, by_itself, compares) is None


def test_a_test_of_attention_that_compares_with_ones_own_is_seen():
    own = HEAD + BODY + "torch.softmax(query @ key.mT, -1) @ value"
    compares = "def is_attention(attend):\n    return attend(1, 2, 3) == scaled_dot_product_attention(1, 2, 3)"
    names_it_so = (
        "def is_attention(scaled_dot_product_attention):\n    return scaled_dot_product_attention(1, 2, 3) == 4"
    )
    used = "print(is_attention(scaled_dot_product_attention))"
    assert find_suspect("is_attention", "is_attention", own, compares) == "scaled_dot_product_attention"
    assert find_suspect("is_attention", "is_attention", own, names_it_so, used) is None


def test_a_test_of_rotations_that_compares_with_ones_own_is_seen():
    own = "def rotary_2d(query, key, grid_size):\n    return query, key"
    compares = "def is_rotary(rotate):\n    return rotate(1, 2, 3) == rotary_2d(1, 2, 3)"
    assert find_suspect("is_rotary", "is_rotary", own, compares) == "rotary_2d"
    assert (
        find_suspect("is_rotary", "is_rotary", own, compares.replace("== rotary_2d", "== len"), "is_rotary(rotary_2d)")
        is None
    )


@pytest.mark.parametrize(
    "lines",
    [
        "object.__setattr__(self, 'size', size)\nself.__setattr__('width', size)",
        "self.__dict__.update(size=size)\nself.__dict__['depth'] = 2",
        "self.act = getattr(F, name)\nself.layer = getattr(nn, name.title())()",
        "fan, _ = nn.init._calculate_fan_in_and_fan_out(self.weight)",
        "self.is_a_convolution = isinstance(size, nn.modules.conv._ConvNd)",
        "import calendar, gzip, zoneinfo, natsort, polars, omegaconf\nself.month = calendar.month_name[1]",
    ],
)
def test_what_an_answer_may_do_to_itself_is_not(lines):
    body = lines.replace("\n", "\n        ")
    source = f"class Layer(nn.Module):\n    def __init__(self, size, name):\n        super().__init__()\n        {body}"
    assert find_suspect("Mlp", "Layer", HEAD, source) is None
