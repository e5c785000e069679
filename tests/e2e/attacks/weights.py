"""Attacks by weight: replies that are small on the wire and large, deep or slow for the judge who unpacks them."""

from tests.e2e.attacks.attack import WRONG, Attack

# the worker's own wire, found in the frames above: its replies have the right number and the right form
FORGE = """
import sys, torch
def serving():
    frame = sys._getframe()
    while frame is not None:
        found = frame.f_locals.get("self")
        if type(found).__name__ == "RequestServer":
            return found
        frame = frame.f_back
def replies(result, tensors=()):
    fields = [["result", result], ["changed", []], ["inputs", [None, None]], ["same", None], ["shares", False]]
    server = serving()
    server._wire.send({"number": server._number, "reply": {"dict": fields}}, list(tensors))
"""


def _replying(code: str) -> str:
    return f"{FORGE}\ndef patchify(images, patch_size):\n    {code}\n"


def _cell_replying(outputs: str) -> str:
    """A cell after which every other cell is said to have shown these outputs."""
    return f"""{FORGE}
picture = torch.zeros(1 << 19, dtype=torch.uint8)
picture[:8] = torch.tensor(list(b"\\x89PNG\\r\\n\\x1a\\n"), dtype=torch.uint8)
serving()._cells.__dict__["run"] = lambda *given: {{"outputs": {outputs}, "seconds": 0.0}}
"""


ATTACKS = [
    Attack(
        "lists that are only told",
        "thousands of lists are announced by their length alone, a million elements each",
        _replying('replies([{"other": "list", "text": str(1 << 20)}] * 200)'),
    ),
    Attack(
        "length without end",
        "a list is announced whose length has five thousand digits",
        _replying('replies({"other": "list", "text": "9" * 5000})'),
    ),
    Attack(
        "model nested without end",
        "the name of one parameter holds a hundred thousand modules, each in the one before",
        _replying('replies({"model": {".".join("a" * 100000): {"tensor": 0}}, "kind": "Deep"}, [torch.zeros(3)])'),
    ),
    Attack(
        "model of a thousand rooms",
        "one tensor is a parameter of fifty thousand modules",
        _replying(
            'replies({"model": {f"a{number}.b": {"tensor": 0} for number in range(50000)}, "kind": "Wide"}, '
            "[torch.zeros(3)])"
        ),
    ),
    Attack(
        "device that nobody has",
        "the answer claims to lie on graphics cards, and on what is no device",
        _replying(
            'replies([{"tensor": 0, "device": name} for name in ("cuda", "cuda:99", "meta", "xla", "", 7)], '
            "[torch.zeros(3)])"
        ),
    ),
    Attack(
        "text without end",
        "an exception, its class, its line and its functions are a megabyte of text in all",
        f"""{FORGE}
def patchify(images, patch_size):
    raised = [["kinds", ["A" * 300000]], ["words", "<b>\\x1b[2J\\u202e" * 30000], ["line", "x" * 300000]]
    raised.append(["functions", ["f" * 1000] * 300])
    server = serving()
    server._wire.send({{"number": server._number, "reply": {{"dict": [["raised", {{"dict": raised}}]]}}}}, [])
""",
    ),
    Attack(
        "largest answers",
        "every call gives as many bytes as one reply may have",
        "import torch\ndef patchify(images, patch_size):\n    return torch.zeros((15 << 20) // 4)\n",
    ),
    Attack(
        "pictures beyond the limit",
        "the worker says that every other cell shows a hundred pictures",
        WRONG,
        first=_cell_replying('[{"output_type": "display_data", "data": {"image/png": picture}}] * 100'),
        flags=("sandbox-stopped",),
    ),
    Attack(
        "outputs of nothing",
        "the worker says that every other cell shows a thousand empty texts, and errors of empty lines",
        WRONG,
        first=_cell_replying(
            '[{"output_type": "stream", "name": "stdout", "text": ""}] * 900 + '
            '[{"output_type": "error", "ename": "", "evalue": "", "traceback": [""] * 900}]'
        ),
        flags=("sandbox-stopped",),
    ),
    Attack(
        "seconds and places that lie",
        "a reply tells of inputs that there are not, and of changes that are no numbers",
        f"""{FORGE}
def patchify(images, patch_size):
    server = serving()
    fields = [["result", {{"tensor": 0}}], ["changed", [0, -1, 1 << 40, "0", None, True]], ["same", -1], ["shares", 1]]
    fields.append(["inputs", [None] * 900])
    server._wire.send({{"number": server._number, "reply": {{"dict": fields}}}}, [images.reshape(-1)])
""",
    ),
]
