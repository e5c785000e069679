"""``hunt``: what a seed draws, what it gives, and what it says to bad input."""

import inspect
import subprocess
import sys
import traceback
from collections import Counter

import numpy as np
import pytest
import torch

from vit_course.exercises.catalog import EXERCISES
from vit_course.hunts import hunt
from vit_course.hunts.choose import draw_bugs, find_ground, list_hunting_grounds
from vit_course.hunts.suspect import Suspect


@pytest.mark.parametrize("name", list_hunting_grounds())
@pytest.mark.parametrize("count", [1, 2])
def test_as_many_seeds_in_a_row_as_there_are_draws_reach_each_of_them_once(name, count):
    ground = find_ground(name)
    drawn = [draw_bugs(ground, seed, count) for seed in range(-5, 995)]
    period = drawn.index(drawn[0], 1)
    assert len(set(drawn[:period])) == period
    assert drawn[period : 2 * period] == drawn[:period]
    assert {bug.name for bugs in drawn[:period] for bug in bugs} == {bug.name for bug in ground.bugs}
    assert max(Counter(drawn).values()) - min(Counter(drawn).values()) <= 1
    for bugs in drawn[:period]:
        assert len(bugs) == count
        assert count == 1 or not bugs[0].touches(bugs[1])


def test_a_seed_draws_the_same_on_every_machine():
    """Written down: who changes this changes what students of a running class see."""
    names = [draw_bugs(find_ground("scaled_dot_product_attention"), seed, 1)[0].name for seed in (1, 2, 3)]
    assert names == ["root of the number of keys", "values never used", "scaled after the softmax"]


def test_the_order_of_seeds_is_not_that_of_the_ground():
    ground = find_ground("patchify")
    places = [ground.bugs.index(draw_bugs(ground, seed, 1)[0]) for seed in range(len(ground.bugs))]
    assert places != sorted(places)


@pytest.mark.parametrize("seed", [0, -3, 10**30, np.int64(7), torch.tensor(7)])
def test_any_whole_number_is_a_seed(seed):
    assert hunt("patchify", seed).code == hunt("patchify", int(seed)).code


@pytest.mark.parametrize("name", ["EncoderBlock", "encoderblock", "encoder_block", " Encoder Block "])
def test_a_name_may_be_written_in_many_ways(name):
    assert hunt(name, 1).code == hunt("EncoderBlock", 1).code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("patchyfi", 1),
            r'no hunt called `patchyfi`. Did you mean "patchify"\? There are: normalize_images, patchify',
        ),
        (("layer_norm", 1), r"no hunt called `layer_norm`. .*There are: normalize_images, patchify"),
        (("", 1), "no hunt called nothing. There are: normalize_images"),
        ((print, 1), "The name of a hunt comes first, in quotes; this is the function print. There are: "),
        ((3,), "comes first, in quotes; this is the int `3`"),
        (("patchify", "7"), "seed has to be a whole number, and this is the text `'7'`; leave out the quotes"),
        (("patchify", "Ada"), "seed has to be a whole number, and this is the text `'Ada'`; as in seed=2"),
        (("patchify", 1.5), "seed has to be a whole number, and this is the float `1.5`; as in seed=2"),
        (("patchify", torch.tensor(1.5)), "seed has to be a whole number, and this is a Tensor; as in seed=2"),
        (("patchify", None), "seed has to be a whole number, and this is None"),
        (("patchify", True), "seed has to be a whole number, and this is the bool `True`"),
        (("patchify", 1, 0), "bugs=0: the hunt patchify can hide 1 to 4 at once"),
        (("patchify", 1, -1), "bugs=-1: the hunt patchify can hide 1 to 4 at once"),
        (("patchify", 1, 5), "bugs=5: the hunt patchify can hide 1 to 4 at once"),
        (("patchify", 1, 10**9), "can hide 1 to 4 at once"),
        (("patchify", 1, 2.0), "bugs has to be a whole number, and this is the float `2.0`; as in bugs=2"),
    ],
)
def test_bad_input_is_reported_in_a_sentence(arguments, message):
    with pytest.raises(ValueError, match=message) as caught:
        hunt(*arguments)
    assert caught.value._render_traceback_() == [str(caught.value)]


