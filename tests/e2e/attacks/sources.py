"""Attacks on whoever reads a submission's source: parsers that crash, recurse, or never come to an end.

The judge reads every cell before any sandbox stands, so each of these has to come back in a moment.
"""

from tests.e2e.attacks.attack import ALL_OF_PATCHIFY, RIGHT, WRONG, Attack

_LONG = 40_000


def _write_answer_with_dead_line(line: str) -> str:
    """The right answer, with a line in it that never runs."""
    head, _, tail = RIGHT.partition("\n")
    return f"{head}\n    if False:\n        {line}\n{tail}"


_NESTED = "".join(f"{' ' * depth}def deeper(images, patch_size):\n" for depth in range(90)) + " " * 90 + "pass\n"

ATTACKS = [
    Attack(
        "question without end",
        "a cell of magics ends in a name of many letters and a question mark, which costs a regular expression years",
        RIGHT,
        ALL_OF_PATCHIFY,
        first=f"%time 1\n{'a' * _LONG} ?\n",
    ),
    Attack(
        "stars without end",
        "a cell of magics holds a name of stars, an open bracket and a question mark",
        RIGHT,
        ALL_OF_PATCHIFY,
        first=f"%time 1\n{'a*' * (_LONG // 2)}(?\n",
    ),
    Attack(
        "five hundred magics",
        "a cell has more magics than IPython transforms before it gives up",
        RIGHT,
        ALL_OF_PATCHIFY,
        first="%time 1\n" * 501,
    ),
    Attack(
        "deep attribute",
        "a name has 900 attributes in a row",
        _write_answer_with_dead_line(f"a{'.b' * 900}"),
        ALL_OF_PATCHIFY,
    ),
    Attack(
        "deep call",
        "a function's result is called 400 times",
        _write_answer_with_dead_line(f"a{'()' * 400}"),
        ALL_OF_PATCHIFY,
    ),
    Attack(
        "giant number",
        "a number in base 16 has more digits than Python writes in base 10",
        _write_answer_with_dead_line(f"a = 0x{'f' * 5000}, {'1, ' * 100}"),
        ALL_OF_PATCHIFY,
    ),
    Attack("tower of functions", "functions lie in functions, ninety deep", RIGHT + _NESTED, ALL_OF_PATCHIFY),
    Attack(
        "tower of functions with a wide floor",
        "the innermost of ninety functions is long, so that each of them is long to read",
        RIGHT + _NESTED.replace("pass", f"a = [{'1, ' * 8000}]"),
        ALL_OF_PATCHIFY,
    ),
    Attack(
        "signs without end",
        "an expression of ten thousand signs breaks the parser's stack",
        RIGHT,
        ALL_OF_PATCHIFY,
        first=f"a = {'-' * 10000}1\n",
    ),
    Attack(
        "brackets without end",
        "ten thousand brackets open and none closes",
        RIGHT,
        ALL_OF_PATCHIFY,
        first=f"a = {'(' * 10000}\n",
    ),
    Attack(
        "bytes of nothing",
        "a source holds null bytes, half characters, form feeds and marks of byte order",
        "patchify = None  # \0\n" + WRONG,
        first="a = '\\ud800'\n\x0c\ufeff\u2028b = 1\x1a\n",
    ),
    Attack(
        "many small statements",
        "a cell has ten thousand statements, so that its syntax tree is large",
        RIGHT,
        ALL_OF_PATCHIFY,
        first="a=0;" * 10_000,
    ),
    Attack(
        "chain of names",
        "ten thousand statements each use the name that the next one binds, all the way from the answer",
        """
import torch
def scaled_dot_product_attention(query, key, value):
    return chain0
"""
        + "".join(f"chain{number} = chain{number + 1}\n" for number in reversed(range(2000))),
        lesson="03_attention",
        exercise="scaled_dot_product_attention",
    ),
]
