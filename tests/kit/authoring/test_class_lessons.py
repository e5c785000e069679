"""The lessons as a class has them: what class.toml changes, and what is said of a class that cannot be built."""

from __future__ import annotations

import re
import shutil
import zlib
from pathlib import Path

import pytest

from exercise_kit.authoring.class_lessons import build_class, build_class_root, read_lesson_sources, read_settings
from exercise_kit.authoring.lesson import AuthoringError
from exercise_kit.authoring.new_exercise import NewExerciseError, new_exercise
from exercise_kit.authoring.proof import prove_class_exercises
from exercise_kit.engine.class_exercises import set_class_in_use
from exercise_kit.engine.course import course
from exercise_kit.engine.own_exercise import own_exercise, pack_answer_with_lesson
from exercise_kit.engine.release_settings import ReleaseSettings, Route
from exercise_kit.hidden_checks.checks import HiddenChecks

pytestmark = pytest.mark.usefixtures("reset_class_in_use")
ROOT = Path(__file__).parents[3]
LESSON = "50_count_tokens"


@pytest.fixture
def class_folder(tmp_path: Path) -> Path:
    """A class folder with the skeleton in it, as far as building and proving look at one."""
    (tmp_path / "hidden").mkdir()
    shutil.copy(ROOT / "tests" / "hidden" / "conftest.py", tmp_path / "hidden")
    new_exercise(tmp_path, ROOT, "count_tokens", None, None)
    set_class_in_use(tmp_path)
    return tmp_path


def read_sources_with_settings(folder: Path, text: str) -> dict[str, str]:
    (folder / "class.toml").write_text(text)
    return read_lesson_sources(folder, ROOT)


def list_build_problems(folder: Path) -> str:
    set_class_in_use(folder)
    with pytest.raises(AuthoringError) as raised:
        build_class(folder, ROOT)
    return str(raised.value)


def add_mistake(folder: Path, name: str, code: str) -> None:
    """As the guide has it: a line in the lesson, and its words."""
    last = "    ### END SOLUTION"
    replace_in_lesson(folder, last, f'    # bug "{name}": {code}\n{last}')
    words = folder / "exercises" / "count_tokens.py"
    entry = f'MISTAKES = """\n["{name}"]\nexplanation = "Wrong."\nquestion = "Why?"\nsection = "Patches"\n'
    words.write_text(words.read_text().replace('MISTAKES = """\n', entry))


def replace_in_lesson(folder: Path, old: str, new: str) -> Path:
    lesson = folder / "lessons" / f"{LESSON}.py"
    assert old in lesson.read_text()
    lesson.write_text(lesson.read_text().replace(old, new))
    return lesson