def test_a_suspect_runs_and_is_called_like_its_program():
    suspect = hunt("patchify", seed=1)
    images = torch.arange(32.0).reshape(1, 2, 4, 4)
    assert torch.equal(suspect(images, 2), suspect.program(images, patch_size=2))
    block = hunt("EncoderBlock", seed=1)
    assert inspect.isclass(block.program)
    assert isinstance(block(8, 2), block.program)


def test_an_error_in_a_suspect_shows_its_own_lines():
    suspect = hunt("patchify", seed=1)
    try:
        suspect(torch.zeros(1, 1, 5, 4), 2)
    except ValueError:
        text = traceback.format_exc()
    assert "<hunt: patchify, seed 1>" in text
    assert 'raise ValueError(f"an image of {H} x {W}' in text
    assert inspect.getsource(suspect.program).startswith(
        "def suspect_patchify(images: torch.Tensor, patch_size: int) -> torch.Tensor:"
    )


def test_it_checks_what_was_mended():
    suspect = hunt("patchify", seed=1)
    (drawn,) = draw_bugs(find_ground("patchify"), 1, 1)
    assert suspect.check(suspect.program).misconceptions == (drawn.name,)
    namespace = {}
    exec(list_hunting_grounds()["patchify"].text(), namespace)
    assert suspect.check(namespace["suspect_patchify"]).passed
    assert "Nothing is repaired yet." in str(suspect.check())
    assert "Nothing is repaired yet." in str(suspect.check(None))
    assert "has to be a function" in str(suspect.check(3))


@pytest.mark.parametrize("name", list_hunting_grounds())
def test_nothing_in_a_suspect_tells_its_bug(name):
    for bugs in (1, 2):
        suspect = hunt(name, seed=3, bugs=bugs)
        drawn = [each.name for each in draw_bugs(find_ground(name), 3, bugs)]
        text = "\n".join([repr(suspect), suspect._repr_html_(), repr(vars(suspect))])
        assert "# bug" not in text
        assert not [each for each in drawn if each in text]


def test_as_text_it_can_be_pasted():
    suspect = hunt("patchify", seed=3, bugs=2)
    assert str(suspect).startswith("# hunt: patchify, seed 3; two bugs in it\n")
    namespace = {}
    exec(str(suspect), namespace)
    assert "suspect_patchify" in namespace


def test_in_a_notebook_it_is_a_card_without_style_sheet_and_script():
    suspect = Suspect("patchify", "<b>", 'def f(x):\n    return "<i>" if x < 1 else None\n', "f", 1)
    shown = suspect._repr_html_()
    assert 'aria-label="Hunt: &lt;b&gt;"' in shown
    assert "&lt;i&gt;" in shown
    assert "one bug in it" in shown
    assert 'style="color: #0072B2; font-weight: bold">def</span>' in shown
    for forbidden in ("<style", "<script", "class=", "<i>", "<b>"):
        assert forbidden not in shown


def test_the_exercise_s_own_names_stay_the_student_s():
    """Whoever pastes a suspect into a lesson overwrites nothing of their own that is graded."""
    objects = {name for exercise in EXERCISES.values() for name in exercise.objects}
    for ground in list_hunting_grounds().values():
        names = {}
        exec(ground.text(), names)
        assert ground.defines.lower().startswith("suspect")
        imported_here = objects & names.keys()
        lesson = EXERCISES[ground.name].lesson
        mine = {name for each in EXERCISES.values() if each.lesson == lesson for name in each.objects}
        assert not imported_here & mine, f"{ground.name} overwrites {imported_here & mine}"


def test_the_package_itself_imports_nothing_but_vit_course():
    code = "import sys, vit_course; before = {*sys.modules}; import vit_course.hunts; print({*sys.modules} - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{'vit_course.hunts'}"
