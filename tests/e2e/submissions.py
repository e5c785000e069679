"""What becomes of a notebook before it is handed in: one kind for each honest and each hopeless way that we met."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

Notebook = dict[str, Any]
LESSON = "01_patchify"
RELEASED = Path(__file__).parents[2] / "notebooks" / f"{LESSON}.ipynb"
NO_METADATA = "no nbgrader metadata"
WIDE = "\N{FULLWIDTH LATIN SMALL LETTER A}"


def read_mark(cell: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = cell["metadata"].get("nbgrader", {})
    return found


def read_released_cell(name: str) -> str:
    """The source of a cell as students get it."""
    return "".join(find_cell(json.loads(RELEASED.read_text("utf-8")), name)["source"])


def find_place_of_cell(notebook: Notebook, name: str) -> int:
    return next(place for place, cell in enumerate(notebook["cells"]) if read_mark(cell).get("grade_id") == name)


def find_cell(notebook: Notebook, name: str) -> dict[str, Any]:
    found: dict[str, Any] = notebook["cells"][find_place_of_cell(notebook, name)]
    return found


def make_code_cell(source: str, **metadata: Any) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": None, "metadata": metadata, "outputs": [], "source": source}


def leave_as_saved(notebook: Notebook) -> None:
    """The notebook as it was saved."""


def remove_cell_metadata(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["metadata"] = {}


def remove_ids(notebook: Notebook) -> None:
    notebook["nbformat_minor"] = 4
    for cell in notebook["cells"]:
        cell.pop("id", None)


def strip_metadata(notebook: Notebook) -> None:
    remove_cell_metadata(notebook)
    remove_ids(notebook)
    notebook["metadata"] = {}


def renew_ids(notebook: Notebook) -> None:
    remove_cell_metadata(notebook)
    for place, cell in enumerate(notebook["cells"]):
        cell["id"] = f"n{place:07d}"


def give_all_same_id(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["id"] = "one-and-the-same"


def save_as_colab(notebook: Notebook) -> None:
    remove_ids(notebook)
    notebook["nbformat_minor"] = 0
    notebook["metadata"] = {"colab": {"provenance": [], "toc_visible": True}, "accelerator": "GPU"}
    for number, cell in enumerate(notebook["cells"]):
        cell["metadata"] |= {"id": f"aBcD{number}", "colab": {"base_uri": "https://localhost:8080/"}}
        cell["source"] = cell["source"].splitlines(keepends=True)


def save_as_vs_code(notebook: Notebook) -> None:
    notebook["nbformat_minor"] = 2
    notebook["metadata"] = {"language_info": {"name": "python"}, "orig_nbformat": 4}
    for cell in notebook["cells"]:
        cell.pop("id", None)
        if cell["cell_type"] == "code":
            cell["metadata"]["vscode"] = {"languageId": "python"}
        cell["source"] = cell["source"].splitlines(keepends=True)


def set_r_kernel(notebook: Notebook) -> None:
    notebook["metadata"] = {"kernelspec": {"name": "ir", "display_name": "R", "language": "R"}}


def convert_to_format_3(notebook: Notebook) -> None:
    cells = [{"cell_type": each["cell_type"], "metadata": each["metadata"]} for each in notebook["cells"]]
    for old, new in zip(cells, notebook["cells"], strict=True):
        if new["cell_type"] == "code":
            old |= {"input": new["source"], "language": "python", "outputs": [], "collapsed": False}
        else:
            old["source"] = new["source"]
    notebook.clear()
    notebook |= {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""}}
    notebook["worksheets"] = [{"cells": cells, "metadata": {}}]


def join_all_in_one_cell(notebook: Notebook) -> None:
    answers = [find_cell(notebook, name)["source"] for name in ("patchify", "unpatchify")]
    notebook["cells"] = [make_code_cell("\n\n".join(["import torch\nfrom torch import nn", *answers]))]


def merge_answers(notebook: Notebook) -> None:
    """Both answers in the first one's cell."""
    first, second = find_cell(notebook, "patchify"), find_cell(notebook, "unpatchify")
    first["source"] += "\n\n\n" + second["source"]
    second["source"] = ""


