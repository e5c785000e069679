"""A submission, read against the released lesson."""

import json

import pytest

from exercise_kit.submission.find import FoundFile
from exercise_kit.submission.parse import NO_METADATA, read
from exercise_kit.submission.submission import NoSubmission
from tests.outline import POINTS

PATCHIFY = "def patchify(images, patch_size):\n    return images"


def index_answers(submission):
    return {each.name: each for each in submission.exercises}


def test_an_untouched_notebook_has_nothing_to_say(work):
    submission = work().read(student="ada")
    assert (submission.student, submission.assignment, submission.lesson) == ("ada", "01_patchify", "01_patchify")
    assert (submission.reason, submission.flags, submission.rejected) == (None, (), False)
    assert submission.max_score == sum(POINTS["01_patchify"].values())
    assert all(each.untouched and each.source and each.problem is None for each in submission.exercises)
    assert len(submission.digest) == 64


def test_an_answer_is_read_with_its_cell(work):
    mine = work().answer(patchify=PATCHIFY)
    answer = index_answers(mine.read())["patchify"]
    assert (answer.source, answer.cell, answer.untouched) == (PATCHIFY, mine.place("patchify"), False)


def test_two_answers_are_reported_and_the_last_counts(work):
    mine = work().answer(patchify=PATCHIFY).add("def patchify(images, patch_size):\n    return images + 1")
    submission = mine.read()
    assert index_answers(submission)["patchify"].source.endswith("+ 1")
    assert submission.reason == "there are 2 answers for patchify; the last one counts"


def test_an_answer_beside_the_untouched_cell_is_the_answer(work):
    mine = work().add(PATCHIFY, at=5)
    submission = mine.read()
    assert submission.reason is None
    assert index_answers(submission)["patchify"].cell == 5
    assert mine.place("patchify") not in [cell.index for cell in submission.cells], "the stub would take its place"


def test_a_copied_cell_is_no_second_answer(work):
    mine = work().answer(patchify=PATCHIFY)
    mine.cells.append(json.loads(json.dumps(mine.cell("patchify"))))
    assert mine.read().reason is None


@pytest.mark.parametrize(
    ("source", "words", "kind"),
    [
        ("", "the cell of patchify is empty", "its cell is empty"),
        ("# nothing yet", "the cell of patchify is empty", "its cell is empty"),
        ("print('hello')", "the cell of patchify does not define patchify", "its cell does not define the answer"),
    ],
)
def test_a_cell_without_an_answer_is_reported(work, source, words, kind):
    submission = work().answer(patchify=source).read()
    assert submission.reason == words
    assert not submission.rejected
    answer = index_answers(submission)["patchify"]
    assert (answer.source, answer.kind) == (None, kind)


def test_a_missing_cell_is_reported(work):
    mine = work()
    mine.cells.remove(mine.cell("patchify"))
    submission = mine.read()
    assert submission.reason == "the cell of patchify is missing"
    assert len(submission.exercises) == 5


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_an_answer_in_a_cell_of_another_type_is_read_as_code(work, kind):
    mine = work().answer(patchify=PATCHIFY)
    mine.cell("patchify")["cell_type"] = kind
    submission = mine.read()
    answer = index_answers(submission)["patchify"]
    assert (answer.source, answer.cell, answer.problem) == (PATCHIFY, mine.place("patchify"), None)
    assert submission.flags == ("cell-type-changed",)
    was = "raw text" if kind == "raw" else kind
    assert [each.words for each in submission.notes] == [
        f"patchify: its cell had been turned into {was}, and was read as it was released"
    ]


@pytest.mark.parametrize("kind", ["code", "raw"])
def test_a_written_answer_in_a_cell_of_another_type_is_text(work, kind):
    mine = work().answer(**{"patches-or-pixels": "Because print is a word here too."})
    mine.cell("patches-or-pixels")["cell_type"] = kind
    submission = mine.read()
    assert submission.flags == ("cell-type-changed",)
    assert mine.place("patches-or-pixels") not in [cell.index for cell in submission.cells]


def test_an_answer_put_aside_as_text_beside_the_one_that_counts_stays_text(work):
    mine = work().answer(patchify="def patchify(images, patch_size):\n    return 0").add(PATCHIFY)
    mine.cell("patchify")["cell_type"] = "raw"
    submission = mine.read()
    assert index_answers(submission)["patchify"].source == PATCHIFY
    assert (submission.flags, submission.reason) == ((), None)


def test_without_metadata_answers_are_found_by_their_names(work):
    mine = work().answer(patchify=PATCHIFY)
    for cell in mine.cells:
        cell["metadata"] = {}
        cell.pop("id", None)
    submission = mine.read()
    assert submission.reason == NO_METADATA
    assert submission.flags == ()
    assert index_answers(submission)["patchify"].source == PATCHIFY
    assert len(submission.exercises) == 5


