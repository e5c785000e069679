"""Ways round a rule, read off the code: what is refused, and what only looks like it."""

import ast
import json
import time
from pathlib import Path

import pytest

from tests.course import variants
from tests.e2e.attacks.doors import DOORS, HONEST
from tests.unit.grading.sandbox.test_remote import IMPORTS, SOURCES
from vit_course.grading.submissions.forbidden import FORBIDDEN, forbidden_call
from vit_course.grading.submissions.submission import CellSource

VARIANTS = Path(variants.__file__).parent
SOLUTIONS = Path(__file__).parents[4] / "solutions"
HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"


def told(exercise, name, *sources):
    return forbidden_call(exercise, (name,), [CellSource(index, source) for index, source in enumerate(sources)])


@pytest.mark.parametrize("door", DOORS, ids=lambda each: each.name)
def test_a_door_is_seen_in_the_code(door):
    assert told(door.exercise, door.exercise, door.first, door.answer)


@pytest.mark.parametrize("door", HONEST, ids=lambda each: each.name)
def test_the_same_words_in_a_right_notebook_are_not(door):
    assert told(door.exercise, door.exercise, door.first, door.answer) is None


@pytest.mark.parametrize("exercise", FORBIDDEN)
def test_no_right_variant_of_anything_goes_round(exercise):
    for path in sorted(VARIANTS.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        for each in ast.parse(source).body:
            if isinstance(each, ast.FunctionDef | ast.ClassDef):
                assert "way round" not in (told(exercise, each.name, source) or ""), each.name


@pytest.mark.parametrize("exercise", FORBIDDEN)
def test_no_answer_as_students_write_them_goes_round(exercise):
    for name, answers in SOURCES.items():
        for label, source in answers.items():
            if label != "it ends":  # by sys.exit
                assert told(exercise, name, IMPORTS + source) is None, label


@pytest.mark.parametrize("path", sorted(SOLUTIONS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_no_model_answer_goes_round(path):
    cells = json.loads(path.read_bytes())["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for exercise in FORBIDDEN:
        assert told(exercise, exercise, *sources) is None


@pytest.mark.parametrize(
    "body",
    [
        "for field in dataclasses.fields(config): setattr(self, field.name, getattr(config, field.name))",
        "self.width = getattr(config, 'embed_dim', None) or getattr(self, kind + '_dim')",
        "for name in ('height', 'width'): assert getattr(config, name) % 2 == 0",
        "self.__dict__.update(vars(self)); print(locals())",
        "super().__init__(); self.ops = nn.ModuleList(); self.ops.append(nn.GELU()); print(self.__class__.__name__)",
        "torch._assert(config, 'sizes'); self.trace = torch.trace(config); B, N, F = config.shape; print(B, F)",
        "act = F; self.act = act.gelu; self.other = getattr(F, 'gelu') if hasattr(F, 'gelu') else nn.GELU",
    ],
)
def test_what_a_right_answer_may_say(body):
    source = (
        f"{HEAD}import dataclasses\nclass EncoderBlock(nn.Module):\n    def __init__(self, config, kind):\n        "
    )
    assert told("EncoderBlock", "EncoderBlock", source + body) is None
    assert told("VisionTransformer", "EncoderBlock", source + body) is None


def test_torchs_own_is_imported_to_compare_with_and_a_function_of_that_name_is_the_students():
    first = f"{HEAD}from torch.nn.functional import scaled_dot_product_attention, softmax\n"
    own = "def scaled_dot_product_attention(q, k, v): return softmax(q @ k.mT, -1) @ v\n"
    heads = (
        "class MultiHeadSelfAttention:\n    def forward(self, x):\n        return scaled_dot_product_attention(x, x)"
    )
    assert told("MultiHeadSelfAttention", "MultiHeadSelfAttention", first, own, heads) is None
    assert told("MultiHeadSelfAttention", "MultiHeadSelfAttention", own, first, heads)


def test_a_long_chain_of_names_is_followed_at_once():
    chain = "".join(f"a{place} = a{place + 1}\n" for place in range(5000))
    began = time.process_time()
    why = told("layer_norm", "layer_norm", HEAD, f"def layer_norm(x): return a0(x)\n{chain}a5000 = F.layer_norm")
    assert why
    assert "F.layer_norm" not in why
    assert time.process_time() - began < 60  # quadratic, it took minutes


@pytest.mark.parametrize("depth", [100, 400, 900])
def test_a_deep_tree_is_read_or_refused(depth):
    deep = f"def layer_norm(x): return near(x){' + 1' * depth}"
    assert told("layer_norm", "layer_norm", HEAD, "def near(x): return F.layer_norm(x, (3,))", deep)
