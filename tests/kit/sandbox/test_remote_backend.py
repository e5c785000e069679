"""A student in a worker and the same one here: one record, one verdict, the same words."""

import linecache

import pytest
import torch
from torch import nn

from exercise_kit.engine.records import is_same_record
from exercise_kit.engine.student import Student
from exercise_kit.sandbox.package_view import get_or_build_view
from exercise_kit.sandbox.remote_backend import RemoteStudent
from exercise_kit.submission.submission import CellSource
from tests.answers import write_answer_cell
from tests.our_hidden_checks import hidden_checks
from vit_course.exercises.catalog import EXERCISES

IMPORTS = """
import torch
import torch.nn.functional as F
from torch import nn

"""
# exercise → its known mistakes, and "" for a right answer
FROM_THE_LIBRARY = {
    "patchify": ("", "channels last inside a token", "input changed in place"),
    "normalize_images": ("", "a mean for every column"),
    "conv_from_linear": ("", "stride forgotten", "kernels transposed"),
    "MultiHeadSelfAttention": ("qkv cut head by head",),
    "scaled_dot_product_attention": ("scaling forgotten", "weights out of the graph"),
    "is_attention": ("rows that sum to one and nothing more",),
    "is_layer_norm": ("",),
    "Mlp": ("the tanh form",),
    "count_parameters": ("a float came out", "biases forgotten"),
    "load_torchvision": ("error of torch passed on", "state dict renamed in place"),
}
PATCHIFY = "def patchify(images, patch_size):\n    "
EMBEDDING = """
class PatchEmbedding(nn.Module):
    def __init__(self, in_channels, patch_size, embed_dim):
        super().__init__()
        self.patch_size = patch_size
        """
LINEAR = "nn.Linear(in_channels * patch_size**2, embed_dim)"
# exercise → answers that no library has: results of every kind, errors, classes that are none
OWN = {
    "patchify": {
        "a view that does not fit": f"{PATCHIFY}return images.view(len(images), -1, patch_size, patch_size, 3)",
        "of numpy": f"{PATCHIFY}return images.numpy().reshape(2, -1)",
        "a long list": f"{PATCHIFY}return images.flatten().tolist() * 9",
        "a class": f"{PATCHIFY}return nn.Unfold",
        "a function": f"{PATCHIFY}return images.flatten",
        "a generator": f"{PATCHIFY}yield images",
        "a coroutine": "async def patchify(images, patch_size):\n    return images",
        "an object of its own": f"class Patches:\n    pass\n{PATCHIFY}return Patches()",
        "complex": f"{PATCHIFY}return torch.fft.fft(images)",
        "sparse": f"{PATCHIFY}return images.to_sparse()",
        "half": f"{PATCHIFY}return F.unfold(images, patch_size, stride=patch_size).mT.half()",
        "nothing": f"{PATCHIFY}images.mean()",
        "not written": f"{PATCHIFY}raise NotImplementedError",
        "another error": "class Wrong(ValueError):\n    pass\n"
        + PATCHIFY
        + "raise Wrong(f'12 and 8 and {patch_size}')",
        "no words": f"{PATCHIFY}assert images.shape[1] == 77",
        "two arguments too few": "def patchify():\n    return 3",
        "it ends": f"import sys\n{PATCHIFY}sys.exit('bye')",
        "endless": f"{PATCHIFY}return patchify(images, patch_size)",
    },
    "conv_from_linear": {
        "a Sequential": "def conv_from_linear(linear, channels, patch_size):\n    return nn.Sequential(linear)",
        "the weight": "def conv_from_linear(linear, channels, patch_size):\n    return linear.weight",
    },
    "PatchEmbedding": {
        "wrong name": f"{EMBEDDING}self.linear = {LINEAR}",
        "detached": f"""{EMBEDDING}self.projection = {LINEAR}

    def forward(self, images):
        windows = F.unfold(images, self.patch_size, stride=self.patch_size)
        return self.projection(windows.mT).detach().float() + self.projection.bias
""",
        "lazy": f"{EMBEDDING}self.projection = nn.LazyLinear(embed_dim)",
        "no module": "class PatchEmbedding:\n    def __init__(self, *sizes):\n        self.sizes = sizes",
        "no forward": f"{EMBEDDING}self.projection = {LINEAR}",
        "not written": "class PatchEmbedding(nn.Module):\n    pass",
    },
    "is_attention": {
        "a tensor": """
def is_attention(attend):
    query, key, value = torch.randn(2, 3, 5), torch.randn(2, 4, 5), torch.randn(2, 4, 6)
    return (attend(query, key, value)[1].sum(-1) - 1).abs().max() < 1e-5
""",
    },
    "is_layer_norm": {
        "with gradients": """
def is_layer_norm(norm):
    x = torch.randn(2, 3, 4, 6, requires_grad=True)
    before = x.detach().clone()
    norm(x, torch.ones(6), torch.zeros(6), 0.5)
    return torch.equal(x, before)
""",
    },
    "load_torchvision": {
        "another model": "import copy\ndef load_torchvision(model, state_dict):\n    return copy.deepcopy(model)",
    },
}
SOURCES = {
    (exercise, name or "right"): write_answer_cell(exercise, name)
    for exercise, names in FROM_THE_LIBRARY.items()
    for name in names
} | {(exercise, kind): source for exercise, sources in OWN.items() for kind, source in sources.items()}