def append_text(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def list_proof_problems(folder: Path) -> tuple[str, ...]:
    set_class_in_use(folder)
    return prove_class_exercises(folder / "hidden").problems


def test_a_class_says_what_its_release_holds_and_allows(class_folder):
    assert read_settings(class_folder).release == ReleaseSettings()
    (class_folder / "class.toml").write_text('route = "core"\nborrow = false\n', encoding="utf-8")
    assert read_settings(class_folder).release == ReleaseSettings(Route.CORE, borrow=False)


def test_what_is_left_out_is_shown_with_its_answer_and_asks_for_nothing(class_folder):
    text = read_sources_with_settings(class_folder, 'leave_out = ["count_parameters", "why-it-learns"]')["05_vit"]
    assert 'exercise="count_parameters"' not in text
    assert 'check("count_parameters"' not in text
    assert "why-it-learns" not in text
    assert "Given: `count_parameters`\n" in text
    assert "| `count_parameters` |" not in text
    assert "def count_parameters(" in text
    assert text.count("BEGIN SOLUTION") == text.count("END SOLUTION")
    assert 'check("VisionTransformer"' in text


def test_a_lesson_that_is_left_out_is_nowhere_to_be_released_and_comes_back(class_folder):
    ours, own = (class_folder / "source" / name / f"{name}.ipynb" for name in ("10_modern", LESSON))
    course_s = (ROOT / "solutions" / ours.name).read_bytes()
    ours.parent.mkdir(parents=True)
    ours.write_bytes(course_s)
    build_class(class_folder, ROOT)
    read_sources_with_settings(class_folder, f'leave_out = ["10_modern", "{LESSON}"]')
    assert len(build_class(class_folder, ROOT, check=True).stale) == 2
    assert build_class(class_folder, ROOT).removed == tuple(path.relative_to(class_folder) for path in (ours, own))
    assert list((class_folder / "source").iterdir()) == []
    assert not build_class(class_folder, ROOT).removed
    with build_class_root(class_folder, ROOT) as merged:
        assert not list(merged.rglob("10_modern.*"))
    read_sources_with_settings(class_folder, "")
    build_class(class_folder, ROOT)
    assert ours.read_bytes() == course_s
    assert own.is_file()


def test_a_lesson_that_is_left_out_and_was_changed_is_kept_and_named(class_folder):
    notebook = class_folder / "source" / "10_modern" / "10_modern.ipynb"
    notebook.parent.mkdir(parents=True)
    notebook.write_text("{}")
    read_sources_with_settings(class_folder, 'leave_out = ["10_modern"]')
    assert "source/10_modern/10_modern.ipynb: somebody has changed it, so it is left as it is" in list_build_problems(
        class_folder
    )
    assert notebook.is_file()


def test_points_change_in_the_check(class_folder):
    text = read_sources_with_settings(class_folder, "[points]\ncount_parameters = 4.5")["05_vit"]
    assert '# %% check="count_parameters" points=4.5\n' in text
    assert '# %% check="VisionTransformer" points=10\n' in text


def test_sections_change_places_and_nothing_is_lost(class_folder):
    before = read_lesson_sources(class_folder, ROOT)["05_vit"]
    text = read_sources_with_settings(class_folder, '[order]\n05_vit = ["load_torchvision", "count_parameters"]')[
        "05_vit"
    ]
    assert sorted(text.splitlines()) == sorted(before.splitlines())
    assert text.index('exercise="load_torchvision"') < text.index('exercise="count_parameters"')
    assert text.index('exercise="VisionTransformer"') < text.index('exercise="load_torchvision"')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("leave_out = 3", "leave_out is a list of names"),
        ('route = "short"', 'route is "core" or "all"'),
        ("borrow = 1", "borrow is true or false"),
        ('leave_out = ["nothing"]', "there is no exercise, question or lesson called 'nothing'"),
        ("[points]\npatchify = 0", "a number above 0"),
        ("[points]\nnothing = 3", "called 'nothing'"),
        ("[order]\n05_vit = 3", "a list of exercises"),
        ('[order]\n05_nothing = ["patchify"]', "there is no lesson called '05_nothing'"),
        ('[order]\n05_vit = ["patchify"]', "there is no exercise or question called 'patchify' in it"),
        ("orders = 3", "it has no 'orders'"),
        ("points = [", "cannot be read"),
    ],
)
def test_settings_that_say_something_else_are_a_sentence(class_folder, text, message):
    with pytest.raises(AuthoringError, match=message) as raised:
        read_sources_with_settings(class_folder, text)
    assert str(raised.value).startswith("class.toml")


def test_a_lesson_that_asks_for_an_exercise_that_there_is_not(class_folder):
    lesson = replace_in_lesson(class_folder, '"count_tokens"', '"count_token"')
    line = next(number for number, text in enumerate(lesson.read_text().splitlines(), 1) if 'exercise="' in text)
    message = list_build_problems(class_folder)
    assert f"lessons/{LESSON}.py:{line}: there is no exercise called 'count_token'" in message
    assert 'no lesson in lessons/ has its cell, which begins with # %% exercise="count_tokens"' in message