def split_answers(notebook: Notebook) -> None:
    """Each answer stands in a cell of its own below the exercise's."""
    for name in ("patchify", "unpatchify"):
        place = find_place_of_cell(notebook, name)
        notebook["cells"].insert(place + 1, make_code_cell(notebook["cells"][place]["source"]))
        notebook["cells"][place]["source"] = "# I try it below\nside = 3"


def reverse_answers(notebook: Notebook) -> None:
    """The second answer and its check before the first, the imports last."""
    notebook["cells"].sort(key=lambda cell: "unpatchify" not in read_mark(cell).get("grade_id", ""))


def add_wrong_copy_of_answer(notebook: Notebook) -> None:
    place = find_place_of_cell(notebook, "unpatchify")
    first = copy.deepcopy(notebook["cells"][place])
    first["source"] = "def unpatchify(patches, patch_size, image_size):\n    return patches"
    notebook["cells"].append(copy.deepcopy(find_cell(notebook, "check-unpatchify")))
    notebook["cells"].insert(place, first)


def add_equal_copy_of_answer(notebook: Notebook) -> None:
    notebook["cells"] += copy.deepcopy([find_cell(notebook, "unpatchify"), find_cell(notebook, "check-unpatchify")])


def remove_check_cells(notebook: Notebook) -> None:
    notebook["cells"] = [
        each for each in notebook["cells"] if not read_mark(each).get("grade_id", "").startswith("check-")
    ]


def edit_check_cell(notebook: Notebook) -> None:
    find_cell(notebook, "check-patchify")["source"] = "8.0"


def remove_answer(notebook: Notebook) -> None:
    lost = ("unpatchify", "check-unpatchify")
    notebook["cells"] = [each for each in notebook["cells"] if read_mark(each).get("grade_id") not in lost]


def empty_answer_cell(notebook: Notebook) -> None:
    find_cell(notebook, "unpatchify")["source"] = "# to do\n"


def turn_answer_into_markdown(notebook: Notebook) -> None:
    cell = find_cell(notebook, "unpatchify")
    cell["cell_type"] = "markdown"
    del cell["outputs"], cell["execution_count"]


def break_syntax(notebook: Notebook) -> None:
    cell = find_cell(notebook, "unpatchify")
    cell["source"] = cell["source"].replace("):", ")", 1)


def break_and_strip_metadata(notebook: Notebook) -> None:
    break_syntax(notebook)
    strip_metadata(notebook)


def join_in_one_cell_and_break_syntax(notebook: Notebook) -> None:
    join_all_in_one_cell(notebook)
    notebook["cells"][0]["source"] += "\n)"


def add_broken_answer_below(notebook: Notebook) -> None:
    """The exercise's own cell is as it was released, and the broken answer stands below it."""
    place = find_place_of_cell(notebook, "unpatchify")
    break_syntax(notebook)
    notebook["cells"].insert(place + 1, make_code_cell(notebook["cells"][place]["source"]))
    notebook["cells"][place]["source"] = read_released_cell("unpatchify")


def add_magics(notebook: Notebook) -> None:
    cell = find_cell(notebook, "patchify")
    cell["source"] = "%matplotlib inline\n!pip list\n" + cell["source"] + "\n%timeit -n 1 1 + 1"
    notebook["cells"].insert(0, make_code_cell("%%bash\necho $HOME"))


def add_raising_cells(notebook: Notebook) -> None:
    notebook["cells"].insert(1, make_code_cell("import antigravity_7\n1 / 0"))
    notebook["cells"].append(make_code_cell("raise SystemExit"))


def _make_mark_change(**changes: Any) -> Callable[[Notebook], None]:
    """The same change in the mark of every cell."""

    def change_marks(notebook: Notebook) -> None:
        for cell in notebook["cells"]:
            if read_mark(cell):
                cell["metadata"]["nbgrader"] |= changes

    return change_marks


forge_marks = _make_mark_change(schema_version=99, points=1000, locked=False)
set_older_schema = _make_mark_change(schema_version=1)


def change_checksum(notebook: Notebook) -> None:
    find_cell(notebook, "check-patchify")["metadata"]["nbgrader"]["checksum"] = "0" * 32


