"""What is withheld from a worker cannot be computed there, by whatever road; everything else can."""

from __future__ import annotations

import pytest
import torch

from exercise_kit.submission.submission import CellSource
from vit_course.exercises.forbidden_calls import RULES

CELL = """
import gc, queue, threading, torch
import torch.nn.functional as F
from torch import nn
guards, kept = torch._C, torch._C._VariableFunctions.layer_norm
def in_thread(x):
    got = queue.SimpleQueue()
    def work():
        try: got.put(F.layer_norm(x, (4,)))
        except RuntimeError as error: got.put(error)
    threading.Thread(target=work).start()
    result = got.get()
    if isinstance(result, Exception): raise result
    return result
def guarded(x):
    with guards.DisableTorchFunction(), guards._DisableTorchDispatch(): return next(map(kept, [x], [[4]]))
def composite(x):
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return torch.ops.aten.layer_norm.default._op_dk(key, x, [4])
def redispatched(x):
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    return torch.ops.aten.native_layer_norm.default.redispatch(keys, x, [4], None, None, 1e-5)[0]
def undone(x):
    for each in gc.get_objects():
        if type(each).__name__ == "_DispatchModule": each.reset()
    torch.library.Library("aten", "IMPL")._destroy()
    return guarded(x)
def reference(x):
    import torch._refs
    return torch._refs.native_layer_norm(x, (4,), None, None, 1e-5)[0]
def decomposed(x):
    from torch._decomp import decomposition_table
    return decomposition_table[torch.ops.aten.native_layer_norm.default](x, (4,), None, None, 1e-5)[0]
def on_meta(x): return F.layer_norm(x.to("meta"), (4,))
def of_a_batch(x): return torch.func.vmap(lambda each: F.layer_norm(each, (4,)))(x)
def as_module(x): return nn.LayerNorm(4)(x)
def of_responses(x): return F.local_response_norm(x[None], 3)
def of_channels(x): return nn.CrossMapLRN2d(3)(x[None, ..., None])
def in_a_layer(x): return nn.TransformerEncoderLayer(4, 2).eval()(x[None])
def fused(x): return F.scaled_dot_product_attention(x, x, x)
def of_heads(x): return nn.MultiheadAttention(4, 2)(x, x, x)[0]
def scripted(x): return torch.jit.script(nn.MultiheadAttention(4, 2))(x, x, x)[0]
def flexible(x):
    from torch.nn.attention.flex_attention import flex_attention
    return flex_attention(*[x[None, None]] * 3)
def of_onnx(x):
    import torch.onnx.ops
    return torch.ops.onnx.Attention(*[x[None, None]] * 3)[0]
def allowed(x):
    layers = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)), nn.GELU(), nn.Dropout())
    weights = (layers(x) @ x.mT / 2).softmax(-1)
    (weights @ F.normalize(x - x.mean(-1, keepdim=True), dim=-1)).sum().backward()
    torch.optim.AdamW(layers.parameters()).step()
    assert repr(weights) and torch.linalg.norm(x) > 0 and x.renorm(2, 0, 1.0).norm() > 0
    return torch.jit.script(torch.nn.functional.softmax)(x, -1)
"""
NORMS = """
    in_thread guarded composite redispatched undone reference decomposed on_meta of_a_batch as_module of_responses
    of_channels in_a_layer
"""
ATTENTIONS = "fused of_heads scripted flexible of_onnx in_a_layer"
ROADS = [("layer_norm", name) for name in NORMS.split()]
ROADS += [("scaled_dot_product_attention", name) for name in ATTENTIONS.split()]
ROADS += [("EncoderBlock", name) for name in ("of_heads", "scripted", "in_a_layer")]
X = torch.randn(3, 4)


@pytest.fixture(scope="module")
def call_with_withheld(sandbox):
    """Calls a function of the cell where what an exercise's rule names is withheld, or nothing is."""
    made = {}

    def call_in_worker(exercise, name):
        withheld = RULES[exercise].withheld if exercise else ""
        if withheld not in made:
            for other in made.values():
                other.close()
            made.clear()
            made[withheld] = sandbox.worker(None, withheld=withheld)
            assert not any(run.error for run in made[withheld].run([CellSource(0, CELL)]))
        return made[withheld].request("call", name=name, inputs=(X,))

    yield call_in_worker
    for each in made.values():
        each.close()


@pytest.mark.parametrize("name", [*dict.fromkeys(name for _, name in ROADS), "allowed"])
def test_each_road_leads_there_where_nothing_is_withheld(call_with_withheld, name):
    assert "raised" not in call_with_withheld("", name)