def test_checks_without_points_and_an_exercise_of_ours(class_folder):
    checks = class_folder / "exercises" / "count_tokens.py"
    checks.write_text(re.sub(r"check\(points=\d\)", "check", checks.read_text()))
    assert list_proof_problems(class_folder) == (
        "exercises/count_tokens.py: none of its checks has points; give a claim some: @count_tokens.check(points=1)",
    )
    shutil.copy(class_folder / "exercises" / "count_tokens.py", class_folder / "exercises" / "patchify.py")
    message = list_build_problems(class_folder)
    assert "exercises/patchify.py: the course has an exercise called 'patchify'" in message


def test_what_somebody_has_changed_in_a_notebook_is_not_lost(class_folder):
    notebook = class_folder / "source" / LESSON / f"{LESSON}.ipynb"
    build_class(class_folder, ROOT)
    append_text(notebook, "\n")
    assert "somebody has changed it, so it is left as it is" in list_build_problems(class_folder)
    assert notebook.read_text().endswith("\n\n")
    notebook.unlink()
    build_class(class_folder, ROOT)
    append_text(class_folder / "lessons" / f"{LESSON}.py", "\n# %% [markdown]\n# More.\n")
    set_class_in_use(class_folder)
    assert build_class(class_folder, ROOT, check=True).stale
    assert build_class(class_folder, ROOT).written
    assert "More." in notebook.read_text()


def test_students_and_makers_of_classes_find_all_lessons_in_its_root(class_folder):
    with build_class_root(class_folder, ROOT) as merged:
        names = {path.name for path in (merged / "notebooks").glob("*.ipynb")}
        assert names == {path.name for path in (ROOT / "notebooks").glob("*.ipynb")} | {f"{LESSON}.ipynb"}
        assert "BEGIN SOLUTION" not in (merged / "notebooks" / f"{LESSON}.ipynb").read_text()


def test_a_release_has_an_exercise_without_known_mistakes_and_none_of_its_answer(class_folder):
    lesson, words = class_folder / "lessons" / f"{LESSON}.py", class_folder / "exercises" / "count_tokens.py"
    lesson.write_text(re.sub(r"    # bug .*\n", "", lesson.read_text()))
    words.write_text(re.sub(r'MISTAKES = """.*?"""', 'MISTAKES = ""', words.read_text(), flags=re.DOTALL))
    set_class_in_use(class_folder)
    content = pack_answer_with_lesson(words, course().own.exercises["count_tokens"])
    released = class_folder / "released" / "count_tokens.py"
    released.parent.mkdir()
    released.with_suffix(".packed").write_bytes(content)
    found = own_exercise(str(released))
    assert (found.name, found.lesson, found.misconceptions) == ("count_tokens", LESSON, [])
    assert b"return" not in zlib.decompress(content)


def test_the_skeleton_is_proven(class_folder):
    proof = prove_class_exercises(class_folder / "hidden")
    assert proof.problems == ()
    hidden = "hidden test_every_patch_is_one_token"
    assert proof.caught == {
        "count_tokens": dict.fromkeys(("square image", "class token counted"), ("every_patch_is_one_token", hidden))
    }


HIDDEN = '''
import pytest


@pytest.mark.exercise("count_tokens", points=1)
def test_one_more(student, reference, probe):
    """It counts."""
    assert student(4, 6, 2) == reference.count_tokens(4, 6, 2)
'''


@pytest.mark.parametrize(
    ("file", "old", "message"),
    [
        ("exercises/count_tokens.py", "probe.sizes(", "every_patch_is_one_token"),
        ("hidden/test_count_tokens.py", "reference.count_tokens(", "test_one_more"),
    ],
)
def test_of_a_check_that_breaks_the_first_cause_alone_is_reported(class_folder, file, old, message):
    (class_folder / "hidden" / "test_count_tokens.py").write_text(HIDDEN)
    path = class_folder / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, "nowhere(", 1))
    line = path.read_text()[: path.read_text().index("nowhere")].count("\n") + 1
    (found,) = list_proof_problems(class_folder)
    assert found.startswith(f"{file}:{line}: NameError: name 'nowhere' is not defined; ")
    assert found.endswith(f"{message} breaks off with the lesson's own answer")