def test_an_older_version_is_reported(work):
    mine = work()
    mine.cell("patchify")["metadata"]["nbgrader"]["checksum"] = "0" * 32
    assert "another version of the lesson" in mine.read().reason


def test_another_lesson_is_rejected_in_a_tree_and_reported_elsewhere(work, tmp_path, lessons):
    path = work("02_positions").write("01_patchify.ipynb")
    in_tree = read(FoundFile(path, "ada", "01_patchify"), lessons)
    assert in_tree.rejected
    assert in_tree.reason == "it is for another lesson: it holds exercises of 02_positions, not of 01_patchify"
    loose = read(FoundFile(path), lessons)
    assert (loose.rejected, loose.lesson) == (False, "02_positions")
    assert "its name says 01_patchify" in loose.reason


def test_a_notebook_of_something_else_is_rejected(work):
    mine = work()
    mine.notebook["cells"] = []
    assert mine.read().rejected
    assert mine.read().reason == "it holds no exercise of 01_patchify"


def test_a_script_is_graded_on_what_it_defines(tmp_path, lessons):
    path = tmp_path / "mine.py"
    path.write_text(f"import torch\n\n{PATCHIFY}\n")
    submission = read(FoundFile(path), lessons)
    assert [each.name for each in submission.exercises] == ["patchify"]
    assert (submission.lesson, submission.reason, submission.flags) == ("01_patchify", None, ())
    read_alone = read(FoundFile(path, named=True), lessons, "unpatchify")
    assert read_alone.reason == "the cell of unpatchify is missing"
    path.write_text("x = 1")
    with pytest.raises(NoSubmission):
        read(FoundFile(path), lessons)
    assert read(FoundFile(path, named=True), lessons).rejected


def test_a_script_of_the_model_answers_has_them_all(lessons):
    submission = read(FoundFile(lessons.clone / "solutions" / "04_block.py"), lessons)
    assert [each.name for each in submission.exercises] == list(lessons.get("04_block").names)
    assert submission.reason is None


def test_one_exercise_alone(work):
    assert [each.name for each in work().read("unpatchify").exercises] == ["unpatchify"]


def test_edited_and_deleted_checks_are_flagged(work):
    mine = work()
    mine.cell("check-patchify")["source"] = "check = lambda *_: 8"
    mine.cells.remove(mine.cell("check-unpatchify"))
    submission = mine.read()
    assert submission.flags == ("test-cell-deleted", "test-cell-edited")
    assert submission.reason is None
    assert "lambda" not in "".join(cell.source for cell in submission.cells)


def test_experiments_are_skipped_but_not_an_answer_among_them(work):
    mine = work("05_vit")
    tagged = next(cell for cell in mine.cells if "experiment" in cell["metadata"].get("tags", ()))
    tagged["source"] = "epochs = 500"
    tagged["metadata"] = {}
    mine.add("x = 1")
    mine.cells[-1]["metadata"]["tags"] = ["experiment"]
    mine.cell("count_parameters")["metadata"]["tags"] = ["experiment"]
    submission = mine.read()
    sources = [cell.source for cell in submission.cells]
    assert "epochs = 500" not in sources, "known by its id"
    assert "x = 1" not in sources
    assert mine.place("count_parameters") in [cell.index for cell in submission.cells]


def test_an_edited_setup_cell_never_runs(work):
    mine = work()
    mine.cell("setup")["source"] = "check = None"
    mine.add("print(check, os)")
    sources = [cell.source for cell in mine.read().cells]
    assert "check = None" not in sources
    assert any("from vit_course import check" in source for source in sources), "the released one does"


def test_a_script_that_is_no_python_is_not_left_out_in_silence(lessons, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def patchify(images:\n")
    submission = read(FoundFile(path), lessons)
    assert submission.rejected
    assert submission.reason.startswith("it is no Python (")


def test_whatever_reading_trips_over_costs_this_submission_alone(work, monkeypatch):
    def raise_recursion_error(*_):
        raise RecursionError

    monkeypatch.setattr("exercise_kit.submission.parse.select_required_cells", raise_recursion_error)
    submission = work().read()
    assert submission.rejected
    assert submission.reason == "its code cannot be read (RecursionError)"


@pytest.mark.parametrize(
    "source", ["globals()['patchify'] = lambda images, patch_size: images", "%run mine.py", "def patchify(:"]
)
def test_a_marked_cell_that_may_define_anything_or_is_no_python_is_an_answer(work, source):
    answer = index_answers(work().answer(patchify=source).read())["patchify"]
    assert (answer.source, answer.problem) == (source, None)
