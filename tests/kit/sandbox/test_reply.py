"""Replies that a student's code has tampered with: read as what they are, or refused, and never an error of ours."""

import re

import pytest
import torch
from torch import nn

from exercise_kit.engine.compare import expect_tensor
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from exercise_kit.sandbox.limits import WorkerLost
from exercise_kit.sandbox.remote_backend import RemoteStudent
from exercise_kit.sandbox.reply import WorkerStopped, restore_value
from exercise_kit.worker.module_values import NamedParameters
from exercise_kit.worker.values import Other

INPUT = torch.arange(6.0).reshape(2, 3)
HONEST = {"result": INPUT, "inputs": [INPUT, None], "same": None, "shares": False}


class ScriptedWorker:
    """A worker that says to every request what it is told to."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.requests = []

    def request(self, kind, **fields):
        self.requests.append((kind, fields))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


def make_student(*replies):
    return RemoteStudent(ScriptedWorker(*replies), ["patchify"])


def make_module(*replies):
    return make_student({"module": 3}, *replies).build(4)


NAN = torch.tensor([float("nan"), 1.0])
AFTERWARDS = [
    (INPUT, INPUT.clone(), False),
    (NAN, NAN.clone(), False),
    (NAN, torch.tensor([1.0, float("nan")]), True),
    (INPUT, INPUT + 1e-6, True),
    (INPUT, INPUT.reshape(3, 2), True),
    (INPUT, INPUT.double(), True),
    (INPUT, None, True),
    (INPUT, "the same as before", True),
    (INPUT, Other("Tensor", "a tensor of layout sparse_coo"), True),
    (torch.arange(3), torch.arange(3), False),
    (torch.empty(0, 3), torch.empty(0, 3), False),
]


@pytest.mark.parametrize(("given", "after", "changed"), AFTERWARDS)
def test_the_judge_sees_for_itself_what_has_changed(given, after, changed):
    mine = make_student(HONEST | {"inputs": [after, None], "changed": []})
    mine(given, 2)
    assert bool(mine.changed_inputs) == changed


@pytest.mark.parametrize(
    "lie",
    [
        {"result": INPUT},
        HONEST | {"inputs": []},
        HONEST | {"inputs": "no"},
        HONEST | {"same": 2},
        HONEST | {"same": "x"},
        HONEST | {"shares": "yes"},
        {"raised": 3},
        {},
    ],
)
def test_a_reply_that_makes_no_sense_stops_the_asking(lie):
    with pytest.raises(WorkerStopped) as caught:
        make_student(lie)(INPUT, 2)
    assert caught.value.kind == "protocol"
    assert caught.value.seen.startswith("patchify gave a reply that makes no sense")


@pytest.mark.parametrize(
    ("use", "lie"),
    [
        (lambda it: it.load({"weight": INPUT}), {"parameters": [], "lazy": [], "buffers": {}}),
        (lambda it: it.load({"weight": INPUT}), {"parameters": {"weight": 3}, "lazy": [], "buffers": {}}),
        (lambda it: it.load({"weight": INPUT}), {"parameters": {3: [3]}, "lazy": [], "buffers": {}}),
        (lambda it: it.parameter_shapes(), {"parameters": {}, "lazy": None, "buffers": {}}),
        (lambda it: it.tensors(), {"tensors": {"weight": "none"}}),
        (lambda it: it.gradients(INPUT), {"gradients": {"weight": 3}}),
        (lambda it: it.gradients(INPUT), {}),
        (lambda it: it.parts(("norm",), INPUT), {"parts": [INPUT]}),
        (lambda it: it.parts(("norm",), INPUT), {"parts": {3: INPUT}}),
        (lambda it: it.parts(("norm",), INPUT), {}),
    ],
)
def test_so_does_one_about_a_module(use, lie):
    with pytest.raises(WorkerStopped, match="no sense"):
        use(make_module(lie))


def test_of_what_the_parts_are_given_only_tensors_count():
    said = {"norm:in": INPUT, "norm:out": "x", "another": INPUT, "odd": Other("Tensor", "a nested tensor")}
    assert list(make_module({"parts": said}).parts(("norm",), INPUT)) == ["norm:in", "another"]
    assert make_module({"raised": {}}).parts(("norm",), INPUT) == {}


def test_gradients_are_as_many_as_the_inputs():
    assert make_student(HONEST | {"gradients": [INPUT, None]}).input_gradients(INPUT, 2)[1] is None
    for lie in ([INPUT], [INPUT, "x"], None):
        with pytest.raises(WorkerStopped):
            make_student(HONEST | {"gradients": lie}).input_gradients(INPUT, 2)


def test_shapes_may_be_any_nonsense():
    reply = {"parameters": {"weight": ["x", 2.5, -7, True]}, "lazy": [{}], "buffers": {}}
    with pytest.raises(Failure, match="has no shape yet"):
        make_module(reply).load({"weight": INPUT})
    with pytest.raises(Failure, match=r"`weight` \(-1, -1, -7, -1\) for \(2, 3\)"):
        make_module(reply | {"lazy": []}).load({"weight": INPUT})


def test_a_lost_worker_is_reported_with_its_kind():
    lost = WorkerLost("time", "did not answer within 10 seconds")
    with pytest.raises(WorkerStopped) as caught:
        make_student(lost)(INPUT, 2)
    assert (caught.value.kind, caught.value.words) == ("time", "did not answer within 10 seconds")
    assert caught.value.seen == "patchify did not answer within 10 seconds"
    assert "never ends" in caught.value.look
    with pytest.raises(WorkerStopped):
        make_student(lost).catch_error(INPUT, 2)


@pytest.mark.parametrize(
    "raised",
    [
        {},
        {"kinds": [], "words": 3, "line": None, "functions": "x"},
        {"kinds": ["<script>", 7, "x" * 1000], "words": "a\x1b[31m\ud800" * 1000, "line": "`" * 1000, "functions": [3]},
        {"kinds": "ValueError", "words": "no"},
    ],
)
def test_an_exception_may_be_any_nonsense(raised):
    with pytest.raises(Failure) as caught:
        make_student({"raised": raised})(INPUT, 2)
    assert "<script>" not in caught.value.seen
    assert len(caught.value.seen) < 700
    caught.value.seen.encode()


def test_an_exception_is_read():
    raised = {
        "kinds": ["Odd", "ValueError", "Exception"],
        "words": "7 and 3",
        "line": "  raise Odd",
        "functions": ["f"],
    }
    error = make_student({"raised": raised}).catch_error(INPUT, 2)
    assert error is not None
    assert error.is_a("ValueError")
    assert (error.kind, error.words, error.line, error.functions) == ("Odd", "7 and 3", "`raise Odd`", ("f",))


@pytest.mark.parametrize(
    ("kind", "text", "right"),
    [
        ("type", "<class '__main__.Patches'>", type("Patches", (), {})),
        ("type", "no class at all \ud800", type("", (), {})),
        ("function", "<function patchify at 0x7f>", lambda: 0),
        ("Patches", "<__main__.Patches object>", type("Patches", (), {})()),
        ("a\0b", "", object()),
        ("generator", "", (_ for _ in ())),
        ("list", "5184", [3] * 5184),
        ("ndarray", "array([3])", torch.zeros(1).numpy()),
    ],
)
def test_what_cannot_be_sent_is_reported_as_it_would_be_here(kind, text, right):
    if callable(right) and not isinstance(right, type):
        right.__name__ = "patchify"
    near, far = (
        Student({"patchify": lambda: right}),
        make_student({**HONEST, "inputs": [], "result": Other(kind, text)}),
    )
    near(), far()
    assert near.record == far.record


def test_a_tensor_that_cannot_be_sent_is_reported():
    with pytest.raises(Failure) as caught:
        make_student(HONEST | {"result": (3, Other("Tensor", "a nested tensor"))})(INPUT, 2)
    assert caught.value.seen == "patchify gave a nested tensor"
    assert caught.value.expected == "one that has a shape"


LIVE = "$\\href{https://example.org}{Full marks: 2 of 2}$"


@pytest.mark.parametrize(
    "reply",
    [
        {"result": Other("Tensor", LIVE)},
        {"result": Other("Tensor", f"a tensor of layout {LIVE}")},
        {"result": Other(LIVE, LIVE)},
        {"result": Other("function", f"<function {LIVE}>")},
        {"result": {LIVE: INPUT}},
        {"result": LIVE},
        {"raised": {"kinds": [LIVE], "words": LIVE, "line": LIVE, "functions": [LIVE]}},
    ],
)
def test_no_word_of_a_reply_stands_outside_quotation(reply):
    """A page would make a link of it, or show it in the judge's voice."""
    with pytest.raises(Failure) as caught:
        expect_tensor(make_student(HONEST | reply)(INPUT, 2), (2, 3), "the result")
    told = f"{caught.value.seen} {caught.value.expected} {caught.value.look}"
    assert "href" not in re.sub("`[^`]*`", "", told)
    assert "Full marks" not in re.sub("`[^`]*`", "", told)