def test_an_error_in_a_hidden_file_of_the_course_is_reported_too(class_folder):
    (class_folder / "hidden" / "test_patchify.py").write_text("def test_it(student)\n")
    assert list_proof_problems(class_folder) == ("hidden/test_patchify.py:1: SyntaxError: expected ':'",)


@pytest.mark.parametrize(
    ("returned", "messages"),
    [
        (
            "int(height / patch_size) * (width // patch_size)",
            ("is caught by no public check", "no hidden check catches the known mistake 'a mistake': it gets"),
        ),
        ("__import__('random').random()", ("is caught, but the student reads no name at all",)),
    ],
    ids=["caught", "named"],
)
def test_a_mistake_that_is_not_caught_or_named_is_a_sentence(class_folder, returned, messages):
    add_mistake(class_folder, "a mistake", f"return {returned}")
    found = "\n".join(list_proof_problems(class_folder))
    for each in ("'a mistake'", *messages):
        assert each in found


def test_a_lesson_without_the_answer_is_a_sentence(class_folder):
    replace_in_lesson(class_folder, "def count_tokens(", "def counted(")
    (found,) = list_proof_problems(class_folder)
    assert found.endswith(f"lessons/{LESSON}.py defines no count_tokens, which is the answer to an exercise")


def test_two_mistakes_of_one_name_and_an_answer_that_is_refused_are_sentences(class_folder):
    wrong = (
        '\n\n@count_tokens.misconception("Why?", "x")\ndef square_image(height, width, patch_size):\n    """Wrong."""\n'
    )
    append_text(class_folder / "exercises" / "count_tokens.py", wrong + "    return 3\n")
    replace_in_lesson(class_folder, "return (height // patch_size)", "return 1 + (height // patch_size)")
    found = "\n".join(list_proof_problems(class_folder))
    assert "2 known mistakes are called 'square image'" in found
    assert f"the check every_patch_is_one_token refuses the answer of lessons/{LESSON}.py" in found


@pytest.mark.parametrize(
    ("name", "lesson", "variant_of", "message"),
    [
        ("patchify", None, None, "the course has an exercise called 'patchify'"),
        ("count_tokens", None, None, "already a file exercises/count_tokens.py"),
        ("2bad", None, None, "is no name of a Python function"),
        ("good", "tokens", None, "is no lesson's name"),
        ("good", None, "nothing", "is no exercise of the course"),
    ],
)
def test_a_skeleton_that_cannot_be_made(class_folder, name, lesson, variant_of, message):
    before = sorted(class_folder.rglob("*"))
    with pytest.raises(NewExerciseError, match=message):
        new_exercise(class_folder, ROOT, name, lesson, variant_of)
    assert sorted(class_folder.rglob("*")) == before


def test_an_exercise_goes_to_the_end_of_a_lesson_of_ours(class_folder):
    new_exercise(class_folder, ROOT, "more", "01_patchify", None)
    text = (class_folder / "lessons" / "01_patchify.py").read_text()
    assert text.startswith((ROOT / "solutions" / "01_patchify.py").read_text().rstrip())
    assert text.endswith('check("more", more)\n')


def test_every_exercise_of_ours_has_a_variant_that_is_complete(tmp_path):
    known = [name for name, each in course().exercises.items() if not each.file]
    (tmp_path / "hidden").mkdir()
    for name in known:
        new_exercise(tmp_path, ROOT, f"my_{name}", f"20_my_{name.lower()}", name)
    set_class_in_use(tmp_path)
    assert list(course().own.answers) == sorted(f"my_{name}" for name in known)
    checks = HiddenChecks(tmp_path / "hidden")
    assert checks.problems == {}
    for name in known:  # the points of the original, and what grading alone asks of it
        original, variant = (
            [(check.name, check.worth) for check in checks.exercises()[each]] for each in (name, f"my_{name}")
        )
        assert variant == original
