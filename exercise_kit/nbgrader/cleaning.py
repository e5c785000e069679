"""What of a submitted notebook may reach nbgrader's database and pages: the text of its cells, and still pictures.

A submission's metadata can name another schema (for which nbgrader stops the whole batch), other points, a cell that
never existed, or HTML in a tag; its markdown can hold a script that would run on the instructor's page. So every cell
is rebuilt from its text and from what the gradebook knows of it. Cells that a student deleted are put back: nbgrader
0.9 gives up a whole submission when one exercise's cell was deleted together with its check.

A still picture shows a figure with controls, whose cell the judge does not run. It comes as the student handed it in,
so it counts as hostile until it is shown to be a picture: of a PNG only the chunks that hold pixels are kept, each with
a right checksum, and nothing is decompressed.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, MutableMapping, Sequence
from functools import lru_cache
from html import escape
from typing import Any
from zlib import crc32

import bleach
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from nbgrader.api import Gradebook, Notebook, SourceCell
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import compute_checksum

from exercise_kit.conventions import NBGRADER_SCHEMA
from exercise_kit.nbgrader.written_math import disable_math_commands
from exercise_kit.quoting import make_legible

# the place of a cell in the submitted file, for the step that fills in what the cell printed; no finished page has one
PLACE = "vit_course_place"
_CELL_TYPES = ("code", "markdown", "raw")
_PICTURES = ("image/png", "image/jpeg", "image/gif")
_IDENTIFIER = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TAGS = frozenset(f"h{level}" for level in range(1, 7)) | {
    *("a", "abbr", "b", "blockquote", "br", "code", "dd", "del", "details", "div", "dl", "dt", "em", "hr", "i", "img"),
    *("kbd", "li", "ol", "p", "pre", "q", "s", "samp", "small", "span", "strong", "sub", "summary", "sup"),
    *("table", "tbody", "td", "th", "thead", "tr", "u", "ul", "var"),
}
_ATTRIBUTES = {"a": ("href",), "img": ("src", "alt", "width", "height"), "td": ("align",), "th": ("align",)}
_PROTOCOLS = frozenset({"http", "https", "mailto", "data"})  # data: for pictures
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*+")
# a picture from elsewhere would tell its server who reads the page, and when
_OWN_PICTURE = re.compile(r"data:image/(png|jpeg|gif);base64,[A-Za-z0-9+/=\s]*")
# what leads to a place on the instructor's own server is no student's to write
_LINK = re.compile(r"https?://|mailto:|#", re.IGNORECASE)
_MOST_NAMED = 3
_LONGEST = 50_000
# what markdown and HTML parsers take grows with the square of some texts; longer ones are shown as they were typed
_LONGEST_PARSED = 10_000
_ALL_PARSED = 100_000  # a lesson has 20 000
_LONGEST_SHOWN = 8 << 20  # with its pictures
_PICTURE = re.compile(r"data:image/[a-z]{1,9};base64,[A-Za-z0-9+/=]*+")
# it would end a block of HTML, also inside of <pre>
_BLANK_LINE = re.compile(r"\n[ \t]*(?=\n)")


def read_released_metadata(released: Notebook) -> dict[str, dict[str, Any]]:
    """nbgrader's metadata of every cell that was released with a mark, by its grade id, as the gradebook has it."""
    points = {cell.name: cell.max_score for cell in released.grade_cells}
    solutions = {cell.name for cell in released.solution_cells}
    marks = {}
    for source in released.source_cells:
        mark = {
            "schema_version": NBGRADER_SCHEMA,
            "grade_id": source.name,
            "cell_type": source.cell_type,
            "grade": source.name in points,
            "solution": source.name in solutions,
            "locked": source.locked,
            "task": False,
        }
        known = {"points": points.get(source.name), "checksum": source.checksum}
        marks[source.name] = mark | {key: value for key, value in known.items() if value is not None}
    return marks


