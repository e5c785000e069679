"""An example shows the lines in which the mistake is."""

import pytest

from exercise_kit.report.answers import GradedAnswer
from exercise_kit.report.collect import collect_class_work
from exercise_kit.report.examples import Anonymizer, Examples
from exercise_kit.report.excerpt import MARK, MOST_LINES, canonicalize_line, shorten_lines
from tests.kit.report.conftest import make_exercise_result, make_failed_check

LONG = [f"    x{number} = {number}" for number in range(2 * MOST_LINES)]


def test_short_code_is_shown_whole():
    lines = ["def f(x):", "    return x"]
    assert shorten_lines(lines, {"return x"}) == lines


def test_long_code_keeps_what_differs_and_where_it_stands():
    lines = [
        "class A:",
        "    def f(self):",
        *(f"    {line}" for line in LONG),
        "        return x.transpose(1, 2)",
        "# end",
    ]
    common = {canonicalize_line(line) for line in lines} - {"return x.transpose(1, 2)"}
    shown = shorten_lines(lines, common)
    assert shown[:3] == ["class A:", "    def f(self):", f"        {MARK}"]
    assert "        return x.transpose(1, 2)" in shown
    assert len(shown) <= MOST_LINES


def test_names_that_were_taken_out_are_alike():
    assert canonicalize_line("    name3 = name1(x)") == canonicalize_line("name4 = name2(x)")


def test_where_all_differs_the_end_is_cut_and_counted():
    shown = shorten_lines(LONG, ())
    assert (len(shown), shown[-1]) == (MOST_LINES + 1, f"# {MARK} and {len(LONG) - MOST_LINES} lines more")


def write_helper(name, line, lines=MOST_LINES // 2):
    return f"def {name}(x):\n" + "".join(f"    x = x + {number}\n" for number in range(lines)) + f"    return {line}\n"


def test_the_helper_with_the_mistake_is_shown_and_the_others_are_outlined():
    right, wrong = write_helper("tokens", "x"), write_helper("patches", "x.transpose(1, 2)")
    answer = "def patchify(images, patch_size):\n    return patches(tokens(images))"
    anonymizer = Anonymizer([])
    others = anonymizer.list_canonical_lines(right + write_helper("patches", "x") + answer, ("patchify",))
    code = anonymizer.anonymize_code(right + wrong + answer, ("patchify",), others)
    assert "return x.transpose(1, 2)" in code
    assert f"def tokens(x):\n    {MARK}" in code


def test_where_nothing_is_known_the_farthest_helper_goes_first():
    near, far = write_helper("tokens", "patches(x)"), write_helper("patches", "x")
    code = Anonymizer([]).anonymize_code(far + near + "def patchify(x, p):\n    return tokens(x)", ("patchify",))
    assert f"def patches(x):\n    {MARK}" in code
    assert "return patches(x)" in code


HEAD = "def patchify(images, patch_size):\n"
RIGHT = HEAD + "".join(f"    images = images + {number}\n" for number in range(2 * MOST_LINES)) + "    return images\n"
WHOLE = HEAD + "".join(f"    images = images * {number}\n" for number in range(8)) + "    return images\n"
OUTLINED = RIGHT.replace("images + 40\n", "images - 40\n")


@pytest.mark.parametrize(
    "other", [OUTLINED, HEAD + "    return 'what Quist thinks of it'\n"], ids=["outlined", "masked"]
)
def test_a_whole_answer_is_the_example_and_none_of_which_only_a_mark_is_left(class_folder, other):
    """Even where the whole one has more lines of its own."""
    answers = {"right": RIGHT, **{f"other-{number}": other for number in range(6)}, "whole": WHOLE}
    wrong = make_exercise_result("patchify", make_failed_check(misconception="column order"), score=4.0)
    for student, source in answers.items():
        class_folder.keep(class_folder.hand_in(student, patchify=source), *([wrong] if student != "right" else []))
    work = collect_class_work(class_folder.folder)
    mistaken = [
        GradedAnswer(each, result)
        for each in work.handed_in
        for result in each.result.exercises
        if (each.who, result.name) != ("right", "patchify") and result.name == "patchify"
    ]
    examples = Examples(work, Anonymizer([]))
    assert MARK in examples.of([each for each in mistaken if each.work.who != "whole"]).code
    assert examples.of(mistaken).code == WHOLE.rstrip()
