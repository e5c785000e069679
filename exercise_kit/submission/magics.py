"""IPython's own syntax turned into calls, so that a cell that uses it has a syntax tree.

IPython does the same with patterns that a stranger's cell can keep busy for hours, so here each line is looked at
once. Where the two differ, a cell has no tree, and whoever asked takes it that it may do anything.
"""

from __future__ import annotations

from collections.abc import Iterator

# their bodies run among the notebook's variables, as if the first line were not there
TRANSPARENT = frozenset({"time", "capture", "prun"})
_ESCAPES = ("%", "!", "?")


def holds_magics(source: str) -> bool:
    """Whether any line of a cell may be IPython's own syntax."""
    return any(_as_call(line) is not None for line in source.splitlines())


def as_python(source: str) -> str:
    """A cell with its magics, shell commands and questions as calls on ``get_ipython()``; the rest as it was."""
    source = _without_margin(source)
    first, _, body = source.partition("\n")
    if first.startswith("%%"):
        name, _, line = first[2:].strip().partition(" ")
        if name not in TRANSPARENT:
            return f"get_ipython().run_cell_magic({name!r}, {line!r}, {body!r})"
        return f"get_ipython().run_line_magic({name!r}, {line!r})\n{_calls_in(body)}"
    return _calls_in(source)


def _calls_in(source: str) -> str:
    return "\n".join(_as_call(line) or line for line in _whole_lines(source))


def _without_margin(source: str) -> str:
    """A cell without the indentation of its first line, and without the prompts of code from a Python session."""
    lines = source.lstrip("\n").splitlines()
    first = lines[0] if lines else ""
    margin = first[: len(first) - len(first.lstrip())]
    lines = [line.removeprefix(margin) for line in lines]
    if first.lstrip().startswith(">>>"):
        lines = [line[4:] if line.startswith((">>>", "...")) else line for line in lines]
    return "\n".join(lines)


def _whole_lines(source: str) -> Iterator[str]:
    """The lines; one that is IPython's own goes on where it ends in a backslash."""
    begun: list[str] = []
    for line in source.splitlines():
        if begun or (line.endswith("\\") and _as_call(line) is not None):
            begun.append(line.removesuffix("\\"))
            if not line.endswith("\\"):
                yield " ".join(begun)
                begun = []
        else:
            yield line
    if begun:
        yield " ".join(begun)


def _as_call(line: str) -> str | None:
    """A line as a call, with its indentation and what it is assigned to; None: it is no line of IPython's."""
    bare = line.strip()
    indentation = line[: len(line) - len(line.lstrip())]
    if bare.startswith(_ESCAPES):
        return indentation + _call(bare)
    if bare.endswith("?") and "#" not in bare:
        return f"{indentation}get_ipython().run_line_magic('pinfo', {bare.rstrip('?')!r})"
    target, equals, value = bare.partition("=")
    if equals and target.strip() and value.lstrip().startswith(("!", "%")):
        return f"{indentation}{target}= {_call(value.strip(), kept=True)}"
    return None


def _call(escaped: str, kept: bool = False) -> str:
    if escaped.startswith("!"):
        return f"get_ipython().{'getoutput' if kept else 'system'}({escaped.lstrip('!')!r})"
    if escaped.startswith("?"):
        return f"get_ipython().run_line_magic('pinfo', {escaped.lstrip('?')!r})"
    name, _, rest = escaped.lstrip("%").strip().partition(" ")
    return f"get_ipython().run_line_magic({name!r}, {rest!r})"