class CleanCells(NbGraderPreprocessor):
    """The first step of `nbgrader autograde`: every cell keeps its text, one without a mark its still picture.

    Of two cells with the same mark the last keeps it, as of two definitions in Python the last counts.
    """

    def preprocess(self, notebook: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Rebuild a submission's cells in place."""
        where = resources["nbgrader"]
        with Gradebook(where["db_url"]) as gradebook:
            marks = read_released_metadata(gradebook.find_notebook(where["notebook"], where["assignment"]))
        for place in reversed(range(len(notebook.cells))):
            cell = notebook.cells[place]
            grade_id = _read_grade_id(cell)
            mark = marks.get(grade_id) if grade_id else None
            kept = mark is not None and mark["cell_type"] == cell.cell_type
            if kept and grade_id:
                del marks[grade_id]
            notebook.cells[place] = _rebuild_cell(cell, cell.metadata.get(PLACE, place), mark if kept else None)
        # of a submission without cells too, the page of a killed run is known by this
        notebook.metadata = NotebookNode({PLACE: 0})
        make_cell_ids_valid(notebook.cells)
        return notebook, resources


def _read_grade_id(cell: NotebookNode) -> str | None:
    mark = cell.metadata.get("nbgrader")
    found = mark.get("grade_id") if isinstance(mark, Mapping) else None
    return found if isinstance(found, str) else None


def _rebuild_cell(cell: NotebookNode, place: object, mark: Mapping[str, Any] | None) -> NotebookNode:
    kind = cell.cell_type if cell.cell_type in _CELL_TYPES else "raw"
    metadata: dict[str, Any] = {PLACE: place}
    if mark is not None:
        metadata["nbgrader"] = dict(mark)
    rebuilt = {"cell_type": kind, "id": cell.get("id"), "source": make_legible(cell.source), "metadata": metadata}
    if kind == "code":
        rebuilt |= {"execution_count": None, "outputs": [] if mark else _keep_picture_outputs(cell)}
    elif attachments := select_safe_pictures(cell.get("attachments")):
        rebuilt["attachments"] = attachments
    node: NotebookNode = from_dict(rebuilt)
    return node


def _keep_picture_outputs(cell: NotebookNode) -> list[dict[str, Any]]:
    """Return what stays of a code cell's outputs: a picture, as the reader put it there."""
    shown = [output.get("data") for output in cell.get("outputs", ()) if isinstance(output, Mapping)]
    stills = [make_picture_outputs(data.get("image/png")) for data in shown if isinstance(data, Mapping)]
    return stills[0] if stills else []


def select_safe_pictures(attachments: object) -> dict[str, dict[str, str]]:
    """A markdown cell's own pictures, of kinds that hold no script."""
    kept = {}
    for name, bundle in attachments.items() if isinstance(attachments, Mapping) else ():
        kinds = bundle.items() if isinstance(bundle, Mapping) else ()
        known = {kind: data for kind, data in kinds if kind in _PICTURES and isinstance(data, str)}
        found = {kind: data for kind, data in known.items() if _BASE64.fullmatch(data)}
        if found and re.fullmatch(r"[\w.() -]{1,200}", name):
            kept[name] = found
    return kept


def make_cell_ids_valid(cells: Sequence[MutableMapping[str, Any]]) -> None:
    """Give a new id to each cell that has none, one that nbformat refuses, or one that another cell has too."""
    taken: set[str] = set()
    for place, cell in enumerate(cells):
        name = cell.get("id")
        if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name) or name in taken:
            name = f"cell-{place}"
        taken.add(name)
        cell["id"] = name


