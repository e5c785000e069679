"""What late work costs, by hand-made cases and on a grid."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from traitlets import TraitError

from exercise_kit.nbgrader.late import LateSubmissionPlugin

HOUR, DAY = 3600, 86400


@pytest.mark.parametrize(
    ("seconds", "grace", "cost"),
    [
        (1, 0, 2.0),
        (DAY, 0, 2.0),
        (DAY + 1, 0, 4.0),
        (6 * HOUR, 6, None),
        (6 * HOUR + 1, 6, 2.0),
        (30 * HOUR, 6, 2.0),
        (30 * HOUR + 1, 6, 4.0),
        (10 * DAY, 0, 20.0),
        (100 * DAY, 6, 20.0),
    ],
)
def test_a_tenth_for_every_day_begun_after_the_grace(seconds: float, grace: float, cost: float | None) -> None:
    plugin = LateSubmissionPlugin(penalty_method="by_day", penalty_per_day=0.1, grace_hours=grace)
    assert plugin.late_submission_penalty("ada", 20.0, seconds) == cost


@given(
    score=st.floats(0, 1000),
    share=st.floats(0, 1),
    grace=st.floats(0, 1000),
    first=st.floats(1, 1e7),
    more=st.floats(0, 1e7),
)
def test_later_never_costs_less_and_never_more_than_all(
    score: float, share: float, grace: float, first: float, more: float
) -> None:
    plugin = LateSubmissionPlugin(penalty_method="by_day", penalty_per_day=share, grace_hours=grace)
    early, late = (plugin.late_submission_penalty("ada", score, seconds) or 0 for seconds in (first, first + more))
    assert 0 <= early <= late <= score + 1e-4


def test_nbgraders_own_methods_stay_and_know_the_grace() -> None:
    assert LateSubmissionPlugin().late_submission_penalty("ada", 20.0, DAY) is None
    zero = LateSubmissionPlugin(penalty_method="zero", grace_hours=1)
    assert zero.late_submission_penalty("ada", 20.0, HOUR) is None
    assert zero.late_submission_penalty("ada", 20.0, HOUR + 1) == 20.0


@pytest.mark.parametrize("setting", [{"penalty_per_day": 10}, {"penalty_per_day": -0.1}, {"grace_hours": -1}])
def test_settings_that_make_no_sense_are_refused(setting: dict[str, float]) -> None:
    with pytest.raises(TraitError, match=next(iter(setting))):
        LateSubmissionPlugin(**setting)
