"""Wrong answers that nobody has named lose the points of the check that a clause of the statement needs for them."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine import check
from tests.course.test_hidden_checks import KEYS, run_hidden_checks, summarize_outcomes
from tests.course.unlisted_answers import UNLISTED
from vit_course.exercises.catalog import EXERCISES
from vit_course.staff.references import REFERENCE


def find_failed_claims(exercise, *objects, key=KEYS[0]):
    """The names of the hidden checks that an answer fails."""
    return {each.check.name for each in run_hidden_checks(exercise, objects, key) if each.result.verdict == "fail"}


@pytest.mark.parametrize("exercise", dict.fromkeys(exercise for exercise, _, _ in UNLISTED))
def test_the_check_that_its_clause_needs_fails_it(exercise):
    for name, claim, answer in UNLISTED:
        if name == exercise:
            for key in KEYS:
                outcomes = run_hidden_checks(exercise, (answer,), key)
                assert claim in find_failed_claims(exercise, answer, key=key), (
                    f"{answer.__name__}\n{summarize_outcomes(outcomes)}"
                )
                assert not any(each.log for each in outcomes), summarize_outcomes(outcomes)


LOST = []


def _squeeze_first_axis(value):
    if isinstance(value, Tensor):
        LOST.append(value.shape)
        return value.squeeze(0)
    return tuple(map(_squeeze_first_axis, value)) if isinstance(value, tuple) else value


def _make_answer_losing_axis(right):
    """An answer that is right but for a first axis of size 1, which it loses."""
    if not isinstance(right, type):
        return lambda *inputs: _squeeze_first_axis(right(*inputs))

    class Loses(right):
        def forward(self, *inputs, **options):
            return _squeeze_first_axis(super().forward(*inputs, **options))

    return Loses


# what gives something else than a tensor for a batch, a grid or heads, of which there may be one
NONE_OF_ONE = {
    *("split_heads", "count_parameters", "warmup_cosine", "train_one_epoch", "evaluate", "parameter_groups"),
    *("EarlyStopping", "vit_cifar", "fine_tuning_groups", "replace_head", "linear_probe", "load_torchvision"),
    "conv_from_linear",
}
OF_ONE = [name for name in EXERCISES if not name.startswith(("is_", "fix_")) and name not in NONE_OF_ONE]


@pytest.mark.parametrize("exercise", OF_ONE)
def test_a_lost_axis_of_one_fails_more_than_the_example(exercise):
    LOST.clear()
    found = find_failed_claims(exercise, _make_answer_losing_axis(REFERENCE[exercise][0]))
    if not LOST:
        pytest.skip("its answer gives no tensor")
    assert found - {"test_its_own_example_comes_out"}


def test_a_count_with_digits_behind_the_point_is_told_so():
    report = str(check("count_parameters", lambda config: REFERENCE["count_parameters"][0](config) + 5.2))
    assert "float `" in report
    assert "99999" not in report


@pytest.mark.parametrize("key", [b"%d" % number for number in range(6)])
def test_grid_sample_is_right_in_half_precision_too(key):
    """The statement names F.interpolate; another function that is right but for rounding loses nothing."""

    def resize_positions(positions, old_grid, new_grid):
        REFERENCE["resize_positions"][0](positions, old_grid, new_grid)  # which refuses what does not fit
        pictures = positions[:, 1:].unflatten(1, old_grid).permute(0, 3, 1, 2)
        sides = ((torch.arange(side).to(positions) + 0.5) / side * 2 - 1 for side in new_grid)
        places = torch.stack(torch.meshgrid(*sides, indexing="ij")[::-1], dim=-1)[None]
        resized = F.grid_sample(pictures, places, "bicubic", padding_mode="border", align_corners=False)
        return torch.cat([positions[:, :1], resized.flatten(2).mT], dim=1)

    assert not find_failed_claims("resize_positions", resize_positions, key=key)