class TameMarkdown(NbGraderPreprocessor):
    """The last step before grading: what the student wrote in markdown shows on a page, and does nothing there."""

    _left = _ALL_PARSED

    def preprocess(self, notebook: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Tame a notebook in place, and spend no more on one than on a long lesson."""
        self._left = _ALL_PARSED
        tame: tuple[NotebookNode, dict[str, Any]] = super().preprocess(notebook, resources)
        return tame

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], _: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Tame a cell in place; a question as it was released stays as it is: nbgrader knows it by its checksum."""
        mark = cell.metadata.get("nbgrader")
        released = mark is not None and mark.get("checksum") == compute_checksum(cell)
        if cell.cell_type == "raw":
            cell.source = escape(_truncate_answer(cell.source))
        elif cell.cell_type == "markdown" and not released:
            length = _count_parsed_characters(cell.source)
            cell.source = sanitize_markdown(cell.source, cell.get("attachments"), min(_LONGEST_PARSED, self._left))
            self._left -= length
        return cell, resources


def sanitize_markdown(
    markdown: str, attachments: dict[str, dict[str, str]] | None = None, longest_parsed: int = _LONGEST_PARSED
) -> str:
    r"""Markdown as one block of harmless HTML, which markdown gives on as it is.

    Args:
        markdown: what a student wrote.
        attachments: pictures that it may show.
        longest_parsed: from how many characters on, without its pictures, it is shown as it was typed.

    >>> sanitize_markdown("so **that** $a < b$ <script>alert(1)</script> [here](javascript:run)")
    '<div><p>so <strong>that</strong> $a &lt; b$ &lt;script&gt;alert(1)&lt;/script&gt; <a>here</a></p></div>'
    """
    if len(markdown) > _LONGEST_SHOWN or _count_parsed_characters(markdown) > longest_parsed:
        return f"<div><pre>{_escape_blank_lines(escape(_truncate_answer(markdown)))}</pre></div>"
    once = not attachments and len(markdown) <= _LONGEST_PARSED
    return _parsed_once(markdown) if once else _render_markdown(markdown, attachments)


def _render_markdown(markdown: str, attachments: dict[str, dict[str, str]] | None = None) -> str:
    try:
        html = MarkdownWithMath(renderer=IPythonRenderer(escape=False, attachments=attachments)).render(markdown)
    except Exception:  # a picture that is not attached, brackets a thousand deep: it is shown as it was typed
        html = f"<pre>{escape(markdown)}</pre>"
    harmless = bleach.clean(html, tags=_TAGS, attributes=_is_attribute_allowed, protocols=_PROTOCOLS)
    return f"<div>{_escape_blank_lines(harmless.strip())}</div>"


# most text of a notebook is the lesson's, and the same for a whole class
_parsed_once = lru_cache(maxsize=512)(_render_markdown)


def _escape_blank_lines(html: str) -> str:
    return _BLANK_LINE.sub("\n&#10;", disable_math_commands(html))


def _truncate_answer(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} … (cut: the answer has {len(text):,} characters)"


def _count_parsed_characters(markdown: str) -> int:
    return len(_PICTURE.sub("", markdown))


def _is_attribute_allowed(tag: str, attribute: str, value: str) -> bool:
    if attribute not in _ATTRIBUTES.get(tag, ()):
        return False
    if tag == "img" and attribute == "src":
        return _OWN_PICTURE.fullmatch(value) is not None
    return _LINK.match(value) is not None


class RestoreCells(NbGraderPreprocessor):
    """A step of `nbgrader autograde`, to run between `CleanCells` and `OverwriteCells`.

    A missing cell comes back as it was released, after the cell that it followed; where none is left, all come back.
    """

    def preprocess(self, notebook: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Repair a submission's notebook in place."""
        where = resources["nbgrader"]
        with Gradebook(where["db_url"]) as gradebook:
            released = gradebook.find_notebook(where["notebook"], where["assignment"])
            self._restore_missing_cells(notebook, released)
        return notebook, resources

    def _restore_missing_cells(self, notebook: NotebookNode, released: Notebook) -> None:
        marks = read_released_metadata(released)
        place = 0
        missing: list[str] = []
        for source in released.source_cells:
            names = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells]
            if source.name in names:
                place = names.index(source.name) + 1
            else:
                missing.append(source.name)
                notebook.cells.insert(place, _make_released_cell(source, marks[source.name]))
                place += 1
        if missing:
            first = ", ".join([*missing[:_MOST_NAMED], *(["…"] if len(missing) > _MOST_NAMED else [])])
            self.log.info("put back, for the submission lacked them: %d marked cells (%s)", len(missing), first)


def _make_released_cell(source: SourceCell, mark: dict[str, Any]) -> NotebookNode:
    make = new_code_cell if source.cell_type == "code" else new_markdown_cell
    cell: NotebookNode = make(source.source, metadata={"nbgrader": mark})
    return cell


_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_NEEDED = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")
MOST_PIXELS = 4000  # on a side: what a browser decodes without pain


def make_picture_outputs(picture_data: object) -> list[dict[str, Any]]:
    """The outputs of a cell with that picture; none where it is no picture.

    Args:
        picture_data: base64 of a PNG, or anything else.
    """
    picture = clean_png(picture_data)
    return [new_output("display_data", data={"image/png": picture})] if picture else []


def clean_png(text: object) -> str | None:
    """The PNG that a base64 text holds, made anew of what it needs; None where it is none."""
    if not isinstance(text, str):
        return None
    try:
        parts = _select_needed_png_chunks(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return None
    return base64.b64encode(b"".join(parts)).decode()


def _select_needed_png_chunks(picture: bytes) -> list[bytes]:
    """The signature and the chunks that hold pixels; ValueError where it is no PNG, or a large one."""
    if not picture.startswith(_SIGNATURE):
        raise ValueError
    parts, place = [_SIGNATURE], len(_SIGNATURE)
    while not parts[-1][4:].startswith(b"IEND"):
        size = int.from_bytes(picture[place : place + 4])
        chunk = picture[place : place + 12 + size]
        place += len(chunk)
        kind = chunk[4:8]
        if len(chunk) != 12 + size or crc32(chunk[4:-4]) != int.from_bytes(chunk[-4:]):
            raise ValueError
        if (len(parts) == 1) != (kind == b"IHDR"):
            raise ValueError
        if kind == b"IHDR" and max(int.from_bytes(chunk[8:12]), int.from_bytes(chunk[12:16])) > MOST_PIXELS:
            raise ValueError
        if kind in _NEEDED:
            parts.append(chunk)
    return parts
