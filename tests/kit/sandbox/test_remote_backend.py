"""A student in a worker and the same one here: one record, one verdict, the same words."""

import linecache
from pathlib import Path

import pytest
import torch
from torch import nn

from exercise_kit.engine.records import same_record
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure, Undecided
from exercise_kit.hidden_checks.checks import HiddenChecks
from exercise_kit.sandbox.limits import Limits
from exercise_kit.sandbox.package_view import provide_view
from exercise_kit.sandbox.remote_backend import RemoteStudent
from exercise_kit.sandbox.reply import WorkerStopped
from exercise_kit.submission.submission import CellSource
from tests.kit.conftest import limited
from vit_course.exercises.catalog import EXERCISES

HIDDEN = Path(__file__).parents[2] / "hidden"

IMPORTS = """
import torch
import torch.nn.functional as F
from torch import nn

"""
# exercise → answers as a student writes them
SOURCES = {
    "patchify": {
        "right": """
def patchify(images, patch_size):
    batch, channels, height, width = images.shape
    if height % patch_size or width % patch_size:
        raise ValueError(f"{height} or {width} is not divisible by {patch_size}")
    x = images.reshape(batch, channels, height // patch_size, patch_size, width // patch_size, patch_size)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(batch, -1, channels * patch_size**2)
""",
        "channels last": """
def patchify(images, patch_size):
    batch, channels, height, width = images.shape
    x = images.reshape(batch, channels, height // patch_size, patch_size, width // patch_size, patch_size)
    return x.permute(0, 2, 4, 3, 5, 1).reshape(batch, -1, channels * patch_size**2)
""",
        "without a permutation": """
def patchify(images, patch_size):
    batch = images.shape[0]
    return images.view(batch, -1, patch_size, patch_size, 3).flatten(2)
""",
        "in place": """
def patchify(images, patch_size):
    images -= images.mean()
    return F.unfold(images, patch_size, stride=patch_size).transpose(1, 2)
""",
        "of numpy": "def patchify(images, patch_size):\n    return images.numpy().reshape(2, -1)",
        "a long list": "def patchify(images, patch_size):\n    return images.flatten().tolist() * 9",
        "a class": "def patchify(images, patch_size):\n    return nn.Unfold",
        "a function": "def patchify(images, patch_size):\n    return images.flatten",
        "a generator": "def patchify(images, patch_size):\n    yield images",
        "a coroutine": "async def patchify(images, patch_size):\n    return images",
        "an object of its own": """
class Patches:
    pass

def patchify(images, patch_size):
    return Patches()
""",
        "complex": "def patchify(images, patch_size):\n    return torch.fft.fft(images)",
        "sparse": "def patchify(images, patch_size):\n    return images.to_sparse()",
        "half": "def patchify(images, size):\n    return F.unfold(images, size, stride=size).mT.half()",
        "nothing": "def patchify(images, patch_size):\n    images.mean()",
        "not written": "def patchify(images, patch_size):\n    raise NotImplementedError",
        "another error": """
class Wrong(ValueError):
    pass

def patchify(images, patch_size):
    raise Wrong(f"12 and 8 and {patch_size}")
""",
        "no words": "def patchify(images, patch_size):\n    assert images.shape[1] == 77",
        "two arguments too few": "def patchify():\n    return 3",
        "it ends": "import sys\ndef patchify(images, patch_size):\n    sys.exit('bye')",
        "endless": "def patchify(images, patch_size):\n    return patchify(images, patch_size)",
    },
    "normalize_images": {
        "right": """
def normalize_images(images, mean, std):
    mean, std = (torch.as_tensor(each, dtype=images.dtype).reshape(-1, 1, 1) for each in (mean, std))
    if len(mean) != images.shape[1]:
        raise ValueError(f"{images.shape[1]} channels and {len(mean)} means")
    return (images - mean) / std
""",
        "last axis": "def normalize_images(images, mean, std):\n    return (images - torch.as_tensor(mean)) / std",
    },
    "conv_from_linear": {
        "right": """
def conv_from_linear(linear, channels, patch_size):
    conv = nn.Conv2d(channels, linear.out_features, patch_size, patch_size, bias=linear.bias is not None)
    with torch.no_grad():
        conv.weight.copy_(linear.weight.view(conv.weight.shape))
        if linear.bias is not None:
            conv.bias.copy_(linear.bias)
    return conv
""",
        "no stride": """
def conv_from_linear(linear, channels, patch_size):
    conv = nn.Conv2d(channels, linear.out_features, patch_size, padding="valid", bias=False)
    nn.init.ones_(conv.weight)
    return conv
""",
        "on its side": """
def conv_from_linear(linear, channels, patch_size):
    conv = nn.Conv2d(channels, linear.out_features, patch_size, patch_size)
    conv.weight.data = linear.weight.data.view(conv.weight.shape).mT
    conv.bias = linear.bias
    return conv
""",
        "a Sequential": "def conv_from_linear(linear, channels, patch_size):\n    return nn.Sequential(linear)",
        "the weight": "def conv_from_linear(linear, channels, patch_size):\n    return linear.weight",
    },
    "PatchEmbedding": {
        "wrong name": """
class PatchEmbedding(nn.Module):
    def __init__(self, in_channels, patch_size, embed_dim):
        super().__init__()
        self.linear = nn.Linear(in_channels * patch_size**2, embed_dim)
""",
        "detached": """
class PatchEmbedding(nn.Module):
    def __init__(self, in_channels, patch_size, embed_dim):
        super().__init__()
        self.patch_size = patch_size
        self.projection = nn.Linear(in_channels * patch_size**2, embed_dim)

    def forward(self, images):
        windows = F.unfold(images, self.patch_size, stride=self.patch_size)
        return self.projection(windows.mT).detach().float() + self.projection.bias
""",
        "lazy": """
class PatchEmbedding(nn.Module):
    def __init__(self, in_channels, patch_size, embed_dim):
        super().__init__()
        self.projection = nn.LazyLinear(embed_dim)
""",
        "no module": "class PatchEmbedding:\n    def __init__(self, *sizes):\n        self.sizes = sizes",
        "no forward": """
class PatchEmbedding(nn.Module):
    def __init__(self, in_channels, patch_size, embed_dim):
        super().__init__()
        self.projection = nn.Linear(in_channels * patch_size**2, embed_dim)
""",
        "not written": "class PatchEmbedding(nn.Module):\n    pass",
    },
    "MultiHeadSelfAttention": {
        "heads interleaved": """
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"{embed_dim} {num_heads}")
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.projection = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, return_weights=False):
        batch, tokens, dim = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, self.num_heads, 3, -1).permute(3, 0, 2, 1, 4)
        weights = (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1)
        output = self.projection((weights @ v).transpose(1, 2).reshape(batch, tokens, dim))
        return (output, weights) if return_weights else output
""",
    },
    "scaled_dot_product_attention": {
        "no scale": """
def scaled_dot_product_attention(query, key, value):
    weights = torch.softmax(query @ key.transpose(-1, -2), dim=-1)
    return weights @ value, weights
""",
        "out of the graph": """
def scaled_dot_product_attention(query, key, value):
    weights = torch.softmax(query @ key.detach().transpose(-1, -2) / key.shape[-1] ** 0.5, dim=-1)
    return weights @ value, weights
""",
    },
    "is_attention": {
        "shapes and sums": """
def is_attention(attend):
    query, key, value = torch.randn(2, 3, 5), torch.randn(2, 4, 5), torch.randn(2, 4, 6)
    output, weights = attend(query, key, value)
    if output.shape != (2, 3, 6) or weights.shape != (2, 3, 4):
        return False
    return torch.allclose(weights.sum(-1), torch.ones(2, 3)) and torch.allclose(weights @ value, output, atol=1e-5)
""",
        "a tensor": """
def is_attention(attend):
    query, key, value = torch.randn(2, 3, 5), torch.randn(2, 4, 5), torch.randn(2, 4, 6)
    return (attend(query, key, value)[1].sum(-1) - 1).abs().max() < 1e-5
""",
    },
    "is_layer_norm": {
        "x looked at": """
def is_layer_norm(norm):
    x, weight, bias = torch.randn(2, 3, 4, 6), torch.randn(6), torch.randn(6)
    before = x.clone()
    return norm(x, weight, bias=bias, eps=0.5).shape == x.shape and torch.equal(x, before)
""",
        "with gradients": """
def is_layer_norm(norm):
    x = torch.randn(2, 3, 4, 6, requires_grad=True)
    before = x.detach().clone()
    norm(x, torch.ones(6), torch.zeros(6), 0.5)
    return torch.equal(x, before)
""",
    },
    "Mlp": {
        "dropout": """
class Mlp(nn.Module):
    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(embed_dim, hidden_dim), nn.Linear(hidden_dim, embed_dim)

    def forward(self, x):
        return F.dropout(self.fc2(F.gelu(self.fc1(x))), 0.5)
""",
        "tanh": """
class Mlp(nn.Module):
    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(embed_dim, hidden_dim), nn.Linear(hidden_dim, embed_dim)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate="tanh"))
""",
    },
    "count_parameters": {
        "a float": "def count_parameters(config):\n    return config.embed_dim * 12.0 * config.depth",
        "too few": "def count_parameters(config):\n    return 12 * config.depth * config.embed_dim**2",
    },
    "load_torchvision": {
        "nearly": """
def load_torchvision(model, state_dict):
    tensors = list(state_dict.values())
    own = model.state_dict()
    if len(tensors) != len(own):
        raise ValueError(f"{len(tensors)} tensors, {len(own)} places")
    with torch.no_grad():
        for (name, parameter), tensor in zip(own.items(), tensors):
            parameter.copy_(tensor.reshape(parameter.shape))
    return model
""",
        "another model": """
import copy
def load_torchvision(model, state_dict):
    return copy.deepcopy(model)
""",
        "renamed in place": """
def load_torchvision(model, state_dict):
    state_dict["norm.weight"] = state_dict.pop("encoder.ln.weight")
    model.load_state_dict(state_dict)
""",
    },
}
CASES = [(exercise, kind) for exercise, sources in SOURCES.items() for kind in sources]
# here, what it draws comes after what a check has drawn; there, it has a generator of its own
RANDOM = "dropout"
# these listen to the student's modules, or change what it was given, and so need it in their own process
LOCAL_ONLY = {"every_parameter_learns", "the_weights_are_copies", "nothing_is_built"}


