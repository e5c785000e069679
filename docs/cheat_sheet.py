"""The course on two printed pages: shapes at every stage, the tensor operations, the names; written as one HTML file.

    python docs/cheat_sheet.py

writes ``docs/cheat_sheet.html``. Shapes come from a run of the model, results from running the examples, and what each
exercise is called with from the lessons' own empty cells.
"""

from __future__ import annotations

import ast
import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from html import escape
from pathlib import Path

import torch

from exercise_kit.files import write
from vit_course import VisionTransformer, ViTConfig, record

ROOT = Path(__file__).parents[1]
SHEET = Path(__file__).with_name("cheat_sheet.html")
CONFIG, BATCH = ViTConfig(), 2

# what the lessons use, each with three lines: what goes in, the call, and what to look at
OPERATIONS = {
    "reshape": "x = torch.arange(6)\ny = x.reshape(2, 3)  # never changes the order\nprint(y.tolist())",
    "permute": "x = torch.arange(6).reshape(2, 3)\ny = x.permute(1, 0)  # the axes, in a new order\nprint(y.tolist())",
    "transpose": "x = torch.zeros(2, 5, 3, 4)\ny = x.transpose(1, 2)  # two axes change places\nprint(tuple(y.shape))",
    "flatten": "x = torch.zeros(2, 3, 4, 5)\ny = x.flatten(2)  # joins the axes from 2 on\nprint(tuple(y.shape))",
    "expand": "x = torch.zeros(1, 1, 4)\ny = x.expand(3, -1, -1)  # repeats without a copy\nprint(tuple(y.shape))",
    "cat": "a, b = torch.zeros(2, 1, 4), torch.zeros(2, 6, 4)\ny = torch.cat([a, b], dim=1)\nprint(tuple(y.shape))",
    "stack": "a, b = torch.zeros(3), torch.ones(3)\ny = torch.stack([a, b])  # along a new axis\nprint(tuple(y.shape))",
    "chunk": "x = torch.zeros(2, 5, 12)\nq, k, v = x.chunk(3, dim=-1)\nprint(tuple(q.shape))",
    "@": "q, k = torch.zeros(2, 3, 5, 4), torch.zeros(2, 3, 5, 4)\ny = q @ k.transpose(-2, -1)\nprint(tuple(y.shape))",
    "softmax": "x = torch.tensor([[0.0, 0], [0, 9]])\ny = x.softmax(dim=-1)  # each row sums to 1\nprint(y.sum(-1))",
    "mean": "x = torch.tensor([[1.0, 3], [5, 7]])\ny = x.mean(dim=-1, keepdim=True)\nprint(y.tolist())",
    "broadcasting": "x, m = torch.zeros(2, 3, 4, 4), torch.ones(3)\ny = x - m.reshape(3, 1, 1)\nprint(tuple(y.shape))",
    "argmax": "x = torch.tensor([[0.1, 0.7], [0.6, 0.2]])\ny = x.argmax(dim=1)\nprint(y.tolist())",
    "one_hot": "x = torch.tensor([2, 0])\ny = F.one_hot(x, 3)\nprint(y.tolist())",
}  # fmt: skip
NAMES = {
    "batch": "images at once",
    "channels": "3 for color",
    "height, width": "in pixels",
    "patch_size": "side of a patch, in pixels",
    "num_patches": "patches of an image",
    "tokens": "patches, and the class token",
    "embed_dim": "length of a token",
    "num_heads": "heads of attention",
    "head_dim": "embed_dim / num_heads",
    "hidden_dim": "width of the MLP",
    "depth": "encoder blocks",
    "num_classes": "numbers in the logits",
}
STAGES = {
    "patch_embedding": ("batch, num_patches, embed_dim", "01"),
    "class_token": ("batch, tokens, embed_dim", "02"),
    "embedding": ("batch, tokens, embed_dim", "02"),
    "blocks.0.attention.weights": ("batch, num_heads, tokens, tokens", "03"),
    "blocks.0.attention": ("batch, tokens, embed_dim", "03"),
    "blocks.0.mlp": ("batch, tokens, embed_dim", "04"),
    "blocks.0.output": ("batch, tokens, embed_dim", "04"),
    "norm": ("batch, tokens, embed_dim", "05"),
    "pooled": ("batch, embed_dim", "05"),
    "logits": ("batch, num_classes", "05"),
}
_STYLE = """
@page { size: A4; margin: 11mm }
body { font: 8.4pt/1.35 system-ui, sans-serif; color: #1b2733; background: #fff; max-width: 188mm; margin: auto }
h1 { font-size: 14pt; margin: 0 0 1mm } h2 { font-size: 9.5pt; margin: 3mm 0 1mm; color: #0072B2 }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: 0.3mm 2mm 0.3mm 0; vertical-align: top }
th { font-weight: 600; border-bottom: 0.2mm solid #8a939c } p { margin: 0 0 1mm }
code, pre { font: 7.6pt/1.3 ui-monospace, monospace } pre { margin: 0; white-space: pre-wrap }
.grid { columns: 2; column-gap: 6mm } .card { break-inside: avoid; margin-bottom: 3mm }
.card b { color: #0072B2 } .out { color: #5a6572 } .second { break-before: page }
"""


