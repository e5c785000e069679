"""Files as strangers hand them in."""

import errno
import json
import os
import tracemalloc

import pytest

from exercise_kit.submission import notebook_file
from exercise_kit.submission.notebook_file import (
    FILE_BYTES,
    Unreachable,
    Unreadable,
    parse_notebook_cells,
    parse_script_cells,
    read_bytes,
)


def write_notebook(*cells, **more):
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)} | more).encode()


def make_code_cell(source, **more):
    return {"cell_type": "code", "metadata": {}, "outputs": [], "source": source} | more


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"not json", "not JSON"),
        (write_notebook(make_code_cell("x = 1"))[:-20], "not JSON"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe\x00", "no text"),
        (b"[1, 2]", "no notebook"),
        (b"{}", "no list of cells"),
        (write_notebook(cells={"a": 1}), "no list of cells"),
        (write_notebook(cells=None), "no list of cells"),
        (b"[" * 200_000, "nested deeper"),
        (write_notebook(*[make_code_cell("x")] * 2001), "more than 2000 cells"),
        (write_notebook(make_code_cell("x" * 600_000)), "more code than anybody writes"),
        (b'{"nbformat": 3, "worksheets": 7}', "converting it failed"),
        (b'{"n": ' + b"9" * 5000 + b"}", "not JSON"),
        (write_notebook(metadata={"x": [{}] * 300_001}), "more pieces of data"),
        (write_notebook(metadata={"x": [1] * 300_001}), "more pieces of data"),
        (write_notebook(make_code_cell("x", tags=["x" * (33 << 20)])), "more than 32 MB beside its outputs"),
        (write_notebook(metadata={"x": json.loads("[" * 90 + "]" * 90)}), "nested deeper"),
        (b'{"cells": [{"outputs": [' + b"[" * 100_000, "not JSON"),
        (b'"' + b'\\"' * 2_000_000, "not JSON"),
        (b"\\" * 1_000_000, "not JSON"),
    ],
)
def test_what_is_no_notebook_is_reported_in_words(content, words):
    with pytest.raises(Unreadable, match=words):
        parse_notebook_cells(content)


def make_still_output(picture, mark="0" * 32, src="data:image/png;base64,"):
    html = f'<div class="still-{mark}"><p>2 &lt; 3\n</p><img alt="a" width="9" src="{src}{picture}"></div>'
    return {"output_type": "display_data", "metadata": {}, "data": {"text/html": html, "text/plain": "2 < 3"}}


def read_stills(*cells, **more):
    return [cell.still for cell in parse_notebook_cells(write_notebook(*cells, **more)).cells]


def test_of_the_outputs_a_still_picture_stays_and_the_others_go():
    printed = {"output_type": "stream", "name": "stdout", "text": "[1"}
    assert read_stills(
        make_code_cell("a"),
        make_code_cell("b", outputs=[printed, make_still_output("AB/+="), make_still_output("CD")]),
        make_code_cell("c"),
    ) == [
        None,
        "AB/+=",
        None,
    ]
    others = (
        make_still_output("AB", mark="x"),
        make_still_output("AB", src="https://example.org/"),
        make_still_output('"><script>'),
        make_still_output(""),
    )
    assert read_stills(*[make_code_cell("a", outputs=[each]) for each in others]) == [None] * 4
    assert read_stills(
        make_code_cell("a", outputs=["AB"]), make_code_cell("b", outputs={"data": make_still_output("AB")})
    ) == [None, None]


def test_still_pictures_are_few_and_small(monkeypatch):
    assert read_stills(*[make_code_cell("a", outputs=[make_still_output("AB")])] * 6) == ["AB"] * 4 + [None] * 2
    large = "A" * (notebook_file.MAX_STILL_CHARACTERS + 1)
    assert read_stills(make_code_cell("a", outputs=[make_still_output(large)])) == [None]


def test_no_field_is_believed_to_have_its_type():
    marked = make_code_cell("y = 2", id=7, metadata={"nbgrader": {"grade_id": ["a"], "checksum": {}}})
    wrong = [5, None, "x", {"cell_type": "code"}, make_code_cell(7), make_code_cell([1, 2]), make_code_cell({"a": 1})]
    file = parse_notebook_cells(
        write_notebook(
            *wrong,
            make_code_cell("x = 1", metadata=None),
            marked,
            make_code_cell(["a = 1\n", "b = 2"]),
            make_code_cell("\ud800"),
        )
    )
    assert [cell.source for cell in file.cells] == ["x = 1", "y = 2", "a = 1\nb = 2", "?"]
    assert [cell.index for cell in file.cells] == [7, 8, 9, 10]
    assert file.cells[1].grade_id is file.cells[1].checksum is file.cells[1].id is None
    assert file.oddities == ("7 of its cells are not what a cell should be, left out",)


