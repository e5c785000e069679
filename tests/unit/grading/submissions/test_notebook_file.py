"""Files as strangers hand them in."""

import json
import os

import pytest

from vit_course.grading.submissions.notebook_file import FILE_BYTES, Unreadable, open_notebook, open_script, read_bytes


def notebook(*cells, **more):
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)} | more).encode()


def code(source, **more):
    return {"cell_type": "code", "metadata": {}, "outputs": [], "source": source} | more


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"not json", "not JSON"),
        (notebook(code("x = 1"))[:-20], "not JSON"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe\x00", "no text"),
        (b"[1, 2]", "no notebook"),
        (b"{}", "no list of cells"),
        (notebook(cells={"a": 1}), "no list of cells"),
        (notebook(cells=None), "no list of cells"),
        (b"[" * 200_000, "nested deeper"),
        (notebook(*[code("x")] * 2001), "more than 2000 cells"),
        (notebook(code("x" * 600_000)), "more code than anybody writes"),
        (b'{"nbformat": 3, "worksheets": 7}', "converting it failed"),
        (b'{"n": ' + b"9" * 5000 + b"}", "not JSON"),
    ],
)
def test_what_is_no_notebook_is_told_in_words(content, words):
    with pytest.raises(Unreadable, match=words):
        open_notebook(content)


def test_no_field_is_believed_to_have_its_type():
    marked = code("y = 2", id=7, metadata={"nbgrader": {"grade_id": ["a"], "checksum": {}}})
    wrong = [5, None, "x", {"cell_type": "code"}, code(7), code([1, 2]), code({"a": 1})]
    file = open_notebook(
        notebook(*wrong, code("x = 1", metadata=None), marked, code(["a = 1\n", "b = 2"]), code("\ud800"))
    )
    assert [cell.source for cell in file.cells] == ["x = 1", "y = 2", "a = 1\nb = 2", "?"]
    assert [cell.index for cell in file.cells] == [7, 8, 9, 10]
    assert file.cells[1].grade_id is file.cells[1].checksum is file.cells[1].id is None
    assert file.oddities == ("7 of its cells are not what a cell should be, left out",)


def test_an_old_format_is_converted_and_told():
    cell = {"cell_type": "code", "input": "x = 1", "language": "python", "metadata": {}, "outputs": []}
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": "n"}, "worksheets": [{"cells": [cell]}]}
    file = open_notebook(json.dumps(old).encode())
    assert [cell.source for cell in file.cells] == ["x = 1"]
    assert "old notebook format" in file.oddities[0]


def test_other_encodings_are_read():
    text = notebook(code("x = 'é'")).decode()
    assert open_notebook(b"\xef\xbb\xbf" + text.encode()).cells[0].source == "x = 'é'"
    file = open_notebook(text.encode("utf-16"))
    assert file.cells[0].source == "x = 'é'"
    assert "UTF-16" in file.oddities[0]


def test_a_script_is_divided_where_its_cells_begin():
    script = b"import torch\n# %% exercise\ndef f():\n    return 1\n# In[3]:\ng = 2\n"
    assert [cell.source for cell in open_script(script).cells] == [
        "import torch\n",
        "def f():\n    return 1\n",
        "g = 2\n",
    ]
    with pytest.raises(Unreadable, match="no text"):
        open_script(b"a\0b")


def test_only_ordinary_files_of_some_size_are_opened(tmp_path):
    good = tmp_path / "good.ipynb"
    good.write_text("{}")
    assert read_bytes(good) == b"{}"
    link, pipe, large, empty = (tmp_path / f"{name}.ipynb" for name in ("link", "pipe", "large", "empty"))
    link.symlink_to(good)
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate(FILE_BYTES + 1)
    empty.touch()
    (tmp_path / "work.tar.gz").touch()
    cases = [(link, "link"), (pipe, "no ordinary"), (large, "50 MB"), (empty, "empty"), (tmp_path / "no.py", "No such")]
    for path, words in [*cases, (tmp_path / "work.tar.gz", "archive"), (tmp_path, "cannot be read|no ordinary")]:
        with pytest.raises(Unreadable, match=words):
            read_bytes(path)