@pytest.fixture(scope="module")
def sandbox(warm_sandbox):
    return warm_sandbox


@pytest.fixture
def short_timeouts(sandbox):
    limits = Limits(call_seconds=1, reply_bytes=1 << 20)
    with limited(sandbox, limits):
        yield sandbox


@pytest.fixture
def worker(sandbox, request):
    """A worker that has run the source that the test is given."""
    with sandbox.worker(provide_view("05_vit")) as worker:
        assert all(not run.error for run in worker.run([CellSource(0, request.param)]))
        yield worker


def here(source, names):
    """The student of ``source`` in this process, with its lines where a traceback finds them."""
    linecache.cache["<cell 0>"] = (len(source), None, source.splitlines(keepends=True), "<cell 0>")
    namespace = {"__name__": "__main__"}
    exec(compile(source, "<cell 0>", "exec"), namespace)
    return Student({name: namespace[name] for name in names})


def verdict_of(check, student):
    """Return what a check says of a student, and what it has written down."""
    try:
        check.ask(student)
    except Failure as failure:
        return type(failure), failure.seen, failure.expected, failure.look
    except Undecided as reason:
        return (str(reason),)
    return ("pass",)


@pytest.fixture(scope="module")
def hidden():
    return HiddenChecks(HIDDEN)


