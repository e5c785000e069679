"""A result that lies beside the notebook: found where it is safe to, and whose it is."""

import os

import pytest

from exercise_kit.submission.find import FoundFile
from exercise_kit.submission.parse import read
from exercise_kit.submission.result_file import find_result, read_contents
from tests.outline import POINTS

FILE = "vit_cifar.safetensors"


def read_answer(work, **handed_in):
    """Return what is read of a student's notebook of lesson 07 about the file."""
    handed_in = FoundFile(work("07_experiments").write(), **handed_in)
    submission = read(handed_in, work("07_experiments").lessons, "vit_cifar")
    (answer,) = submission.exercises
    return submission, answer


def test_bytes_and_description_are_found(tmp_path):
    (tmp_path / FILE).write_bytes(b"weights")
    found = find_result(tmp_path, FILE)
    assert (found.name, found.problem, len(found.digest)) == (FILE, None, 64)
    assert read_contents(found) == (b"weights", None)
    (tmp_path / "vit_cifar.json").write_bytes(b"{}")
    other = find_result(tmp_path, FILE)
    assert read_contents(other) == (b"weights", b"{}")
    assert other.digest != found.digest
    assert read_contents(found) == (f"{FILE} was changed while it was graded", None)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "does not lie beside the notebook"),
        (lambda path: path.symlink_to("/etc/passwd"), "symbolic link"),
        (lambda path: path.symlink_to("nowhere"), "symbolic link"),
        (os.mkfifo, "no ordinary file"),
        (lambda path: path.mkdir(), "it is a folder"),
        (lambda path: path.touch(), "the file is empty"),
        (lambda path: path.write_bytes(bytes(49 << 20)), "more than 48 mb; make it smaller"),
    ],
    ids=["missing", "link", "dead link", "fifo", "folder", "empty", "large"],
)
def test_what_is_no_such_file_is_reported_in_a_sentence(tmp_path, make, message):
    make(tmp_path / FILE)
    found = find_result(tmp_path, FILE)
    assert FILE in found.problem
    assert message in found.problem.lower()
    assert found.digest == ""


def test_a_description_that_is_a_link_is_none(tmp_path):
    (tmp_path / FILE).write_bytes(b"weights")
    (tmp_path / "vit_cifar.json").symlink_to("/etc/passwd")
    assert read_contents(find_result(tmp_path, FILE)) == (b"weights", None)


def test_a_submission_carries_its_file(tmp_path, work):
    submission, answer = read_answer(work)
    assert answer.problem == f"{FILE} does not lie beside the notebook"
    assert answer.problem in submission.reason
    (tmp_path / FILE).write_bytes(b"weights")
    other, answer = read_answer(work)
    assert (answer.problem, answer.source, answer.max_score) == (None, None, POINTS["07_experiments"]["vit_cifar"])
    assert read_contents(answer.file)[0] == b"weights"
    assert other.digest == submission.digest
    assert other.content != submission.content


def test_a_file_among_notebooks_of_several_people_is_nobodys(tmp_path, work):
    (tmp_path / FILE).write_bytes(b"weights")
    (tmp_path / "05_vit.ipynb").write_text("{}")  # another lesson of the same person
    assert read_answer(work)[1].problem is None
    (tmp_path / "bob.ipynb").write_text("{}")
    assert "nobody can tell whose" in read_answer(work)[1].problem
    assert read_answer(work, student="ann", assignment="07_experiments")[1].problem is None


def test_a_script_is_not_requested_it(tmp_path, work):
    path = tmp_path / "07_experiments.py"
    path.write_text("def mixup(images, labels, num_classes, alpha, generator):\n    return 1, 2\n")
    lessons = work("07_experiments").lessons
    names = {each.name for each in read(FoundFile(path, named=True), lessons).exercises}
    assert names == {"mixup"}
    (tmp_path / FILE).write_bytes(b"weights")
    names = {each.name for each in read(FoundFile(path, named=True), lessons).exercises}
    assert names == {"mixup", "vit_cifar"}
