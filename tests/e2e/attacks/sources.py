"""Attacks on whoever reads a submission's source: parsers that crash, recurse, or never come to an end.

The judge reads every cell before any sandbox stands, so each of these has to come back in a moment.
"""

from typing import Any

from tests.e2e.attacks.attack import RIGHT

_LONG = 40_000
_NESTED = "".join(f"{' ' * depth}def deeper(images, patch_size):\n" for depth in range(90)) + " " * 90 + "pass\n"


def _write_right_answer_with_dead_line(line: str) -> dict[str, Any]:
    """The right answer, with a line in it that never runs."""
    head, _, tail = RIGHT.partition("\n")
    return {"before": [], "answer": f"{head}\n    if False:\n        {line}\n{tail}"}


# in the form of the tables beside this file, which could not hold them
TABLE: dict[str, dict[str, Any]] = {
    "usual": {"before": ["right"], "honest": 1.0},
    "question without end": {
        "aim": "a cell of magics ends in a name of many letters and a question mark, which costs a regular expression "
        "years",
        "first": f"%time 1\n{'a' * _LONG} ?\n",
    },
    "stars without end": {
        "aim": "a cell of magics holds a name of stars, an open bracket and a question mark",
        "first": f"%time 1\n{'a*' * (_LONG // 2)}(?\n",
    },
    "five hundred magics": {
        "aim": "a cell has more magics than IPython transforms before it gives up",
        "first": "%time 1\n" * 501,
    },
    "deep attribute": {
        "aim": "a name has 900 attributes in a row",
        **_write_right_answer_with_dead_line(f"a{'.b' * 900}"),
    },
    "deep call": {
        "aim": "a function's result is called 400 times",
        **_write_right_answer_with_dead_line(f"a{'()' * 400}"),
    },
    "giant number": {
        "aim": "a number in base 16 has more digits than Python writes in base 10",
        **_write_right_answer_with_dead_line(f"a = 0x{'f' * 5000}, {'1, ' * 100}"),
    },
    "tower of functions": {"aim": "functions lie in functions, ninety deep", "answer": _NESTED},
    "tower of functions with a wide floor": {
        "aim": "the innermost of ninety functions is long, so that each of them is long to read",
        "answer": _NESTED.replace("pass", f"a = [{'1, ' * 8000}]"),
    },
    "signs without end": {
        "aim": "an expression of ten thousand signs breaks the parser's stack",
        "first": f"a = {'-' * 10000}1\n",
    },
    "brackets without end": {
        "aim": "ten thousand brackets open and none closes",
        "first": f"a = {'(' * 10000}\n",
    },
    "bytes of nothing": {
        "aim": "a source holds null bytes, half characters, form feeds and marks of byte order",
        "before": ["null", "wrong"],
        "first": "a = '\\ud800'\n\x0c\ufeff\u2028b = 1\x1a\n",
        "honest": 0.0,
    },
    "many small statements": {
        "aim": "a cell has ten thousand statements, so that its syntax tree is large",
        "first": "a=0;" * 10_000,
    },
    "chain of names": {
        "aim": "ten thousand statements each use the name that the next one binds, all the way from the answer",
        "lesson": "03_attention",
        "exercise": "scaled_dot_product_attention",
        "before": [],
        "answer": "import torch\ndef scaled_dot_product_attention(query, key, value):\n    return chain0\n"
        + "".join(f"chain{number} = chain{number + 1}\n" for number in reversed(range(2000))),
        "honest": 0.0,
    },
    "shared": {"null": "patchify = None  # \0"},
}