def each(cases):
    return pytest.mark.parametrize(
        ("exercise", "source", "worker"),
        [(exercise, *[IMPORTS + SOURCES[exercise][kind]] * 2) for exercise, kind in cases],
        indirect=["worker"],
        ids=[f"{exercise}-{kind}" for exercise, kind in cases],
    )


@each(CASES)
@pytest.mark.proof
def test_public_checks_say_the_same_here_and_there(exercise, source, worker):
    names = EXERCISES[exercise].objects
    for check in EXERCISES[exercise].checks:
        if check.name not in LOCAL_ONLY:
            near, far = here(source, names), RemoteStudent(worker, names)
            assert verdict_of(check, far) == verdict_of(check, near), check.name
            assert same_record(far.record, near.record), check.name
            assert far.changed_inputs == near.changed_inputs


@each([(exercise, kind) for exercise, kind in CASES if kind != RANDOM])
@pytest.mark.proof
def test_so_do_hidden_checks(exercise, source, worker, hidden):
    names = EXERCISES[exercise].objects
    for check in hidden.exercises()[exercise]:
        near = hidden.evaluate(exercise, check, here(source, names), b"key")
        far = hidden.evaluate(exercise, check, RemoteStudent(worker, names), b"key")
        assert far.result == near.result, check.name
        assert same_record(far.record, near.record), check.name