def test_names_of_parameters_hold_letters_and_digits_alone():
    built = make_module({"parameters": {"blocks.0.weight": [2], "$a b`": [3]}, "lazy": [], "buffers": {}})
    assert built.parameter_shapes() == {"blocks.0.weight": (2,), "?a?b?": (3,)}


def test_a_restored_model_has_its_class_name():
    model = restore_value(NamedParameters({"layer.weight": INPUT}, "Projection"))
    assert type(model).__name__ == "Projection"
    assert not type(model).__module__.startswith("torch.")
    assert torch.equal(dict(model.named_parameters())["layer.weight"], INPUT)
    assert type(restore_value(NamedParameters({}, "Sequential"))).__module__ == "torch.nn"
    assert type(restore_value(NamedParameters({}, "<b>"))).__name__ == "Module"


def test_a_model_that_comes_back_is_the_one_that_was_given():
    after = NamedParameters({"weight": INPUT})
    mine = make_student(HONEST | {"result": NamedParameters({}), "inputs": [after, {"weight": INPUT}], "same": 0})
    seen = mine.see(nn.Linear(3, 2), {"weight": INPUT})
    assert seen.result is seen.inputs[0] is after
    assert list(seen.inputs[1]) == ["weight"]
    mine = make_student(HONEST | {"same": 0})
    seen = mine.see(torch.zeros(2, 3), 3)
    assert seen.result is seen.inputs[0]
    assert torch.equal(seen.result, INPUT)


def test_a_seed_that_a_check_sets_is_the_worker_s():
    worker = ScriptedWorker(*[HONEST] * 4)
    mine = RemoteStudent(worker, ["patchify"])
    for _ in range(2):
        torch.manual_seed(7)
        mine(INPUT, 2), mine(INPUT, 2)
    assert [fields["seed"] for _, fields in worker.requests] == [7, None, 7, None]


def test_gradients_start_from_what_a_check_made_of_the_output():
    output = INPUT.clone().requires_grad_()
    worker = ScriptedWorker(
        {"module": 0}, HONEST | {"inputs": [None], "result": (output, INPUT)}, *[{"gradients": {}}] * 2
    )
    built = RemoteStudent(worker, ["patchify"]).build()
    result = built(INPUT)
    built.gradients(result[0]), built.gradients(2 * result[0])
    first, second = (fields["cotangents"] for _, fields in worker.requests[2:])
    assert torch.equal(2 * first[0], second[0])
    assert len(first) == 1
    with pytest.raises(ValueError, match="last output only"):
        built.gradients(INPUT.clone().requires_grad_() * 2)
