"""``borrow`` lends the course's part without its source and without points; ``reset`` gives the empty cell back."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import traceback
from importlib.resources import files

import pytest
import torch
from IPython.core.oinspect import getsource as shown_by_jupyter

import vit_course
from exercise_kit.authoring.release import list_package_files
from exercise_kit.engine import borrow_and_reset as lending
from exercise_kit.engine import run
from exercise_kit.engine.borrow_and_reset import borrow, reset
from exercise_kit.engine.course import course
from exercise_kit.engine.lent import is_lent_part, load_right_parts
from exercise_kit.engine.own_parts import keep
from exercise_kit.engine.release_settings import ReleaseSettings
from vit_course import check

LENDABLE = [name for name, each in course().exercises.items() if load_right_parts(each)]
NO_PART = {name for name in course().exercises if name not in LENDABLE}
STUBS = json.loads((files("vit_course") / "exercises" / "stubs.json").read_text("utf-8"))


@pytest.mark.parametrize("ask", ["vit_course.borrow('patchify')", "borrow('patchify')"])
def test_a_notebook_borrows_by_the_name_that_it_imports(ask):
    """In a process of its own: once a module of that name is imported, Python gives it in place of the function."""
    cell = f"import vit_course; from vit_course import borrow; print({ask}); print(patchify)"
    done = subprocess.run([sys.executable, "-c", cell], capture_output=True, text=True, check=True)
    assert "patchify" in done.stdout


def borrow_objects(name):
    """The borrowed objects by name, as they come into a notebook."""
    notebook = {"borrow": borrow}
    exec(f"borrow({name!r})", notebook)
    return {each: notebook[each] for each in course().exercises[name].objects}


def find_secret_lines(right):
    """The lines of a right part that are in no empty cell; its docstring and signature are no secret."""
    given = {line.strip() for text in STUBS.values() for line in text.split("\n")}
    document = inspect.getdoc(right) or ""
    lines = {line.strip() for line in inspect.getsource(right).split("\n")}
    return {line for line in lines - given if len(line) > 12 and line not in document and not line.startswith("def ")}


def test_what_can_be_borrowed_is_what_lessons_build_upon():
    assert {"patchify", "split_heads", "VisionTransformer", "attention_rollout", "EarlyStopping"} <= set(LENDABLE)
    assert "vit_cifar" in NO_PART  # a file that the student trains
    assert all(name in NO_PART for name in ("fix_patchify", "is_attention"))  # nothing is built on them


@pytest.mark.parametrize("name", LENDABLE)
def test_a_borrowed_part_shows_nothing_of_its_source(name):
    for part_name, part in borrow_objects(name).items():
        hidden = find_secret_lines(load_right_parts(course().exercises[name])[part_name])
        assert hidden
        seen = [part, *(each for each in vars(part).values() if callable(each))] if inspect.isclass(part) else [part]
        for each in seen:
            try:
                shown = inspect.getsource(each)
            except (OSError, TypeError):
                shown = ""
            shown += shown_by_jupyter(each) or ""  # what `??` shows
            assert [line for line in hidden if line in shown] == []


def test_an_error_of_a_borrowed_part_shows_no_line_of_it():
    (patchify,) = borrow_objects("patchify").values()
    with pytest.raises(ValueError, match="height 30 is not divisible by patch_size 4") as caught:
        patchify(torch.rand(1, 3, 30, 32), 4)
    assert "patches.py" not in "".join(traceback.format_exception(caught.value))


def test_a_borrowed_function_works_as_the_course_s_own(capsys):
    (patchify,) = borrow_objects("patchify").values()
    images = torch.rand(2, 3, 8, 12)
    assert torch.equal(patchify(images, 4), vit_course.patchify(images, 4))
    assert "`patchify` is the course's now, and earns nothing." in capsys.readouterr().out


def test_a_borrowed_class_works_as_the_course_s_own():
    (embedding,) = borrow_objects("PatchEmbedding").values()
    torch.manual_seed(0)
    theirs = vit_course.PatchEmbedding(3, 4, 16)
    mine = embedding(3, 4, 16)
    mine.load_state_dict(theirs.state_dict())
    images = torch.rand(2, 3, 8, 8)
    assert torch.equal(mine(images), theirs(images))
    assert type(mine).__name__ == "PatchEmbedding"


def test_both_names_of_an_exercise_come_at_once(capsys):
    assert set(borrow_objects("split_heads")) == {"split_heads", "merge_heads"}
    assert "`split_heads`, `merge_heads` are the course's now, and earn nothing" in capsys.readouterr().out


@pytest.mark.parametrize("name", LENDABLE)
def test_a_borrowed_part_is_known_and_its_check_gives_no_points(name):
    parts = borrow_objects(name)
    assert all(map(is_lent_part, parts.values()))
    report = check(name, *parts.values(), points=5)
    assert report.score == 0.0
    assert not report.passed
    assert report.problem.startswith(f"This {name} is the course's, and earns nothing.")


def test_a_class_made_from_a_borrowed_one_gives_no_points():
    (embedding,) = borrow_objects("PatchEmbedding").values()
    mine = type("PatchEmbedding", (embedding,), {})
    assert check("PatchEmbedding", mine, points=5).score == 0.0


def test_a_borrowed_part_is_not_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "_passed_objects", {})
    (patchify,) = borrow_objects("patchify").values()
    check("patchify", patchify, points=8)
    keep("patchify")
    assert "patchify is not kept. It has to pass its check first" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_an_instructor_can_forbid_it(monkeypatch, capsys):
    monkeypatch.setattr(lending, "read_release_settings", lambda: ReleaseSettings(borrow=False))
    assert borrow("patchify") is None
    assert "Your teacher has switched borrowing off." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("vit_cifar", "There is no part to borrow for vit_cifar. Go on"),
        ("patchfy", 'There is no exercise called `patchfy`. Did you mean `borrow("patchify")`?'),
        (3, "The name of the exercise comes first, in quotes"),
    ],
)
def test_what_cannot_be_borrowed_is_said(name, said, capsys):
    assert borrow(name) is None
    assert capsys.readouterr().out.startswith(said)


def test_reset_prints_the_empty_cell_outside_of_jupyter(capsys):
    reset("patchify")
    shown = capsys.readouterr().out
    assert shown.startswith("def patchify(images, patch_size):")
    assert shown.endswith("    # TODO: your code here\n    raise NotImplementedError\n")


def test_reset_puts_the_empty_cell_below_in_jupyter(monkeypatch, capsys):
    class Shell:
        kernel = object()
        asked = ()

        def set_next_input(self, text, replace):
            self.asked = text, replace

    shell = Shell()
    monkeypatch.setattr(lending, "find_ipython_shell", lambda: shell)
    reset("Patchify")
    assert shell.asked == (STUBS["patchify"], False)
    assert capsys.readouterr().out.startswith("The empty cell of patchify is below.")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("vit_cifar", "vit_cifar has no cell to fill in."),
        ("pachify", 'There is no exercise called `pachify`. Did you mean `reset("patchify")`?'),
    ],
)
def test_what_cannot_be_reset_is_said(name, said, capsys):
    reset(name)
    assert capsys.readouterr().out.startswith(said)


def test_the_empty_cells_hold_no_answer_and_travel_in_the_wheel():
    assert set(STUBS) == {name for name, each in course().exercises.items() if not each.file}
    assert all("raise NotImplementedError" in text and "SOLUTION" not in text for text in STUBS.values())
    root = files("vit_course").joinpath("..").resolve()
    assert any(path.name == "stubs.json" for path in list_package_files(root))


def test_lessons_say_below_the_last_hint_what_can_be_borrowed():
    root = files("vit_course").joinpath("..").resolve()
    texts = ["".join(cell["source"]) for path in sorted((root / "notebooks").glob("*.ipynb"))
             for cell in json.loads(path.read_bytes())["cells"] if cell["cell_type"] == "markdown"]  # fmt: skip
    told = "\n".join(text for text in texts if "<summary>Hint 3" in text)
    offered = {name for name in course().exercises if f'`borrow("{name}")`' in told}
    hinted = {name for name in course().exercises if f'`reset("{name}")`' in told}
    assert offered == set(LENDABLE) & hinted
    assert {"patchify", "VisionTransformer", "rotary_2d"} <= offered
    assert "layer_norm" in hinted - offered