@pytest.mark.parametrize(
    ("does", "kind", "seen"),
    [
        ("while True: pass", "time", "patchify did not answer within 1 seconds"),
        ("import os; os._exit(3)", "ended", "patchify ended the process that it ran in, with status 3"),
    ],
)
def test_a_student_that_loses_its_worker_is_reported_so(does, kind, seen, short_timeouts):
    with short_timeouts.worker(provide_view("05_vit")) as worker:
        list(worker.run([CellSource(0, f"{IMPORTS}def patchify(images, patch_size):\n    {does}")]))
        with pytest.raises(WorkerStopped) as caught:
            RemoteStudent(worker, ["patchify"])(torch.zeros(2, 3, 4, 4), 2)
        assert caught.value.kind == kind
        assert caught.value.seen.startswith(seen)
        with pytest.raises(WorkerStopped):
            RemoteStudent(worker, ["patchify"]).error_of(torch.zeros(2, 3, 4, 4), 2)


INPUT_SOURCE = """
def layer(x, weight, power):
    y = (x @ weight) ** power
    return y, x.sum()

def load(model, state):
    with torch.no_grad():
        model.weight.copy_(state.pop("weight"))
    model.bias = nn.Parameter(state["bias"])
    return model

class Net(nn.Module):
    def __init__(self, dim, bias=True):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(dim, dim, bias=bias) for _ in range(2)])
        self.register_buffer("scale", torch.ones(()))

    def forward(self, x, twice=False):
        y = self.layers[0](x) * self.scale
        return (y, self.layers[1](y)) if twice else y
"""


@pytest.mark.parametrize("worker", [IMPORTS + INPUT_SOURCE], indirect=True)
def test_gradients_and_state_are_the_same_here_and_there(worker):
    def observations(student):
        gradients = student.input_gradients(torch.ones(2, 3), torch.eye(3).double().float().T, 3)
        net = student.net.build(3, bias=False)
        shapes = net.parameter_shapes()
        net.load({name: torch.full(size, 2.0) for name, size in shapes.items()})
        net.double()
        net.eval()
        first, second = net(torch.ones(2, 3).double(), twice=True)
        of_net = net.gradients(second * first.detach())
        return *gradients, shapes, net.tensors(), of_net, net.without_gradient(net(torch.ones(2, 3).double()))

    def both(make):
        student = make(["layer"])
        student.net = make(["Net"])
        return observations(student), student.record, student.net.record

    near = both(lambda names: here(IMPORTS + INPUT_SOURCE, names))
    far = both(lambda names: RemoteStudent(worker, names))
    assert near[0][3:4] == far[0][3:4] == ({"layers.0.weight": (3, 3), "layers.1.weight": (3, 3)},)
    assert list(near[0][4]) == list(far[0][4])
    assert near[0][6] == far[0][6] == ["layers.1.weight"]
    assert same_record(near[1:], far[1:])


@pytest.mark.parametrize("worker", [IMPORTS + INPUT_SOURCE], indirect=True)
def test_what_a_call_leaves_behind_is_the_same_here_and_there(worker):
    model, state = nn.Linear(3, 2), {"weight": torch.zeros(2, 3), "bias": torch.ones(2)}
    for student in (here(IMPORTS + INPUT_SOURCE, ["load"]), RemoteStudent(worker, ["load"])):
        seen = student.see(model, state)
        assert seen.result is seen.inputs[0]
        assert not seen.result.weight.any()
        assert seen.result.bias.eq(1).all()
        assert list(seen.inputs[1]) == ["bias"]
        assert seen.shares_memory
    assert list(state) == ["weight", "bias"]
