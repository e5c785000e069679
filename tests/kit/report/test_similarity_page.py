"""Who wrote alike beyond the task: a copy is shown, what the task forces is not, and no page gives points."""

import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from exercise_kit import report
from exercise_kit.__main__ import app
from exercise_kit.report.similarity import (
    SimilarityError,
    Text,
    export,
    find_similar_pairs,
    read_answer_texts,
    write_similarity_page,
)
from tests.e2e.browser import find_cut_on_phones, needs_chromium

OWN = [
    "    total = 0\n    for {a} in range(len(images)):\n        total = total * 3 + images[{a}].sum() - 7\n",
    "    {a} = [each.flip(0) for each in images if each.dim() == 3 and each.shape[0] > 1]\n    total = len({a})\n",
    "    while images.dim() > 2:\n        images = images.mean(dim=-1)\n    {a} = images.std()\n    total = {a} / 2\n",
    "    {a} = {{}}\n    for row in images:\n        {a}[row] = {a}.get(row, 0) + 1\n    total = sum({a}.values())\n",
    "    import math\n    {a} = math.prod(images.shape) // 2\n    total = {a} if {a} % 2 else -{a}\n    total += 1\n",
]


def make_text(lesson, student, which, name="a", extra=""):
    shared = lesson.model_answers["patchify"]
    body = "".join(OWN[each].format(a=name) for each in which)
    return Text(student, lesson.name, f"{shared}\n\n\ndef helper(images):\n{body}    return total\n{extra}")


def test_a_copy_with_other_names_is_shown_and_the_task_s_own_lines_are_not(lessons):
    lesson = lessons.get("01_patchify")
    alone = [make_text(lesson, f"s{place}", [place]) for place in range(3)]
    copied = [make_text(lesson, "ada", [3, 4], "mine"), make_text(lesson, "ben", [3, 4], "yours", "# <script>\n")]
    (found,) = find_similar_pairs(lesson, [*alone, *copied])
    assert found.students == ("ada", "ben")
    assert min(found.shares) > 0.5
    assert "<mark>" in found.left
    assert "<script>" not in found.right


def test_what_many_wrote_alike_is_the_task_s_doing(lessons):
    lesson = lessons.get("01_patchify")
    assert find_similar_pairs(lesson, [make_text(lesson, f"s{place}", [3, 4], f"n{place}") for place in range(9)]) == []
    assert find_similar_pairs(lesson, [make_text(lesson, "one", [0])]) == []


def test_one_idea_in_common_beside_others_of_their_own_is_no_copy(lessons):
    lesson = lessons.get("01_patchify")
    assert (
        find_similar_pairs(lesson, [make_text(lesson, "ada", [0, 1], "a"), make_text(lesson, "ben", [1, 2], "b")]) == []
    )


@pytest.fixture
def copying_class(class_folder, lessons):
    class_folder = class_folder.folder
    lesson = lessons.get("01_patchify")
    for student, name in (("ada", "mine"), ("ben", "yours")):
        folder = class_folder / "submitted" / student / lesson.name
        folder.mkdir(parents=True)
        (folder / f"{lesson.name}.py").write_text(make_text(lesson, student, [3, 4], name).source)
    return class_folder


def test_a_private_page_tells_of_it(copying_class, tmp_path):
    out = tmp_path / "similarity.html"
    assert write_similarity_page(copying_class, out) == 1
    page = out.read_text("utf-8")
    assert "A reason to ask, and no proof." in page
    assert "points" not in page.partition("</header>")[2]
    assert out.stat().st_mode & 0o077 == 0


def test_other_engines_get_one_file_a_student_and_what_was_given(copying_class, tmp_path):
    assert export(read_answer_texts(copying_class, "01_patchify"), tmp_path / "out") == 2
    names = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.py")}
    home = "01_patchify"
    assert names == {
        f"{home}/basecode/basecode.py",
        f"{home}/submissions/ada.py",
        f"{home}/submissions/ben.py",
    }
    for path in (tmp_path / "out").rglob("*.py"):
        assert "### BEGIN SOLUTION" not in path.read_text("utf-8") or "submissions" in str(path)


def run_similarity(*arguments):
    done = CliRunner().invoke(app, ["similarity", *map(str, arguments)])
    return done.exit_code, done.output.splitlines()


def test_the_command_writes_the_page(copying_class):
    page = copying_class / "similarity.html"
    assert run_similarity(copying_class) == (0, [f"1 pair alike, for you alone: {page}"])
    assert page.is_file()


def test_the_command_writes_files_for_other_engines_and_says_how_to_start_them(copying_class, tmp_path):
    out = tmp_path / "for other engines"
    status, (printed, *commands) = run_similarity(copying_class, "--lesson", "01_patchify", "--export", out)
    assert (status, printed) == (0, f"2 students' answers are in {out}. For instance:")
    typed = [shlex.split(each) for each in commands]
    assert [words[0] for words in typed] == ["java", "dolos", "compare50"]
    for words in typed:
        given = [Path(word) for word in words if word.startswith(str(tmp_path))]
        assert len(given) == 2
        assert all(list(each.parent.glob(each.name)) for each in given)
    assert run_similarity(copying_class, "--export", out) == (1, [f"{out} exists and is not empty; name a new folder"])


def test_the_command_names_the_extra_that_it_needs(copying_class, monkeypatch):
    monkeypatch.setitem(sys.modules, "copydetect.utils", None)
    monkeypatch.delitem(sys.modules, "exercise_kit.report.similarity")
    monkeypatch.delattr(report, "similarity")
    status, printed = run_similarity(copying_class)
    assert status == 1
    assert printed[0].endswith('Install it with: pip install "vit-course[similarity]"')


@needs_chromium
def test_nothing_of_the_page_is_cut_on_a_phone(copying_class):
    for path in (copying_class / "submitted").rglob("*.py"):
        line = (
            f"    {'total_of_all_patches_' * 12} = images.flatten().unsqueeze(0).repeat(3, 1).sum(dim=0).mean() * 17\n"
        )
        path.write_text(path.read_text() + "\n\ndef patches_of(images):\n" + line + "    return images\n")
    page = copying_class / "similarity.html"
    assert write_similarity_page(copying_class, page) == 1
    assert find_cut_on_phones(page) == []


@pytest.mark.parametrize(("lesson", "words"), [("99_none", "there is no lesson"), (None, "nobody has handed in")])
def test_nothing_to_compare_gets_a_sentence(class_folder, lesson, words):
    with pytest.raises(SimilarityError, match=words):
        read_answer_texts(class_folder.folder, lesson)
