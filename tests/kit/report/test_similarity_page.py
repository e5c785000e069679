"""Who wrote alike beyond the task: a copy is shown, what the task forces is not, and no page gives points."""

import pytest

from exercise_kit.report.similarity import SimilarityError, Text, export, pairs, texts_of, write_page

OWN = [
    "    total = 0\n    for {a} in range(len(images)):\n        total = total * 3 + images[{a}].sum() - 7\n",
    "    {a} = [each.flip(0) for each in images if each.dim() == 3 and each.shape[0] > 1]\n    total = len({a})\n",
    "    while images.dim() > 2:\n        images = images.mean(dim=-1)\n    {a} = images.std()\n    total = {a} / 2\n",
    "    {a} = {{}}\n    for row in images:\n        {a}[row] = {a}.get(row, 0) + 1\n    total = sum({a}.values())\n",
    "    import math\n    {a} = math.prod(images.shape) // 2\n    total = {a} if {a} % 2 else -{a}\n    total += 1\n",
]


def text(lesson, student, which, name="a", extra=""):
    shared = lesson.model_answers["patchify"]
    body = "".join(OWN[each].format(a=name) for each in which)
    return Text(student, lesson.name, f"{shared}\n\n\ndef helper(images):\n{body}    return total\n{extra}")


def test_a_copy_with_other_names_is_shown_and_the_task_s_own_lines_are_not(lessons):
    lesson = lessons.get("01_patchify")
    alone = [text(lesson, f"s{place}", [place]) for place in range(3)]
    copied = [text(lesson, "ada", [3, 4], "mine"), text(lesson, "ben", [3, 4], "yours", "# <script>\n")]
    (found,) = pairs(lesson, [*alone, *copied])
    assert found.students == ("ada", "ben")
    assert min(found.shares) > 0.5
    assert "<mark>" in found.left
    assert "<script>" not in found.right


def test_what_many_wrote_alike_is_the_task_s_doing(lessons):
    lesson = lessons.get("01_patchify")
    assert pairs(lesson, [text(lesson, f"s{place}", [3, 4], f"n{place}") for place in range(9)]) == []
    assert pairs(lesson, [text(lesson, "one", [0])]) == []


@pytest.fixture
def copying_class(class_folder, lessons):
    class_folder = class_folder.folder
    lesson = lessons.get("01_patchify")
    for student, name in (("ada", "mine"), ("ben", "yours")):
        folder = class_folder / "submitted" / student / lesson.name
        folder.mkdir(parents=True)
        (folder / f"{lesson.name}.py").write_text(text(lesson, student, [3, 4], name).source)
    return class_folder


def test_a_private_page_tells_of_it(copying_class, tmp_path):
    out = tmp_path / "similarity.html"
    assert write_page(copying_class, out) == 1
    page = out.read_text("utf-8")
    assert "A reason to ask, and no proof." in page
    assert "points" not in page.partition("</header>")[2]
    assert out.stat().st_mode & 0o077 == 0


def test_other_engines_get_one_file_a_student_and_what_was_given(copying_class, tmp_path):
    found = texts_of(copying_class, "01_patchify")
    assert export(found, tmp_path / "out") == 2
    names = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.py")}
    home = "01_patchify"
    assert names == {
        f"{home}/basecode/basecode.py",
        f"{home}/submissions/ada.py",
        f"{home}/submissions/ben.py",
    }
    for path in (tmp_path / "out").rglob("*.py"):
        assert "### BEGIN SOLUTION" not in path.read_text("utf-8") or "submissions" in str(path)
    with pytest.raises(SimilarityError, match="not empty"):
        export(found, tmp_path / "out")


@pytest.mark.parametrize(("lesson", "words"), [("99_none", "there is no lesson"), (None, "nobody has handed in")])
def test_nothing_to_compare_gets_a_sentence(class_folder, lesson, words):
    with pytest.raises(SimilarityError, match=words):
        texts_of(class_folder.folder, lesson)