def insert_odd_cells(notebook: Notebook) -> None:
    notebook["cells"][:0] = [7, None, {"cell_type": "code"}, {"cell_type": "slide", "source": "x", "metadata": []}]


def add_odd_letters(notebook: Notebook) -> None:
    cell = find_cell(notebook, "patchify")
    cell["source"] += "\n# \ud800 half a letter, \u202e turned, 🙂"


def use_unicode_names(notebook: Notebook) -> None:
    cell = find_cell(notebook, "patchify")
    cell["source"] = cell["source"].replace("grid", f"ширина{WIDE}")


def add_large_pictures(notebook: Notebook) -> None:
    picture = {"image/png": "A" * (75 << 20), "application/vnd.plotly.v1+json": {"data": [{"x": [0.5] * 10_000}]}}
    shown = {"output_type": "display_data", "metadata": {}, "data": picture}
    notebook["cells"][find_place_of_cell(notebook, "patchify") + 3]["outputs"] = [shown]
    notebook["metadata"]["widgets"] = {"state": {str(number): {} for number in range(1000)}}


def use_crlf(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].replace("\n", "\r\n")


def restore_released(notebook: Notebook) -> None:
    for name in ("patchify", "unpatchify"):
        find_cell(notebook, name)["source"] = read_released_cell(name)


def add_huge_metadata(notebook: Notebook) -> None:
    notebook["metadata"]["x"] = [{}] * 400_000


def nest_deeply(notebook: Notebook) -> None:
    notebook["metadata"]["x"] = json.loads("[" * 500 + "]" * 500)


def add_giant_source(notebook: Notebook) -> None:
    notebook["cells"][0]["source"] = "x" * (33 << 20)


def add_many_cells(notebook: Notebook) -> None:
    notebook["cells"] += [make_code_cell("")] * 3000


def add_much_code(notebook: Notebook) -> None:
    notebook["cells"].append(make_code_cell("x = 1\n" * 10_000))


