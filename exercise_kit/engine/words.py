"""Values and shapes in words, and a student's own words as a quotation that cannot break a report."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def shape(of: Tensor | Sequence[int]) -> str:
    """A shape as people write it: (2, 10, 48)."""
    sizes = of.shape if is_tensor(of) else of
    return "(" + ", ".join(str(int(size)) for size in sizes) + ("," if len(sizes) == 1 else "") + ")"


def short(name: torch.dtype | torch.layout) -> str:
    """A dtype or a layout without its module: float32."""
    return str(name).removeprefix("torch.")


def quoted(text: object, most: int = 200) -> str:
    """The first line of what a student or a library wrote, in backticks, cut after ``most`` characters.

    A line that ends in a colon is followed by the next: torch's ``load_state_dict`` tells only there what is wrong.
    Characters that no terminal can print become spaces; "" when there is nothing to quote.
    """
    lines = [line.strip() for line in said(text).splitlines() if line.strip()]
    line = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])
    line = "".join(letter if letter.isprintable() else " " for letter in line[: most + 1]).replace("`", "'")
    return "" if not line else f"`{line}`" if len(line) <= most else f"`{line[:most]} …`"


def said(value: object) -> str:
    """``str(value)``, "" where that raises."""
    try:
        return str(value)
    except Exception:
        return ""


def is_tensor(value: object) -> TypeGuard[Tensor]:
    """Whether a value is a tensor, which nothing is before torch has been imported."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def kind_of(value: object) -> str:
    """What a value is, with its article: "a list of 3 elements", "the class Linear", "the float `3.5`"."""
    name = "Tensor" if is_tensor(value) else type(value).__name__
    if value is None:
        return "None"
    if type(value) in (bool, int, float) and said(value):
        return f"the {name} {quoted(value, 60)}"
    if type(value) is str:
        return f"the text {quoted(repr(value), 60)}"
    if inspect.isclass(value):
        return f"the class {value.__name__}"
    if inspect.isroutine(value):
        return f"the function {getattr(value, '__name__', '')}".strip()
    if "torch" in sys.modules and isinstance(value, sys.modules["torch"].nn.Module):
        return f"a module ({name})"
    if isinstance(value, list | tuple):
        return f"a {name} of {len(value)} element{'' if len(value) == 1 else 's'}"
    if name == "ndarray":
        return "a NumPy array"
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def brief(value: object) -> str:
    """An argument of a call: a tensor by its shape, anything else as Python writes it, if that is short."""
    if is_tensor(value):
        return f"a tensor of shape {shape(value)}"
    text = repr(value)
    return text if len(text) <= 60 else kind_of(value)


def listed(names: Sequence[str], most: int = 4) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