def test_an_old_format_is_converted_without_its_still_pictures_and_reported():
    cell = {"cell_type": "code", "input": "x = 1", "language": "python", "metadata": {}}
    cell["outputs"] = [make_still_output("AB")]
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": "n"}, "worksheets": [{"cells": [cell]}]}
    file = parse_notebook_cells(json.dumps(old).encode())
    assert [(cell.source, cell.still) for cell in file.cells] == [("x = 1", None)]
    assert "old notebook format" in file.oddities[0]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_every_encoding_of_json_is_read(encoding):
    text = json.dumps({"cells": [make_code_cell("x = 'é𝛼'")]}, ensure_ascii=False)
    file = parse_notebook_cells(text.encode(encoding))
    assert file.cells[0].source == "x = 'é𝛼'"
    assert [oddity[:22] for oddity in file.oddities] == (
        [] if "8" in encoding else [f"it was saved as {encoding[:6].upper()}"]
    )


def test_outputs_of_any_size_are_read_over():
    """Pictures, interactive figures, and words in a source that look like an output."""
    source = "print('\"outputs\": [1, {')"
    outputs = [
        {"output_type": "display_data", "data": {"image/png": "A" * (60 << 20)}, "metadata": {}},
        {"output_type": "display_data", "data": {"plotly": {"x": [0.5] * 400_000, "text": ['"]}\\'] * 1000}}},
    ]
    content = write_notebook(
        make_code_cell(source, outputs=outputs),
        make_code_cell("y = 1"),
        metadata={"widgets": {"state": [[]] * 400_000}},
    )
    file = parse_notebook_cells(content)
    assert [cell.source for cell in file.cells] == [source, "y = 1"]
    assert file.oddities == ()


def test_outputs_of_endless_pieces_are_not_read_to_their_end(monkeypatch):
    monkeypatch.setattr(notebook_file, "MAX_PIECES", 1000)
    with pytest.raises(Unreadable, match="more pieces"):
        parse_notebook_cells(write_notebook(make_code_cell("", outputs=[{}] * 501)))


def test_pictures_that_were_pasted_in_are_kept_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(notebook_file, "MAX_ATTACHED_BYTES", 100)
    picture = {"a.png": {"image/png": "A" * 60}}
    read = notebook_file.parse_notebook_json(
        write_notebook(make_code_cell("", attachments=picture), make_code_cell("", attachments=picture))
    )
    assert [cell["attachments"] for cell in read["cells"]] == [picture, {}]


def test_a_file_that_swells_as_objects_is_refused_before_it_does(monkeypatch):
    """16 MB of empty objects would become 7 GB in nbformat."""
    monkeypatch.setattr(notebook_file, "MAX_KEPT_PIECES", 10_000)
    content = write_notebook(metadata={"x": []}).replace(b'"x": []', b'"x": [{}' + b",{}" * 1_000_000 + b"]")
    tracemalloc.start()
    with pytest.raises(Unreadable, match="more pieces"):
        parse_notebook_cells(content)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20


def test_a_script_is_divided_where_its_cells_begin():
    script = b"import torch\n# %% exercise\ndef f():\n    return 1\n# In[3]:\ng = 2\n"
    assert [cell.source for cell in parse_script_cells(script).cells] == [
        "import torch\n",
        "def f():\n    return 1\n",
        "g = 2\n",
    ]
    with pytest.raises(Unreadable, match="no text"):
        parse_script_cells(b"a\0b")


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
    cases = [
        (link, "link"),
        (pipe, "no ordinary"),
        (large, "100 MB"),
        (empty, "empty"),
        (tmp_path / "no.py", "No such"),
    ]
    for path, words in [*cases, (tmp_path / "work.tar.gz", "archive"), (tmp_path, "it is a folder")]:
        with pytest.raises(Unreadable, match=words):
            read_bytes(path)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EKEYEXPIRED, errno.ECONNRESET, errno.EREMOTEIO, errno.ESTALE])
def test_what_the_system_refuses_is_no_fault_of_a_student(tmp_path, monkeypatch, number):
    def raise_os_error(*_):
        raise OSError(number, os.strerror(number))

    path = tmp_path / "01_patchify.ipynb"
    path.write_text("{}")
    monkeypatch.setattr(os, "open", raise_os_error)
    with pytest.raises(Unreachable, match="it cannot be reached"):
        read_bytes(path)