def turn_into_other_lesson(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if read_mark(cell):
            cell["metadata"]["nbgrader"]["grade_id"] += "-x"
        cell["source"] = cell["source"].replace("patchify", "do")
    notebook["cells"].append(make_code_cell("def normalize_images(images, mean, std):\n    return images"))


@dataclass(frozen=True)
class Kind:
    """A change of content, its bytes, its file's name, a word of the reason, flags, and what lies beside it or instead.

    ``instead`` makes the file itself, from the notebook's text, in the student's folder.
    """

    change: Callable[[Notebook], None] = leave_as_saved
    encoding: str = "utf-8"
    name: str = f"{LESSON}.ipynb"
    reason: str | None = None
    flags: tuple[str, ...] = ()
    instead: Callable[[Path, str], None] | None = None


def _make_writer_of_bytes(content: bytes, name: str = f"{LESSON}.ipynb") -> Callable[[Path, str], None]:
    return lambda folder, _: [(folder / name).write_bytes(content)][0] and None


def _make_writer_of_script(
    name: str, *, percent: bool = True, change: Callable[[str], str] = str
) -> Callable[[Path, str], None]:
    def write(folder: Path, text: str) -> None:
        cells = json.loads(text)["cells"]
        heads = {"code": "# %%\n" if percent else "# In[1]:\n\n", "markdown": "# %% [markdown]\n# "}
        parts = [heads[each["cell_type"]] + _comment_out(each) for each in cells]
        (folder / name).write_text(change("\n\n".join(parts)), encoding="utf-8")

    return write


def _comment_out(cell: dict[str, Any]) -> str:
    source: str = cell["source"]
    return source if cell["cell_type"] == "code" else source.replace("\n", "\n# ")


def _make_writer_of_two_files(named: str, other: str) -> Callable[[Path, str], None]:
    def write(folder: Path, text: str) -> None:
        (folder / named).write_text(text, encoding="utf-8")
        (folder / other).write_text(text.replace("unpatchify", "unfinished"), encoding="utf-8")

    return write


def _write_link(folder: Path, text: str) -> None:
    target = folder.parents[2] / "elsewhere.ipynb"
    target.write_text(text, encoding="utf-8")
    (folder / f"{LESSON}.ipynb").symlink_to(target)


def _write_linked_folder(folder: Path, text: str) -> None:
    target = folder.parents[2] / "elsewhere"
    target.mkdir()
    (target / f"{LESSON}.ipynb").write_text(text, encoding="utf-8")
    folder.rmdir()
    folder.symlink_to(target)


def _write_too_large(folder: Path, text: str) -> None:
    (folder / f"{LESSON}.ipynb").write_text(text, encoding="utf-8")
    os.truncate(folder / f"{LESSON}.ipynb", 101 << 20)


def _make_pipe(folder: Path, _: str) -> None:
    os.mkfifo(folder / f"{LESSON}.ipynb")


def _leave_folder_empty(_: Path, __: str) -> None:
    """An empty folder."""


def _write_in_subfolder(folder: Path, text: str) -> None:
    (folder / "work").mkdir()
    (folder / "work" / f"{LESSON}.ipynb").write_text(text, encoding="utf-8")


def _write_as_saved_by_4_0(folder: Path, text: str) -> None:
    notebook = nbformat.from_dict(json.loads(text))
    for cell in notebook.cells:
        cell.pop("id", None)
    notebook.nbformat_minor = 0
    (folder / f"{LESSON}.ipynb").write_text(nbformat.v4.nbjson.writes(notebook), encoding="utf-8")


HONEST = {
    "as-saved": Kind(),
    "without-metadata": Kind(remove_cell_metadata, reason=NO_METADATA),
    "without-ids": Kind(remove_ids),
    "stripped": Kind(strip_metadata, reason=NO_METADATA),
    "new-ids": Kind(renew_ids, reason=NO_METADATA),
    "same-ids": Kind(give_all_same_id),
    "bom": Kind(encoding="utf-8-sig"),
    "utf-16": Kind(encoding="utf-16", reason="UTF-16"),
    "utf-16-le": Kind(encoding="utf-16-le", reason="UTF-16"),
    "utf-16-be": Kind(encoding="utf-16-be", reason="UTF-16"),
    "utf-32": Kind(encoding="utf-32", reason="UTF-32"),
    "renamed-file": Kind(name="My homework (final).ipynb", reason="its file is named My homework"),
    "second-download": Kind(name=f"{LESSON} (1).ipynb"),
    "capital-letters": Kind(name=f"{LESSON}.IPYNB"),
    "colab": Kind(save_as_colab),
    "vs-code": Kind(save_as_vs_code),
    "other-kernel": Kind(set_r_kernel),
    "crlf": Kind(use_crlf),
    "format-3": Kind(convert_to_format_3, reason="old notebook format"),
    "format-4.0": Kind(instead=_write_as_saved_by_4_0),
    "split": Kind(split_answers),
    "merged": Kind(merge_answers),
    "reordered": Kind(reverse_answers),
    "doubled-alike": Kind(add_equal_copy_of_answer),
    "without-checks": Kind(remove_check_cells, flags=("test-cell-deleted",)),
    "edited-check": Kind(edit_check_cell, flags=("test-cell-edited",)),
    "magics": Kind(add_magics),
    "raising": Kind(add_raising_cells),
    "forged": Kind(forge_marks),
    "older-schema": Kind(set_older_schema),
    "other-version": Kind(change_checksum, reason="another version of the lesson"),
    "odd-cells": Kind(insert_odd_cells, reason="not what a cell should be"),
    "odd-letters": Kind(add_odd_letters),
    "unicode-names": Kind(use_unicode_names),
    "with-80-MB": Kind(add_large_pictures),
    "two-files": Kind(instead=_make_writer_of_two_files(f"{LESSON}.ipynb", "scratch.ipynb")),
    "inside": Kind(instead=_write_in_subfolder, reason="its file lies one folder deeper, in work"),
    "all-at-once": Kind(strip_metadata, "utf-16", "Untitled.ipynb", NO_METADATA),
    "éva 🙂": Kind(),
    "李明": Kind(),
    "محمد": Kind(),
    "[a-z]*?": Kind(),
    "o'neil; -- 100%": Kind(),
}
SCRIPTS = {
    "script": Kind(instead=_make_writer_of_script(f"{LESSON}.py")),
    "exported": Kind(instead=_make_writer_of_script(f"{LESSON}.py", percent=False)),
    "renamed-script": Kind(instead=_make_writer_of_script("homework.py"), reason="its file is named homework.py"),
}
OTHERWISE_GRADED = {
    "in-one-cell": Kind(join_all_in_one_cell, reason=NO_METADATA, flags=("test-cell-deleted",)),
    "doubled": Kind(add_wrong_copy_of_answer, reason="2 answers for unpatchify"),
    "without-answer": Kind(remove_answer, reason="cell of unpatchify is missing", flags=("test-cell-deleted",)),
    "emptied": Kind(empty_answer_cell, reason="cell of unpatchify is empty"),
    "as-text": Kind(turn_answer_into_markdown, flags=("cell-type-changed",)),
    "broken": Kind(break_syntax, reason="SyntaxError"),
    "broken-and-stripped": Kind(break_and_strip_metadata, reason="SyntaxError"),
    "broken-in-one-cell": Kind(join_in_one_cell_and_break_syntax, reason="SyntaxError", flags=("test-cell-deleted",)),
    "broken-below": Kind(add_broken_answer_below, reason="SyntaxError"),
    "broken-script": Kind(
        instead=_make_writer_of_script(
            f"{LESSON}.py", change=lambda text: text.replace("image_size):", "image_size)", 1)
        ),
        reason="SyntaxError",
    ),
    "untouched": Kind(restore_released),
}
UNGRADABLE = {
    "swollen": Kind(add_huge_metadata, reason="more pieces of data"),
    "nested": Kind(nest_deeply, reason="nested deeper"),
    "giant": Kind(add_giant_source, reason="more than 32 MB beside its outputs"),
    "many-cells": Kind(add_many_cells, reason="more than 2000 cells"),
    "much-code": Kind(add_much_code, reason="more code than anybody writes"),
    "half-a-file": Kind(
        instead=lambda folder, text: _make_writer_of_bytes(text.encode()[:5000])(folder, text), reason="not JSON"
    ),
    "empty-file": Kind(instead=_make_writer_of_bytes(b" "), reason="the file is empty"),
    "page": Kind(instead=_make_writer_of_bytes(b"<html>not a notebook</html>"), reason="not JSON"),
    "list": Kind(instead=_make_writer_of_bytes(b"[]"), reason="no notebook"),
    "null": Kind(instead=_make_writer_of_bytes(b"null"), reason="no notebook"),
    "picture": Kind(instead=_make_writer_of_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256))), reason="no text"),
    "zip": Kind(instead=_make_writer_of_bytes(b"PK\x03\x04", "work.zip"), reason="it is an archive"),
    "too-large": Kind(instead=_write_too_large, reason="more than 100 MB"),
    "other-lesson": Kind(turn_into_other_lesson, reason="another lesson"),
    "two-names": Kind(instead=_make_writer_of_two_files("final.ipynb", "final2.ipynb"), reason="it holds 2 notebooks"),
    "link": Kind(instead=_write_link, reason="symbolic link"),
    "linked-folder": Kind(instead=_write_linked_folder, reason="symbolic link"),
    "pipe": Kind(instead=_make_pipe, reason="no ordinary file"),
    "nothing": Kind(instead=_leave_folder_empty, reason="no notebook"),
}
KINDS = HONEST | SCRIPTS | OTHERWISE_GRADED | UNGRADABLE


def replace_notebook(path: Path, kind: Kind) -> None:
    """Replace the notebook at ``path``, right as it was saved, by what a kind makes of it."""
    notebook = json.loads(path.read_bytes())
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    path.unlink()
    kind.change(notebook)
    text = json.dumps(notebook, ensure_ascii=kind.change is add_odd_letters, indent=1)
    if kind.instead:
        kind.instead(path.parent, text)
        return
    text = text.replace("\n", "\r\n") if kind.change is use_crlf else text
    path.with_name(kind.name).write_bytes(text.encode(kind.encoding))
