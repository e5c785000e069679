"""What pages quote: numbers and tables that the build writes between two marks, and the course's addresses.

    The checks know <!-- count: known mistakes -->900<!-- end --> mistakes.

    <!-- table: hours -->
    ...
    <!-- end of table -->

    <!-- at: site/guides/diagnose.html -->[what is asked](https://...)<!-- end -->

A contribution may change a *count*: an old one is told, and no check fails for it. An old *table* is stale.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

from exercise_kit.authoring.addresses import Addresses
from exercise_kit.authoring.lesson import AuthoringError, Problem
from exercise_kit.authoring.mistake_pages import add_new_pages_to_list
from exercise_kit.files import read_content

_BEGINS = re.compile(r"<!-- (?:count|at): ")
PUBLISHED = Path("docs", "site", "published.txt")
_MARKED = re.compile(r"(<!-- (table|count|at): ([^\n>]+?) -->)(.*?)(<!-- end(?: of table)? -->)", re.DOTALL)


def fill_marks_in_pages(
    root: Path, value_makers: Mapping[str, Callable[[], str]], addresses: Addresses
) -> dict[Path, bytes]:
    """The repository's pages that have marks, filled, and the list of pages that were ever published.

    Args:
        root: the repository's root.
        value_makers: name → what a page quotes under it; only those that a page asks for are computed.
        addresses: of the course.

    Raises:
        AuthoringError: a page asks for a name that nothing has.
    """
    value = cache(lambda name: value_makers[name]())
    files, problems = {}, []
    for path in _list_repository_pages(root):
        text = (root / path).read_text(encoding="utf-8")
        marks = [(mark[2], mark[3]) for mark in _MARKED.finditer(text)]
        unknown = [name for kind, name in marks if kind != "at" and name not in value_makers]
        message = "nothing to quote is called {!r}; there is {}"
        problems += [Problem(path, message.format(name, ", ".join(value_makers))) for name in unknown]
        problems += [
            Problem(path, "this mark begins a line, where Markdown ends a paragraph for it; put a word before it", line)
            for line, words in enumerate(text.splitlines(), 1)
            if _BEGINS.match(words)
        ]
        if marks and not unknown:
            files[path] = _MARKED.sub(lambda mark: _fill_mark(mark, value, addresses), text).encode()
    if problems:
        raise AuthoringError(problems)
    if (published := read_content(root / PUBLISHED)) is not None:
        files[PUBLISHED] = add_new_pages_to_list(published.decode()).encode()
    return files


def differ_only_in_counts(path: Path, old_content: bytes | None, new_content: bytes) -> bool:
    """Say whether two versions of a page differ in what any contribution may change."""
    if old_content is None:
        return False
    return path == PUBLISHED or _remove_quoted_counts(old_content) == _remove_quoted_counts(new_content)


def _remove_quoted_counts(page: bytes) -> str:
    return _MARKED.sub(lambda mark: mark[1] if mark[2] == "count" else mark[0], page.decode(errors="replace"))


def _fill_mark(mark: re.Match[str], value: Callable[[str], str], addresses: Addresses) -> str:
    start, kind, name, before, end = mark.groups()
    if kind == "at":
        where, _, path = name.partition("/")
        address = addresses.make_colab_address(path) if where == "colab" else f"{addresses.site}{path}"
        return f"{start}{before.rpartition('](')[0]}]({address}){end}"
    return f"{start}{value(name)}{end}" if kind == "count" else f"{start}\n{value(name)}\n{end}"


def _list_repository_pages(root: Path) -> Iterator[Path]:
    for path in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("docs/*.ipynb")]):
        yield path.relative_to(root)
