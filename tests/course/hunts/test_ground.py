"""Reading a ground: what its comments say about its lines, and what they may not say."""

import pytest

from vit_course.hunts.choose import Bug, GroundError, read_ground

SOURCE = '''"""A module's docstring."""

import math


def double(number):
    """Twice."""
    for _ in range(2):
        # bug "never": for _ in range(0):
        total = number
        # bug "nothing": total = 0
        # bug "two lines": total = number
        # bug "two lines": total += 1
        # bug "wide":
    return 2 * total
    # bug "inside":     return 2 * total
    # bug "wide": return math.nan
'''


def spoilt(name):
    ground = read_ground("double", SOURCE, "double.py")
    return ground.program(each for each in ground.bugs if each.name == name)


def test_without_a_bug_it_is_the_program_without_comments_and_docstring():
    ground = read_ground("double", SOURCE, "double.py")
    assert ground.program() == (
        'import math\n\n\ndef double(number):\n    """Twice."""\n    for _ in range(2):\n        total = number\n'
        "    return 2 * total\n"
    )
    assert ground.defines == "double"
    assert [each.name for each in ground.bugs] == ["never", "nothing", "two lines", "wide", "inside"]


def test_the_spoiled_line_takes_the_place_and_the_indentation_of_the_line_above():
    assert "    for _ in range(0):\n        total = number\n" in spoilt("never")
    assert "\n        total = 0\n" in spoilt("nothing")


def test_several_comments_are_several_lines():
    assert "\n        total = number\n        total += 1\n    return" in spoilt("two lines")


def test_nothing_after_the_colon_leaves_the_line_out_and_one_bug_can_have_several_places():
    assert spoilt("wide").endswith("    for _ in range(2):\n    return math.nan\n")


def test_more_spaces_indent_further():
    assert spoilt("inside").endswith("        total = number\n        return 2 * total\n")


def test_bugs_touch_where_they_share_a_line():
    bugs = {each.name: each for each in read_ground("double", SOURCE, "double.py").bugs}
    assert bugs["wide"].touches(bugs["inside"])
    assert bugs["inside"].touches(bugs["wide"])
    assert not bugs["nothing"].touches(bugs["inside"])
    assert isinstance(hash(bugs["wide"]), int)


def test_two_bugs_stand_side_by_side():
    ground = read_ground("double", SOURCE, "double.py")
    both = ground.program(each for each in ground.bugs if each.name in ("nothing", "inside"))
    assert both.endswith("        total = 0\n        return 2 * total\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("    # bug never: pass", "is no bug"),
        ('    # bug "never" pass', "is no bug"),
        ('    # Bug "never": pass', "is no bug"),
        ('    #bug "never": pass', "is no bug"),
        ('    # bugs "never": pass', "is no bug"),
        ('    # bug "": pass', "is no bug"),
        ('    # bug "never":pass', "is no bug"),
    ],
)
def test_a_slip_of_the_pen_is_reported_with_its_line(line, message):
    with pytest.raises(GroundError, match=rf"mine\.py:4: .*{message}"):
        read_ground("mine", f"def mine():\n    return 1\n\n{line}\n".replace("\n\n", "\n# a note\n"), "mine.py")


@pytest.mark.parametrize("source", ['# bug "first": pass\nx = 1\n', 'x = 1\n\n# bug "first": pass\n'])
def test_a_bug_needs_a_line_above(source):
    with pytest.raises(GroundError, match="there is no line above to spoil"):
        read_ground("mine", source, "mine.py")


def test_a_ground_defines_something():
    with pytest.raises(GroundError, match="the ground mine defines no function and no class"):
        _ = read_ground("mine", "x = 1\n", "mine.py").defines


def test_an_ordinary_comment_stays():
    assert read_ground("mine", "x = 1\n# debugging is fun\n", "mine.py").program() == "x = 1\n# debugging is fun\n"


def test_a_bug_is_its_name_and_its_edits():
    assert Bug("one", {1: ()}) == Bug("one", {1: ()})
    assert Bug("one", {1: ()}) != Bug("one", {2: ()})