@pytest.mark.parametrize(("exercise", "name"), ROADS)
def test_what_is_withheld_is_refused_by_every_road(call_with_withheld, exercise, name):
    raised = call_with_withheld(exercise, name)["raised"]
    assert name == "scripted" or "which this exercise asks you to do without" in raised["words"], raised


@pytest.mark.parametrize("exercise", ["layer_norm", "scaled_dot_product_attention", "EncoderBlock"])
def test_everything_else_is_there(call_with_withheld, exercise):
    assert "raised" not in call_with_withheld(exercise, "allowed")


@pytest.mark.parametrize("name", ["fused", "of_heads", "flexible"])
def test_attention_is_there_where_norms_are_written(call_with_withheld, name):
    assert "raised" not in call_with_withheld("layer_norm", name)


PYTHON = """
import torch
from torchvision.ops import MLP, stochastic_depth
from torchvision.models.swin_transformer import shifted_window_attention
def patchify(x, size): return x * size
kept = patchify
class EncoderBlock:
    def forward(self, x): return helper(x)
def helper(x): return x + 1
def fix_patchify(x):
    try: kept(x, 2)
    except RuntimeError: pass
    return x
def fix_block(x): return EncoderBlock().forward(x)
def in_windows(x): return shifted_window_attention(x, x, x, x, [1, 1], 1, [0, 0])
def layers(x): return MLP(2, [3])(x)
def dropped(x): return stochastic_depth(x, 0.0, "batch")
def imported(x):
    from torchvision.models.convnext import LayerNorm2d
    return LayerNorm2d(3)(x)
"""
CALLED = {
    "fix_patchify": ("fix_patchify", "own patchify"),
    "fix_block": ("fix_block", "own EncoderBlock.forward"),
    "in_windows": ("EncoderBlock", "torchvision.models.swin_transformer.shifted_window_attention"),
    "layers": ("EncoderBlock", "torchvision.ops.misc.MLP"),
    "imported": ("EncoderBlock", "torchvision.models.convnext.LayerNorm2d"),
    "helper": ("fix_block", ""),
    "dropped": ("EncoderBlock", ""),
}


@pytest.mark.parametrize("name", CALLED)
def test_functions_in_python_refuse_for_one_answer_and_come_back(harness, name):
    exercise, refused = CALLED[name]
    worker = harness.with_cell(PYTHON)
    worker.request("call", name="imported", inputs=(X,))  # so that the module is there
    worker.apply_rule(RULES[exercise])
    raised = "raised" in worker.request("call", name=name, inputs=(X,))
    assert worker.called == ((refused,) if refused else ())
    assert raised == (bool(refused) and name != "fix_patchify")
    worker.apply_rule(RULES["fix_training"])
    before = worker.request("call", name=name, inputs=(X,)).get("raised", {}).get("words", "")
    assert "do without" not in before
    assert worker.called == ()


COUNTED = {
    "a layer": "nn.Linear(3, 4)",
    "a layer on meta": "nn.Linear(3, 4, device='meta')",
    "a tensor": "torch.tensor([1.0])",
    "a fake": "torch._subclasses.FakeTensorMode().__enter__() and nn.Linear(3, 4)",
    "skipped": "nn.utils.skip_init(nn.Linear, 3, 4)",
    "another's": "torch.zeros(3).new_empty(3)",
}


@pytest.mark.parametrize("made", COUNTED.values(), ids=COUNTED)
def test_nothing_is_made_where_arithmetic_is_asked_for(sandbox, made):
    with sandbox.worker(None, withheld=RULES["count_parameters"].withheld) as worker:
        list(worker.run([CellSource(0, f"import torch\nfrom torch import nn\ndef f(): return {made}")]))
        worker.apply_rule(RULES["count_parameters"])
        assert "do without" in worker.request("call", name="f", inputs=())["raised"]["words"]
        assert worker.called


LOOK = """
import gc, inspect, linecache
def look():
    texts = [line for lines in linecache.cache.values() for line in (lines[2] if len(lines) > 2 else ())]
    try: texts.append(inspect.getsource(lent))
    except (OSError, TypeError): pass
    return lent(1), any(str(1728 + 1) in each for each in texts), hasattr(lent, "__source__"), lent.__code__.co_filename
"""


def test_what_the_judge_lends_has_no_text(harness):
    worker = harness.with_cell(LOOK)
    worker.define_without_source("def lent(x):\n    # 1729\n    return x + 1728")
    result, has_text, has_source, file = worker.request("call", name="look", inputs=())["result"]
    assert (result, has_text, has_source) == (1729, False, False)
    assert not file.endswith(".py")