def make_sheet_html() -> str:
    """The page."""
    parts = [
        "<h1>The Vision Transformer, by hand: on two pages</h1>",
        f"<p>Sizes of <code>ViTConfig()</code>, for {BATCH} images.</p><h2>Shapes at every stage</h2>",
        _write_table(("stage, as <code>record</code> names it", "shape", "here", "lesson"), _iterate_stage_rows()),
        "<h2>Names</h2>",
        f'<div class="grid">{"".join(_write_name_card(*each) for each in NAMES.items())}</div>',
        "<h2>What the core's exercises take, and give</h2>",
        _write_table(("exercise", "what it does"), _iterate_exercises()),
        '<h2 class="second">Operations on tensors, each in three lines</h2>',
        f'<div class="grid">{"".join(_write_operation_card(*each) for each in OPERATIONS.items())}</div>',
    ]
    head = f'<meta charset="utf-8"><title>Vision Transformer: cheat sheet</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{chr(10).join(parts)}\n</body></html>\n'


def _write_table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    return f"<table><tr>{''.join(f'<th>{each}</th>' for each in head)}</tr><tr>{'</tr><tr>'.join(lines)}</tr></table>"


def _iterate_stage_rows() -> Iterator[tuple[str, ...]]:
    torch.manual_seed(0)
    images = torch.zeros(BATCH, CONFIG.in_channels, *CONFIG.image_size)  # type: ignore[misc]  # a pair once it is made
    yield "images", _format_code("(batch, channels, height, width)"), _format_code(str(tuple(images.shape))), "01"
    with torch.no_grad():
        found = record(VisionTransformer(CONFIG).eval(), images)
    for name, (shape, lesson) in STAGES.items():
        yield _format_code(name), _format_code(f"({shape})"), _format_code(str(tuple(found[name].shape))), lesson


def _write_name_card(name: str, words: str) -> str:
    value = getattr(CONFIG, name, None)
    here = f" ({value})" if isinstance(value, int) else ""
    return f'<div class="card"><b>{_format_code(name)}</b> {escape(words)}{here}</div>'


def _iterate_exercises() -> Iterator[tuple[str, str]]:
    """List what may not be skipped, by the first line of its docstring in the lesson's empty cell."""
    home = ROOT / "vit_course" / "exercises"
    outline, stubs = (json.loads((home / name).read_text("utf-8")) for name in ("outline.json", "stubs.json"))
    for facts in outline.values():
        for name, task in facts["tasks"].items():
            if facts["core"] and not task["skip"] and name in stubs:
                for node in ast.parse(stubs[name]).body:
                    if isinstance(node, ast.FunctionDef | ast.ClassDef):
                        yield (
                            _format_code(_format_signature(node)),
                            escape((ast.get_docstring(node) or "").partition("\n")[0]),
                        )


def _format_signature(node: ast.FunctionDef | ast.ClassDef) -> str:
    """As `patchify(images, patch_size)`; of a class with what it is built with."""
    inside = [node, *(each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__")]
    function = next((each for each in inside if isinstance(each, ast.FunctionDef)), None)
    names = [each.arg for each in function.args.args if each.arg != "self"] if function else []
    return f"{node.name}({', '.join(names)})"


def _write_operation_card(name: str, example: str) -> str:
    shown = io.StringIO()
    with redirect_stdout(shown):
        exec(example, {"torch": torch, "F": torch.nn.functional})
    lines = f"<pre>{escape(example)}</pre><pre class=out>{escape(shown.getvalue().strip())}</pre>"
    return f'<div class="card"><b>{escape(name)}</b>{lines}</div>'


def _format_code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


if __name__ == "__main__":
    write(SHEET, make_sheet_html().encode())
