"""Reading a program: what its comments say about its lines, and what they may not say."""

import inspect
import sys
import zlib
from types import ModuleType

import pytest

from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.program import Implementations, ProgramError, read_program, read_program_in

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


def test_without_a_bug_it_is_the_program_without_comments_and_docstring():
    program = read_program(SOURCE, "double", "double.py")
    assert program.text() == (
        'import math\n\n\ndef double(number):\n    """Twice."""\n    for _ in range(2):\n        total = number\n'
        "    return 2 * total\n"
    )
    assert program.defines("double")
    assert not program.defines("total")
    assert [each.name for each in program.bugs] == ["never", "nothing", "two lines", "wide", "inside"]


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("never", "    for _ in range(0):\n        total = number\n    return 2 * total\n"),
        ("nothing", "    for _ in range(2):\n        total = 0\n    return 2 * total\n"),
        ("two lines", "\n        total = number\n        total += 1\n    return 2 * total\n"),
        ("wide", "    for _ in range(2):\n    return math.nan\n"),
        ("inside", "        total = number\n        return 2 * total\n"),
    ],
    ids=["in its place", "indented as it is", "as several lines", "left out, and elsewhere too", "indented further"],
)
def test_a_bug_spoils_the_line_above_it(name, end):
    program = read_program(SOURCE, "double", "double.py")
    assert program.text([program.bug(name)]).endswith(end)


def test_bugs_touch_where_they_share_a_line():
    bugs = {each.name: each for each in read_program(SOURCE, "double", "double.py").bugs}
    assert bugs["wide"].touches(bugs["inside"])
    assert bugs["inside"].touches(bugs["wide"])
    assert not bugs["nothing"].touches(bugs["inside"])
    assert isinstance(hash(bugs["wide"]), int)


def test_two_bugs_stand_side_by_side():
    program = read_program(SOURCE, "double", "double.py")
    both = program.text(each for each in program.bugs if each.name in ("nothing", "inside"))
    assert both.endswith("        total = 0\n        return 2 * total\n")


@pytest.mark.parametrize(
    "comment",
    ["# bug a:", '# bug "a"', '# Bug "a":', '#bug "a":', '# bugs "a":', '# bug "":', '# bug "a":without a space,'],
)
def test_a_slip_of_the_pen_is_reported_with_its_line(comment):
    with pytest.raises(ProgramError, match=r"mine\.py:4: .*is no bug"):
        read_program(f"def mine():\n    return 1\n# a note\n    {comment} pass\n", "mine", "mine.py")


@pytest.mark.parametrize("source", ['# bug "first": pass\nx = 1\n', 'x = 1\n\n# bug "first": pass\n'])
def test_a_bug_needs_a_line_above(source):
    with pytest.raises(ProgramError, match="there is no line above to spoil"):
        read_program(source, "mine", "mine.py")


def test_a_module_is_made_once_and_shows_its_own_source():
    program = read_program(SOURCE, "a_course.double.program", "double.py")
    nothing = program.bug("nothing")
    made = program.run(nothing)
    assert made is program.run(nothing)
    assert made.double(3) == 0
    assert program.run().double(3) == 6
    assert "total = 0" in inspect.getsource(made.double)
    assert "total = 0" in inspect.getsource(made)


def test_an_exercise_of_two_objects_knows_which_of_them_a_bug_is_in():
    program = read_program(
        SOURCE + '\n\ndef triple(x):\n    return 3 * x\n    # bug "twice": return 2 * x\n', "m", "f.py"
    )
    assert program.find_place(program.bug("twice"), ("double", "triple")) == 1
    assert program.find_place(program.bug("wide"), ("double", "triple")) == 0
    objects = Implementations(program, (program.bug("twice"),), ("double", "triple"))
    assert len(objects) == 2
    assert [each(3) for each in objects] == [6, 6]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('["other"]', '"never" has no words in the table|"other" has no line # bug "other": in the program'),
        ('["never"]\nexplanation = "a"\nquestion = "b"', '"never" lacks section'),
        (
            '["never"]\nexplanation = "a"\nquestion = "b"\nsection = "c"\nhint = "d"',
            "has 'hint'; there are explanation",
        ),
        ('["never"]\nexplanation = "a"\nquestion = "b"\nsection = "c"\ntraining = "d"', "training is one of UNSEEN"),
    ],
)
def test_a_table_that_does_not_fit_its_program_is_refused(tmp_path, monkeypatch, table, message):
    (tmp_path / "program.py").write_text('def double(x):\n    return 2 * x\n    # bug "never": return x\n')
    (tmp_path / "mistakes.toml").write_text(table)
    claims = ModuleType("a_course.double.claims")
    claims.__file__ = str(tmp_path / "claims.py")
    monkeypatch.setitem(sys.modules, claims.__name__, claims)
    with pytest.raises(ProgramError, match=message):
        read_mistakes(Exercise("double", "01_numbers"), claims.__name__)


def test_a_wheel_s_packed_program_reads_like_the_plain_one(tmp_path):
    (tmp_path / "program.packed").write_bytes(zlib.compress(SOURCE.encode()))
    assert read_program_in(tmp_path, "m") == read_program(SOURCE, "m", "double.py")
    with pytest.raises(ProgramError, match=r"there is no program\.py"):
        read_program_in(tmp_path / "nowhere", "m")


def test_an_ordinary_comment_stays():
    assert read_program("x = 1\n# debugging is fun\n", "mine", "mine.py").text() == "x = 1\n# debugging is fun\n"


def test_a_comment_for_the_linter_is_no_part_of_it():
    source = "import math  # noqa: F401  # bugs use it\nx = 1  # not a quarter\n"
    assert read_program(source, "mine", "mine.py").text() == "import math\nx = 1  # not a quarter\n"
