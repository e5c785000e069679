"""Attacks by oracle: what an exercise hands over gives away more than its behavior."""

from tests.e2e.attacks.attack import Attack
from tests.e2e.attacks.weights import FORGE

_NAMES = (
    *("_by_einsum", "_keys_scaled", "_keys_shifted", "_in_portions", "_fused", "_backwards", "_scattered"),
    "_powers_of_two",
)

ATTACKS = [
    Attack(
        "right attention known by its name",
        "the judge's answer to impossible inputs is read for the names of functions, which tell right from wrong",
        f"""{FORGE}
import re
SENT = [("x", 1, 2), (torch.ones(1, 1), torch.ones(1, 1), "x"), (torch.ones(2, 2), torch.ones(2, 2), torch.ones(3, 1))]
def is_attention(attend):
    text = ""
    for inputs in SENT:
        text += repr(serving()._query({{"callback": 0, "inputs": inputs, "options": {{}}, "gradients": False}}))
    return any(name in text for name in {_NAMES!r})
""",
        lesson="03_attention",
        exercise="is_attention",
    ),
    Attack(
        "attention known by how it is handed over",
        "an attend is looked at, not called: its number, its name, its text, its memory, how often it was given",
        """
calls = [0]
def is_attention(attend):
    calls[0] += 1
    text = f"{attend!r} {attend.__name__} {attend.__doc__} {attend.__qualname__} {attend.__closure__} {vars(attend)}"
    for cell in attend.__closure__ or ():
        text += repr(cell.cell_contents)
    return any(word in text for word in ("right", "RIGHT", "einsum", "fused", "scattered"))
""",
        lesson="03_attention",
        exercise="is_attention",
    ),
    Attack(
        "answers by turns",
        "every other attend is called right, for there may be an order in which they come",
        "calls = [0]\ndef is_attention(attend):\n    calls[0] += 1\n    return calls[0] % 2 == 0\n",
        lesson="03_attention",
        exercise="is_attention",
    ),
    Attack(
        "memory of the judge by questions",
        "the judge is called with large inputs again and again, and their gradients are left waiting",
        """
import torch
def is_attention(attend):
    for _ in range(60):
        attend(*(torch.zeros(1, 4000, 1, requires_grad=True) for _ in range(3)))
    return True
""",
        lesson="03_attention",
        exercise="is_attention",
    ),
    Attack(
        "attention used for the other exercise",
        "a right attend is kept, to answer for scaled_dot_product_attention with it",
        """
kept = []
def is_attention(attend):
    kept.append(attend)
    return True
def scaled_dot_product_attention(query, key, value):
    return kept[0](query, key, value)
""",
        lesson="03_attention",
        exercise="scaled_dot_product_attention",
    ),
]