@pytest.fixture
def worker(warm_sandbox, request):
    """A worker that has run the source that the test is given."""
    with warm_sandbox.worker(get_or_build_view("05_vit")) as worker:
        assert all(not run.error for run in worker.run([CellSource(0, request.param)]))
        yield worker


def make_local_student(source, names):
    """The student of ``source`` in this process, with its lines where a traceback finds them."""
    linecache.cache["<cell 0>"] = (len(source), None, source.splitlines(keepends=True), "<cell 0>")
    namespace = {"__name__": "__main__"}
    exec(compile(source, "<cell 0>", "exec"), namespace)
    return Student({name: namespace[name] for name in names})


@pytest.mark.parametrize(
    ("exercise", "source", "worker"),
    [(exercise, *[IMPORTS + source] * 2) for (exercise, _), source in SOURCES.items()],
    indirect=["worker"],
    ids=[f"{exercise}-{kind}" for exercise, kind in SOURCES],
)
@pytest.mark.proof
def test_checks_say_the_same_here_and_there(exercise, source, worker):
    """But for a mistake that draws random numbers: here they come after what a check has drawn."""
    names = EXERCISES[exercise].objects
    for check in hidden_checks().exercises()[exercise]:
        near = hidden_checks().evaluate(exercise, check, make_local_student(source, names), b"key")
        far = hidden_checks().evaluate(exercise, check, RemoteStudent(worker, names), b"key")
        assert far.result == near.result, check.name
        assert is_same_record(far.record, near.record), check.name


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
    def observe_student(student):
        gradients = student.input_gradients(torch.ones(2, 3), torch.eye(3).double().float().T, 3)
        net = student.net.build(3, bias=False)
        shapes = net.parameter_shapes()
        net.load({name: torch.full(size, 2.0) for name, size in shapes.items()})
        net.double()
        net.to(torch.device("cpu"))
        net.eval()
        first, second = net(torch.ones(2, 3).double(), twice=True)
        of_net = net.gradients(second * first.detach())
        return (
            *gradients,
            shapes,
            net.tensors(),
            of_net,
            net.list_parameters_without_gradient(net(torch.ones(2, 3).double())),
        )

    def observe_and_read_records(make):
        student = make(["layer"])
        student.net = make(["Net"])
        return observe_student(student), student.record, student.net.record

    near = observe_and_read_records(lambda names: make_local_student(IMPORTS + INPUT_SOURCE, names))
    far = observe_and_read_records(lambda names: RemoteStudent(worker, names))
    assert near[0][3:4] == far[0][3:4] == ({"layers.0.weight": (3, 3), "layers.1.weight": (3, 3)},)
    assert list(near[0][4]) == list(far[0][4])
    assert near[0][6] == far[0][6] == ["layers.1.weight"]
    assert is_same_record(near[1:], far[1:])


@pytest.mark.parametrize("worker", [IMPORTS + INPUT_SOURCE], indirect=True)
def test_what_a_call_leaves_behind_is_the_same_here_and_there(worker):
    model, state = nn.Linear(3, 2), {"weight": torch.zeros(2, 3), "bias": torch.ones(2)}
    for student in (make_local_student(IMPORTS + INPUT_SOURCE, ["load"]), RemoteStudent(worker, ["load"])):
        seen = student.see(model, state)
        assert seen.result is seen.inputs[0]
        assert not seen.result.weight.any()
        assert seen.result.bias.eq(1).all()
        assert list(seen.inputs[1]) == ["bias"]
        assert seen.shares_memory
    assert list(state) == ["weight", "bias"]
